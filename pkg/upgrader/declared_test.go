// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package upgrader_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// Each list is refused with the rule that it breaks, in words that tell what to do.
func TestRulesOfTheCatalogue(t *testing.T) {
	// behind the health step
	with := func(place int, step ...string) []string {
		return slices.Insert(slices.Clone(minimal), place+1, step...)
	}
	healthy := func(step ...string) []string { return append([]string{"ClusterHealthyBeforeUpgrade"}, step...) }
	for _, tc := range []struct {
		reason string
		list   []string
		breaks []string
	}{
		{"the shortest list", minimal, nil},
		{"machines of workers instead", healthy("UpgradeCommenced", "ControlPlaneUpgraded", "WorkerNodesUpgraded"), nil},
		{"steps that the catalogue does not know break no rule", with(1, "Unknown"), nil},
		{"no commencement", healthy("ControlPlaneUpgraded", "WorkerNodesUpgraded"), []string{"UpgradeCommenced is in every list"}},
		{"nobody waits", healthy("UpgradeCommenced", "WorkerNodesUpgraded"), []string{"ControlPlaneUpgraded is in every list"}},
		{"nobody waits for the other machines", minimal[:3], []string{"ControlPlaneUpgraded needs MachineConfigPoolsUpgraded or WorkerNodesUpgraded"}},
		{"health too late", []string{"UpgradeCommenced", "ClusterHealthyBeforeUpgrade", "ControlPlaneUpgraded", "WorkerNodesUpgraded"}, []string{"ClusterHealthyBeforeUpgrade stands before UpgradeCommenced"}},
		{"the control plane before its upgrade", healthy("ControlPlaneUpgraded", "UpgradeCommenced", "WorkerNodesUpgraded"), []string{"ControlPlaneUpgraded stands after UpgradeCommenced"}},
		{"machines before the control plane", healthy("UpgradeCommenced", "WorkerNodesUpgraded", "ControlPlaneUpgraded"), []string{"WorkerNodesUpgraded stands after ControlPlaneUpgraded"}},
		{"pools that are paused for ever", with(0, "MachineConfigPoolsPaused"), []string{"MachineConfigPoolsPaused needs DelayedPoolsUpgraded"}},
		{"pools that nobody paused", with(3, "DelayedPoolsUpgraded"), []string{"DelayedPoolsUpgraded needs MachineConfigPoolsPaused"}},
		{"pools that are paused too late", with(1, "MachineConfigPoolsPaused", "DelayedPoolsUpgraded"), []string{
			"MachineConfigPoolsPaused stands before UpgradeCommenced", "DelayedPoolsUpgraded stands after MachineConfigPoolsUpgraded",
		}},
		{"all machines and delayed ones", healthy("MachineConfigPoolsPaused", "UpgradeCommenced", "ControlPlaneUpgraded", "WorkerNodesUpgraded", "DelayedPoolsUpgraded"),
			[]string{"WorkerNodesUpgraded does not go with MachineConfigPoolsPaused"}},
		{"silences that stay", with(0, "ControlPlaneMaintenanceWindowCreated"), []string{"ControlPlaneMaintenanceWindowCreated needs ControlPlaneMaintenanceWindowRemoved"}},
		{"silences that end too early", with(0, "ControlPlaneMaintenanceWindowCreated", "ControlPlaneMaintenanceWindowRemoved"),
			[]string{"ControlPlaneMaintenanceWindowRemoved stands after ControlPlaneUpgraded"}},
		{"silences that are removed before they are there", with(3, "WorkersMaintenanceWindowRemoved", "WorkersMaintenanceWindowCreated"), []string{
			"WorkersMaintenanceWindowCreated stands before MachineConfigPoolsUpgraded", "WorkersMaintenanceWindowRemoved stands after WorkersMaintenanceWindowCreated",
		}},
		{"machines that stay", with(0, "ComputeCapacityReserved"), []string{"ComputeCapacityReserved needs ComputeCapacityRemoved"}},
		{"no look at the cluster's health", minimal[1:], []string{"ClusterHealthyBeforeUpgrade is in every list"}},
		{"silences while machines are waited for", healthy("ControlPlaneMaintenanceWindowCreated", "ComputeCapacityReserved", "UpgradeCommenced", "ControlPlaneUpgraded",
			"ControlPlaneMaintenanceWindowRemoved", "WorkerNodesUpgraded", "ComputeCapacityRemoved"), []string{"ControlPlaneMaintenanceWindowCreated stands after ComputeCapacityReserved"}},
		{"silences of the control plane for the workers", healthy("ControlPlaneMaintenanceWindowCreated", "UpgradeCommenced", "ControlPlaneUpgraded", "WorkerNodesUpgraded",
			"ControlPlaneMaintenanceWindowRemoved"), []string{"ControlPlaneMaintenanceWindowRemoved stands before WorkerNodesUpgraded"}},
		{"a promise too early", with(3, "CompletedNotificationSent", "ClusterHealthyAfterUpgrade"), []string{"CompletedNotificationSent is the last step"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var broken []string
			for _, rule := range upgrader.NewCatalogue().Broken(tc.list) {
				broken = append(broken, rule.Name())
				if rule.Why() == "" || rule.String() != rule.Name()+": "+rule.Why() {
					t.Errorf("the rule %q does not say why", rule)
				}
			}
			slices.Sort(broken)
			slices.Sort(tc.breaks)
			if diff := cmp.Diff(tc.breaks, broken); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
		})
	}
}

