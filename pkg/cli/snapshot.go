// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// snapshot is what the commands know of the cluster, read at one time with the rights of the user.
type snapshot struct {
	// Now is when it was read, in the zone of the user.
	Now time.Time
	// Version is ClusterVersion/version of OpenShift.
	Version *configv1.ClusterVersion
	// Operators are OpenShift's ClusterOperators, by name.
	Operators []configv1.ClusterOperator
	// Pools are the MachineConfigPools, by name.
	Pools []mcfgv1.MachineConfigPool
	// RenderedBy is the version of the release that rendered the configuration of a pool, by the name of the pool, as far as that is known.
	RenderedBy map[string]string
	// Nodes are those that are cordoned, and that the machine-config operator works on, by name. Only readMachines reads them.
	Nodes []nodeInWork
	// Jobs are the UpgradeJobs, the newest startAfter first.
	Jobs []v1beta1.UpgradeJob
	// Configs are the UpgradeConfigs, by namespace and name.
	Configs []v1beta1.UpgradeConfig
	// Windows are the UpgradeSuspensionWindows, by start.
	Windows []v1beta1.UpgradeSuspensionWindow
	// Upgraders are the objects of kind Upgrader.
	Upgraders []v1beta1.Upgrader
	// Managed are the objects of the Managed Upgrade Operator's kind UpgradeConfig, by namespace and name.
	Managed []v1alpha1.UpgradeConfig
	// OneNamespace is the namespace that Jobs, Configs and Windows are of; empty if they are of all.
	OneNamespace string
	// Unread says what could not be read, and why: parts that a command can do without.
	Unread []string
}

// read takes a snapshot of everything in it but the machines.
func (t *tool) read(ctx context.Context, c client.Client) (*snapshot, error) {
	s := &snapshot{Now: t.clock.Now(), Version: &configv1.ClusterVersion{}}
	if err := c.Get(ctx, client.ObjectKey{Name: v1beta1.ClusterVersionName}, s.Version); err != nil {
		return nil, explain("get ClusterVersion/"+v1beta1.ClusterVersionName, err)
	}
	jobs, configs, windows := &v1beta1.UpgradeJobList{}, &v1beta1.UpgradeConfigList{}, &v1beta1.UpgradeSuspensionWindowList{}
	for _, part := range []struct {
		act  string
		list client.ObjectList
	}{{"list UpgradeJobs", jobs}, {"list UpgradeConfigs", configs}, {"list UpgradeSuspensionWindows", windows}} {
		namespace, err := t.listOurs(ctx, c, part.act, part.list)
		if err != nil {
			return nil, err
		}
		s.OneNamespace = cmp.Or(s.OneNamespace, namespace)
	}
	managed := &v1alpha1.UpgradeConfigList{}
	if _, err := t.listOurs(ctx, c, "list UpgradeConfigs of the Managed Upgrade Operator", managed); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsForbidden(err) {
		return nil, err // a cluster without the kind, or a user who has nothing to do with it, misses nothing
	}
	operators, pools, upgraders := &configv1.ClusterOperatorList{}, &mcfgv1.MachineConfigPoolList{}, &v1beta1.UpgraderList{}
	for _, part := range []struct {
		act  string
		list client.ObjectList
	}{{"list ClusterOperators", operators}, {"list MachineConfigPools", pools}, {"list Upgraders", upgraders}} {
		if err := s.doWithout(part.act, c.List(ctx, part.list)); err != nil {
			return nil, err
		}
	}
	s.Operators, s.Pools, s.Upgraders = operators.Items, pools.Items, upgraders.Items
	s.Managed = managed.Items
	s.Jobs, s.Configs, s.Windows = jobs.Items, configs.Items, windows.Items
	s.sort()
	return s, nil
}

// doWithout notes that a part could not be read which the user may not see, or which the cluster does not have. Any other error is returned, explained.
func (s *snapshot) doWithout(act string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		s.unread(act + ": you may not")
		return nil
	case meta.IsNoMatchError(err):
		s.unread(act + ": the cluster does not have the kind")
		return nil
	}
	return explain(act, err)
}

// unread notes once what could not be read.
func (s *snapshot) unread(what string) {
	if !slices.Contains(s.Unread, what) {
		s.Unread = append(s.Unread, what)
	}
}

// listOurs lists a kind of ours in the namespaces in which the user wants to look, and returns the namespace if it is one only.
func (t *tool) listOurs(ctx context.Context, c client.Client, act string, list client.ObjectList) (string, error) {
	in := ""
	err := t.inNamespaces(ctx, func(ctx context.Context, options ...client.ListOption) error {
		o := (&client.ListOptions{}).ApplyOptions(options)
		in = o.Namespace
		return c.List(ctx, list, o)
	})
	return in, explain(act, err)
}

func (s *snapshot) sort() {
	slices.SortFunc(s.Jobs, func(a, b v1beta1.UpgradeJob) int {
		return lifecycle.NewerFirst(&a, &b)
	})
	slices.SortFunc(s.Configs, func(a, b v1beta1.UpgradeConfig) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(s.Managed, func(a, b v1alpha1.UpgradeConfig) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(s.Windows, func(a, b v1beta1.UpgradeSuspensionWindow) int {
		return cmp.Or(a.Spec.Start.Compare(b.Spec.Start.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(s.Operators, func(a, b configv1.ClusterOperator) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Pools, func(a, b mcfgv1.MachineConfigPool) int { return cmp.Compare(a.Name, b.Name) })
}

// readRendered adds which release rendered the configuration of each pool.
func (s *snapshot) readRendered(ctx context.Context, cluster *openshift.Cluster) error {
	s.RenderedBy = make(map[string]string, len(s.Pools))
	for i := range s.Pools {
		version, err := cluster.RenderedBy(ctx, s.Pools[i].Spec.Configuration.Name)
		if err != nil {
			return s.doWithout("get MachineConfigs", err)
		}
		s.RenderedBy[s.Pools[i].Name] = version
	}
	return nil
}

// release is the version that the cluster runs, or is on its way to.
func (s *snapshot) release() string {
	if history := s.Version.Status.History; len(history) > 0 {
		return history[0].Version
	}
	return ""
}

// job returns the UpgradeJob of a key, as namespace/name, or nil.
func (s *snapshot) job(key string) *v1beta1.UpgradeJob {
	for i := range s.Jobs {
		if s.Jobs[i].LockKey() == key {
			return &s.Jobs[i]
		}
	}
	return nil
}
