// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"

	"github.com/cloudevents/sdk-go/v2/binding/format"
	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// Data is the data of a CloudEvent about a job. Later versions may add fields; none changes its meaning.
type Data struct {
	// Job that the event is about.
	Job JobReference `json:"job"`
	// Cluster that the job upgrades.
	Cluster Cluster `json:"cluster"`
	// Phase of the job after the transition.
	Phase v1beta1.Phase `json:"phase,omitempty"`
	// Condition that turned. For hooks: the event that they ran at.
	Condition string `json:"condition,omitempty"`
	// Hook is the name of the UpgradeJobHook that has finished.
	Hook string `json:"hook,omitempty"`
	// Reason is a word for why.
	Reason string `json:"reason,omitempty"`
	// Message is for people.
	Message string `json:"message,omitempty"`
	// FromVersion is what the cluster ran when the job started. Absent in what happened before that.
	FromVersion string `json:"fromVersion,omitempty"`
	// Version to upgrade to. Absent for a job that upgrades nothing.
	Version *v1beta1.DesiredVersion `json:"version,omitempty"`
	// Blockers are the first few things that held the job up then.
	Blockers []v1beta1.Blocker `json:"blockers,omitempty"`
	// Links lead to more.
	Links Links `json:"links"`
}

// JobReference names an UpgradeJob.
type JobReference struct {
	// Namespace of the job.
	Namespace string `json:"namespace"`
	// Name of the job.
	Name string `json:"name"`
	// UID tells jobs apart that have the same name one after the other.
	UID string `json:"uid"`
}

// Cluster names a cluster.
type Cluster struct {
	// ID is spec.clusterID of ClusterVersion/version. Absent if the cluster has none.
	ID string `json:"id,omitempty"`
}

// Links lead to more about a job.
type Links struct {
	// Job is the path of the job in the cluster's API.
	Job string `json:"job"`
	// Describe is the command that shows the job to people.
	Describe string `json:"describe"`
}

// NewEvent returns the CloudEvent that tells of a transition of the job. It is made of what does not change any more,
// so that a repeat is the same byte for byte, also after a restart.
func NewEvent(job *v1beta1.UpgradeJob, n *v1beta1.Notice, clusterID string) (event.Event, error) {
	e := event.New(event.CloudEventsVersionV1)
	e.SetID(fmt.Sprintf("%s/%d", job.UID, n.Sequence))
	e.SetType(v1beta1.NotificationTypePrefix + string(n.Type))
	e.SetSource(path(job))
	e.SetSubject(job.Name)
	e.SetTime(n.Time.Time)
	e.SetExtension("sequence", fmt.Sprintf("%010d", n.Sequence)) // the extension orders by text
	data := Data{
		Job:         JobReference{Namespace: job.Namespace, Name: job.Name, UID: string(job.UID)},
		Cluster:     Cluster{ID: clusterID},
		Phase:       n.Phase,
		Hook:        n.Hook,
		Condition:   n.Condition,
		Reason:      n.Reason,
		Message:     n.Message,
		FromVersion: fromVersion(job, n),
		Version:     job.Spec.DesiredVersion,
		Blockers:    n.Blockers,
		Links: Links{
			Job:      path(job),
			Describe: fmt.Sprintf("oc -n %s describe upgradejob %s", job.Namespace, job.Name),
		},
	}
	if err := e.SetData(event.ApplicationJSON, data); err != nil {
		return e, fmt.Errorf("encode notice %d of UpgradeJob %s: %w", n.Sequence, job.Name, err)
	}
	return e, nil
}

// encode returns the event in structured mode, and its media type.
func encode(e event.Event) ([]byte, string, error) {
	body, err := format.JSON.Marshal(&e)
	return body, format.JSON.MediaType(), err
}

// path of the job in the cluster's API.
func path(job *v1beta1.UpgradeJob) string {
	return fmt.Sprintf("/apis/%s/namespaces/%s/upgradejobs/%s", v1beta1.GroupVersion, job.Namespace, job.Name)
}

// fromVersion is the version that the job started from, if it had started when the transition was made. Whether the job
// has started since must make no difference to a repeat.
func fromVersion(job *v1beta1.UpgradeJob, n *v1beta1.Notice) string {
	start := job.Status.StartTime
	if start == nil || n.Phase == "" || n.Phase == v1beta1.PhasePending || n.Time.Before(start) {
		return ""
	}
	return job.Status.FromVersion
}
