// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// judgeClusterVersions tells what the cluster's spec is changed to, and when.
func judgeClusterVersions(s *series, w *world) {
	for i := range w.clusterVersions.Items {
		cv := &w.clusterVersions.Items[i]
		for j := range cv.Spec.Overlays {
			overlay := &cv.Spec.Overlays[j]
			channel := cmp.Or(overlay.Overlay.Spec.Channel, cv.Spec.Template.Spec.Channel)
			s.addTime(overlayFrom, &overlay.From, cv.Namespace, cv.Name, stamp(overlay.From), channel)
		}
		if applied := cv.Status.OverlayApplied; applied != nil {
			s.add(overlayApplied, 1, cv.Namespace, cv.Name, stamp(applied.From))
		}
	}
}

func stamp(t metav1.Time) string { return t.UTC().Format(time.RFC3339) }

// judgeReady tells which objects can be used as they are written.
func judgeReady(s *series, w *world) {
	add := func(kind string, object metav1.Object, conditions []metav1.Condition) {
		if c := meta.FindStatusCondition(conditions, v1beta1.ConditionReady); c != nil {
			s.add(ready, number(c.Status == metav1.ConditionTrue), kind, object.GetNamespace(), object.GetName(), c.Reason)
		}
	}
	for i := range w.configs.Items {
		add(kindConfig, &w.configs.Items[i], w.configs.Items[i].Status.Conditions)
	}
	for i := range w.windows.Items {
		add(kindWindow, &w.windows.Items[i], w.windows.Items[i].Status.Conditions)
	}
	for i := range w.hooks.Items {
		add(kindHook, &w.hooks.Items[i], w.hooks.Items[i].Status.Conditions)
	}
	for i := range w.clusterVersions.Items {
		add(kindClusterVersion, &w.clusterVersions.Items[i], w.clusterVersions.Items[i].Status.Conditions)
	}
	for i := range w.forceDrains.Items {
		add(kindForceDrain, &w.forceDrains.Items[i], w.forceDrains.Items[i].Status.Conditions)
	}
	for i := range w.muoConfigs.Items {
		config := &w.muoConfigs.Items[i]
		if len(config.Status.History) == 0 {
			continue
		}
		for _, c := range config.Status.History[0].Conditions {
			if c.Type == v1alpha1.ConditionValid {
				s.add(ready, number(c.Status == metav1.ConditionTrue), kindMUOConfig, config.Namespace, config.Name, c.Reason)
			}
		}
	}
	for i := range w.upgraders.Items {
		add(kindUpgrader, &w.upgraders.Items[i], w.upgraders.Items[i].Status.Conditions)
	}
}

// judgeMUO tells what the object of the Managed Upgrade Operator asks for.
func judgeMUO(s *series, w *world) {
	for i := range w.muoConfigs.Items {
		config := &w.muoConfigs.Items[i]
		phase := ""
		if len(config.Status.History) > 0 {
			phase = string(config.Status.History[0].Phase)
		}
		s.add(muoInfo, 1, config.Namespace, config.Name, phase, cmp.Or(config.Spec.Desired.Version, config.Spec.Desired.Image))
		if at, err := time.Parse(time.RFC3339, config.Spec.UpgradeAt); err == nil {
			s.add(muoScheduled, seconds(at), config.Namespace, config.Name)
		}
	}
}
