// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package forcedrain_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/forcedrain"
)

func TestConcerns(t *testing.T) {
	ownedBy := func(kind string, controller bool) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "owner", Controller: &controller}}
		}
	}
	for _, tc := range []struct {
		reason string
		change func(*corev1.Pod)
		want   bool
	}{
		{"a pod of nobody", func(*corev1.Pod) {}, true},
		{"one of a ReplicaSet", ownedBy("ReplicaSet", true), true},
		{"one of a Job", ownedBy("Job", true), true},
		{"one of a DaemonSet", ownedBy("DaemonSet", true), false},
		{"one that a DaemonSet does not control", ownedBy("DaemonSet", false), true},
		{"a static one", ownedBy("Node", true), false},
		{"the mirror of a static one", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }, false},
		{"one that waits", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, true},
		{"one that has succeeded", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, false},
		{"one that has failed", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}
			tc.change(pod)
			if got := forcedrain.Concerns(pod); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestNewPod(t *testing.T) {
	grace := int64(30)
	ends := metav1.NewTime(at(time.Minute).Truncate(time.Second))
	for _, tc := range []struct {
		reason string
		pod    corev1.Pod
		want   forcedrain.Pod
	}{
		{"it runs", corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", UID: "u", Labels: labels.Set{"app": "cart"}}},
			forcedrain.Pod{Namespace: "shop", Name: "cart", UID: "u", Labels: labels.Set{"app": "cart"}, Selected: true}},
		{"it ends", corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &ends, DeletionGracePeriodSeconds: &grace}},
			forcedrain.Pod{Selected: true, Requested: ends.Add(-30 * time.Second), GraceSeconds: 30}},
		{"it ends at once", corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &ends}}, forcedrain.Pod{Selected: true, Requested: ends.Time}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, forcedrain.NewPod(&tc.pod, true)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecord(t *testing.T) {
	d := forcedrain.Deletion{Pod: forcedrain.Pod{Namespace: "shop", Name: "cart", UID: "u"}, Drain: drain(0, seen), Forced: true}
	want := v1beta1.DeletedPod{Namespace: "shop", Name: "cart", UID: "u", NodeName: "worker-1", Forced: true, Time: metav1.NewTime(seen)}
	if diff := cmp.Diff(want, d.Record(seen)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
