// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// The states of a Silence.
const (
	// SilenceActive is the state of a silence that suppresses alerts now.
	SilenceActive = "active"
	// SilencePending is the state of a silence that is yet to begin.
	SilencePending = "pending"
	// SilenceExpired is the state of a silence that has ended, by itself or by somebody.
	SilenceExpired = "expired"
)

// Silence is one that Alertmanager knows. It knows those that have expired for some days.
type Silence struct {
	// ID stays when a silence is extended, and is another one when its matchers change.
	ID        string    `json:"id"`
	CreatedBy string    `json:"createdBy"`
	Comment   string    `json:"comment"`
	Matchers  []Matcher `json:"matchers"`
	StartsAt  time.Time `json:"startsAt"`
	// EndsAt is when it ends, or has ended.
	EndsAt    time.Time `json:"endsAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Status    struct {
		// State is SilenceActive, SilencePending or SilenceExpired.
		State string `json:"state"`
	} `json:"status"`
}

// Matcher is a condition on a label of the alerts that are silenced.
type Matcher struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	IsRegex bool   `json:"isRegex"`
	// IsEqual is false for the alerts that do not match.
	IsEqual bool `json:"isEqual"`
}

// String words the matcher as Alertmanager does, like severity=~"warning|info".
func (m Matcher) String() string {
	operator := "!"
	if m.IsEqual {
		operator = "="
	}
	switch {
	case m.IsRegex:
		operator += "~"
	case !m.IsEqual:
		operator += "="
	}
	return fmt.Sprintf("%s%s%q", m.Name, operator, m.Value)
}

// Silences returns all that Alertmanager knows, those that have expired too: the one that
// begins last comes first.
func (a *Alertmanager) Silences(ctx context.Context) ([]Silence, error) {
	var silences []Silence
	if err := a.call(ctx, http.MethodGet, "/api/v2/silences", nil, &silences); err != nil {
		return nil, fmt.Errorf("list the silences of Alertmanager: %w", err)
	}
	slices.SortFunc(silences, func(a, b Silence) int {
		return cmp.Or(b.StartsAt.Compare(a.StartsAt), cmp.Compare(a.ID, b.ID))
	})
	return silences, nil
}
