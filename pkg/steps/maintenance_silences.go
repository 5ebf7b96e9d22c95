// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
)

// silencesRetry is after how long an Alertmanager that was away is asked again by those who wait for it.
const silencesRetry = 10 * time.Second

// silencesPace is after how long it is asked again by those who do not: a few times in what is left of a lease, but not on every pass, which one that hangs
// would hold up.
func (u *Upgrade) silencesPace() time.Duration {
	return min(max(u.silenceLease()/10, time.Second), time.Minute)
}

// maintenance is an open window in a pass, or one that is about to be opened. It keeps the window's silences as leases: they are renewed while
// somebody runs the steps, and lapse soon after nobody does.
type maintenance struct {
	upgrade *Upgrade
	// window as it is to be recorded.
	window v1beta1.MaintenanceWindowStatus
	// opened tells whether the window is recorded.
	opened bool
	// changed tells whether something was changed that Alertmanager is to be told at once.
	changed bool
	wanted  []wantedSilence
	// what is upgraded meanwhile, for messages.
	what string

	// deleted says which silences somebody has deleted.
	deleted []string
}

// keep sees to the window's silences, records the window, and says what holds. Where Alertmanager is away the window is opened all the same, but before the
// upgrade has commenced only after maintenance.patience.
func (m *maintenance) keep(ctx context.Context, condition string) (Verdict, error) {
	u := m.upgrade
	away, err := m.renew(ctx)
	if err != nil {
		return Verdict{}, err
	}
	if away != nil && !m.opened && !u.Commenced() {
		if verdict, waits := m.await(condition, away); waits {
			return verdict, nil
		}
	}
	m.window.Warning, m.opened = m.warning(away), true
	u.recordWindow(m.window)
	return doneSaying(u, condition, m.message()).AgainAfter(m.after(away)), nil
}

// await waits for Alertmanager, and tells whether there is still patience.
func (m *maintenance) await(condition string, away error) (Verdict, bool) {
	u := m.upgrade
	patience := v1beta1.DefaultMonitoringPatience
	if config := u.Job.Spec.Config.Maintenance; config != nil {
		patience = config.Patience.Or(patience)
	}
	until := u.StepStarted(condition).Add(patience)
	left := until.Sub(u.Now)
	if left <= 0 {
		return Verdict{}, false
	}
	message := fmt.Sprintf("Alerts cannot be silenced: %s.", away)
	return u.awaitBeforeCommencing(min(left, silencesRetry), v1beta1.ReasonAlertmanagerAway, message, []v1beta1.Blocker{{
		Code: v1beta1.ReasonAlertmanagerAway, Object: "Alertmanager", Message: message,
		ClearsWhen: fmt.Sprintf("Alertmanager takes silences; without them the upgrade goes on at %s", stamp(until)),
	}}), true
}

// retry is how old an answer of Alertmanager may be.
func (m *maintenance) retry() time.Duration {
	if !m.opened && !m.upgrade.Commenced() {
		return silencesRetry
	}
	return m.upgrade.silencesPace()
}

// over tells whether the window is: nothing is renewed any more.
func (m *maintenance) over() bool { return !m.upgrade.Now.Before(m.latest()) }

// renew makes the silences that there are not, and renews those of which less than the greater part of the lease is left. The first error is why that
// could not be done, the second one is unexpected.
func (m *maintenance) renew(ctx context.Context) (away, err error) {
	if m.over() || !slices.ContainsFunc(m.wanted, m.due) {
		return nil, nil
	}
	u := m.upgrade
	all, away := u.Monitoring.Silences(ctx, u.Now, m.retry())
	if away == nil {
		if err := u.Lock(ctx); err != nil {
			return nil, err
		}
		m.startWithAdopted(all)
	}
	for _, w := range m.wanted {
		if away == nil {
			away = m.renewOne(ctx, w, all)
		}
	}
	if ctx.Err() != nil { // the pass is over, which says nothing of Alertmanager
		return nil, context.Cause(ctx)
	}
	return away, nil
}

// due tells whether Alertmanager has to be asked about a silence.
func (m *maintenance) due(w wantedSilence) bool {
	s := m.recorded(w)
	return m.changed || s == nil || !m.lasts(s.EndTime.Time)
}

// lasts tells whether a silence that ends then is long enough for the time being, and not too long.
func (m *maintenance) lasts(end time.Time) bool {
	return end.Equal(m.latest()) || (end.Before(m.latest()) && end.After(m.renewAt()))
}

// renewAt is the end that a silence has that is to be renewed now.
func (m *maintenance) renewAt() time.Time {
	return m.upgrade.Now.Add(m.upgrade.silenceLease() * 6 / 10)
}

// latest is the last end that a silence may have: the window's, in whole seconds, as it is recorded.
func (m *maintenance) latest() time.Time { return m.window.Until.Truncate(time.Second) }

// recorded returns the silence that the window has, as recorded.
func (m *maintenance) recorded(w wantedSilence) *v1beta1.SilenceStatus {
	i := slices.IndexFunc(m.window.Silences, func(s v1beta1.SilenceStatus) bool { return s.Critical == w.critical })
	if i < 0 {
		return nil
	}
	return &m.window.Silences[i]
}

