// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Times of containers. Real kubelets back off from 10 s to 5 min.
const (
	defaultRunTime = 30 * time.Millisecond
	backOffBegins  = 100 * time.Millisecond
	backOffEnds    = 2 * time.Second
)

// ownedByJob reports whether obj is a pod of a batch Job.
func ownedByJob(obj client.Object) bool {
	owner := metav1.GetControllerOf(obj)
	return owner != nil && owner.Kind == "Job" && owner.APIVersion == "batch/v1"
}

// planPods lets every pod that a kubelet plays do its next step. These are the
// steps of a Job's pod:
//
//	scheduler  binds it to a node
//	kubelet    tells what it is about to run, in AnnotationRan
//	kubelet    starts the init containers, one after the other
//	kubelet    starts the containers, all at once; phase Running
//	kubelet    sees them end; phase Succeeded or Failed, or restarts them
//
// A pod that asks for it by AnnotationRun is bound and started likewise, and then
// left as it is. A pod that is deleted is killed and removed, also after its end.
func planPods(v *view, sw *stopwatch) []change {
	var changes []change
	for _, pod := range v.pods.played {
		k := kubelet{pod: pod, nodes: v.nodes, watch: sw}
		if change := k.step(); change != nil {
			changes = append(changes, *change)
		}
	}
	return changes
}

// kubelet is a pod in the hands of scheduler and kubelet.
type kubelet struct {
	pod   *corev1.Pod
	nodes map[string]*corev1.Node
	watch *stopwatch
}

// step returns what happens next, nil when it takes its time or never happens.
func (k kubelet) step() *change {
	switch {
	case k.elsewhere():
		return nil
	case podEnded(k.pod):
		k.watch.forget(k.key())
		k.watch.forget(k.key() + "/deadline")
		return k.remove()
	case k.pod.DeletionTimestamp != nil:
		return k.terminate()
	case len(k.pod.Spec.SchedulingGates) > 0:
		return nil
	case k.pod.Spec.NodeName == "" && len(k.simulated()) > 0:
		return k.bind()
	case asksToRun(k.pod):
		return k.serve()
	}
	return k.work()
}

// work lets a Job's pod that is on a node do its next step.
func (k kubelet) work() *change {
	o, err := orders(k.pod)
	_, told := k.pod.Annotations[AnnotationRan]
	switch {
	case err != nil:
		return k.end(err.Error(), func(s *corev1.PodStatus) { refusePod(s, k.pod, err, k.now()) })
	case !told:
		return k.tell()
	case k.pod.Status.StartTime == nil:
		return k.edit("started", func(s *corev1.PodStatus) { startPod(s, k.pod, k.now()) })
	case k.overdue():
		return k.end("too late", func(s *corev1.PodStatus) { expirePod(s, k.now()) })
	case !initialized(k.pod):
		return k.initialize(o)
	}
	return k.run(o)
}

// simulated returns the names of the nodes that are the simulator's own, in order.
func (k kubelet) simulated() []string {
	return slices.DeleteFunc(sortedKeys(k.nodes), func(name string) bool { return !isSimulated(k.nodes[name]) })
}

// serve starts a pod that is not a Job's, if nobody else has said how it is.
func (k kubelet) serve() *change {
	switch st := k.pod.Status; {
	case st.StartTime == nil && (st.Phase == corev1.PodPending || st.Phase == "") && k.pod.Spec.NodeName != "":
		return k.edit("started", func(s *corev1.PodStatus) { startPod(s, k.pod, k.now()) })
	case st.Phase == corev1.PodPending && !initialized(k.pod):
		return k.initialize(containerOrders{duration: defaultRunTime})
	}
	k.watch.forget(k.key())
	return nil
}

// terminate ends a pod that is deleted, when it has had its time. Of a pod whose
// status is not the kubelet's own nothing is said before it is removed.
func (k kubelet) terminate() *change {
	switch {
	case !k.terminated():
		return nil
	case ownedByJob(k.pod), asksToRun(k.pod) && k.pod.Status.StartTime != nil:
		return k.end("killed", func(s *corev1.PodStatus) { killPod(s, k.now()) })
	}
	k.watch.forget(k.key())
	return k.remove()
}

// terminated reports whether the containers of a deleted pod have ended.
func (k kubelet) terminated() bool {
	if k.pod.Annotations[AnnotationStuckTerminating] == "true" {
		grace := k.pod.DeletionGracePeriodSeconds
		return grace != nil && *grace <= 1
	}
	takes, err := time.ParseDuration(k.pod.Annotations[AnnotationTerminatesAfter])
	return err != nil || k.watch.passed(k.key(), "terminating", takes) || k.watch.reached(k.pod.DeletionTimestamp.Time)
}

// elsewhere reports whether the pod is on a node with a kubelet of its own. Only
// the pods of Jobs may be on no node at all.
func (k kubelet) elsewhere() bool {
	node := k.nodes[k.pod.Spec.NodeName]
	if node == nil {
		return !ownedByJob(k.pod) && k.pod.Spec.NodeName != ""
	}
	return !isSimulated(node)
}

func isSimulated(node *corev1.Node) bool {
	_, simulated := node.Labels[nodeLabel]
	return simulated
}

