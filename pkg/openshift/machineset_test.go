// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

const (
	extraJob  = types.UID("0c2b5d6e")
	extraName = "prod-a-upgrade-9e38eb8f"
)

// What is made of a MachineSet, field by field: what it is not said to change, of the template, is as it was.
func TestExtraMachineSet(t *testing.T) {
	original := openshifttest.MachineSet("prod-a", func(s *machinev1beta1.MachineSet) {
		s.Spec.DeletePolicy, s.Spec.MinReadySeconds, s.Spec.AuthoritativeAPI = "Oldest", 300, machinev1beta1.MachineAuthorityMachineAPI
		s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{
			{Key: "machine.openshift.io/cluster-api-machineset", Operator: metav1.LabelSelectorOpIn, Values: []string{"prod-a"}},
		}
		s.Spec.Template.Annotations = map[string]string{"example.com/note": "x"}
		s.Spec.Template.Name, s.Spec.Template.Spec.ProviderID = "fixed", new("aws:///i-0")
	})
	untouched := original.DeepCopy()
	got := openshift.ExtraMachineSet(original, extraName, extraJob, "ns/job")

	own := map[string]string{"upgrade.managed.openshift.io": "true", "managedupgrade.appuio.io/upgrade-job": "0c2b5d6e"}
	want := &machinev1beta1.MachineSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "openshift-machine-api", Name: extraName, Labels: maps.Clone(own),
		Annotations: map[string]string{"managedupgrade.appuio.io/upgrade-job": "ns/job"},
	}}
	own["machine.openshift.io/cluster-api-cluster"] = "prod-7xk2p"
	own["machine.openshift.io/cluster-api-machineset"] = extraName
	want.Spec.Replicas = new(int32(1))
	want.Spec.DeletePolicy, want.Spec.AuthoritativeAPI = "Oldest", machinev1beta1.MachineAuthorityMachineAPI
	want.Spec.Selector.MatchLabels = maps.Clone(own)
	own["machine.openshift.io/cluster-api-machine-role"] = "worker"
	want.Spec.Template.Labels = own
	want.Spec.Template.Annotations = map[string]string{"example.com/note": "x"}
	want.Spec.Template.Spec = *untouched.Spec.Template.Spec.DeepCopy()
	want.Spec.Template.Spec.ProviderID = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	selector, err := metav1.LabelSelectorAsSelector(&got.Spec.Selector)
	if err != nil || !selector.Matches(labels.Set(got.Spec.Template.Labels)) {
		t.Errorf("the selector does not match the template: %v", err)
	}
	if selector.Matches(labels.Set(original.Spec.Template.Labels)) {
		t.Error("the selector matches the machines of the original")
	}
	got.Spec.Template.Spec.ProviderSpec.Value.Raw[0], got.Spec.Template.Annotations["example.com/note"] = 'x', "y"
	if diff := cmp.Diff(untouched, original); diff != "" {
		t.Errorf("the original is changed:\n%s", diff)
	}
}

// An original without any labels makes no MachineSet that selects everything.
func TestExtraMachineSetOfABareOriginal(t *testing.T) {
	got := openshift.ExtraMachineSet(&machinev1beta1.MachineSet{}, extraName, extraJob, "ns/job")
	if len(got.Spec.Selector.MatchLabels) != 3 || len(got.Spec.Template.Labels) != 3 {
		t.Errorf("got the selector %v and the labels %v", got.Spec.Selector.MatchLabels, got.Spec.Template.Labels)
	}
}

func listing(t *testing.T, api client.WithWatch) [3]int {
	t.Helper()
	cluster := openshift.NewCluster(api, api)
	sets, err := cluster.MachineSets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	extra, err := cluster.ExtraMachineSets(t.Context(), extraJob)
	if err != nil {
		t.Fatal(err)
	}
	machines, err := cluster.ExtraMachines(t.Context(), extraJob)
	if err != nil {
		t.Fatal(err)
	}
	return [3]int{len(sets), len(extra), len(machines)}
}

