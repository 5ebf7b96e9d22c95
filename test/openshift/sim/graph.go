// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// offer is what the update graph says to a cluster of one version.
type offer struct {
	retrieved configv1.ClusterOperatorStatusCondition
	// keep means that the list of before stands.
	keep        bool
	channels    []string
	available   []configv1.Release
	conditional []configv1.ConditionalUpdate
}

// offerFor asks the graph for updates of a cluster that runs or moves to version.
func (s *Scenario) offerFor(version, channel string, now time.Time) offer {
	switch {
	case s.UpdatesUnknown != nil:
		return offer{retrieved: notRetrieved(s.UpdatesUnknown.Reason, s.UpdatesUnknown.Message), keep: s.UpdatesUnknown.KeepCached}
	case channel == "":
		return offer{retrieved: condition(configv1.RetrievedUpdates, configv1.ConditionFalse, "NoChannel", "The update channel has not been configured.")}
	case !slices.Contains(s.channelsOf(version), channel):
		return offer{retrieved: notRetrieved("VersionNotFound", fmt.Sprintf(
			"Unable to retrieve available updates: currently reconciling cluster version %s not found in the %q channel", version, channel))}
	}
	o := offer{
		retrieved: condition(configv1.RetrievedUpdates, configv1.ConditionTrue, "", ""),
		channels:  s.channelsOf(version),
	}
	for _, u := range s.Updates {
		if !u.offeredTo(version) || !slices.Contains(s.channelsOf(u.Version), channel) {
			continue
		}
		release := s.describe(u.Version)
		recommended := true
		if len(u.Risks) > 0 {
			c := u.recommended(now)
			recommended = c.Status == metav1.ConditionTrue
			o.conditional = append(o.conditional, configv1.ConditionalUpdate{
				Release: release, Risks: u.riskList(), Conditions: []metav1.Condition{c},
			})
		}
		if recommended {
			o.available = append(o.available, release)
		}
	}
	slices.SortFunc(o.available, func(a, b configv1.Release) int { return compareVersions(b.Version, a.Version) })
	slices.SortFunc(o.conditional, func(a, b configv1.ConditionalUpdate) int {
		return compareVersions(b.Release.Version, a.Release.Version)
	})
	if o.available == nil && s.EmptyUpdatesAsList {
		o.available = []configv1.Release{}
	}
	return o
}

// notRetrieved is RetrievedUpdates=False.
func notRetrieved(reason, message string) configv1.ClusterOperatorStatusCondition {
	if message == "" {
		message = "Unable to retrieve available updates: the update service gave no usable answer"
	}
	return condition(configv1.RetrievedUpdates, configv1.ConditionFalse, reason, message)
}

// describe returns a release with all that the graph says about it.
func (s *Scenario) describe(version string) configv1.Release {
	release := configv1.Release{
		Version: version, Image: s.imageOf(version), URL: configv1.URL(errata(version)), Channels: s.channelsOf(version),
	}
	if s.Graph.Multi {
		release.Architecture = configv1.ClusterVersionArchitectureMulti
	}
	return release
}

// offeredTo reports whether the graph has an edge from version to the update.
func (u OfferedUpdate) offeredTo(version string) bool {
	if len(u.From) > 0 {
		return slices.Contains(u.From, version)
	}
	minors, comparable := minorsApart(version, u.Version)
	return comparable && minors <= 1 && compareVersions(version, u.Version) < 0
}

// recommended returns the update's Recommended condition.
func (u OfferedUpdate) recommended(now time.Time) metav1.Condition {
	c := metav1.Condition{
		Type: "Recommended", Status: metav1.ConditionTrue, Reason: "NotExposedToRisks",
		Message:            "The update is recommended, because none of the conditional update risks apply to this cluster.",
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	}
	var names, messages []string
	for _, risk := range u.Risks {
		switch risk.Applies {
		case AppliesYes:
			c.Status = metav1.ConditionFalse
			names = append(names, risk.Name)
			messages = append(messages, risk.Message+" "+risk.url())
		case AppliesUnknown:
			if c.Status == metav1.ConditionTrue {
				c.Status = metav1.ConditionUnknown
			}
			names = append(names, "EvaluationFailed")
			messages = append(messages, fmt.Sprintf(
				"Could not evaluate exposure to update risk %s (the monitoring stack gave no answer)\n  %s description: %s\n  %s URL: %s",
				risk.Name, risk.Name, risk.Message, risk.Name, risk.url()))
		case AppliesNo:
		}
	}
	switch len(names) {
	case 0:
		return c
	case 1:
		c.Reason = names[0]
	default:
		c.Reason = reasonMultiple
	}
	c.Message = strings.Join(messages, "\n\n")
	return c
}

// riskList returns the risks as the API shows them.
func (u OfferedUpdate) riskList() []configv1.ConditionalUpdateRisk {
	list := make([]configv1.ConditionalUpdateRisk, 0, len(u.Risks))
	for _, risk := range u.Risks {
		rule := configv1.ClusterCondition{Type: "Always"}
		if risk.Applies != AppliesYes {
			rule = configv1.ClusterCondition{Type: "PromQL", PromQL: &configv1.PromQLClusterCondition{PromQL: "vector(0)"}}
		}
		list = append(list, configv1.ConditionalUpdateRisk{
			Name: risk.Name, URL: risk.url(), Message: risk.Message,
			MatchingRules: []configv1.ClusterCondition{rule},
		})
	}
	return list
}

func (r Risk) url() string {
	if r.URL != "" {
		return r.URL
	}
	return "https://issues.example.com/" + r.Name
}
