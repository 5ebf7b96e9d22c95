// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

const (
	reserved    = steps.ConditionComputeCapacityReserved
	machineSetA = "MachineSet/openshift-machine-api/" + extraA
	machineA    = "Machine/openshift-machine-api/" + extraA + "-x7k2q"
	goesOn      = "The upgrade goes on without"
)

var (
	machineSets = schema.GroupResource{Group: "machine.openshift.io", Resource: "machinesets"}
	isReserved  = verdict{outcome: steps.Completed, reason: "Completed", says: "Extra machines are ready"}
	isGivenUp   = verdict{outcome: steps.Running, reason: v1beta1.ReasonCapacityScaling, after: time.Millisecond, says: "The upgrade goes on without"}
	isRechecked = verdict{outcome: steps.Running, reason: v1beta1.ReasonCapacityReady, after: time.Millisecond}
	isScaling   = verdict{outcome: steps.Running, reason: v1beta1.ReasonCapacityScaling, after: 10 * time.Second}
)

func scaling(says string, blockers ...string) verdict {
	want := isScaling
	want.says, want.blockers = says, blockers
	return want
}

func forbidden(words string) error {
	return apierrors.NewForbidden(machineSets, "", errors.New(words))
}

// A machine is made, becomes ready, and the step is done; then it is done again without another.
func TestComputeCapacityReserved(t *testing.T) {
	w := newMachineWorld(t, newJob(capacity()), openshifttest.MachineSet("prod-a"))
	step := steps.ComputeCapacityReserved()

	w.expect(step, 0, scaling("made just now", "MachineNotReady "+machineSetA))
	if got, want := w.sets(), []string{"prod-a", extraA}; !slices.Equal(got, want) {
		t.Fatalf("got the MachineSets %q, want %q", got, want)
	}
	if holder := w.version().Annotations[v1beta1.UpgradeJobAnnotation]; holder != "ns/job" {
		t.Errorf("the lock is held by %q", holder)
	}
	w.expect(step, time.Minute, scaling("it has no Machine yet", "MachineNotReady "+machineSetA))
	w.put(openshifttest.MachineOf(jobUID, extraA, machinev1beta1.PhaseProvisioning, ""))
	w.expect(step, 2*time.Minute, scaling("it is in phase Provisioning", "MachineNotReady "+machineA))
	w.comes(extraA)
	w.expect(step, 3*time.Minute, isRechecked)
	for _, after := range []time.Duration{3 * time.Minute, 4 * time.Minute, 50 * time.Minute} { // whatever the timeout
		w.expect(step, after, isReserved)
	}
	if got, want := w.sets(), []string{"prod-a", extraA}; !slices.Equal(got, want) || len(w.told()) > 0 {
		t.Errorf("got the MachineSets %q, want %q; told of %q", got, want, w.told())
	}
}

func TestComputeCapacityReservedIsDoneAtOnce(t *testing.T) {
	for _, tc := range []struct {
		reason string
		job    []jobOption
		faults interceptor.Funcs
		says   string
	}{
		{"nobody wants it", []jobOption{}, refusing("list", errors.New("asked")), "not set"},
		{"it is not enabled", []jobOption{capacity(func(c *v1beta1.CapacityReservation) { c.Enabled = false })}, refusing("list", errors.New("asked")), "not set"},
		{"there is nothing to upgrade", []jobOption{capacity(), withoutVersion}, refusing("list", errors.New("asked")), "no version"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newMachineWorld(t, newJob(tc.job...), openshifttest.MachineSet("prod-a"))
			w.faults = tc.faults
			w.expect(steps.ComputeCapacityReserved(), 0, verdict{outcome: steps.Completed, reason: "Completed", says: tc.says})
			if got := w.sets(); len(got) != 1 || len(w.told()) > 0 {
				t.Errorf("got the MachineSets %q, and told of %q", got, w.told())
			}
		})
	}
}

