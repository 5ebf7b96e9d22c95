// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package suspension tells which UpgradeSuspensionWindow holds an object back.
package suspension

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// Selector chooses one of the selectors of a window: that of configs or that of jobs.
type Selector func(*v1beta1.UpgradeSuspensionWindow) *metav1.LabelSelector

// ForConfigs is the selector of UpgradeConfigs.
func ForConfigs(w *v1beta1.UpgradeSuspensionWindow) *metav1.LabelSelector {
	return w.Spec.ConfigSelector
}

// ForJobs is the selector of UpgradeJobs.
func ForJobs(w *v1beta1.UpgradeSuspensionWindow) *metav1.LabelSelector { return w.Spec.JobSelector }

// Matches tells whether the window selects the object, at whatever time. A selector that cannot be parsed matches
// every object of the window's namespace: somebody wanted a freeze, so there is one until the window is corrected.
func Matches(w *v1beta1.UpgradeSuspensionWindow, selector Selector, object metav1.Object) bool {
	if object.GetNamespace() != w.Namespace {
		return false
	}
	s, err := metav1.LabelSelectorAsSelector(selector(w))
	return err != nil || s.Matches(labels.Set(object.GetLabels()))
}

// Covers tells whether the time lies in the window. Its end does not.
func Covers(w *v1beta1.UpgradeSuspensionWindow, at time.Time) bool {
	return !at.Before(w.Spec.Start.Time) && at.Before(w.Spec.End.Time)
}

// Active returns the window that selects the object and covers the time; of several the one that ends last, by name
// where they end together. Nil if there is none.
func Active(windows []v1beta1.UpgradeSuspensionWindow, selector Selector, object metav1.Object, at time.Time) *v1beta1.UpgradeSuspensionWindow {
	var found *v1beta1.UpgradeSuspensionWindow
	for i := range windows {
		w := &windows[i]
		if !Covers(w, at) || !Matches(w, selector, object) {
			continue
		}
		if found == nil || w.Spec.End.After(found.Spec.End.Time) || (w.Spec.End.Equal(&found.Spec.End) && w.Name < found.Name) {
			found = w
		}
	}
	return found
}

// NextChange returns the earliest start or end, after the time, of a window that selects the object; the zero time if
// there is none.
func NextChange(windows []v1beta1.UpgradeSuspensionWindow, selector Selector, object metav1.Object, after time.Time) time.Time {
	var next time.Time
	for i := range windows {
		w := &windows[i]
		if !Matches(w, selector, object) {
			continue
		}
		for _, t := range []time.Time{w.Spec.Start.Time, w.Spec.End.Time} {
			if t.After(after) && (next.IsZero() || t.Before(next)) {
				next = t
			}
		}
	}
	return next
}
