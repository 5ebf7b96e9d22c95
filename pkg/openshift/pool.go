// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"fmt"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
)

// ReleaseImageVersionAnnotation stands on a rendered MachineConfig and names the release that rendered it.
const ReleaseImageVersionAnnotation = "machineconfiguration.openshift.io/release-image-version"

// PoolState says how far a MachineConfigPool has come on its way to a release.
type PoolState int

const (
	// PoolUpdated means: every machine runs the pool's configuration, which is of the release.
	PoolUpdated PoolState = iota
	// PoolNotRendered means: the pool's configuration is still that of another release, whatever its condition Updated says.
	PoolNotRendered
	// PoolPaused means: the pool has a new configuration but is paused.
	PoolPaused
	// PoolDegraded means: a machine or the rendering of the configuration has failed.
	PoolDegraded
	// PoolUpdating means: machines are being moved to the new configuration.
	PoolUpdating
)

// String is the state in one word.
func (s PoolState) String() string {
	return [...]string{"Updated", "NotRendered", "Paused", "Degraded", "Updating"}[s]
}

// PoolProgress is the state of a pool with the words for it.
type PoolProgress struct {
	State PoolState
	// Message explains the state to people; it does not change while the pool's status does not.
	Message string
	// Rendered tells whether the pool's configuration is of the release, and the machine-config operator has taken it up; true too where it
	// is not known of which release it is. Only JudgePool says it: PoolAtRest knows no release.
	Rendered bool
	// OnRelease counts the machines that run the release; only JudgePool does. The machine-config operator counts those that have the
	// pool's configuration, of whatever release it is: before it is rendered anew these are machines of the old one.
	OnRelease int32
}

// JudgePool tells how far the pool has come. renderedBy is the version of the release that rendered
// pool.spec.configuration, or empty where that is not known; the release is the one that the cluster-version
// operator has completed.
//
// The machine-config operator renders a pool's configuration anew some time after the release has moved. Until then
// the pool is Updated, with all machines, for the old configuration: that must not count.
func JudgePool(pool *mcfgv1.MachineConfigPool, renderedBy, version string) PoolProgress {
	st, p := &pool.Status, PoolProgress{}
	p.Rendered = st.ObservedGeneration >= pool.Generation && (renderedBy == "" || version == "" || renderedBy == version)
	if p.Rendered {
		p.OnRelease = st.UpdatedMachineCount
	}
	machines := machinesUpdated(p.OnRelease, pool)
	complete := p.Rendered &&
		st.Configuration.Name == pool.Spec.Configuration.Name &&
		st.UpdatedMachineCount == st.MachineCount &&
		poolCondition(pool, mcfgv1.MachineConfigPoolUpdated) != nil

	switch {
	case complete:
		p.State, p.Message = PoolUpdated, machines
	case poolDegraded(pool) != nil:
		p.State, p.Message = PoolDegraded, machines+", "+describeDegraded(pool)
	case pool.Spec.Paused:
		p.State, p.Message = PoolPaused, machines+", the pool is paused"
	case !p.Rendered:
		p.State, p.Message = PoolNotRendered, "the configuration of the new release is not rendered yet"
	default:
		p.State, p.Message = PoolUpdating, fmt.Sprintf("%s, %d unavailable", machines, st.UnavailableMachineCount)
	}
	return p
}

// MachinesUpdated tells whether all machines of the pool have its configuration, whether or not one of them is unavailable at present.
func MachinesUpdated(pool *mcfgv1.MachineConfigPool) bool {
	st := &pool.Status
	return st.ObservedGeneration >= pool.Generation && st.UpdatedMachineCount == st.MachineCount && st.Configuration.Name == pool.Spec.Configuration.Name
}

// PoolAtRest judges a pool apart from any release: PoolUpdated if it has nothing to do, PoolDegraded whatever else it
// does, PoolPaused if it is held back from its configuration, and else PoolUpdating.
func PoolAtRest(pool *mcfgv1.MachineConfigPool) PoolProgress {
	st, machines := &pool.Status, machinesUpdated(pool.Status.UpdatedMachineCount, pool)
	counted := st.UpdatedMachineCount == st.MachineCount
	complete := counted && st.Configuration.Name == pool.Spec.Configuration.Name
	updating := poolCondition(pool, mcfgv1.MachineConfigPoolUpdating) != nil

	switch {
	case poolDegraded(pool) != nil:
		return PoolProgress{State: PoolDegraded, Message: machines + ", " + describeDegraded(pool)}
	case pool.Spec.Paused && !complete:
		return PoolProgress{State: PoolPaused, Message: machines}
	case pool.Spec.Paused, complete && !updating && st.ObservedGeneration >= pool.Generation:
		return PoolProgress{State: PoolUpdated, Message: machines}
	case counted && !updating: // they were counted before the change
		return PoolProgress{State: PoolUpdating, Message: "a change has not reached its machines yet"}
	case st.UnavailableMachineCount > 0: // also those of the configuration: a pool is not updated while one is away
		return PoolProgress{State: PoolUpdating, Message: fmt.Sprintf("%s, %d unavailable", machines, st.UnavailableMachineCount)}
	default:
		return PoolProgress{State: PoolUpdating, Message: machines}
	}
}

// RequiredForUpgrade tells whether the cluster-version operator completes a release only with this pool.
func RequiredForUpgrade(pool *mcfgv1.MachineConfigPool) bool {
	_, required := pool.Labels["operator.machineconfiguration.openshift.io/required-for-upgrade"]
	return required || pool.Name == "master"
}

func machinesUpdated(updated int32, pool *mcfgv1.MachineConfigPool) string {
	return fmt.Sprintf("%d of %d machines updated", updated, pool.Status.MachineCount)
}

// describeDegraded says why a degraded pool is.
func describeDegraded(pool *mcfgv1.MachineConfigPool) string {
	c := poolDegraded(pool)
	return strings.TrimSuffix(fmt.Sprintf("%s: %s", c.Type, c.Message), ": ")
}

// poolDegraded returns the most telling condition that is True of a pool that cannot go on, or nil.
func poolDegraded(pool *mcfgv1.MachineConfigPool) *mcfgv1.MachineConfigPoolCondition {
	for _, t := range []mcfgv1.MachineConfigPoolConditionType{
		mcfgv1.MachineConfigPoolNodeDegraded, mcfgv1.MachineConfigPoolRenderDegraded, mcfgv1.MachineConfigPoolDegraded,
	} {
		if c := poolCondition(pool, t); c != nil {
			return c
		}
	}
	return nil
}

// poolCondition returns the pool's condition of that type if it is True.
func poolCondition(pool *mcfgv1.MachineConfigPool, t mcfgv1.MachineConfigPoolConditionType) *mcfgv1.MachineConfigPoolCondition {
	for i := range pool.Status.Conditions {
		if c := &pool.Status.Conditions[i]; c.Type == t && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}
