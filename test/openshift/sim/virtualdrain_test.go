// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// budgetRefuses is what the API server says when a budget is in the way.
const budgetRefuses = "Cannot evict pod as it would violate the pod's disruption budget."

var errBudget = apierrors.NewTooManyRequests(budgetRefuses, 0)

// drainingCluster is a cluster that updates, with one worker.
func drainingCluster(t *testing.T, edits ...func(*Scenario)) *virtual {
	t.Helper()
	s := Default()
	s.Masters.Size, s.Workers.Size = 1, 1
	s.Timings.Drain = Duration(10 * time.Second)
	s.Timings.DrainRetry = Duration(5 * time.Second)
	for _, edit := range edits {
		edit(&s)
	}
	v := newVirtual(t, s)
	v.desire(&configv1.Update{Version: "4.18.2"})
	return v
}

// podOn is a running pod of a Deployment on a node.
func podOn(node, name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name), Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", Controller: new(true)}},
		},
		Spec:   corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "image"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func ownedBy(kind string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.OwnerReferences[0].Kind = kind }
}

func bare(pod *corev1.Pod) { pod.OwnerReferences = nil }

func (v *virtual) node(name string) *corev1.Node { return v.view.nodes[name] }

// untilDraining waits until the pods of worker-0 are being evicted, and returns when that began.
func (v *virtual) untilDraining() time.Time {
	v.t.Helper()
	v.until("worker-0 drains", func() bool { return nodeDraining(v.node("worker-0")) })
	return v.now
}

// drained waits for the end of worker-0's drain, and returns how long after that time it came.
func (v *virtual) drained(began time.Time) time.Duration {
	v.t.Helper()
	v.until("worker-0 is drained", func() bool {
		a := v.node("worker-0").Annotations
		return strings.HasPrefix(a[annotationDesiredDrain], drainPrefix) && a[annotationLastAppliedDrain] == a[annotationDesiredDrain]
	})
	return v.now.Sub(began)
}

func TestDrainTakesItsTimeAndThatOfItsPods(t *testing.T) {
	for reason, tt := range map[string]struct {
		pods []*corev1.Pod
		want time.Duration
	}{
		"no pods":                         {nil, 10 * time.Second},
		"pods that end at once":           {[]*corev1.Pod{podOn("worker-0", "a"), podOn("worker-0", "b")}, 10 * time.Second},
		"a pod on another node":           {[]*corev1.Pod{podOn("worker-1", "a")}, 10 * time.Second},
		"a pod that takes longer":         {[]*corev1.Pod{podOn("worker-0", "a", annotated(AnnotationTerminatesAfter, "20s"))}, 20 * time.Second},
		"a pod that takes its grace":      {[]*corev1.Pod{podOn("worker-0", "a", annotated(AnnotationTerminatesAfter, "5m"))}, 30 * time.Second},
		"a DaemonSet's pod":               {[]*corev1.Pod{podOn("worker-0", "a", ownedBy("DaemonSet"), annotated(AnnotationTerminatesAfter, "20s"))}, 10 * time.Second},
		"a pod of somebody with an order": {[]*corev1.Pod{podOn("worker-0", "a", bare, annotated(AnnotationTerminatesAfter, "20s"))}, 20 * time.Second},
	} {
		t.Run(reason, func(t *testing.T) {
			v := drainingCluster(t)
			for _, pod := range tt.pods {
				v.view.put(pod)
			}
			if got := v.drained(v.untilDraining()); got != tt.want {
				t.Errorf("drained after %s, want %s", got, tt.want)
			}
			for _, pod := range v.view.pods.evictable["worker-0"] {
				t.Errorf("pod %s is still there", pod.Name)
			}
			v.until("updated", func() bool { return nodeSettled(v.node("worker-0")) })
		})
	}
}

func TestRefusedEvictionsAreTriedAgain(t *testing.T) {
	v := drainingCluster(t)
	v.view.put(podOn("worker-0", "held"))
	v.view.put(podOn("worker-0", "free"))
	v.refuses = func(pod *corev1.Pod) error {
		if pod.Name == "held" {
			return errBudget
		}
		return nil
	}
	began := v.untilDraining()
	v.pass(began.Add(time.Minute).Sub(v.now))
	if left := v.view.pods.evictable["worker-0"]; len(left) != 1 || v.view.pods.attempts["held"].refusal != budgetRefuses {
		t.Errorf("after a minute there are %d pods, and the last attempt was %+v", len(left), v.view.pods.attempts["held"])
	}
	if v.evictions != 14 { // the free one, and the held one every 5 s from 0 to 60
		t.Errorf("%d evictions were tried", v.evictions)
	}
	if !nodeDraining(v.node("worker-0")) {
		t.Error("the drain has ended without its pods")
	}
	v.refuses = nil
	if got := v.drained(began); got != 65*time.Second {
		t.Errorf("drained after %s, want to see it at the next attempt", got)
	}
	if len(v.view.pods.attempts) > 0 {
		t.Errorf("attempts of pods that are gone: %v", v.view.pods.attempts)
	}
}

