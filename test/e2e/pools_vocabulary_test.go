// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// unpause is the event before a delayed pool is released.
const unpause = v1beta1.HookEventMachineConfigPoolUnpause

// withPool adds a pool of so many nodes to the masters and workers.
func withPool(name string, size int) func(*sim.Scenario) {
	return func(s *sim.Scenario) {
		s.CustomPools = append(s.CustomPools, sim.CustomPool{Name: name, Pool: sim.Pool{Size: size}})
	}
}

// withFewNodes leaves one master and one worker.
func withFewNodes(s *sim.Scenario) { s.Masters.Size, s.Workers.Size = 1, 1 }

// roleOf is the label by which a pool tells whose machines it has.
func roleOf(pool string) string { return mcfgv1.KubeletConfigRoleLabelPrefix + pool }

// poolOf selects one pool, by a plain map of labels.
func poolOf(name string) *v1beta1.PoolSelector {
	return &v1beta1.PoolSelector{Labels: map[string]string{roleOf(name): ""}}
}

// delaying has a job release a pool so long after its start at the earliest, and give up so long after it; zero for never.
func delaying(pool string, from, until time.Duration) func(*v1beta1.UpgradeJob) {
	return configured(withDelay(pool, from, until))
}

func withDelay(pool string, from, until time.Duration) func(*v1beta1.UpgradeJobConfig) {
	return func(config *v1beta1.UpgradeJobConfig) {
		delay := &v1beta1.DelayUpgrade{DelayMin: duration(from)}
		if until > 0 {
			delay.DelayMax = duration(until)
		}
		config.MachineConfigPools = append(config.MachineConfigPools, v1beta1.MachineConfigPoolConfig{MatchLabels: poolOf(pool), DelayUpgrade: delay})
	}
}

// pausingOnFailure has a job pause the pools of these labels when it fails, all of them without any.
func pausingOnFailure(labels map[string]string) func(*v1beta1.UpgradeJobConfig) {
	return func(config *v1beta1.UpgradeJobConfig) {
		config.PauseMachineConfigPoolsOnFailure = &v1beta1.PauseMachineConfigPoolsOnFailure{Enabled: true}
		if labels != nil {
			config.PauseMachineConfigPoolsOnFailure.Selector = &metav1.LabelSelector{MatchLabels: labels}
		}
	}
}

// ofJobs changes the configuration of the jobs of a config.
func ofJobs(changes ...func(*v1beta1.UpgradeJobConfig)) func(*v1beta1.UpgradeConfig) {
	return func(config *v1beta1.UpgradeConfig) {
		for _, change := range changes {
			change(&config.Spec.JobTemplate.Spec.Config)
		}
	}
}

func withoutVersion(job *v1beta1.UpgradeJob) { job.Spec.DesiredVersion = nil }

// poolState is something that a test wants of a pool.
type poolState func(*mcfgv1.MachineConfigPool) error

// heldBy expects that a job has paused the pool.
func heldBy(job *v1beta1.UpgradeJob) poolState {
	holder := client.ObjectKeyFromObject(job).String()
	return func(pool *mcfgv1.MachineConfigPool) error {
		if got := pool.Annotations[v1beta1.UpgradeJobAnnotation]; !pool.Spec.Paused || got != holder {
			return fmt.Errorf("pool %s is paused %t by %q, want by %s", pool.Name, pool.Spec.Paused, got, holder)
		}
		return nil
	}
}

// free expects that nobody has paused the pool.
func free(pool *mcfgv1.MachineConfigPool) error {
	if got, held := pool.Annotations[v1beta1.UpgradeJobAnnotation]; pool.Spec.Paused || held {
		return fmt.Errorf("pool %s is paused %t by %q, want not at all", pool.Name, pool.Spec.Paused, got)
	}
	return nil
}

// pausedByHand expects that somebody else than a job has paused the pool.
func pausedByHand(pool *mcfgv1.MachineConfigPool) error {
	if got, held := pool.Annotations[v1beta1.UpgradeJobAnnotation]; !pool.Spec.Paused || held {
		return fmt.Errorf("pool %s is paused %t by %q, want by somebody", pool.Name, pool.Spec.Paused, got)
	}
	return nil
}

