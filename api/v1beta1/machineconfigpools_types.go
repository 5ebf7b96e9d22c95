// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bounds of what an UpgradeJob tells about machine config pools.
const (
	// MaxPoolStatuses is how many pools the status of an UpgradeJob lists at most.
	MaxPoolStatuses = 64
	// MaxNodeStatuses is how many nodes it lists of each pool at most.
	MaxNodeStatuses = 10
)

// MachineConfigPoolConfig says how the machine config pools of some labels are upgraded.
type MachineConfigPoolConfig struct {
	// matchLabels selects pools by their labels: a plain map of labels, or a label selector with matchLabels and
	// matchExpressions. An empty one selects all, none selects none. A pool that several entries select belongs to the first of them.
	// +optional
	MatchLabels *PoolSelector `json:"matchLabels,omitempty"`

	// delayUpgrade lets the machines of the pools follow later than the rest of the cluster: the pools are paused until
	// then. The pool of the masters cannot be delayed.
	// +optional
	DelayUpgrade *DelayUpgrade `json:"delayUpgrade,omitempty"`
}

// DelayUpgrade is the time in which paused pools are released, counted from startAfter of the job.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.delayMin) && has(self.startAfter))",message="delayMin and startAfter are two spellings of one setting; set one of them"
// +kubebuilder:validation:XValidation:rule="!(has(self.delayMax) && has(self.startBefore))",message="delayMax and startBefore are two spellings of one setting; set one of them"
// +kubebuilder:validation:XValidation:rule="duration(has(self.delayMax) ? self.delayMax : has(self.startBefore) ? self.startBefore : '0s') == duration('0s') || duration(has(self.delayMax) ? self.delayMax : has(self.startBefore) ? self.startBefore : '0s') > duration(has(self.delayMin) ? self.delayMin : has(self.startAfter) ? self.startAfter : '0s')",message="delayMax must be longer than delayMin"
type DelayUpgrade struct {
	// delayMin is how long after startAfter of the job the pools are released at the earliest. They are not before the
	// control plane, the pools without a delay and the health of the cluster have been seen to. Absent or 0: at once.
	// +optional
	DelayMin *Duration `json:"delayMin,omitempty"`

	// delayMax is how long after startAfter of the job, or after it was resumed, the job fails if a pool could not be
	// released. Absent or 0: as long as the job may take.
	// +optional
	DelayMax *Duration `json:"delayMax,omitempty"`

	// startAfter is another spelling of delayMin.
	// +optional
	StartAfter *Duration `json:"startAfter,omitempty"`

	// startBefore is another spelling of delayMax.
	// +optional
	StartBefore *Duration `json:"startBefore,omitempty"`
}

// Min is how long pools stay paused at least; zero without a delay.
func (d *DelayUpgrade) Min() time.Duration {
	if d == nil {
		return 0
	}
	return d.DelayMin.Or(d.StartAfter.Or(0))
}

// Max is how long pools stay paused at most; zero if there is no such bound.
func (d *DelayUpgrade) Max() time.Duration {
	if d == nil {
		return 0
	}
	return d.DelayMax.Or(d.StartBefore.Or(0))
}

