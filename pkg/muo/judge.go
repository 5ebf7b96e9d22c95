// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package muo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// Verdict is what is to be thought of the upgrade that an object wants.
type Verdict int

const (
	// Valid means: it can be done.
	Valid Verdict = iota
	// Invalid means: it cannot, as far as is known.
	Invalid
	// Unknown means: it cannot be told at present.
	Unknown
	// Done means: the cluster runs the release.
	Done
)

// Reasons of the condition UpgradeConfigValid.
const (
	// ReasonValid: the upgrade can be done.
	ReasonValid = "Valid"
	// ReasonUpgraded: the cluster runs the release.
	ReasonUpgraded = "Upgraded"
	// ReasonInvalidUpgradeAt: spec.upgradeAt is no time.
	ReasonInvalidUpgradeAt = "InvalidUpgradeAt"
	// ReasonInvalidDesired: spec.desired names no release.
	ReasonInvalidDesired = "InvalidDesired"
	// ReasonInvalidTimeout: spec.PDBForceDrainTimeout is too long.
	ReasonInvalidTimeout = "InvalidTimeout"
	// ReasonInvalidSettings: the ConfigMap cannot be used.
	ReasonInvalidSettings = "InvalidSettings"
	// ReasonNotNewer: the cluster runs a newer release.
	ReasonNotNewer = "NotNewer"
	// ReasonNotOffered: there is no way from the running release to the desired one.
	ReasonNotOffered = "NotOffered"
	// ReasonRisksNotAccepted: the update is a conditional one, and has risks that the object does not accept.
	ReasonRisksNotAccepted = "RisksNotAccepted"
	// ReasonUnknownChannel: the running release is not in the channel.
	ReasonUnknownChannel = "UnknownChannel"
	// ReasonUpdatesUnknown: the cluster does not know its updates at present.
	ReasonUpdatesUnknown = "UpdatesUnknown"
	// ReasonGraphUnavailable: the update service does not answer.
	ReasonGraphUnavailable = "GraphUnavailable"
	// ReasonNotManaged: the object has not the name that it has to have.
	ReasonNotManaged = "NotManaged"
)

// Edge is what the update service says of the way from the running release to the desired one.
type Edge struct {
	// Problem says why there is no answer; empty if there is one.
	Problem string
	// KnowsRunning and KnowsTarget tell whether the channel has the releases.
	KnowsRunning, KnowsTarget bool
	// Exists tells whether there is a way.
	Exists bool
	// Image is the pull spec of the target.
	Image string
	// Risks of a conditional update.
	Risks []string
}

// Facts is what a judgement needs to know beside the object.
type Facts struct {
	// Settings are the tunables.
	Settings Settings
	// Version is ClusterVersion/version; nil if there is none.
	Version *configv1.ClusterVersion
	// Edge is the answer of the update service, where AsksGraph; else nil.
	Edge *Edge
}

// Judgement is what is to be thought of the upgrade, and why.
type Judgement struct {
	Verdict         Verdict
	Reason, Message string

	// Of an upgrade that can be done:

	// Release is what the job asks for.
	Release openshift.Release
	// CheckAvailability requires that the cluster offers it when the upgrade commences.
	CheckAvailability bool
	// UnderWay tells that the cluster updates to it already: it needs no job.
	UnderWay bool
}

