// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/planner"
)

// previewWorld has a config with hooks, jobs and windows of all kinds.
func previewWorld(t *testing.T) *actWorld {
	config := actConfig(func(c *v1beta1.UpgradeConfig) {
		c.Spec.PinVersionWindow = &v1beta1.Duration{Duration: 4 * time.Hour}
		c.Spec.MaxUpgradeStartDelay = &v1beta1.Duration{Duration: 90 * time.Minute}
	})
	approval := actHook("approval", v1beta1.HookEventCreate, v1beta1.HookEventStart)
	approval.Spec.FailurePolicy, approval.Spec.Run, approval.Spec.Disruptive = v1beta1.HookFailureAbort, v1beta1.HookRunNext, true
	unwanted := actHook("of-test-only", v1beta1.HookEventStart)
	unwanted.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"tier": "test"}}
	elsewhere := actHook("elsewhere", v1beta1.HookEventStart)
	elsewhere.Namespace = "elsewhere"
	return newActWorld(t, openshifttest.ClusterVersion(openshifttest.Available("4.18.2", "4.18.10")), config, approval, elsewhere, unwanted, actHook("tell", v1beta1.HookEventFinish),
		actJob(config, zurich("2026-11-24 22:00"), v1beta1.PhasePending),
		actWindow("black-friday", zurich("2026-11-24 00:00"), zurich("2026-11-28 00:00"), ofConfigs, ofJobs),
		actWindow("freeze", zurich("2026-12-01 17:00"), zurich("2026-12-01 18:30"), ofConfigs),
		actWindow("audit", zurich("2026-12-08 17:00"), zurich("2026-12-08 20:00"), ofConfigs),
		actWindow("christmas", zurich("2026-12-15 00:00"), zurich("2026-12-16 00:00"), ofConfigs),
		actWindow("jobs-only", zurich("2026-12-22 00:00"), zurich("2026-12-23 00:00"), ofJobs))
}

func TestPreview(t *testing.T) {
	w := previewWorld(t)
	w.expect("preview", ExitOK, "preview", "weekly", "--count", "6")
	w.expect("preview-wide", ExitOK, "preview", "-o", "wide", "--count", "1")
	w.expect("preview-json", ExitOK, "preview", "weekly", "--count", "1", "-o", "json")
	w.expect("preview-yaml", ExitOK, "preview", "weekly", "--count", "1", "-o", "yaml")
	w.expect("preview-unknown", ExitFailed, "preview", "daily")
	for name, args := range map[string][]string{
		"two": {"a", "b"}, "name and file": {"a", "-f", "x.yaml"}, "none": {"--count", "0"}, "many": {"--count", "1001"}, "offline": {"--offline"}, "output": {"-o", "html"},
	} {
		t.Run(name, func(t *testing.T) {
			if text, status := w.run(append([]string{"preview"}, args...)...); status != ExitUsage {
				t.Errorf("status %d, want 2:\n%s", status, text)
			}
		})
	}
}

func TestPreviewOfSuspendedConfigs(t *testing.T) {
	w := newActWorld(t, openshifttest.ClusterVersion(openshifttest.Available()),
		actConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.Schedule.Suspend, c.Spec.Schedule.ISOWeek = true, "@odd" }),
		actConfig(func(c *v1beta1.UpgradeConfig) {
			c.Name, c.UID, c.Spec.NoUpdatePolicy, c.Spec.Schedule.Location = "local", "uid-local", v1beta1.NoUpdatePolicyCreateJob, "Local"
			c.Status.NextPossibleSchedules = []metav1.Time{metav1.NewTime(zurich("2026-11-24 22:00"))}
		}),
		actConfig(func(c *v1beta1.UpgradeConfig) {
			c.Name, c.UID, c.Spec.Schedule.Location, c.Spec.JobTemplate.Spec.Config.Upgrader = "far", "uid-far", "America/New_York", "Mine"
		}))
	w.expect("preview-three", ExitFailed, "preview", "--count", "2")
	w = newActWorld(t, openshifttest.ClusterVersion())
	w.expect("preview-none", ExitOK, "preview")
}