// bind lets the pod run on one of the nodes, if possible on a worker that takes
// pods. A pod that is not a Job's waits for a node that does. Selectors and taints
// are not looked at.
func (k kubelet) bind() *change {
	rank := func(node *corev1.Node) int {
		switch {
		case !nodeAvailable(node):
			return 2
		case isMaster(node):
			return 1
		}
		return 0
	}
	name := slices.MinFunc(k.simulated(), func(a, b string) int {
		return cmp.Or(
			cmp.Compare(rank(k.nodes[a]), rank(k.nodes[b])),
			cmp.Compare(digest(a, string(k.pod.UID)), digest(b, string(k.pod.UID))), // spreads the pods
		)
	})
	if !ownedByJob(k.pod) && !nodeAvailable(k.nodes[name]) {
		return nil
	}
	next := k.pod.DeepCopy()
	next.Spec.NodeName = name
	return &change{before: k.pod, after: next, part: bound}
}

// tell writes down what is about to run.
func (k kubelet) tell() *change {
	text, err := describeRun(&k.pod.Spec)
	if err != nil {
		return k.end(err.Error(), func(s *corev1.PodStatus) { refusePod(s, k.pod, err, k.now()) })
	}
	next := k.pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, AnnotationRan, text)
	return &change{before: k.pod, after: next, part: spec}
}

// initialize ends the init container that runs, when it has taken its time.
func (k kubelet) initialize(o containerOrders) *change {
	current := currentInit(k.pod)
	if !k.watch.passed(k.key(), fmt.Sprintf("init/%d", current), o.duration) {
		return nil
	}
	return k.edit("", func(s *corev1.PodStatus) {
		end(&s.InitContainerStatuses[current], 0, reasonCompleted, o.message, k.now())
		s.InitContainerStatuses[current].Ready = true
		startNext(s, k.pod, k.now())
	})
}

// run ends the containers when they have taken their time, or starts those again
// that are to be restarted.
func (k kubelet) run(o containerOrders) *change {
	first := k.pod.Status.ContainerStatuses[0] // All of them do the same.
	attempt := fmt.Sprint(first.RestartCount)
	if first.State.Waiting != nil {
		if !k.watch.passed(k.key(), "back-off/"+attempt, backOff(first.RestartCount)) {
			return nil
		}
		return k.edit("restarted", func(s *corev1.PodStatus) { restartPod(s, k.pod, k.now()) })
	}
	due := k.watch.passed(k.key(), "run/"+attempt, o.duration)
	switch {
	case !due, o.outcome == OutcomeHang:
		return nil
	case o.outcome == OutcomeSucceed:
		return k.end("succeeded", func(s *corev1.PodStatus) { endPod(s, corev1.PodSucceeded, o.message, k.now()) })
	case k.pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure:
		return k.edit("backs off", func(s *corev1.PodStatus) { backOffPod(s, k.pod, o.message, k.now()) })
	}
	return k.end("failed", func(s *corev1.PodStatus) { endPod(s, corev1.PodFailed, o.message, k.now()) })
}

// overdue reports whether the pod's activeDeadlineSeconds have passed.
func (k kubelet) overdue() bool {
	deadline := k.pod.Spec.ActiveDeadlineSeconds
	return deadline != nil && k.watch.passed(k.key()+"/deadline", "", time.Duration(*deadline)*time.Second)
}

// remove ends the deletion of a pod that has ended, if it is deleted.
func (k kubelet) remove() *change {
	grace := k.pod.DeletionGracePeriodSeconds
	if k.pod.DeletionTimestamp == nil || grace == nil || *grace == 0 {
		return nil // With a grace of zero it waits for its finalizers only.
	}
	return &change{before: k.pod, after: k.pod.DeepCopy(), part: deleted}
}

// edit returns a change of the status; what tells it to people.
func (k kubelet) edit(what string, edit func(*corev1.PodStatus)) *change {
	next := k.pod.DeepCopy()
	edit(&next.Status)
	next.Status.ObservedGeneration = k.pod.Generation
	if what != "" {
		what = fmt.Sprintf("kubelet: pod %s/%s %s", k.pod.Namespace, k.pod.Name, what)
	}
	return &change{before: k.pod, after: next, part: status, note: what}
}

// end is an edit by which the pod ends.
func (k kubelet) end(what string, edit func(*corev1.PodStatus)) *change {
	return k.edit(what, func(s *corev1.PodStatus) {
		edit(s)
		concludePod(s, k.now())
	})
}

func (k kubelet) key() string { return "pod/" + string(k.pod.UID) }

func (k kubelet) now() metav1.Time { return metav1.NewTime(k.watch.now.Truncate(time.Second)) }

// backOff is how long a container waits before its next start.
func backOff(restarts int32) time.Duration {
	d := backOffBegins
	for range restarts {
		d = min(2*d, backOffEnds)
	}
	return d
}

// containerOrders are what the annotations of a pod say.
type containerOrders struct {
	outcome  string
	duration time.Duration
	message  string
}

// orders reads the annotations of a pod.
func orders(pod *corev1.Pod) (containerOrders, error) {
	o := containerOrders{outcome: OutcomeSucceed, duration: defaultRunTime, message: pod.Annotations[AnnotationMessage]}
	if outcome, found := pod.Annotations[AnnotationOutcome]; found {
		if !slices.Contains([]string{OutcomeSucceed, OutcomeFail, OutcomeHang}, outcome) {
			return o, fmt.Errorf("annotation %s: %q is none of %s, %s, %s", AnnotationOutcome, outcome, OutcomeSucceed, OutcomeFail, OutcomeHang)
		}
		o.outcome = outcome
	}
	if text, found := pod.Annotations[AnnotationDuration]; found {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return o, fmt.Errorf("annotation %s: %q is not a duration: write it like \"1.5s\" or \"300ms\"", AnnotationDuration, text)
		}
		o.duration = d
	}
	return o, nil
}
