// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
)

// operatorVersion returns the release that an operator says it runs.
func operatorVersion(co *configv1.ClusterOperator) string {
	for _, v := range co.Status.Versions {
		if v.Name == "operator" {
			return v.Version
		}
	}
	return ""
}

// workingTowards is the message of an operator that updates.
func workingTowards(name, version string) string {
	return name + " is working towards " + version
}

// planOperators lets every cluster operator do its part: update when the CVO
// reaches it, and show its faults.
func planOperators(v *view, sw *stopwatch) []change {
	if len(v.version.Status.History) == 0 {
		return nil
	}
	r := rollout{operators: v.operators, version: v.version.Status.History[0].Version}
	level := r.reachedLevel()
	down := v.mastersDown()
	var changes []change
	for _, op := range clusterOperators {
		co := v.operators[op.name]
		if co == nil {
			continue
		}
		next := co.DeepCopy()
		o := operator{op: op, view: v, rollout: r, reached: op.level <= level, watch: sw, fault: v.scenario.operatorFault(op.name, r.version)}
		o.update(&next.Status)
		o.judge(&next.Status, down)
		if !reflect.DeepEqual(next.Status, co.Status) {
			changes = append(changes, change{before: co, after: next, part: status, note: operatorNote(co, next)})
		}
	}
	return changes
}

// operator is one cluster operator at work.
type operator struct {
	op      clusterOperator
	view    *view
	rollout rollout
	// reached means that the CVO has come to the operator's manifests.
	reached bool
	watch   *stopwatch
	fault   OperatorFault
}

// operatorFault returns what is wrong with an operator in a cluster that runs
// or moves to version.
func (s *Scenario) operatorFault(name, version string) OperatorFault {
	for _, fault := range s.Operators {
		if fault.Name == name && (fault.OnlyTowards == "" || fault.OnlyTowards == version) {
			return fault
		}
	}
	return OperatorFault{}
}

// update does the operator's part of the rollout.
func (o operator) update(st *configv1.ClusterOperatorStatus) {
	name, version := o.op.name, o.rollout.version
	if o.rollout.reports(name) || !o.reached {
		o.set(st, condition(configv1.OperatorProgressing, configv1.ConditionFalse, reasonAsExpected, ""))
		return
	}
	message := workingTowards(name, version)
	duration := o.view.scenario.operatorTime(name)
	key, state := "operator/"+name, version
	if o.rollout.started(name) && o.watch.passed(key, state, duration) && !o.fault.NeverReports && o.finished() {
		st.Versions = operatorVersions(name, version)
		o.watch.forget(key)
		o.set(st, condition(configv1.OperatorProgressing, configv1.ConditionFalse, reasonAsExpected, ""))
		return
	}
	if total := o.view.scenario.Noise.ProgressMessages; total > 0 {
		if n := int(o.watch.share(key, state, duration) * float64(total+1)); n > 0 {
			message += fmt.Sprintf(": %d of %d deployments updated", min(n, total), total+1)
		}
		for n := 1; n <= total; n++ {
			o.watch.passed(key, state, duration*time.Duration(n)/time.Duration(total+1))
		}
	}
	o.set(st, condition(configv1.OperatorProgressing, configv1.ConditionTrue, "Updating", message))
}

// finished reports whether the operator's own work is done. That of the
// machine-config operator is the required pools.
func (o operator) finished() bool {
	if o.op.name != machineConfigOperator {
		return true
	}
	for name, pool := range o.view.pools {
		if requiredPool(pool) && !poolRuns(pool, o.view.renderedName(name, o.rollout.version)) {
			return false
		}
	}
	return true
}

