// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NotificationType is the kind of a transition. As the type of a CloudEvent it has NotificationTypePrefix before it.
type NotificationType string

// NotificationTypePrefix stands before a NotificationType in the type of a CloudEvent.
const NotificationTypePrefix = "io.appuio.managedupgrade."

// The transitions of a job that are notified of. docs/notifications.md lists them too.
const (
	// NotificationJobCreated: the operator has seen the job for the first time.
	NotificationJobCreated NotificationType = "job.created"
	// NotificationJobPreflightHealthy: the cluster, which was not healthy enough for the job to start, is again.
	NotificationJobPreflightHealthy NotificationType = "job.preflighthealthy"
	// NotificationJobPreflightUnhealthy: if the job started now, the cluster's health would hold it up.
	NotificationJobPreflightUnhealthy NotificationType = "job.preflightunhealthy"
	// NotificationJobWaiting: the start has come, and something is in the way.
	NotificationJobWaiting NotificationType = "job.waiting"
	// NotificationJobStarted: the job has started.
	NotificationJobStarted NotificationType = "job.started"
	// NotificationJobResumed: a job that had failed or was skipped goes on.
	NotificationJobResumed NotificationType = "job.resumed"
	// NotificationJobSucceeded: the job has ended, the cluster runs the desired version.
	NotificationJobSucceeded NotificationType = "job.succeeded"
	// NotificationJobFailed: the job has ended before it was done.
	NotificationJobFailed NotificationType = "job.failed"
	// NotificationJobSkipped: the job has ended before it changed anything.
	NotificationJobSkipped NotificationType = "job.skipped"
	// NotificationStepStarted: a step has begun, and is not done at once.
	NotificationStepStarted NotificationType = "step.started"
	// NotificationStepWaiting: a step waits, or what it waits for changed.
	NotificationStepWaiting NotificationType = "step.waiting"
	// NotificationStepCompleted: a step is done.
	NotificationStepCompleted NotificationType = "step.completed"
	// NotificationStepFailed: a step ends the job, or met an error and is tried again.
	NotificationStepFailed NotificationType = "step.failed"
	// NotificationHookSucceeded: a hook has succeeded.
	NotificationHookSucceeded NotificationType = "hook.succeeded"
	// NotificationHookFailed: a hook has failed.
	NotificationHookFailed NotificationType = "hook.failed"

	// Stages of an upgrade, which the upgraders OSD and ARO tell of: see UpgradeStage.

	// NotificationUpgradeStarted is StageStarted.
	NotificationUpgradeStarted NotificationType = "upgrade.started"
	// NotificationUpgradeDelayed is StageDelayed.
	NotificationUpgradeDelayed NotificationType = "upgrade.delayed"
	// NotificationUpgradeScaleSkipped is StageScaleSkipped.
	NotificationUpgradeScaleSkipped NotificationType = "upgrade.scaleskipped"
	// NotificationUpgradeSkipped is StageSkipped.
	NotificationUpgradeSkipped NotificationType = "upgrade.skipped"
	// NotificationUpgradeControlPlaneStarted is StageControlPlaneStarted.
	NotificationUpgradeControlPlaneStarted NotificationType = "upgrade.controlplanestarted"
	// NotificationUpgradeControlPlaneFinished is StageControlPlaneFinished.
	NotificationUpgradeControlPlaneFinished NotificationType = "upgrade.controlplanefinished"
	// NotificationUpgradeWorkersFinished is StageWorkersFinished.
	NotificationUpgradeWorkersFinished NotificationType = "upgrade.workersfinished"
	// NotificationUpgradeCompleted is StageCompleted.
	NotificationUpgradeCompleted NotificationType = "upgrade.completed"
	// NotificationUpgradeFailed is StageFailed.
	NotificationUpgradeFailed NotificationType = "upgrade.failed"
)

// Notification returns the type by which a stage is told of.
func (s UpgradeStage) Notification() NotificationType {
	return NotificationType("upgrade." + strings.ToLower(string(s)))
}

// NotificationFilter is a NotificationType, or all of those that begin with one word.
// +kubebuilder:validation:Enum="job.*";"step.*";"hook.*";job.created;job.preflighthealthy;job.preflightunhealthy;job.waiting;job.started;job.resumed;job.succeeded;job.failed;job.skipped;step.started;step.waiting;step.completed;step.failed;hook.succeeded;hook.failed;"upgrade.*";upgrade.started;upgrade.delayed;upgrade.scaleskipped;upgrade.skipped;upgrade.controlplanestarted;upgrade.controlplanefinished;upgrade.workersfinished;upgrade.completed;upgrade.failed
type NotificationFilter string

// Matches tells whether the filter lets the type pass.
func (f NotificationFilter) Matches(t NotificationType) bool {
	if prefix, ok := strings.CutSuffix(string(f), "*"); ok {
		return strings.HasPrefix(string(t), prefix)
	}
	return string(f) == string(t)
}

