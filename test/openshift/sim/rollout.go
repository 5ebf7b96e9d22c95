// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
)

// rollout is how far the operators are on the way to a release.
type rollout struct {
	operators map[string]*configv1.ClusterOperator
	version   string
}

// reports reports whether the operator says that it runs the release.
func (r rollout) reports(name string) bool {
	co := r.operators[name]
	return co != nil && operatorVersion(co) == r.version
}

// started reports whether the operator updates to the release.
func (r rollout) started(name string) bool {
	co := r.operators[name]
	if co == nil {
		return false
	}
	c := findCondition(co.Status.Conditions, configv1.OperatorProgressing)
	return c != nil && c.Status == configv1.ConditionTrue && strings.HasPrefix(c.Message, workingTowards(name, r.version))
}

// applied reports whether the CVO is done with the operator's manifests: it
// reports the version, and is neither unavailable nor degraded.
func (r rollout) applied(name string) bool {
	return r.reports(name) && !r.unavailable(name) && !r.degraded(name)
}

func (r rollout) unavailable(name string) bool {
	co := r.operators[name]
	return co == nil || !conditionIs(co.Status.Conditions, configv1.OperatorAvailable, configv1.ConditionTrue)
}

func (r rollout) degraded(name string) bool {
	co := r.operators[name]
	return co != nil && conditionIs(co.Status.Conditions, configv1.OperatorDegraded, configv1.ConditionTrue)
}

// current returns the index of the level that the CVO works on, the number of
// levels when it is through. A level that is left behind stays behind: an
// operator that turns degraded later does not bring the CVO back to it.
func (r rollout) current() int {
	all := levels()
	begun := -1
	for i, level := range all {
		for _, op := range level {
			if r.reports(op.name) || r.started(op.name) {
				begun = i
			}
		}
	}
	for i, level := range all {
		for _, op := range level {
			if !r.reports(op.name) || (i >= begun && !r.applied(op.name)) {
				return i
			}
		}
	}
	return len(all)
}

// reachedLevel returns the run level that the CVO has come to: operators of
// later ones do not update yet.
func (r rollout) reachedLevel() int {
	all := levels()
	current := min(r.current(), len(all)-1)
	return all[current][0].level
}

// progress is what the CVO says about a rollout.
type progress struct {
	complete bool
	// operators is the number of operators that are done.
	operators int
	// manifests is the number of manifests that are done.
	manifests int
	// unavailable, degraded and updating name the operators that it waits for.
	unavailable, degraded, updating []string
}

// progress sums the rollout up.
func (r rollout) progress() progress {
	all := levels()
	current := r.current()
	if current == len(all) {
		return progress{complete: true, operators: len(clusterOperators), manifests: len(clusterOperators) * manifestsPerOperator}
	}
	p := progress{}
	for i, level := range all[:current+1] {
		for _, op := range level {
			switch {
			case i < current || r.applied(op.name):
				p.operators++
				p.manifests += manifestsPerOperator
				continue
			case r.unavailable(op.name):
				p.unavailable = append(p.unavailable, op.name)
			case r.degraded(op.name):
				p.degraded = append(p.degraded, op.name)
			case r.started(op.name):
				p.updating = append(p.updating, op.name)
			}
			// All manifests but the ClusterOperator itself, which is waited for.
			p.manifests += manifestsPerOperator - 1
		}
	}
	return p
}

// counted is the CVO's message about its progress, without what it waits for.
func (p progress) counted(version string) string {
	total := len(clusterOperators) * manifestsPerOperator
	return fmt.Sprintf("Working towards %s: %d of %d done (%d%% complete)", version, p.manifests, total, p.manifests*100/total)
}
