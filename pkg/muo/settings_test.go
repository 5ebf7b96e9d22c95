// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package muo_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/muo"
)

const everyKey = `
upgradeType: ARO
configManager:
  source: LOCAL
  ocmBaseUrl: https://api.example.com
  localConfigName: managed-upgrade-config
  watchInterval: 1
maintenance:
  controlPlaneTime: 91
  ignoredAlerts:
    controlPlaneCriticals:
    - ClusterOperatorDown
    - ClusterOperatorDegraded
    - ClusterOperatorDown
scale:
  timeOut: 31
  extraMachinePools: ["non-serving-*"]
upgradeWindow:
  timeOut: 121
  delayTrigger: 32
nodeDrain:
  timeOut: 46
  expectedNodeDrainTime: 9
  disableDrainStrategies: true
  ignoredNamespacePatterns: [example-.+]
healthCheck:
  ignoredCriticals: [DNSErrors05MinSRE]
  ignoredNamespaces: [openshift-logging]
extDependencyAvailabilityChecks:
  http:
    timeout: 10
    urls: ["https://www.example.com/health"]
validation:
  cincinnati: true
environment:
  fedramp: true
featureGate:
  enabled: [PreHealthCheck, ServiceLogNotification]
notifications:
- name: chat
  url: https://chat.example.com/hook
  events: [upgrade.*]
`

func TestEveryTunableIsRead(t *testing.T) {
	want := muo.Settings{
		UpgradeType:      "ARO",
		ControlPlaneTime: 91 * time.Minute, ControlPlaneCriticals: []string{"ClusterOperatorDown", "ClusterOperatorDegraded"},
		ScaleTimeout: 31 * time.Minute, ExtraMachinePools: []string{"non-serving-*"},
		UpgradeWindow: 121 * time.Minute, DelayTrigger: 32 * time.Minute,
		NodeDrainTimeout: 46 * time.Minute, ExpectedNodeDrainTime: 9 * time.Minute,
		DisableDrainStrategies: true, IgnoredNamespacePatterns: []string{"example-.+"},
		IgnoredCriticals: []string{"DNSErrors05MinSRE"}, IgnoredNamespaces: []string{"openshift-logging"},
		HTTPTimeout: 10 * time.Second, HTTPURLs: []string{"https://www.example.com/health"},
		Cincinnati: true, FedRAMP: true, PreHealthCheck: true, ServiceLog: true,
		Notifications: []v1beta1.NotificationReceiver{{Name: "chat", URL: "https://chat.example.com/hook", Events: []v1beta1.NotificationFilter{"upgrade.*"}}},
	}
	got, err := muo.ParseSettings(everyKey)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

// What is documented counts also where a key, a section, or everything is missing.
func TestMissingTunablesHaveTheirDocumentedDefaults(t *testing.T) {
	want := muo.Settings{
		ControlPlaneTime: 90 * time.Minute, ScaleTimeout: 30 * time.Minute, UpgradeWindow: 120 * time.Minute, DelayTrigger: 30 * time.Minute,
		NodeDrainTimeout: 45 * time.Minute, ExpectedNodeDrainTime: 8 * time.Minute, HTTPTimeout: 15 * time.Second,
	}
	for _, text := range []string{
		"", "# nothing\n", "{}", "maintenance:\nscale: {}\nupgradeWindow:\n  timeOut:\nnodeDrain: null\nextDependencyAvailabilityChecks:\n  http: {}\nvalidation:\n  cincinnati:\n",
	} {
		got, err := muo.ParseSettings(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("settings of %q (-want +got):\n%s", text, diff)
		}
	}
}

func TestZeroTurnsTheWindowOff(t *testing.T) {
	got, err := muo.ParseSettings("upgradeWindow: {timeOut: 0, delayTrigger: 0}")
	if err != nil || got.UpgradeWindow != 0 || got.DelayTrigger != 0 {
		t.Errorf("got %v, %v, %v, want no window and no trigger", got.UpgradeWindow, got.DelayTrigger, err)
	}
}

func TestWhatIsWrongInTheSettingsIsSaid(t *testing.T) {
	for _, tc := range []struct{ reason, text, want string }{
		{"no YAML", "scale:\n  timeOut: [\n", "not valid YAML: line 2"},
		{"a tab", "scale:\n\ttimeOut: 1\n", "line 2"},
		{"a key twice", "scale:\n  timeOut: 1\n  timeOut: 2\n", `line 3: key "timeOut" already set in map`},
		{"a text", "scale", "must consist of keys and values"},
		{"a list", "- scale", "must consist of keys and values"},
		{"a section that is a text", "scale: much", "scale (line 1) must consist of keys and values"},
		{"a text for a number", "a: 1\nmaintenance:\n  # comment\n  controlPlaneTime: ninety\n", `maintenance.controlPlaneTime (line 4) must be a whole number, not "ninety"`},
		{"a number in quotes", `scale: {timeOut: "30"}`, `scale.timeOut must be a whole number, not "30"`},
		{"a fraction", "scale:\n  timeOut: 1.5", "must be a whole number, not 1.5"},
		{"a Go duration", "upgradeWindow:\n  timeOut: 2h", `upgradeWindow.timeOut (line 2) must be a whole number, not "2h"`},
		{"zero where nothing is off", "maintenance:\n  controlPlaneTime: 0", "maintenance.controlPlaneTime (line 2) must be at least 1, not 0"},
		{"zero of the scale", "scale:\n  timeOut: 0", "scale.timeOut (line 2) must be at least 1"},
		{"zero of the drain", "nodeDrain:\n  timeOut: 0", "nodeDrain.timeOut (line 2) must be at least 1"},
		{"zero of the expected drain", "nodeDrain:\n  expectedNodeDrainTime: 0", "nodeDrain.expectedNodeDrainTime (line 2) must be at least 1"},
		{"less than nothing", "upgradeWindow:\n  timeOut: -1", "upgradeWindow.timeOut (line 2) must be at least 0, not -1"},
		{"more than a year", "upgradeWindow:\n  delayTrigger: 525601", "must be at most 525600, not 525601"},
		{"more than any number", "scale:\n  timeOut: 99999999999999999999", "scale.timeOut (line 2) must be a whole number"},
		{"a long timeout", "extDependencyAvailabilityChecks:\n  http:\n    timeout: 61", "extDependencyAvailabilityChecks.http.timeout (line 3) must be at most 60, not 61"},
		{"a timeout of zero", "extDependencyAvailabilityChecks:\n  http:\n    timeout: 0", "http.timeout (line 3) must be at least 1"},
		{"a word for a flag", "validation:\n  cincinnati: maybe", `validation.cincinnati (line 2) must be true or false, not "maybe"`},
		{"a number for a text", "upgradeType: 7", "upgradeType (line 1) must be a text, not 7"},
		{"a text for a list", "healthCheck:\n  ignoredCriticals: DNS", `healthCheck.ignoredCriticals (line 2) must be a list of texts, not "DNS"`},
		{"a number in a list", "healthCheck:\n  ignoredNamespaces: [a, 7]", "healthCheck.ignoredNamespaces (line 2) must be a list of texts; 7 is none"},
		{"an empty text in a list", "healthCheck:\n  ignoredNamespaces: ['']", `"" is none`},
		{"a bad glob", "scale:\n  extraMachinePools: ['[a']", `scale.extraMachinePools (line 2) cannot be used: "[a" is no glob pattern`},
		{"a bad pattern", "nodeDrain:\n  ignoredNamespacePatterns: ['(']", `"(" is no regular expression`},
		{"a large pattern", "nodeDrain:\n  ignoredNamespacePatterns: ['(abcd){500}']", "is too large a regular expression"},
		{"an alert that is no pattern", "maintenance:\n  ignoredAlerts:\n    controlPlaneCriticals: ['Etcd(']", `controlPlaneCriticals (line 3) cannot be used: "Etcd(" is no regular expression`},
		{"no URL", "extDependencyAvailabilityChecks:\n  http:\n    urls: [www.example.com]", "an URL is none of http or https"},
		{"a password", "extDependencyAvailabilityChecks:\n  http:\n    urls: ['https://me:secret@example.com']", "an URL has a user or password"},
		{"a receiver's unknown field", "notifications:\n- uri: x", `notifications (line 1) cannot be read: unknown field "uri"`},
		{"a receiver that is a text", "notifications: [x]", "notifications (line 1) cannot be read"},
		{"all of it", "scale:\n  timeOut: 0\nvalidation:\n  cincinnati: 3", "scale.timeOut (line 2) must be at least 1, not 0; validation.cincinnati (line 4) must be true or false, not 3"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := muo.ParseSettings(tc.text)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got error %v, want %q in it", err, tc.want)
			}
			if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error tells a secret, or has several lines: %v", err)
			}
		})
	}
}

