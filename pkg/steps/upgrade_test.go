// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

func TestCommenced(t *testing.T) {
	attempted := begun(steps.ConditionUpgradeCommenced, 0)
	runsTarget := openshifttest.History(openshifttest.Completed(target), openshifttest.Completed("4.18.1"))
	for _, tc := range []struct {
		reason  string
		job     []jobOption
		version []versionOption
		want    bool
	}{
		{"nothing was done yet", nil, nil, false},
		{"it is recorded", []jobOption{commenced}, nil, true},
		{"it is recorded, and somebody has changed the cluster since", []jobOption{commenced}, []versionOption{openshifttest.Desired("4.18.3")}, true},
		{"it was about to be", []jobOption{attempted}, nil, false},
		{"the cluster is asked for it", []jobOption{attempted}, []versionOption{openshifttest.Desired(target)}, true},
		{"somebody else asked the cluster for it", nil, []versionOption{openshifttest.Desired(target)}, false},
		{"it was asked for, is over, and this job had set it", []jobOption{attempted}, []versionOption{openshifttest.Desired(target), runsTarget}, true},
		{"an earlier job had set it: desiredUpdate stays when an update is over", nil, []versionOption{openshifttest.Desired(target), runsTarget}, false},
		{"a job without a version commences nothing", []jobOption{withoutVersion, attempted}, []versionOption{openshifttest.Desired(target)}, false},
		{
			"cleared after it was taken up",
			[]jobOption{attempted}, []versionOption{openshifttest.History(openshifttest.Partial(target), openshifttest.Completed("4.18.1"))}, true,
		},
		{
			"asked for by version alone", []jobOption{attempted},
			[]versionOption{openshifttest.DesiredUpdate(configv1.Update{Version: target})}, true,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			u := newWorld(t, newJob(tc.job...), openshifttest.ClusterVersion(tc.version...)).upgrade()
			if got := u.Commenced(); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestCommenceBefore(t *testing.T) {
	healthTimeout := func(d time.Duration) jobOption {
		return func(job *v1beta1.UpgradeJob) {
			job.Spec.Config.PreUpgradeHealthChecks.Timeout = &v1beta1.Duration{Duration: d}
		}
	}
	startedAfter := func(d time.Duration) jobOption {
		return func(job *v1beta1.UpgradeJob) { job.Status.StartTime = &metav1.Time{Time: start.Add(d)} }
	}
	for _, tc := range []struct {
		reason string
		job    []jobOption
		want   time.Duration // since startAfter
	}{
		{"the window", nil, time.Hour},
		{"a late start leaves the health checks their time", []jobOption{startedAfter(59 * time.Minute)}, 89 * time.Minute},
		{"which is configured", []jobOption{healthTimeout(2 * time.Hour)}, 2 * time.Hour},
		{"a resume outside of the window too", []jobOption{resumed(10 * time.Hour)}, 10*time.Hour + 30*time.Minute},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			u := newWorld(t, newJob(tc.job...), openshifttest.ClusterVersion()).upgrade()
			if got := u.CommenceBefore().Sub(start); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestRunningSince(t *testing.T) {
	now := start.Add(time.Minute)
	for reason, tc := range map[string]struct {
		job  *v1beta1.UpgradeJob
		want time.Time
	}{
		"about to start": {newJob(func(job *v1beta1.UpgradeJob) { job.Status.StartTime = nil }), now},
		"started":        {newJob(), start},
		"resumed":        {newJob(resumed(time.Hour)), start.Add(time.Hour)},
		"resumed twice":  {newJob(resumed(time.Hour), resumed(2*time.Hour)), start.Add(2 * time.Hour)},
	} {
		if got := steps.RunningSince(tc.job, now); !got.Equal(tc.want) {
			t.Errorf("%s: got %s, want %s", reason, got, tc.want)
		}
	}
}

func TestStepStarted(t *testing.T) {
	for _, tc := range []struct {
		reason string
		job    []jobOption
		want   time.Duration
	}{
		{"never begun: it begins now", nil, 3 * time.Hour},
		{"begun", []jobOption{begun("Step", time.Minute)}, time.Minute},
		{"resumed since: with a fresh timeout", []jobOption{begun("Step", time.Minute), resumed(time.Hour)}, time.Hour},
		{"begun after the resume", []jobOption{begun("Step", 2*time.Hour), resumed(time.Hour)}, 2 * time.Hour},
		{"done before: what is not so any more has not been so for long", []jobOption{done("Step", time.Minute)}, 3 * time.Hour},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, newJob(tc.job...), openshifttest.ClusterVersion())
			w.now = start.Add(3 * time.Hour)
			if got := w.upgrade().StepStarted("Step").Sub(start); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
