// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"slices"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

const machineNamespace = "openshift-machine-api"

// withMachines is the quick cluster with a Machine API.
func withMachines(api sim.MachineAPI) sim.Scenario {
	s := quick()
	s.MachineAPI = &api
	return s
}

// aMachineSet is a MachineSet of one replica that nobody has created yet.
func aMachineSet(name string, edits ...func(*machinev1beta1.MachineSet)) *machinev1beta1.MachineSet {
	chosen := map[string]string{"machine.openshift.io/cluster-api-machineset": name}
	set := &machinev1beta1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: machineNamespace, Name: name},
		Spec: machinev1beta1.MachineSetSpec{
			Replicas: new(int32(1)), Selector: metav1.LabelSelector{MatchLabels: chosen},
			Template: machinev1beta1.MachineTemplateSpec{
				ObjectMeta: machinev1beta1.ObjectMeta{Labels: chosen},
				Spec:       machinev1beta1.MachineSpec{ProviderSpec: machinev1beta1.ProviderSpec{Value: &runtime.RawExtension{Raw: []byte("{}")}}},
			},
		},
	}
	for _, edit := range edits {
		edit(set)
	}
	return set
}

// create creates an object, which is removed with the test.
func create[T client.Object](c *simulated, obj T) T {
	c.t.Helper()
	if err := c.client.Create(c.t.Context(), obj); err != nil {
		c.t.Fatal(err)
	}
	return obj
}

// machinesOf returns the Machines of a MachineSet.
func (c *simulated) machinesOf(set string) []machinev1beta1.Machine {
	c.t.Helper()
	list := &machinev1beta1.MachineList{}
	if err := c.client.List(c.t.Context(), list, client.InNamespace(machineNamespace)); err != nil {
		c.t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(m machinev1beta1.Machine) bool {
		owner := metav1.GetControllerOf(&m)
		return owner == nil || owner.Kind != "MachineSet" || owner.Name != set
	})
}

// set reads a MachineSet.
func (c *simulated) set(name string) *machinev1beta1.MachineSet {
	c.t.Helper()
	set := &machinev1beta1.MachineSet{}
	if err := c.client.Get(c.t.Context(), client.ObjectKey{Namespace: machineNamespace, Name: name}, set); err != nil {
		c.t.Fatal(err)
	}
	return set
}

// available waits until a MachineSet has that many Machines that are available, and no others.
func (c *simulated) available(name string, count int32) {
	c.t.Helper()
	c.eventually(name+" is available", func() bool {
		set := c.set(name)
		st := set.Status
		return st.ObservedGeneration == set.Generation && st.Replicas == count && st.ReadyReplicas == count &&
			st.AvailableReplicas == count && st.FullyLabeledReplicas == count && len(c.machinesOf(name)) == int(count)
	})
}

func (c *simulated) nodeCount() int {
	c.t.Helper()
	nodes := &corev1.NodeList{}
	if err := c.client.List(c.t.Context(), nodes); err != nil {
		c.t.Fatal(err)
	}
	return len(nodes.Items)
}

func TestMachineAPIIsInstalled(t *testing.T) {
	c := start(t, withMachines(sim.MachineAPI{}))
	c.available("worker", 3)
	if got := c.set("worker").Labels["hive.openshift.io/machine-pool"]; got != "worker" {
		t.Errorf("label of the machine pool: %q", got)
	}
	seen := map[string]bool{}
	for _, m := range c.machinesOf("worker") {
		node := &corev1.Node{}
		if err := c.client.Get(t.Context(), client.ObjectKey{Name: m.Status.NodeRef.Name}, node); err != nil {
			t.Fatal(err)
		}
		if node.Annotations["machine.openshift.io/machine"] != machineNamespace+"/"+m.Name || node.UID != m.Status.NodeRef.UID {
			t.Errorf("Machine %s and Node %s do not name each other", m.Name, node.Name)
		}
		if *m.Status.Phase != machinev1beta1.PhaseRunning || !slices.Contains(m.Finalizers, machinev1beta1.MachineFinalizer) {
			t.Errorf("Machine %s: phase %s, finalizers %v", m.Name, *m.Status.Phase, m.Finalizers)
		}
		seen[node.Name] = true
	}
	if len(seen) != 3 || c.nodeCount() != 6 {
		t.Errorf("%d nodes have Machines, and there are %d in all", len(seen), c.nodeCount())
	}

	c.halt() // An installation without it removes kinds and objects, also those with finalizers.
	if err := sim.Install(t.Context(), plane.Config(), quick()); err != nil {
		t.Fatal(err)
	}
	if err := c.client.List(t.Context(), &machinev1beta1.MachineList{}); !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		t.Errorf("list of Machines: %v, want an unknown kind", err)
	}
}