// TestPreviewOfClockChanges: starts in the hour that is left out, and in the hour that comes twice.
func TestPreviewOfClockChanges(t *testing.T) {
	w := newActWorld(t, openshifttest.ClusterVersion(), actConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.Schedule.Cron = "30 2 28 3,10 *" }))
	w.expect("preview-gap", ExitOK, "preview", "--count", "1")
	for _, tc := range []struct {
		cron, zone string
		start      time.Time
		want       string
	}{
		{"30 2 * * *", "Europe/Zurich", time.Date(2027, 3, 28, 1, 0, 0, 0, time.UTC), "moved: Sun 02:30 does not exist, clocks go forward"},
		{"0 3 * * *", "Europe/Zurich", time.Date(2027, 3, 28, 1, 0, 0, 0, time.UTC), ""},
		{"30 2 * * *", "Europe/Zurich", time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC), "02:30 comes twice, clocks go back: this is the first"},
		{"0 2 * * *", "Europe/Zurich", time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC), "02:00 comes twice, clocks go back: this is the first"},
		{"59 1 * * *", "Europe/Zurich", time.Date(2026, 10, 24, 23, 59, 0, 0, time.UTC), ""},
		{"0 3 * * *", "Europe/Zurich", time.Date(2026, 10, 25, 2, 0, 0, 0, time.UTC), ""},
		{"30 2 * * *", "UTC", time.Date(2026, 10, 25, 2, 30, 0, 0, time.UTC), ""},
	} {
		if got := clockChange(v1beta1.UpgradeConfigSchedule{Cron: tc.cron}, tc.start.In(mustZone(tc.zone))); got != tc.want {
			t.Errorf("%s in %s at %s: %q, want %q", tc.cron, tc.zone, tc.start, got, tc.want)
		}
	}
}

// TestPreviewIsClean: a file may come from anybody.
func TestPreviewIsClean(t *testing.T) {
	w := newActWorld(t, openshifttest.ClusterVersion(openshifttest.Available("4.18.2")))
	text, _ := w.run("preview", "-f", w.withFile("evil.yaml", "apiVersion: v1\nkind: \"Pod\\e]0;gotcha\\a\"\nmetadata: {name: \"x\\e[2J\"}\n"))
	if strings.ContainsAny(text, "\x1b\a") || !strings.Contains(text, "gotcha") {
		t.Errorf("got %q", text)
	}
}

// TestPreviewOfTheDueStart: a config whose job should be there, seen by the operator in a moment.
func TestPreviewOfTheDueStart(t *testing.T) {
	pinned := func(c *v1beta1.UpgradeConfig) { c.Spec.PinVersionWindow = &v1beta1.Duration{Duration: 4 * time.Hour} }
	suspended := func(c *v1beta1.UpgradeConfig) { c.Spec.Schedule.Suspend = true }
	for _, tc := range []struct {
		reason, now string
		config      *v1beta1.UpgradeConfig
		facts       previewFacts
		want        string
	}{
		{"the time has not come", "2026-11-24 17:59", actConfig(pinned), previewFacts{}, ""},
		{"it has just come", "2026-11-24 18:00", actConfig(pinned), previewFacts{}, "its job is created at once"},
		{"it may be late", "2026-11-24 19:00", actConfig(pinned), previewFacts{}, "its job is created at once"},
		{"it is too late", "2026-11-24 19:01", actConfig(pinned), previewFacts{}, "gets no job: it had to be created by 2026-11-24T18:00:00Z"},
		{"not while it is suspended", "2026-11-24 18:30", actConfig(pinned, suspended), previewFacts{}, ""},
		{"it is too late while it is suspended", "2026-11-24 19:01", actConfig(pinned, suspended), previewFacts{}, "gets no job: it had to be created by 2026-11-24T18:00:00Z"},
		{"not while a window lasts", "2026-11-24 18:30", actConfig(pinned),
			previewFacts{windows: []v1beta1.UpgradeSuspensionWindow{*actWindow("x", zurich("2026-11-24 18:00"), zurich("2026-11-24 18:45"), ofConfigs)}}, ""},
		{"not while a job runs", "2026-11-24 18:30", actConfig(pinned), previewFacts{jobs: []v1beta1.UpgradeJob{
			*actJob(actConfig(pinned), zurich("2026-11-24 17:30"), v1beta1.PhaseActive, func(j *v1beta1.UpgradeJob) { j.Name = "by-hand" })}}, "gets no job unless this changes by 2026-11-24T18:00:00Z: UpgradeJob by-hand is not finished"},
		{"not while a job waits for longer", "2026-11-24 10:00", actConfig(pinned), previewFacts{jobs: []v1beta1.UpgradeJob{
			*actJob(actConfig(pinned), zurich("2026-11-24 19:30"), v1beta1.PhasePending, func(j *v1beta1.UpgradeJob) { j.Name = "by-hand" })}}, "gets no job unless this changes by 2026-11-24T18:00:00Z: UpgradeJob by-hand is not finished"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			tc.facts.now = zurich(tc.now)
			report := previewOf(tc.config, &tc.facts, nil, nil, 1)
			if got := report.Starts[0].Due; got != tc.want {
				t.Errorf("due: %q, want %q", got, tc.want)
			}
		})
	}
}

