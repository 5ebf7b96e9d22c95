// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/controller"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/operator"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
	"github.com/appuio/managed-upgrade-operator/test/controlplane"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// reconcilerAgent is how the reconciler under measurement introduces itself.
const reconcilerAgent = "bench-reconciler"

// measureReconciles measures passes over a job in the middle of an upgrade, in the large and in the small cluster.
func (b *bench) measureReconciles(ctx context.Context) error {
	reconciler, err := b.reconciler(ctx)
	if err != nil {
		return err
	}
	clusters := []sim.Scenario{smallCluster()}
	if b.nodes > 0 {
		clusters = append(clusters, b.largeCluster())
	}
	for i, s := range clusters {
		target := noTarget
		if i == 0 {
			target = targetReconcile
		}
		if err := b.measureReconcile(ctx, s, reconciler, target); err != nil {
			return err
		}
	}
	return nil
}

// measureReconcile measures a pass when operators are updated, and as many nodes are being drained as may be. Nothing
// has changed since the pass before, so nothing is written.
func (b *bench) measureReconcile(ctx context.Context, s sim.Scenario, reconciler *controller.UpgradeJobReconciler, target float64) error {
	nodes := s.Masters.Size + s.Workers.Size
	s.Timings.Drain = sim.Duration(time.Hour) // there the upgrade stands still
	s.Updates = []sim.OfferedUpdate{{Version: version(1)}}
	job := newJob(fmt.Sprintf("reconcile-%d", nodes), version(1), time.Now())
	key := client.ObjectKeyFromObject(job)
	return b.simulated(ctx, s, func(ctx context.Context) error {
		if err := b.env.Client.Create(ctx, job); err != nil {
			return fmt.Errorf("create UpgradeJob %s: %w", job.Name, err)
		}
		b.say("waiting until the upgrade stands still, with nodes being drained")
		pass := func() error {
			_, err := reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: key})
			return err
		}
		if err := b.standStill(ctx, pass); err != nil {
			return err
		}
		if err := b.checkWaiting(ctx, key); err != nil {
			return err
		}
		var failed error
		took := perOperation(func() {
			if err := pass(); err != nil {
				failed = err
			}
		})
		more, err := b.audit.next()
		if err = errors.Join(failed, err); err != nil {
			return err
		}
		if n := len(more.filter(changesOfReconciler)); n > 0 {
			return fmt.Errorf("the passes over UpgradeJob %s made %d changes", job.Name, n)
		}
		b.add(fmt.Sprintf("one no-change reconcile of a running UpgradeJob, %d nodes", nodes), "µs", target, took)
		return b.abandon(ctx, key)
	})
}

// abandon deletes a job that no operator leads any more: the next one would take it up in another cluster.
func (b *bench) abandon(ctx context.Context, key client.ObjectKey) error {
	job := &v1beta1.UpgradeJob{}
	if err := b.env.Client.Get(ctx, key, job); err != nil {
		return fmt.Errorf("get UpgradeJob %s: %w", key.Name, err)
	}
	held := job.DeepCopy()
	job.Finalizers = nil
	if err := b.env.Client.Patch(ctx, job, client.MergeFrom(held)); err != nil {
		return fmt.Errorf("take the finalizers off UpgradeJob %s: %w", key.Name, err)
	}
	if err := b.env.Client.Delete(ctx, job); err != nil {
		return fmt.Errorf("delete UpgradeJob %s: %w", key.Name, err)
	}
	return nil
}

// standStill leads the upgrade on until nothing changes any more, not even the progress in the job's status, which is
// written every 10 seconds.
func (b *bench) standStill(ctx context.Context, pass func() error) error {
	const step, unchanged = 250 * time.Millisecond, 12 * time.Second
	for still := time.Duration(0); still < unchanged; still += step {
		if err := pass(); err != nil {
			return err
		}
		if err := sleep(ctx, step); err != nil {
			return err
		}
		more, err := b.audit.next()
		if err != nil {
			return err
		}
		changes := more.filter(func(e *controlplane.AuditEvent) bool { return changesOfReconciler(e) || e.UserAgent == simulatorAgent })
		if len(changes) > 0 {
			still = 0
		}
	}
	return nil
}

// checkWaiting fails unless the job waits for nodes.
func (b *bench) checkWaiting(ctx context.Context, key client.ObjectKey) error {
	job := &v1beta1.UpgradeJob{}
	if err := b.env.Client.Get(ctx, key, job); err != nil {
		return fmt.Errorf("get UpgradeJob %s: %w", key.Name, err)
	}
	for i := range job.Status.Blockers {
		if strings.HasPrefix(job.Status.Blockers[i].Object, "Node/") {
			return nil
		}
	}
	return fmt.Errorf("UpgradeJob %s does not wait for nodes: phase %s, conditions %v", key.Name, job.Status.Phase, job.Status.Conditions)
}

// changesOfReconciler tells whether a request is a change by the reconciler. It may read: which nodes are in work is
// asked for every openshift.NodesInterval.
func changesOfReconciler(e *controlplane.AuditEvent) bool {
	return e.UserAgent == reconcilerAgent && e.Verb != "get" && e.Verb != "list"
}

// reconciler returns a reconciler of UpgradeJobs that reads from the caches of a manager as it is shipped, which are
// filled by the API server. The caches live as long as ctx.
func (b *bench) reconciler(ctx context.Context) (*controller.UpgradeJobReconciler, error) {
	restConfig := b.env.Config()
	restConfig.UserAgent = reconcilerAgent
	upgraders := &upgrader.Registry{}
	if err := upgraders.Register(upgrader.OpenShift()); err != nil {
		return nil, err
	}
	// Only its client and cache are used. It is not started: its own reconcilers would work too.
	shipped, err := operator.New(ctx, restConfig, operator.Options{
		Namespace: environment.Namespace, OperatorNamespace: environment.Namespace, HealthProbeAddress: "0",
		Upgraders: upgraders, Clock: clock.RealClock{},
	})
	if err != nil {
		return nil, err
	}
	watcher, err := monitoring.New(monitoring.Options{PrometheusURL: b.env.Monitoring.Prometheus.URL()})
	if err != nil {
		return nil, err
	}
	reconciler := &controller.UpgradeJobReconciler{
		Client: shipped.GetClient(), Cluster: openshift.NewCluster(shipped.GetClient(), shipped.GetAPIReader()), Monitoring: watcher,
		Upgraders: &upgrader.Finder{Registry: upgraders}, Clock: clock.RealClock{}, Events: shipped.GetEventRecorder("bench"), Namespace: environment.Namespace,
		Hooks: &hooks.Engine{Client: shipped.GetClient(), Live: shipped.GetAPIReader()},
	}
	// It is made ready by a second manager, which is not started either: the first one has a reconciler of that name.
	other, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: shipped.GetScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return nil, fmt.Errorf("build a manager: %w", err)
	}
	if err := reconciler.SetupWithManager(other); err != nil {
		return nil, fmt.Errorf("set the reconciler up: %w", err)
	}
	go func() { _ = shipped.GetCache().Start(ctx) }() // ends with ctx
	if !shipped.GetCache().WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("fill the cache: %w", context.Cause(ctx))
	}
	return reconciler, nil
}