// The API server refuses what the catalogue refuses.
func TestTheCRDHasTheRulesOfTheCatalogue(t *testing.T) {
	data, err := os.ReadFile("../../deploy/crds/managedupgrade.appuio.io_upgraders.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type schema struct {
		Properties map[string]schema
		Rules      []upgrader.AdmissionRule `json:"x-kubernetes-validations"`
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct{ OpenAPIV3Schema schema }
			}
		}
	}
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatal(err)
	}
	want := upgrader.NewCatalogue().AdmissionRules()
	if len(want) == 0 || len(crd.Spec.Versions) == 0 {
		t.Fatalf("there are %d rules and %d versions", len(want), len(crd.Spec.Versions))
	}
	for _, version := range crd.Spec.Versions {
		got := version.Schema.OpenAPIV3Schema.Properties["spec"].Properties["steps"].Rules
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("run make manifests; rules (-catalogue +CRD):\n%s", diff)
		}
	}
}

func TestDeclared(t *testing.T) {
	list := append([]string{"ClusterHealthyBeforeUpgrade checks=Nodes,CriticalAlerts"}, minimal[1:]...)
	object := declaration("ours", list...)
	variant, err := upgrader.NewCatalogue().Declared(object)
	if err != nil {
		t.Fatal(err)
	}
	if variant.Name() != "ours" || upgrader.CommencesInWindow(variant) {
		t.Errorf("got upgrader %s, in a window: %t", variant.Name(), upgrader.CommencesInWindow(variant))
	}
	if diff := cmp.Diff([]string{"ClusterHealthyBeforeUpgrade", "UpgradeCommenced", "ControlPlaneUpgraded", "MachineConfigPoolsUpgraded"}, conditions(variant.Steps())); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if layers := strings.Join(layers(variant.Steps()[0]), " "); !strings.Contains(layers, "healthcheck.nodes{") || strings.Contains(layers, "healthcheck.customQueries{") {
		t.Errorf("the health step makes other checks: %s", layers)
	}
	object.Spec.FailUnlessCommenced = true
	if variant, err = upgrader.NewCatalogue().Declared(object); err != nil || !upgrader.CommencesInWindow(variant) {
		t.Errorf("it does not have to commence in its window, error %v", err)
	}
}