// TestPreviewOfStartsThatAreCloserThanTheirPins: the job of one start is in the way of that of the next one.
func TestPreviewOfStartsThatAreCloserThanTheirPins(t *testing.T) {
	config := actConfig(func(c *v1beta1.UpgradeConfig) {
		c.Spec.Schedule.Cron, c.Spec.PinVersionWindow = "0 22 * * *", &v1beta1.Duration{Duration: 36 * time.Hour}
	})
	report := previewOf(config, &previewFacts{now: zurich("2026-11-23 05:00")}, nil, nil, 4)
	name := planner.NewJob(config, zurich("2026-11-24 22:00"), nil).Name
	want := []string{"gets no job: it had to be created by 2026-11-22T10:00:00Z", "", "gets no job unless this changes by 2026-11-24T10:00:00Z: UpgradeJob " + name + " is not finished", ""}
	for i, start := range report.Starts {
		if start.Due != want[i] {
			t.Errorf("%s: %q, want %q", start.Start, start.Due, want[i])
		}
	}
}

// TestPreviewOfWindows: what the windows before a start, whose job is created four hours before it, do to the creation.
func TestPreviewOfWindows(t *testing.T) {
	config := actConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.PinVersionWindow = &v1beta1.Duration{Duration: 4 * time.Hour} })
	const late, waits, held = "no job is created: it would be too late when the window ends", "the job is created when the window ends", "the job is not created before the window ends"
	for _, tc := range []struct {
		reason string
		// windows of configs, by clock.
		windows [][2]string
		want    []string
	}{
		{"it ends in the delay", [][2]string{{"17:00", "18:59"}}, []string{waits}},
		{"it ends with the delay", [][2]string{{"17:00", "19:00"}}, []string{late}},
		{"it ends after the delay", [][2]string{{"17:00", "19:01"}}, []string{late}},
		{"it ends with the creation", [][2]string{{"17:00", "18:00"}}, nil},
		{"it begins after the creation", [][2]string{{"18:01", "19:30"}}, nil},
		{"it covers the start", [][2]string{{"22:00", "22:01"}}, []string{"no job is created"}},
		{"another begins before it ends", [][2]string{{"17:00", "18:20"}, {"18:10", "18:40"}}, []string{held, waits}},
		{"another that begins before it ends is too long", [][2]string{{"17:00", "18:20"}, {"18:20", "20:00"}}, []string{held, late}},
		{"another covers the start", [][2]string{{"17:00", "18:20"}, {"21:20", "23:00"}}, []string{held, "no job is created"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := &previewFacts{now: actNow}
			for _, w := range tc.windows {
				f.windows = append(f.windows, *actWindow("x", zurich("2026-11-24 "+w[0]), zurich("2026-11-24 "+w[1]), ofConfigs))
			}
			var got []string
			for _, w := range previewOf(config, f, nil, nil, 1).Starts[0].InTheWay {
				got = append(got, w.Effect)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("effects (-want +got):\n%s", diff)
			}
		})
	}
}