// updated expects that all machines of the pool have come to its configuration.
func updated(pool *mcfgv1.MachineConfigPool) error {
	if st := pool.Status; st.UpdatedMachineCount != st.MachineCount || st.Configuration.Name != pool.Spec.Configuration.Name {
		return fmt.Errorf("pool %s has %d of %d machines updated, configuration %s, want %s",
			pool.Name, st.UpdatedMachineCount, st.MachineCount, st.Configuration.Name, pool.Spec.Configuration.Name)
	}
	return nil
}

func aPool(name string) *mcfgv1.MachineConfigPool {
	return &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// pool waits until a pool is in all of these states at once, and returns it.
func (c *cluster) pool(name string, states ...poolState) *mcfgv1.MachineConfigPool {
	c.t.Helper()
	pool := aPool(name)
	c.eventually("pool "+name, func() error {
		if err := env.Client.Get(c.ctx, client.ObjectKeyFromObject(pool), pool); err != nil {
			return err
		}
		return poolIs(pool, states...)
	})
	return pool
}

func poolIs(pool *mcfgv1.MachineConfigPool, states ...poolState) error {
	var errs []error
	for _, s := range states {
		errs = append(errs, s(pool))
	}
	return errors.Join(errs...)
}

// poolStays expects that a pool is in a state now and has been ever since it came to it.
func (c *cluster) poolStays(name string, state poolState) {
	c.t.Helper()
	c.pool(name, state)
	reached := false
	for _, r := range c.poolHistory(name) {
		err := state(r.object)
		if reached && err != nil {
			c.t.Errorf("at %s: %v", r.seen.Format(time.StampMilli), err)
		}
		reached = reached || err == nil
	}
}

// everHeld tells whether a job has ever paused a pool.
func (c *cluster) everHeld(name string, job *v1beta1.UpgradeJob) bool {
	c.t.Helper()
	return slices.ContainsFunc(c.poolHistory(name), func(r revision[*mcfgv1.MachineConfigPool]) bool { return heldBy(job)(r.object) == nil })
}

// handPause pauses a pool as a person does, or takes that back.
func (c *cluster) handPause(name string, paused bool) {
	c.t.Helper()
	edit(c, aPool(name), func(pool *mcfgv1.MachineConfigPool) { pool.Spec.Paused = paused })
}

// poolHistory returns all revisions of a pool. It waits until the journal has the present one.
func (c *cluster) poolHistory(name string) []revision[*mcfgv1.MachineConfigPool] {
	c.t.Helper()
	var all []revision[*mcfgv1.MachineConfigPool]
	c.eventually("the journal of pool "+name, func() error {
		live := aPool(name)
		c.get(live)
		all = slices.DeleteFunc(past.poolsSince(c.born), func(r revision[*mcfgv1.MachineConfigPool]) bool { return r.object.UID != live.UID })
		if !knows(all, live) {
			return fmt.Errorf("revision %s has not arrived", live.ResourceVersion)
		}
		return nil
	})
	return all
}

// turnOf returns the first revision of a pool that is as wanted. It fails the test if there is none.
func (c *cluster) turnOf(name string, state poolState) revision[*mcfgv1.MachineConfigPool] {
	c.t.Helper()
	var last error
	for _, r := range c.poolHistory(name) {
		if last = state(r.object); last == nil {
			return r
		}
	}
	c.t.Fatalf("pool %s was never as expected; last: %v", name, last)
	return revision[*mcfgv1.MachineConfigPool]{}
}

// releaseOf returns the revision in which a pool that was paused is no more.
func (c *cluster) releaseOf(name string) revision[*mcfgv1.MachineConfigPool] {
	c.t.Helper()
	paused := false
	return c.turnOf(name, func(pool *mcfgv1.MachineConfigPool) error {
		if paused && !pool.Spec.Paused {
			return nil
		}
		paused = pool.Spec.Paused
		return fmt.Errorf("it is paused: %t", paused)
	})
}

// holding expects that the job says that it holds pools paused, and which.
func holding(pools ...string) expectation {
	return func(job *v1beta1.UpgradeJob) error {
		return conditionIs(job.Status.Conditions, v1beta1.ConditionMachineConfigPoolsPaused, metav1.ConditionTrue, v1beta1.ReasonDelaySet, pools...)
	}
}

// leftPaused expects that a failed job says that it left these pools paused.
func leftPaused(reason string, pools ...string) expectation {
	return func(job *v1beta1.UpgradeJob) error {
		return conditionIs(job.Status.Conditions, v1beta1.ConditionMachineConfigPoolsPaused, metav1.ConditionTrue, reason, pools...)
	}
}

// holdingNothing expects that the job says that it holds no pool any more.
func holdingNothing() expectation {
	return turned(v1beta1.ConditionMachineConfigPoolsPaused, metav1.ConditionFalse, v1beta1.ReasonReleased)
}

// poolSaid expects something of what the job says of a pool.
func poolSaid(name string, check func(v1beta1.MachineConfigPoolStatus) error) expectation {
	return func(job *v1beta1.UpgradeJob) error {
		i := slices.IndexFunc(job.Status.Pools, func(p v1beta1.MachineConfigPoolStatus) bool { return p.Name == name })
		if i < 0 {
			return fmt.Errorf("the status has no pool %s: %+v", name, job.Status.Pools)
		}
		if err := check(job.Status.Pools[i]); err != nil {
			return fmt.Errorf("pool %s: %w; it is %+v", name, err, job.Status.Pools[i])
		}
		return nil
	}
}

// leftBehind waits until a config says that jobs left these pools paused, given as pool and job, and that it is so.
func (c *cluster) leftBehind(config *v1beta1.UpgradeConfig, pools ...[2]string) {
	c.t.Helper()
	c.eventually("UpgradeConfig "+config.Name, func() error {
		c.get(config)
		var got [][2]string
		for _, p := range config.Status.PausedMachineConfigPools {
			if p.Since.IsZero() {
				return fmt.Errorf("it does not say since when: %+v", p)
			}
			got = append(got, [2]string{p.Name, p.Job})
		}
		if !slices.Equal(got, pools) {
			return fmt.Errorf("it says that %v are left paused, want %v", got, pools)
		}
		if len(pools) > 0 {
			return conditionIs(config.Status.Conditions, v1beta1.ConditionMachineConfigPoolsPaused, metav1.ConditionTrue, v1beta1.ReasonLeftPaused,
				slices.Concat(pools[0][:], pools[len(pools)-1][:])...)
		}
		if meta.IsStatusConditionTrue(config.Status.Conditions, v1beta1.ConditionMachineConfigPoolsPaused) {
			return fmt.Errorf("it says that pools are left paused: %s", summary(config.Status.Conditions))
		}
		return nil
	})
}

// keyOf is how a job is named where it holds something.
func keyOf(job *v1beta1.UpgradeJob) string { return client.ObjectKeyFromObject(job).String() }

// phasesOf returns the phases of a job since its start, in order.
func (c *cluster) phasesOf(job *v1beta1.UpgradeJob) []v1beta1.Phase {
	c.t.Helper()
	var phases []v1beta1.Phase
	for _, r := range past.jobsSince(c.began) {
		if phase := r.object.Status.Phase; r.object.UID == job.UID && phase != "" && phase != v1beta1.PhasePending {
			phases = append(phases, phase)
		}
	}
	return slices.Compact(phases)
}

// describePools tells how the pools are, for a test that has failed.
func (c *cluster) describePools() string {
	list := &mcfgv1.MachineConfigPoolList{}
	if err := env.Client.List(c.ctx, list); err != nil {
		return err.Error()
	}
	lines := []string{"MachineConfigPools"}
	for i := range list.Items {
		pool := &list.Items[i]
		lines = append(lines, fmt.Sprintf("%s: paused %t by %q, %d of %d machines updated, %d unavailable, configuration %s, target %s", pool.Name,
			pool.Spec.Paused, pool.Annotations[v1beta1.UpgradeJobAnnotation], pool.Status.UpdatedMachineCount, pool.Status.MachineCount,
			pool.Status.UnavailableMachineCount, pool.Status.Configuration.Name, pool.Spec.Configuration.Name))
	}
	return strings.Join(lines, "\n")
}
