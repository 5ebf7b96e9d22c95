// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodIndexForgets(t *testing.T) {
	i := newPodIndex()
	waiting := podOn("", "a", bare, annotated(AnnotationRun, "true"))
	i.put(waiting)
	if len(i.waiting) != 1 || len(i.played) != 1 {
		t.Errorf("a pod without a node is in %+v", i)
	}
	i.put(podOn("n", "a", bare, annotated(AnnotationRun, "true")))
	i.attempts["a"] = attempt{refusal: "no"}
	i.put(podOn("n", "a", bare, annotated(AnnotationRun, "true"))) // a later revision
	if len(i.waiting) != 0 || len(i.evictable["n"]) != 1 || i.attempts["a"].refusal != "no" {
		t.Errorf("a pod on a node is in %+v", i)
	}
	i.put(podOn("n", "a", bare, annotated(AnnotationRun, "true"), func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }))
	if len(i.evictable) != 0 {
		t.Errorf("a pod that has ended is in %+v", i)
	}
	i.remove(podKey("a"))
	if diff := cmp.Diff(newPodIndex(), i, cmp.AllowUnexported(podIndex{}, attempt{})); diff != "" {
		t.Errorf("what is left of a pod that is gone (-want +got):\n%s", diff)
	}
}

func TestLittleIsKeptOfPods(t *testing.T) {
	deleted := func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.Now()) }
	for reason, tt := range map[string]struct {
		pod         *corev1.Pod
		kept, whole bool
	}{
		"a Job's":                        {jobPod(), true, true},
		"one to run":                     {podOn("", "p", bare, annotated(AnnotationRun, "true")), true, true},
		"one to evict":                   {podOn("n", "p"), true, false},
		"one on no node":                 {podOn("", "p"), false, false},
		"a DaemonSet's":                  {podOn("n", "p", ownedBy("DaemonSet")), false, false},
		"a DaemonSet's that is deleted":  {podOn("n", "p", ownedBy("DaemonSet"), deleted), true, false},
		"nobody's":                       {podOn("n", "p", bare), false, false},
		"nobody's, with other comments":  {podOn("n", "p", bare, annotated("example.com/a", "b")), false, false},
		"one with an order for its end":  {podOn("n", "p", annotated(AnnotationTerminatesAfter, "1s")), true, false},
		"a Deployment's that has failed": {podOn("n", "p", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }), false, false},
	} {
		t.Run(reason, func(t *testing.T) {
			tt.pod.Annotations["example.com/long"] = "text"
			kept, _ := keepPod(tt.pod).(*corev1.Pod)
			if (kept != nil) != tt.kept {
				t.Fatalf("kept: %v", kept)
			}
			if kept == nil {
				return
			}
			if whole := len(kept.Spec.Containers) > 0 && kept.Annotations["example.com/long"] != ""; whole != tt.whole {
				t.Errorf("the whole of it is kept: %t", whole)
			}
			if evictable(kept) != evictable(tt.pod) || kept.UID != tt.pod.UID || kept.Spec.NodeName != tt.pod.Spec.NodeName ||
				!kept.DeletionTimestamp.Equal(tt.pod.DeletionTimestamp) || kept.Annotations[AnnotationTerminatesAfter] != tt.pod.Annotations[AnnotationTerminatesAfter] {
				t.Errorf("what is kept is not enough: %+v", kept)
			}
		})
	}
}
