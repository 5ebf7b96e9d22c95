// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// defaultDrainRetry stands for a Timings.DrainRetry that is not set.
const defaultDrainRetry = Duration(200 * time.Millisecond)

// nodeDraining reports whether the machine config controller evicts the node's
// pods: it has been asked for a drain that it has not reported yet, and has
// cordoned the node.
func nodeDraining(node *corev1.Node) bool {
	desired := node.Annotations[annotationDesiredDrain]
	return node.Spec.Unschedulable && strings.HasPrefix(desired, drainPrefix) && desired != node.Annotations[annotationLastAppliedDrain]
}

// concernsDrain reports whether obj is a node that is being drained, for an update
// or because its Machine is deleted, or a pod on one.
func (v *view) concernsDrain(obj client.Object) bool {
	switch o := obj.(type) {
	case *corev1.Node:
		return nodeDraining(o) || machineDraining(o)
	case *corev1.Pod:
		return v.draining[o.Spec.NodeName] != nil
	}
	return false
}

// evictable reports whether a drain removes the pod: not those that would be on
// the node again at once, and not those that have ended. The pods of Jobs and
// those without a controller are left as well, unless they ask for more than that
// by one of the annotations for any pod. A real drain evicts them all.
func evictable(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case mirror, podEnded(pod):
		return false
	case owner == nil, ownedByJob(pod):
		return takesPart(pod)
	}
	return owner.Kind != "DaemonSet" && owner.Kind != "Node"
}

// planEvictions evicts the pods of the nodes that are being drained, each of them
// again and again until it is on its way.
func planEvictions(v *view, sw *stopwatch) []change {
	retry := v.scenario.Timings.drainRetry()
	var changes []change
	for name := range v.draining {
		for _, pod := range v.pods.evictable[name] {
			if pod.DeletionTimestamp != nil {
				continue
			}
			if last, tried := v.pods.attempts[pod.UID]; tried && !sw.reached(last.at.Add(retry)) {
				continue
			}
			changes = append(changes, change{before: pod, after: pod, part: evicted})
		}
	}
	return changes
}

// drainRetry is the time between two evictions of one pod.
func (t Timings) drainRetry() time.Duration {
	if t.DrainRetry == 0 {
		return time.Duration(defaultDrainRetry)
	}
	return time.Duration(t.DrainRetry)
}

// evict asks the API server to evict a pod, and writes down what it says. A
// refusal is no error: the drain asks again.
func (l *loop) evict(ctx context.Context, obj client.Object) error {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("evict a %T: only pods can be evicted", obj)
	}
	err := l.evictor.Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").
		MaxRetries(0). // A budget that is being processed is asked again by the plan.
		Body(&policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
		}).Do(ctx).Error()
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		err = nil // Gone, or another pod of that name: the watch brings the news.
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	if l.cluster.attempted(pod, time.Now(), err) {
		l.say(fmt.Sprintf("drain: %s waits for pod %s/%s: %v", pod.Spec.NodeName, pod.Namespace, pod.Name, err))
	}
	return nil
}

// attempted takes over what became of an eviction, and reports whether that is a
// refusal that was not given before.
func (c *cluster) attempted(pod *corev1.Pod, now time.Time, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	have := c.view.pods.all[client.ObjectKeyFromObject(pod)]
	if have == nil || have.UID != pod.UID {
		return false
	}
	before := c.view.pods.attempts[pod.UID]
	after := attempt{at: now}
	if err != nil {
		after.refusal = err.Error()
	}
	c.view.pods.attempts[pod.UID] = after
	if after.refusal != before.refusal {
		c.tell(pod)
	}
	return err != nil && after.refusal != before.refusal
}
