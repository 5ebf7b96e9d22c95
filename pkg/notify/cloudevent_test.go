// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// waiting is a job that runs, with a notice that a step waits.
func waiting() (*v1beta1.UpgradeJob, *v1beta1.Notice) {
	job := newJob(everything)
	job.Spec.DesiredVersion = &v1beta1.DesiredVersion{Version: "4.18.2", Image: "quay.io/release@sha256:4182"}
	job.Status.StartTime = &metav1.Time{Time: now}
	job.Status.FromVersion = "4.18.1"
	return job, &v1beta1.Notice{
		Sequence: 17, Type: v1beta1.NotificationStepWaiting, Time: metav1.NewTime(now.Add(time.Minute)), Phase: v1beta1.PhaseActive,
		Condition: "ControlPlaneUpgraded", Reason: "Progressing", Message: `Waits for <etcd> & "others".`,
		Blockers: []v1beta1.Blocker{{
			Code: "ClusterOperatorDegraded", Object: "ClusterOperator/etcd", Since: metav1.NewTime(now), Message: "Quorum is lost", ClearsWhen: "etcd is healthy",
		}},
	}
}

func encoded(t *testing.T, job *v1beta1.UpgradeJob, n *v1beta1.Notice, clusterID string) []byte {
	t.Helper()
	e, err := NewEvent(job, n, clusterID)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Validate(); err != nil {
		t.Errorf("the event is not valid: %v", err)
	}
	body, mediaType, err := encode(e)
	if err != nil || mediaType != "application/cloudevents+json" {
		t.Fatalf("encoded as %q, error %v", mediaType, err)
	}
	return body
}

func expectJSON(t *testing.T, want string, got []byte) {
	t.Helper()
	var wanted, found any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &found); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	if diff := cmp.Diff(wanted, found); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

func TestNewEvent(t *testing.T) {
	job, n := waiting()
	expectJSON(t, `{
		"specversion": "1.0",
		"id": "7d5c/17",
		"source": "/apis/managedupgrade.appuio.io/v1beta1/namespaces/upgrades/upgradejobs/weekly-1",
		"type": "io.appuio.managedupgrade.step.waiting",
		"subject": "weekly-1",
		"time": "2026-11-24T22:01:00Z",
		"sequence": "0000000017",
		"datacontenttype": "application/json",
		"data": {
			"job": {"namespace": "upgrades", "name": "weekly-1", "uid": "7d5c"},
			"cluster": {"id": "c0ffee"},
			"phase": "Active",
			"condition": "ControlPlaneUpgraded",
			"reason": "Progressing",
			"message": "Waits for <etcd> & \"others\".",
			"fromVersion": "4.18.1",
			"version": {"version": "4.18.2", "image": "quay.io/release@sha256:4182"},
			"blockers": [{
				"code": "ClusterOperatorDegraded", "object": "ClusterOperator/etcd", "since": "2026-11-24T22:00:00Z",
				"message": "Quorum is lost", "clearsWhen": "etcd is healthy"
			}],
			"links": {
				"job": "/apis/managedupgrade.appuio.io/v1beta1/namespaces/upgrades/upgradejobs/weekly-1",
				"describe": "oc -n upgrades describe upgradejob weekly-1"
			}
		}
	}`, encoded(t, job, n, "c0ffee"))
}

func TestNewEventLeavesOutWhatIsNotKnown(t *testing.T) {
	job := newJob(everything)
	n := &v1beta1.Notice{Sequence: 1, Type: v1beta1.NotificationJobCreated, Time: metav1.NewTime(now)}
	expectJSON(t, `{
		"specversion": "1.0",
		"id": "7d5c/1",
		"source": "/apis/managedupgrade.appuio.io/v1beta1/namespaces/upgrades/upgradejobs/weekly-1",
		"type": "io.appuio.managedupgrade.job.created",
		"subject": "weekly-1",
		"time": "2026-11-24T22:00:00Z",
		"sequence": "0000000001",
		"datacontenttype": "application/json",
		"data": {
			"job": {"namespace": "upgrades", "name": "weekly-1", "uid": "7d5c"},
			"cluster": {},
			"links": {
				"job": "/apis/managedupgrade.appuio.io/v1beta1/namespaces/upgrades/upgradejobs/weekly-1",
				"describe": "oc -n upgrades describe upgradejob weekly-1"
			}
		}
	}`, encoded(t, job, n, ""))
}

// A repeat says the same, whatever has become of the job meanwhile, and after a way through the API.
func TestNewEventIsTheSameWhenRepeated(t *testing.T) {
	started := func(at time.Duration) func(*v1beta1.UpgradeJob) {
		return func(job *v1beta1.UpgradeJob) {
			job.Status.StartTime = &metav1.Time{Time: now.Add(at)}
			job.Status.FromVersion = "4.18.1"
		}
	}
	notStarted := func(job *v1beta1.UpgradeJob) { job.Status.StartTime, job.Status.FromVersion = nil, "" }
	for _, tc := range []struct {
		reason      string
		first       func(*v1beta1.UpgradeJob)
		phase       v1beta1.Phase
		later       func(*v1beta1.UpgradeJob)
		fromVersion bool
	}{
		{"nothing has changed", started(0), v1beta1.PhaseActive, started(0), true},
		{"the job has ended", started(0), v1beta1.PhaseActive, func(job *v1beta1.UpgradeJob) {
			job.Status.Phase = v1beta1.PhaseFailed
			job.Status.Blockers = nil
			job.Status.Notifications = nil
		}, true},
		{"the job had just started", started(time.Minute), v1beta1.PhaseActive, started(time.Minute), true},
		{"the job has started since", notStarted, v1beta1.PhasePending, started(time.Hour), false},
		{"the job has started within the same second", notStarted, v1beta1.PhasePending, started(time.Minute), false},
		{"the job was skipped and is resumed", notStarted, v1beta1.PhaseSkipped, started(time.Hour), false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			job, n := waiting()
			tc.first(job)
			n.Phase = tc.phase
			first := encoded(t, job, n, "c0ffee")
			tc.later(job)
			repeat := encoded(t, job, throughAPI(t, n), "c0ffee")
			if !bytes.Equal(first, repeat) {
				t.Errorf("first\n%s\nthen\n%s", first, repeat)
			}
			if got := bytes.Contains(first, []byte(`"fromVersion":"4.18.1"`)); got != tc.fromVersion {
				t.Errorf("the event has the version that the job started from: %t, want %t", got, tc.fromVersion)
			}
		})
	}
}

func throughAPI(t *testing.T, n *v1beta1.Notice) *v1beta1.Notice {
	t.Helper()
	data, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	read := &v1beta1.Notice{}
	if err := json.Unmarshal(data, read); err != nil {
		t.Fatal(err)
	}
	return read
}
