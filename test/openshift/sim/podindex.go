// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podIndex is the pods that somebody has something to do with. Most pods of a
// large cluster, those of its DaemonSets, are not among them.
type podIndex struct {
	all map[client.ObjectKey]*corev1.Pod
	// played are those that a kubelet has, or may have, something to do with.
	played map[client.ObjectKey]*corev1.Pod
	// evictable are those that a drain removes, by node.
	evictable map[string]map[client.ObjectKey]*corev1.Pod
	// waiting are those that are to run and are on no node yet.
	waiting map[client.ObjectKey]*corev1.Pod
	// attempts are the last evictions of pods that are still there.
	attempts map[types.UID]attempt
}

// attempt is what became of an eviction.
type attempt struct {
	at time.Time
	// refusal is what the API server said; empty when it evicts the pod.
	refusal string
}

func newPodIndex() podIndex {
	return podIndex{
		all:       map[client.ObjectKey]*corev1.Pod{},
		played:    map[client.ObjectKey]*corev1.Pod{},
		evictable: map[string]map[client.ObjectKey]*corev1.Pod{},
		waiting:   map[client.ObjectKey]*corev1.Pod{},
		attempts:  map[types.UID]attempt{},
	}
}

// put adds a pod, or replaces the one of its name.
func (i *podIndex) put(pod *corev1.Pod) {
	key := client.ObjectKeyFromObject(pod)
	last, tried := i.attempts[pod.UID]
	i.remove(key)
	if tried {
		i.attempts[pod.UID] = last
	}
	i.all[key] = pod
	runs := ownedByJob(pod) || asksToRun(pod)
	if runs || pod.DeletionTimestamp != nil {
		i.played[key] = pod
	}
	node := pod.Spec.NodeName
	switch {
	case node == "" && runs:
		i.waiting[key] = pod
	case node != "" && evictable(pod):
		if i.evictable[node] == nil {
			i.evictable[node] = map[client.ObjectKey]*corev1.Pod{}
		}
		i.evictable[node][key] = pod
	}
}

// remove forgets the pod of that name.
func (i *podIndex) remove(key client.ObjectKey) {
	pod, found := i.all[key]
	if !found {
		return
	}
	delete(i.all, key)
	delete(i.played, key)
	delete(i.waiting, key)
	delete(i.attempts, pod.UID)
	if on := i.evictable[pod.Spec.NodeName]; on != nil {
		delete(on, key)
		if len(on) == 0 {
			delete(i.evictable, pod.Spec.NodeName)
		}
	}
}

// keepPod returns what the simulator has to know of a pod, nil when it is nothing.
// Of a pod that it does not run that is little.
func keepPod(obj client.Object) client.Object {
	pod, ok := obj.(*corev1.Pod)
	switch {
	case !ok:
		return nil
	case ownedByJob(pod) || asksToRun(pod):
		return pod
	case pod.Spec.NodeName == "" || pod.DeletionTimestamp == nil && !evictable(pod):
		return nil
	}
	slim := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			OwnerReferences:   pod.OwnerReferences,
			DeletionTimestamp: pod.DeletionTimestamp, DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	for key, value := range pod.Annotations {
		if strings.HasPrefix(key, annotationPrefix) || key == corev1.MirrorPodAnnotationKey {
			metav1.SetMetaDataAnnotation(&slim.ObjectMeta, key, value)
		}
	}
	return slim
}
