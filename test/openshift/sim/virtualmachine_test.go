// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// machineCluster is a cluster of one worker with a Machine API whose times are a
// minute for the instance, 20 s until the Node joins, and 10 s until it is ready.
func machineCluster(t *testing.T, faults ...MachineSetFault) *virtual {
	t.Helper()
	s := Default()
	s.Masters.Size, s.Workers.Size = 1, 1
	s.Timings.DrainRetry = Duration(5 * time.Second)
	s.MachineAPI = &MachineAPI{
		Provisioning: Duration(time.Minute), Joining: Duration(20 * time.Second), Ready: Duration(10 * time.Second),
		Deleting: Duration(30 * time.Second), Faults: faults,
	}
	v := newVirtual(t, s)
	v.pass(time.Second)
	return v
}

// addSet adds a MachineSet like the installed one.
func (v *virtual) addSet(name string, replicas int32, edits ...func(*machinev1beta1.MachineSet)) *machinev1beta1.MachineSet {
	set := (&installation{}).newMachineSet(InstalledMachineSet{Name: name, Pool: workerPool}, int(replicas))
	set.UID = types.UID("uid-" + name)
	for _, edit := range edits {
		edit(set)
	}
	v.view.put(set)
	return set
}

// machinesOf returns the Machines of a set.
func (v *virtual) machinesOf(set string) []*machinev1beta1.Machine {
	var machines []*machinev1beta1.Machine
	for _, m := range v.view.machines {
		if setOf(m) == set {
			machines = append(machines, m)
		}
	}
	return machines
}

// status returns the replicas that exist, are ready and are available.
func (v *virtual) status(set string) [3]int32 {
	for _, s := range v.view.machineSets {
		if s.Name == set {
			return [3]int32{s.Status.Replicas, s.Status.ReadyReplicas, s.Status.AvailableReplicas}
		}
	}
	v.t.Fatalf("there is no MachineSet %s", set)
	return [3]int32{}
}

// deleteMachine asks for the deletion of a Machine.
func (v *virtual) deleteMachine(m *machinev1beta1.Machine) { v.deleteNow(m.DeepCopy()) }

func TestMachinesTakeTheirTime(t *testing.T) {
	v := machineCluster(t)
	v.addSet("more", 2, func(s *machinev1beta1.MachineSet) { s.Spec.MinReadySeconds = 15 })
	began := v.now
	for _, tt := range []struct {
		after  time.Duration
		phase  string
		nodes  int
		status [3]int32
	}{
		{0, "Provisioning", 2, [3]int32{2, 0, 0}},
		{59 * time.Second, "Provisioning", 2, [3]int32{2, 0, 0}},
		{61 * time.Second, "Provisioned", 2, [3]int32{2, 0, 0}},
		{79 * time.Second, "Provisioned", 2, [3]int32{2, 0, 0}},
		{81 * time.Second, "Running", 4, [3]int32{2, 0, 0}},
		{91 * time.Second, "Running", 4, [3]int32{2, 2, 0}},
		{107 * time.Second, "Running", 4, [3]int32{2, 2, 2}},
	} {
		v.pass(began.Add(tt.after).Sub(v.now))
		for _, m := range v.machinesOf("more") {
			if phaseOf(m) != tt.phase {
				t.Errorf("after %s: phase %s, want %s", tt.after, phaseOf(m), tt.phase)
			}
		}
		if got := v.status("more"); len(v.view.nodes) != tt.nodes || got != tt.status {
			t.Errorf("after %s: %d nodes and %v replicas, want %d and %v", tt.after, len(v.view.nodes), got, tt.nodes, tt.status)
		}
	}
	m := v.machinesOf("more")[0]
	if m.Spec.ProviderID == nil || len(m.Status.Addresses) == 0 || machineCondition(m, machinev1beta1.InstanceExistsCondition).Status != corev1.ConditionTrue {
		t.Errorf("Machine: %+v", m)
	}
	if got := v.view.pools[workerPool].Status.ReadyMachineCount; got != 3 {
		t.Errorf("the pool has %d ready nodes, want 3", got)
	}
}

func TestMachineSetFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		fault  MachineSetFault
		phase  string
		nodes  int
		status [3]int32
	}{
		"none for it":        {MachineSetFault{Name: "less*", StaysProvisioning: true}, "Running", 3, [3]int32{1, 1, 1}},
		"stays provisioning": {MachineSetFault{Name: "m?re", StaysProvisioning: true}, "Provisioning", 2, [3]int32{1, 0, 0}},
		"fails":              {MachineSetFault{Name: "*", Fails: "no such zone"}, "Failed", 2, [3]int32{1, 0, 0}},
		"stays not ready":    {MachineSetFault{Name: "mo*", StaysNotReady: true}, "Running", 3, [3]int32{1, 0, 0}},
		"slow":               {MachineSetFault{Name: "more", Slow: 100}, "Provisioning", 2, [3]int32{1, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			v := machineCluster(t, tt.fault)
			v.addSet("more", 1)
			v.pass(10 * time.Minute)
			m := v.machinesOf("more")[0]
			if got := v.status("more"); phaseOf(m) != tt.phase || len(v.view.nodes) != tt.nodes || got != tt.status {
				t.Errorf("phase %s, %d nodes, %v replicas, want %s, %d and %v", phaseOf(m), len(v.view.nodes), got, tt.phase, tt.nodes, tt.status)
			}
			reason := m.Status.ErrorReason
			if failed := reason != nil && *reason == machinev1beta1.InvalidConfigurationMachineError && *m.Status.ErrorMessage == "no such zone"; failed != (tt.phase == "Failed") {
				t.Errorf("error reason: %v", reason)
			}
			v.change(func(s *Scenario) { s.MachineAPI.Faults = nil })
			v.pass(10 * time.Minute)
			if got := v.status("more"); tt.phase != "Failed" && got != [3]int32{1, 1, 1} {
				t.Errorf("without the fault: %v replicas", got)
			}
		})
	}
}

func TestMachineSetShrinks(t *testing.T) {
	v := machineCluster(t, MachineSetFault{Name: "more", StaysNotReady: true})
	set := v.addSet("more", 1)
	v.pass(5 * time.Minute)
	unready := v.machinesOf("more")[0]
	v.change(func(s *Scenario) { s.MachineAPI.Faults = []MachineSetFault{} })
	scale := func(replicas int32) {
		set = v.view.get(set).(*machinev1beta1.MachineSet).DeepCopy()
		set.Spec.Replicas = &replicas
		set.Generation++
		v.view.put(set)
		v.pass(5 * time.Minute)
	}
	scale(4)
	marked := v.machinesOf("more")[0].DeepCopy()
	if marked.Name == unready.Name {
		marked = v.machinesOf("more")[1].DeepCopy()
	}
	metav1.SetMetaDataAnnotation(&marked.ObjectMeta, annotationDeleteMachine, "")
	v.view.put(marked)
	scale(3)
	if v.view.machines[types.NamespacedName{Namespace: marked.Namespace, Name: marked.Name}] != nil {
		t.Error("the Machine that is marked is still there")
	}
	if got := v.status("more"); got != [3]int32{3, 3, 3} || len(v.view.nodes) != 5 {
		t.Errorf("%v replicas and %d nodes, want 3 and 5", got, len(v.view.nodes))
	}
	scale(0)
	if got := v.status("more"); got != [3]int32{} || len(v.view.nodes) != 2 {
		t.Errorf("%v replicas and %d nodes, want none and 2", got, len(v.view.nodes))
	}
}

