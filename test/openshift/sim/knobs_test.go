// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestOffersOfTheGraph(t *testing.T) {
	s := graphOf("4.18.1",
		OfferedUpdate{Version: "4.18.2"}, OfferedUpdate{Version: "4.18.10"}, OfferedUpdate{Version: "4.19.0"},
		OfferedUpdate{Version: "4.20.0"}, OfferedUpdate{Version: "4.18.0"},
		OfferedUpdate{Version: "4.18.5", From: []string{"4.18.4"}},
		OfferedUpdate{Version: "4.18.6", Risks: []Risk{{Name: "Hidden", Message: "Nobody knows.", Applies: AppliesUnknown}}},
	)
	o := s.offerFor("4.18.1", "stable-4.18", time.Time{})
	var available []string
	for _, release := range o.available {
		available = append(available, release.Version)
	}
	if want := []string{"4.19.0", "4.18.10", "4.18.2"}; !slices.Equal(available, want) {
		t.Errorf("available: %v, want %v", available, want)
	}
	if c := o.conditional[0].Conditions[0]; len(o.conditional) != 1 || c.Status != metav1.ConditionUnknown || c.Reason != "EvaluationFailed" {
		t.Errorf("conditional: %+v, want 4.18.6 with Recommended=Unknown", o.conditional)
	}
	if o := s.offerFor("4.20.0", "stable-4.18", time.Time{}); o.available != nil {
		t.Errorf("available after the last version: %#v, want nil", o.available)
	}
	s.EmptyUpdatesAsList = true
	if o := s.offerFor("4.20.0", "stable-4.18", time.Time{}); o.available == nil {
		t.Error("available after the last version is nil, want an empty list")
	}
}

func TestUnknownUpdatesMayBeKept(t *testing.T) {
	v := newVirtual(t, Default())
	v.change(func(s *Scenario) { s.UpdatesUnknown = &UpdatesUnknown{Reason: "ResponseFailed", KeepCached: true} })
	v.until("not retrieved", v.is(configv1.RetrievedUpdates, configv1.ConditionFalse, "ResponseFailed"))
	if n := len(v.view.version.Status.AvailableUpdates); n != 1 {
		t.Errorf("%d updates are listed, want the one of before", n)
	}
}

func TestFailingFlaps(t *testing.T) {
	s := Default()
	s.Operators = []OperatorFault{{Name: "dns", Unavailable: true}}
	s.Noise.FailingFlap = Duration(time.Second)
	v := newVirtual(t, s)
	v.desire(&configv1.Update{Version: "4.18.2"})
	v.pass(10 * time.Second)
	flaps := 0
	for i, cv := range v.revisions[1:] {
		if conditionIs(v.revisions[i].Status.Conditions, conditionFailing, configv1.ConditionTrue) && conditionIs(cv.Status.Conditions, conditionFailing, configv1.ConditionFalse) {
			flaps++
		}
	}
	if flaps < 5 || !conditionIs(v.view.version.Status.Conditions, conditionFailing, configv1.ConditionTrue) {
		t.Errorf("Failing went back %d times in 10 s and is %v, want about once a second and True at the end",
			flaps, findCondition(v.view.version.Status.Conditions, conditionFailing))
	}
}

func TestOperatorsOfOneLevelFailTogether(t *testing.T) {
	s := Default()
	s.Operators = []OperatorFault{{Name: "dns", Unavailable: true}, {Name: "network", Unavailable: true}}
	v := newVirtual(t, s)
	v.desire(&configv1.Update{Version: "4.18.2"})
	v.until("failing", func() bool {
		c := findCondition(v.view.version.Status.Conditions, conditionFailing)
		return v.view.version.Status.Desired.Version == "4.18.2" && c.Reason == "ClusterOperatorsNotAvailable" && c.Message == "Cluster operators dns, network are not available"
	})
	if m := findCondition(v.view.version.Status.Conditions, configv1.OperatorProgressing).Message; m != "Unable to apply 4.18.2: some cluster operators are not available" {
		t.Errorf("Progressing says %q", m)
	}
}

