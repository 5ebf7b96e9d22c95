// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons in the status of pods and containers.
const (
	reasonCompleted = "Completed"
	reasonError     = "Error"
	reasonBackOff   = "CrashLoopBackOff"
	reasonStart     = "StartError"
	reasonDeadline  = "DeadlineExceeded"
	reasonInit      = "PodInitializing"
)

// Exit codes of containers.
const (
	exitError  = 1
	exitStart  = 128
	exitKilled = 137
)

// messageLimit is how much of a termination message kubelets keep.
const messageLimit = 4096

// podEnded reports whether the pod has ended, for good.
func podEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// isSidecar reports whether an init container runs beside the containers.
func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// initialized reports whether no init container is left to run.
func initialized(pod *corev1.Pod) bool { return currentInit(pod) < 0 }

// currentInit returns the place of the init container that runs, -1 for none.
func currentInit(pod *corev1.Pod) int {
	return slices.IndexFunc(pod.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Running != nil && !slices.ContainsFunc(pod.Spec.InitContainers, func(in corev1.Container) bool {
			return in.Name == c.Name && isSidecar(&in)
		})
	})
}

// startPod accepts the pod and starts its first container.
func startPod(s *corev1.PodStatus, pod *corev1.Pod, now metav1.Time) {
	s.StartTime = &now
	s.Phase = corev1.PodPending
	s.InitContainerStatuses = unstarted(pod.Spec.InitContainers)
	s.ContainerStatuses = unstarted(pod.Spec.Containers)
	setPodCondition(s, corev1.PodReadyToStartContainers, corev1.ConditionTrue, "", "", now)
	setPodCondition(s, corev1.PodInitialized, corev1.ConditionFalse, "ContainersNotInitialized",
		"containers with incomplete status: "+namesOf(s.InitContainerStatuses), now)
	setReadiness(s, corev1.ConditionFalse, "ContainersNotReady", "containers with unready status: "+namesOf(s.ContainerStatuses), now)
	// Whoever binds a pod sets it; there may be no node to bind it to.
	setPodCondition(s, corev1.PodScheduled, corev1.ConditionTrue, "", "", now)
	startNext(s, pod, now)
}

// startNext starts the next init container, the sidecars before it, or, when
// there is none left, all containers.
func startNext(s *corev1.PodStatus, pod *corev1.Pod, now metav1.Time) {
	for i := range s.InitContainerStatuses {
		c := &s.InitContainerStatuses[i]
		if c.State.Waiting == nil {
			continue
		}
		begin(c, pod, now)
		if !isSidecar(&pod.Spec.InitContainers[i]) {
			return
		}
		c.Ready = true
	}
	s.Phase = corev1.PodRunning
	setPodCondition(s, corev1.PodInitialized, corev1.ConditionTrue, "", "", now)
	restartAll(s, pod, now)
}

// restartPod starts the containers once more.
func restartPod(s *corev1.PodStatus, pod *corev1.Pod, now metav1.Time) {
	for i := range s.ContainerStatuses {
		s.ContainerStatuses[i].RestartCount++
	}
	restartAll(s, pod, now)
}

func restartAll(s *corev1.PodStatus, pod *corev1.Pod, now metav1.Time) {
	for i := range s.ContainerStatuses {
		begin(&s.ContainerStatuses[i], pod, now)
		s.ContainerStatuses[i].Ready = true
	}
	setReadiness(s, corev1.ConditionTrue, "", "", now)
}

// backOffPod is what becomes of containers that failed and are to be restarted.
func backOffPod(s *corev1.PodStatus, pod *corev1.Pod, message string, now metav1.Time) {
	for i := range s.ContainerStatuses {
		c := &s.ContainerStatuses[i]
		end(c, exitError, reasonError, message, now)
		c.LastTerminationState = c.State
		c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: reasonBackOff,
			Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
				backOff(c.RestartCount), c.Name, pod.Name, pod.Namespace, pod.UID),
		}}
	}
	setReadiness(s, corev1.ConditionFalse, "ContainersNotReady", "containers with unready status: "+namesOf(s.ContainerStatuses), now)
}

// endPod ends the containers by themselves, all in the same way.
func endPod(s *corev1.PodStatus, phase corev1.PodPhase, message string, now metav1.Time) {
	s.Phase = phase
	code, reason := int32(0), reasonCompleted
	if phase == corev1.PodFailed {
		code, reason = exitError, reasonError
	}
	for i := range s.ContainerStatuses {
		end(&s.ContainerStatuses[i], code, reason, message, now)
	}
}