func TestMachineSetMakesNodesAndTakesThemAway(t *testing.T) {
	c := start(t, withMachines(sim.MachineAPI{NoMachineSets: true}))
	set := create(c, aMachineSet("more"))
	c.available("more", 1)
	c.eventually("the pool has it", func() bool { return c.pool("worker").Status.ReadyMachineCount == 4 })
	m := c.machinesOf("more")[0]
	node := &corev1.Node{}
	if err := c.client.Get(t.Context(), client.ObjectKey{Name: m.Status.NodeRef.Name}, node); err != nil {
		t.Fatal(err)
	}
	if got, want := node.Annotations["machineconfiguration.openshift.io/currentConfig"], c.pool("worker").Spec.Configuration.Name; got != want {
		t.Errorf("the new node runs %s, want %s", got, want)
	}
	c.eventually("the node takes pods", func() bool {
		if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
			t.Fatal(err)
		}
		return len(node.Spec.Taints) == 0
	})

	if err := c.client.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	c.eventually("machine and node are gone", func() bool { return len(c.machinesOf("more")) == 0 && c.nodeCount() == 6 })
	c.eventually("the pool has lost it", func() bool {
		return c.pool("worker").Status.MachineCount == 3 && c.pool("worker").Status.UnavailableMachineCount == 0
	})
}

func TestDeletionInTheForegroundWaitsForTheMachines(t *testing.T) {
	c := start(t, withMachines(sim.MachineAPI{NoMachineSets: true, Faults: []sim.MachineSetFault{{Name: "more", StaysDeleting: true}}}))
	set := create(c, aMachineSet("more"))
	c.available("more", 1)
	if err := c.client.Delete(t.Context(), set, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	c.eventually("the machine is drained", func() bool {
		m := c.machinesOf("more")
		return len(m) == 1 && slices.ContainsFunc(m[0].Status.Conditions, func(c machinev1beta1.Condition) bool {
			return c.Type == machinev1beta1.MachineDrained && c.Status == corev1.ConditionTrue
		})
	})
	if c.set("more").DeletionTimestamp == nil {
		t.Error("the set is not being deleted")
	}
	c.change(func(s *sim.Scenario) { s.MachineAPI.Faults = nil })
	c.eventually("all is gone", func() bool {
		err := c.client.Get(t.Context(), client.ObjectKeyFromObject(set), &machinev1beta1.MachineSet{})
		return apierrors.IsNotFound(err) && len(c.machinesOf("more")) == 0 && c.nodeCount() == 6
	})
}

func TestMachineSetsAreRefused(t *testing.T) {
	c := start(t, withMachines(sim.MachineAPI{Faults: []sim.MachineSetFault{{Name: "*-upgrade", Refused: "quota exceeded"}}}))
	refused := func(name, want string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a refusal with %q", name, err, want)
		}
	}
	make := func(name string, edits ...func(*machinev1beta1.MachineSet)) error {
		return c.client.Create(t.Context(), aMachineSet(name, edits...), client.DryRunAll)
	}
	unlabelled := func(s *machinev1beta1.MachineSet) { s.Spec.Template.Labels = map[string]string{"a": "b"} }
	notAmong := func(op metav1.LabelSelectorOperator, key string, values ...string) func(*machinev1beta1.MachineSet) {
		return func(s *machinev1beta1.MachineSet) {
			s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}
		}
	}
	const label = "machine.openshift.io/cluster-api-machineset"
	refused("labels", "`selector` does not match template `labels`", make("a", unlabelled))
	refused("expression", "does not match", make("a", notAmong(metav1.LabelSelectorOpNotIn, label, "a")))
	refused("absent label", "does not match", make("a", notAmong(metav1.LabelSelectorOpExists, "absent")))
	refused("by the scenario", "quota exceeded", make("worker-upgrade"))
	for name, err := range map[string]error{
		"of another name": make("upgrade"), "expression": make("a", notAmong(metav1.LabelSelectorOpIn, label, "b", "a")),
		"not in": make("a", notAmong(metav1.LabelSelectorOpNotIn, label, "b")), "no such label": make("a", notAmong(metav1.LabelSelectorOpDoesNotExist, "absent")),
	} {
		if err != nil {
			t.Errorf("%s: %v, want it admitted", name, err)
		}
	}
	c.change(func(s *sim.Scenario) { s.MachineAPI.Faults[0].Name = "upgrade" })
	if err := make("worker-upgrade"); err != nil {
		t.Errorf("refused no longer: %v", err)
	}
	refused("refused now", "quota exceeded", make("upgrade"))

	set := c.set("worker")
	set.Spec.Selector.MatchLabels["more"] = "x"
	set.Spec.Template.Labels["more"] = "x"
	refused("another selector", "selector is immutable", c.client.Update(t.Context(), set))
}

func TestDrainOfAMachineIsHeldByABudget(t *testing.T) {
	c := startWithShop(t, withMachines(sim.MachineAPI{NoMachineSets: true}))
	create(c.simulated, aMachineSet("more"))
	c.available("more", 1)
	m := c.machinesOf("more")[0]
	pod := c.ready(c.deploy(m.Status.NodeRef.Name, "held", sim.AnnotationRun, "true"))
	budget := c.budget("held")
	if err := c.client.Delete(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	want := `could not drain machine: error when evicting pods/"held" -n "` + c.namespace + `": global timeout reached: 20s`
	c.eventually("the machine says so", func() bool {
		for _, m := range c.machinesOf("more") {
			for _, condition := range m.Status.Conditions {
				if condition.Type == machinev1beta1.MachineDrained && condition.Reason == "DrainError" && condition.Message == want {
					return true
				}
			}
		}
		return false
	})
	if err := c.client.Delete(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	c.eventually("another machine stands in", func() bool {
		machines := c.machinesOf("more")
		return len(machines) == 1 && machines[0].Name != m.Name
	})
	c.available("more", 1)
	if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); !apierrors.IsNotFound(err) {
		t.Errorf("the pod: %v, want it gone", err)
	}
}