func TestDeclaredRefuses(t *testing.T) {
	for _, tc := range []struct {
		reason string
		list   []string
		says   []string
	}{
		{"a step that is not in the catalogue", append([]string{"Coffee"}, minimal...), []string{"spec.steps[0]: the catalogue has no step Coffee; known: ClusterHealthyAfterUpgrade, "}},
		{"a step twice", append(slices.Clone(minimal), "UpgradeCommenced"), []string{"spec.steps[4]: UpgradeCommenced is there twice"}},
		{"a check that there is none of", append([]string{"ClusterHealthyBeforeUpgrade checks=Nodes,Weather"}, minimal[1:]...),
			[]string{`spec.steps[0] (ClusterHealthyBeforeUpgrade): parameter checks: there is no health check "Weather"; known: ClusterVersion, `}},
		{"a check twice", append([]string{"ClusterHealthyBeforeUpgrade checks=Nodes,Nodes"}, minimal[1:]...), []string{"health check Nodes is there twice"}},
		{"no check", append([]string{"ClusterHealthyBeforeUpgrade checks="}, minimal[1:]...), []string{`there is no health check ""`}},
		{"a parameter that there is none of", append([]string{"ClusterHealthyBeforeUpgrade patience=1h"}, minimal...), []string{`there is no parameter "patience"; known: checks`}},
		{"a parameter of a step without any", append([]string{"UpdateAvailable a=b"}, minimal...), []string{`there is no parameter "a"; known: none`}},
		{"neither true nor false", append([]string{"UpgradeCommenced tellStage=yes"}, minimal[1:]...), []string{`parameter tellStage: "yes" is neither true nor false`}},
		{"everything at once", []string{"Coffee", "ControlPlaneUpgraded a=b"}, []string{"no step Coffee", `no parameter "a"`, "UpgradeCommenced is in every list: without it nothing is upgraded"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			variant, err := upgrader.NewCatalogue().Declared(declaration("ours", tc.list...))
			for _, text := range tc.says {
				if variant != nil || err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("got %v and error %v, want %q", variant, err, text)
				}
			}
		})
	}
}