// NotificationReceiver is a webhook that is told of the transitions of a job, by CloudEvents.
//
// +kubebuilder:validation:XValidation:rule="has(self.url) != has(self.urlFrom)",message="exactly one of url and urlFrom must be set"
type NotificationReceiver struct {
	// name of the receiver in status.notifications. By default its place in the list: receiver-1, receiver-2, ...
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must consist of lower case letters, digits and '-', as a DNS label"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^receiver-[0-9]+$')",message="receiver-1, receiver-2, ... are the names of those that have none"
	// +optional
	Name string `json:"name,omitempty"`

	// url to which each CloudEvent is sent by POST. An url that is a secret belongs into urlFrom.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/@?#]+([/?].*)?$') && isURL(self)",message="must be an http or https URL without user and password"
	// +optional
	URL string `json:"url,omitempty"`

	// urlFrom takes the URL from a Secret in the job's namespace.
	// +optional
	URLFrom *SecretKey `json:"urlFrom,omitempty"`

	// headersFrom names a Secret in the job's namespace. Each of its keys is the name of a header that is sent along, e.g. Authorization. They are sent over https only.
	// +optional
	HeadersFrom *SecretName `json:"headersFrom,omitempty"`

	// caFrom takes the CA certificates, in PEM, that the receiver's certificate is checked with, from a Secret in the job's namespace.
	// Absent: those of the system.
	// +optional
	CAFrom *SecretKey `json:"caFrom,omitempty"`

	// events that the receiver is told of. Empty: all.
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	// +optional
	Events []NotificationFilter `json:"events,omitempty"`
}

// Wants tells whether the receiver is to be told of such a transition.
func (r *NotificationReceiver) Wants(t NotificationType) bool {
	return len(r.Events) == 0 || slices.ContainsFunc(r.Events, func(f NotificationFilter) bool { return f.Matches(t) })
}

// ReceiverName returns the name of the receiver at that place of config.notifications.
func (c *UpgradeJobConfig) ReceiverName(i int) string {
	if name := c.Notifications[i].Name; name != "" {
		return name
	}
	return "receiver-" + strconv.Itoa(i+1)
}

// SecretKey is a key of a Secret.
type SecretKey struct {
	// name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// key in the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Key string `json:"key"`
}

// SecretName names a Secret.
type SecretName struct {
	// name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// Bounds of what waits for delivery.
const (
	// MaxNotices is how many transitions are kept for receivers that are away, as the CRD says.
	MaxNotices = 256
	// MaxNoticeBlockers is how many blockers a Notice names at most, as the CRD says.
	MaxNoticeBlockers = 5
)

// NotificationsStatus tells what was notified to whom. It is kept for jobs with config.notifications only.
type NotificationsStatus struct {
	// sequence is the number of the newest transition; the first is 1.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`

	// outbox has the newest transitions, oldest first: at least those that a receiver has not got yet.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Outbox []Notice `json:"outbox,omitempty"`

	// receivers tells how delivery fares.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Receivers []NotificationReceiverStatus `json:"receivers,omitempty"`
}

// Notice is a transition that is told to the receivers. It says what was true then.
type Notice struct {
	// sequence numbers the transitions of a job.
	// +required
	Sequence int64 `json:"sequence"`

	// type of the transition.
	// +required
	Type NotificationType `json:"type"`

	// time of the transition.
	// +required
	Time metav1.Time `json:"time"`

	// phase of the job after the transition.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// condition that turned. For hooks: the event that they ran at.
	// +optional
	Condition string `json:"condition,omitempty"`

	// hook is the name of the UpgradeJobHook that has finished.
	// +optional
	Hook string `json:"hook,omitempty"`

	// reason is a word for why.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message is for people.
	// +optional
	Message string `json:"message,omitempty"`

	// blockers are the first few things that held the job up.
	// +kubebuilder:validation:MaxItems=5
	// +listType=atomic
	// +optional
	Blockers []Blocker `json:"blockers,omitempty"`
}

// NotificationReceiverStatus tells how delivery to one receiver fares.
type NotificationReceiverStatus struct {
	// name of the receiver.
	// +required
	Name string `json:"name"`

	// cursor is the sequence of the last transition that is done with for this receiver: it got it, or does not want it.
	// +optional
	Cursor int64 `json:"cursor,omitempty"`

	// delivered counts the transitions that the receiver got.
	// +optional
	Delivered int64 `json:"delivered"`

	// pending counts the transitions that the receiver has yet to get, when this was written.
	// +optional
	Pending int64 `json:"pending"`

	// lost counts the transitions that were dropped because more than 256 waited.
	// +optional
	Lost int64 `json:"lost,omitempty"`

	// lastError tells why the last attempt failed. Empty once one succeeds. It never has the URL, a header or a response in it.
	// +optional
	LastError string `json:"lastError,omitempty"`

	// lastDeliveryTime is when the receiver got a transition last.
	// +optional
	LastDeliveryTime *metav1.Time `json:"lastDeliveryTime,omitempty"`
}