const previewDocuments = `# What the team wants.
---
apiVersion: managedupgrade.appuio.io/v1beta1
kind: UpgradeConfig
metadata: {name: weekly}
spec:
  schedule: {cron: "0 22 * * 2", location: Europe/Zurich}
  jobTemplate: {spec: {config: {upgrader: Short}}}
---
apiVersion: managedupgrade.appuio.io/v1beta1
kind: UpgradeSuspensionWindow
metadata: {name: of-the-file}
spec: {start: "2026-11-24T00:00:00Z", end: "2026-11-25T00:00:00Z", configSelector: {}}
---
apiVersion: managedupgrade.appuio.io/v1beta1
kind: UpgradeJobHook
metadata: {name: of-the-file}
spec: {events: [Start], template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: x, image: x}]}}}}}
---
apiVersion: managedupgrade.appuio.io/v1beta1
kind: Upgrader
metadata: {name: Short}
spec:
  steps: [{step: StartHooksCompleted}, {step: ClusterHealthyBeforeUpgrade}, {step: UpdateAvailable}, {step: UpgradeCommenced}, {step: ControlPlaneUpgraded}, {step: MachineConfigPoolsUpgraded}, {step: ClusterHealthyAfterUpgrade}]
---
apiVersion: upgrade.managed.openshift.io/v1alpha1
kind: UpgradeConfig
metadata: {name: managed-upgrade-config}
spec: {type: OSD, upgradeAt: "2026-11-24T22:00:00Z", PDBForceDrainTimeout: 60, desired: {version: 4.18.2, channel: stable-4.18}}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}
`

const brokenDocuments = `apiVersion: managedupgrade.appuio.io/v1beta1
kind: UpgradeConfig
metadata: {name: fields}
spec:
  schedule: {cron: "0 25 * * 2", locaton: Europe/Zurich}
  jobTemplate: {spec: {config: {preUpgradeHealthChecks: {customQueries: [{query: "up =="}]}}}}
---
apiVersion: managedupgrade.appuio.io/v1beta1
kind: UpgradeConfig
metadata: {name: week}
spec: {schedule: {cron: "0 22 * * 2", isoWeek: "54"}}
---
apiVersion: managedupgrade.appuio.io/v1beta1
kind: UpgradeConfig
metadata: {name: zone}
spec: {schedule: {cron: "0 22 * * 2", location: Zurich}}
---
apiVersion: managedupgrade.appuio.io/v1beta1
kind: UpgradeConfig
metadata: {name: never}
spec: {schedule: {cron: "0 22 30 2 *", location: UTC}}
---
apiVersion: managedupgrade.appuio.io/v1beta1
kind: UpgradeConfig
metadata: {name: types}
spec: {schedule: {cron: 5}}
---
apiVersion: managedupgrade.appuio.io/v1
kind: UpgradeConfig
metadata: {name: version}
---
a: [b
`