// PauseMachineConfigPoolsOnFailure keeps machines that are not upgraded yet from following a job that has failed.
type PauseMachineConfigPoolsOnFailure struct {
	// enabled pauses, when the job fails, the pools whose machines are not all upgraded. They stay paused until the next
	// job of this cluster succeeds, or somebody releases them. Pools that the control plane needs are left alone.
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// selector selects pools by their labels. Absent or empty: all.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// PoolState is how far a machine config pool has come.
// +kubebuilder:validation:Enum=Updated;NotRendered;Paused;Degraded;Updating
type PoolState string

// The states of a pool.
const (
	// PoolStateUpdated: every machine runs the configuration of the release.
	PoolStateUpdated PoolState = "Updated"
	// PoolStateNotRendered: the pool still has the configuration of another release.
	PoolStateNotRendered PoolState = "NotRendered"
	// PoolStatePaused: the pool has a new configuration and is paused.
	PoolStatePaused PoolState = "Paused"
	// PoolStateDegraded: a machine, or the rendering of the configuration, has failed.
	PoolStateDegraded PoolState = "Degraded"
	// PoolStateUpdating: machines are moved to the new configuration.
	PoolStateUpdating PoolState = "Updating"
)

// MachineConfigPoolStatus is how far a machine config pool has come.
type MachineConfigPoolStatus struct {
	// name of the MachineConfigPool.
	// +required
	Name string `json:"name"`

	// state of the pool on its way to the release that the cluster has come to.
	// +required
	State PoolState `json:"state"`

	// paused tells whether the pool is paused.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// pausedBy is the job that paused the pool, as namespace/name. Empty if it is not paused, or if somebody else paused it.
	// +optional
	PausedBy string `json:"pausedBy,omitempty"`

	// unpauseAfter is when this job releases the pool at the earliest. Absent for a pool without a delay.
	// +optional
	UnpauseAfter *metav1.Time `json:"unpauseAfter,omitempty"`

	// unpauseBefore is when this job fails if it could not release the pool. Absent if there is no such bound.
	// +optional
	UnpauseBefore *metav1.Time `json:"unpauseBefore,omitempty"`

	// machines of the pool.
	// +required
	Machines int32 `json:"machines"`

	// updated counts the machines that run the pool's target configuration.
	// +required
	Updated int32 `json:"updated"`

	// unavailable counts the machines that are not ready or take no pods.
	// +required
	Unavailable int32 `json:"unavailable"`

	// degraded counts the machines that could not apply their configuration.
	// +required
	Degraded int32 `json:"degraded"`

	// currentConfig is the configuration that all machines of the pool have come to last.
	// +optional
	CurrentConfig string `json:"currentConfig,omitempty"`

	// targetConfig is the configuration that the machines are to have.
	// +optional
	TargetConfig string `json:"targetConfig,omitempty"`

	// message says what else is to be known of the pool.
	// +optional
	Message string `json:"message,omitempty"`

	// nodesInWork counts the nodes that the machine-config operator works on.
	// +optional
	NodesInWork int32 `json:"nodesInWork,omitempty"`

	// nodes are the first of the nodes in work, by name.
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=name
	// +optional
	Nodes []NodeStatus `json:"nodes,omitempty"`
}

// NodePhase is what the machine-config operator does with a node.
// +kubebuilder:validation:Enum=Pending;Draining;Updating;Rebooting;Done;Degraded
type NodePhase string

// The phases of a node, in the order in which it goes through them.
const (
	// NodePhasePending: the node is to have a new configuration; nothing is done yet.
	NodePhasePending NodePhase = "Pending"
	// NodePhaseDraining: the pods of the node are evicted.
	NodePhaseDraining NodePhase = "Draining"
	// NodePhaseUpdating: files and operating system are written.
	NodePhaseUpdating NodePhase = "Updating"
	// NodePhaseRebooting: the node goes down and comes up again.
	NodePhaseRebooting NodePhase = "Rebooting"
	// NodePhaseDone: the node runs its new configuration and is about to take pods again.
	NodePhaseDone NodePhase = "Done"
	// NodePhaseDegraded: the machine-config daemon could not go on.
	NodePhaseDegraded NodePhase = "Degraded"
)

// NodeStatus is how far a node in work has come.
type NodeStatus struct {
	// name of the Node.
	// +required
	Name string `json:"name"`

	// phase of the node.
	// +required
	Phase NodePhase `json:"phase"`

	// since is when the node was first seen in that phase.
	// +required
	Since metav1.Time `json:"since"`

	// message is what the machine-config operator says of the node, or what holds its drain up.
	// +optional
	Message string `json:"message,omitempty"`
}

// PausedMachineConfigPool is a pool that a job which is over left paused.
type PausedMachineConfigPool struct {
	// name of the MachineConfigPool.
	// +required
	Name string `json:"name"`

	// job that paused it.
	// +required
	Job string `json:"job"`

	// since is when this was first seen.
	// +required
	Since metav1.Time `json:"since"`
}
