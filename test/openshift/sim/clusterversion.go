// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types and reasons of a ClusterVersion that openshift/api has no
// constants for.
const (
	conditionReleaseAccepted configv1.ClusterStatusConditionType = "ReleaseAccepted"
	conditionFailing         configv1.ClusterStatusConditionType = "Failing"
	conditionInvalid         configv1.ClusterStatusConditionType = "Invalid"
	conditionCapabilities    configv1.ClusterStatusConditionType = "ImplicitlyEnabledCapabilities"

	reasonAsExpected           = "AsExpected"
	reasonPayloadLoaded        = "PayloadLoaded"
	reasonRetrievePayload      = "RetrievePayload"
	reasonVerifyPayloadVersion = "VerifyPayloadVersion"
	reasonPreconditionChecks   = "PreconditionChecks"
	reasonInvalid              = "InvalidClusterVersion"
	reasonMultiple             = "MultipleReasons"
	reasonUpdating             = "ClusterVersionUpdating"
	reasonOperatorRisk         = "RiskNameNotCompatibleWithReasonProperty"
)

// maxHistory is the number of history entries that the CVO keeps.
const maxHistory = 100

// planVersion lets the CVO do the next thing on ClusterVersion/version: the
// first of its tasks that changes something makes one revision, so that an
// observer sees the same order of revisions as from a real one.
func planVersion(v *view, sw *stopwatch) []change {
	c := &cvo{view: v, watch: sw, cv: v.version.DeepCopy()}
	if len(c.cv.Status.History) == 0 {
		return nil
	}
	c.request = requested(c.cv)
	for _, task := range []func() string{
		c.acceptRelease,     // refuses a requested release, or says that it is loaded
		c.moveToRelease,     // starts the update to an accepted release
		c.reportWork,        // counts, waits, fails
		c.reportUpgradeable, // follows, because completion is told before
		c.listUpdates,       // follows, because the graph is asked after the move
		c.observeGeneration,
	} {
		note := task()
		if !reflect.DeepEqual(c.cv.Status, v.version.Status) {
			return []change{{before: v.version, after: c.cv, part: status, note: note}}
		}
	}
	return nil
}

// cvo is the CVO at work on a copy of the ClusterVersion.
type cvo struct {
	view    *view
	watch   *stopwatch
	cv      *configv1.ClusterVersion
	request request
	// accepted is the verdict on a release that the CVO takes.
	accepted *verdict
}

func (c *cvo) set(cond configv1.ClusterOperatorStatusCondition) {
	setCondition(&c.cv.Status.Conditions, cond, c.watch.now)
}

// updating reports whether the newest history entry is not complete.
func (c *cvo) updating() bool { return c.cv.Status.History[0].State == configv1.PartialUpdate }

func (c *cvo) acceptRelease() string {
	const key = "accept"
	if c.request.kind != requestRelease {
		c.watch.forget(key)
		return c.returnToCurrentRelease()
	}
	if fault, found := c.view.scenario.release(c.request.version); found && fault.Stuck {
		c.watch.forget(key)
		return ""
	}
	if !c.watch.passed(key, c.request.image, time.Duration(c.view.scenario.Timings.Accept)) {
		return ""
	}
	verdict := judge(c.cv, c.view.scenario, c.request)
	if verdict.refusal != nil {
		c.set(*verdict.refusal)
		return fmt.Sprintf("CVO: refused %s: %s", c.request.version, verdict.refusal.Reason)
	}
	c.accepted = &verdict
	c.set(condition(conditionReleaseAccepted, configv1.ConditionTrue, reasonPayloadLoaded, loaded(verdict.version, c.request.image)+` architecture="amd64"`))
	return "CVO: accepted " + verdict.version
}

// loaded is the message of an accepted release.
func loaded(version, image string) string {
	return fmt.Sprintf("Payload loaded version=%q image=%q", version, image)
}

// returnToCurrentRelease forgets a request that was refused or not finished.
func (c *cvo) returnToCurrentRelease() string {
	current := loaded(c.cv.Status.Desired.Version, c.cv.Status.Desired.Image)
	old := findCondition(c.cv.Status.Conditions, conditionReleaseAccepted)
	if old != nil && old.Status == configv1.ConditionTrue && strings.HasPrefix(old.Message, current) {
		return ""
	}
	c.set(condition(conditionReleaseAccepted, configv1.ConditionTrue, reasonPayloadLoaded, current))
	return "CVO: stays on " + c.cv.Status.Desired.Version
}

func (c *cvo) moveToRelease() string {
	if c.accepted == nil {
		return ""
	}
	st := &c.cv.Status
	now := metav1.NewTime(c.watch.now.Truncate(time.Second))
	if superseded := &st.History[0]; superseded.CompletionTime == nil {
		superseded.CompletionTime = &now
		superseded.AcceptedRisks = ""
	}
	st.History = append([]configv1.UpdateHistory{{
		State: configv1.PartialUpdate, StartedTime: now, Version: c.accepted.version, Image: c.request.image,
		Verified: true, AcceptedRisks: c.accepted.risks,
	}}, st.History...)
	st.History = st.History[:min(len(st.History), maxHistory)]
	st.Desired = c.view.scenario.describe(c.accepted.version)
	st.Desired.Image = c.request.image
	st.VersionHash = versionHash(c.accepted.version)
	st.ObservedGeneration = c.cv.Generation
	removeCondition(&st.Conditions, conditionInvalid)
	c.set(condition(conditionFailing, configv1.ConditionFalse, "", ""))
	c.set(condition(configv1.OperatorProgressing, configv1.ConditionTrue, "", "Working towards "+c.accepted.version))
	c.watch.forget("accept")
	return "CVO: working towards " + c.accepted.version
}

