// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package muo_test

import (
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/pkg/muo"
)

// start is the upgradeAt of the object under test, which was created a day before.
var start = time.Date(2026, time.November, 24, 22, 0, 0, 0, time.UTC)

var (
	runningImage = image("1")
	offeredImage = image("2")
	riskyImage   = image("3")
)

// image is a pull spec whose digest consists of that digit.
func image(digit string) string {
	return "quay.io/openshift-release-dev/ocp-release@sha256:" + strings.Repeat(digit, 64)
}

// newObject returns an object that wants 4.18.2, changed by the overrides.
func newObject(overrides ...func(*v1alpha1.UpgradeConfig)) *v1alpha1.UpgradeConfig {
	config := &v1alpha1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{
			Name: v1alpha1.UpgradeConfigName, Namespace: "upgrades", UID: "object-uid", CreationTimestamp: metav1.NewTime(start.Add(-24 * time.Hour)),
		},
		Spec: v1alpha1.UpgradeConfigSpec{
			Type: v1alpha1.OSD, UpgradeAt: start.Format(time.RFC3339), PDBForceDrainTimeout: 120, CapacityReservation: true,
			Desired: v1alpha1.Update{Channel: "stable-4.18", Version: "4.18.2"},
		},
	}
	for _, override := range overrides {
		override(config)
	}
	return config
}

// desiring has the object want another release.
func desiring(version, channel, image string) func(*v1alpha1.UpgradeConfig) {
	return func(c *v1alpha1.UpgradeConfig) {
		c.Spec.Desired = v1alpha1.Update{Version: version, Channel: channel, Image: image}
	}
}

// accepting has the object accept risks.
func accepting(risks string) func(*v1alpha1.UpgradeConfig) {
	return func(c *v1alpha1.UpgradeConfig) {
		c.Annotations = map[string]string{v1alpha1.AcceptRisksAnnotation: risks}
	}
}

func at(upgradeAt string) func(*v1alpha1.UpgradeConfig) {
	return func(c *v1alpha1.UpgradeConfig) { c.Spec.UpgradeAt = upgradeAt }
}

// newVersion returns ClusterVersion/version of a cluster that runs 4.18.1, is offered 4.18.2, and 4.18.3 with the risks Fire and Water.
func newVersion(overrides ...func(*configv1.ClusterVersion)) *configv1.ClusterVersion {
	cv := &configv1.ClusterVersion{
		Spec: configv1.ClusterVersionSpec{Channel: "stable-4.18"},
		Status: configv1.ClusterVersionStatus{
			Desired:          configv1.Release{Version: "4.18.1", Image: runningImage, Channels: []string{"stable-4.18", "fast-4.18", "candidate-4.19"}},
			History:          []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "4.18.1", Image: runningImage}},
			AvailableUpdates: []configv1.Release{{Version: "4.18.2", Image: offeredImage}},
			ConditionalUpdates: []configv1.ConditionalUpdate{{
				Release: configv1.Release{Version: "4.18.3", Image: riskyImage},
				Risks:   []configv1.ConditionalUpdateRisk{{Name: "Water"}, {Name: "Fire"}},
			}},
			Conditions: []configv1.ClusterOperatorStatusCondition{{Type: configv1.RetrievedUpdates, Status: configv1.ConditionTrue}},
		},
	}
	for _, override := range overrides {
		override(cv)
	}
	return cv
}

// updatingTo has the cluster be on its way to a release.
func updatingTo(version, image string) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) {
		cv.Status.History = append([]configv1.UpdateHistory{{State: configv1.PartialUpdate, Version: version, Image: image}}, cv.Status.History...)
	}
}

// knowingNothing has the cluster not know its updates.
func knowingNothing(cv *configv1.ClusterVersion) {
	cv.Status.AvailableUpdates, cv.Status.ConditionalUpdates = nil, nil
	cv.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
		{Type: configv1.RetrievedUpdates, Status: configv1.ConditionFalse, Reason: "RemoteFailed", Message: "no route to host"},
	}
}

func withCincinnati(s *muo.Settings) { s.Cincinnati = true }