// withFile writes a file next to the kubeconfig, and returns its path.
func (w *actWorld) withFile(name, content string) string {
	w.t.Helper()
	path := filepath.Join(filepath.Dir(w.kubeconfig), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// expectFile is expect for a command line with a file, whose path is another one each time.
func (w *actWorld) expectFile(golden string, want int, content string, args ...string) {
	w.t.Helper()
	w.expect(golden, want, append([]string{"preview", "-f", w.withFile("upgrade.yaml", content)}, args...)...)
}

func TestPreviewOfFile(t *testing.T) {
	w := previewWorld(t)
	w.expectFile("preview-file", ExitOK, previewDocuments, "--count", "2", "-o", "wide")
	w.expectFile("preview-file-broken", ExitFailed, brokenDocuments, "--offline")
	w.expectFile("preview-file-empty", ExitFailed, "# nothing\n", "--offline")
	w.expect("preview-file-missing", ExitFailed, "preview", "-f", "nowhere.yaml")
	w.in = previewDocuments
	w.expect("preview-stdin", ExitOK, "preview", "-f", "-", "--offline", "--count", "1")
	configs := &v1beta1.UpgradeConfigList{}
	if err := w.c.List(t.Context(), configs); err != nil || len(configs.Items) != 1 {
		t.Errorf("after previews of files there are %d configs (%v), want the one that was there", len(configs.Items), err)
	}
}

// TestPreviewWithoutKubeconfig does what it can.
func TestPreviewWithoutKubeconfig(t *testing.T) {
	w := newActWorld(t)
	if err := os.WriteFile(w.kubeconfig, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, status := w.run("preview", "-f", w.withFile("x.yaml", previewDocuments))
	if status != ExitOK || !strings.Contains(text, "UpgradeConfig default/weekly") || !strings.Contains(text, "no cluster is looked at") {
		t.Errorf("status %d:\n%s", status, text)
	}
}

// TestPreviewRefused: what the API server says against a config.
func TestPreviewRefused(t *testing.T) {
	kind := schema.GroupKind{Group: "managedupgrade.appuio.io", Kind: "UpgradeConfig"}
	config := schema.GroupResource{Group: kind.Group, Resource: "upgradeconfigs"}
	for _, tc := range []struct {
		name   string
		answer error
		status int
		want   string
	}{
		{"rules", apierrors.NewInvalid(kind, "preview-x", field.ErrorList{field.Invalid(field.NewPath("spec", "maxUpgradeStartDelay"), "0s", "must be longer than 0s")}), ExitFailed,
			`INVALID: spec.maxUpgradeStartDelay: Invalid value: "0s": must be longer than 0s (Refused)`},
		{"admission", apierrors.NewForbidden(config, "", errText("denied by policy x: no")), ExitFailed, "INVALID: "},
		{"forbidden", denied("create", "upgradeconfigs"), ExitOK, "admission: you may not create UpgradeConfigs in namespace upgrades, not even in a dry run"},
		{"no CRDs", &meta.NoKindMatchError{GroupKind: kind}, ExitOK, "admission: the cluster does not have the CRDs of the operator"},
		{"no namespace", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "upgrades"), ExitOK, `admission: namespaces "upgrades" not found`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := previewWorld(t)
			w.funcs.Create = func(_ context.Context, _ client.WithWatch, object client.Object, options ...client.CreateOption) error {
				o := (&client.CreateOptions{}).ApplyOptions(options)
				if len(o.DryRun) == 0 || object.GetName() != "" {
					t.Errorf("%s is created in earnest", object.GetName())
				}
				return tc.answer
			}
			text, status := w.run("preview", "-f", w.withFile("x.yaml", previewDocuments))
			if status != tc.status || !strings.Contains(text, tc.want) {
				t.Errorf("status %d, want %d and %q:\n%s", status, tc.status, tc.want, text)
			}
		})
	}
}

type errText string

func (e errText) Error() string { return string(e) }

// TestPreviewBeforeInstallation: a file can be looked at when the cluster has no CRDs, and the user no rights.
func TestPreviewBeforeInstallation(t *testing.T) {
	w := newActWorld(t, openshifttest.ClusterVersion())
	w.funcs.List = func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
		switch list.(type) {
		case *v1beta1.UpgradeConfigList, *v1beta1.UpgradeJobList:
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "managedupgrade.appuio.io", Kind: "x"}}
		}
		return denied("list", "anything")
	}
	w.expectFile("preview-file-before-installation", ExitOK, previewDocuments, "--count", "1")
	w.expect("preview-before-installation", ExitFailed, "preview")
}
