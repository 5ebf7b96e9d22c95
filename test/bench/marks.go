// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/test/environment"
)

// marks are the moments at which watches showed the turns of an upgrade. The audit log then tells the requests behind
// them: it has their times, but not what they wrote.
type marks struct {
	// desired is when spec.desiredUpdate named the version.
	desired time.Time
	// complete is when nothing was left for the cluster to do, and completedBy the resource whose write made it so.
	complete    time.Time
	completedBy string
	// ended is when the job had an outcome.
	ended time.Time
}

// marker keeps up with an upgrade.
type marker struct {
	version string
	marks   marks
	job     *v1beta1.UpgradeJob

	cluster *configv1.ClusterVersion
	pools   map[string]*mcfgv1.MachineConfigPool
	watches []watch.Interface
	events  chan marked
}

// marked is an event, with the time at which it was seen.
type marked struct {
	watch.Event
	at time.Time
}

// startMarker starts to watch for the upgrade to a version. Call stop in the end.
func startMarker(ctx context.Context, c client.WithWatch, version string) (*marker, error) {
	m := &marker{version: version, pools: map[string]*mcfgv1.MachineConfigPool{}, events: make(chan marked, 1000)}
	for _, kind := range []client.ObjectList{
		&configv1.ClusterVersionList{}, &mcfgv1.MachineConfigPoolList{}, &v1beta1.UpgradeJobList{},
	} {
		w, err := c.Watch(ctx, kind)
		if err != nil {
			m.stop()
			return nil, fmt.Errorf("watch %T: %w", kind, err)
		}
		m.watches = append(m.watches, w)
		go func() {
			for event := range w.ResultChan() {
				select {
				case m.events <- marked{event, time.Now()}:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	return m, nil
}

func (m *marker) stop() {
	for _, w := range m.watches {
		w.Stop()
	}
}

// await follows the upgrade until its job has an outcome and holds nothing any more. It fails if that is not success.
func (m *marker) await(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the upgrade to %s: %w", m.version, context.Cause(ctx))
		case event := <-m.events:
			if event.Type == watch.Error {
				return errors.New("a watch of the benchmark has ended")
			}
			m.take(event)
		}
		if m.job == nil || !m.job.Status.Phase.Finished() || len(m.job.Finalizers) > 0 {
			continue
		}
		if m.job.Status.Phase != v1beta1.PhaseSucceeded {
			return fmt.Errorf("UpgradeJob %s is %s: %v", m.job.Name, m.job.Status.Phase, m.job.Status.Conditions)
		}
		return nil
	}
}

func (m *marker) take(event marked) {
	resource := ""
	switch object := event.Object.(type) {
	case *configv1.ClusterVersion:
		resource, m.cluster = "clusterversions", object
		if m.marks.desired.IsZero() && openshift.Desires(object, openshift.Release{Version: m.version}) {
			m.marks.desired = event.at
		}
	case *mcfgv1.MachineConfigPool:
		resource = "machineconfigpools"
		m.pools[object.Name] = object
	case *v1beta1.UpgradeJob:
		if v := object.Spec.DesiredVersion; v == nil || v.Version != m.version || object.Namespace != environment.Namespace {
			return
		}
		m.job = object
		if m.marks.ended.IsZero() && object.Status.Phase.Finished() {
			m.marks.ended = event.at
		}
		return
	}
	if m.marks.complete.IsZero() && m.isComplete() {
		m.marks.complete, m.marks.completedBy = event.at, resource
	}
}

// isComplete tells whether the release is completed and every pool has its machines on its configuration. The pools
// of the simulated cluster get that of the release before the release is completed, since the masters are part of it.
func (m *marker) isComplete() bool {
	if m.cluster == nil || !openshift.Runs(m.cluster, openshift.Release{Version: m.version}) {
		return false
	}
	for _, pool := range m.pools {
		updated := slices.ContainsFunc(pool.Status.Conditions, func(c mcfgv1.MachineConfigPoolCondition) bool {
			return c.Type == mcfgv1.MachineConfigPoolUpdated && c.Status == corev1.ConditionTrue
		})
		if !updated || pool.Status.ObservedGeneration < pool.Generation || pool.Status.Configuration.Name != pool.Spec.Configuration.Name {
			return false
		}
	}
	return true
}
