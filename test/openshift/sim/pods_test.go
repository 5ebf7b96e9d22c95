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
	"k8s.io/apimachinery/pkg/types"
)

func TestPodsEnd(t *testing.T) {
	sidecar := corev1.Container{Name: "side", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}
	tests := []struct {
		reason string
		pod    *corev1.Pod
		seen   []string
		want   []string
	}{
		{
			reason: "success is the default", pod: jobPod(annotated(AnnotationMessage, "all done")),
			seen: []string{"0.0 told", "0.0 started", "1.0 succeeded"},
			want: []string{"Succeeded", "main Completed(0): all done"},
		}, {
			reason: "failure", pod: jobPod(annotated(AnnotationOutcome, OutcomeFail), annotated(AnnotationMessage, "no disk")),
			seen: []string{"0.0 told", "0.0 started", "1.0 failed"},
			want: []string{"Failed", "main Error(1): no disk"},
		}, {
			reason: "init containers and sidecars come first, and succeed",
			pod: jobPod(annotated(AnnotationOutcome, OutcomeFail), annotated(AnnotationDuration, "500ms"),
				withInit(sidecar), withInit(corev1.Container{Name: "one"}), withInit(corev1.Container{Name: "two"})),
			seen: []string{"0.0 told", "0.0 started", "0.5", "1.0", "1.5 failed"},
			want: []string{"Failed", "side Completed(0)", "one Completed(0) ready", "two Completed(0) ready", "main Error(1)"},
		}, {
			reason: "success needs no restart", pod: jobPod(onFailure),
			seen: []string{"0.0 told", "0.0 started", "1.0 succeeded"},
			want: []string{"Succeeded", "main Completed(0)"},
		}, {
			reason: "the pod's own deadline", pod: jobPod(annotated(AnnotationOutcome, OutcomeHang),
				func(pod *corev1.Pod) { pod.Spec.ActiveDeadlineSeconds = new(int64(3)) }),
			seen: []string{"0.0 told", "0.0 started", "3.0 too late"},
			want: []string{"Failed DeadlineExceeded Pod was active on the node longer than the specified deadline", "main Error(137)"},
		}, {
			reason: "an outcome that there is not", pod: jobPod(onFailure, annotated(AnnotationOutcome, "explode"), withInit(corev1.Container{Name: "init"})),
			seen: []string{`0.0 annotation kubelet.openshift-sim/outcome: "explode" is none of succeed, fail, hang`},
			want: []string{
				`Failed StartError annotation kubelet.openshift-sim/outcome: "explode" is none of succeed, fail, hang`,
				`init StartError(128): annotation kubelet.openshift-sim/outcome: "explode" is none of succeed, fail, hang`,
				`main StartError(128): annotation kubelet.openshift-sim/outcome: "explode" is none of succeed, fail, hang`,
			},
		}, {
			reason: "a duration that is none", pod: jobPod(annotated(AnnotationDuration, "5")),
			seen: []string{`0.0 annotation kubelet.openshift-sim/duration: "5" is not a duration: write it like "1.5s" or "300ms"`},
			want: []string{
				`Failed StartError annotation kubelet.openshift-sim/duration: "5" is not a duration: write it like "1.5s" or "300ms"`,
				`main StartError(128): annotation kubelet.openshift-sim/duration: "5" is not a duration: write it like "1.5s" or "300ms"`,
			},
		}, {
			reason: "a gate keeps the scheduler off", pod: jobPod(func(pod *corev1.Pod) { pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "gate"}} }),
			want: []string{"Pending"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			k := runPod(t, tt.pod)
			k.until(time.Hour)
			if diff := cmp.Diff(tt.seen, k.seen); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			k.wants("end", tt.want...)
			if len(k.watch.marks) > 0 {
				t.Errorf("the stopwatch keeps %v of a pod that has ended", k.watch.marks)
			}
		})
	}
}

func TestPodsShowWhatRuns(t *testing.T) {
	k := runPod(t, jobPod(withInit(corev1.Container{Name: "init", Image: "i"})))
	k.until(500 * time.Millisecond)
	k.wants("initializing", "Pending", "init Running", "main PodInitializing")
	conditions := func(what string, want string) {
		t.Helper()
		var got []string
		for _, c := range k.pod().Status.Conditions {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason)))
		}
		if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("conditions %s (-want +got):\n%s", what, diff)
		}
	}
	conditions("initializing", "PodReadyToStartContainers=True, Initialized=False ContainersNotInitialized, "+
		"Ready=False ContainersNotReady, ContainersReady=False ContainersNotReady, PodScheduled=True")
	k.until(1500 * time.Millisecond)
	k.wants("running", "Running", "init Completed(0) ready", "main Running ready")
	conditions("running", "PodReadyToStartContainers=True, Initialized=True, Ready=True, ContainersReady=True, PodScheduled=True")
	k.until(3 * time.Second)
	conditions("completed", "PodReadyToStartContainers=False, Initialized=True PodCompleted, "+
		"Ready=False PodCompleted, ContainersReady=False PodCompleted, PodScheduled=True")
	for _, c := range k.pod().Status.Conditions {
		moved := c.LastTransitionTime.Sub(k.began)
		if want, listed := map[corev1.PodConditionType]time.Duration{
			corev1.PodScheduled: 0, corev1.PodInitialized: time.Second, corev1.PodReady: 2 * time.Second,
		}[c.Type]; listed && moved != want {
			t.Errorf("%s has moved after %s, want %s", c.Type, moved, want)
		}
	}
	main := k.pod().Status.ContainerStatuses[0]
	if ended := main.State.Terminated; ended.FinishedAt.Sub(ended.StartedAt.Time) != time.Second || ended.ContainerID != main.ContainerID || main.ContainerID == "" {
		t.Errorf("the container's end is %+v", ended)
	}
}

