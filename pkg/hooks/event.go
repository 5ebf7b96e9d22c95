// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"strings"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// Event is a moment in the life of an UpgradeJob, as hooks learn of it.
type Event struct {
	// Name of the event.
	Name v1beta1.HookEvent
	// Time at which it happened.
	Time time.Time
	// Reason is a CamelCase word for why it happened.
	Reason string
	// Message says it for people.
	Message string
	// Pool is the machine config pool that the event is about; empty if it is about none.
	Pool string
}

// key tells apart the runs of a hook for one event: by pool, and by the request that the job was resumed with last.
func (e Event) key(job *v1beta1.UpgradeJob) string {
	if resume := job.LastResume(); resume != nil {
		return e.resumedKey(resume.Request)
	}
	return e.Pool
}

func (e Event) resumedKey(request string) string {
	key := "resumed:" + request
	if e.Pool == "" {
		return key
	}
	return e.Pool + "/" + key // the name of a pool has no slash in it
}

// has tells whether the run is one of the event. What holds an upgrade happens once, however often the job is resumed:
// its runs before and after belong together. A job that is resumed ends anew.
func (e Event) has(run *v1beta1.HookRun, job *v1beta1.UpgradeJob) bool {
	if run.HookEvent != e.Name {
		return false
	}
	if !e.Name.Holds() {
		return run.TrackingKey == e.key(job)
	}
	return run.TrackingKey == e.Pool || strings.HasPrefix(run.TrackingKey, e.resumedKey(""))
}
