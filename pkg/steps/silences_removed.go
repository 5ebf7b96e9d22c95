// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"fmt"
	"strings"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
)

// SilencesRemoved is cleanup: it ends all silences of the job, also those whose ids were never recorded. While Alertmanager is away it waits until the last
// one has lapsed.
func SilencesRemoved() Step { return silencesRemoved{} }

type silencesRemoved struct{}

func (silencesRemoved) Condition() string { return "SilencesRemoved" }

func (silencesRemoved) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	if !u.Monitoring.HasAlertmanager() {
		return Done(noAlertmanager), nil
	}
	windows := u.Job.Status.MaintenanceWindows
	mark := silenceMark(u.Job)
	away := endSilences(ctx, u, windows, silencesRetry, func(s monitoring.Silence) bool { return strings.HasSuffix(s.Comment, mark) })
	if ctx.Err() != nil {
		return Verdict{}, context.Cause(ctx)
	}
	last := silencesMayBe(u)
	if left := last.Sub(u.Now); away != nil && left > 0 {
		message := fmt.Sprintf("The silences could not be ended: %s. They lapse by %s.", away, stamp(last))
		return Wait(min(left, silencesRetry), v1beta1.ReasonAlertmanagerAway, message), nil
	}
	for i := range windows {
		closeWindow(&windows[i], u.Now)
	}
	return Done("Nothing is silenced for the job any more."), nil
}