func TestPodThatIsStuckHoldsTheDrain(t *testing.T) {
	v := drainingCluster(t)
	pod := podOn("worker-0", "stuck", annotated(AnnotationStuckTerminating, "true"))
	v.view.put(pod)
	began := v.untilDraining()
	v.pass(30 * time.Minute)
	if !nodeDraining(v.node("worker-0")) || v.view.pods.all[podKey("stuck")] == nil {
		t.Fatal("the pod has not outlived its grace period")
	}
	v.delete(pod, 1)
	if got := v.drained(began); got < 30*time.Minute || got > 31*time.Minute {
		t.Errorf("drained after %s, want it when the pod was killed", got)
	}
	if v.evictions != 1 {
		t.Errorf("%d evictions, want none of a pod that is deleted already", v.evictions)
	}
}

func TestWhatDrainsLeave(t *testing.T) {
	ended := func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }
	for reason, tt := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"a Deployment's":                   {podOn("n", "p"), true},
		"a Job's":                          {jobPod(annotated(AnnotationOutcome, OutcomeHang)), false},
		"a Job's that takes part":          {jobPod(annotated(AnnotationRun, "true")), true},
		"somebody else's Job's":            {podOn("n", "p", ownedBy("Job")), true},
		"a DaemonSet's":                    {podOn("n", "p", ownedBy("DaemonSet")), false},
		"a static one":                     {podOn("n", "p", ownedBy("Node")), false},
		"a mirror":                         {podOn("n", "p", annotated(corev1.MirrorPodAnnotationKey, "x")), false},
		"one that has ended":               {podOn("n", "p", ended), false},
		"nobody's":                         {podOn("n", "p", bare), false},
		"nobody's with a Job's annotation": {podOn("n", "p", bare, annotated(AnnotationOutcome, OutcomeHang)), false},
		"nobody's that the kubelet runs":   {podOn("n", "p", bare, annotated(AnnotationRun, "true")), true},
		"nobody's that the kubelet hangs":  {podOn("n", "p", bare, annotated(AnnotationStuckTerminating, "true")), true},
		"owned, not controlled":            {podOn("n", "p", func(pod *corev1.Pod) { pod.OwnerReferences[0].Controller = nil }), false},
	} {
		t.Run(reason, func(t *testing.T) {
			if got := evictable(tt.pod); got != tt.want {
				t.Errorf("evictable: %t", got)
			}
		})
	}
}

// drainSteps records how worker-0's drain annotations and cordon change until it is updated.
func (v *virtual) drainSteps() []string {
	v.t.Helper()
	var steps []string
	v.until("worker-0 is updated", func() bool {
		n := v.node("worker-0")
		a := n.Annotations
		step := fmt.Sprintf("%s wants %s has %s", a[annotationState],
			strings.SplitN(a[annotationDesiredDrain], "-", 2)[0], strings.SplitN(a[annotationLastAppliedDrain], "-", 2)[0])
		if n.Spec.Unschedulable {
			step += " cordoned"
		}
		if slices.Contains(n.Spec.Taints, updateTaint) {
			step += " tainted"
		}
		if len(steps) == 0 || steps[len(steps)-1] != step {
			steps = append(steps, step)
		}
		return nodeSettled(n) && a[annotationCurrentConfig] == v.view.pools[workerPool].Spec.Configuration.Name && len(steps) > 2
	})
	return steps
}

func TestDrainIsGivenUpOnceAndAskedForAgain(t *testing.T) {
	v := drainingCluster(t, func(s *Scenario) {
		s.Nodes = []NodeFault{{Name: "worker-0", AbandonsDrain: Duration(4 * time.Second)}}
	})
	ids := map[string]bool{}
	began := v.untilDraining()
	ids[v.node("worker-0").Annotations[annotationDesiredDrain]] = true
	steps := v.drainSteps()
	want := []string{
		"Working wants drain has uncordon cordoned tainted",
		"Working wants uncordon has uncordon cordoned tainted",
		"Working wants uncordon has uncordon tainted",
		"Working wants drain has uncordon tainted",
		"Working wants drain has uncordon cordoned tainted",
		"Working wants drain has drain cordoned tainted",
		"Rebooting wants drain has drain cordoned tainted",
		"Rebooting wants uncordon has drain cordoned tainted",
		"Rebooting wants uncordon has uncordon",
		"Done wants uncordon has uncordon",
	}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if took := v.now.Sub(began); took < 19*time.Second || took > 20*time.Second { // 4 s, 5 s until the retry, 10 s
		t.Errorf("the update took %s from its first drain", took)
	}
	if _, left := v.node("worker-0").Annotations[annotationAbandoned]; left {
		t.Error("the node keeps the simulator's note")
	}
}