func TestNoise(t *testing.T) {
	for _, noisy := range []bool{true, false} {
		s := Default()
		s.Noise = Noise{OperatorsFlap: noisy}
		if noisy {
			s.Noise.ProgressMessages = 3
		}
		v := newVirtual(t, s)
		flapped, messages := false, map[string]bool{}
		v.desire(&configv1.Update{Version: "4.18.2"})
		v.until("completed", func() bool {
			conditions := v.view.operators["etcd"].Status.Conditions
			flapped = flapped || conditionIs(conditions, configv1.OperatorDegraded, configv1.ConditionTrue)
			messages[findCondition(conditions, configv1.OperatorProgressing).Message] = true
			return v.is(configv1.OperatorProgressing, configv1.ConditionFalse, "")() && v.view.version.Status.Desired.Version == "4.18.2"
		})
		want := 2 // Nothing, and that it is working.
		if noisy {
			want = 5
		}
		if flapped != noisy || len(messages) != want {
			t.Errorf("noise %t: etcd flapped %t and said %d things, want %d", noisy, flapped, len(messages), want)
		}
		for _, cv := range v.revisions {
			if !conditionIs(cv.Status.Conditions, conditionFailing, configv1.ConditionFalse) {
				t.Errorf("noise %t: the ClusterVersion is failing because of it", noisy)
				break
			}
		}
	}
}

func TestRollbackToThePreviousVersion(t *testing.T) {
	v := newVirtual(t, Default())
	v.upgrade("4.18.2")
	v.desire(&configv1.Update{Version: "4.18.1", Image: Image("4.18.1")})
	v.until("rolled back", func() bool {
		newest := v.view.version.Status.History[0]
		return newest.Version == "4.18.1" && newest.State == configv1.CompletedUpdate
	})
	if n := len(v.view.version.Status.History); n != 3 {
		t.Errorf("history has %d entries, want 3", n)
	}
}

func TestMaxUnavailableIsRoundedDown(t *testing.T) {
	for _, tc := range []struct {
		limit string
		nodes int
		want  int
	}{{"", 6, 1}, {"0", 6, 1}, {"2", 6, 2}, {"10%", 6, 1}, {"50%", 5, 2}, {"100%", 4, 4}} {
		p := &poolController{pool: &mcfgv1.MachineConfigPool{}, nodes: make([]*corev1.Node, tc.nodes)}
		if tc.limit != "" {
			limit := intstr.Parse(tc.limit)
			p.pool.Spec.MaxUnavailable = &limit
		}
		if got := p.maxUnavailable(); got != tc.want {
			t.Errorf("maxUnavailable %q of %d nodes: %d, want %d", tc.limit, tc.nodes, got, tc.want)
		}
	}
}

func TestNodesAreUpdatedByZone(t *testing.T) {
	v := newVirtual(t, Default())
	var order []string
	v.desire(&configv1.Update{Version: "4.18.2"})
	v.until("pools updated", func() bool {
		for _, name := range sortedKeys(v.view.nodes) {
			if node := v.view.nodes[name]; node.Spec.Unschedulable && !slices.Contains(order, name) {
				order = append(order, name)
			}
		}
		return len(order) == 9
	})
	masters := slices.DeleteFunc(slices.Clone(order), func(name string) bool { return strings.HasPrefix(name, "worker") })
	workers := slices.DeleteFunc(order, func(name string) bool { return strings.HasPrefix(name, "master") })
	if want := []string{"master-1", "master-2", "master-0"}; !slices.Equal(masters, want) {
		t.Errorf("masters updated in order %v, want %v: that of the MCO last", masters, want)
	}
	if want := []string{"worker-0", "worker-3", "worker-1", "worker-4", "worker-2", "worker-5"}; !slices.Equal(workers, want) {
		t.Errorf("workers updated in order %v, want %v", workers, want)
	}
}

