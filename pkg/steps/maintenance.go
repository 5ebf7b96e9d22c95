// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
)

// How the comments of silences begin. They are those of the Managed Upgrade Operator, whose dashboards and scripts find them so.
const (
	controlPlaneComment = "Silence for OSD control plane upgrade"
	criticalsComment    = "Silence for critical alerts during OSD control plane upgrade"
	workersComment      = "Silence for OSD worker node upgrade"
)

// What is silenced unless more is asked for: no critical alert, and nothing of the users' own.
const (
	silencedSeverities = "(warning|info)"
	silencedNamespaces = "(^openshift.*|^kube.*|^redhat.*|^default$)"
	// The operator tells by alerts of its own that an upgrade does not get on. Its namespace may be one of those that are silenced.
	heardAlerts = "ManagedUpgrade.*"
)

const noAlertmanager = "No alert is silenced: no Alertmanager is configured."

// wantedSilence is a silence that a window has.
type wantedSilence struct {
	// begins is how its comment begins, whatever the version and the progress.
	begins string
	// comment without the name of the job.
	comment  string
	critical bool
	matchers []monitoring.Matcher
}

// of says what is silenced.
func (w wantedSilence) of() string {
	if w.critical {
		return "critical alerts"
	}
	return "warnings"
}

// controlPlaneSilences are those of the control plane's window.
func controlPlaneSilences(u *Upgrade) []wantedSilence {
	target, _ := u.Target()
	wanted := []wantedSilence{{
		begins: controlPlaneComment, comment: fmt.Sprintf("%s to version %s", controlPlaneComment, target), matchers: platformMatchers(),
	}}
	config := u.Job.Spec.Config.Maintenance
	if config == nil || len(config.ControlPlaneCriticals) == 0 {
		return wanted
	}
	return append(wanted, wantedSilence{
		begins: criticalsComment, comment: fmt.Sprintf("%s to version %s", criticalsComment, target), critical: true,
		matchers: []monitoring.Matcher{{Name: "alertname", Value: "(" + strings.Join(config.ControlPlaneCriticals, "|") + ")", IsRegex: true, IsEqual: true}},
	})
}

// workersSilences are those of the window of the other machines.
func workersSilences(u *Upgrade, remaining int32) []wantedSilence {
	target, _ := u.Target()
	return []wantedSilence{{
		begins: workersComment, comment: fmt.Sprintf("%s to version %s with remaining %d nodes", workersComment, target, remaining), matchers: platformMatchers(),
	}}
}

func platformMatchers() []monitoring.Matcher {
	return []monitoring.Matcher{
		{Name: "severity", Value: silencedSeverities, IsRegex: true, IsEqual: true},
		{Name: "namespace", Value: silencedNamespaces, IsRegex: true, IsEqual: true},
		{Name: "alertname", Value: heardAlerts, IsRegex: true, IsEqual: false},
	}
}

// silenceMark ends the comment of each silence of the job: by it those are found whose id was not recorded.
func silenceMark(job *v1beta1.UpgradeJob) string {
	return fmt.Sprintf(" (UpgradeJob %s/%s %s)", job.Namespace, job.Name, job.UID)
}

// silenceLease is how long a silence outlives the operator.
func (u *Upgrade) silenceLease() time.Duration {
	if m := u.Job.Spec.Config.Maintenance; m != nil {
		return m.SilenceLease.Or(v1beta1.DefaultSilenceLease)
	}
	return v1beta1.DefaultSilenceLease
}

// recordedWindow returns what is recorded of the window, nil if nothing is.
func (u *Upgrade) recordedWindow(name v1beta1.MaintenanceWindowName) *v1beta1.MaintenanceWindowStatus {
	windows := u.Job.Status.MaintenanceWindows
	i := slices.IndexFunc(windows, func(w v1beta1.MaintenanceWindowStatus) bool { return w.Name == name })
	if i < 0 {
		return nil
	}
	return &windows[i]
}

// window returns the window if it was opened since the job was resumed last, else nil.
func (u *Upgrade) window(name v1beta1.MaintenanceWindowName) *v1beta1.MaintenanceWindowStatus {
	w := u.recordedWindow(name)
	if w == nil || w.StartTime.Time.Before(resumed(u.Job)) {
		return nil
	}
	return w
}

// recordWindow records the window instead of what was recorded of it.
func (u *Upgrade) recordWindow(w v1beta1.MaintenanceWindowStatus) {
	if recorded := u.recordedWindow(w.Name); recorded != nil {
		*recorded = w
		return
	}
	u.Job.Status.MaintenanceWindows = append(u.Job.Status.MaintenanceWindows, w)
}

// windowClosed tells whether the step of that condition has closed the window since the job was resumed last. A step that was done before that
// has its time still; that it has closed the window again is seen by the window.
func (u *Upgrade) windowClosed(name v1beta1.MaintenanceWindowName, removed string) bool {
	s := stepStatus(u.Job, removed)
	if s == nil || s.CompletionTime == nil {
		return false
	}
	w := u.window(name)
	return !s.CompletionTime.Time.Before(resumed(u.Job)) || (w != nil && len(w.Silences) == 0 && !u.Now.Before(w.Until.Time))
}

// closeWindow notes that the window is over, and that it has no silences any more.
func closeWindow(w *v1beta1.MaintenanceWindowStatus, now time.Time) {
	w.Silences, w.Warning = nil, ""
	if now.Before(w.Until.Time) {
		w.Until = metav1.NewTime(now)
	}
}

// lastsUntil is when the last silence of the windows lapses by itself; the zero time if they have none.
func lastsUntil(windows ...v1beta1.MaintenanceWindowStatus) time.Time {
	var last time.Time
	for i := range windows {
		for _, s := range windows[i].Silences {
			if s.EndTime.After(last) {
				last = s.EndTime.Time
			}
		}
	}
	return last
}

// doneSaying is Done with a message that may change from pass to pass: it replaces the one that the condition has.
func doneSaying(u *Upgrade, condition, message string) Verdict {
	verdict := Done(message)
	if c := meta.FindStatusCondition(u.Job.Status.Conditions, condition); c == nil || !strings.HasPrefix(c.Message, message) { // its hooks may have added to it
		verdict.condition = func(step string) metav1.Condition { return v1beta1.StepDone(step, message) }
	}
	return verdict
}
