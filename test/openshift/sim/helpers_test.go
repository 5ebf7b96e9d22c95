// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"sync"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// patience is how long a test waits for what takes a second or so.
const patience = 60 * time.Second

// quick is a small cluster that updates in about two seconds.
func quick() sim.Scenario {
	s := sim.Default()
	s.Workers.Size = 3
	for _, d := range []*sim.Duration{
		&s.Timings.Accept, &s.Timings.Operator, &s.Timings.Render, &s.Timings.Drain, &s.Timings.Apply, &s.Timings.Reboot,
	} {
		*d /= 4
	}
	return s
}

// simulated is an installed and running cluster.
type simulated struct {
	t      testing.TB
	client client.WithWatch
	stop   context.CancelFunc
	done   chan error

	mu        sync.Mutex
	lines     []string
	revisions []*configv1.ClusterVersion
	nodes     []*corev1.Node
	pools     []*mcfgv1.MachineConfigPool
}

// start installs a scenario and runs it until the test ends.
func start(t testing.TB, s sim.Scenario) *simulated {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, batchv1.AddToScheme, policyv1.AddToScheme, configv1.Install, mcfgv1.Install, machinev1beta1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cfg := plane.Config()
	cfg.WarningHandlerWithContext = rest.NoWarnings{} // Many a Job looks as if its pods could not be admitted.
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Install(t.Context(), plane.Config(), s); err != nil {
		t.Fatal(err)
	}
	cluster := &simulated{t: t, client: c}
	cluster.run()
	t.Cleanup(func() {
		cluster.halt()
		if t.Failed() {
			cluster.mu.Lock()
			defer cluster.mu.Unlock()
			for _, line := range cluster.lines {
				t.Log(line)
			}
		}
	})
	return cluster
}

// run plays the cluster's controllers until halt.
func (c *simulated) run() {
	ctx, stop := context.WithCancel(context.Background())
	c.stop, c.done = stop, make(chan error, 1)
	go func() {
		c.done <- sim.Run(ctx, plane.Config(), sim.WithProgress(func(line string) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.lines = append(c.lines, time.Now().Format("05.000 ")+line)
		}))
	}()
}

// halt stops the controllers.
func (c *simulated) halt() {
	c.stop()
	if err := <-c.done; err != nil {
		c.t.Errorf("Run: %v", err)
	}
	c.done <- nil // A second halt returns at once.
}

// recordRevisions keeps every revision of the cluster's objects from now on.
func (c *simulated) recordRevisions() {
	c.t.Helper()
	c.record(&configv1.ClusterVersionList{}, func(obj runtime.Object) {
		c.revisions = append(c.revisions, obj.(*configv1.ClusterVersion))
	})
	c.record(&corev1.NodeList{}, func(obj runtime.Object) { c.nodes = append(c.nodes, obj.(*corev1.Node)) })
	c.record(&mcfgv1.MachineConfigPoolList{}, func(obj runtime.Object) {
		c.pools = append(c.pools, obj.(*mcfgv1.MachineConfigPool))
	})
}

// record calls take for every revision of the kind from now on.
func (c *simulated) record(kind client.ObjectList, take func(runtime.Object)) {
	c.t.Helper()
	w, err := c.client.Watch(c.t.Context(), kind)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(w.Stop)
	go func() {
		for event := range w.ResultChan() {
			if _, isObject := event.Object.(client.Object); !isObject {
				return // The watch has ended, with the test.
			}
			c.mu.Lock()
			take(event.Object)
			c.mu.Unlock()
		}
	}()
}

// desire writes spec.desiredUpdate.
func (c *simulated) desire(update *configv1.Update) {
	c.t.Helper()
	cv := c.version()
	next := cv.DeepCopy()
	next.Spec.DesiredUpdate = update
	if err := c.client.Patch(c.t.Context(), next, client.MergeFrom(cv)); err != nil {
		c.t.Fatal(err)
	}
}

// version reads the ClusterVersion.
func (c *simulated) version() *configv1.ClusterVersion {
	c.t.Helper()
	cv := &configv1.ClusterVersion{}
	if err := c.client.Get(c.t.Context(), client.ObjectKey{Name: "version"}, cv); err != nil {
		c.t.Fatal(err)
	}
	return cv
}

// pool reads a MachineConfigPool.
func (c *simulated) pool(name string) *mcfgv1.MachineConfigPool {
	c.t.Helper()
	pool := &mcfgv1.MachineConfigPool{}
	if err := c.client.Get(c.t.Context(), client.ObjectKey{Name: name}, pool); err != nil {
		c.t.Fatal(err)
	}
	return pool
}

// change changes the live scenario.
func (c *simulated) change(edit func(*sim.Scenario)) {
	c.t.Helper()
	if err := sim.Update(c.t.Context(), plane.Config(), edit); err != nil {
		c.t.Fatal(err)
	}
}

// eventually waits until reached holds.
func (c *simulated) eventually(what string, reached func() bool) {
	c.t.Helper()
	look, tooLate := time.NewTicker(5*time.Millisecond), time.After(patience)
	defer look.Stop()
	for !reached() {
		select {
		case <-look.C:
		case <-tooLate:
			c.t.Fatalf("not within %s: %s; conditions: %v", patience, what, c.version().Status.Conditions)
		}
	}
}

// completed reports whether the newest history entry is that version, completed.
func (c *simulated) completed(version string) func() bool {
	return func() bool {
		newest := c.version().Status.History[0]
		return newest.Version == version && newest.State == configv1.CompletedUpdate
	}
}

// updated reports whether all pools run their configuration, of that version.
func (c *simulated) updated(version string) func() bool {
	return func() bool {
		pools := &mcfgv1.MachineConfigPoolList{}
		if err := c.client.List(c.t.Context(), pools); err != nil {
			c.t.Fatal(err)
		}
		for _, pool := range pools.Items {
			if c.releaseOf(pool.Spec.Configuration.Name) != version || pool.Status.Configuration.Name != pool.Spec.Configuration.Name ||
				pool.Status.ObservedGeneration != pool.Generation || !poolIs(&pool, mcfgv1.MachineConfigPoolUpdated) {
				return false
			}
		}
		return true
	}
}

// releaseOf returns the release that a rendered configuration belongs to.
func (c *simulated) releaseOf(config string) string {
	c.t.Helper()
	mc := &mcfgv1.MachineConfig{}
	if err := c.client.Get(c.t.Context(), client.ObjectKey{Name: config}, mc); err != nil {
		c.t.Fatal(err)
	}
	return mc.Annotations["machineconfiguration.openshift.io/release-image-version"]
}

func poolIs(pool *mcfgv1.MachineConfigPool, t mcfgv1.MachineConfigPoolConditionType) bool {
	for _, condition := range pool.Status.Conditions {
		if condition.Type == t {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// is reports whether the ClusterVersion's condition has that status and reason;
// status "" asks for an absent condition.
func (c *simulated) is(t string, status configv1.ConditionStatus, reason string) func() bool {
	return func() bool {
		for _, condition := range c.version().Status.Conditions {
			if string(condition.Type) == t {
				return condition.Status == status && condition.Reason == reason
			}
		}
		return status == ""
	}
}

// operator reads a ClusterOperator.
func (c *simulated) operator(name string) *configv1.ClusterOperator {
	c.t.Helper()
	co := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := c.client.Get(c.t.Context(), client.ObjectKeyFromObject(co), co); err != nil {
		c.t.Fatal(err)
	}
	return co
}