// judge says how the operator is.
func (o operator) judge(st *configv1.ClusterOperatorStatus, mastersDown []string) {
	available := condition(configv1.OperatorAvailable, configv1.ConditionTrue, reasonAsExpected, "All is well")
	degraded := condition(configv1.OperatorDegraded, configv1.ConditionFalse, reasonAsExpected, "All is well")
	upgradeable := condition(configv1.OperatorUpgradeable, configv1.ConditionTrue, reasonAsExpected, "All is well")
	if o.op.name == machineConfigOperator {
		degraded, upgradeable = poolTrouble(o.view.pools, o.rollout.version, degraded, upgradeable)
	}
	if len(mastersDown) > 0 && o.view.scenario.Noise.OperatorsFlap && flappingOperators[o.op.name] {
		degraded = condition(configv1.OperatorDegraded, configv1.ConditionTrue, "NodeController_MasterNodesReady", fmt.Sprintf(
			"NodeControllerDegraded: The master nodes not ready: node %q not ready because NodeStatusUnknown (Kubelet stopped posting node status.)", strings.Join(mastersDown, "\", \"")))
	}
	if o.fault.Unavailable {
		available = o.faulty(configv1.OperatorAvailable, configv1.ConditionFalse, "NoPodsAvailable", "no pods of the operator's deployment are available")
	}
	if o.fault.Degraded {
		degraded = o.faulty(configv1.OperatorDegraded, configv1.ConditionTrue, "RolloutStuck", "the operator's rollout is not making progress")
	}
	if o.fault.NotUpgradeable {
		upgradeable = o.faulty(configv1.OperatorUpgradeable, configv1.ConditionFalse, "DeprecatedConfiguration", "remove the deprecated configuration before updating to the next minor version")
	}
	o.set(st, available)
	o.set(st, degraded)
	o.set(st, upgradeable)
}

func (o operator) set(st *configv1.ClusterOperatorStatus, c configv1.ClusterOperatorStatusCondition) {
	setCondition(&st.Conditions, c, o.watch.now)
}

// faulty is a condition with the fault's reason and message, or those given.
func (o operator) faulty(t configv1.ClusterStatusConditionType, st configv1.ConditionStatus, reason, message string) configv1.ClusterOperatorStatusCondition {
	if o.fault.Reason != "" {
		reason = o.fault.Reason
	}
	if o.fault.Message != "" {
		message = o.fault.Message
	}
	return condition(t, st, reason, message)
}

// poolTrouble turns the machine-config operator's conditions by the pools' state.
func poolTrouble(pools map[string]*mcfgv1.MachineConfigPool, version string, degraded, upgradeable configv1.ClusterOperatorStatusCondition) (d, u configv1.ClusterOperatorStatusCondition) {
	for _, name := range sortedKeys(pools) {
		pool := pools[name]
		if requiredPool(pool) && pool.Spec.Paused && pool.Spec.Configuration.Name != pool.Status.Configuration.Name {
			degraded = condition(configv1.OperatorDegraded, configv1.ConditionTrue, "RequiredPoolsFailed", fmt.Sprintf(
				"Failed to resync %s because: required MachineConfigPool %s is paused and can not sync until it is unpaused", version, name))
		}
		if !poolConditionTrue(pool, mcfgv1.MachineConfigPoolDegraded) {
			continue
		}
		upgradeable = condition(configv1.OperatorUpgradeable, configv1.ConditionFalse, "DegradedPool",
			"One or more machine config pools are degraded, please see `oc get mcp` for further details and resolve before upgrading")
		if requiredPool(pool) {
			degraded = condition(configv1.OperatorDegraded, configv1.ConditionTrue, "RequiredPoolsFailed", fmt.Sprintf(
				"Unable to apply %s: error during syncRequiredMachineConfigPools: pool %s is degraded", version, name))
		}
	}
	return degraded, upgradeable
}

// operatorTime returns how long an operator takes to update.
func (s *Scenario) operatorTime(name string) time.Duration {
	if d, set := s.Timings.Operators[name]; set {
		return time.Duration(d)
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	return time.Duration(float64(s.Timings.Operator) * (0.5 + float64(h.Sum32()%1000)/1000))
}

// operatorVersions is what an operator of a release reports: the release, and
// for those that run Kubernetes its version.
func operatorVersions(name, version string) []configv1.OperandVersion {
	versions := []configv1.OperandVersion{{Name: "operator", Version: version}}
	switch name {
	case "kube-apiserver", "kube-controller-manager", "kube-scheduler":
		versions = append(versions, configv1.OperandVersion{Name: name, Version: kubernetesVersion(version)})
	}
	return versions
}

// operatorNote tells what happened to an operator, nothing about its routine.
func operatorNote(before, after *configv1.ClusterOperator) string {
	var told []string
	for _, c := range after.Status.Conditions {
		old := findCondition(before.Status.Conditions, c.Type)
		if c.Type != configv1.OperatorProgressing && old != nil && old.Status != c.Status {
			told = append(told, fmt.Sprintf("%s=%s (%s)", c.Type, c.Status, c.Reason))
		}
	}
	if operatorVersion(before) != operatorVersion(after) {
		told = append(told, "updated to "+operatorVersion(after))
	}
	if len(told) == 0 {
		return ""
	}
	return fmt.Sprintf("operator %s: %s", after.Name, strings.Join(told, ", "))
}
