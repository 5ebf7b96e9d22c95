// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// MachineAPI is the Machine API of a cluster: the kinds MachineSet and Machine of
// machine.openshift.io/v1beta1, and their controllers. The zero value has one
// MachineSet, "worker", whose Machines are the nodes of the pool worker.
type MachineAPI struct {
	// MachineSets are those that exist from the beginning (installation). Their
	// Machines are nodes that are installed anyway: no node is added by them. Empty
	// means one, "worker", with the label hive.openshift.io/machine-pool=worker and
	// all nodes of the pool worker.
	MachineSets []InstalledMachineSet `json:"machineSets,omitempty"`
	// NoMachineSets installs the kinds, but no object of them (installation).
	NoMachineSets bool `json:"noMachineSets,omitempty"`

	// Provisioning passes until a new Machine has an instance (phase Provisioned),
	// Joining from there until its Node exists (phase Running), and Ready from there
	// until the Node is ready. 0 means 50ms.
	Provisioning Duration `json:"provisioning,omitempty"`
	Joining      Duration `json:"joining,omitempty"`
	Ready        Duration `json:"ready,omitempty"`
	// Deleting passes between the end of a deleted Machine's drain and the end of its
	// instance, with which its Node and the Machine go. 0 means 50ms.
	Deleting Duration `json:"deleting,omitempty"`

	// Faults lists what is wrong with the Machines of MachineSets. The first one whose
	// name fits counts.
	Faults []MachineSetFault `json:"faults,omitempty"`
}

// InstalledMachineSet is a MachineSet that exists from the beginning, in the
// namespace openshift-machine-api.
type InstalledMachineSet struct {
	// Name of the MachineSet.
	Name string `json:"name"`
	// Labels of the MachineSet itself.
	Labels map[string]string `json:"labels,omitempty"`
	// Pool whose nodes are its Machines. Empty means worker.
	Pool string `json:"pool,omitempty"`
	// Replicas is how many nodes of the pool are its Machines. Unset means all that
	// no MachineSet before this one has; nodes that none has are without a Machine.
	Replicas *int `json:"replicas,omitempty"`
}

// MachineSetFault is what is wrong with the Machines of the MachineSets of a name,
// also of those that are made later.
type MachineSetFault struct {
	// Name is that of the MachineSet, in which * stands for any characters and ? for one.
	Name string `json:"name"`
	// Refused is why the creation of such a MachineSet is refused. Empty admits it.
	Refused string `json:"refused,omitempty"`
	// StaysProvisioning leaves new Machines in the phase Provisioning.
	StaysProvisioning bool `json:"staysProvisioning,omitempty"`
	// Fails is the error message with which new Machines go into the phase Failed,
	// for the reason InvalidConfiguration. Empty lets them be.
	Fails string `json:"fails,omitempty"`
	// StaysNotReady lets the Nodes of new Machines join, but never be ready.
	StaysNotReady bool `json:"staysNotReady,omitempty"`
	// StaysDeleting leaves deleted Machines, once they are drained, in the phase Deleting.
	StaysDeleting bool `json:"staysDeleting,omitempty"`
	// Slow multiplies the times of the Machines. 0 means 1.
	Slow float64 `json:"slow,omitempty"`
}

// defaultMachineTime stands for the times of a MachineAPI that are not set.
const defaultMachineTime = 50 * time.Millisecond

// or returns d, or the default if it is 0.
func (d Duration) or(standard time.Duration) time.Duration {
	if d == 0 {
		return standard
	}
	return time.Duration(d)
}

// clone returns a copy that can be changed, nil of nil.
func (m *MachineAPI) clone() *MachineAPI {
	if m == nil {
		return nil
	}
	c := *m
	c.MachineSets, c.Faults = slices.Clone(m.MachineSets), slices.Clone(m.Faults)
	return &c
}

// installedSets returns the MachineSets of the installation, with their defaults.
func (m *MachineAPI) installedSets() []InstalledMachineSet {
	switch {
	case m.NoMachineSets:
		return nil
	case len(m.MachineSets) == 0:
		return []InstalledMachineSet{{Name: workerPool, Pool: workerPool, Labels: map[string]string{machinePoolLabel: workerPool}}}
	}
	sets := append([]InstalledMachineSet{}, m.MachineSets...)
	for i := range sets {
		if sets[i].Pool == "" {
			sets[i].Pool = workerPool
		}
	}
	return sets
}

