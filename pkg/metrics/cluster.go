// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// judgeCluster tells which version the cluster runs, and what it could be updated to.
func judgeCluster(s *series, w *world) {
	version := w.clusterVersion
	if version == nil {
		return
	}
	baseline := ""
	if capabilities := version.Spec.Capabilities; capabilities != nil {
		baseline = string(capabilities.BaselineCapabilitySet)
	}
	s.add(clusterInfo, 1, openshift.RunningVersion(version), version.Status.Desired.Version, version.Spec.Channel, string(version.Spec.ClusterID),
		string(version.Spec.Upstream), baseline)
	_, updating := openshift.Updating(version)
	s.add(clusterUpdating, number(updating))
	if done, total, ok := openshift.Progress(version); ok {
		s.add(clusterProgress, float64(done)/float64(total))
	}
	if holder := version.Annotations[v1beta1.UpgradeJobAnnotation]; holder != "" {
		s.add(clusterLocked, 1, holder)
	}
	s.add(availableUpdates, float64(len(version.Status.AvailableUpdates)), "recommended")
	s.add(availableUpdates, float64(len(version.Status.ConditionalUpdates)), "conditional")
	if highest, ok := openshift.HighestAvailable(version); ok {
		s.add(highestUpdate, 1, highest.Version)
	}
}