func TestMachineIsDrainedBeforeItGoes(t *testing.T) {
	for reason, tt := range map[string]struct {
		pods     []*corev1.Pod
		edit     func(*machinev1beta1.Machine)
		want     time.Duration
		evicted  int
		says     string
		drainage string
	}{
		"no pods": {nil, nil, 30 * time.Second, 0, "", "Drain finished successfully"},
		"a pod that takes its time": {
			[]*corev1.Pod{podOn("worker-0", "a", annotated(AnnotationTerminatesAfter, "20s"))}, nil, 50 * time.Second, 1,
			`could not drain machine: error when waiting for pod "a" in namespace "shop" to terminate: global timeout reached: 20s`,
			"Drain finished successfully",
		},
		"no drain": {
			[]*corev1.Pod{podOn("worker-0", "a", annotated(AnnotationTerminatesAfter, "20s"))},
			func(m *machinev1beta1.Machine) {
				metav1.SetMetaDataAnnotation(&m.ObjectMeta, annotationExcludeDraining, "")
			},
			30 * time.Second, 0, "", "Node drain skipped",
		},
	} {
		t.Run(reason, func(t *testing.T) {
			v := machineCluster(t)
			for _, pod := range tt.pods {
				v.view.put(pod)
			}
			m := v.machinesOf("worker")[0].DeepCopy()
			if tt.edit != nil {
				tt.edit(m)
			}
			began := v.now
			v.deleteMachine(m)
			said := map[string]bool{}
			v.until("the node is gone", func() bool {
				if have := v.view.machines[types.NamespacedName{Namespace: m.Namespace, Name: m.Name}]; have != nil {
					said[machineCondition(have, machinev1beta1.MachineDrained).Message] = true
				}
				return v.node("worker-0") == nil
			})
			if got := v.now.Sub(began); got != tt.want {
				t.Errorf("gone after %s, want %s", got, tt.want)
			}
			if v.evictions != tt.evicted || !said[tt.says] || !said[tt.drainage] {
				t.Errorf("%d evictions, and it says %v; want %d, %q and %q", v.evictions, said, tt.evicted, tt.says, tt.drainage)
			}
			if len(v.view.pods.all) > 0 {
				t.Error("pods are left on the node that is gone")
			}
		})
	}
}

func TestMachineWhoseDrainIsStuck(t *testing.T) {
	v := machineCluster(t)
	v.view.put(podOn("worker-0", "b"))
	v.view.put(podOn("worker-0", "a"))
	v.refuses = func(*corev1.Pod) error { return errBudget }
	v.deleteMachine(v.machinesOf("worker")[0])
	v.pass(time.Hour)
	var old *machinev1beta1.Machine
	for _, m := range v.machinesOf("worker") {
		if m.DeletionTimestamp != nil {
			old = m
		}
	}
	want := machinev1beta1.Condition{
		Type: machinev1beta1.MachineDrained, Status: corev1.ConditionFalse, Severity: machinev1beta1.ConditionSeverityWarning, Reason: "DrainError",
		Message: `could not drain machine: [error when evicting pods/"a" -n "shop": global timeout reached: 20s, error when evicting pods/"b" -n "shop": global timeout reached: 20s]`,
	}
	got := machineCondition(old, machinev1beta1.MachineDrained)
	got.LastTransitionTime = metav1.Time{}
	if diff := cmp.Diff(want, got); diff != "" || phaseOf(old) != machinev1beta1.PhaseDeleting {
		t.Errorf("phase %s, condition (-want +got):\n%s", phaseOf(old), diff)
	}
	if node := v.node("worker-0"); !node.Spec.Unschedulable || cordonTaintFits(node) == false {
		t.Errorf("the node is not cordoned: %+v", node.Spec)
	}
	if got := v.evictions; got < 1400 { // Two pods, each 5 s, for an hour.
		t.Errorf("%d evictions", got)
	}
	if got := v.status("worker"); got != [3]int32{1, 1, 1} {
		t.Errorf("another one stands in: %v", got)
	}
	v.refuses = nil
	v.pass(time.Minute)
	if v.node("worker-0") != nil || len(v.machinesOf("worker")) != 1 {
		t.Error("the Machine is still there")
	}
}

