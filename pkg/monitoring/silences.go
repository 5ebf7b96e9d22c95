// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/appuio/managed-upgrade-operator/pkg/poll"
)

// SilenceAuthor is who made the silences of this operator, as people see it in Alertmanager.
const SilenceAuthor = "managed-upgrade-operator"

// SilenceState is what a silence does at present, by Alertmanager's clock.
type SilenceState string

const (
	// SilenceActive is the state of a silence that suppresses alerts.
	SilenceActive SilenceState = "active"
	// SilencePending is the state of a silence that will.
	SilencePending SilenceState = "pending"
	// SilenceExpired is the state of a silence that has lapsed, or was ended early. Alertmanager remembers it for five days unless it is told otherwise.
	SilenceExpired SilenceState = "expired"
)

// Matcher says of one label which values are silenced.
type Matcher struct {
	Name string `json:"name"`
	// Value of the label; a regular expression that has to match all of it if IsRegex is set.
	Value   string `json:"value"`
	IsRegex bool   `json:"isRegex"`
	// IsEqual is false for a matcher of what the label is not.
	IsEqual bool `json:"isEqual"`
}

// UnmarshalJSON reads a matcher of any Alertmanager: older ones know no inequality.
func (m *Matcher) UnmarshalJSON(data []byte) error {
	type plain Matcher
	read := plain{IsEqual: true}
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	*m = Matcher(read)
	return nil
}

// Silence is one of this operator.
type Silence struct {
	// ID that Alertmanager gave it; empty for one that is to be made.
	ID string
	// Matchers of the labels of an alert, all of which have to match.
	Matchers []Matcher
	// Comment tells people what it is for.
	Comment string
	// StartsAt is from when it is active. The zero time for one that is to be made stands for the moment in which Alertmanager gets it.
	StartsAt time.Time
	// EndsAt is when it lapses.
	EndsAt time.Time
	// State is told by Alertmanager; it cannot be posted.
	State SilenceState
}

// Live tells whether the silence is active, or will be.
func (s Silence) Live() bool { return s.State == SilenceActive || s.State == SilencePending }

// wireSilence is a silence in Alertmanager's API v2.
type wireSilence struct {
	ID        string    `json:"id,omitempty"`
	Matchers  []Matcher `json:"matchers"`
	StartsAt  time.Time `json:"startsAt"`
	EndsAt    time.Time `json:"endsAt"`
	CreatedBy string    `json:"createdBy"`
	Comment   string    `json:"comment"`
	Status    *struct {
		State SilenceState `json:"state"`
	} `json:"status,omitempty"`
}

// Silences returns the silences that this operator has made and Alertmanager remembers, those that are expired too: see Silence.Live. The answer is as of
// at most maxAge before now, and not from before the last write of this client. A write that failed within that time is an answer too: it is returned as the
// error, so that who does not answer is not asked by every pass. Errors wrap ErrUnavailable if nobody is there, and say the same each time. The answer
// must not be changed.
func (c *Client) Silences(ctx context.Context, now time.Time, maxAge time.Duration) ([]Silence, error) {
	if !c.HasAlertmanager() {
		return nil, errNoAlertmanager
	}
	c.mutex.Lock()
	silences := c.silences
	c.mutex.Unlock()
	return silences.Get(ctx, now, maxAge, c.askSilences)
}

func (c *Client) askSilences(ctx context.Context) ([]Silence, error) {
	body, err := c.silencing(ctx, http.MethodGet, "/api/v2/silences", nil)
	if err != nil {
		return nil, err
	}
	var all []wireSilence
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, failure{"the answer of Alertmanager cannot be read: " + err.Error(), false}
	}
	var own []Silence
	for _, s := range all {
		if s.CreatedBy != SilenceAuthor || s.ID == "" || s.Status == nil {
			continue
		}
		own = append(own, Silence{ID: s.ID, Matchers: s.Matchers, Comment: s.Comment, StartsAt: s.StartsAt, EndsAt: s.EndsAt, State: s.Status.State})
	}
	return own, nil
}

