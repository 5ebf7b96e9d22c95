// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/pools"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// phase says that the job pauses, and that it goes on. Conditions tell of the other phases.
func (r *reporter) phase(job *v1beta1.UpgradeJob) {
	before, now := r.seenPhase, job.Status.Phase
	r.seenPhase = now
	if before == now || (before != v1beta1.PhasePaused && now != v1beta1.PhasePaused) {
		return
	}
	r.say("job", strong, fmt.Sprintf("phase %s instead of %s", now, before))
}

// pools says which pools are paused and released, as it stands on the pools.
func (r *reporter) pools(s sight) {
	for i := range s.pools {
		pool := &s.pools[i]
		if paused := pool.Spec.Paused; paused == r.paused[pool.Name] {
			continue
		}
		r.paused[pool.Name] = pool.Spec.Paused
		st := plain
		if pool.Spec.Paused {
			st = wait
		}
		r.say("pool", st, pausedOrReleased(pool, s.job))
	}
}

func pausedOrReleased(pool *mcfgv1.MachineConfigPool, job *v1beta1.UpgradeJob) string {
	switch holder := pools.Holder(pool); {
	case !pool.Spec.Paused:
		return pool.Name + " is released"
	case holder == job.LockKey():
		return pool.Name + " is paused by the job"
	case holder != "":
		return fmt.Sprintf("%s is paused by UpgradeJob %s", pool.Name, holder)
	}
	return pool.Name + " is paused by somebody else"
}

// stuck says what does not go on by itself.
func (r *reporter) stuck(job *v1beta1.UpgradeJob) {
	for i := range job.Status.Blockers {
		if b := &job.Status.Blockers[i]; steps.NeedsAttention(*b) && !r.told[b.Message] {
			r.told[b.Message] = true
			r.say("job", wait, b.Message)
		}
	}
}

// forceDrain says whether the NodeForceDrain can be used, and what it has deleted.
func (r *reporter) forceDrain(drain *v1beta1.NodeForceDrain) {
	for i := range drain.Status.Conditions {
		c := &drain.Status.Conditions[i]
		if !r.turned("drain/"+drain.Name, c) {
			continue
		}
		st := plain
		if c.Type == v1beta1.ConditionReady && c.Status != metav1.ConditionTrue {
			st = bad
		}
		r.say("drain", st, drain.Name+": "+describe(c))
	}
	for _, pod := range slices.Backward(drain.Status.LastDeletedPods) { // they are listed newest first
		text := fmt.Sprintf("%s deleted pod %s/%s of %s", drain.Name, pod.Namespace, pod.Name, pod.NodeName)
		if pod.Forced {
			text += " again, with a grace period of one second"
		}
		if key := text + pod.UID; !r.told[key] {
			r.told[key] = true
			r.say("drain", wait, text)
		}
	}
}
