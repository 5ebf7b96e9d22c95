// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"testing"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

func TestMinorUpdate(t *testing.T) {
	for _, tc := range []struct {
		reason, running string
		target          openshift.Release
		want            bool
	}{
		{"a patch", "4.18.1", version("4.18.2"), false},
		{"a patch by number, not by letter", "4.18.9", version("4.18.10"), false},
		{"to its own release candidate", "4.18.1-rc.1", version("4.18.1"), false},
		{"back to an earlier patch", "4.18.2", version("4.18.1"), false},
		{"a minor version", "4.18.9", version("4.19.0"), true},
		{"a candidate of a minor version", "4.18.9", version("4.19.0-rc.0"), true},
		{"back to an earlier minor version", "4.18.9", version("4.17.30"), true},
		{"a major version with the same minor", "4.0.1", version("5.0.1"), true},
		{"an image alone", "4.18.1", openshift.Release{Image: "registry/a"}, true},
		{"a version that cannot be parsed", "4.18.1", version("nightly"), true},
		{"a cluster that runs no version that can be parsed", "", version("4.18.2"), true},
		{"whatever the target is", "", version("0.0.1"), true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := openshift.MinorUpdate(tc.running, tc.target); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestKubernetesOfARelease(t *testing.T) {
	for release, want := range map[string]string{"4.18.2": "1.31", "4.19.0": "1.32", "4.20.0-rc.1": "1.33"} {
		if got, ok := version(release).Kubernetes(); !ok || got.String() != want {
			t.Errorf("%s: got %s, %t, want %s", release, got, ok, want)
		}
	}
	for reason, release := range map[string]openshift.Release{
		"another major version": version("5.0.1"), "no version": {Image: "registry/a"}, "not a version": version("4.19"),
	} {
		if got, ok := release.Kubernetes(); ok {
			t.Errorf("%s: got %s, want none", reason, got)
		}
	}
}

func TestParseKubernetesVersion(t *testing.T) {
	if got, err := openshift.ParseKubernetesVersion("1.33"); err != nil || got != (openshift.KubernetesVersion{Major: 1, Minor: 33}) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, text := range []string{"", "1", "1.", ".33", "v1.33", "1.33.1", "1.-1", "1.x", "99999999999.1"} {
		if got, err := openshift.ParseKubernetesVersion(text); err == nil {
			t.Errorf("%q: got %s, want an error", text, got)
		}
	}
}

func TestKubernetesVersionsCompareAsNumbers(t *testing.T) {
	ordered := []string{"0.99", "1.9", "1.10", "1.32", "2.0"}
	for i, a := range ordered {
		for j, b := range ordered {
			v, errV := openshift.ParseKubernetesVersion(a)
			w, errW := openshift.ParseKubernetesVersion(b)
			if errV != nil || errW != nil {
				t.Fatal(errV, errW)
			}
			want := min(1, max(-1, i-j))
			if got := v.Compare(w); got != want {
				t.Errorf("%s and %s: got %d, want %d", a, b, got, want)
			}
		}
	}
}
