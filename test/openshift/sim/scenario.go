// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// Scenario describes the simulated cluster: what is installed, which updates
// are offered, how long everything takes, and what goes wrong. Fields marked
// "installation" are read by Install only; all others act at once when the
// scenario changes.
type Scenario struct {
	// Version is the OpenShift version that is installed, like "4.18.1" (installation).
	Version string `json:"version"`
	// Channel is the update channel in the ClusterVersion's spec (installation).
	Channel string `json:"channel"`
	// Channels are the channels that every release says it is in that has none of its
	// own. With a channel in the ClusterVersion's spec in which its version is not, no
	// updates are retrieved (RetrievedUpdates=False, VersionNotFound).
	Channels []string `json:"channels"`

	// Masters is the control plane, pool "master" (installation).
	Masters Pool `json:"masters"`
	// Workers is the pool "worker" (installation).
	Workers Pool `json:"workers"`
	// CustomPools are further pools of worker nodes, each with its own nodes (installation).
	CustomPools []CustomPool `json:"customPools,omitempty"`

	// MachineConfigNodes installs the kind MachineConfigNode and an object of it for
	// each node, by which the MCO reports on the node's update (installation). False
	// removes the kind, and there is none as on clusters before 4.20 or so.
	MachineConfigNodes bool `json:"machineConfigNodes,omitempty"`

	// MachineAPI installs the kinds MachineSet and Machine, MachineSets, and plays
	// their controllers; whether it does is read at the installation, its times and
	// faults act at once. Nil removes the kinds, as on clusters without that capability.
	MachineAPI *MachineAPI `json:"machineAPI,omitempty"`
	// FileIntegrity installs the kind FileIntegrity and the object of it that managed
	// clusters have (installation). Nil removes the kind.
	FileIntegrity *FileIntegrity `json:"fileIntegrity,omitempty"`

	// Upstream is the URL of the update service in the ClusterVersion's spec
	// (installation). See StartUpdateService.
	Upstream string `json:"upstream,omitempty"`
	// Graph is how the update service answers, and the CVO asks for the graph.
	Graph Graph `json:"graph,omitzero"`
	// Updates is the update graph: every release that can be reached. An update
	// is withdrawn by removing it.
	Updates []OfferedUpdate `json:"updates"`
	// UpdatesUnknown makes the retrieval of updates fail.
	UpdatesUnknown *UpdatesUnknown `json:"updatesUnknown,omitempty"`
	// EmptyUpdatesAsList writes an empty list of available updates as [].
	// False writes null, as a real CVO does when the graph offers nothing.
	EmptyUpdatesAsList bool `json:"emptyUpdatesAsList"`

	Timings Timings `json:"timings"`
	Noise   Noise   `json:"noise"`

	// Operators lists what is wrong with cluster operators.
	Operators []OperatorFault `json:"operators,omitempty"`
	// Releases lists releases that the CVO does not take.
	Releases []ReleaseFault `json:"releases,omitempty"`
	// Nodes lists what is special about nodes.
	Nodes []NodeFault `json:"nodes,omitempty"`
}

// Pool is a machine config pool and its nodes. The nodes are called
// <pool>-0, <pool>-1 and so on, spread over three zones.
type Pool struct {
	// Size is the number of nodes.
	Size int `json:"size"`
	// MaxUnavailable is written to the pool: a number, or a percentage like
	// "25%". Unset means 1.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// Paused installs the pool paused.
	Paused bool `json:"paused,omitempty"`
	// RenderDelay is added to Timings.Render for this pool, and is not limited
	// to the installation. A long one lets the CVO complete while the pool still
	// says Updated=True on its old rendered configuration.
	RenderDelay Duration `json:"renderDelay,omitempty"`
}

// CustomPool is a pool besides master and worker.
type CustomPool struct {
	// Name of the pool, of its node role and the prefix of its nodes' names.
	Name string `json:"name"`
	// Labels are added to those of the MachineConfigPool (installation). With the
	// label operator.machineconfiguration.openshift.io/required-for-upgrade an
	// update is complete only with this pool.
	Labels map[string]string `json:"labels,omitempty"`
	Pool   `json:",inline"`
}

// OfferedUpdate is a release in the update graph.
type OfferedUpdate struct {
	// Version is offered to clusters of an older version.
	Version string `json:"version"`
	// Image is the release's pull spec. Empty derives one from the version (see Image).
	Image string `json:"image,omitempty"`
	// Channels are the channels that the release is in, and says so. Empty means
	// Scenario.Channels.
	Channels []string `json:"channels,omitempty"`
	// From limits the versions that the update is offered to. Empty offers it
	// to every older version of the same and of the previous minor version.
	From []string `json:"from,omitempty"`
	// Risks make the update conditional. It is listed in conditionalUpdates, and
	// also in availableUpdates when no risk applies.
	Risks []Risk `json:"risks,omitempty"`
}

