// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/planner"
	"github.com/appuio/managed-upgrade-operator/pkg/suspension"
)

// planned are the facts from which the operator plans for the config: of these jobs its own, and the windows.
func planned(config *v1beta1.UpgradeConfig, jobs []v1beta1.UpgradeJob, windows []v1beta1.UpgradeSuspensionWindow) planner.Facts {
	own := slices.DeleteFunc(slices.Clone(jobs), func(job v1beta1.UpgradeJob) bool { return !metav1.IsControlledBy(&job, config) })
	return planner.Facts{Jobs: own, Windows: windows}
}

// expecting are the facts with the job that a start is to get, which is in the way of others until it is over.
func expecting(facts planner.Facts, config *v1beta1.UpgradeConfig, start time.Time, outlook planner.Outlook) planner.Facts {
	if !outlook.Created.IsZero() {
		facts.Jobs = append(slices.Clip(facts.Jobs), *planner.NewJob(config, start, nil))
	}
	return facts
}

// following is the start after the i-th; the zero time if it is not known.
func following(starts []time.Time, i int) time.Time {
	if i+1 < len(starts) {
		return starts[i+1]
	}
	return time.Time{}
}

// firstFree returns when the first upgrade begins that is to be expected of the starts, and how many starts it passes over; the zero time and all of them if there
// is none to be expected.
func firstFree(config *v1beta1.UpgradeConfig, facts planner.Facts, starts []time.Time, now time.Time) (begins time.Time, passed int) {
	for i, start := range starts {
		outlook := planner.Foresee(config, start, following(starts, i), facts, now)
		if whyNothing(config, facts, start, outlook, now, utc) != "" {
			facts = expecting(facts, config, start, outlook)
			continue
		}
		if outlook.Job != nil {
			return outlook.Job.Spec.StartAfter.Time, i
		}
		return start, i
	}
	return time.Time{}, len(starts)
}

// whyNothing says why no upgrade is to be expected at a start, as what is said of "the start"; empty if one is. The stamp writes times.
func whyNothing(config *v1beta1.UpgradeConfig, facts planner.Facts, start time.Time, outlook planner.Outlook, now time.Time, stamp func(time.Time) string) string {
	if outlook.Reason != "" {
		return whyNoJob(config, start, outlook, now, stamp)
	}
	job := planner.NewJob(config, start, nil)
	if outlook.Job != nil {
		job, start = outlook.Job, outlook.Job.Spec.StartAfter.Time
	}
	switch {
	case job.Status.Phase.Finished():
		return fmt.Sprintf("has had its job, UpgradeJob %s", job.Name)
	case outlook.Job != nil && !start.After(now): // somebody has moved it up
		return fmt.Sprintf("has its job, UpgradeJob %s, whose time has come already", job.Name)
	}
	if w := suspension.Active(facts.Windows, suspension.ForJobs, job, start); w != nil {
		return fmt.Sprintf("comes to nothing: UpgradeSuspensionWindow %s keeps the job from starting until %s", w.Name, stamp(w.Spec.End.Time))
	}
	return ""
}

// whyNoJob says that, and why, a start gets no job.
func whyNoJob(config *v1beta1.UpgradeConfig, start time.Time, outlook planner.Outlook, now time.Time, stamp func(time.Time) string) string {
	_, last := planner.CreationTimes(config, start)
	why := strings.TrimSuffix(outlook.Message, ".")
	switch {
	case last.Before(now):
		return "gets no job: it had to be created by " + stamp(last)
	case outlook.Reason == v1beta1.ReasonJobActive:
		return fmt.Sprintf("gets no job unless this changes by %s: %s", stamp(last), why)
	}
	return "gets no job: " + why
}