// updatingMessage is why a cluster that is being updated is not upgradeable.
const updatingMessage = "An update is already in progress and the details are in the Progressing condition."

func (c *cvo) reportUpgradeable() string {
	messages := c.operatorsNotUpgradeable()
	want := upgradeable(c.updating(), messages)
	old := findCondition(c.cv.Status.Conditions, configv1.OperatorUpgradeable)
	const key = "upgradeable"
	if sameCondition(old, want) {
		c.watch.forget(key)
		return ""
	}
	// Whether an update is running is seen at once, the operators only later.
	operatorsChanged := !sameCondition(old, upgradeable(!c.updating(), messages))
	startsClean := old == nil && len(messages) == 0
	if operatorsChanged && !startsClean &&
		!c.watch.passed(key, strings.Join(messages, "\n"), time.Duration(c.view.scenario.Timings.Upgradeable)) {
		return ""
	}
	if want == nil {
		removeCondition(&c.cv.Status.Conditions, configv1.OperatorUpgradeable)
		return ""
	}
	c.set(*want)
	if want.Reason == reasonUpdating {
		return ""
	}
	return fmt.Sprintf("CVO: not upgradeable to the next minor version (%s)", want.Reason)
}

// operatorsNotUpgradeable returns why operators are not upgradeable, by their names' order.
func (c *cvo) operatorsNotUpgradeable() []string {
	var messages []string
	for _, name := range sortedKeys(c.view.operators) {
		cond := findCondition(c.view.operators[name].Status.Conditions, configv1.OperatorUpgradeable)
		if cond != nil && cond.Status == configv1.ConditionFalse {
			messages = append(messages, cond.Message)
		}
	}
	return messages
}

// upgradeable returns the Upgradeable condition, nil when nothing speaks
// against a minor update: then a ClusterVersion has no such condition.
func upgradeable(updating bool, operators []string) *configv1.ClusterOperatorStatusCondition {
	messages := operators
	reason := reasonOperatorRisk
	if updating {
		messages = append([]string{updatingMessage}, operators...)
		reason = reasonUpdating
	}
	if len(messages) == 0 {
		return nil
	}
	text := messages[0]
	if len(messages) > 1 {
		reason = reasonMultiple
		text = "Cluster should not be upgraded between minor or major versions for multiple reasons:\n* " + strings.Join(messages, "\n* ")
	}
	cond := condition(configv1.OperatorUpgradeable, configv1.ConditionFalse, reason, text)
	return &cond
}

// sameCondition compares conditions but for their times; nil is an absent one.
func sameCondition(a, b *configv1.ClusterOperatorStatusCondition) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

func (c *cvo) listUpdates() string {
	st := &c.cv.Status
	const key = "asked" // about which channel of whom the graph was asked last
	source := fmt.Sprintf("%s of %s", c.cv.Spec.Channel, c.cv.Spec.Upstream)
	g, wait := c.view.scenario.Graph, time.Duration(c.view.scenario.Timings.Graph)
	last, asked := c.watch.marks[key]
	elsewhere := asked && last.state != source
	if elsewhere {
		wait = g.Retrieval.or(wait)
	}
	if !c.watch.passed("graph", st.Desired.Image+" "+source, wait) {
		if elsewhere && g.Between != "" {
			c.set(condition(configv1.RetrievedUpdates, g.Between, "Retrieving", "Retrieving the updates of channel "+c.cv.Spec.Channel))
		}
		return ""
	}
	c.watch.passed(key, source, 0)
	o := c.view.scenario.offerFor(st.Desired.Version, c.cv.Spec.Channel, c.watch.now)
	c.set(o.retrieved)
	if o.keep {
		return "CVO: cannot retrieve updates: " + o.retrieved.Reason
	}
	keepTimes(o.conditional, st.ConditionalUpdates)
	before := st.AvailableUpdates
	st.AvailableUpdates = o.available
	st.ConditionalUpdates = o.conditional
	st.Desired.Channels = o.channels
	if reflect.DeepEqual(before, o.available) {
		return ""
	}
	versions := []string{}
	for _, release := range o.available {
		versions = append(versions, release.Version)
	}
	return fmt.Sprintf("CVO: updates offered to %s: %s", st.Desired.Version, orNone(versions))
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// keepTimes keeps the transition times of conditional updates whose
// recommendation is the same as before.
func keepTimes(updates, before []configv1.ConditionalUpdate) {
	for i := range updates {
		j := slices.IndexFunc(before, func(b configv1.ConditionalUpdate) bool {
			return b.Release.Image == updates[i].Release.Image && len(b.Conditions) == 1 &&
				b.Conditions[0].Status == updates[i].Conditions[0].Status
		})
		if j >= 0 {
			updates[i].Conditions[0].LastTransitionTime = before[j].Conditions[0].LastTransitionTime
		}
	}
}

// observeGeneration notes a new generation that asks for nothing new. One that
// asks for a release is noted when the CVO moves to it.
func (c *cvo) observeGeneration() string {
	generation := c.cv.Generation
	if c.request.kind != requestNothing || c.cv.Status.ObservedGeneration == generation {
		return ""
	}
	if c.watch.passed("generation", fmt.Sprint(generation), time.Duration(c.view.scenario.Timings.Reconcile)) {
		c.cv.Status.ObservedGeneration = generation
	}
	return ""
}
