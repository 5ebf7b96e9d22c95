// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
)

// remove ends the silences of the window, which may be nil. What could not be ended stays recorded, until it has lapsed.
func (s maintenanceWindowRemoved) remove(ctx context.Context, u *Upgrade, window *v1beta1.MaintenanceWindowStatus) (Verdict, error) {
	var recorded []v1beta1.MaintenanceWindowStatus
	if window != nil {
		recorded = append(recorded, *window)
	}
	away := endSilences(ctx, u, recorded, u.silencesPace(), func(silence monitoring.Silence) bool {
		return slices.ContainsFunc(s.begins, func(begins string) bool { return isOf(u.Job, begins, silence) })
	})
	if ctx.Err() != nil {
		return Verdict{}, context.Cause(ctx)
	}
	lapse := lastsUntil(recorded...)
	left := lapse.Sub(u.Now)
	switch {
	case away == nil:
		s.close(u, window)
		return doneSaying(u, s.condition, "Nothing is silenced for the window any more."), nil
	case left <= 0:
		s.close(u, window)
		return doneSaying(u, s.condition, fmt.Sprintf("The silences have lapsed. They could not be ended before: %s.", away)), nil
	}
	if u.Now.Before(window.Until.Time) {
		window.Until.Time = u.Now // nothing is renewed any more
	}
	message := fmt.Sprintf("The silences could not be ended: %s. They lapse at %s.", away, stamp(lapse))
	window.Warning = message
	return doneSaying(u, s.condition, message).AgainAfter(min(left, u.silencesPace())), nil
}

func (s maintenanceWindowRemoved) close(u *Upgrade, window *v1beta1.MaintenanceWindowStatus) {
	if window != nil {
		closeWindow(window, u.Now)
	}
}

// endSilences ends the job's live silences that are recorded in the windows, or that are to end, and returns the first error. They are as of at most maxAge ago.
func endSilences(ctx context.Context, u *Upgrade, windows []v1beta1.MaintenanceWindowStatus, maxAge time.Duration, ends func(monitoring.Silence) bool) error {
	recorded := map[string]bool{}
	for i := range windows {
		for _, s := range windows[i].Silences {
			recorded[s.ID] = true
		}
	}
	all, away := u.Monitoring.Silences(ctx, u.Now, maxAge)
	for _, s := range all {
		if s.Live() && (recorded[s.ID] || ends(s)) {
			away = cmp.Or(away, u.Monitoring.ExpireSilence(ctx, u.Now, s.ID))
		}
	}
	return away
}

// silencesMayBe is until when there may be silences of the job: until the last one lapses that is recorded, or, where there is no telling, the last one that
// the job may have made before it was over. The zero time if there are none.
func silencesMayBe(u *Upgrade) time.Time {
	windows := u.Job.Status.MaintenanceWindows
	vague := func(w v1beta1.MaintenanceWindowStatus) bool {
		return len(w.Silences) == 0 && u.Now.Before(w.Until.Time)
	}
	if len(windows) > 0 && !slices.ContainsFunc(windows, vague) {
		return lastsUntil(windows...)
	}
	made := u.Attempted(ConditionControlPlaneMaintenanceWindowCreated) || u.Attempted(ConditionWorkersMaintenanceWindowCreated) ||
		u.Version.Annotations[v1beta1.UpgradeJobAnnotation] == u.Job.LockKey()
	over := u.Job.Status.CompletionTime
	if deleted := u.Job.DeletionTimestamp; over == nil || (deleted != nil && deleted.Before(over)) {
		over = deleted
	}
	if !made || over == nil {
		return time.Time{}
	}
	return over.Add(u.silenceLease() + time.Second) // times are recorded in whole seconds
}
