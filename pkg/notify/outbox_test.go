// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

var now = time.Date(2026, time.November, 24, 22, 0, 0, 0, time.UTC)

// newJob returns a job with receivers that want these events, one for each filter.
func newJob(filters ...[]v1beta1.NotificationFilter) *v1beta1.UpgradeJob {
	job := &v1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "weekly-1", UID: "7d5c"},
		Status:     v1beta1.UpgradeJobStatus{Phase: v1beta1.PhaseActive},
	}
	for _, f := range filters {
		job.Spec.Config.Notifications = append(job.Spec.Config.Notifications, v1beta1.NotificationReceiver{URL: "https://example.com", Events: f})
	}
	return job
}

// everything is the filter of a receiver that wants all events.
var everything []v1beta1.NotificationFilter

// setCursor records that a receiver is done up to the cursor.
func setCursor(job *v1beta1.UpgradeJob, name string, cursor int64) {
	status := job.Status.Notifications
	for i := range status.Receivers {
		if status.Receivers[i].Name == name {
			status.Receivers[i].Cursor = cursor
			return
		}
	}
	status.Receivers = append(status.Receivers, v1beta1.NotificationReceiverStatus{Name: name, Cursor: cursor})
}

// appendMany appends steps that wait, which say nothing.
func appendMany(job *v1beta1.UpgradeJob, count int) {
	for range count {
		Append(job, v1beta1.Notice{Type: v1beta1.NotificationStepWaiting}, now)
	}
}

func sequences(notices []v1beta1.Notice) []int64 {
	var list []int64
	for i := range notices {
		list = append(list, notices[i].Sequence)
	}
	return list
}

func TestAppendStampsAndNumbers(t *testing.T) {
	job := newJob(everything)
	Append(job, v1beta1.Notice{Type: v1beta1.NotificationJobStarted, Reason: "Started", Message: "The job has started."}, now)
	earlier := metav1.NewTime(now.Add(-time.Minute))
	Append(job, v1beta1.Notice{Type: v1beta1.NotificationStepCompleted, Condition: "UpdateAvailable", Time: earlier, Phase: v1beta1.PhasePaused}, now)
	want := &v1beta1.NotificationsStatus{Sequence: 2, Outbox: []v1beta1.Notice{
		{Sequence: 1, Type: v1beta1.NotificationJobStarted, Time: metav1.NewTime(now), Phase: v1beta1.PhaseActive, Reason: "Started", Message: "The job has started."},
		{Sequence: 2, Type: v1beta1.NotificationStepCompleted, Time: earlier, Phase: v1beta1.PhasePaused, Condition: "UpdateAvailable"},
	}}
	if diff := cmp.Diff(want, job.Status.Notifications); diff != "" {
		t.Errorf("status.notifications (-want +got):\n%s", diff)
	}
}

