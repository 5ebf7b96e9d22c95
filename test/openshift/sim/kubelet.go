// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// annotationPrefix begins every annotation of the simulated kubelets.
const annotationPrefix = "kubelet.openshift-sim/"

// Annotations by which the pods of a batch Job, and what plays their kubelet,
// talk. The first three stand on the Job's pod template and tell what the
// containers do; nothing else is run. They may be changed on the live pod.
const (
	// AnnotationOutcome is how the containers end: OutcomeSucceed (the default),
	// OutcomeFail or OutcomeHang. Init containers always succeed. A change on
	// the live pod is for what has not ended yet.
	AnnotationOutcome = annotationPrefix + "outcome"
	// AnnotationDuration is how long each container runs, init containers
	// included, as a Go duration string ("2s"); 30ms by default. Those that hang
	// run on.
	AnnotationDuration = annotationPrefix + "duration"
	// AnnotationMessage is what the containers leave as their termination message.
	AnnotationMessage = annotationPrefix + "message"

	// AnnotationRan is written by the kubelet before anything starts: what each
	// container, init containers included, is started with. See RanIn.
	AnnotationRan = annotationPrefix + "ran"
)

// Annotations of any pod on a simulated node, whoever owns it. What stands in
// them may be changed on the live pod. Drains evict the pods of Jobs, and those
// without a controller, only if they have one of them.
const (
	// AnnotationRun is "true" on pods that a kubelet shall run although they are
	// not a Job's: they are bound to a node that takes pods, unless they are bound
	// already, and started (Running, Ready=True). They never end by themselves, and
	// what is written into their status afterwards stays. A pod with a phase that
	// somebody else has set is not started.
	AnnotationRun = annotationPrefix + "run"
	// AnnotationTerminatesAfter is how long the pod takes to end once it is deleted,
	// as a Go duration string; never longer than its grace period. Without it a
	// deleted pod ends, and is removed, at once.
	AnnotationTerminatesAfter = annotationPrefix + "terminates-after"
	// AnnotationStuckTerminating is "true" on pods that outlive their grace period
	// when they are deleted. They end once they are deleted again with a grace
	// period of at most one second (and, as any pod, without a kubelet's help when
	// it is zero).
	AnnotationStuckTerminating = annotationPrefix + "stuck-terminating"
)

// asksToRun reports whether the pod is to be run though it is no Job's.
func asksToRun(pod *corev1.Pod) bool {
	return pod.Annotations[AnnotationRun] == "true" && !ownedByJob(pod)
}

// takesPart reports whether the pod has one of the annotations for any pod.
func takesPart(pod *corev1.Pod) bool {
	for _, key := range []string{AnnotationRun, AnnotationTerminatesAfter, AnnotationStuckTerminating} {
		if _, found := pod.Annotations[key]; found {
			return true
		}
	}
	return false
}

// Values of AnnotationOutcome. Anything else fails the pod, with a message that
// says so.
const (
	// OutcomeSucceed ends with exit code 0.
	OutcomeSucceed = "succeed"
	// OutcomeFail ends with exit code 1.
	OutcomeFail = "fail"
	// OutcomeHang ends only with the pod: when it is deleted, when its
	// activeDeadlineSeconds have passed, or when its annotation is changed.
	OutcomeHang = "hang"
)

// Ran is what a container is started with: command, args and env as they are
// once the references $(VAR) are resolved. Variables by envFrom and valueFrom
// are not in it.
type Ran struct {
	Command []string          `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	// Omitted says what was too large for an annotation; empty when all is here.
	Omitted string `json:"omitted,omitempty"`
}

// RanIn reads AnnotationRan of a pod: what each container is started with, by
// name. It is an error when nothing has been started.
func RanIn(pod *corev1.Pod) (map[string]Ran, error) {
	text, found := pod.Annotations[AnnotationRan]
	if !found {
		return nil, fmt.Errorf("no container of pod %s/%s has been started: it has no annotation %s", pod.Namespace, pod.Name, AnnotationRan)
	}
	var ran map[string]Ran
	if err := json.Unmarshal([]byte(text), &ran); err != nil {
		return nil, fmt.Errorf("read the annotation %s of pod %s/%s: %w", AnnotationRan, pod.Namespace, pod.Name, err)
	}
	return ran, nil
}