func TestDrainThatTakesTooLongDegradesTheNode(t *testing.T) {
	const reason = "failed to drain node: worker-0 after 1 hour. Please see machine-config-controller logs for more information"
	v := drainingCluster(t, func(s *Scenario) { s.Timings.DrainFails = Duration(time.Minute) })
	v.view.put(podOn("worker-0", "held"))
	v.refuses = func(*corev1.Pod) error { return errors.New("no") }
	began := v.untilDraining()
	v.until("degraded", func() bool { return v.node("worker-0").Annotations[annotationState] == stateDegraded })
	if took := v.now.Sub(began); took != time.Minute || v.node("worker-0").Annotations[annotationReason] != reason {
		t.Errorf("degraded after %s: %s", took, v.node("worker-0").Annotations[annotationReason])
	}
	v.until("pool degraded", func() bool { return poolConditionTrue(v.view.pools[workerPool], mcfgv1.MachineConfigPoolDegraded) })
	tried := v.evictions
	v.pass(20 * time.Second)
	if v.evictions != tried+4 {
		t.Errorf("%d evictions in 20 s, want it to go on", v.evictions-tried)
	}
	v.refuses = nil
	v.drained(began)
	v.until("the daemon goes on", func() bool { return v.node("worker-0").Annotations[annotationState] != stateDegraded })
	if a := v.node("worker-0").Annotations; a[annotationReason] != "" || a[annotationState] != stateWorking {
		t.Errorf("the drained node says %s: %s", a[annotationState], a[annotationReason])
	}
	v.until("updated", func() bool { return nodeSettled(v.node("worker-0")) })
	v.until("pool well", func() bool { return !poolConditionTrue(v.view.pools[workerPool], mcfgv1.MachineConfigPoolDegraded) })
}

func TestDrainNeverFailsWithoutALimit(t *testing.T) {
	v := drainingCluster(t, func(s *Scenario) {
		s.Timings.DrainFails = 0
		s.Nodes = []NodeFault{{Name: "worker-0", HangsDraining: true}}
	})
	v.untilDraining()
	v.pass(100 * time.Hour)
	if a := v.node("worker-0").Annotations; a[annotationState] != stateWorking || !nodeDraining(v.node("worker-0")) {
		t.Errorf("the node says %s: %s", a[annotationState], a[annotationReason])
	}
}

func TestCordonedNodesAreTainted(t *testing.T) {
	v := drainingCluster(t)
	seen := 0
	v.until("updated", func() bool {
		n := v.node("worker-0")
		if !cordonTaintFits(n) {
			t.Fatalf("unschedulable: %t, taints: %v", n.Spec.Unschedulable, n.Spec.Taints)
		}
		if n.Spec.Unschedulable {
			seen++
		}
		return nodeSettled(n) && seen > 0 && v.is(configv1.OperatorProgressing, configv1.ConditionFalse, "")()
	})
	hand := func(cordoned bool) *corev1.Node {
		n := v.node("worker-0").DeepCopy()
		n.Spec.Unschedulable = cordoned
		v.view.put(n)
		v.until("tainted or not", func() bool { return cordonTaintFits(v.node("worker-0")) })
		return v.node("worker-0")
	}
	v.pass(90*time.Second + 300*time.Millisecond)
	taints := hand(true).Spec.Taints
	if len(taints) != 1 || taints[0].Key != "node.kubernetes.io/unschedulable" || taints[0].Effect != corev1.TaintEffectNoSchedule ||
		!taints[0].TimeAdded.Equal(new(metav1.NewTime(v.now.Truncate(time.Second)))) {
		t.Errorf("taints after a cordon by hand: %+v", taints)
	}
	if taints := hand(false).Spec.Taints; len(taints) > 0 {
		t.Errorf("taints after it was taken back: %+v", taints)
	}
	master := v.node("master-0").Spec.Taints
	if len(master) != 1 || master[0].Key != masterLabel {
		t.Errorf("taints of a master: %+v", master)
	}
}

// podKey is the key of a pod of podOn.
func podKey(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}