func TestAppendLeavesOutWhatNobodyWants(t *testing.T) {
	outcomes := []v1beta1.NotificationFilter{"job.failed", "job.succeeded"}
	steps := []v1beta1.NotificationFilter{"step.*"}
	for _, tc := range []struct {
		reason string
		job    *v1beta1.UpgradeJob
		want   bool
	}{
		{"no receiver", newJob(), false},
		{"a receiver that wants all", newJob(everything), true},
		{"a receiver that wants other events", newJob(outcomes), false},
		{"one of two", newJob(outcomes, steps), true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			Append(tc.job, v1beta1.Notice{Type: v1beta1.NotificationStepWaiting}, now)
			if got := tc.job.Status.Notifications != nil; got != tc.want {
				t.Errorf("the job has notifications: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestAppendBoundsTexts(t *testing.T) {
	long := strings.Repeat("ä", 2000)
	blocker := v1beta1.Blocker{Code: "NodeDraining", Object: "Node/" + long, Message: long, ClearsWhen: long}
	job := newJob(everything)
	job.Status.Blockers = []v1beta1.Blocker{blocker, blocker, blocker, blocker, blocker, blocker, blocker}
	Append(job, v1beta1.Notice{Type: v1beta1.NotificationStepWaiting, Condition: long, Hook: long, Reason: long, Message: long, Blockers: job.Status.Blockers}, now)
	n := job.Status.Notifications.Outbox[0]
	for what, tc := range map[string]struct {
		text  string
		limit int
	}{
		"condition": {n.Condition, 253}, "hook": {n.Hook, 253}, "reason": {n.Reason, 253}, "message": {n.Message, 512},
		"blocker's object": {n.Blockers[0].Object, 256}, "blocker's message": {n.Blockers[0].Message, 256}, "blocker's clearsWhen": {n.Blockers[4].ClearsWhen, 256},
	} {
		if len(tc.text) > tc.limit || len(tc.text) < tc.limit-4 || !strings.HasSuffix(tc.text, "ä...") {
			t.Errorf("%s has %d bytes and ends with %q, want at most %d and a mark where it is cut", what, len(tc.text), tc.text[len(tc.text)-5:], tc.limit)
		}
	}
	if len(n.Blockers) != v1beta1.MaxNoticeBlockers {
		t.Errorf("the notice names %d blockers, want %d", len(n.Blockers), v1beta1.MaxNoticeBlockers)
	}
	if job.Status.Blockers[0] != blocker {
		t.Errorf("the job's own blocker was cut: %v", job.Status.Blockers[0])
	}
}

func TestAppendKeepsWhatIsNotDelivered(t *testing.T) {
	for _, tc := range []struct {
		reason      string
		filters     [][]v1beta1.NotificationFilter
		cursors     map[string]int64
		before      int
		first, last int64
	}{
		{"nothing is delivered", [][]v1beta1.NotificationFilter{everything}, nil, 40, 1, 41},
		{"what is delivered goes", [][]v1beta1.NotificationFilter{everything}, map[string]int64{"receiver-1": 36}, 40, 37, 41},
		{"all is delivered", [][]v1beta1.NotificationFilter{everything}, map[string]int64{"receiver-1": 40}, 40, 41, 41},
		{
			"one of two receivers is behind", [][]v1beta1.NotificationFilter{everything, everything},
			map[string]int64{"receiver-1": 40, "receiver-2": 18}, 40, 19, 41,
		},
		{"one of two receivers is not known yet", [][]v1beta1.NotificationFilter{everything, everything}, map[string]int64{"receiver-2": 40}, 40, 1, 41},
		{"the last one that fits", [][]v1beta1.NotificationFilter{everything}, nil, 255, 1, 256},
		{"one too many: the oldest goes", [][]v1beta1.NotificationFilter{everything}, nil, 256, 2, 257},
		{"a receiver that is away for ever", [][]v1beta1.NotificationFilter{everything}, nil, 1000, 746, 1001},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			job := newJob(tc.filters...)
			appendMany(job, tc.before)
			for name, cursor := range tc.cursors {
				setCursor(job, name, cursor)
			}
			before := job.DeepCopy()
			outbox := job.Status.Notifications.Outbox
			appendMany(job, 1)
			got := sequences(job.Status.Notifications.Outbox)
			if got[0] != tc.first || got[len(got)-1] != tc.last || int64(len(got)) != tc.last-tc.first+1 {
				t.Errorf("the outbox has %v, want %d to %d", got, tc.first, tc.last)
			}
			if diff := cmp.Diff(before.Status.Notifications.Outbox, outbox); diff != "" {
				t.Errorf("the outbox that the caller compares with was changed: %s", diff)
			}
		})
	}
}

// A status that is too large for etcd would stop the upgrade. A notice is never changed once it is there.
func TestAppendBoundsTheOutbox(t *testing.T) {
	long := strings.Repeat("x", 2000)
	blocker := v1beta1.Blocker{Code: long, Object: long, Message: long, ClearsWhen: long}
	job := newJob(everything)
	for range v1beta1.MaxNotices {
		before := job.DeepCopy()
		Append(job, v1beta1.Notice{
			Type: v1beta1.NotificationStepWaiting, Condition: long, Hook: long, Reason: long, Message: long,
			Blockers: []v1beta1.Blocker{blocker, blocker, blocker, blocker, blocker, blocker},
		}, now)
		if before.Status.Notifications == nil {
			continue
		}
		if old := before.Status.Notifications.Outbox; !reflect.DeepEqual(old, job.Status.Notifications.Outbox[:len(old)]) {
			t.Fatalf("appending to %d notices changed what was there", len(old))
		}
	}
	data, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	if outbox := job.Status.Notifications.Outbox; len(outbox) != v1beta1.MaxNotices || len(data) > 640<<10 {
		t.Errorf("%d notices make a job of %d bytes, want %d in at most 640 KiB", len(outbox), len(data), v1beta1.MaxNotices)
	}
	if first := job.Status.Notifications.Outbox[0]; len(first.Blockers) != v1beta1.MaxNoticeBlockers {
		t.Errorf("the first notice names %d blockers, want %d: there was room", len(first.Blockers), v1beta1.MaxNoticeBlockers)
	}
}

func TestPendingAndLost(t *testing.T) {
	job := newJob(everything, []v1beta1.NotificationFilter{"job.*"})
	for _, n := range []v1beta1.NotificationType{"job.started", "step.started", "step.completed", "job.succeeded"} {
		Append(job, v1beta1.Notice{Type: n}, now)
	}
	away := newJob(everything)
	appendMany(away, 300)
	wiped := away.DeepCopy()
	wiped.Status.Notifications.Outbox = nil
	for _, tc := range []struct {
		reason   string
		job      *v1beta1.UpgradeJob
		receiver int
		cursor   int64
		first    int64
		count    int
		lost     int64
	}{
		{"nothing has happened", newJob(everything), 0, 0, 0, 0, 0},
		{"all", job, 0, 0, 1, 4, 0},
		{"some are delivered", job, 0, 2, 3, 2, 0},
		{"all are delivered", job, 0, 4, 0, 0, 0},
		{"delivered, but the cache does not know yet", job, 0, 6, 0, 0, 0},
		{"only what the receiver wants", job, 1, 0, 1, 2, 0},
		{"only what the receiver wants, and only once", job, 1, 1, 4, 1, 0},
		{"some are lost", away, 0, 10, 45, 256, 34},
		{"none are lost", away, 0, 44, 45, 256, 0},
		{"somebody emptied the outbox", wiped, 0, 290, 0, 0, 10},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			pending := Pending(tc.job, &tc.job.Spec.Config.Notifications[tc.receiver], tc.cursor)
			var first int64
			if len(pending) > 0 {
				first = pending[0].Sequence
			}
			if len(pending) != tc.count || first != tc.first {
				t.Errorf("%d are pending, beginning with %d, want %d, beginning with %d", len(pending), first, tc.count, tc.first)
			}
			if lost := Lost(tc.job, tc.cursor); lost != tc.lost {
				t.Errorf("%d are lost, want %d", lost, tc.lost)
			}
		})
	}
}
