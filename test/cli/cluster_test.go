// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// The release that the cluster runs, and those that it is offered.
const (
	installed = "4.18.1"
	offered   = "4.18.2"
	later     = "4.18.3"
)

const (
	// patience is the longest that a test waits for anything.
	patience = time.Minute
	// pollInterval of what is waited for.
	pollInterval = 50 * time.Millisecond
)

// cluster is a freshly installed OpenShift of seven nodes with the operator, until the test ends.
type cluster struct {
	t   *testing.T
	ctx context.Context
}

// newCluster installs a cluster that updates in about a second, with changes, and starts the operator.
func newCluster(t *testing.T, changes ...func(*sim.Scenario)) *cluster {
	t.Helper()
	c := &cluster{t, t.Context()}
	s := sim.Default()
	s.Version, s.Updates = installed, []sim.OfferedUpdate{{Version: offered}, {Version: later}}
	s.Masters.Size, s.Workers.Size = 3, 3
	s.CustomPools = []sim.CustomPool{{Name: "infra", Pool: sim.Pool{Size: 1}}}
	s.MachineConfigNodes = true
	const unit = sim.Duration(10 * time.Millisecond)
	timings := &s.Timings
	timings.Accept, timings.Operator, timings.Graph, timings.Render = 3*unit, 2*unit, 2*unit, 3*unit
	timings.Drain, timings.Apply, timings.Reboot = 2*unit, 2*unit, 4*unit
	timings.Upgradeable, timings.Reconcile = 5*unit, 5*unit
	for _, change := range changes {
		change(&s)
	}
	if err := sim.Install(c.ctx, env.Config(), s); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- sim.Run(ctx, env.Config()) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("simulated OpenShift: %v", err)
		}
	})
	c.startOperator()
	return c
}

// startOperator starts the operator, which removes what is left of the test before it ends.
func (c *cluster) startOperator() {
	c.t.Helper()
	operator, err := env.StartOperator(c.ctx, environment.OperatorOptions{Binary: manager, Args: []string{"--leader-elect=false"}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := removeOurs(ctx); err != nil {
			c.t.Error(err)
		}
		if err := operator.Stop(); err != nil {
			c.t.Errorf("the operator does not stop in order: %v", err)
		}
		if c.t.Failed() {
			c.t.Logf("log of the operator:\n%s", operator.Log())
		}
	})
}

// removeOurs deletes all objects of ours, and waits until they are gone.
func removeOurs(ctx context.Context) error {
	lists := []client.ObjectList{&v1beta1.UpgradeConfigList{}, &v1beta1.UpgradeJobList{}, &v1beta1.UpgradeJobHookList{}, &v1beta1.UpgradeSuspensionWindowList{}}
	return poll(ctx, func() error {
		var left error
		for _, list := range lists {
			if err := env.Client.List(ctx, list); err != nil {
				return err
			}
			objects, err := meta.ExtractList(list)
			if err != nil {
				return err
			}
			for _, o := range objects {
				object := o.(client.Object)
				left = errors.Join(left, fmt.Errorf("%T %s is left", object, object.GetName()))
				if err := client.IgnoreNotFound(env.Client.Delete(ctx, object)); err != nil {
					return err
				}
			}
		}
		return left
	})
}

// poll repeats a check until it has no error.
func poll(ctx context.Context, check func() error) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// eventually wants a check to succeed within patience.
func (c *cluster) eventually(what string, check func() error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	if err := poll(ctx, check); err != nil {
		c.t.Fatalf("%s: %v", what, err)
	}
}

// create creates an object.
func (c *cluster) create(object client.Object) {
	c.t.Helper()
	if err := env.Client.Create(c.ctx, object); err != nil {
		c.t.Fatal(err)
	}
}

// get reads an object anew.
func (c *cluster) get(object client.Object) {
	c.t.Helper()
	if err := env.Client.Get(c.ctx, client.ObjectKeyFromObject(object), object); err != nil {
		c.t.Fatal(err)
	}
}

// edit changes an object, whoever else writes it.
func edit[T client.Object](c *cluster, object T, change func(T)) {
	c.t.Helper()
	c.eventually("edit "+object.GetName(), func() error {
		if err := env.Client.Get(c.ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(object)
		return env.Client.Update(c.ctx, object)
	})
}

// change changes what happens in the cluster from now on.
func (c *cluster) change(change func(*sim.Scenario)) {
	c.t.Helper()
	if err := sim.Update(c.ctx, env.Config(), change); err != nil {
		c.t.Fatal(err)
	}
}

// reaches waits until a job has a phase.
func (c *cluster) reaches(job *v1beta1.UpgradeJob, phase v1beta1.Phase) {
	c.t.Helper()
	c.eventually("the job is "+string(phase), func() error {
		c.get(job)
		if job.Status.Phase != phase {
			return fmt.Errorf("it is %s: %+v", job.Status.Phase, job.Status.Conditions)
		}
		return nil
	})
}

// version reads OpenShift's ClusterVersion.
func (c *cluster) version() *configv1.ClusterVersion {
	c.t.Helper()
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.ClusterVersionName}}
	c.get(cv)
	return cv
}
