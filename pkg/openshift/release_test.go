// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

func TestReleaseMatches(t *testing.T) {
	for _, tc := range []struct {
		reason         string
		release        openshift.Release
		version, image string
		want           bool
	}{
		{"both the same", openshift.Release{Version: "4.18.2", Image: "a"}, "4.18.2", "a", true},
		{"a version alone matches any image", openshift.Release{Version: "4.18.2"}, "4.18.2", "a", true},
		{"an image alone matches any version", openshift.Release{Image: "a"}, "4.18.2", "a", true},
		{"the other side may give a version alone", openshift.Release{Version: "4.18.2", Image: "a"}, "4.18.2", "", true},
		{"the other side may give an image alone", openshift.Release{Version: "4.18.2", Image: "a"}, "", "a", true},
		{"another version", openshift.Release{Version: "4.18.2"}, "4.18.3", "a", false},
		{"the same version from another image is another release", openshift.Release{Version: "4.18.2", Image: "a"}, "4.18.2", "b", false},
		{"the same image under another version is another release", openshift.Release{Version: "4.18.2", Image: "a"}, "4.18.3", "a", false},
		{"nothing in common", openshift.Release{Version: "4.18.2"}, "", "a", false},
		{"nothing in common the other way round", openshift.Release{Image: "a"}, "4.18.2", "", false},
		{"nothing names nothing", openshift.Release{}, "4.18.2", "a", false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := tc.release.Matches(tc.version, tc.image); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestReleaseString(t *testing.T) {
	for want, release := range map[string]openshift.Release{
		"4.18.2":       {Version: "4.18.2", Image: "registry/a"},
		"registry/a":   {Image: "registry/a"},
		"4.18.2-rc.1+": {Version: "4.18.2-rc.1+"},
	} {
		if got := release.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestOffered(t *testing.T) {
	cv := openshifttest.ClusterVersion(
		openshifttest.Available("4.18.3", "4.18.2"),
		openshifttest.Conditional("4.18.4", "False", "KnownBug", "Pods lose their network."),
	)
	full := openshift.Release{Version: "4.18.2", Image: openshifttest.Image("4.18.2")}
	for _, tc := range []struct {
		reason string
		want   openshift.Release
		get    openshift.Release
		ok     bool
	}{
		{"by version, the image is filled in", openshift.Release{Version: "4.18.2"}, full, true},
		{"by image, the version is filled in", openshift.Release{Image: openshifttest.Image("4.18.2")}, full, true},
		{"by both", full, full, true},
		{"the version from elsewhere is not offered", openshift.Release{Version: "4.18.2", Image: "mirror/other"}, openshift.Release{}, false},
		{"conditional updates are not offered", openshift.Release{Version: "4.18.4"}, openshift.Release{}, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, ok := openshift.Offered(cv, tc.want)
			if got != tc.get || ok != tc.ok {
				t.Errorf("got %+v, %t; want %+v, %t", got, ok, tc.get, tc.ok)
			}
		})
	}
}

func TestHighestAvailable(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		options []func(*configv1.ClusterVersion)
		want    string
	}{
		{"by number, not by letter", []func(*configv1.ClusterVersion){openshifttest.Available("4.18.9", "4.18.10", "4.18.2")}, "4.18.10"},
		{"the order of the list does not matter", []func(*configv1.ClusterVersion){openshifttest.Available("4.18.2", "4.19.0", "4.18.3")}, "4.19.0"},
		{"a candidate comes before its release", []func(*configv1.ClusterVersion){openshifttest.Available("4.19.0-rc.2", "4.19.0")}, "4.19.0"},
		{"nothing that is not newer", []func(*configv1.ClusterVersion){openshifttest.Available("4.18.1", "4.18.0")}, ""},
		{"what cannot be compared is left out", []func(*configv1.ClusterVersion){openshifttest.Available("latest", "4.18.2", "")}, "4.18.2"},
		{"no update", []func(*configv1.ClusterVersion){openshifttest.Available()}, ""},
		{"a running version that cannot be compared is below all", []func(*configv1.ClusterVersion){
			openshifttest.History(openshifttest.Completed("nightly")), openshifttest.Available("4.18.2"),
		}, "4.18.2"},
		{"between two updates of which one was abandoned", []func(*configv1.ClusterVersion){
			openshifttest.History(openshifttest.Abandoned("4.18.3"), openshifttest.Completed("4.18.1")), openshifttest.Available("4.18.2"),
		}, "4.18.2"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, ok := openshift.HighestAvailable(openshifttest.ClusterVersion(tc.options...))
			if got.Version != tc.want || ok != (tc.want != "") {
				t.Fatalf("got %+v, %t; want %q", got, ok, tc.want)
			}
			if ok && got.Image != openshifttest.Image(tc.want) {
				t.Errorf("image: got %q", got.Image)
			}
		})
	}
}
