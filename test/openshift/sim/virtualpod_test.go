// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubeletRun is a pod in memory whose time jumps to the next event.
type kubeletRun struct {
	t     *testing.T
	view  *view
	watch *stopwatch
	began time.Time
	now   time.Time
	key   client.ObjectKey
	// seen has a line for each change, with the seconds since the beginning.
	seen []string
}

// jobPod is a pod as the Job controller makes them, with an init container and a
// sidecar when asked for.
func jobPod(edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "pod", UID: "uid", Generation: 1, Annotations: map[string]string{AnnotationDuration: "1s"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "image"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations[key] = value }
}

func withInit(c corev1.Container) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.InitContainers = append(pod.Spec.InitContainers, c) }
}

func onFailure(pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure }

// runPod puts the pod on a cluster without nodes.
func runPod(t *testing.T, pod *corev1.Pod) *kubeletRun {
	t.Helper()
	now := time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC)
	k := &kubeletRun{t: t, view: newView(), watch: newStopwatch(), began: now, now: now, key: client.ObjectKeyFromObject(pod)}
	k.view.put(pod)
	return k
}

func (k *kubeletRun) pod() *corev1.Pod { return k.view.pods.all[k.key] }

// round does what the kubelet wants now, and reports whether that was anything.
func (k *kubeletRun) round() bool {
	k.t.Helper()
	k.watch.begin(k.now)
	changes := planPods(k.view, k.watch)
	for _, c := range changes {
		line := c.note
		switch c.part {
		case bound:
			line = "bound to " + c.after.(*corev1.Pod).Spec.NodeName
		case deleted:
			line = "removed"
		case spec:
			line = "told"
		case status, created, evicted:
		}
		k.seen = append(k.seen, strings.TrimSpace(fmt.Sprintf("%.1f %s", k.now.Sub(k.began).Seconds(), strings.TrimPrefix(line, "kubelet: pod ns/pod "))))
		if c.part == deleted {
			k.view.remove(c.after)
		} else {
			k.view.put(c.after)
		}
	}
	return len(changes) > 0
}

// until lets the kubelet work until that time after the beginning.
func (k *kubeletRun) until(after time.Duration) {
	k.t.Helper()
	end := k.began.Add(after)
	for range 1000 {
		if k.round() {
			continue
		}
		if k.watch.wake.IsZero() || k.watch.wake.After(end) {
			k.now = end
			return
		}
		k.now = k.watch.wake
	}
	k.t.Fatalf("the kubelet does not come to rest: %q", k.seen[len(k.seen)-10:])
}

// edit changes the pod from outside.
func (k *kubeletRun) edit(edit func(*corev1.Pod)) {
	pod := k.pod().DeepCopy()
	edit(pod)
	k.view.put(pod)
}

// containerLine is what kubectl would show of a container.
func containerLine(c corev1.ContainerStatus) string {
	text := c.Name + " "
	switch s := c.State; {
	case s.Waiting != nil:
		text += s.Waiting.Reason
	case s.Running != nil:
		text += "Running"
	case s.Terminated != nil:
		text += fmt.Sprintf("%s(%d)", s.Terminated.Reason, s.Terminated.ExitCode)
		if s.Terminated.Message != "" {
			text += ": " + s.Terminated.Message
		}
	}
	if c.RestartCount > 0 {
		text += fmt.Sprintf(" restarts=%d", c.RestartCount)
	}
	if c.Ready {
		text += " ready"
	}
	return text
}

// show is what kubectl would show of the pod.
func (k *kubeletRun) show() []string {
	s := k.pod().Status
	lines := []string{strings.TrimSpace(fmt.Sprintf("%s %s %s", s.Phase, s.Reason, s.Message))}
	for _, c := range append(append([]corev1.ContainerStatus{}, s.InitContainerStatuses...), s.ContainerStatuses...) {
		lines = append(lines, containerLine(c))
	}
	return lines
}

func (k *kubeletRun) wants(what string, want ...string) {
	k.t.Helper()
	if diff := cmp.Diff(want, k.show()); diff != "" {
		k.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
