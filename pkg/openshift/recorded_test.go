// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"os"
	"path/filepath"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// recorded reads a ClusterVersion that a real cluster-version operator wrote.
func recorded(t *testing.T, name string) *configv1.ClusterVersion {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "recorded", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	cv := &configv1.ClusterVersion{}
	if err := yaml.Unmarshal(data, cv); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return cv
}

func version(v string) openshift.Release { return openshift.Release{Version: v} }

func TestWhereARecordedClusterStands(t *testing.T) {
	for _, tc := range []struct {
		file     string
		reason   string
		target   string
		running  string
		runs     bool
		accepted bool
		desires  bool
		updating string
	}{
		{
			file: "00-installing-4.18.1", reason: "during the installation the oldest entry runs, but is not completed",
			target: "4.18.1", running: "4.18.1", accepted: true, updating: "4.18.1",
		},
		{
			file: "01-available-4.18.1", reason: "an available update is not accepted yet",
			target: "4.18.2", running: "4.18.1",
		},
		{
			file: "02-desired-4.18.2-not-taken-up", reason: "desired alone starts nothing",
			target: "4.18.2", running: "4.18.1", desires: true,
		},
		{
			file: "03-updating-to-4.18.2", reason: "the newest entry is Partial, so the release below it runs",
			target: "4.18.2", running: "4.18.1", accepted: true, desires: true, updating: "4.18.2",
		},
		{
			file: "10-completed-4.18.2", reason: "completed; desiredUpdate stays in the spec",
			target: "4.18.2", running: "4.18.2", runs: true, accepted: true, desires: true,
		},
		{
			file: "10-completed-4.18.2", reason: "the release that was left is neither accepted nor running",
			target: "4.18.1", running: "4.18.2",
		},
		{
			file: "30-desired-not-available-version-only", reason: "an invalid spec changes nothing else",
			target: "4.18.4", running: "4.18.2", desires: true,
		},
		{
			file: "31-desired-older-version-in-history", reason: "a completed entry further down does not count as running",
			target: "4.18.1", running: "4.18.2", desires: true,
		},
		{
			file: "32-desired-equals-current", reason: "asking for what runs is no update",
			target: "4.18.2", running: "4.18.2", runs: true, accepted: true, desires: true,
		},
		{
			file: "42-minor-accepted-despite-co-upgradeable-false-midway", reason: "a minor update under way",
			target: "4.19.0", running: "4.18.2", accepted: true, desires: true, updating: "4.19.0",
		},
		{
			file: "43-minor-4.19.0-slipped-through", reason: "a minor update that is completed",
			target: "4.19.0", running: "4.19.0", runs: true, accepted: true, desires: true,
		},
		{
			file: "61-unsigned-rejected", reason: "a refused release makes no history entry",
			target: "4.18.9", running: "4.18.1", desires: true,
		},
		{
			file: "62-minor-blocked-upgradeable-false", reason: "neither does a precondition that fails",
			target: "4.19.0", running: "4.18.1", desires: true,
		},
		{
			file: "72-edge-withdrawn-mid-update", reason: "an update goes on when its edge is withdrawn",
			target: "4.18.3", running: "4.18.1", accepted: true, desires: true, updating: "4.18.3",
		},
		{
			file: "75-retarget-mid-update", reason: "of two Partial entries the newest is the target",
			target: "4.18.4", running: "4.18.1", accepted: true, desires: true, updating: "4.18.4",
		},
		{
			file: "75-retarget-mid-update", reason: "an abandoned entry has a completionTime and was never completed",
			target: "4.18.3", running: "4.18.1", updating: "4.18.4",
		},
		{
			file: "76-retarget-completed", reason: "the abandoned entry below stays Partial",
			target: "4.18.4", running: "4.18.4", runs: true, accepted: true, desires: true,
		},
		{
			file: "83-retrieving-payload-pod-pending", reason: "while the payload is retrieved the status does not change at all",
			target: "4.18.6", running: "4.18.5", desires: true,
		},
		{
			file: "85-version-image-mismatch", reason: "a version that does not match its image is not taken up",
			target: "4.18.8", running: "4.18.6", desires: true,
		},
		{
			file: "87-desired-cleared-after-failure", reason: "desiredUpdate cleared",
			target: "4.18.7", running: "4.18.6",
		},
	} {
		t.Run(tc.file+"/"+tc.reason, func(t *testing.T) {
			cv, target := recorded(t, tc.file), version(tc.target)
			if got := openshift.RunningVersion(cv); got != tc.running {
				t.Errorf("RunningVersion: got %q, want %q", got, tc.running)
			}
			if got := openshift.Runs(cv, target); got != tc.runs {
				t.Errorf("Runs(%s): got %t, want %t", target, got, tc.runs)
			}
			if got := openshift.Accepted(cv, target); got != tc.accepted {
				t.Errorf("Accepted(%s): got %t, want %t", target, got, tc.accepted)
			}
			if got := openshift.Desires(cv, target); got != tc.desires {
				t.Errorf("Desires(%s): got %t, want %t", target, got, tc.desires)
			}
			updating, is := openshift.Updating(cv)
			if is != (tc.updating != "") || updating.Version != tc.updating {
				t.Errorf("Updating: got %q, %t; want %q", updating, is, tc.updating)
			}
		})
	}
}

