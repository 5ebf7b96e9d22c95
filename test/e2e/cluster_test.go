// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/operator"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// The release that the clusters of the tests run, and the one that they are offered.
const (
	installed = "4.18.1"
	offered   = "4.18.2"
)

const (
	// patience is how long a test may take, and the longest that it waits for anything.
	patience = 60 * time.Second
	// pollInterval of what is not watched.
	pollInterval = 20 * time.Millisecond
	// promptness is how late the operator may be on a quiet cluster.
	promptness = time.Second
)

// cluster is a freshly installed OpenShift on the API server that all tests share, with what a test did to it.
type cluster struct {
	t   *testing.T
	ctx context.Context

	// born is before anything of this cluster is there; began is when the test did.
	born, began time.Time
	audit       environment.AuditMark
	// judged is from when on the operator's permissions are judged: an API server that starts denies everything until
	// it has read the roles.
	judged    time.Time
	operators []*environment.Operator
	// atEnd is done when the operators have stopped, the last one first, whatever became of the test.
	atEnd []func()
	// away is set while Prometheus is stopped.
	away bool

	stopSimulation func()
	mutex          sync.Mutex
	simulation     []string
}

// small is a cluster of six nodes that updates in about a second.
func small() sim.Scenario {
	s := sim.Default()
	s.Version, s.Updates = installed, []sim.OfferedUpdate{{Version: offered}}
	s.Masters.Size, s.Workers.Size = 3, 3
	const unit = sim.Duration(10 * time.Millisecond)
	t := &s.Timings
	t.Accept, t.Operator, t.Graph, t.Render = 3*unit, 2*unit, 2*unit, 3*unit
	t.Drain, t.Apply, t.Reboot = 2*unit, 2*unit, 4*unit
	t.Upgradeable, t.Reconcile = 5*unit, 5*unit
	return s
}

// newCluster installs the small cluster, with changes, and runs it until the test ends. Whatever is ours is removed
// then, and the invariants are checked.
func newCluster(t *testing.T, changes ...func(*sim.Scenario)) *cluster {
	t.Helper()
	return newClusterFor(t, patience, changes...)
}

// newClusterFor is newCluster for a test that takes longer than usual.
func newClusterFor(t *testing.T, limit time.Duration, changes ...func(*sim.Scenario)) *cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	c := &cluster{t: t, ctx: ctx, born: time.Now(), stopSimulation: func() {}}
	t.Cleanup(c.end)
	scenario := small()
	for _, change := range changes {
		change(&scenario)
	}
	if err := sim.Install(ctx, env.Config(), scenario); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.tearDown)
	c.startSimulation()
	// A leader that was killed may have left its lease.
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: operator.LeaderElectionID}}
	if err := client.IgnoreNotFound(env.Client.Delete(ctx, lease)); err != nil {
		t.Fatal(err)
	}
	c.fromNowOn()
	return c
}

// fromNowOn makes the invariants, and everything that a test counts, begin at this moment. It is for tests that
// prepare the cluster first.
func (c *cluster) fromNowOn() {
	c.t.Helper()
	c.eventually("the journal has come this far", func() error {
		if cv := c.version(); !knows(past.versionsSince(time.Time{}), cv) {
			return fmt.Errorf("the revision %s of ClusterVersion has not arrived", cv.ResourceVersion)
		}
		return nil
	})
	c.began = time.Now()
	mark, err := env.MarkAudit()
	if err != nil {
		c.t.Fatal(err)
	}
	c.audit = mark
}

func (c *cluster) startSimulation() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- sim.Run(ctx, env.Config(), sim.WithProgress(func(line string) {
			c.mutex.Lock()
			defer c.mutex.Unlock()
			c.simulation = append(c.simulation, time.Now().Format("05.000 ")+line)
		}))
	}()
	c.stopSimulation = func() {
		cancel()
		if err := <-done; err != nil {
			c.t.Errorf("simulated OpenShift: %v", err)
		}
	}
}

// change changes what happens in the cluster from now on.
func (c *cluster) change(edit func(*sim.Scenario)) {
	c.t.Helper()
	if err := sim.Update(c.ctx, env.Config(), edit); err != nil {
		c.t.Fatal(err)
	}
}

// startOperator starts the operator for its own namespace, without an election. Flags are added, and win.
func (c *cluster) startOperator(flags ...string) *environment.Operator {
	c.t.Helper()
	return c.start(environment.OperatorOptions{Args: append([]string{"--leader-elect=false"}, flags...)})
}

// startOperatorThrough starts the operator behind a proxy.
func (c *cluster) startOperatorThrough(proxy *environment.Proxy) *environment.Operator {
	c.t.Helper()
	return c.start(environment.OperatorOptions{
		Args: []string{"--leader-elect=false"}, Server: proxy.URL(), ServerCA: proxy.CA(),
	})
}

func (c *cluster) start(o environment.OperatorOptions) *environment.Operator {
	c.t.Helper()
	o.Binary = manager
	started, err := env.StartOperator(c.ctx, o)
	if err != nil {
		c.t.Fatal(err)
	}
	c.operators = append(c.operators, started)
	return started
}