// Those of the pool worker get one, those of further pools that match too, however many machines they have; nobody else.
func TestComputeCapacityReservedChoosesOriginals(t *testing.T) {
	w := newMachineWorld(t, newJob(capacity(extraPools("gpu-*", "db"))),
		openshifttest.MachineSet("prod-a"),
		openshifttest.MachineSet("empty", func(s *machinev1beta1.MachineSet) { s.Spec.Replicas = new(int32(0)) }),
		openshifttest.MachineSet("big-gpu", openshifttest.MachinePool("gpu-large")),
		openshifttest.MachineSet("infra", openshifttest.MachinePool("infra")),
		openshifttest.MachineSet("dbx", openshifttest.MachinePool("dbx")),
		openshifttest.MachineSet("by-hand", openshifttest.MachinePool("")),
		openshifttest.MachineSet("of-muo", func(s *machinev1beta1.MachineSet) { s.Labels["upgrade.managed.openshift.io"] = "true" }),
		openshifttest.MachineSetOf("another", "prod-a-upgrade-0", start, true),
	)
	w.pass(steps.ComputeCapacityReserved())
	var made []string
	for _, name := range w.sets() {
		if original, _, ok := strings.Cut(name, "-upgrade-"); ok && name != "prod-a-upgrade-0" {
			made = append(made, original)
		}
	}
	if want := []string{"big-gpu", "empty", "prod-a"}; !slices.Equal(made, want) {
		t.Errorf("got extra MachineSets for %q, want %q", made, want)
	}
}

// Names and labels are within the limits of Kubernetes, whatever the originals are called, and two originals never share a name.
func TestComputeCapacityReservedNames(t *testing.T) {
	long := strings.Repeat("a", 60)
	w := newMachineWorld(t, newJob(capacity()), openshifttest.MachineSet(long+"-1"), openshifttest.MachineSet(long+"-2"), openshifttest.MachineSet("a.b"))
	w.pass(steps.ComputeCapacityReserved())
	made := 0
	for _, name := range w.sets() {
		if !strings.Contains(name, "-upgrade-") {
			continue
		}
		made++
		set := w.set(name)
		machine := name + "-x7k2q"
		for _, value := range []string{set.Spec.Template.Labels["machine.openshift.io/cluster-api-machineset"], machine, set.Labels["managedupgrade.appuio.io/upgrade-job"]} {
			if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
				t.Errorf("%q: %v", value, problems)
			}
		}
		if problems := validation.IsDNS1123Subdomain(machine); len(problems) > 0 {
			t.Errorf("%q: %v", machine, problems)
		}
	}
	if made != 3 {
		t.Errorf("made %d MachineSets, want 3: %q", made, w.sets())
	}
}

// A machine that does not come is told of, and done without for good.
func TestComputeCapacityReservedGoesOnWithoutALateMachine(t *testing.T) {
	w := newMachineWorld(t, newJob(capacity(within(20*time.Minute))), openshifttest.MachineSet("prod-a"), openshifttest.MachineSet("prod-b"))
	step := steps.ComputeCapacityReserved()
	w.pass(step)
	extraB := w.sets()[slices.IndexFunc(w.sets(), func(name string) bool { return strings.HasPrefix(name, "prod-b-upgrade-") })]
	w.comes(extraB)
	w.put(openshifttest.MachineOf(jobUID, extraA, "", "", openshifttest.MachineFailed(machinev1beta1.InvalidConfigurationMachineError, "no such instance type")))

	last := scaling("InvalidConfiguration: no such instance type", "MachineNotReady "+machineA)
	last.after = time.Second
	w.expect(step, 20*time.Minute-time.Second, last)
	if len(w.told()) > 0 {
		t.Errorf("told of %q before the time", w.told())
	}
	goneOn := verdict{outcome: steps.Completed, reason: "Completed", says: goesOn}
	w.expect(step, 20*time.Minute, isGivenUp)
	leaves := isScaling
	leaves.reason = v1beta1.ReasonCapacityRemoving
	leaves.after, leaves.says, leaves.blockers = 5*time.Second, "are being removed: 1 are left", []string{"MachineDeleting " + machineSetA}
	w.expect(step, 20*time.Minute, leaves)
	if got := w.sets(); slices.Contains(got, extraA) || !slices.Contains(got, extraB) {
		t.Errorf("got the MachineSets %q, want that of the machine that came, and not the other", got)
	}
	leaves.blockers = []string{"MachineDeleting " + machineA}
	w.expect(step, 21*time.Minute, leaves)
	w.gone(extraA)
	w.expect(step, 22*time.Minute, isRechecked)
	for _, after := range []time.Duration{22 * time.Minute, 23 * time.Minute} {
		w.expect(step, after, goneOn)
	}
	if want := []string{"upgrade.skipped"}; !slices.Equal(w.told(), want) {
		t.Fatalf("told of %q, want %q", w.told(), want)
	}
	if said := w.stages[0].Message; !strings.Contains(said, machineA) || !strings.Contains(said, "no such instance type") || strings.Contains(said, extraB) {
		t.Errorf("told: %s", said)
	}
}