// machineOwners returns the MachineSet of each installed node that has a Machine.
func (s *Scenario) machineOwners() map[string]string {
	owners := map[string]string{}
	if s.MachineAPI == nil {
		return owners
	}
	next := map[string]int{} // the first node of the pool that is free yet
	for _, set := range s.MachineAPI.installedSets() {
		pool, _ := s.pool(set.Pool)
		last := pool.Size
		if set.Replicas != nil {
			last = min(last, next[set.Pool]+*set.Replicas)
		}
		for ; next[set.Pool] < last; next[set.Pool]++ {
			owners[fmt.Sprintf("%s-%d", set.Pool, next[set.Pool])] = set.Name
		}
	}
	return owners
}

// fault returns the fault of a MachineSet's Machines, the zero value when they have none.
func (m *MachineAPI) fault(set string) MachineSetFault {
	for _, fault := range m.Faults {
		if fits, err := regexp.MatchString(fault.pattern(), set); err == nil && fits {
			return fault
		}
	}
	return MachineSetFault{}
}

// pattern returns the regular expression of the fault's name.
func (f MachineSetFault) pattern() string {
	return "^" + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(f.Name)) + "$"
}

// takes returns how long a phase takes that takes d.
func (f MachineSetFault) takes(d Duration) time.Duration {
	slow := f.Slow
	if slow == 0 {
		slow = 1
	}
	return time.Duration(float64(d.or(defaultMachineTime)) * slow)
}

// machineAPI adds the mistakes in the scenario's Machine API.
func (v *validator) machineAPI(s *Scenario) {
	m := s.MachineAPI
	if m == nil {
		return
	}
	if m.NoMachineSets && len(m.MachineSets) > 0 {
		v.add("machineAPI.noMachineSets", "must not be set when machineSets are listed")
	}
	v.installedSets(s, m.MachineSets)
	for _, timing := range []struct {
		path string
		d    Duration
	}{{"provisioning", m.Provisioning}, {"joining", m.Joining}, {"ready", m.Ready}, {"deleting", m.Deleting}} {
		v.duration("machineAPI."+timing.path, timing.d)
	}
	for i, f := range m.Faults {
		path := fmt.Sprintf("machineAPI.faults[%d]", i)
		if f.Name == "" {
			v.add(path+".name", "must be set")
		}
		if f.Slow < 0 {
			v.add(path+".slow", "must not be negative, is %v", f.Slow)
		}
	}
}

func (v *validator) installedSets(s *Scenario, sets []InstalledMachineSet) {
	seen, taken := map[string]bool{}, map[string]int{}
	for i, set := range sets {
		path := fmt.Sprintf("machineAPI.machineSets[%d]", i)
		if problems := validation.IsDNS1123Label(set.Name); len(problems) > 0 {
			v.add(path+".name", "%q is not a name: %s", set.Name, problems[0])
		}
		if seen[set.Name] {
			v.add(path+".name", "%q exists already", set.Name)
		}
		seen[set.Name] = true
		v.labels(path+".labels", set.Labels)
		name := set.Pool
		if name == "" {
			name = workerPool
		}
		pool, found := s.pool(name)
		if !found || name == masterPool {
			v.add(path+".pool", "there is no pool of workers %q", name)
		}
		if set.Replicas == nil {
			taken[name] = max(taken[name], pool.Size)
			continue
		}
		taken[name] += *set.Replicas
		if *set.Replicas < 0 || taken[name] > pool.Size {
			v.add(path+".replicas", "pool %s has %d nodes, which is too few, or the number is negative", name, pool.Size)
		}
	}
}

// Names of the Machine API.
const (
	machineNamespace = "openshift-machine-api"

	machinePoolLabel    = "hive.openshift.io/machine-pool"
	machineSetLabel     = "machine.openshift.io/cluster-api-machineset"
	machineClusterLabel = "machine.openshift.io/cluster-api-cluster"
	machineRoleLabel    = "machine.openshift.io/cluster-api-machine-role"
	machineTypeLabel    = "machine.openshift.io/cluster-api-machine-type"

	// annotationMachine names the Machine of a Node.
	annotationMachine = "machine.openshift.io/machine"
	// annotationExcludeDraining stands on Machines that are deleted without a drain.
	annotationExcludeDraining = "machine.openshift.io/exclude-node-draining"
	// annotationDeleteMachine stands on Machines that go first when their set shrinks.
	annotationDeleteMachine = "machine.openshift.io/delete-machine"
	// annotationMachineDrain is the simulator's own: it stands on Nodes that are
	// drained because their Machine is deleted.
	annotationMachineDrain = "openshift-simulator/machine-drain"
)

// machineDraining reports whether the node's pods are evicted because its Machine
// is deleted.
func machineDraining(node *corev1.Node) bool {
	return node.Spec.Unschedulable && node.Annotations[annotationMachineDrain] != ""
}
