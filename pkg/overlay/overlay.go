// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package overlay works out what the spec of OpenShift's ClusterVersion shall be
// at a point in time: a template, changed by the overlay whose time has come. It
// is pure.
package overlay

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// View is what a ClusterVersion asks for at a point in time.
type View struct {
	// Current is the spec that holds now. It never has a desiredUpdate.
	Current v1beta1.DesiredClusterVersionSpec
	// Applied is the overlay in Current; nil if it is the bare template.
	Applied *v1beta1.AppliedOverlay
	// Previews shows what each overlay makes of the template, in order of time.
	Previews []v1beta1.OverlayPreview
	// Next is when Current changes; the zero time if it does not.
	Next time.Time
}

// Resolve works out the view at a point in time. Overlays do not add up: only the latest that has begun counts.
func Resolve(spec *v1beta1.ClusterVersionSpec, now time.Time) (View, error) {
	view := View{Current: *spec.Template.Spec.DeepCopy()}
	view.Current.DesiredUpdate = nil

	overlays := slices.Clone(spec.Overlays)
	slices.SortFunc(overlays, func(a, b v1beta1.ClusterVersionOverlay) int { return a.From.Compare(b.From.Time) })
	template := view.Current
	for i, o := range overlays {
		if i > 0 && o.From.Equal(&overlays[i-1].From) {
			return View{}, fmt.Errorf("two overlays begin at %s: remove one", o.From.UTC().Format(time.RFC3339))
		}
		merged, err := merge(template, o.Overlay.Spec)
		if err != nil {
			return View{}, fmt.Errorf("put the overlay from %s over the template: %w", o.From.UTC().Format(time.RFC3339), err)
		}
		view.Previews = append(view.Previews, v1beta1.OverlayPreview{From: o.From, Preview: merged})
		if !now.Before(o.From.Time) {
			view.Current, view.Applied = merged, &v1beta1.AppliedOverlay{From: o.From}
		} else if view.Next.IsZero() {
			view.Next = o.From.Time
		}
	}
	return view, nil
}

// merge puts the fields that over sets over those of base, as a JSON merge patch (RFC 7396) does.
func merge(base, over v1beta1.DesiredClusterVersionSpec) (v1beta1.DesiredClusterVersionSpec, error) {
	over.DesiredUpdate = nil
	merged := v1beta1.DesiredClusterVersionSpec{}
	baseJSON, err := json.Marshal(base)
	if err != nil {
		return merged, fmt.Errorf("encode the template: %w", err)
	}
	overJSON, err := json.Marshal(over)
	if err != nil {
		return merged, fmt.Errorf("encode the overlay: %w", err)
	}
	result, err := jsonpatch.MergePatch(baseJSON, overJSON)
	if err != nil {
		return merged, fmt.Errorf("merge: %w", err)
	}
	if err := json.Unmarshal(result, &merged); err != nil {
		return merged, fmt.Errorf("decode the result: %w", err)
	}
	return merged, nil
}

// InSync tells whether the live spec has every field that is wanted, as wanted. Fields and list entries that are not
// wanted do not matter: they are somebody else's.
func InSync(live *configv1.ClusterVersionSpec, want *v1beta1.DesiredClusterVersionSpec) bool {
	return (want.ClusterID == "" || want.ClusterID == string(live.ClusterID)) &&
		(want.Upstream == "" || want.Upstream == string(live.Upstream)) &&
		(want.Channel == "" || want.Channel == live.Channel) &&
		capabilitiesInSync(live.Capabilities, want.Capabilities) &&
		containsAll(live.SignatureStores, want.SignatureStores) &&
		containsAll(live.Overrides, want.Overrides)
}

func capabilitiesInSync(live, want *configv1.ClusterVersionCapabilitiesSpec) bool {
	if want == nil {
		return true
	}
	if live == nil {
		live = &configv1.ClusterVersionCapabilitiesSpec{}
	}
	return (want.BaselineCapabilitySet == "" || want.BaselineCapabilitySet == live.BaselineCapabilitySet) &&
		(want.AdditionalEnabledCapabilities == nil || slices.Equal(want.AdditionalEnabledCapabilities, live.AdditionalEnabledCapabilities))
}

func containsAll[T comparable](live, want []T) bool {
	for _, w := range want {
		if !slices.Contains(live, w) {
			return false
		}
	}
	return true
}