func TestHooksOfTheLifecycleHoldAMachine(t *testing.T) {
	v := machineCluster(t)
	m := v.machinesOf("worker")[0].DeepCopy()
	hooks := []machinev1beta1.LifecycleHook{{Name: "Backup", Owner: "night"}}
	m.Spec.LifecycleHooks = machinev1beta1.LifecycleHooks{PreDrain: hooks, PreTerminate: hooks}
	key := types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
	v.deleteMachine(m)
	v.pass(10 * time.Minute)
	for _, hold := range []struct {
		condition machinev1beta1.ConditionType
		release   func(*machinev1beta1.LifecycleHooks)
	}{
		{machinev1beta1.MachineDrainable, func(h *machinev1beta1.LifecycleHooks) { h.PreDrain = nil }},
		{machinev1beta1.MachineTerminable, func(h *machinev1beta1.LifecycleHooks) { h.PreTerminate = nil }},
	} {
		held := v.view.machines[key]
		c := machineCondition(held, hold.condition)
		if c.Status != corev1.ConditionFalse || c.Reason != "HookPresent" || !strings.Contains(c.Message, "blocked by: [{Name:Backup Owner:night}]") {
			t.Errorf("%s: %+v", hold.condition, c)
		}
		next := held.DeepCopy()
		hold.release(&next.Spec.LifecycleHooks)
		v.view.put(next)
		v.pass(10 * time.Minute)
	}
	if v.view.machines[key] != nil {
		t.Error("the Machine is still there")
	}
}

func TestMachinesOfADeletedSetGo(t *testing.T) {
	v := machineCluster(t)
	set := v.addSet("more", 2)
	v.pass(5 * time.Minute)
	v.view.remove(set)
	v.pass(5 * time.Minute)
	if got := v.machinesOf("more"); len(got) != 0 || len(v.view.nodes) != 2 {
		t.Errorf("Machines %v and %d nodes are left", got, len(v.view.nodes))
	}

	set = v.addSet("orphans", 1, func(s *machinev1beta1.MachineSet) { s.Finalizers = []string{metav1.FinalizerOrphanDependents} })
	v.pass(5 * time.Minute)
	set = v.view.get(set).(*machinev1beta1.MachineSet).DeepCopy()
	v.deleteNow(set)
	v.pass(5 * time.Minute)
	if len(v.view.machineSets) != 1 || len(v.view.machines) != 2 || len(v.view.nodes) != 3 {
		t.Errorf("%d sets, %d Machines, %d nodes; want the orphan left", len(v.view.machineSets), len(v.view.machines), len(v.view.nodes))
	}
}

func TestInstalledMachineSetsShareThePool(t *testing.T) {
	s := Default()
	s.CustomPools = []CustomPool{{Name: "infra", Pool: Pool{Size: 2}}}
	s.MachineAPI = &MachineAPI{MachineSets: []InstalledMachineSet{{Name: "a", Replicas: new(2)}, {Name: "b"}, {Name: "infra", Pool: "infra", Replicas: new(1)}}}
	v := newVirtual(t, s)
	before := len(v.view.nodes)
	v.pass(time.Minute)
	if a, b, infra := v.status("a"), v.status("b"), v.status("infra"); a != [3]int32{2, 2, 2} || b != [3]int32{4, 4, 4} || infra != [3]int32{1, 1, 1} {
		t.Errorf("replicas: %v, %v, %v", a, b, infra)
	}
	if len(v.view.nodes) != before || len(v.view.machines) != 7 {
		t.Errorf("%d nodes, %d before, and %d Machines", len(v.view.nodes), before, len(v.view.machines))
	}
}

func TestNewMachinesTakePartInUpdates(t *testing.T) {
	v := machineCluster(t)
	v.upgrade("4.18.2")
	v.addSet("more", 1)
	v.pass(5 * time.Minute)
	pool := v.view.pools[workerPool]
	for name, node := range v.view.nodes {
		if !isMaster(node) && !nodeRuns(node, pool.Spec.Configuration.Name) {
			t.Errorf("node %s does not run the pool's configuration", name)
		}
		if !strings.Contains(node.Status.NodeInfo.OSImage, "4.18.2") {
			t.Errorf("node %s: %s", name, node.Status.NodeInfo.OSImage)
		}
	}
	if pool.Status.UpdatedMachineCount != 2 {
		t.Errorf("%d nodes are updated, want 2", pool.Status.UpdatedMachineCount)
	}
}
