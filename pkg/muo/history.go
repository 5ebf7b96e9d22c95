// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package muo

import (
	"slices"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// keptConditions is how many entries keep their conditions. The entries themselves are all kept; with conditions the object would get too big
// after some years.
const keptConditions = 32

// Current puts the entry of the version that the spec desires first, where people look, makes it if there is none, and returns it.
// It stays valid until the history is changed next.
func Current(config *v1alpha1.UpgradeConfig) *v1alpha1.UpgradeHistory {
	desired := config.Spec.Desired
	history := config.Status.History
	i := slices.IndexFunc(history, func(h v1alpha1.UpgradeHistory) bool { return h.Version == entryVersion(desired) })
	if i < 0 && desired.Image != "" && desired.Version != "" {
		i = slices.IndexFunc(history, func(h v1alpha1.UpgradeHistory) bool { return h.Version == desired.Image })
	}
	entry := v1alpha1.UpgradeHistory{Phase: v1alpha1.UpgradePhasePending}
	if i >= 0 {
		entry = history[i]
		history = slices.Delete(slices.Clone(history), i, i+1)
	}
	entry.Version = entryVersion(desired)
	if entry.Phase == "" || entry.Phase == v1alpha1.UpgradePhaseNew {
		entry.Phase = v1alpha1.UpgradePhasePending
	}
	config.Status.History = append([]v1alpha1.UpgradeHistory{entry}, history...)
	return &config.Status.History[0]
}

func entryVersion(desired v1alpha1.Update) string {
	if desired.Version != "" {
		return desired.Version
	}
	return desired.Image
}

// Tidy takes back from the entries that are not the current one what is not true any more: an upgrade that never began and is not wanted any
// more is not pending, and one that could never be done leaves nothing. jobs are those of the object that are left.
func Tidy(config *v1alpha1.UpgradeConfig, jobs []v1beta1.UpgradeJob) {
	if len(config.Status.History) == 0 {
		return
	}
	former := slices.DeleteFunc(config.Status.History[1:], func(h v1alpha1.UpgradeHistory) bool {
		return h.UpgradeJob == "" && h.StartTime == nil && !h.Phase.Finished() && h.Phase != v1alpha1.UpgradePhaseUpgrading
	})
	for i := range former {
		h := &former[i]
		if h.Phase == v1alpha1.UpgradePhasePending && FindJob(jobs, h.UpgradeJob) == nil {
			h.Phase = v1alpha1.UpgradePhaseNew
			h.Conditions = nil
		}
		if i+1 >= keptConditions {
			h.Conditions = nil
		}
	}
	config.Status.History = config.Status.History[:1+len(former)]
}

// FindJob returns the job of that name, or nil.
func FindJob(jobs []v1beta1.UpgradeJob, name string) *v1beta1.UpgradeJob {
	i := slices.IndexFunc(jobs, func(job v1beta1.UpgradeJob) bool { return job.Name == name })
	if i < 0 {
		return nil
	}
	return &jobs[i]
}

// Ran tells whether the upgrade of the entry has come to an end already, as the job of that name, or before there were jobs, under the Managed
// Upgrade Operator. Then it is not done again.
func Ran(entry *v1alpha1.UpgradeHistory, job string) bool {
	return entry.Phase.Finished() && (entry.UpgradeJob == job || entry.UpgradeJob == "")
}

// Began tells whether the job has started, or is over: then it cannot be replaced by another one.
func Began(job *v1beta1.UpgradeJob) bool {
	return job.Status.StartTime != nil || job.Status.Phase.Finished()
}

// Adopt gives jobs that have begun, and that the history does not know, an entry: the process ended before it had recorded them. That of the
// spec as it is now, of that name, is adopted by Begin.
func Adopt(config *v1alpha1.UpgradeConfig, jobs []v1beta1.UpgradeJob, name string) {
	for i := range jobs {
		job := &jobs[i]
		known := slices.ContainsFunc(config.Status.History, func(h v1alpha1.UpgradeHistory) bool { return h.UpgradeJob == job.Name })
		if known || job.Name == name || !Began(job) || job.Spec.DesiredVersion == nil {
			continue
		}
		version, image := job.Spec.DesiredVersion.Version, job.Spec.DesiredVersion.Image
		at := slices.IndexFunc(config.Status.History, func(h v1alpha1.UpgradeHistory) bool {
			return h.Version != "" && (h.Version == version || h.Version == image)
		})
		switch {
		case at < 0:
			entry := v1alpha1.UpgradeHistory{Version: entryVersion(v1alpha1.Update{Version: version, Image: image}), UpgradeJob: job.Name}
			config.Status.History = slices.Insert(config.Status.History, 0, entry)
		case config.Status.History[at].UpgradeJob == "" && !config.Status.History[at].Phase.Finished():
			config.Status.History[at].UpgradeJob = job.Name
		}
	}
}