// killPod ends the pod from outside.
func killPod(s *corev1.PodStatus, now metav1.Time) {
	s.Phase = corev1.PodFailed
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			switch c := &list[i]; {
			case c.State.Running != nil:
				end(c, exitKilled, reasonError, "", now)
			case c.State.Waiting != nil && c.LastTerminationState.Terminated != nil:
				c.State, c.LastTerminationState = c.LastTerminationState, corev1.ContainerState{}
			}
		}
	}
}

// expirePod ends a pod that has been active for too long.
func expirePod(s *corev1.PodStatus, now metav1.Time) {
	killPod(s, now)
	s.Reason, s.Message = reasonDeadline, "Pod was active on the node longer than the specified deadline"
}

// refusePod ends a pod whose containers cannot run.
func refusePod(s *corev1.PodStatus, pod *corev1.Pod, why error, now metav1.Time) {
	if s.StartTime == nil {
		startPod(s, pod, now)
	}
	s.Phase = corev1.PodFailed
	s.Reason, s.Message = reasonStart, why.Error()
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			if list[i].State.Terminated == nil {
				end(&list[i], exitStart, reasonStart, why.Error(), now)
			}
		}
	}
}

// concludePod writes what is true of every pod that has ended.
func concludePod(s *corev1.PodStatus, now metav1.Time) {
	for i := range s.InitContainerStatuses {
		if c := &s.InitContainerStatuses[i]; c.State.Running != nil { // a sidecar
			end(c, 0, reasonCompleted, "", now)
		}
	}
	reason := "PodCompleted"
	if s.Phase == corev1.PodFailed {
		reason = "PodFailed"
	} else {
		setPodCondition(s, corev1.PodInitialized, corev1.ConditionTrue, reason, "", now)
	}
	setPodCondition(s, corev1.PodReadyToStartContainers, corev1.ConditionFalse, "", "", now)
	setReadiness(s, corev1.ConditionFalse, reason, "", now)
}

// unstarted returns the status of containers that have not been started.
func unstarted(containers []corev1.Container) []corev1.ContainerStatus {
	var list []corev1.ContainerStatus
	for _, c := range containers {
		list = append(list, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Started: new(false),
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reasonInit}},
		})
	}
	return list
}

// begin starts a container.
func begin(c *corev1.ContainerStatus, pod *corev1.Pod, now metav1.Time) {
	c.ImageID = c.Image + "@sha256:" + digest("image", c.Image)
	c.ContainerID = "cri-o://" + digest("container", string(pod.UID), c.Name, fmt.Sprint(c.RestartCount))
	c.Started = new(true)
	c.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
}

// end ends a container.
func end(c *corev1.ContainerStatus, code int32, reason, message string, now metav1.Time) {
	began := now
	if c.State.Running != nil {
		began = c.State.Running.StartedAt
	}
	c.Started, c.Ready = new(false), false
	c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, Message: cut(message), StartedAt: began, FinishedAt: now, ContainerID: c.ContainerID,
	}}
}

// cut keeps as much of a termination message as kubelets do.
func cut(message string) string {
	if len(message) <= messageLimit {
		return message
	}
	return strings.ToValidUTF8(message[:messageLimit], "")
}

// namesOf lists containers as the kubelet's messages do.
func namesOf(containers []corev1.ContainerStatus) string {
	var names []string
	for _, c := range containers {
		names = append(names, c.Name)
	}
	return "[" + strings.Join(names, " ") + "]"
}

// setReadiness writes both conditions that tell whether the containers serve.
func setReadiness(s *corev1.PodStatus, st corev1.ConditionStatus, reason, message string, now metav1.Time) {
	setPodCondition(s, corev1.PodReady, st, reason, message, now)
	setPodCondition(s, corev1.ContainersReady, st, reason, message, now)
}

// setPodCondition writes a condition in its place, or last. Its transition time
// moves only with its status.
func setPodCondition(s *corev1.PodStatus, t corev1.PodConditionType, st corev1.ConditionStatus, reason, message string, now metav1.Time) {
	next := corev1.PodCondition{Type: t, Status: st, Reason: reason, Message: message, LastTransitionTime: now}
	for i := range s.Conditions {
		old := &s.Conditions[i]
		if old.Type != t {
			continue
		}
		if old.Status == st {
			next.LastTransitionTime = old.LastTransitionTime
		}
		*old = next
		return
	}
	s.Conditions = append(s.Conditions, next)
}