// startProxy starts a proxy for the operator, which ends with the test.
func (c *cluster) startProxy() *environment.Proxy {
	c.t.Helper()
	proxy, err := environment.StartProxy(env.Config())
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(proxy.Stop)
	return proxy
}

// version reads OpenShift's ClusterVersion.
func (c *cluster) version() *configv1.ClusterVersion {
	c.t.Helper()
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.ClusterVersionName}}
	c.get(cv)
	return cv
}

// tearDown removes what is ours, while the operator still runs, judges what happened, and stops everything.
func (c *cluster) tearDown() {
	ctx, cancel := context.WithTimeout(context.Background(), patience/2)
	defer cancel()
	c.ctx = ctx
	if c.t.Failed() {
		c.dump()
	}
	failed := c.t.Failed()
	if err := errors.Join(removeOurs(ctx), awaitNoHookJobs(ctx)); err != nil {
		c.t.Error(err)
	}
	if !failed {
		c.checkInvariants()
	}
	for _, o := range c.operators {
		c.stopOperator(o, failed)
	}
	c.stopSimulation()
}

// end undoes what outlives the cluster: the next test shall not suffer from it.
func (c *cluster) end() {
	ctx, cancel := context.WithTimeout(context.Background(), patience/2)
	defer cancel()
	c.ctx = ctx
	for _, f := range slices.Backward(c.atEnd) {
		f()
	}
}

// stopOperator ends an operator that has not been killed, in order.
func (c *cluster) stopOperator(o *environment.Operator, failed bool) {
	select {
	case <-o.Done():
	default:
		if err := o.Stop(); err != nil {
			c.t.Errorf("the operator does not stop in order: %v", err)
		}
	}
	log := o.Log()
	for _, bad := range []string{"panic", "DATA RACE"} {
		if strings.Contains(log, bad) {
			failed = true
			c.t.Errorf("the operator's log tells of a %s", bad)
		}
	}
	if failed || c.t.Failed() {
		c.t.Logf("log of the operator, process %d:\n%s", o.PID(), log)
	}
}

// removeOurs deletes all objects of ours, and waits until they are gone.
func removeOurs(ctx context.Context) error {
	lists := []client.ObjectList{
		&v1alpha1.UpgradeConfigList{}, &v1beta1.UpgradeConfigList{}, &v1beta1.UpgradeJobList{}, &v1beta1.UpgradeJobHookList{}, &v1beta1.UpgradeSuspensionWindowList{},
		&v1beta1.ClusterVersionList{}, &v1beta1.NodeForceDrainList{}, &v1beta1.UpgraderList{},
	}
	var remaining error
	err := poll(ctx, func() error {
		remaining = nil
		for _, list := range lists {
			if err := env.Client.List(ctx, list); err != nil {
				return err
			}
			for _, object := range objectsOf(list) {
				remaining = errors.Join(remaining, fmt.Errorf("%T %s is left, finalizers %v", object, client.ObjectKeyFromObject(object), object.GetFinalizers()))
				if object.GetDeletionTimestamp().IsZero() {
					if err := client.IgnoreNotFound(env.Client.Delete(ctx, object)); err != nil {
						return err
					}
				}
			}
		}
		return remaining
	})
	if err == nil || remaining == nil {
		return err
	}
	// The next test shall not suffer from it.
	for _, list := range lists {
		for _, object := range objectsOf(list) {
			object.SetFinalizers(nil)
			_ = env.Client.Update(context.WithoutCancel(ctx), object)
		}
	}
	return remaining
}

// dump tells what a failed test left.
func (c *cluster) dump() {
	for _, list := range []client.ObjectList{
		&v1alpha1.UpgradeConfigList{}, &v1beta1.UpgraderList{},
		&v1beta1.UpgradeConfigList{}, &v1beta1.UpgradeJobList{}, &v1beta1.UpgradeJobHookList{}, &v1beta1.NodeForceDrainList{},
	} {
		if err := env.Client.List(c.ctx, list); err != nil {
			c.t.Log(err)
		}
		for _, object := range objectsOf(list) {
			object.SetManagedFields(nil)
			text, _ := yaml.Marshal(object)
			c.t.Logf("%T\n%s", object, text)
		}
	}
	cv := &configv1.ClusterVersion{}
	if err := env.Client.Get(c.ctx, client.ObjectKey{Name: v1beta1.ClusterVersionName}, cv); err != nil {
		c.t.Log(err)
	}
	c.t.Log(c.describePools())
	text, _ := yaml.Marshal(map[string]any{
		"annotations": cv.Annotations, "spec": cv.Spec, "history": cv.Status.History, "conditions": cv.Status.Conditions,
	})
	c.t.Logf("ClusterVersion\n%s", text)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.t.Log("simulated OpenShift:\n" + strings.Join(c.simulation[max(0, len(c.simulation)-40):], "\n"))
}
