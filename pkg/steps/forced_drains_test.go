// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// forcing has pods deleted that hold up drains, those that a budget protects after that time.
func forcing(protected time.Duration, drain *v1beta1.NodeDrain) jobOption {
	return func(job *v1beta1.UpgradeJob) {
		job.Spec.Config.PDBForceDrainTimeout, job.Spec.Config.NodeDrain = lasting(protected), drain
	}
}

func TestWithForcedDrains(t *testing.T) {
	asked := forcing(time.Hour, nil)
	for _, tc := range []struct {
		reason  string
		job     []jobOption
		verdict steps.Verdict
		want    bool
	}{
		{"while the step waits", []jobOption{commenced, asked}, waiting, true},
		{"not before the upgrade has commenced", []jobOption{asked}, waiting, false},
		{"not if the job does not ask for it", []jobOption{commenced}, waiting, false},
		{"nor if it forbids it", []jobOption{commenced, forcing(time.Hour, &v1beta1.NodeDrain{DisableDrainStrategies: true})}, waiting, false},
		{"not if the step is done", []jobOption{commenced, asked}, isDone, false},
		{"not if it fails", []jobOption{commenced, asked}, steps.Fail("No", "It is broken."), false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newStageWorld(t, newJob(tc.job...), openshifttest.ClusterVersion())
			step := steps.WithForcedDrains(answering(t, "Step", tc.verdict, tc.verdict))
			for i := range 2 {
				plain := newStageWorld(t, newJob(tc.job...), openshifttest.ClusterVersion()).pass(0, answering(t, "Step", tc.verdict))
				if diff := cmp.Diff(plain, w.pass(0, step)); diff != "" {
					t.Errorf("pass %d: it changes the verdict of the step (-want +got):\n%s", i, diff)
				}
				if _, made := w.drains.specs["job"]; made != tc.want {
					t.Errorf("pass %d: there is a NodeForceDrain: %t", i, made)
				}
			}
		})
	}
}

func TestWithForcedDrainsTellsOfErrors(t *testing.T) {
	broken := errors.New("on fire")
	w := newStageWorld(t, newJob(commenced, forcing(time.Hour, nil)), openshifttest.ClusterVersion())
	if result := w.pass(0, steps.WithForcedDrains(failing(t, "Step", broken))); !errors.Is(result.Err, broken) || len(w.drains.specs) > 0 {
		t.Errorf("an error of the step: got %+v", result)
	}
	w.drains.err = broken
	result := w.pass(0, steps.WithForcedDrains(answering(t, "Step", waiting)))
	if result.Err != nil || result.Outcome != steps.Running || result.After != 10*time.Second {
		t.Errorf("an error of the NodeForceDrain: got %+v, want the verdict of the step, and another try", result)
	}
	if blockers := w.job().Status.Blockers; len(blockers) == 0 || blockers[len(blockers)-1].Code != "DrainsNotForced" || !strings.Contains(blockers[len(blockers)-1].Message, "on fire") {
		t.Errorf("it is not told: %+v", blockers)
	}
	w.drains.err = nil
	if result := w.pass(time.Second, steps.WithForcedDrains(answering(t, "Step", waiting))); result.Err != nil || len(w.drains.specs) != 1 {
		t.Errorf("the next pass does not make up for it: %+v", result)
	}
}

func TestForcedDrain(t *testing.T) {
	minute := time.Minute
	spec := func(node, protected, pod time.Duration, patterns ...string) v1beta1.NodeForceDrainSpec {
		return v1beta1.NodeForceDrainSpec{
			NodeDrainGracePeriod: lasting(node), ProtectedPodGracePeriod: lasting(protected), PodForceDeleteGracePeriod: lasting(pod), IgnoredNamespacePatterns: patterns,
		}
	}
	for _, tc := range []struct {
		reason string
		job    jobOption
		want   v1beta1.NodeForceDrainSpec
	}{
		{"the defaults of the Managed Upgrade Operator", forcing(60*minute, nil), spec(45*minute, 60*minute, 45*minute)},
		{"no patience with budgets: the time that a drain takes", forcing(0, nil), spec(45*minute, 8*minute, 45*minute)},
		{"of its own", forcing(0, &v1beta1.NodeDrain{ExpectedNodeDrainTime: lasting(3 * minute)}), spec(45*minute, 3*minute, 45*minute)},
		{"all times", forcing(20*minute, &v1beta1.NodeDrain{TimeOut: lasting(10 * minute), ExpectedNodeDrainTime: lasting(5 * minute), IgnoredNamespacePatterns: []string{"^a"}}), spec(10*minute, 20*minute, 10*minute, "^a")},
		{"a pod may take as long as a drain is expected to", forcing(20*minute, &v1beta1.NodeDrain{TimeOut: lasting(2 * minute)}), spec(2*minute, 20*minute, 8*minute)},
	} {
		got, wanted := steps.ForcedDrain(&newJob(tc.job).Spec.Config)
		if !wanted {
			t.Errorf("%s: it is not wanted", tc.reason)
		}
		selector, err := metav1.LabelSelectorAsSelector(got.NodeSelector)
		if err != nil {
			t.Fatal(err)
		}
		for role, selected := range map[string]bool{"worker": true, "infra": true, "master": false, "control-plane": false} {
			if nodeLabels := openshifttest.Node("n", role).Labels; selector.Matches(labels.Set(nodeLabels)) != selected {
				t.Errorf("%s: nodes of role %s are selected: %t", tc.reason, role, !selected)
			}
		}
		got.NodeSelector = nil
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
	for reason, job := range map[string]jobOption{"not asked for": func(*v1beta1.UpgradeJob) {}, "forbidden": forcing(time.Hour, &v1beta1.NodeDrain{DisableDrainStrategies: true})} {
		if got, wanted := steps.ForcedDrain(&newJob(job).Spec.Config); wanted || !cmp.Equal(got, v1beta1.NodeForceDrainSpec{}) {
			t.Errorf("%s: got %+v", reason, got)
		}
	}
}

func TestForcedDrainsEnded(t *testing.T) {
	for _, tc := range []struct {
		reason string
		job    jobOption
		there  bool
		err    error
		left   bool
	}{
		{reason: "it goes", job: forcing(time.Hour, nil), there: true},
		{reason: "it is gone already", job: forcing(time.Hour, nil)},
		{reason: "none of a job that does not ask for it", job: func(*v1beta1.UpgradeJob) {}, there: true, left: true},
		{reason: "an error", job: forcing(time.Hour, nil), there: true, err: errors.New("on fire"), left: true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newStageWorld(t, newJob(tc.job), openshifttest.ClusterVersion())
			if tc.there {
				w.drains.specs["job"] = v1beta1.NodeForceDrainSpec{}
			}
			w.drains.err = tc.err
			wait, err := steps.CleanUp(t.Context(), []steps.Step{steps.ForcedDrainsEnded()}, w.upgrade())
			if !errors.Is(err, tc.err) || (tc.err == nil && (err != nil || wait > 0)) {
				t.Errorf("got %s and error %v", wait, err)
			}
			if _, left := w.drains.specs["job"]; left != tc.left {
				t.Errorf("it is there: %t", left)
			}
		})
	}
}
