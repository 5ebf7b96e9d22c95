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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// snapshot is what the commands know of the cluster, read at one time with the rights of the user.
type snapshot struct {
	// Now is when it was read.
	Now time.Time
	// Version is ClusterVersion/version of OpenShift.
	Version *configv1.ClusterVersion
	// Operators are OpenShift's ClusterOperators, by name.
	Operators []configv1.ClusterOperator
	// Pools are the MachineConfigPools, by name.
	Pools []mcfgv1.MachineConfigPool
	// Jobs are the UpgradeJobs, the newest startAfter first.
	Jobs []v1beta1.UpgradeJob
	// Configs are the UpgradeConfigs, by namespace and name.
	Configs []v1beta1.UpgradeConfig
	// Windows are the UpgradeSuspensionWindows, by start.
	Windows []v1beta1.UpgradeSuspensionWindow
}

// read takes a snapshot of everything in it.
func (t *tool) read(ctx context.Context, c client.Client) (*snapshot, error) {
	s := &snapshot{Now: t.clock.Now(), Version: &configv1.ClusterVersion{}}
	if err := c.Get(ctx, client.ObjectKey{Name: v1beta1.ClusterVersionName}, s.Version); err != nil {
		return nil, explain("get ClusterVersion/"+v1beta1.ClusterVersionName, err)
	}
	operators, pools := &configv1.ClusterOperatorList{}, &mcfgv1.MachineConfigPoolList{}
	if err := c.List(ctx, operators); err != nil {
		return nil, explain("list ClusterOperators", err)
	}
	if err := c.List(ctx, pools); err != nil {
		return nil, explain("list MachineConfigPools", err)
	}
	jobs, configs, windows := &v1beta1.UpgradeJobList{}, &v1beta1.UpgradeConfigList{}, &v1beta1.UpgradeSuspensionWindowList{}
	for act, list := range map[string]client.ObjectList{"list UpgradeJobs": jobs, "list UpgradeConfigs": configs, "list UpgradeSuspensionWindows": windows} {
		if err := t.listOurs(ctx, c, act, list); err != nil {
			return nil, err
		}
	}
	s.Operators, s.Pools, s.Jobs, s.Configs, s.Windows = operators.Items, pools.Items, jobs.Items, configs.Items, windows.Items
	s.sort()
	return s, nil
}

// listOurs lists a kind of ours in the namespaces in which the user wants to look.
func (t *tool) listOurs(ctx context.Context, c client.Client, act string, list client.ObjectList) error {
	return explain(act, t.inNamespaces(ctx, func(ctx context.Context, options ...client.ListOption) error { return c.List(ctx, list, options...) }))
}

func (s *snapshot) sort() {
	slices.SortFunc(s.Jobs, func(a, b v1beta1.UpgradeJob) int {
		return cmp.Or(b.Spec.StartAfter.Compare(a.Spec.StartAfter.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(s.Configs, func(a, b v1beta1.UpgradeConfig) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(s.Windows, func(a, b v1beta1.UpgradeSuspensionWindow) int {
		return cmp.Or(a.Spec.Start.Compare(b.Spec.Start.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(s.Operators, func(a, b configv1.ClusterOperator) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Pools, func(a, b mcfgv1.MachineConfigPool) int { return cmp.Compare(a.Name, b.Name) })
}