// PostSilence makes a silence, or changes the one that has the ID: its end and its comment, if it is as Silences returned it but for them. It returns the
// id that Alertmanager answers, which is a new one if the silence could not be changed in place. The time now is when this is done. On an error the
// silence may have been made all the same.
func (c *Client) PostSilence(ctx context.Context, now time.Time, s Silence) (id string, err error) {
	if !c.HasAlertmanager() {
		return "", errNoAlertmanager
	}
	if s.StartsAt.IsZero() {
		s.StartsAt = s.EndsAt.AddDate(-1, 0, 0) // Alertmanager takes its own time instead of one that is past
	}
	content, err := json.Marshal(wireSilence{
		ID: s.ID, Matchers: s.Matchers, StartsAt: s.StartsAt.UTC(), EndsAt: s.EndsAt.UTC(), CreatedBy: SilenceAuthor, Comment: s.Comment,
	})
	if err != nil {
		return "", fmt.Errorf("encode a silence: %w", err)
	}
	err = c.written(ctx, now, func(ctx context.Context) error {
		body, err := c.silencing(ctx, http.MethodPost, "/api/v2/silences", content)
		if err != nil {
			return err
		}
		var answer struct {
			SilenceID string `json:"silenceID"`
		}
		if err := json.Unmarshal(body, &answer); err != nil || answer.SilenceID == "" {
			return failure{"the answer of Alertmanager cannot be read: it does not name the silence", false}
		}
		id = answer.SilenceID
		return nil
	})
	return id, err
}

// ExpireSilence ends a silence. One that Alertmanager does not know, or that is expired, has ended already. The time now is when this is done.
func (c *Client) ExpireSilence(ctx context.Context, now time.Time, id string) error {
	if !c.HasAlertmanager() {
		return errNoAlertmanager
	}
	return c.written(ctx, now, func(ctx context.Context) error {
		_, err := c.silencing(ctx, http.MethodDelete, "/api/v2/silence/"+url.PathEscape(id), nil)
		return err
	})
}

// written does a write. Afterwards no older answer counts any more; if it failed, that is the answer for a while.
func (c *Client) written(ctx context.Context, now time.Time, write func(context.Context) error) error {
	err := write(ctx)
	silences := &poll.Question[[]Silence]{}
	if err != nil {
		_, _ = silences.Get(ctx, now, 0, func(context.Context) ([]Silence, error) { return nil, err })
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.silences = silences
	return err
}

// silencing sends a request to Alertmanager's API of silences, with JSON if there is any, and returns the answer.
func (c *Client) silencing(ctx context.Context, method, path string, content []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var sent io.Reader = http.NoBody
	if content != nil {
		sent = bytes.NewReader(content)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.silencer.URL(path, nil).String(), sent)
	if err != nil {
		return nil, fmt.Errorf("ask Alertmanager: %w", err)
	}
	if content != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, body, err := c.silencer.Do(ctx, request) //nolint:bodyclose // the client has read and closed it
	switch {
	case err != nil:
		return nil, explain("Alertmanager", err)
	case response.StatusCode == http.StatusOK:
		return body, nil
	case response.StatusCode == http.StatusNotFound && method == http.MethodDelete:
		return nil, nil // what is not known is not silenced
	case response.StatusCode == http.StatusBadRequest:
		return nil, refusal(body)
	default:
		return nil, explain("Alertmanager", statusError(response.StatusCode))
	}
}

// maxRefusalLength bounds what is repeated of Alertmanager's words.
const maxRefusalLength = 256

// refusal repeats why Alertmanager does not take a silence, if it says so as its API does.
func refusal(body []byte) error {
	var text string
	if err := json.Unmarshal(body, &text); err != nil || text == "" || len(text) > maxRefusalLength {
		return explain("Alertmanager", statusError(http.StatusBadRequest))
	}
	return failure{"Alertmanager refuses the silence: " + text, false}
}