// Risk is a reason for not recommending an update to some clusters.
type Risk struct {
	// Name is a CamelCase reason.
	Name string `json:"name"`
	// URL of the explanation. Empty derives one from the name.
	URL string `json:"url,omitempty"`
	// Message explains the risk in a sentence.
	Message string `json:"message"`
	// Applies says whether the risk applies to this cluster: Yes, No or Unknown.
	Applies Applies `json:"applies"`
}

// Applies says whether a risk applies to the cluster.
type Applies string

// The values of Applies. Unknown stands for a rule that could not be evaluated.
const (
	AppliesYes     Applies = "Yes"
	AppliesNo      Applies = "No"
	AppliesUnknown Applies = "Unknown"
)

// UpdatesUnknown makes RetrievedUpdates False.
type UpdatesUnknown struct {
	// Reason of the condition, like RemoteFailed or VersionNotFound.
	Reason string `json:"reason"`
	// Message of the condition. Empty uses one that fits the reason.
	Message string `json:"message,omitempty"`
	// KeepCached keeps the updates that were offered before, as a real CVO does
	// when a later poll fails. False lists null.
	KeepCached bool `json:"keepCached,omitempty"`
}

// Timings are the durations of the simulated work, as Go duration strings.
type Timings struct {
	// Accept passes from a new desiredUpdate until the CVO has retrieved,
	// verified and checked the release.
	Accept Duration `json:"accept"`
	// Operator is the average time that a cluster operator takes to update; each
	// one takes between half and one and a half of it, always the same.
	Operator Duration `json:"operator"`
	// Operators sets the exact time of single operators, by name.
	Operators map[string]Duration `json:"operators,omitempty"`
	// Graph passes between the CVO's move to a release and the new list of
	// available updates.
	Graph Duration `json:"graph"`
	// Render passes from the machine-config operator's start until the pools
	// get their new rendered configurations.
	Render Duration `json:"render"`
	// Drain, Apply and Reboot are the times of each phase of a node's update. A
	// drain takes Drain at least, and longer when pods on the node are not gone by
	// then.
	Drain  Duration `json:"drain"`
	Apply  Duration `json:"apply"`
	Reboot Duration `json:"reboot"`
	// DrainRetry passes until the eviction of a pod that was refused, mostly by a
	// PodDisruptionBudget, is tried again (5s on real clusters). 0 means 200ms.
	DrainRetry Duration `json:"drainRetry"`
	// DrainFails is how long a drain may take until its node is degraded (1h on
	// real clusters, and the reason says so whatever is set here). The drain goes
	// on, and the node recovers when it succeeds. 0 never does it.
	DrainFails Duration `json:"drainFails"`
	// Upgradeable passes until the ClusterVersion shows a change of its
	// operators' Upgradeable conditions (7 to 15 s on real clusters).
	Upgradeable Duration `json:"upgradeable"`
	// Reconcile passes until the ClusterVersion notices an operator's change, or
	// a new generation, while no update is running (up to some minutes on real
	// clusters).
	Reconcile Duration `json:"reconcile"`
	// DegradedFails is how long the CVO waits for a degraded operator in an
	// update before Failing turns True (40m on real clusters, and the messages
	// say so whatever is set here).
	DegradedFails Duration `json:"degradedFails"`
	// SlowUnknown is how long the CVO waits for an operator in an update before
	// Failing turns Unknown (30m on real clusters; three times as long for
	// machine-config).
	SlowUnknown Duration `json:"slowUnknown"`
}

// Noise is what a healthy cluster does besides its work.
type Noise struct {
	// OperatorsFlap turns the operators of the control plane Degraded for as long
	// as a master is not ready.
	OperatorsFlap bool `json:"operatorsFlap"`
	// ProgressMessages is the number of times that each operator changes the
	// message of its Progressing condition during an update.
	ProgressMessages int `json:"progressMessages"`
	// FailingFlap is the interval at which a Failing condition that is not
	// False turns False for a moment, as it does with each of a real CVO's
	// retries (about 3m). 0 never does it.
	FailingFlap Duration `json:"failingFlap"`
}

// OperatorFault is what is wrong with one cluster operator. Removing the fault
// mends the operator.
type OperatorFault struct {
	// Name of the ClusterOperator.
	Name string `json:"name"`
	// Degraded turns Degraded True.
	Degraded bool `json:"degraded,omitempty"`
	// Unavailable turns Available False.
	Unavailable bool `json:"unavailable,omitempty"`
	// NotUpgradeable turns Upgradeable False.
	NotUpgradeable bool `json:"notUpgradeable,omitempty"`
	// NeverReports keeps the operator progressing: it never reports the version
	// that it updates to.
	NeverReports bool `json:"neverReports,omitempty"`
	// Reason and Message of the conditions that the fault turns. Empty uses some
	// that fit.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// OnlyTowards limits the fault to clusters that update to, or run, that version.
	OnlyTowards string `json:"onlyTowards,omitempty"`
}

