// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package muo_test

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/pkg/muo"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

type judgement struct {
	reason  string
	object  *v1alpha1.UpgradeConfig
	version *configv1.ClusterVersion
	edge    *muo.Edge
	verdict muo.Verdict
	because string
	words   string
	// Of a valid one:
	release openshift.Release
	check   bool
}

func (tc judgement) test(t *testing.T) {
	t.Helper()
	version := tc.version
	if version == nil {
		version = newVersion()
	}
	got := muo.Judge(tc.object, muo.Facts{Version: version, Edge: tc.edge})
	if got.Verdict != tc.verdict || got.Reason != tc.because || !strings.Contains(got.Message, tc.words) {
		t.Errorf("got %+v, want verdict %d, reason %s, %q", got, tc.verdict, tc.because, tc.words)
	}
	if got.Release != tc.release || got.CheckAvailability != tc.check {
		t.Errorf("got release %+v, checked %t, want %+v, %t", got.Release, got.CheckAvailability, tc.release, tc.check)
	}
	if !strings.HasSuffix(got.Message, ".") {
		t.Errorf("the message is no sentence: %s", got.Message)
	}
}

func TestSpecIsJudgedByItself(t *testing.T) {
	pdb := func(minutes int32) func(*v1alpha1.UpgradeConfig) {
		return func(c *v1alpha1.UpgradeConfig) { c.Spec.PDBForceDrainTimeout = minutes }
	}
	for _, tc := range []judgement{
		{reason: "no time", object: newObject(at("")), because: muo.ReasonInvalidUpgradeAt, words: `spec.upgradeAt "" is no time`},
		{reason: "a time of day", object: newObject(at("22:00")), because: muo.ReasonInvalidUpgradeAt},
		{reason: "a time without a zone", object: newObject(at("2026-11-24T22:00:00")), because: muo.ReasonInvalidUpgradeAt},
		{reason: "a time before time", object: newObject(at("0001-01-01T00:00:00Z")), because: muo.ReasonInvalidUpgradeAt},
		{reason: "nothing is desired", object: newObject(desiring("", "", "")), because: muo.ReasonInvalidDesired, words: "an image, or a channel and a version"},
		{reason: "no channel", object: newObject(desiring("4.18.2", "", "")), because: muo.ReasonInvalidDesired},
		{reason: "no version", object: newObject(desiring("", "stable-4.18", "")), because: muo.ReasonInvalidDesired},
		{reason: "a version that is none", object: newObject(desiring("4.18", "stable-4.18", "")), because: muo.ReasonInvalidDesired, words: `"4.18" is no version`},
		{reason: "a version with a v", object: newObject(desiring("v4.18.2", "stable-4.18", "")), because: muo.ReasonInvalidDesired},
		{reason: "a version with a leading zero", object: newObject(desiring("4.18.02", "stable-4.18", "")), because: muo.ReasonInvalidDesired},
		{reason: "a long version", object: newObject(desiring("4.18.2-"+strings.Repeat("a", 122), "stable-4.18", "")), because: muo.ReasonInvalidDesired},
		{reason: "a long channel", object: newObject(desiring("4.18.2", strings.Repeat("a", 254), "")), because: muo.ReasonInvalidDesired, words: "longer than 253"},
		{reason: "an image by tag", object: newObject(desiring("", "", "quay.io/openshift-release-dev/ocp-release:4.18.2-x86_64")), because: muo.ReasonInvalidDesired, words: "by digest"},
		{reason: "an image without a namespace", object: newObject(desiring("", "", "quay.io/ocp-release@sha256:"+strings.Repeat("1", 64))), because: muo.ReasonInvalidDesired},
		{reason: "a short digest", object: newObject(desiring("", "", "quay.io/a/b@sha256:1234")), because: muo.ReasonInvalidDesired},
		{reason: "a version beside an image that is none", object: newObject(desiring("4", "", offeredImage)), because: muo.ReasonInvalidDesired},
		{reason: "a drain of more than a year", object: newObject(pdb(525601)), because: muo.ReasonInvalidTimeout, words: "at most 525600 minutes"},
	} {
		tc.verdict = muo.Invalid
		t.Run(tc.reason, tc.test)
	}
}

