// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package forcedrain

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// Pod is what a decision needs to know of a pod on a draining node.
type Pod struct {
	Namespace, Name string
	UID             types.UID
	Labels          labels.Set
	// Selected is set if the NodeForceDrain selects the pod.
	Selected bool
	// Protection tells whether a PodDisruptionBudget protects the pod, if that is known.
	Protection Protection
	// Requested is when its deletion was asked for, in whole seconds, cut off; the zero time if it was not.
	Requested time.Time
	// GraceSeconds is the grace period of that deletion.
	GraceSeconds int64
}

// NewPod returns the facts of the pod.
func NewPod(pod *corev1.Pod, selected bool) Pod {
	p := Pod{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Labels: pod.Labels, Selected: selected}
	if pod.DeletionTimestamp != nil {
		if pod.DeletionGracePeriodSeconds != nil {
			p.GraceSeconds = *pod.DeletionGracePeriodSeconds
		}
		p.Requested = pod.DeletionTimestamp.Add(-time.Duration(p.GraceSeconds) * time.Second)
	}
	return p
}

// Concerns tells whether a drain waits for the pod to go. It does not if the pod has finished, or belongs to its node:
// one of a DaemonSet would come back, and one that the kubelet runs from a file is no more than shown by the API. They
// are never deleted, and nor are the guards of static pods: with their budgets OpenShift keeps a second master from going
// down while an etcd member is.
func Concerns(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return false
	}
	if pod.Labels["app"] == "guard" && strings.HasPrefix(pod.Namespace, "openshift-") {
		return false
	}
	owner := metav1.GetControllerOf(pod)
	return owner == nil || (owner.Kind != "DaemonSet" && owner.Kind != "Node")
}

// Record returns what is recorded of a deletion.
func (d *Deletion) Record(now time.Time) v1beta1.DeletedPod {
	return v1beta1.DeletedPod{
		Namespace: d.Pod.Namespace, Name: d.Pod.Name, UID: string(d.Pod.UID), NodeName: d.Drain.Node, Forced: d.Forced, Time: metav1.NewTime(now),
	}
}
