// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package notify

import "github.com/appuio/managed-upgrade-operator/api/v1beta1"

// Pending returns the transitions that the receiver wants and is yet to get, oldest first, if it is done with those up
// to the cursor. They belong to the job.
func Pending(job *v1beta1.UpgradeJob, receiver *v1beta1.NotificationReceiver, cursor int64) []*v1beta1.Notice {
	if job.Status.Notifications == nil {
		return nil
	}
	var pending []*v1beta1.Notice
	outbox := job.Status.Notifications.Outbox
	for i := range outbox {
		if n := &outbox[i]; n.Sequence > cursor && receiver.Wants(n.Type) {
			pending = append(pending, n)
		}
	}
	return pending
}

// Lost counts the transitions after the cursor that are not in the outbox any more. Nobody knows what they were, so
// those that the receiver does not want count too.
func Lost(job *v1beta1.UpgradeJob, cursor int64) int64 {
	status := job.Status.Notifications
	if status == nil {
		return 0
	}
	oldest := status.Sequence + 1
	if len(status.Outbox) > 0 {
		oldest = status.Outbox[0].Sequence
	}
	return max(oldest-1-cursor, 0)
}
