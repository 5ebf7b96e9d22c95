// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package pools tells what a job has to do with each machine config pool: which
// setting is for which pool, when it is released, and who has paused it. It is
// pure: everything that it needs to know is given.
package pools

import (
	"fmt"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// Rules are the settings of a job about pools.
type Rules struct {
	entries   []entry
	onFailure labels.Selector // nil unless pools are to be paused on failure
}

type entry struct {
	selector labels.Selector
	delay    *v1beta1.DelayUpgrade
}

// Parse reads the settings. The error names the one that cannot be used.
func Parse(config v1beta1.UpgradeJobConfig) (*Rules, error) {
	r := &Rules{}
	for i, c := range config.MachineConfigPools {
		selector, err := c.MatchLabels.Selector()
		if err != nil {
			return nil, fmt.Errorf("machineConfigPools[%d].matchLabels: %w", i, err)
		}
		r.entries = append(r.entries, entry{selector, c.DelayUpgrade})
	}
	if p := config.PauseMachineConfigPoolsOnFailure; p != nil && p.Enabled {
		r.onFailure = labels.Everything()
		if p.Selector != nil {
			selector, err := metav1.LabelSelectorAsSelector(p.Selector)
			if err != nil {
				return nil, fmt.Errorf("pauseMachineConfigPoolsOnFailure.selector: %w", err)
			}
			r.onFailure = selector
		}
	}
	return r, nil
}

// MayPause tells whether a job of this config may ever pause a pool.
func MayPause(config v1beta1.UpgradeJobConfig) bool {
	p := config.PauseMachineConfigPoolsOnFailure
	return (p != nil && p.Enabled) ||
		slices.ContainsFunc(config.MachineConfigPools, func(c v1beta1.MachineConfigPoolConfig) bool { return c.DelayUpgrade.Min() > 0 })
}

// Rule is what is set for a pool.
type Rule struct {
	// Entries of machineConfigPools that select the pool, by index. The first counts.
	Entries []int
	// DelayMin and DelayMax of the pool; zero without.
	DelayMin, DelayMax time.Duration
	// Refused says why the pool is not delayed though it is set to be; empty if it is not, or may be.
	Refused string
}

// For returns what is set for the pool.
func (r *Rules) For(pool *mcfgv1.MachineConfigPool) Rule {
	var rule Rule
	for i, e := range r.entries {
		if e.selector.Matches(labels.Set(pool.Labels)) {
			rule.Entries = append(rule.Entries, i)
		}
	}
	if len(rule.Entries) == 0 {
		return rule
	}
	first := rule.Entries[0]
	delay := r.entries[first].delay
	switch {
	case delay.Min() <= 0:
	case openshift.RequiredForUpgrade(pool):
		rule.Refused = fmt.Sprintf("machineConfigPools[%d] delays pool %s, which cannot be: OpenShift needs it for the upgrade of the control plane. "+
			"The machine-config operator does not sync a required pool while it is paused, and is degraded by it, and the cluster-version operator waits for both.", first, pool.Name)
	default:
		rule.DelayMin, rule.DelayMax = delay.Min(), delay.Max()
	}
	return rule
}

// Delayed tells whether the pool is to follow later than the others.
func (r Rule) Delayed() bool { return r.DelayMin > 0 }

// UnpauseAfter is when the job releases the pool at the earliest.
func (r Rule) UnpauseAfter(job *v1beta1.UpgradeJob) time.Time {
	return job.Spec.StartAfter.Add(r.DelayMin)
}

// UnpauseBefore is when the job fails if it could not release the pool; false if there is no such time. A job that was
// resumed has as long again.
func (r Rule) UnpauseBefore(job *v1beta1.UpgradeJob) (time.Time, bool) {
	from := job.Spec.StartAfter.Time
	if resume := job.LastResume(); resume != nil && resume.Time.After(from) {
		from = resume.Time.Time
	}
	return from.Add(r.DelayMax), r.DelayMax > 0
}

// Note says which settings for the pool do not count; empty if all do.
func (r Rule) Note() string {
	if len(r.Entries) < 2 {
		return r.Refused
	}
	indexes := make([]string, 0, len(r.Entries))
	for _, i := range r.Entries {
		indexes = append(indexes, fmt.Sprint(i))
	}
	note := fmt.Sprintf("Entries %s of machineConfigPools select the pool; the first of them counts.", strings.Join(indexes, ", "))
	return strings.TrimSpace(note + " " + r.Refused)
}

// Refused returns why a pool cannot be delayed as it is set to be; empty if all can.
func (r *Rules) Refused(all []mcfgv1.MachineConfigPool) string {
	for i := range all {
		if why := r.For(&all[i]).Refused; why != "" {
			return why
		}
	}
	return ""
}

// PausesOnFailure tells whether pools are to be paused when the job fails.
func (r *Rules) PausesOnFailure() bool { return r.onFailure != nil }

// PausedOnFailure tells whether the pool is to be paused when the job fails before the pool is updated. A pool that the
// control plane needs never is: the cluster would stay between two releases.
func (r *Rules) PausedOnFailure(pool *mcfgv1.MachineConfigPool) bool {
	return r.onFailure != nil && !openshift.RequiredForUpgrade(pool) && r.onFailure.Matches(labels.Set(pool.Labels))
}

// Names is the job, as namespace/name, that stands on the pool: it has paused it. Empty if there is none.
func Names(pool *mcfgv1.MachineConfigPool) string {
	return pool.Annotations[v1beta1.UpgradeJobAnnotation]
}

// Holder is the job, as namespace/name, in whose name the pool is paused; empty if it is not paused, or by somebody else.
func Holder(pool *mcfgv1.MachineConfigPool) string {
	if !pool.Spec.Paused {
		return ""
	}
	return Names(pool)
}

// HeldBy returns the names of the pools that are paused in the name of the job, as namespace/name.
func HeldBy(all []mcfgv1.MachineConfigPool, job string) []string {
	var names []string
	for i := range all {
		if Holder(&all[i]) == job {
			names = append(names, all[i].Name)
		}
	}
	return names
}
