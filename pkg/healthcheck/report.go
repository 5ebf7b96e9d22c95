// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
)

// enabled tells whether a check that is on by default is on.
func enabled(setting *bool) bool { return setting == nil || *setting }

// ripensAfter is how old a sickness is when it does not count as a flap any more.
const ripensAfter = time.Minute

// Why a check does not look at the cluster.
const (
	skippedOff   = "turned off"
	skippedMinor = "not another minor version"
	skippedNone  = "none are configured"
	skippedAway  = "no answer, which is ignored"
)

// Ripens is how old a finding is when it is not Fresh any more: a minute, or half of the time in which the cluster has to
// be healthy, if that is shorter.
func Ripens(config v1beta1.HealthChecks) time.Duration {
	return min(ripensAfter, config.Timeout.Or(v1beta1.DefaultHealthCheckTimeout)/2)
}

// unavailable is the report of a check to which Prometheus gave no answer.
func unavailable(what string, config v1beta1.HealthChecks, err error) (Report, error) {
	if config.WhenUnavailable == v1beta1.UnavailableIgnore && errors.Is(err, monitoring.ErrUnavailable) {
		return Report{Skipped: skippedAway, Notes: []string{fmt.Sprintf("%s not checked (whenUnavailable: Ignore): %s", what, err)}}, nil
	}
	return Report{}, err
}

// list names the first of several things and counts the rest.
func list[S ~string](items []S) string {
	const named = 3
	var text strings.Builder
	for i, item := range items {
		if i == named {
			fmt.Fprintf(&text, " and %d more", len(items)-named)
			break
		}
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(string(item))
	}
	return text.String()
}
