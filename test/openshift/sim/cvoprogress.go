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

// report is what the CVO says about its work: the conditions Failing and Progressing.
type report struct {
	failing, progressing configv1.ClusterOperatorStatusCondition
}

// reportWork tells about the update that is running, and with the same revision
// that no minor update may begin; or about the cluster that is not being updated.
func (c *cvo) reportWork() string {
	note := c.reportProgress()
	if c.updating() {
		c.reportUpgradeable()
	}
	return note
}

func (c *cvo) reportProgress() string {
	if c.request.kind == requestInvalid {
		c.set(condition(conditionInvalid, configv1.ConditionTrue, reasonInvalid, c.request.problem))
	} else {
		removeCondition(&c.cv.Status.Conditions, conditionInvalid)
	}
	if !c.updating() {
		return c.reportSteadyState()
	}
	version := c.cv.Status.History[0].Version
	p := rollout{operators: c.view.operators, version: version}.progress()
	if p.complete {
		return c.complete(version)
	}
	r := c.reportRollout(version, p)
	if c.request.kind == requestInvalid {
		r.progressing = condition(configv1.OperatorProgressing, configv1.ConditionTrue, reasonInvalid,
			fmt.Sprintf("Reconciling %s: the cluster version is invalid", version))
	}
	r = c.flap(r, version, p)
	c.set(r.failing)
	c.set(r.progressing)
	if r.failing.Status != configv1.ConditionFalse {
		return "CVO: " + r.progressing.Message
	}
	return fmt.Sprintf("CVO: working towards %s: %d of %d operators%s", version, p.operators, len(clusterOperators), waiting(p))
}

// waiting names what the CVO waits for, for people: a few, and how many more.
func waiting(p progress) string {
	const few = 3
	names := slices.Concat(p.unavailable, p.degraded, p.updating)
	switch more := len(names) - few; {
	case len(names) == 0:
		return ""
	case more > 0:
		return fmt.Sprintf(", waiting for %s and %d more", strings.Join(names[:few], ", "), more)
	}
	return ", waiting for " + strings.Join(names, ", ")
}

// complete ends the update.
func (c *cvo) complete(version string) string {
	now := metav1.NewTime(c.watch.now.Truncate(time.Second))
	c.cv.Status.History[0].State = configv1.CompletedUpdate
	c.cv.Status.History[0].CompletionTime = &now
	c.set(condition(configv1.OperatorAvailable, configv1.ConditionTrue, "", "Done applying "+version))
	c.set(condition(conditionFailing, configv1.ConditionFalse, "", ""))
	c.set(condition(configv1.OperatorProgressing, configv1.ConditionFalse, "", "Cluster version is "+version))
	return "CVO: completed " + version
}

// reportRollout says how an update goes.
func (c *cvo) reportRollout(version string, p progress) report {
	progressing := func(reason, message string) configv1.ClusterOperatorStatusCondition {
		return condition(configv1.OperatorProgressing, configv1.ConditionTrue, reason, message)
	}
	counted := p.counted(version)
	healthy := condition(conditionFailing, configv1.ConditionFalse, "", "")
	t := c.view.scenario.Timings
	if len(p.degraded) == 0 {
		c.watch.forget("degraded")
	}
	switch {
	case len(p.unavailable) > 0:
		failing, detail := operatorFailure("NotAvailable", "not available", p.unavailable)
		return report{failing, progressing(failing.Reason, fmt.Sprintf("Unable to apply %s: %s", version, detail))}
	case len(p.degraded) > 0:
		failing, _ := operatorFailure("Degraded", "degraded", p.degraded)
		names := strings.Join(p.degraded, ", ")
		if c.watch.passed("degraded", version+"/"+names, time.Duration(t.DegradedFails)) {
			return report{failing, progressing(failing.Reason, fmt.Sprintf("Unable to apply %s: wait has exceeded 40 minutes for these operators: %s", version, names))}
		}
		return report{healthy, progressing(failing.Reason, fmt.Sprintf("%s, waiting up to 40 minutes on %s", counted, names))}
	case len(p.updating) > 0:
		reason := "ClusterOperatorUpdating"
		if len(p.updating) > 1 {
			reason = "ClusterOperatorsUpdating"
		}
		if slow := c.slow(version, p.updating); slow != "" {
			return report{
				condition(conditionFailing, configv1.ConditionUnknown, "SlowClusterOperator", slow),
				progressing(reason, counted+", "+slow),
			}
		}
		return report{healthy, progressing(reason, fmt.Sprintf("%s, waiting on %s", counted, strings.Join(p.updating, ", ")))}
	}
	return report{healthy, progressing("", counted)}
}