func TestListMachineSets(t *testing.T) {
	elsewhere := openshifttest.MachineSetOf(extraJob, extraName, now, true, func(s *machinev1beta1.MachineSet) { s.Namespace = "default" })
	api := newAPI(
		openshifttest.MachineSet("prod-a"), openshifttest.MachineSetOf(extraJob, extraName, now, true), openshifttest.MachineSetOf("another", "other", now, true), elsewhere,
		openshifttest.MachineOf(extraJob, extraName, "", ""), openshifttest.MachineOf("another", "other", "", ""),
	)
	if got, want := listing(t, api), [3]int{3, 1, 1}; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	for reason, err := range map[string]error{
		"the kind is not there": &meta.NoKindMatchError{}, "nor any more": apierrors.NewNotFound(schema.GroupResource{}, ""),
	} {
		t.Run(reason, func(t *testing.T) {
			without := interceptor.NewClient(api, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return err }})
			if got, want := listing(t, without), [3]int{}; got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestDeleteMachineSet(t *testing.T) {
	set, machine := openshifttest.MachineSetOf(extraJob, extraName, now, true), openshifttest.MachineOf(extraJob, extraName, "", "")
	machine.Finalizers = nil
	propagation := metav1.DeletionPropagation("")
	api := interceptor.NewClient(newAPI(set.DeepCopy(), machine.DeepCopy()), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			asked := (&client.DeleteOptions{}).ApplyOptions(options)
			if asked.Preconditions == nil || asked.Preconditions.UID == nil || *asked.Preconditions.UID != o.GetUID() {
				t.Errorf("%s would be deleted whoever it is", o.GetName())
			}
			if asked.PropagationPolicy != nil {
				propagation = *asked.PropagationPolicy
			}
			return c.Delete(ctx, o, options...)
		},
	})
	cluster := openshift.NewCluster(api, api)
	for range 2 { // what is gone is no error
		if err := errors.Join(cluster.DeleteMachineSet(t.Context(), set), cluster.DeleteMachine(t.Context(), machine)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := listing(t, api), [3]int{}; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if propagation != metav1.DeletePropagationBackground {
		t.Errorf("the Machines are not deleted with the MachineSet: %q", propagation)
	}
}

func TestExcludeFromDraining(t *testing.T) {
	machine := openshifttest.MachineOf(extraJob, extraName, "", "", func(m *machinev1beta1.Machine) {
		m.Annotations = map[string]string{"machine.openshift.io/instance-state": "running"}
	})
	api := newAPI(machine.DeepCopy())
	cluster := openshift.NewCluster(api, api)
	for range 2 {
		if err := cluster.ExcludeFromDraining(t.Context(), machine); err != nil {
			t.Fatal(err)
		}
	}
	machines, err := cluster.ExtraMachines(t.Context(), extraJob)
	if err != nil || len(machines) != 1 {
		t.Fatal(machines, err)
	}
	got := machines[0]
	if openshift.ExcludedFromDraining(machine) || !openshift.ExcludedFromDraining(&got) {
		t.Errorf("got the annotations %v", got.Annotations)
	}
	delete(got.Annotations, "machine.openshift.io/exclude-node-draining")
	if diff := cmp.Diff(machine, &got, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "ObjectMeta.ResourceVersion" }, cmp.Ignore())); diff != "" {
		t.Errorf("more is changed:\n%s", diff)
	}
	if err := cluster.ExcludeFromDraining(t.Context(), openshifttest.MachineOf(extraJob, "gone", "", "")); err != nil {
		t.Errorf("of one that is gone: %v", err)
	}
}

func TestMachineVerbsNameWhatTheyDid(t *testing.T) {
	broken := errors.New("etcd is away")
	api := interceptor.NewClient(newAPI(), interceptor.Funcs{
		List:   func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return broken },
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return broken },
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return broken },
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return broken
		},
	})
	cluster := openshift.NewCluster(api, api)
	set, machine := openshifttest.MachineSet("prod-a"), openshifttest.MachineOf(extraJob, "prod-a", "", "")
	_, setsErr := cluster.MachineSets(t.Context())
	_, machinesErr := cluster.ExtraMachines(t.Context(), extraJob)
	_, integrityErr := cluster.ReinitializeFileIntegrity(t.Context())
	for what, err := range map[string]error{
		"list MachineSets: ":                      setsErr,
		"list Machines: ":                         machinesErr,
		"create MachineSet/prod-a: ":              cluster.CreateExtraMachineSet(t.Context(), set),
		"delete MachineSet/prod-a: ":              cluster.DeleteMachineSet(t.Context(), set),
		"delete Machine/prod-a-x7k2q: ":           cluster.DeleteMachine(t.Context(), machine),
		"patch Machine/prod-a-x7k2q: ":            cluster.ExcludeFromDraining(t.Context(), machine),
		"patch FileIntegrity/osd-fileintegrity: ": integrityErr,
	} {
		if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), what) {
			t.Errorf("got %v, want %q before it", err, what)
		}
	}
}