func TestWhatHasNoEffectIsNoted(t *testing.T) {
	for _, tc := range []struct{ reason, text, want string }{
		{"a key that nobody knows", "scale:\n  timeout: 30\n", "scale.timeout (line 2) is not known"},
		{"a section that nobody knows", "sclae:\n  timeOut: 30\n", "sclae (line 1) is not known"},
		{"a gate that nobody knows", "featureGate: {enabled: [Everything]}", "featureGate Everything is not known"},
		{"OCM", "configManager: {source: OCM, ocmBaseUrl: x, watchInterval: 5}", "configManager.source OCM: upgrade policies of OCM are not read"},
		{"another object", "configManager: {localConfigName: mine}", "configManager.localConfigName mine is ignored"},
		{"another type", "upgradeType: ARO", "upgradeType ARO is ignored: spec.type is OSD"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			settings, err := muo.ParseSettings(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			config := &v1alpha1.UpgradeConfig{Spec: v1alpha1.UpgradeConfigSpec{Type: v1alpha1.OSD}}
			notes := settings.NotesFor(config)
			if len(notes) != 1 || !strings.Contains(notes[0], tc.want) {
				t.Errorf("got notes %q, want %q", notes, tc.want)
			}
			config.Spec.Type = v1alpha1.ARO
			if got := len(settings.NotesFor(config)); (got == 0) != (tc.reason == "another type") {
				t.Errorf("an object of type ARO gets %d notes", got)
			}
		})
	}
}

// A line is told only where it is sure.
func TestLinesAreThoseOfTheKeys(t *testing.T) {
	for _, tc := range []struct{ reason, text, want string }{
		{"the same key elsewhere before", "upgradeWindow:\n  timeOut: 5\nscale:\n  timeOut: x\n", "scale.timeOut (line 4) must"},
		{"the same key elsewhere behind", "scale: {timeOut: x}\nupgradeWindow:\n  timeOut: 5\n", "scale.timeOut must"},
		{"a section of that name below another", "a:\n  scale:\n    timeOut: 1\nscale:\n  timeOut: x\n", "scale.timeOut (line 5) must"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if _, err := muo.ParseSettings(tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