// ReleaseFault makes the CVO refuse a release, or hang while it retrieves it.
type ReleaseFault struct {
	// Version of the release.
	Version string `json:"version"`
	// Reason of ReleaseAccepted=False: RetrievePayload, VerifyPayloadVersion,
	// LoadPayload or PreconditionChecks.
	Reason string `json:"reason,omitempty"`
	// Message says why. Empty uses one that fits the reason.
	Message string `json:"message,omitempty"`
	// Stuck leaves the ClusterVersion's status as it is for as long as the fault
	// lasts, as a real CVO does while the pod that retrieves the release is pending.
	Stuck bool `json:"stuck,omitempty"`
}

// NodeFault is what is special about one node.
type NodeFault struct {
	// Name of the node.
	Name string `json:"name"`
	// Degraded is the reason that the node gives for not applying its new
	// configuration. Empty applies it.
	Degraded string `json:"degraded,omitempty"`
	// HangsDraining never finishes the node's drain, though its pods are evicted.
	HangsDraining bool `json:"hangsDraining,omitempty"`
	// AbandonsDrain gives the node's drain up, once for each configuration, so long
	// after it began and if it is not done by then: the node is uncordoned, and
	// Timings.DrainRetry later the very same drain is asked for again. So it shows
	// when a pool's target goes back and forth. 0 never does it.
	AbandonsDrain Duration `json:"abandonsDrain,omitempty"`
	// StaysDown never brings the node back from its reboot.
	StaysDown bool `json:"staysDown,omitempty"`
	// Slow multiplies the times of the node. 0 means 1.
	Slow float64 `json:"slow,omitempty"`
}

// YAML returns the whole scenario as YAML, as Parse reads it.
func (s Scenario) YAML() (string, error) {
	data, err := yaml.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("marshal scenario: %w", err)
	}
	return string(data), nil
}

// Parse reads a scenario in YAML or JSON. Fields that data does not mention keep
// their value in base; unknown fields and invalid values are errors.
func Parse(data []byte, base Scenario) (Scenario, error) {
	s, given := base, Scenario{}
	s.MachineAPI = base.MachineAPI.clone()
	if err := yaml.UnmarshalStrict(data, &given); err != nil {
		return Scenario{}, fmt.Errorf("read scenario: %w", err)
	}
	// A list that is given replaces that of base: decoded into it, its elements would inherit what they do not mention.
	for _, list := range []struct{ old, given any }{
		{&s.Channels, given.Channels}, {&s.CustomPools, given.CustomPools}, {&s.Updates, given.Updates},
		{&s.Operators, given.Operators}, {&s.Releases, given.Releases}, {&s.Nodes, given.Nodes},
	} {
		if !reflect.ValueOf(list.given).IsNil() {
			reflect.ValueOf(list.old).Elem().SetZero()
		}
	}
	if s.MachineAPI != nil && given.MachineAPI != nil {
		s.MachineAPI.MachineSets, s.MachineAPI.Faults = nil, nil
		if given.MachineAPI.MachineSets == nil {
			s.MachineAPI.MachineSets = base.MachineAPI.MachineSets
		}
		if given.MachineAPI.Faults == nil {
			s.MachineAPI.Faults = base.MachineAPI.Faults
		}
	}
	if err := yaml.UnmarshalStrict(data, &s); err != nil {
		return Scenario{}, fmt.Errorf("read scenario: %w", err)
	}
	if err := s.Validate(); err != nil {
		return Scenario{}, err
	}
	return s, nil
}

// pool returns the scenario of a pool by name, and whether it has one.
func (s *Scenario) pool(name string) (Pool, bool) {
	switch name {
	case masterPool:
		return s.Masters, true
	case workerPool:
		return s.Workers, true
	}
	for _, custom := range s.CustomPools {
		if custom.Name == name {
			return custom.Pool, true
		}
	}
	return Pool{}, false
}

// node returns the fault of a node, the zero value when it has none.
func (s *Scenario) node(name string) NodeFault {
	for _, fault := range s.Nodes {
		if fault.Name == name {
			return fault
		}
	}
	return NodeFault{}
}

// release returns the fault of a release, and whether it has one.
func (s *Scenario) release(version string) (ReleaseFault, bool) {
	for _, fault := range s.Releases {
		if fault.Version == version {
			return fault, true
		}
	}
	return ReleaseFault{}, false
}