func TestVersionsAreJudgedByTheCluster(t *testing.T) {
	want := func(version string) *v1alpha1.UpgradeConfig { return newObject(desiring(version, "stable-4.18", "")) }
	plain, risky := openshift.Release{Version: "4.18.2"}, openshift.Release{Version: "4.18.3", Image: riskyImage}
	risks := func(risks string) *v1alpha1.UpgradeConfig {
		return newObject(desiring("4.18.3", "stable-4.18", ""), accepting(risks))
	}
	for _, tc := range []judgement{
		{reason: "an available update", object: want("4.18.2"), because: muo.ReasonValid, words: "4.18.2 is an available update", release: plain, check: true},
		{reason: "the version that runs", object: want("4.18.1"), verdict: muo.Done, because: muo.ReasonUpgraded, words: "runs 4.18.1 already"},
		{reason: "an older one", object: want("4.17.9"), verdict: muo.Invalid, because: muo.ReasonNotNewer, words: "4.17.9 is not newer than 4.18.1"},
		{reason: "a pre-release of the one that runs", object: want("4.18.1-rc.1"), verdict: muo.Invalid, because: muo.ReasonNotNewer},
		{reason: "the way back from an update", object: want("4.18.1"), version: newVersion(updatingTo("4.18.2", offeredImage)), verdict: muo.Invalid, because: muo.ReasonNotNewer},
		{reason: "one that is not offered", object: want("4.18.9"), verdict: muo.Invalid, because: muo.ReasonNotOffered, words: "not offered an update to 4.18.9 in channel stable-4.18"},
		{reason: "not known whether it is", object: want("4.18.9"), version: newVersion(knowingNothing), verdict: muo.Unknown, because: muo.ReasonUpdatesUnknown, words: "RemoteFailed: no route to host"},
		{reason: "never asked", object: want("4.18.9"), version: newVersion(knowingNothing, func(cv *configv1.ClusterVersion) { cv.Status.Conditions = nil }),
			verdict: muo.Unknown, because: muo.ReasonUpdatesUnknown, words: "has not asked"},
		{reason: "it updates already", object: want("4.18.2"), version: newVersion(updatingTo("4.18.2", offeredImage), knowingNothing), because: muo.ReasonValid, words: "updates to 4.18.2 already",
			release: openshift.Release{Version: "4.18.2", Image: offeredImage}},
		{reason: "it is being installed", object: want("4.18.2"), version: newVersion(func(cv *configv1.ClusterVersion) { cv.Status.History = nil }), verdict: muo.Unknown, because: muo.ReasonUpdatesUnknown},
		{reason: "it runs something odd", object: want("4.18.2"), version: newVersion(func(cv *configv1.ClusterVersion) { cv.Status.History[0].Version = "mine" }), verdict: muo.Unknown, because: muo.ReasonUpdatesUnknown},
		{reason: "a conditional update", object: want("4.18.3"), verdict: muo.Invalid, because: muo.ReasonRisksNotAccepted, words: "Fire, Water. The annotation " + v1alpha1.AcceptRisksAnnotation},
		{reason: "one risk is accepted", object: risks("Water"), verdict: muo.Invalid, because: muo.ReasonRisksNotAccepted, words: "not accepted: Fire."},
		{reason: "a part of a name is no name", object: risks("Water,Fir"), verdict: muo.Invalid, because: muo.ReasonRisksNotAccepted},
		{reason: "all are", object: risks(" Water, Fire ,Ice"), because: muo.ReasonValid, words: "risks are accepted: Fire, Water", release: risky},
		{reason: "all there may be", object: risks("*"), because: muo.ReasonValid, release: risky},
		{reason: "none of the risks applies", object: want("4.18.3"), because: muo.ReasonValid, release: openshift.Release{Version: "4.18.3"}, check: true,
			version: newVersion(func(cv *configv1.ClusterVersion) {
				cv.Status.AvailableUpdates = append(cv.Status.AvailableUpdates, configv1.Release{Version: "4.18.3", Image: riskyImage})
			})},
	} {
		t.Run(tc.reason, tc.test)
	}
	t.Run("no ClusterVersion", func(t *testing.T) {
		if got := muo.Judge(newObject(), muo.Facts{}); got.Verdict != muo.Unknown {
			t.Errorf("got %+v", got)
		}
	})
	if got := muo.Judge(want("4.18.2"), muo.Facts{Version: newVersion(updatingTo("4.18.2", offeredImage))}); !got.UnderWay {
		t.Error("an update that the cluster does already is not under way")
	}
}

func TestImagesAreTakenAsGiven(t *testing.T) {
	older := newVersion(func(cv *configv1.ClusterVersion) {
		cv.Status.AvailableUpdates = []configv1.Release{{Version: "4.17.9", Image: offeredImage}}
	})
	for _, tc := range []judgement{
		{reason: "that of an available update", object: newObject(desiring("", "", offeredImage)), because: muo.ReasonValid, release: openshift.Release{Version: "4.18.2", Image: offeredImage}, check: true},
		{reason: "with its version", object: newObject(desiring("4.18.2", "", offeredImage)), because: muo.ReasonValid, release: openshift.Release{Version: "4.18.2", Image: offeredImage}, check: true},
		{reason: "with another version", object: newObject(desiring("4.18.3", "", offeredImage)), verdict: muo.Invalid, because: muo.ReasonInvalidDesired, words: "that of 4.18.2, and not of 4.18.3"},
		{reason: "one that nobody offers", object: newObject(desiring("", "stable-4.18", image("9"))), because: muo.ReasonValid, words: "as given", release: openshift.Release{Image: image("9")}},
		{reason: "with a version", object: newObject(desiring("4.18.9", "", image("9"))), because: muo.ReasonValid, release: openshift.Release{Version: "4.18.9", Image: image("9")}},
		{reason: "with an older version", object: newObject(desiring("4.17.9", "", image("9"))), verdict: muo.Invalid, because: muo.ReasonNotNewer},
		{reason: "that of an older version", object: newObject(desiring("", "", offeredImage)), version: older, verdict: muo.Invalid, because: muo.ReasonNotNewer},
		{reason: "that which runs", object: newObject(desiring("", "", runningImage)), verdict: muo.Done, because: muo.ReasonUpgraded},
		{reason: "that of a conditional update", object: newObject(desiring("", "", riskyImage)), verdict: muo.Invalid, because: muo.ReasonRisksNotAccepted},
		{reason: "with accepted risks", object: newObject(desiring("", "", riskyImage), accepting("*")), because: muo.ReasonValid, release: openshift.Release{Version: "4.18.3", Image: riskyImage}},
		{reason: "through a registry with a port", object: newObject(desiring("", "", "mirror.example.com:5000/ocp/a_b/release-x@sha256:"+strings.Repeat("a", 64))), because: muo.ReasonValid,
			release: openshift.Release{Image: "mirror.example.com:5000/ocp/a_b/release-x@sha256:" + strings.Repeat("a", 64)}},
	} {
		t.Run(tc.reason, tc.test)
	}
}

