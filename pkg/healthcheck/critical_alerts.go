// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// OwnAlertPrefix is how the names of the alerts of this operator begin. They tell of upgrades that went wrong, and must
// not keep the next one from going right.
const OwnAlertPrefix = "ManagedUpgrade"

// CriticalAlerts finds every alert of severity critical that is firing in Prometheus and not silenced in Alertmanager.
// The alerts of one name are one finding.
func CriticalAlerts() Check { return criticalAlerts{} }

type criticalAlerts struct{}

func (criticalAlerts) Name() string { return "CriticalAlerts" }

func (criticalAlerts) Run(ctx context.Context, request Request) (Report, error) {
	if !enabled(request.Config.CheckCriticalAlerts) {
		return Report{Skipped: skippedOff}, nil
	}
	answer, err := request.Monitoring.CriticalAlerts(ctx, request.Now, request.MaxAge)
	if err != nil {
		return unavailable("critical alerts", request.Config, err)
	}
	left := leftOut{}
	firing := left.exclude(answer, request.Config)
	var notes []string
	if len(firing) > 0 && request.Monitoring.HasAlertmanager() {
		silenced, err := request.Monitoring.SilencedAlerts(ctx, request.Now, request.MaxAge)
		if err != nil {
			notes = append(notes, "silences are not known: "+err.Error())
		}
		firing = left.silence(firing, silenced)
	}
	report := Report{Findings: alertFindings(firing), Notes: append(notes, left.notes()...)}
	if len(report.Findings) > 0 {
		report.Recheck = request.MaxAge
	}
	return report, nil
}

// alertFindings makes a finding for each name of an alert.
func alertFindings(firing []model.LabelSet) []Finding {
	byName := map[model.LabelValue][]model.LabelSet{}
	for _, alert := range firing {
		name := alert[model.AlertNameLabel]
		byName[name] = append(byName[name], alert)
	}
	findings := make([]Finding, 0, len(byName))
	for name, alerts := range byName {
		times := ""
		if len(alerts) > 1 {
			times = fmt.Sprintf(" %d times, one of them", len(alerts))
		}
		findings = append(findings, Finding{
			Object:     "Alert/" + string(name),
			Reason:     "CriticalAlertFiring",
			Message:    fmt.Sprintf("critical alert %s is firing%s: %s", name, times, first(alerts)),
			ClearsWhen: fmt.Sprintf("alert %s stops firing, or is silenced or excluded", name),
		})
	}
	return findings
}

// first describes the alert that comes first by its labels, so that it is the same one in each pass.
func first(alerts []model.LabelSet) string {
	least := ""
	for _, alert := range alerts {
		if text := describe(alert); least == "" || text < least {
			least = text
		}
	}
	return least
}

// describe shows what tells an alert from others of its name.
func describe(alert model.LabelSet) string {
	var labels []string
	for _, name := range ruleLabels(alert) {
		if name != model.AlertNameLabel && name != "severity" {
			labels = append(labels, fmt.Sprintf("%s=%q", name, alert[name]))
		}
	}
	return "{" + strings.Join(labels, ", ") + "}"
}

// ruleLabels are the names of the labels that an alert has from its rule, sorted: those that make it a series of ALERTS
// are not among them.
func ruleLabels(alert model.LabelSet) []model.LabelName {
	names := make([]model.LabelName, 0, len(alert))
	for name := range alert {
		if name != model.MetricNameLabel && name != "alertstate" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// leftOut collects the names of the alerts that do not count, by the reason why.
type leftOut map[string][]model.LabelValue

func (l leftOut) add(why string, alert model.LabelSet) {
	l[why] = append(l[why], alert[model.AlertNameLabel])
}

// exclude returns the alerts that the configuration does not leave out.
func (l leftOut) exclude(alerts []model.LabelSet, config v1beta1.HealthChecks) []model.LabelSet {
	var firing []model.LabelSet
	for _, alert := range alerts {
		name := string(alert[model.AlertNameLabel])
		switch {
		case strings.HasPrefix(name, OwnAlertPrefix):
			l.add("of this operator", alert)
		case slices.Contains(config.ExcludeAlerts, v1beta1.ExcludedAlert{AlertName: name}):
			l.add("by excludeAlerts", alert)
		case slices.Contains(config.ExcludeNamespaces, string(alert["namespace"])):
			l.add("by excludeNamespaces", alert)
		default:
			firing = append(firing, alert)
		}
	}
	return firing
}

// silence returns the alerts that are not silenced. Alertmanager knows an alert by the labels that Prometheus shows, and
// by others that were added on the way.
func (l leftOut) silence(firing, silenced []model.LabelSet) []model.LabelSet {
	if len(silenced) == 0 {
		return firing
	}
	// For each set of label names, what the silenced alerts say under those names: alerts come by the thousand, but
	// their sets of names do not.
	byNames := map[string]map[string]bool{}
	return slices.DeleteFunc(firing, func(alert model.LabelSet) bool {
		names := ruleLabels(alert)
		key := fmt.Sprint(names)
		if byNames[key] == nil {
			byNames[key] = map[string]bool{}
			for _, s := range silenced {
				byNames[key][valuesOf(s, names)] = true
			}
		}
		if !byNames[key][valuesOf(alert, names)] {
			return false
		}
		l.add("silenced", alert)
		return true
	})
}

func valuesOf(alert model.LabelSet, names []model.LabelName) string {
	var values strings.Builder
	for _, name := range names {
		fmt.Fprintf(&values, "%q", alert[name])
	}
	return values.String()
}

// notes says how many alerts were left out, which ones, and why.
func (l leftOut) notes() []string {
	var reasons []string
	for _, why := range slices.Sorted(maps.Keys(l)) {
		names := slices.Clone(l[why])
		slices.Sort(names)
		reasons = append(reasons, fmt.Sprintf("%d %s (%s)", len(names), why, list(slices.Compact(names))))
	}
	if len(reasons) == 0 {
		return nil
	}
	return []string{"critical alerts left out: " + strings.Join(reasons, ", ")}
}
