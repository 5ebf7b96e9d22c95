// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// world is what a scrape found in the cache: objects that others hold too, and which nobody may change.
type world struct {
	now       time.Time
	namespace string                // the one that is watched; empty for all
	steps     func(string) []string // those of an upgrader, by conditions

	clusterVersion  *configv1.ClusterVersion // nil if there is none
	pools           mcfgv1.MachineConfigPoolList
	nodes           metav1.PartialObjectMetadataList // those that are cordoned
	jobs            v1beta1.UpgradeJobList
	configs         v1beta1.UpgradeConfigList
	windows         v1beta1.UpgradeSuspensionWindowList
	hooks           v1beta1.UpgradeJobHookList
	clusterVersions v1beta1.ClusterVersionList
	forceDrains     v1beta1.NodeForceDrainList
	upgraders       v1beta1.UpgraderList
	muoConfigs      v1alpha1.UpgradeConfigList
	// unread has the kinds that could not be read: of these nothing can be said, not even that there are none.
	unread map[string]bool
}

// Kinds that are read, as the label kind has them.
const (
	kindOpenShiftVersion = "ClusterVersion.config.openshift.io"
	kindPool             = "MachineConfigPool"
	kindNode             = "Node"
	kindJob              = "UpgradeJob"
	kindConfig           = "UpgradeConfig"
	kindWindow           = "UpgradeSuspensionWindow"
	kindHook             = "UpgradeJobHook"
	kindClusterVersion   = "ClusterVersion"
	kindForceDrain       = "NodeForceDrain"
	kindUpgrader         = "Upgrader"
	kindMUOConfig        = "UpgradeConfig.upgrade.managed.openshift.io"
)

// gather reads all kinds from the cache, which has an informer for each of them already: the reconcilers watch them.
func (c *Collector) gather(ctx context.Context) *world {
	w := &world{now: c.Clock.Now(), namespace: c.Namespace, steps: c.stepNames(ctx), unread: map[string]bool{}}
	w.nodes.SetGroupVersionKind(openshift.NodeMetadata().GroupVersionKind())
	for kind, list := range map[string]client.ObjectList{
		kindPool: &w.pools, kindNode: &w.nodes, kindJob: &w.jobs, kindConfig: &w.configs, kindWindow: &w.windows, kindHook: &w.hooks,
		kindClusterVersion: &w.clusterVersions, kindForceDrain: &w.forceDrains, kindUpgrader: &w.upgraders, kindMUOConfig: &w.muoConfigs,
	} {
		c.read(ctx, w, kind, func() error { return c.Reader.List(ctx, list, client.UnsafeDisableDeepCopy) })
	}
	c.read(ctx, w, kindOpenShiftVersion, func() error {
		version := &configv1.ClusterVersion{}
		err := c.Reader.Get(ctx, types.NamespacedName{Name: v1beta1.ClusterVersionName}, version)
		if err == nil {
			w.clusterVersion = version
		}
		return client.IgnoreNotFound(err)
	})
	return w
}

// stepNames returns a function that gives the steps of an upgrader, each of which is asked for once in a scrape.
func (c *Collector) stepNames(ctx context.Context) func(string) []string {
	known := map[string][]string{}
	return func(upgrader string) []string {
		names, ok := known[upgrader]
		if !ok && c.Steps != nil {
			names = c.Steps(ctx, upgrader)
			known[upgrader] = names
		}
		return names
	}
}

func (c *Collector) read(ctx context.Context, w *world, kind string, read func() error) {
	w.unread[kind] = true
	c.guarded(ctx, kind, func() error {
		err := read()
		w.unread[kind] = err != nil
		if meta.IsNoMatchError(err) {
			return nil // the cluster does not have the kind, so that there is nothing to tell
		}
		return err
	})
}

// judge gives the series of a part of the world.
type judge struct {
	kind  string
	judge func(*series, *world)
}

// judges have the parts of the world, in the order in which they are judged.
var judges = []judge{
	{kindOpenShiftVersion, judgeCluster},
	{kindPool, judgePools},
	{kindNode, judgeNodes},
	{kindJob, judgeJobs},
	{kindConfig, judgeConfigs},
	{kindWindow, judgeWindows},
	{kindClusterVersion, judgeClusterVersions},
	{kindForceDrain, judgeForceDrains},
	{kindMUOConfig, judgeMUO},
	{"Ready", judgeReady},
}
