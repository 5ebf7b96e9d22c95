// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"golang.org/x/sync/errgroup"
)

// ErrNotInstalled says that Run found no simulated cluster: Install comes first.
var ErrNotInstalled = errors.New("no simulated OpenShift is installed on this API server")

// Option changes how Run works.
type Option func(*runner)

// WithProgress calls tell with a line about every event in the cluster, like
// "MCO: worker-3 draining". Calls come from several goroutines, one at a time.
func WithProgress(tell func(line string)) Option {
	return func(r *runner) { r.tell = tell }
}

// Run plays the controllers of the cluster that Install made, until ctx ends;
// then it returns nil. It outlives outages of the API server. It returns
// ErrNotInstalled, or an error that says what is wrong with the scenario found.
func Run(ctx context.Context, cfg *rest.Config, options ...Option) error {
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	evictor, err := newEvictor(cfg)
	if err != nil {
		return err
	}
	r := &runner{client: c, evictor: evictor, cluster: newCluster(), tell: func(string) {}}
	for _, option := range options {
		option(r)
	}
	if err := r.readScenario(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	loops := r.loops()
	synced := r.watchAll(ctx, group)
	group.Go(func() error {
		for _, first := range synced {
			select {
			case <-first:
			case <-ctx.Done():
				return nil
			}
		}
		for _, l := range loops {
			group.Go(func() error { return l.run(ctx) })
		}
		return nil
	})
	return group.Wait()
}

// loops returns the controllers.
func (r *runner) loops() []*loop {
	loops := []*loop{
		r.loop("CVO", func(_ *view, obj client.Object) bool { return !isPod(obj) && !isWorker(obj) && !isAside(obj) }, planOperators, planVersion),
		r.loop("MCO", func(v *view, obj client.Object) bool { return !isPod(obj) && !isAside(obj) || v.concernsDrain(obj) }, planPools, planNodes),
		r.loop("drain", func(v *view, obj client.Object) bool { return v.concernsDrain(obj) || isVersion(obj) }, planEvictions),
		r.loop("kubelet", func(v *view, obj client.Object) bool {
			return isPod(obj) || isVersion(obj) || isNode(obj) && len(v.pods.waiting) > 0
		}, planPods),
	}
	return append(loops, r.optionalLoops()...)
}

// optionalLoops returns the controllers of kinds that only some scenarios have.
func (r *runner) optionalLoops() []*loop {
	var loops []*loop
	if r.reports {
		loops = append(loops, r.loop("MachineConfigNodes", func(v *view, obj client.Object) bool {
			return isNode(obj) || isReport(obj) || isVersion(obj) || v.concernsDrain(obj)
		}, planReports))
	}
	if r.machines {
		loops = append(loops, r.loop("machine API", func(v *view, obj client.Object) bool {
			return obj == nil || isMachine(obj) || isNode(obj) || isVersion(obj) || v.concernsDrain(obj)
		}, planMachineSets, planMachines))
	}
	if r.integrities {
		loops = append(loops, r.loop("file integrity", func(_ *view, obj client.Object) bool {
			return obj == nil || isIntegrity(obj) || isVersion(obj)
		}, planIntegrities))
	}
	return loops
}

// runner is what the parts of a running simulator share.
type runner struct {
	client  client.WithWatch
	evictor rest.Interface
	cluster *cluster
	// reports, machines and integrities say whether there are MachineConfigNodes,
	// Machines and FileIntegrities.
	reports, machines, integrities bool
	printer                        printer
	tell                           func(string)
}

// say tells people a line, if it says anything.
func (r *runner) say(line string) {
	if line != "" {
		r.printer.print(r.tell, line)
	}
}

// retryAfter is how long the simulator waits before it tries again what the API
// server did not do.
const retryAfter = 200 * time.Millisecond

// readScenario reads the scenario, waiting for an API server that is away.
func (r *runner) readScenario(ctx context.Context) error {
	told := ""
	for {
		cm := &corev1.ConfigMap{}
		err := r.client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: ConfigMapName}, cm)
		switch {
		case err == nil:
			s, err := scenarioOf(cm)
			if err != nil {
				return err
			}
			r.cluster.setScenario(s)
			r.reports, r.machines, r.integrities = s.MachineConfigNodes, s.MachineAPI != nil, s.FileIntegrity != nil
			return nil
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			return fmt.Errorf("%w: ConfigMap %s/%s not found", ErrNotInstalled, Namespace, ConfigMapName)
		case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
			return fmt.Errorf("read scenario: %w", err)
		}
		if err.Error() != told {
			told = err.Error()
			r.say("simulator: waiting for the API server: " + told)
		}
		if err := pause(ctx, retryAfter); err != nil {
			return err
		}
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
