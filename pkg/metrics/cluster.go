// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"regexp"
	"strconv"

	configv1 "github.com/openshift/api/config/v1"

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
	if ratio, ok := progress(version); ok {
		s.add(clusterProgress, ratio)
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

// donePattern finds how far it is in what the cluster-version operator says, as in "Working towards 4.18.2: 503 of 842 done (59% complete)".
var donePattern = regexp.MustCompile(`(\d{1,9}) of (\d{1,9}) done`)

// progress reads how much of the release is applied, from 0 to 1; false if the cluster-version operator does not say so.
func progress(version *configv1.ClusterVersion) (float64, bool) {
	condition := openshift.Condition(version.Status.Conditions, configv1.OperatorProgressing)
	if condition == nil || condition.Status != configv1.ConditionTrue {
		return 0, false
	}
	found := donePattern.FindStringSubmatch(condition.Message)
	if found == nil {
		return 0, false
	}
	done, err1 := strconv.ParseFloat(found[1], 64)
	total, err2 := strconv.ParseFloat(found[2], 64)
	if err1 != nil || err2 != nil || total == 0 {
		return 0, false
	}
	return min(done/total, 1), true
}
