// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package overlay_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/overlay"
)

const ns = time.Nanosecond

var (
	first  = time.Date(2026, time.December, 1, 0, 0, 0, 0, time.UTC)
	second = first.AddDate(0, 1, 0)
)

// from returns an overlay that begins at a time, with a spec in YAML.
func from(t testing.TB, at time.Time, spec string) v1beta1.ClusterVersionOverlay {
	return v1beta1.ClusterVersionOverlay{From: metav1.NewTime(at), Overlay: v1beta1.ClusterVersionTemplate{Spec: desired(t, spec)}}
}

func desired(t testing.TB, spec string) v1beta1.DesiredClusterVersionSpec {
	t.Helper()
	return decode[v1beta1.DesiredClusterVersionSpec](t, spec)
}

func decode[T any](t testing.TB, document string) T {
	t.Helper()
	var v T
	if err := yaml.UnmarshalStrict([]byte(document), &v); err != nil {
		t.Fatalf("decode %q: %v", document, err)
	}
	return v
}

func TestResolve(t *testing.T) {
	const template = `{clusterID: c, channel: stable-4.18, upstream: "https://a"}`
	for _, tc := range []struct {
		reason   string
		template string
		overlays []v1beta1.ClusterVersionOverlay
		now      time.Time
		current  string
		applied  time.Time
		previews map[time.Time]string
		next     time.Time
	}{
		{"the bare template", template, nil, first, template, time.Time{}, nil, time.Time{}},
		{"nothing at all", `{}`, nil, first, `{}`, time.Time{}, nil, time.Time{}},
		{"the desired update is the job's", `{channel: a, desiredUpdate: {version: 4.18.2, force: true}}`, nil, first, `{channel: a}`, time.Time{}, nil, time.Time{}},
		{"one nanosecond before an overlay", template, []v1beta1.ClusterVersionOverlay{from(t, first, `{channel: stable-4.19}`)}, first.Add(-ns),
			template, time.Time{}, map[time.Time]string{first: `{clusterID: c, channel: stable-4.19, upstream: "https://a"}`}, first},
		{"at its time it applies", template, []v1beta1.ClusterVersionOverlay{from(t, first, `{channel: stable-4.19}`)}, first,
			`{clusterID: c, channel: stable-4.19, upstream: "https://a"}`, first, map[time.Time]string{first: `{clusterID: c, channel: stable-4.19, upstream: "https://a"}`}, time.Time{}},
		{"overlays do not add up, and their order does not matter", template,
			[]v1beta1.ClusterVersionOverlay{from(t, second, `{upstream: "https://b"}`), from(t, first, `{channel: stable-4.19}`)}, second,
			`{clusterID: c, channel: stable-4.18, upstream: "https://b"}`, second, map[time.Time]string{
				first:  `{clusterID: c, channel: stable-4.19, upstream: "https://a"}`,
				second: `{clusterID: c, channel: stable-4.18, upstream: "https://b"}`,
			}, time.Time{}},
		{"between two the first applies and the second is next", template,
			[]v1beta1.ClusterVersionOverlay{from(t, second, `{upstream: "https://b"}`), from(t, first, `{channel: stable-4.19}`)}, second.Add(-ns),
			`{clusterID: c, channel: stable-4.19, upstream: "https://a"}`, first, map[time.Time]string{
				first:  `{clusterID: c, channel: stable-4.19, upstream: "https://a"}`,
				second: `{clusterID: c, channel: stable-4.18, upstream: "https://b"}`,
			}, second},
		{"before two the earlier is next", template,
			[]v1beta1.ClusterVersionOverlay{from(t, second, `{}`), from(t, first, `{}`)}, first.Add(-time.Hour),
			template, time.Time{}, map[time.Time]string{first: template, second: template}, first},
		{"an overlay replaces lists and merges objects",
			`{overrides: [{kind: A, group: g, namespace: n, name: x, unmanaged: true}], capabilities: {baselineCapabilitySet: None, additionalEnabledCapabilities: [Console]}}`,
			[]v1beta1.ClusterVersionOverlay{from(t, first, `{overrides: [{kind: B, group: g, namespace: n, name: y, unmanaged: true}], capabilities: {additionalEnabledCapabilities: [Insights]}}`)}, first,
			`{overrides: [{kind: B, group: g, namespace: n, name: y, unmanaged: true}], capabilities: {baselineCapabilitySet: None, additionalEnabledCapabilities: [Insights]}}`, first,
			map[time.Time]string{first: `{overrides: [{kind: B, group: g, namespace: n, name: y, unmanaged: true}], capabilities: {baselineCapabilitySet: None, additionalEnabledCapabilities: [Insights]}}`}, time.Time{}},
		{"the desired update of an overlay is ignored too", template, []v1beta1.ClusterVersionOverlay{from(t, first, `{desiredUpdate: {image: x}}`)}, first,
			template, first, map[time.Time]string{first: template}, time.Time{}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			spec := &v1beta1.ClusterVersionSpec{Template: v1beta1.ClusterVersionTemplate{Spec: desired(t, tc.template)}, Overlays: tc.overlays}
			before := spec.DeepCopy()
			got, err := overlay.Resolve(spec, tc.now)
			if err != nil {
				t.Fatal(err)
			}
			want := overlay.View{Current: desired(t, tc.current), Next: tc.next}
			if !tc.applied.IsZero() {
				want.Applied = &v1beta1.AppliedOverlay{From: metav1.NewTime(tc.applied)}
			}
			for _, at := range []time.Time{first, second} {
				if p, ok := tc.previews[at]; ok {
					want.Previews = append(want.Previews, v1beta1.OverlayPreview{From: metav1.NewTime(at), Preview: desired(t, p)})
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("view (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, spec); diff != "" {
				t.Errorf("the spec was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestInSync(t *testing.T) {
	const live = `{clusterID: c, channel: stable-4.18, upstream: "https://a",
		desiredUpdate: {version: 4.18.2, architecture: "", image: "", force: false},
		capabilities: {baselineCapabilitySet: v4.18, additionalEnabledCapabilities: [Console, Insights]},
		signatureStores: [{url: "https://s1", ca: {name: x}}, {url: "https://s2", ca: {name: ""}}],
		overrides: [{kind: A, group: g, namespace: n, name: x, unmanaged: true}, {kind: B, group: g, namespace: n, name: y, unmanaged: false}]}`
	for i, tc := range []struct {
		want string
		in   bool
	}{
		{`{}`, true}, // fields that are not wanted do not matter
		{`{clusterID: c}`, true},
		{`{clusterID: d}`, false},
		{`{channel: stable-4.18}`, true},
		{`{channel: stable-4.19}`, false},
		{`{upstream: "https://a"}`, true},
		{`{upstream: "https://b"}`, false},
		{`{desiredUpdate: {version: 4.20.0}}`, true}, // it is the job's
		{`{capabilities: {}}`, true},
		{`{capabilities: {baselineCapabilitySet: v4.18}}`, true},
		{`{capabilities: {baselineCapabilitySet: None}}`, false},
		{`{capabilities: {additionalEnabledCapabilities: [Console, Insights]}}`, true},
		{`{capabilities: {additionalEnabledCapabilities: [Console]}}`, false},
		{`{capabilities: {additionalEnabledCapabilities: [Console, Insights, Storage]}}`, false},
		{`{signatureStores: [{url: "https://s2", ca: {name: ""}}]}`, true},
		{`{signatureStores: [{url: "https://s1", ca: {name: y}}]}`, false},
		{`{signatureStores: [{url: "https://s3", ca: {name: ""}}]}`, false},
		{`{overrides: [{kind: B, group: g, namespace: n, name: y, unmanaged: false}]}`, true},
		{`{overrides: [{kind: B, group: g, namespace: n, name: y, unmanaged: true}]}`, false},
		{`{overrides: [{kind: A, group: g, namespace: n, name: x, unmanaged: true}, {kind: C, group: g, namespace: n, name: z, unmanaged: true}]}`, false},
	} {
		t.Run(fmt.Sprint(i, tc.want), func(t *testing.T) {
			have, want := decode[configv1.ClusterVersionSpec](t, live), desired(t, tc.want)
			if got := overlay.InSync(&have, &want); got != tc.in {
				t.Errorf("got %t, want %t", got, tc.in)
			}
		})
	}
	for want, in := range map[string]bool{
		`{}`:                 true,
		`{capabilities: {}}`: true,
		`{capabilities: {baselineCapabilitySet: None}}`:                              false,
		`{capabilities: {additionalEnabledCapabilities: [Console]}}`:                 false,
		`{overrides: [{kind: A, group: g, namespace: n, name: x, unmanaged: true}]}`: false,
	} {
		t.Run("a bare cluster and "+want, func(t *testing.T) {
			want := desired(t, want)
			if got := overlay.InSync(&configv1.ClusterVersionSpec{}, &want); got != in {
				t.Errorf("got %t, want %t", got, in)
			}
		})
	}
}

func TestInSyncKnowsEachField(t *testing.T) {
	// Each field alone, wanted with a value that a bare cluster does not have, is out of sync.
	values := map[string]string{
		"clusterID": "c", "upstream": `"https://a"`, "channel": "stable-4.18",
		"capabilities":    "{baselineCapabilitySet: None}",
		"signatureStores": `[{url: "https://s", ca: {name: ""}}]`,
		"overrides":       "[{kind: A, group: g, namespace: n, name: x, unmanaged: true}]",
	}
	for f := range reflect.TypeFor[v1beta1.DesiredClusterVersionSpec]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "desiredUpdate" {
			continue // it is the job's
		}
		value, known := values[name]
		if !known {
			t.Errorf("this test has no value for %s", name)
			continue
		}
		want := desired(t, fmt.Sprintf("{%s: %s}", name, value))
		if overlay.InSync(&configv1.ClusterVersionSpec{}, &want) {
			t.Errorf("%s does not count", name)
		}
	}
}

// The API takes two spellings of one instant for two overlays.
func TestResolveRefusesTwoOverlaysAtOnce(t *testing.T) {
	at := time.Date(2030, time.February, 1, 3, 0, 0, 0, time.UTC)
	_, err := overlay.Resolve(&v1beta1.ClusterVersionSpec{Overlays: []v1beta1.ClusterVersionOverlay{
		{From: metav1.NewTime(at)}, {From: metav1.NewTime(at.In(time.FixedZone("CET", 3600)))},
	}}, at)
	if err == nil || !strings.Contains(err.Error(), "two overlays begin at 2030-02-01T03:00:00Z") {
		t.Errorf("got %v", err)
	}
}
