// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// mcpLabel is the label by which a pool of these tests is selected.
func mcpLabel(pool string) map[string]string {
	return map[string]string{"pools.operator.machineconfiguration.openshift.io/" + pool: ""}
}

// newPool returns a pool that can be selected by its name.
func newPool(name string, options ...func(*mcfgv1.MachineConfigPool)) *mcfgv1.MachineConfigPool {
	p := openshifttest.Pool(name, options...)
	for key, value := range mcpLabel(name) {
		p.Labels[key] = value
	}
	return p
}

// heldFor pauses a pool in the name of a job.
func heldFor(job string) func(*mcfgv1.MachineConfigPool) { return openshifttest.PoolPausedBy(job) }

// freed unpauses a pool, and leaves or takes the name of whoever paused it.
func freed(keepName bool) func(*mcfgv1.MachineConfigPool) {
	return func(p *mcfgv1.MachineConfigPool) {
		p.Spec.Paused = false
		if !keepName {
			delete(p.Annotations, v1beta1.UpgradeJobAnnotation)
		}
	}
}

// delayingPool has jobs of the config release a pool so long after their start at the earliest.
func delayingPool(pool string, from time.Duration) func(*v1beta1.UpgradeJobConfig) {
	return func(config *v1beta1.UpgradeJobConfig) {
		config.MachineConfigPools = append(config.MachineConfigPools, v1beta1.MachineConfigPoolConfig{
			MatchLabels:  &v1beta1.PoolSelector{Labels: mcpLabel(pool)},
			DelayUpgrade: &v1beta1.DelayUpgrade{DelayMin: &v1beta1.Duration{Duration: from}},
		})
	}
}

// pausing has jobs of the config pause pools when they fail.
func pausing(config *v1beta1.UpgradeJobConfig) {
	config.PauseMachineConfigPoolsOnFailure = &v1beta1.PauseMachineConfigPoolsOnFailure{Enabled: true}
}

// configuredBy changes the config of a job.
func configuredBy(changes ...func(*v1beta1.UpgradeJobConfig)) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) {
		for _, change := range changes {
			change(&job.Spec.Config)
		}
	}
}

// withPools is an upgrade that knows of pools.
func withPools() variant {
	return variant{
		name: v1beta1.DefaultUpgrader,
		steps: []steps.Step{
			steps.MachineConfigPoolsPaused(), steps.UpgradeCommenced(), steps.ControlPlaneUpgraded(), steps.MachineConfigPoolsUpgraded(), steps.DelayedPoolsUpgraded(),
		},
		finally: []steps.Step{steps.UnacceptedUpdateWithdrawn(), steps.MachineConfigPoolsGivenBack()},
	}
}

// acceptUpdate and completeUpdate do what the cluster-version operator would do next.
func (w *world) acceptUpdate() {
	w.t.Helper()
	cv := change(w, newClusterVersion(), func(cv *configv1.ClusterVersion) {
		entry := configv1.UpdateHistory{State: configv1.PartialUpdate, Version: "4.18.2", Image: "image:4.18.2"}
		cv.Status.History = append([]configv1.UpdateHistory{entry}, cv.Status.History...)
	})
	if cv.Spec.DesiredUpdate == nil {
		w.t.Fatal("the cluster was not asked for an update")
	}
}

func (w *world) completeUpdate() {
	w.t.Helper()
	change(w, newClusterVersion(), func(cv *configv1.ClusterVersion) { cv.Status.History[0].State = configv1.CompletedUpdate })
}

// expectMCPs fails unless the pools are held as told, by name.
func (w *world) expectMCPs(when string, want ...string) {
	w.t.Helper()
	list := &mcfgv1.MachineConfigPoolList{}
	if err := w.api.past(func() error { return w.client.List(w.t.Context(), list) }); err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for i := range list.Items {
		p := &list.Items[i]
		words := []string{p.Name}
		if p.Spec.Paused {
			words = append(words, "paused")
		}
		if name, ok := p.Annotations[v1beta1.UpgradeJobAnnotation]; ok {
			words = append(words, "named "+name)
		}
		all = append(all, strings.Join(words, " "))
	}
	slices.Sort(all)
	if diff := cmp.Diff(want, all); diff != "" {
		w.t.Errorf("%s: pools (-want +got):\n%s", when, diff)
	}
}

// add creates objects as somebody else would.
func (w *world) add(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		if err := w.api.past(func() error { return w.client.Create(w.t.Context(), o) }); err != nil {
			w.t.Fatal(err)
		}
	}
}

// lock is who holds the cluster.
func (w *world) lock() string {
	return get(w, newClusterVersion()).Annotations[v1beta1.UpgradeJobAnnotation]
}