func TestStopwatch(t *testing.T) {
	w := newStopwatch()
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	w.begin(at(0))
	if w.passed("a", "x", 10*time.Second) || w.passed("b", "x", 5*time.Second) || !w.wake.Equal(at(5)) {
		t.Errorf("nothing has passed yet, next at %v", w.wake)
	}
	w.begin(at(10))
	if !w.passed("a", "x", 10*time.Second) || !w.wake.IsZero() {
		t.Error("10 s of x have passed, and nothing is due")
	}
	if w.passed("a", "y", time.Second) || !w.wake.Equal(at(11)) {
		t.Error("y has only begun")
	}
	w.forget("b")
	if w.passed("b", "x", time.Second) {
		t.Error("a forgotten time goes on")
	}
}

func TestKubernetesVersion(t *testing.T) {
	for version, want := range map[string]string{"4.18.2": "1.31.2", "4.19.0": "1.32.0", "nonsense": ""} {
		if got := kubernetesVersion(version); got != want {
			t.Errorf("Kubernetes in %s: %q, want %q", version, got, want)
		}
	}
}

// TestGiantHop asks for a release two minor versions away.
func TestGiantHop(t *testing.T) {
	v := newVirtual(t, Default())
	v.desire(&configv1.Update{Version: "4.20.0", Image: Image("4.20.0")})
	v.until("refused", v.is(conditionReleaseAccepted, configv1.ConditionFalse, reasonPreconditionChecks))
	if m := findCondition(v.view.version.Status.Conditions, conditionReleaseAccepted).Message; !strings.Contains(m, "ClusterVersionGiantHop") {
		t.Errorf("refused because of %q", m)
	}
}

// TestRefusalReasons checks that each fault refuses with its own reason and words.
func TestRefusalReasons(t *testing.T) {
	for _, reason := range releaseReasons {
		for _, message := range []string{"", "because of the test"} {
			t.Run(fmt.Sprintf("%s %q", reason, message), func(t *testing.T) {
				s := Default()
				s.Releases = []ReleaseFault{{Version: "4.18.2", Reason: reason, Message: message}}
				v := newVirtual(t, s)
				v.desire(&configv1.Update{Version: "4.18.2"})
				v.until("refused", v.is(conditionReleaseAccepted, configv1.ConditionFalse, reason))
				if m := findCondition(v.view.version.Status.Conditions, conditionReleaseAccepted).Message; !strings.Contains(m, message) {
					t.Errorf("message %q lacks %q", m, message)
				}
			})
		}
	}
}

// TestPausedPoolWithoutNewsIsNoTrouble pauses a required pool that has nothing to do.
func TestPausedPoolWithoutNewsIsNoTrouble(t *testing.T) {
	s := Default()
	s.Masters.Paused = true
	v := newVirtual(t, s)
	v.pass(time.Second)
	degraded := func() *configv1.ClusterOperatorStatusCondition {
		return findCondition(v.view.operators[machineConfigOperator].Status.Conditions, configv1.OperatorDegraded)
	}
	if c := degraded(); c.Status != configv1.ConditionFalse {
		t.Errorf("degraded although nothing is to be done: %+v", c)
	}
	v.desire(&configv1.Update{Version: "4.18.2"})
	v.until("degraded", func() bool { return degraded().Reason == "RequiredPoolsFailed" })
}

func TestAnswersAfterTheEndAreNotTakenOver(t *testing.T) {
	c := newCluster()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", ResourceVersion: "5"}}
	c.observe(node)
	c.bury(node)
	late := node.DeepCopy()
	late.ResourceVersion = "6"
	c.observe(late)
	if len(c.view.nodes) != 0 {
		t.Error("a node that is gone has come back")
	}
	again := late.DeepCopy()
	again.UID = "2"
	c.observe(again)
	if len(c.view.nodes) != 1 {
		t.Error("another node of that name is not there")
	}
}