func invalid(reason, format string, args ...any) Judgement {
	return Judgement{Verdict: Invalid, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func unknown(reason, format string, args ...any) Judgement {
	return Judgement{Verdict: Unknown, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func valid(release openshift.Release, check bool, format string, args ...any) Judgement {
	return Judgement{Verdict: Valid, Reason: ReasonValid, Message: fmt.Sprintf(format, args...), Release: release, CheckAvailability: check}
}

// AsksGraph tells whether the update service has to be asked about the desired version: it is looked for in a channel that the cluster is not in.
func AsksGraph(config *v1alpha1.UpgradeConfig, settings Settings, cv *configv1.ClusterVersion) bool {
	desired := config.Spec.Desired
	_, err := checkSpec(config.Spec)
	return err == nil && settings.Cincinnati && desired.Image == "" && otherChannel(desired, cv)
}

func otherChannel(desired v1alpha1.Update, cv *configv1.ClusterVersion) bool {
	return desired.Channel != "" && desired.Channel != cv.Spec.Channel
}

// Judge tells whether the upgrade that the object wants can be done.
func Judge(config *v1alpha1.UpgradeConfig, facts Facts) Judgement {
	if reason, err := checkSpec(config.Spec); err != nil {
		return invalid(reason, "%v.", err)
	}
	cv := facts.Version
	if cv == nil || openshift.RunningVersion(cv) == "" {
		return unknown(ReasonUpdatesUnknown, "ClusterVersion does not tell what the cluster runs.")
	}
	desired := config.Spec.Desired
	want := openshift.Release{Version: desired.Version, Image: desired.Image}
	if openshift.Runs(cv, want) {
		return Judgement{Verdict: Done, Reason: ReasonUpgraded, Message: fmt.Sprintf("The cluster runs %s already: there is nothing to upgrade.", want)}
	}
	if target, ok := openshift.Updating(cv); ok && want.Matches(target.Version, target.Image) {
		j := valid(target, false, "The cluster updates to %s already.", want)
		j.UnderWay = true
		return j
	}
	if want.Image != "" {
		return judgeImage(config, cv, want)
	}
	if j, newer := compare(cv, want); !newer {
		return j
	}
	if otherChannel(desired, cv) {
		return judgeOtherChannel(config, facts)
	}
	return judgeOffer(config, cv, want)
}

// compare tells whether the release is newer than the running one, and if not what is to be thought of it.
func compare(cv *configv1.ClusterVersion, want openshift.Release) (Judgement, bool) {
	running := openshift.RunningVersion(cv)
	from, err := semver.Parse(running)
	if err != nil {
		return unknown(ReasonUpdatesUnknown, "The cluster runs %s, which is no version to compare %s with.", running, want.Version), false
	}
	to, err := semver.Parse(want.Version)
	if err != nil {
		return invalid(ReasonInvalidDesired, "spec.desired.version %q is no version.", want.Version), false
	}
	if !to.GT(from) {
		return invalid(ReasonNotNewer, "%s is not newer than %s, which the cluster runs.", want.Version, running), false
	}
	return Judgement{}, true
}

// judgeImage judges a release that is named by its image. What the cluster does not offer is taken as given: that is what images are for.
func judgeImage(config *v1alpha1.UpgradeConfig, cv *configv1.ClusterVersion, want openshift.Release) Judgement {
	named := openshift.Release{Image: want.Image}
	offered, isOffered := openshift.Offered(cv, named)
	conditional, isConditional := conditionalUpdate(cv, named)
	found := want
	switch {
	case isOffered:
		found = offered
	case isConditional:
		found = openshift.Release{Version: conditional.Release.Version, Image: conditional.Release.Image}
	}
	if want.Version != "" && found.Version != want.Version {
		return invalid(ReasonInvalidDesired, "spec.desired.image is that of %s, and not of %s.", found.Version, want.Version)
	}
	if found.Version != "" {
		if j, newer := compare(cv, found); !newer {
			return j
		}
	}
	switch {
	case isOffered:
		return valid(found, true, "%s is an available update.", found)
	case isConditional:
		return judgeConditional(config, found, riskNames(conditional))
	}
	return valid(found, false, "The image is taken as given: the cluster does not offer it.")
}

// judgeOffer judges a version that the cluster would find in its own channel.
func judgeOffer(config *v1alpha1.UpgradeConfig, cv *configv1.ClusterVersion, want openshift.Release) Judgement {
	if _, ok := openshift.Offered(cv, want); ok {
		return valid(want, true, "%s is an available update.", want)
	}
	if cu, ok := conditionalUpdate(cv, want); ok {
		return judgeConditional(config, openshift.Release{Version: cu.Release.Version, Image: cu.Release.Image}, riskNames(cu))
	}
	retrieved := openshift.Condition(cv.Status.Conditions, configv1.RetrievedUpdates)
	switch {
	case retrieved == nil:
		return unknown(ReasonUpdatesUnknown, "The cluster has not asked for its updates yet.")
	case retrieved.Status != configv1.ConditionTrue:
		return unknown(ReasonUpdatesUnknown, "The cluster does not know its updates (%s: %s).", retrieved.Reason, retrieved.Message)
	}
	return invalid(ReasonNotOffered, "The cluster is not offered an update to %s in channel %s.", want, cv.Spec.Channel)
}

// judgeConditional judges an update that is recommended only where none of its risks applies.
func judgeConditional(config *v1alpha1.UpgradeConfig, found openshift.Release, risks []string) Judgement {
	if left := notAccepted(config, risks); len(left) > 0 {
		return invalid(ReasonRisksNotAccepted, "%s is only a conditional update, with risks that are not accepted: %s. The annotation %s of this object accepts them, by name.",
			found, strings.Join(left, ", "), v1alpha1.AcceptRisksAnnotation)
	}
	return valid(found, false, "%s is a conditional update whose risks are accepted: %s.", found, strings.Join(risks, ", "))
}

// judgeOtherChannel judges a version in a channel that the cluster is not in.
func judgeOtherChannel(config *v1alpha1.UpgradeConfig, facts Facts) Judgement {
	desired, cv := config.Spec.Desired, facts.Version
	want := openshift.Release{Version: desired.Version}
	channels := cv.Status.Desired.Channels
	edge := facts.Edge
	switch {
	case edge == nil && len(channels) > 0 && !slices.Contains(channels, desired.Channel):
		return invalid(ReasonUnknownChannel, "The release that the cluster runs is not in channel %s, but in: %s.", desired.Channel, strings.Join(slices.Sorted(slices.Values(channels)), ", "))
	case edge == nil:
		return valid(want, true, "The cluster is set to channel %s at the start, and has to be offered %s then.", desired.Channel, want)
	case edge.Problem != "":
		return unknown(ReasonGraphUnavailable, "What channel %s has cannot be told: %s.", desired.Channel, edge.Problem)
	case !edge.KnowsRunning:
		return invalid(ReasonUnknownChannel, "The release that the cluster runs is not in channel %s.", desired.Channel)
	case !edge.KnowsTarget:
		return invalid(ReasonNotOffered, "%s is not in channel %s.", want, desired.Channel)
	case !edge.Exists:
		return invalid(ReasonNotOffered, "There is no update from %s to %s in channel %s.", openshift.RunningVersion(cv), want, desired.Channel)
	case len(edge.Risks) == 0:
		return valid(want, true, "%s is an update in channel %s, which the cluster is set to at the start.", want, desired.Channel)
	case len(notAccepted(config, edge.Risks)) > 0:
		return valid(want, true, "%s is a conditional update in channel %s, which the cluster is set to at the start. It is done if none of its risks applies: %s.",
			want, desired.Channel, strings.Join(edge.Risks, ", "))
	}
	return judgeConditional(config, openshift.Release{Version: want.Version, Image: edge.Image}, edge.Risks)
}

// conditionalUpdate returns the conditional update to the release.
func conditionalUpdate(cv *configv1.ClusterVersion, want openshift.Release) (*configv1.ConditionalUpdate, bool) {
	for i := range cv.Status.ConditionalUpdates {
		if cu := &cv.Status.ConditionalUpdates[i]; want.Matches(cu.Release.Version, cu.Release.Image) {
			return cu, true
		}
	}
	return nil, false
}

func riskNames(cu *configv1.ConditionalUpdate) []string {
	names := make([]string, 0, len(cu.Risks))
	for i := range cu.Risks {
		names = append(names, cu.Risks[i].Name)
	}
	slices.Sort(names)
	return names
}

// notAccepted returns the risks that the object does not accept.
func notAccepted(config *v1alpha1.UpgradeConfig, risks []string) []string {
	accepted := strings.Split(config.Annotations[v1alpha1.AcceptRisksAnnotation], ",")
	for i := range accepted {
		accepted[i] = strings.TrimSpace(accepted[i])
	}
	if slices.Contains(accepted, "*") {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(risks), func(risk string) bool { return slices.Contains(accepted, risk) })
}