func TestContainersAreRestarted(t *testing.T) {
	k := runPod(t, jobPod(onFailure, annotated(AnnotationOutcome, OutcomeFail), annotated(AnnotationMessage, "crash")))
	k.until(1050 * time.Millisecond)
	k.wants("after the first failure", "Running", "main CrashLoopBackOff")
	c := k.pod().Status.ContainerStatuses[0]
	if last := c.LastTerminationState.Terminated; last == nil || last.ExitCode != 1 || last.Message != "crash" {
		t.Errorf("the last end is %+v", last)
	}
	if message := c.State.Waiting.Message; message != "back-off 100ms restarting failed container=main pod=pod_ns(uid)" {
		t.Errorf("waits because of %q", message)
	}
	k.until(3 * time.Second)
	k.wants("after the second one", "Running", "main Running restarts=2 ready")
	k.edit(annotated(AnnotationOutcome, OutcomeSucceed))
	k.until(time.Minute)
	k.wants("end", "Succeeded", "main Completed(0): crash restarts=2")
	want := []string{"0.0 told", "0.0 started", "1.0 backs off", "1.1 restarted", "2.1 backs off", "2.3 restarted", "3.3 succeeded"}
	if diff := cmp.Diff(want, k.seen); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestOutcomeOfALivePodChanges(t *testing.T) {
	tests := []struct {
		reason string
		edit   func(*corev1.Pod)
		want   []string
	}{
		{"succeeds at once", annotated(AnnotationOutcome, OutcomeSucceed), []string{"Succeeded", "main Completed(0)"}},
		{"without the annotation", func(pod *corev1.Pod) { delete(pod.Annotations, AnnotationOutcome) }, []string{"Succeeded", "main Completed(0)"}},
		{"fails at once", annotated(AnnotationOutcome, OutcomeFail), []string{"Failed", "main Error(1)"}},
		{"hangs on", annotated(AnnotationMessage, "never seen"), []string{"Running", "main Running ready"}},
		{"nonsense", annotated(AnnotationDuration, "-1s"), []string{
			`Failed StartError annotation kubelet.openshift-sim/duration: "-1s" is not a duration: write it like "1.5s" or "300ms"`,
			`main StartError(128): annotation kubelet.openshift-sim/duration: "-1s" is not a duration: write it like "1.5s" or "300ms"`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			k := runPod(t, jobPod(annotated(AnnotationOutcome, OutcomeHang)))
			k.until(time.Minute)
			k.wants("hanging", "Running", "main Running ready")
			k.edit(tt.edit)
			k.until(time.Minute) // no more time passes
			k.wants("after the change", tt.want...)
		})
	}
}

func TestDeletedPodsAreKilled(t *testing.T) {
	deleted := func(grace int64) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.Now()), new(grace)
		}
	}
	tests := []struct {
		reason string
		pod    *corev1.Pod
		after  time.Duration
		grace  int64
		want   []string // nil for a pod that is gone
		seen   string
	}{
		{reason: "while it runs", pod: jobPod(annotated(AnnotationOutcome, OutcomeHang)), after: time.Minute, grace: 30, seen: "killed removed"},
		{reason: "after its end", pod: jobPod(), after: time.Minute, grace: 30, seen: "removed"},
		{reason: "before it was started", pod: jobPod(), grace: 30, seen: "killed removed"},
		{
			reason: "its finalizers are for others to remove", pod: jobPod(annotated(AnnotationOutcome, OutcomeHang)), after: time.Minute,
			want: []string{"Failed", "main Error(137)"}, seen: "killed",
		}, {
			reason: "while it waits for a restart", pod: jobPod(onFailure, annotated(AnnotationOutcome, OutcomeFail), annotated(AnnotationMessage, "crash")),
			after: 1050 * time.Millisecond, want: []string{"Failed", "main Error(1): crash"}, seen: "killed",
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			k := runPod(t, tt.pod)
			if tt.after > 0 {
				k.until(tt.after)
			}
			k.seen = nil
			k.edit(deleted(tt.grace))
			k.until(time.Hour)
			var seen []string
			for _, line := range k.seen {
				seen = append(seen, strings.Fields(line)[1])
			}
			if got := strings.Join(seen, " "); got != tt.seen {
				t.Errorf("events are %q, want %q", got, tt.seen)
			}
			switch gone := k.pod() == nil; {
			case gone != (tt.want == nil):
				t.Errorf("gone: %t", gone)
			case !gone:
				k.wants("end", tt.want...)
			}
		})
	}
}