// startWithAdopted has a window that is not recorded begin with what a process has made for it that ended before it could record it.
func (m *maintenance) startWithAdopted(all []monitoring.Silence) {
	if m.opened {
		return
	}
	start := m.window.StartTime.Time
	for _, w := range m.wanted {
		for _, s := range m.find(w, all) {
			if s.StartsAt.Before(start) && !s.StartsAt.Before(resumed(m.upgrade.Job)) {
				start = s.StartsAt
			}
		}
	}
	m.window.Until = metav1.NewTime(m.window.Until.Add(start.Sub(m.window.StartTime.Time)))
	m.window.StartTime = metav1.NewTime(start)
}

// renewOne makes a silence, or renews it in place. A process may have ended between a silence and its record: whatever is of the job and the window counts.
func (m *maintenance) renewOne(ctx context.Context, w wantedSilence, all []monitoring.Silence) error {
	u := m.upgrade
	live := m.find(w, all)
	if len(live) == 0 {
		if m.endedEarly(w, all) {
			m.deleted = append(m.deleted, w.of())
			return nil
		}
		return m.post(ctx, w, monitoring.Silence{Matchers: w.matchers})
	}
	err := m.post(ctx, w, live[0])
	for _, extra := range live[1:] { // made by two who did not know of each other
		err = cmp.Or(err, u.Monitoring.ExpireSilence(ctx, u.Now, extra.ID))
	}
	return err
}

// find returns the live silences of the window, the one that is recorded first, and else the one that ends last.
func (m *maintenance) find(w wantedSilence, all []monitoring.Silence) []monitoring.Silence {
	recorded := m.recorded(w)
	rank := func(s monitoring.Silence) int {
		if recorded != nil && s.ID == recorded.ID {
			return 0
		}
		return 1
	}
	found := slices.DeleteFunc(slices.Clone(all), func(s monitoring.Silence) bool {
		return !s.Live() || (rank(s) != 0 && !isOf(m.upgrade.Job, w.begins, s))
	})
	slices.SortFunc(found, func(a, b monitoring.Silence) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), b.EndsAt.Compare(a.EndsAt), cmp.Compare(a.ID, b.ID))
	})
	return found
}

// isOf tells whether a silence is one of the job whose comment begins so.
func isOf(job *v1beta1.UpgradeJob, begins string, s monitoring.Silence) bool {
	return strings.HasPrefix(s.Comment, begins) && strings.HasSuffix(s.Comment, silenceMark(job))
}

// endedEarly tells whether somebody has ended the recorded silence before its time.
func (m *maintenance) endedEarly(w wantedSilence, all []monitoring.Silence) bool {
	recorded := m.recorded(w)
	return recorded != nil && slices.ContainsFunc(all, func(s monitoring.Silence) bool {
		return s.ID == recorded.ID && s.EndsAt.Before(recorded.EndTime.Time)
	})
}

// post has Alertmanager take a silence, unless it is as it should be, and notes it. The end is in whole seconds, as it is recorded. What somebody has
// prolonged by hand stays so as long as the window does.
func (m *maintenance) post(ctx context.Context, w wantedSilence, s monitoring.Silence) error {
	u := m.upgrade
	comment := w.comment + silenceMark(u.Job)
	if s.ID == "" || s.Comment != comment || !m.lasts(s.EndsAt) {
		end := u.Now.Add(u.silenceLease()).Truncate(time.Second)
		if s.EndsAt.After(end) {
			end = s.EndsAt
		}
		if end.After(m.latest()) {
			end = m.latest()
		}
		s.Comment, s.EndsAt = comment, end
		id, err := u.Monitoring.PostSilence(ctx, u.Now, s)
		if err != nil {
			return err
		}
		s.ID = id
	}
	status := v1beta1.SilenceStatus{ID: s.ID, Critical: w.critical, EndTime: metav1.NewTime(s.EndsAt)}
	if recorded := m.recorded(w); recorded != nil {
		*recorded = status
	} else {
		m.window.Silences = append(m.window.Silences, status)
	}
	return nil
}

// warning says why alerts are not silenced that should be.
func (m *maintenance) warning(away error) string {
	switch {
	case m.over():
		return fmt.Sprintf("The window was over at %s: silences are not renewed any more.", stamp(m.latest()))
	case away != nil && lastsUntil(m.window).After(m.upgrade.Now):
		return fmt.Sprintf("Silences are not renewed: %s.", away)
	case away != nil:
		return fmt.Sprintf("Alerts are not silenced: %s.", away)
	case len(m.deleted) > 0:
		return fmt.Sprintf("Somebody has deleted the silence of %s, which is not made again.", strings.Join(m.deleted, " and that of "))
	}
	return ""
}

// message says what is silenced, or why nothing is.
func (m *maintenance) message() string {
	if m.window.Warning != "" {
		return m.window.Warning
	}
	return fmt.Sprintf("Alerts are silenced while %s, until %s at most.", m.what, stamp(m.latest()))
}

// after is when the steps have to be run again for the window; zero if they have not.
func (m *maintenance) after(away error) time.Duration {
	if m.over() {
		return 0
	}
	u := m.upgrade
	wake := m.latest().Sub(u.Now)
	if away != nil {
		return min(wake, m.retry())
	}
	for _, s := range m.window.Silences {
		if left := s.EndTime.Sub(m.renewAt()); left > 0 && s.EndTime.Time.Before(m.latest()) {
			wake = min(wake, left)
		}
	}
	return wake
}
