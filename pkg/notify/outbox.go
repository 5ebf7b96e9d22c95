// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

const (
	// MaxMessageLength bounds the message of a Notice, in bytes: 256 of them must fit into the status of a job.
	MaxMessageLength = 512

	// maxWordLength bounds names and reasons. Those that Kubernetes accepts as names fit.
	maxWordLength = 253
	// maxBlockerLength bounds each text of a blocker.
	maxBlockerLength = 256
	// maxOutboxBytes is how large the outbox may be for the next Notice to still name blockers. The status must fit into
	// the 1.5 MiB that etcd takes, or the upgrade would stand still because of a receiver that is away.
	maxOutboxBytes = 256 << 10
)

// Append puts a transition into the outbox of the job, as of now and with the phase that the job has now. The caller
// writes the job's status together with what makes the transition. A transition that no receiver wants is left out: what
// the receivers want is immutable. It never changes a Notice that it appended before, so that each repeat of its
// delivery says the same. It returns the sequence of the Notice, 0 where it was left out.
func Append(job *v1beta1.UpgradeJob, n v1beta1.Notice, now time.Time) int64 {
	if !wanted(&job.Spec.Config, n.Type) {
		return 0
	}
	if job.Status.Notifications == nil {
		job.Status.Notifications = &v1beta1.NotificationsStatus{}
	}
	status := job.Status.Notifications
	status.Sequence++
	n.Sequence = status.Sequence
	if n.Time.IsZero() {
		n.Time = metav1.NewTime(now)
	}
	if n.Phase == "" {
		n.Phase = job.Status.Phase
	}
	bound(&n)
	if size(status.Outbox) > maxOutboxBytes {
		n.Blockers = nil
	}
	status.Outbox = append(trim(job), n)
	return n.Sequence
}

// wanted tells whether any receiver is to be told of such a transition.
func wanted(config *v1beta1.UpgradeJobConfig, t v1beta1.NotificationType) bool {
	return slices.ContainsFunc(config.Notifications, func(r v1beta1.NotificationReceiver) bool { return r.Wants(t) })
}

// bound cuts the texts of a Notice. Its blockers may be those of the job, which stay as they are.
func bound(n *v1beta1.Notice) {
	n.Condition = v1beta1.Truncate(n.Condition, maxWordLength)
	n.Hook = v1beta1.Truncate(n.Hook, maxWordLength)
	n.Reason = v1beta1.Truncate(n.Reason, maxWordLength)
	n.Message = v1beta1.Truncate(n.Message, MaxMessageLength)
	n.Blockers = slices.Clone(n.Blockers[:min(len(n.Blockers), v1beta1.MaxNoticeBlockers)])
	for i := range n.Blockers {
		b := &n.Blockers[i]
		for _, text := range []*string{&b.Code, &b.Object, &b.Message, &b.ClearsWhen} {
			*text = v1beta1.Truncate(*text, maxBlockerLength)
		}
	}
}

// trim returns the outbox of the job with room for one more: what every receiver is done with goes, and what a
// receiver is yet to get only where there is no room otherwise. Who delivers counts that as lost.
func trim(job *v1beta1.UpgradeJob) []v1beta1.Notice {
	outbox := job.Status.Notifications.Outbox
	done := donePrefix(job)
	drop := max(done, len(outbox)-v1beta1.MaxNotices+1, 0)
	return outbox[drop:]
}

// donePrefix counts the oldest transitions of the outbox that every receiver is done with.
func donePrefix(job *v1beta1.UpgradeJob) int {
	status := job.Status.Notifications
	cursor := status.Sequence
	for i := range job.Spec.Config.Notifications {
		cursor = min(cursor, ReceiverStatus(job, job.Spec.Config.ReceiverName(i)).Cursor)
	}
	for i := range status.Outbox {
		if status.Outbox[i].Sequence > cursor {
			return i
		}
	}
	return len(status.Outbox)
}

// ReceiverStatus returns what the job's status says of a receiver; of one that it does not know yet, that it got nothing.
func ReceiverStatus(job *v1beta1.UpgradeJob, name string) v1beta1.NotificationReceiverStatus {
	if status := job.Status.Notifications; status != nil {
		for i := range status.Receivers {
			if status.Receivers[i].Name == name {
				return status.Receivers[i]
			}
		}
	}
	return v1beta1.NotificationReceiverStatus{Name: name}
}

// size estimates the bytes that notices take in the status.
func size(notices []v1beta1.Notice) int {
	const keys = 128 // the names of the fields, the numbers and times
	total := 0
	for i := range notices {
		n := &notices[i]
		total += keys + len(n.Condition) + len(n.Hook) + len(n.Reason) + len(n.Message)
		for _, b := range n.Blockers {
			total += keys + len(b.Code) + len(b.Object) + len(b.Message) + len(b.ClearsWhen)
		}
	}
	return total
}
