// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/suspension"
)

// configsOf tells of each UpgradeConfig when it upgrades next, and if it does not, why.
func configsOf(s *snapshot) []configReport {
	var reports []configReport
	for i := range s.Configs {
		reports = append(reports, scheduleOf(s, &s.Configs[i]))
	}
	return reports
}

func scheduleOf(s *snapshot, config *v1beta1.UpgradeConfig) configReport {
	r := configReport{
		Namespace: config.Namespace, Name: config.Name, Cron: config.Spec.Schedule.Cron, ISOWeek: config.Spec.Schedule.ISOWeek,
		Location: config.Spec.Schedule.Location, Upgrader: lifecycle.UpgraderOf(&config.Spec.JobTemplate.Spec.Config),
	}
	var starts []time.Time
	for _, start := range config.Status.NextPossibleSchedules {
		if start.After(s.Now) {
			r.NextStarts, starts = append(r.NextStarts, start), append(starts, start.Time)
		}
	}
	if config.Spec.Schedule.Suspend {
		r.Suspended = append(r.Suspended, "schedule.suspend")
	}
	facts := planned(config, s.Jobs, s.windowsIn(config.Namespace))
	if w := suspension.Active(facts.Windows, suspension.ForConfigs, config, s.Now); w != nil {
		r.Suspended = append(r.Suspended, describeWindow(w))
	}
	if next, _ := firstFree(config, facts, starts, s.Now); !next.IsZero() && !config.Spec.Schedule.Suspend {
		r.NextStart = &metav1.Time{Time: next}
	}
	r.Problem = problemOf(config)
	if skipped := config.Status.LastSkippedStart; skipped != nil {
		r.LastSkipped = &skippedReport{skipped.StartAfter, skipped.Reason, skipped.Message}
	}
	return r
}

// managedOf tells of the objects of the Managed Upgrade Operator's kind.
func managedOf(s *snapshot) []managedReport {
	var reports []managedReport
	for i := range s.Managed {
		config := &s.Managed[i]
		r := managedReport{
			Namespace: config.Namespace, Name: config.Name, Upgrader: string(config.Spec.Type), UpgradeAt: config.Spec.UpgradeAt,
			DesiredVersion: openshift.Release{Version: config.Spec.Desired.Version, Image: config.Spec.Desired.Image}.String(),
		}
		for j := range config.Status.History {
			if h := &config.Status.History[j]; h.Version == config.Spec.Desired.Version {
				r.Phase = string(h.Phase)
				break
			}
		}
		reports = append(reports, r)
	}
	return reports
}

// problemOf says why the config creates no job, but for suspensions and an active job, which are told elsewhere.
func problemOf(config *v1beta1.UpgradeConfig) string {
	if c := meta.FindStatusCondition(config.Status.Conditions, v1beta1.ConditionReady); c != nil && c.Status == metav1.ConditionFalse {
		return c.Reason + ": " + c.Message
	}
	c := meta.FindStatusCondition(config.Status.Conditions, v1beta1.ConditionScheduling)
	if c == nil || c.Status == metav1.ConditionTrue {
		return ""
	}
	switch c.Reason {
	case v1beta1.ReasonSuspended, v1beta1.ReasonSuspensionWindow, v1beta1.ReasonJobActive:
		return ""
	}
	return c.Reason + ": " + c.Message
}

func describeWindow(w *v1beta1.UpgradeSuspensionWindow) string {
	text := fmt.Sprintf("UpgradeSuspensionWindow %s until %s", w.Name, w.Spec.End.UTC().Format(time.RFC3339))
	if w.Spec.Reason != "" {
		text += ": " + w.Spec.Reason
	}
	return text
}

// windowsIn are the suspension windows of a namespace: they have no effect elsewhere.
func (s *snapshot) windowsIn(namespace string) []v1beta1.UpgradeSuspensionWindow {
	return slices.DeleteFunc(slices.Clone(s.Windows), func(w v1beta1.UpgradeSuspensionWindow) bool { return w.Namespace != namespace })
}

// windowsOf tells of the suspension windows that are not over.
func windowsOf(s *snapshot) []suspensionWindowReport {
	var reports []suspensionWindowReport
	for i := range s.Windows {
		w := &s.Windows[i]
		if !w.Spec.End.After(s.Now) {
			continue
		}
		reports = append(reports, suspensionWindowReport{
			Namespace: w.Namespace, Name: w.Name, Start: w.Spec.Start, End: w.Spec.End, Reason: w.Spec.Reason, Active: suspension.Covers(w, s.Now),
			Configs: namesOf(w.Status.MatchingConfigs), Jobs: namesOf(w.Status.MatchingJobs),
		})
	}
	return reports
}

func namesOf(objects []v1beta1.MatchingObject) []string {
	var names []string
	for _, o := range objects {
		names = append(names, o.Name)
	}
	return names
}
