// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// onWorker puts the pod on a cluster with one worker that takes pods.
func onWorker(t *testing.T, pod *corev1.Pod) *kubeletRun {
	t.Helper()
	k := runPod(t, pod)
	k.view.put(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "worker-0", Labels: map[string]string{nodeLabel: ""}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	})
	return k
}

// shopPod is a pod that nobody has started, of nobody unless edited.
func shopPod(edits ...func(*corev1.Pod)) *corev1.Pod {
	return podOn("worker-0", "pod", append([]func(*corev1.Pod){bare, func(pod *corev1.Pod) {
		pod.Namespace, pod.Status = "ns", corev1.PodStatus{Phase: corev1.PodPending}
	}}, edits...)...)
}

var run = annotated(AnnotationRun, "true")

// dies deletes the pod as the API server does, with a grace period in seconds.
func (k *kubeletRun) dies(grace int64) {
	k.seen = nil
	k.edit(func(pod *corev1.Pod) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.NewTime(k.now.Add(time.Duration(grace)*time.Second))), &grace
	})
}

func TestPodsThatAskForItAreRun(t *testing.T) {
	readyByHand := func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	nowhere := func(pod *corev1.Pod) { pod.Spec.NodeName = "" }
	for _, tt := range []struct {
		reason string
		pod    *corev1.Pod
		seen   []string
		want   []string
	}{
		{"on a node", shopPod(run), []string{"0.0 started"}, []string{"Running", "main Running ready"}},
		{"without a node", shopPod(run, nowhere), []string{"0.0 bound to worker-0", "0.0 started"}, []string{"Running", "main Running ready"}},
		{"with an init container", shopPod(run, withInit(corev1.Container{Name: "init"})), []string{"0.0 started", "0.0"},
			[]string{"Running", "init Completed(0) ready", "main Running ready"}},
		{"that does not ask", shopPod(), nil, []string{"Pending"}},
		{"that does not ask and has no node", shopPod(nowhere), nil, []string{"Pending"}},
		{"that says no", shopPod(annotated(AnnotationRun, "false")), nil, []string{"Pending"}},
		{"that somebody else runs", shopPod(run, readyByHand), nil, []string{"Running"}},
		{"on a node that is not simulated", shopPod(run, func(pod *corev1.Pod) { pod.Spec.NodeName = "other" }), nil, []string{"Pending"}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			k := onWorker(t, tt.pod)
			k.until(time.Hour)
			if diff := cmp.Diff(tt.seen, k.seen); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			k.wants("end", tt.want...)
			if len(k.watch.marks) > 0 {
				t.Errorf("the stopwatch keeps %v", k.watch.marks)
			}
		})
	}
}

func TestWhatATestSaysOfAPodStays(t *testing.T) {
	k := onWorker(t, shopPod(run))
	k.until(time.Minute)
	k.edit(func(pod *corev1.Pod) { setReadiness(&pod.Status, corev1.ConditionFalse, "Unwell", "", metav1.Time{}) })
	k.seen = nil
	k.until(time.Hour)
	if len(k.seen) > 0 {
		t.Errorf("the kubelet did %q", k.seen)
	}
}

func TestPodsWaitForANodeThatTakesThem(t *testing.T) {
	k := onWorker(t, shopPod(run, func(pod *corev1.Pod) { pod.Spec.NodeName = "" }))
	cordon := func(cordoned bool) {
		node := k.view.nodes["worker-0"].DeepCopy()
		node.Spec.Unschedulable = cordoned
		k.view.put(node)
	}
	cordon(true)
	k.until(time.Minute)
	if got := k.pod().Spec.NodeName; got != "" || len(k.view.pods.waiting) != 1 {
		t.Errorf("the pod is on %q", got)
	}
	cordon(false)
	k.until(2 * time.Minute)
	k.wants("end", "Running", "main Running ready")
}

func TestDeletedPodsEndInTheirTime(t *testing.T) {
	daemon := func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", Controller: new(true)}}
	}
	byHand := func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning }
	after := func(d string) func(*corev1.Pod) { return annotated(AnnotationTerminatesAfter, d) }
	stuck := annotated(AnnotationStuckTerminating, "true")
	hang := annotated(AnnotationOutcome, OutcomeHang)
	for _, tt := range []struct {
		reason string
		pod    *corev1.Pod
		seen   []string
	}{
		{"one that runs", shopPod(run), []string{"60.0 killed", "60.0 removed"}},
		{"one that runs and takes its time", shopPod(run, after("1.5s")), []string{"61.5 killed", "61.5 removed"}},
		{"one that takes longer than its grace", shopPod(run, after("1h")), []string{"90.0 killed", "90.0 removed"}},
		{"one that somebody else runs", shopPod(byHand), []string{"60.0 removed"}},
		{"one that somebody else runs and takes its time", shopPod(byHand, after("2s")), []string{"62.0 removed"}},
		{"one that somebody else runs though it asks for it", shopPod(run, byHand), []string{"60.0 removed"}},
		{"one that never ran", shopPod(), []string{"60.0 removed"}},
		{"a DaemonSet's", shopPod(daemon, byHand), []string{"60.0 removed"}},
		{"a Job's that takes its time", jobPod(hang, after("2s")), []string{"62.0 killed", "62.0 removed"}},
		{"a stuck one", shopPod(run, stuck), nil},
		{"a stuck one that somebody else runs", shopPod(byHand, stuck, after("1s")), nil},
		{"a Job's that is stuck", jobPod(hang, stuck), nil},
		{"a time that is none", shopPod(run, after("soon")), []string{"60.0 killed", "60.0 removed"}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			k := onWorker(t, tt.pod)
			k.until(time.Minute)
			k.dies(30)
			k.until(time.Hour)
			if diff := cmp.Diff(tt.seen, k.seen); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if gone := k.pod() == nil; gone != (tt.seen != nil) {
				t.Errorf("gone: %t", gone)
			}
		})
	}
}

func TestStuckPodsEndWhenTheyAreKilled(t *testing.T) {
	k := onWorker(t, shopPod(run, annotated(AnnotationStuckTerminating, "true")))
	k.until(time.Minute)
	k.dies(30)
	k.until(time.Hour)
	k.dies(2)
	k.until(2 * time.Hour)
	if k.pod() == nil {
		t.Fatal("a grace of 2 s has killed it")
	}
	k.dies(1)
	k.until(3 * time.Hour)
	if k.pod() != nil {
		t.Error("a grace of 1 s has not killed it")
	}
}