func TestPodsAreBound(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus, cordoned bool) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{nodeLabel: ""}}}
		if strings.HasPrefix(name, "master") {
			n.Labels[masterLabel] = ""
		}
		n.Spec.Unschedulable = cordoned
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		return n
	}
	tests := []struct {
		reason string
		nodes  []*corev1.Node
		want   string
	}{
		{"a worker that takes pods", []*corev1.Node{
			node("master-0", corev1.ConditionTrue, false), node("worker-0", corev1.ConditionUnknown, false),
			node("worker-1", corev1.ConditionTrue, true), node("worker-2", corev1.ConditionTrue, false),
		}, "worker-2"},
		{"rather a master than a node that is away", []*corev1.Node{
			node("master-0", corev1.ConditionTrue, false), node("worker-0", corev1.ConditionUnknown, false),
		}, "master-0"},
		{"rather such a node than none", []*corev1.Node{node("worker-0", corev1.ConditionUnknown, false)}, "worker-0"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			k := runPod(t, jobPod())
			for _, n := range tt.nodes {
				k.view.put(n)
			}
			k.until(time.Minute)
			if got := k.pod().Spec.NodeName; got != tt.want {
				t.Errorf("bound to %q, want %q", got, tt.want)
			}
			k.wants("end", "Succeeded", "main Completed(0)")
		})
	}
}

func TestNodesOfOthersAreLeftAlone(t *testing.T) {
	other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	onOther := func(pod *corev1.Pod) { pod.Spec.NodeName = other.Name }
	deleted := func(pod *corev1.Pod) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(30))
	}
	ended := func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }
	for reason, pod := range map[string]*corev1.Pod{
		"a pod on it":         jobPod(onOther),
		"a deleted pod on it": jobPod(onOther, deleted),
		"a dead pod on it":    jobPod(onOther, ended, deleted),
	} {
		t.Run(reason, func(t *testing.T) {
			k := runPod(t, pod)
			k.view.put(other)
			if k.round() {
				t.Errorf("%q", k.seen)
			}
		})
	}
	k := runPod(t, jobPod())
	k.view.put(other)
	k.until(time.Minute)
	if got := k.pod().Spec.NodeName; got != "" {
		t.Errorf("a pod was bound to %q", got)
	}
	k.wants("end", "Succeeded", "main Completed(0)")
}

func TestPodsAreSpread(t *testing.T) {
	nodes := map[string]*corev1.Node{}
	for i := range 3 {
		name := fmt.Sprintf("worker-%d", i)
		nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{nodeLabel: ""}}}
	}
	used := map[string]bool{}
	for i := range 30 {
		pod := jobPod(func(pod *corev1.Pod) { pod.UID = types.UID(fmt.Sprint(i)) })
		used[kubelet{pod: pod, nodes: nodes, watch: newStopwatch()}.bind().after.(*corev1.Pod).Spec.NodeName] = true
	}
	if len(used) != 3 {
		t.Errorf("30 pods are on %v, want all 3 nodes", used)
	}
}

func TestOwnedByJob(t *testing.T) {
	other := func(edit func(*metav1.OwnerReference)) *corev1.Pod {
		pod := jobPod()
		edit(&pod.OwnerReferences[0])
		return pod
	}
	tests := []struct {
		reason string
		pod    *corev1.Pod
		want   bool
	}{
		{"a Job's", jobPod(), true},
		{"nobody's", jobPod(func(pod *corev1.Pod) { pod.OwnerReferences = nil }), false},
		{"owned, not controlled", other(func(r *metav1.OwnerReference) { r.Controller = nil }), false},
		{"a ReplicaSet's", other(func(r *metav1.OwnerReference) { r.Kind, r.APIVersion = "ReplicaSet", "apps/v1" }), false},
		{"a Job of somebody else", other(func(r *metav1.OwnerReference) { r.APIVersion = "example.com/v1" }), false},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			if got := ownedByJob(tt.pod); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestLongMessagesAreCut(t *testing.T) {
	k := runPod(t, jobPod(annotated(AnnotationMessage, strings.Repeat("x", messageLimit-1)+"ä and more")))
	k.until(time.Minute)
	if got := k.pod().Status.ContainerStatuses[0].State.Terminated.Message; got != strings.Repeat("x", messageLimit-1) {
		t.Errorf("%d bytes are left, ending in %q", len(got), got[len(got)-4:])
	}
}