// finder returns a finder with the upgraders that are built in, and these objects in the cluster.
func finder(t *testing.T, get error, objects ...client.Object) *upgrader.Finder {
	registry := &upgrader.Registry{}
	for _, u := range append(upgrader.BuiltIn(), variant(t, "ours", "Coffee")) {
		if err := registry.Register(u); err != nil {
			t.Fatal(err)
		}
	}
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if get != nil {
				return get
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if get != nil {
				return get
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	return &upgrader.Finder{Registry: registry, Catalogue: upgrader.NewCatalogue(), Reader: api}
}

func TestFinder(t *testing.T) {
	f := finder(t, nil,
		declaration("good", append([]string{"UpdateAvailable"}, minimal...)...),
		declaration("bad", "UpgradeCommenced", "Hidden"),
		declaration("ours", minimal...), declaration("osd", minimal...),
	)
	for _, tc := range []struct {
		name    string
		steps   int
		cleanup int
		says    string
	}{
		{"OSD", 17, 5, ""},
		{"good", 5, 5, ""},
		{"ours", 1, 0, ""}, // what is built in wins
		{"bad", 0, 5, "Upgrader bad cannot be used: spec.steps[1]: the catalogue has no step Hidden"},
		{"osd", 0, 5, `there is no upgrader "osd"; known: ARO, OSD, OpenShift, ours: an object of kind Upgrader whose name differs from OSD only by case`},
		{"gone", 0, 5, `there is no upgrader "gone"; known: ARO, OSD, OpenShift, ours, and no object of kind Upgrader has the name`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			variant, err := f.Get(t.Context(), tc.name)
			cleanup, cleanupErr := f.Finally(t.Context(), tc.name)
			if len(cleanup) != tc.cleanup {
				t.Errorf("cleanup of %d steps, want %d", len(cleanup), tc.cleanup)
			}
			if tc.says == "" {
				if err != nil || cleanupErr != nil || variant.Name() != tc.name || len(variant.Steps()) != tc.steps {
					t.Errorf("got %v, errors %v and %v", variant, err, cleanupErr)
				}
				return
			}
			for _, err := range []error{err, cleanupErr} {
				if variant != nil || !errors.Is(err, upgrader.ErrUnusable) || !strings.HasPrefix(err.Error(), tc.says) {
					t.Errorf("got %v, error %v, want %q", variant, err, tc.says)
				}
			}
		})
	}
	conditions, err := f.Conditions(t.Context())
	for step, want := range map[string]bool{"UpdateAvailable": true, "Coffee": true, "IsClusterUpgradable": true, "Hidden": false} {
		if err != nil || slices.Contains(conditions, step) != want {
			t.Errorf("%s is known: %t, error %v", step, !want, err)
		}
	}
}

// An API server that is away says nothing about an upgrader: neither a job nor its cleanup may go by that.
func TestFinderWithoutAnAPIServer(t *testing.T) {
	away := errors.New("the API server is away")
	f := finder(t, away)
	if _, err := f.Get(t.Context(), "good"); !errors.Is(err, away) || errors.Is(err, upgrader.ErrUnusable) {
		t.Errorf("Get: %v", err)
	}
	if cleanup, err := f.Finally(t.Context(), "good"); !errors.Is(err, away) || errors.Is(err, upgrader.ErrUnusable) || cleanup != nil {
		t.Errorf("Finally: %d steps, %v", len(cleanup), err)
	}
	if _, err := f.Conditions(t.Context()); !errors.Is(err, away) {
		t.Errorf("Conditions: %v", err)
	}
	if _, err := f.Get(t.Context(), "OpenShift"); err != nil {
		t.Errorf("what is built in: %v", err)
	}
}

func TestFinderJudges(t *testing.T) {
	f := finder(t, nil)
	for _, tc := range []struct {
		object          *v1beta1.Upgrader
		reason, message string
	}{
		{declaration("good", minimal...), "", ""},
		{declaration("ours", minimal...), v1beta1.ReasonNameTaken, "ours is built in; no job uses an Upgrader of that name, nor one whose name differs from it only by case."},
		{declaration("osd", minimal...), v1beta1.ReasonNameTaken, "OSD is built in; no job uses an Upgrader of that name, nor one whose name differs from it only by case."},
		{declaration("bad", slices.Delete(slices.Clone(minimal), 1, 2)...), v1beta1.ReasonInvalidSteps, "UpgradeCommenced is in every list: without it nothing is upgraded"},
	} {
		if reason, message := f.Judge(tc.object); reason != tc.reason || message != tc.message {
			t.Errorf("%s: got %s, %q", tc.object.Name, reason, message)
		}
	}
}

// A finder without a catalogue and a cluster knows what is built in.
func TestFinderOfWhatIsBuiltIn(t *testing.T) {
	f := finder(t, nil)
	f.Catalogue, f.Reader = nil, nil
	if _, err := f.Get(t.Context(), "OSD"); err != nil {
		t.Error(err)
	}
	cleanup, err := f.Finally(t.Context(), "gone")
	if len(cleanup) != 0 || !errors.Is(err, upgrader.ErrUnusable) || strings.Contains(err.Error(), "object") {
		t.Errorf("got cleanup of %d steps, error %v", len(cleanup), err)
	}
}

// A list without the step that pauses pools would let them follow at once.
func TestFinderForPoolsThatAreDelayed(t *testing.T) {
	delaying := &v1beta1.UpgradeJobConfig{MachineConfigPools: []v1beta1.MachineConfigPoolConfig{{DelayUpgrade: &v1beta1.DelayUpgrade{}}}}
	f := finder(t, nil, declaration("good", minimal...))
	for _, tc := range []struct {
		name   string
		config *v1beta1.UpgradeJobConfig
		usable bool
	}{
		{"OpenShift", delaying, true}, {"OSD", delaying, false}, {"good", delaying, false}, {"good", &v1beta1.UpgradeJobConfig{}, true},
	} {
		variant, err := f.For(t.Context(), tc.name, tc.config)
		if (variant != nil) != tc.usable || (err == nil) != tc.usable {
			t.Errorf("%s: got %v, error %v", tc.name, variant, err)
		}
		if !tc.usable && (!errors.Is(err, upgrader.ErrUnusable) || !strings.Contains(err.Error(), "no step MachineConfigPoolsPaused")) {
			t.Errorf("%s: got the error %v", tc.name, err)
		}
	}
}