func TestWhatARecordedClusterOffers(t *testing.T) {
	for _, tc := range []struct {
		file    string
		reason  string
		target  string
		offered bool
		highest string
	}{
		{"01-available-4.18.1", "one update", "4.18.2", true, "4.18.2"},
		{"10-completed-4.18.2", "null: what runs is not offered any more", "4.18.2", false, ""},
		{"20-update-4.18.3-available", "a newer one came", "4.18.3", true, "4.18.3"},
		{"21-two-updates", "the highest is not the only one", "4.18.2", true, "4.18.3"},
		{"22-edge-withdrawn-natural-poll", "the edge was withdrawn", "4.18.3", false, "4.18.2"},
		{"23-graph-http500-natural-poll-cache-kept", "known updates are kept while the update server fails", "4.18.2", true, "4.18.2"},
		{"50-conditional-edges-always-promql", "a risk that does not apply: in both lists", "4.18.4", true, "4.18.4"},
		{"50-conditional-edges-always-promql", "a risk that applies: among the conditional ones only", "4.18.3", false, "4.18.4"},
		{"56-no-channel", "without a channel nothing is offered", "4.18.2", false, ""},
		{"66-edge-withdrawn-while-desired-pending", "withdrawn while it was being refused", "4.18.9", false, ""},
		{"61-unsigned-rejected", "refused releases stay on offer; a minor update is higher", "4.18.9", true, "4.19.0"},
	} {
		t.Run(tc.file+"/"+tc.reason, func(t *testing.T) {
			cv := recorded(t, tc.file)
			release, offered := openshift.Offered(cv, version(tc.target))
			if offered != tc.offered {
				t.Fatalf("Offered(%s): got %t, want %t", tc.target, offered, tc.offered)
			}
			if offered && (release.Version != tc.target || release.Image == "") {
				t.Errorf("Offered(%s): got %+v, want version and image", tc.target, release)
			}
			highest, found := openshift.HighestAvailable(cv)
			if highest.Version != tc.highest || found != (tc.highest != "") {
				t.Errorf("HighestAvailable: got %q, %t; want %q", highest, found, tc.highest)
			}
		})
	}
}

func TestConditionsOfARecordedCluster(t *testing.T) {
	for _, tc := range []struct {
		file      string
		condition configv1.ClusterStatusConditionType
		status    configv1.ConditionStatus
		reason    string // of the condition
	}{
		{"30-desired-not-available-version-only", openshift.Invalid, configv1.ConditionTrue, "InvalidClusterVersion"},
		{"51-desired-notrecommended-conditional-version-only", openshift.Invalid, configv1.ConditionTrue, "InvalidClusterVersion"},
		{"61-unsigned-rejected", openshift.ReleaseAccepted, configv1.ConditionFalse, "RetrievePayload"},
		{"62-minor-blocked-upgradeable-false", openshift.ReleaseAccepted, configv1.ConditionFalse, "PreconditionChecks"},
		{"83-retrieving-payload-pod-pending", openshift.ReleaseAccepted, configv1.ConditionTrue, "PayloadLoaded"},
		{"85-version-image-mismatch", openshift.ReleaseAccepted, configv1.ConditionFalse, "VerifyPayloadVersion"},
		{"89b-degraded-over-40min-failing", openshift.Failing, configv1.ConditionTrue, "ClusterOperatorDegraded"},
		{"23-graph-http500-natural-poll-cache-kept", configv1.RetrievedUpdates, configv1.ConditionFalse, "ResponseFailed"},
	} {
		t.Run(tc.file+"/"+string(tc.condition), func(t *testing.T) {
			conditions := recorded(t, tc.file).Status.Conditions
			c := openshift.Condition(conditions, tc.condition)
			if c == nil || c.Reason != tc.reason {
				t.Fatalf("Condition: got %+v, want reason %s", c, tc.reason)
			}
			for _, status := range []configv1.ConditionStatus{configv1.ConditionTrue, configv1.ConditionFalse, configv1.ConditionUnknown} {
				if got := openshift.ConditionIs(conditions, tc.condition, status); got != (status == tc.status) {
					t.Errorf("ConditionIs(%s): got %t", status, got)
				}
			}
		})
	}
	t.Run("a condition that is not there is nil and has no status", func(t *testing.T) {
		conditions := recorded(t, "01-available-4.18.1").Status.Conditions
		if c := openshift.Condition(conditions, openshift.Invalid); c != nil {
			t.Errorf("Condition: got %+v, want nil", c)
		}
		if openshift.ConditionIs(conditions, openshift.Invalid, configv1.ConditionFalse) {
			t.Error("ConditionIs: an absent condition is not False")
		}
	})
}

func TestAClusterVersionWithoutHistory(t *testing.T) {
	cv := &configv1.ClusterVersion{}
	if got := openshift.RunningVersion(cv); got != "" {
		t.Errorf("RunningVersion: got %q", got)
	}
	if openshift.Runs(cv, version("4.18.1")) || openshift.Accepted(cv, version("4.18.1")) || openshift.Desires(cv, version("4.18.1")) {
		t.Error("a cluster without history runs, has accepted and desires nothing")
	}
	if r, updating := openshift.Updating(cv); updating {
		t.Errorf("Updating: got %s", r)
	}
}

// What was not recorded: an installation that was retargeted, and a newest entry with a completionTime that was never completed.
func TestHistoriesWithoutACompletedUpdate(t *testing.T) {
	installing := openshifttest.ClusterVersion(openshifttest.History(openshifttest.Partial("4.18.2"), openshifttest.Abandoned("4.18.1")))
	if got := openshift.RunningVersion(installing); got != "4.18.1" {
		t.Errorf("RunningVersion: got %q, want that of the oldest entry", got)
	}
	abandoned := openshifttest.ClusterVersion(openshifttest.History(openshifttest.Abandoned("4.18.2"), openshifttest.Completed("4.18.1")))
	if openshift.Runs(abandoned, version("4.18.2")) {
		t.Error("Runs: a completionTime is no completion")
	}
	if r, is := openshift.Updating(abandoned); !is || r.Version != "4.18.2" {
		t.Errorf("Updating: got %q, %t", r, is)
	}
}