// What is wrong with a machine that is there but not ready is said.
func TestComputeCapacityReservedWaitsForTheNode(t *testing.T) {
	running := openshifttest.MachineOf(jobUID, extraA, machinev1beta1.PhaseRunning, "new")
	objects := func(ready bool, more ...client.Object) []client.Object {
		return append(more, openshifttest.MachineSet("prod-a"), openshifttest.MachineSetOf(jobUID, extraA, start, ready))
	}
	stale := openshifttest.MachineSetOf(jobUID, extraA, start, true, func(s *machinev1beta1.MachineSet) { s.Generation = 2 })
	for _, tc := range []struct {
		reason  string
		objects []client.Object
		want    verdict
	}{
		{"ready", objects(true, running, openshifttest.Node("new", "worker")), isReserved},
		{"no Node yet", objects(true, running), scaling("Node new is not there", "MachineNotReady "+machineA)},
		{
			"not ready", objects(true, running, openshifttest.Node("new", "worker", openshifttest.NodeCondition("Ready", "False", "KubeletNotReady", "CNI is not up"))),
			scaling("Node new is not ready (KubeletNotReady: CNI is not up)", "MachineNotReady "+machineA),
		},
		{
			"cordoned", objects(true, running, openshifttest.Node("new", "worker", openshifttest.NodeCordoned())),
			scaling("cordoned", "MachineNotReady "+machineA),
		},
		{"not counted", objects(false, running, openshifttest.Node("new", "worker")), scaling("does not count", "MachineNotReady "+machineA)},
		{
			"counted of an older generation", []client.Object{openshifttest.MachineSet("prod-a"), stale, running, openshifttest.Node("new", "worker")},
			scaling("does not count", "MachineNotReady "+machineA),
		},
		{
			"the only Machine goes", objects(true, openshifttest.MachineOf(jobUID, extraA, "", "new", openshifttest.MachineDeletedAt(start)), openshifttest.Node("new", "worker")),
			scaling("no Machine yet", "MachineNotReady "+machineSetA),
		},
		{
			"the MachineSet goes", []client.Object{openshifttest.MachineSet("prod-a"), openshifttest.MachineSetOf(jobUID, extraA, start, true, func(s *machinev1beta1.MachineSet) {
				s.DeletionTimestamp, s.Finalizers = &s.CreationTimestamp, []string{"foregroundDeletion"}
			}), running, openshifttest.Node("new", "worker")},
			scaling("it is being deleted", "MachineNotReady "+machineSetA),
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newMachineWorld(t, newJob(capacity(), begun(reserved, 0)), tc.objects...)
			w.expect(steps.ComputeCapacityReserved(), time.Minute, tc.want)
		})
	}
}

func TestComputeCapacityReservedWithoutMachineSets(t *testing.T) {
	for _, tc := range []struct {
		reason string
		faults interceptor.Funcs
		object client.Object
	}{
		{"there is none", interceptor.Funcs{}, openshifttest.MachineSet("infra", openshifttest.MachinePool("infra"))},
		{"the cluster has no Machine API", refusing("list", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "MachineSet"}}), openshifttest.MachineSet("prod-a")},
		{"its kind has just been removed", refusing("list", apierrors.NewNotFound(machineSets, "")), openshifttest.MachineSet("prod-a")},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newMachineWorld(t, newJob(capacity()), tc.object)
			w.faults = tc.faults
			for _, after := range []time.Duration{0, time.Minute} {
				w.expect(steps.ComputeCapacityReserved(), after, verdict{outcome: steps.Completed, reason: "Completed", says: goesOn})
			}
			if want := []string{"upgrade.scaleskipped"}; !slices.Equal(w.told(), want) {
				t.Errorf("told of %q, want %q", w.told(), want)
			}
		})
	}
}