func TestOtherChannels(t *testing.T) {
	object := func(overrides ...func(*v1alpha1.UpgradeConfig)) *v1alpha1.UpgradeConfig {
		return newObject(append([]func(*v1alpha1.UpgradeConfig){desiring("4.18.2", "fast-4.18", "")}, overrides...)...)
	}
	unlisted := newVersion(func(cv *configv1.ClusterVersion) { cv.Status.Desired.Channels = nil })
	edge := func(risks ...string) *muo.Edge {
		return &muo.Edge{KnowsRunning: true, KnowsTarget: true, Exists: true, Image: offeredImage, Risks: risks}
	}
	plain := openshift.Release{Version: "4.18.2"}
	for _, tc := range []judgement{
		{reason: "a channel of the running release", object: object(), because: muo.ReasonValid, words: "set to channel fast-4.18 at the start", release: plain, check: true},
		{reason: "one that it is not in", object: newObject(desiring("4.18.2", "stable-4.20", "")), verdict: muo.Invalid, because: muo.ReasonUnknownChannel, words: "but in: candidate-4.19, fast-4.18, stable-4.18"},
		{reason: "it is not known which those are", object: newObject(desiring("4.18.2", "stable-4.20", "")), version: unlisted, because: muo.ReasonValid, release: plain, check: true},
		{reason: "an older version", object: newObject(desiring("4.17.1", "fast-4.18", "")), edge: edge(), verdict: muo.Invalid, because: muo.ReasonNotNewer},
		{reason: "the graph has it", object: object(), edge: edge(), because: muo.ReasonValid, words: "is an update in channel fast-4.18", release: plain, check: true},
		{reason: "the graph counts, not the list", object: newObject(desiring("4.18.2", "stable-4.20", "")), edge: edge(), because: muo.ReasonValid, release: plain, check: true},
		{reason: "no answer", object: object(), edge: &muo.Edge{Problem: "it sleeps"}, verdict: muo.Unknown, because: muo.ReasonGraphUnavailable, words: "cannot be told: it sleeps"},
		{reason: "it does not have what runs", object: object(), edge: &muo.Edge{KnowsTarget: true}, verdict: muo.Invalid, because: muo.ReasonUnknownChannel},
		{reason: "it does not have the target", object: object(), edge: &muo.Edge{KnowsRunning: true}, verdict: muo.Invalid, because: muo.ReasonNotOffered, words: "4.18.2 is not in channel fast-4.18"},
		{reason: "no way", object: object(), edge: &muo.Edge{KnowsRunning: true, KnowsTarget: true}, verdict: muo.Invalid, because: muo.ReasonNotOffered, words: "no update from 4.18.1 to 4.18.2"},
		{reason: "a way with risks", object: object(), edge: edge("Fire"), because: muo.ReasonValid, words: "none of its risks applies: Fire", release: plain, check: true},
		{reason: "with accepted ones", object: object(accepting("Fire")), edge: edge("Fire"), because: muo.ReasonValid, release: openshift.Release{Version: "4.18.2", Image: offeredImage}},
	} {
		t.Run(tc.reason, tc.test)
	}
}

func TestGraphIsAskedOnlyOfOtherChannels(t *testing.T) {
	on := muo.DefaultSettings()
	withCincinnati(&on)
	for _, tc := range []struct {
		reason   string
		object   *v1alpha1.UpgradeConfig
		settings muo.Settings
		want     bool
	}{
		{"another channel", newObject(desiring("4.18.2", "fast-4.18", "")), on, true},
		{"the validation is off", newObject(desiring("4.18.2", "fast-4.18", "")), muo.DefaultSettings(), false},
		{"the cluster's own", newObject(), on, false},
		{"an image", newObject(desiring("4.18.2", "fast-4.18", offeredImage)), on, false},
		{"an invalid spec", newObject(desiring("4.18.2", "fast-4.18", ""), at("soon")), on, false},
	} {
		if got := muo.AsksGraph(tc.object, tc.settings, newVersion()); got != tc.want {
			t.Errorf("%s: got %t", tc.reason, got)
		}
	}
}