// slow words which of the operators take longer than they should, "" when none does.
func (c *cvo) slow(version string, operators []string) string {
	limit, minutes := time.Duration(c.view.scenario.Timings.SlowUnknown), 30
	if operators[0] == machineConfigOperator {
		limit, minutes = 3*limit, 90
	}
	var slow []string
	for _, name := range operators {
		if c.watch.passed("slow/"+name, version, limit) {
			slow = append(slow, name)
		}
	}
	if len(slow) == 0 {
		return ""
	}
	return fmt.Sprintf("waiting on %s over %d minutes which is longer than expected", strings.Join(slow, ", "), minutes)
}

// operatorFailure is Failing=True because of operators, and the words for it
// inside a sentence.
func operatorFailure(reason, word string, names []string) (configv1.ClusterOperatorStatusCondition, string) {
	if len(names) == 1 {
		return condition(conditionFailing, configv1.ConditionTrue, "ClusterOperator"+reason, fmt.Sprintf("Cluster operator %s is %s", names[0], word)),
			fmt.Sprintf("the cluster operator %s is %s", names[0], word)
	}
	return condition(conditionFailing, configv1.ConditionTrue, "ClusterOperators"+reason, fmt.Sprintf("Cluster operators %s are %s", strings.Join(names, ", "), word)),
		fmt.Sprintf("some cluster operators are %s", word)
}

// flap takes a failure back for one revision at each interval of Noise.FailingFlap.
func (c *cvo) flap(r report, version string, p progress) report {
	const key = "flap"
	interval := time.Duration(c.view.scenario.Noise.FailingFlap)
	if interval == 0 || r.failing.Status == configv1.ConditionFalse {
		c.watch.forget(key)
		return r
	}
	if conditionIs(c.cv.Status.Conditions, conditionFailing, configv1.ConditionFalse) || !c.watch.passed(key, version, interval) {
		return r
	}
	c.watch.forget(key)
	return report{
		condition(conditionFailing, configv1.ConditionFalse, "", ""),
		condition(configv1.OperatorProgressing, configv1.ConditionTrue, "", p.counted(version)),
	}
}

// reportSteadyState says how a cluster is that is not being updated. A change
// of its operators is noticed late.
func (c *cvo) reportSteadyState() string {
	version := c.cv.Status.History[0].Version
	if c.request.kind == requestInvalid {
		c.set(condition(configv1.OperatorProgressing, configv1.ConditionFalse, reasonInvalid,
			fmt.Sprintf("Stopped at %s: the cluster version is invalid", version)))
		return fmt.Sprintf("CVO: the requested update is invalid, stays on %s", version)
	}
	r := c.steadyState(version)
	const key = "steady"
	if sameCondition(findCondition(c.cv.Status.Conditions, conditionFailing), &r.failing) {
		c.watch.forget(key)
	} else if !c.watch.passed(key, r.failing.Reason+r.failing.Message, time.Duration(c.view.scenario.Timings.Reconcile)) {
		return ""
	}
	c.set(r.failing)
	c.set(r.progressing)
	return "CVO: " + r.progressing.Message
}

// steadyState is what the CVO says once it has noticed its operators' state.
func (c *cvo) steadyState(version string) report {
	var unavailable, degraded []string
	r := rollout{operators: c.view.operators, version: version}
	for _, op := range clusterOperators {
		switch {
		case r.unavailable(op.name):
			unavailable = append(unavailable, op.name)
		case r.degraded(op.name):
			degraded = append(degraded, op.name)
		}
	}
	failing, detail := condition(conditionFailing, configv1.ConditionFalse, "", ""), ""
	switch {
	case len(unavailable) > 0:
		failing, detail = operatorFailure("NotAvailable", "not available", unavailable)
	case len(degraded) > 0:
		failing, detail = operatorFailure("Degraded", "degraded", degraded)
	default:
		return report{failing, condition(configv1.OperatorProgressing, configv1.ConditionFalse, "", "Cluster version is "+version)}
	}
	return report{failing, condition(configv1.OperatorProgressing, configv1.ConditionFalse, failing.Reason,
		fmt.Sprintf("Error while reconciling %s: %s", version, detail))}
}
