// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// everything returns objects of which each metric has something to tell.
func everything() []client.Object {
	version := &v1beta1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "version"}}
	version.Spec.Overlays = []v1beta1.ClusterVersionOverlay{{From: at(0)}}
	version.Status.OverlayApplied = &v1beta1.AppliedOverlay{From: at(0)}
	muo := &v1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: v1alpha1.UpgradeConfigName}}
	muo.Spec.UpgradeAt = "1972-09-27T01:00:00Z"
	return []client.Object{
		version, muo, &v1beta1.NodeForceDrain{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "apps"}},
		newVersion(func(v *configv1.ClusterVersion) {
			v.Annotations = map[string]string{v1beta1.UpgradeJobAnnotation: "upgrades/j"}
			v.Status.History = []configv1.UpdateHistory{{State: configv1.PartialUpdate, Version: "4.18.2"}, {State: configv1.CompletedUpdate, Version: "4.18.1"}}
			v.Status.AvailableUpdates = []configv1.Release{{Version: "4.18.2"}}
			v.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
				{Type: configv1.OperatorProgressing, Status: configv1.ConditionTrue, Message: "1 of 2 done"},
			}
		}),
		newPool("worker", pausedBy("upgrades/gone")), newNode("n", "state", "Rebooting"),
		newConfig(func(c *v1beta1.UpgradeConfig) {
			c.Spec.Schedule.Suspend = true
			c.Status.NextPossibleSchedules, c.Status.LastScheduledUpgrade = []metav1.Time{at(1)}, ptrAt(2)
			c.Status.LastSkippedStart = &v1beta1.SkippedStart{StartAfter: at(3)}
		}),
		newWindow(func(w *v1beta1.UpgradeSuspensionWindow) {
			w.Status.MatchingConfigs = []v1beta1.MatchingObject{{Name: "weekly"}}
		}),
		newJob("j", running, func(j *v1beta1.UpgradeJob) {
			j.Status.Conditions = append(j.Status.Conditions, v1beta1.PreflightHealthy(""))
			j.Status.Blockers = []v1beta1.Blocker{{Code: "a", Check: "b"}}
			j.Status.Pools = []v1beta1.MachineConfigPoolStatus{{Name: "worker", UnpauseAfter: ptrAt(1), UnpauseBefore: ptrAt(2)}}
			j.Status.HookTracker = []v1beta1.HookRun{{UpgradeJobHook: "h", HookEvent: v1beta1.HookEventStart, Status: v1beta1.HookRunActive}}
			j.Status.ExtraMachines = &v1beta1.ExtraMachinesStatus{Wanted: 1}
			j.Status.MaintenanceWindows = []v1beta1.MaintenanceWindowStatus{{Name: "Workers"}}
			j.Spec.Config.Notifications = []v1beta1.NotificationReceiver{{URL: "http://all"}}
			j.Status.Notifications = &v1beta1.NotificationsStatus{Sequence: 1, Outbox: []v1beta1.Notice{{Sequence: 1, Time: at(0)}}}
		}),
		newJob("k", ended(-7200, v1beta1.Failed(v1beta1.ReasonTimedOut, "")), func(j *v1beta1.UpgradeJob) {
			j.Status.Conditions = append(j.Status.Conditions, v1beta1.StepHolds(v1beta1.ConditionGivenBack, true, v1beta1.ReasonReleased, ""))
		}),
	}
}

// namesOf returns the names of the metrics of a scrape, each once, in order.
func namesOf(t *testing.T, c *Collector) []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, family := range families {
		names = append(names, family.GetName())
	}
	return names
}

// What is described, what is collected and what the docs list is the same.
func TestDescriptorsAgree(t *testing.T) {
	var described []string
	for _, d := range Descriptors() {
		described = append(described, d.Name)
		if !strings.HasSuffix(d.Help, ".") || d.Group == "" {
			t.Errorf("%s: help %q, group %q", d.Name, d.Help, d.Group)
		}
	}
	slices.Sort(described)
	if len(slices.Compact(slices.Clone(described))) != len(described) {
		t.Errorf("a name is there twice: %v", described)
	}
	c := newTestCollector(newReader(everything()...), nil)
	c.StepCompleted("OpenShift", "UpgradeCommenced", time.Second)
	c.failed(t.Context(), kindJob, errors.New("once"))
	if diff := cmp.Diff(described, namesOf(t, c)); diff != "" {
		t.Errorf("described, and collected where there is everything (-want +got):\n%s", diff)
	}

	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, found := range regexp.MustCompile("(?m)^\\| `(managedupgrade_[a-z_]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, found[1])
	}
	slices.Sort(documented)
	if diff := cmp.Diff(described, documented); diff != "" {
		t.Errorf("described, and in docs/metrics.md (-want +got; run make generate):\n%s", diff)
	}
}

// A scrape must agree with the descriptions even in a registry that is stricter than the one in use.
func TestScrapesArePedantic(t *testing.T) {
	for reason, objects := range map[string][]client.Object{"everything": everything(), "nothing": nil} {
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(newTestCollector(newReader(objects...), nil))
		for range 2 {
			if _, err := registry.Gather(); err != nil {
				t.Errorf("%s: %v", reason, err)
			}
		}
	}
}

func TestOnlyTheLeaderTells(t *testing.T) {
	leading := false
	reads := 0
	reader := interceptor.NewClient(newReader(everything()...), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			reads++
			return c.List(ctx, list, opts...)
		},
	})
	c := newTestCollector(reader, func(o *Options) { o.Leading = func() bool { return leading } })
	waiting := []string{`build_info{go_version="GO",version="1.2.3"} 1`, "leader 0"}
	if diff := cmp.Diff(waiting, expose(t, c)); diff != "" || reads > 0 {
		t.Errorf("while another one leads (-want +got):\n%s\nand it reads %d times", diff, reads)
	}
	leading = true
	if got := expose(t, c, "leader", "cluster_locked"); !slices.Equal(got, []string{`cluster_locked{upgradejob="upgrades/j"} 1`, "leader 1"}) {
		t.Errorf("the leader tells %v", got)
	}
}

// A kind that cannot be read costs its own series only, and whoever would judge by it keeps silent.
func TestKindsThatCannotBeRead(t *testing.T) {
	noMatch := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "X"}}
	for _, tc := range []struct {
		reason string
		err    error
		errors []string
	}{
		{"the cache is not synced", errors.New("the cache is not started, can not read objects"), []string{
			`collect_errors_total{kind="UpgradeJob"} 1`, `collect_errors_total{kind="UpgradeJobHook"} 1`,
		}},
		{"the cluster does not have the kind", noMatch, []string{}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			reader := interceptor.NewClient(newReader(everything()...), interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					switch list.(type) {
					case *v1beta1.UpgradeJobList, *v1beta1.UpgradeJobHookList:
						return tc.err
					}
					return c.List(ctx, list, opts...)
				},
			})
			c := newTestCollector(reader, nil)
			if diff := cmp.Diff(tc.errors, expose(t, c, "collect_errors_total")); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			expect(t, c, "upgradejob_state upgradejob_info upgradeconfig_jobs_skipped_in_a_row machine_config_pool_left_paused machine_config_pool_machines",
				`machine_config_pool_machines{pool="worker"} 10`)
		})
	}
}

// Whether a job has disruptive hooks is not known without the hooks; the rest is.
func TestHooksThatCannotBeRead(t *testing.T) {
	reader := interceptor.NewClient(newReader(newJob("j")), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*v1beta1.UpgradeJobHookList); ok {
				return errors.New("away")
			}
			return c.List(ctx, list, opts...)
		},
	})
	expect(t, newTestCollector(reader, nil), "upgradejob_info upgradejob_start_after_timestamp_seconds",
		`upgradejob_start_after_timestamp_seconds{namespace="upgrades",upgradejob="j"} 8.64036e+07`)
}

func TestClusterVersionThatCannotBeRead(t *testing.T) {
	reader := interceptor.NewClient(newReader(everything()...), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("away")
		},
	})
	expect(t, newTestCollector(reader, nil), "collect_errors_total cluster_updating machine_config_pool_machines", `
		collect_errors_total{kind="ClusterVersion.config.openshift.io"} 1
		machine_config_pool_machines{pool="worker"} 10`)
}

func TestDeletedObjectsVanish(t *testing.T) {
	objects := everything()
	for _, object := range objects {
		object.SetFinalizers(nil)
	}
	reader := newReader(objects...)
	c := newTestCollector(reader, nil)
	if before := expose(t, c); len(before) < len(Descriptors())-2 {
		t.Fatalf("got %d series", len(before))
	}
	for _, object := range objects {
		if err := reader.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{`build_info{go_version="GO",version="1.2.3"} 1`, "leader 1"}
	if diff := cmp.Diff(want, expose(t, c)); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

// Namespaces of whoever may create objects in them must not fail the scrapes of all.
func TestObjectsOfOneName(t *testing.T) {
	elsewhere := func(job *v1beta1.UpgradeJob) { job.Namespace = "elsewhere" }
	expect(t, newTestCollector(newReader(newJob("j"), newJob("j", elsewhere)), nil), "upgradejob_start_after_timestamp_seconds", `
		upgradejob_start_after_timestamp_seconds{namespace="elsewhere",upgradejob="j"} 8.64036e+07
		upgradejob_start_after_timestamp_seconds{namespace="upgrades",upgradejob="j"} 8.64036e+07`)
}

func TestSeriesAreThereOnce(t *testing.T) {
	twice := func(job *v1beta1.UpgradeJob) {
		job.Status.MaintenanceWindows = []v1beta1.MaintenanceWindowStatus{
			{Name: "Workers", Silences: []v1beta1.SilenceStatus{{ID: "1"}}}, {Name: "Workers"},
		}
	}
	expect(t, newTestCollector(newReader(newJob("j", twice)), nil), "upgradejob_silences",
		`upgradejob_silences{maintenance_window="Workers",namespace="upgrades",upgradejob="j"} 1`)
	// Labels whose values are the same only when they are put together are not the same.
	split := newWindow(func(w *v1beta1.UpgradeSuspensionWindow) {
		w.Name, w.Status.MatchingConfigs = "a", []v1beta1.MatchingObject{{Name: "bc"}}
	})
	other := newWindow(func(w *v1beta1.UpgradeSuspensionWindow) {
		w.Name, w.Status.MatchingConfigs = "ab", []v1beta1.MatchingObject{{Name: "c"}}
	})
	if got := expose(t, newTestCollector(newReader(split, other), nil), "upgradesuspensionwindow_matching_config"); len(got) != 2 {
		t.Errorf("got %v", got)
	}
}

func TestHostileTexts(t *testing.T) {
	for _, tc := range []struct{ reason, text, want string }{
		{"what Prometheus has to quote", "a \"b\" \\ \n c", `a \"b\" \\ \n c`},
		{"long", strings.Repeat("ä", 200), strings.Repeat("ä", 128)},
		{"as long as may be", strings.Repeat("ä", 128), strings.Repeat("ä", 128)},
		{"no UTF-8", "a\xffb", "a\uFFFDb"},
		{"long, and no UTF-8", strings.Repeat("\xffa", 100), strings.Repeat("\uFFFDa", 64)},
		{"empty", "", ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			window := newWindow(nil)
			reader := interceptor.NewClient(newReader(window), interceptor.Funcs{ // the JSON of the fake client would mend it
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					err := c.List(ctx, list, opts...)
					if windows, ok := list.(*v1beta1.UpgradeSuspensionWindowList); ok {
						windows.Items[0].Spec.Reason = tc.text
					}
					return err
				},
			})
			expect(t, newTestCollector(reader, nil), "upgradesuspensionwindow_info",
				`upgradesuspensionwindow_info{namespace="upgrades",reason="`+tc.want+`",upgradesuspensionwindow="freeze"} 1`)
			if got := bounded(tc.text); !utf8.ValidString(got) || utf8.RuneCountInString(got) > 128 {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestStepDurations(t *testing.T) {
	c := newTestCollector(newReader(), func(o *Options) { o.Leading = func() bool { return false } })
	c.StepCompleted("OpenShift", "ControlPlaneUpgraded", 40*time.Minute)
	c.StepCompleted("OpenShift", "ControlPlaneUpgraded", 20*time.Minute)
	got := expose(t, c, "step_duration_seconds")
	for _, want := range []string{
		`step_duration_seconds_bucket{step="ControlPlaneUpgraded",upgrader="OpenShift",le="1800"} 1`,
		`step_duration_seconds_bucket{step="ControlPlaneUpgraded",upgrader="OpenShift",le="3600"} 2`,
		`step_duration_seconds_sum{step="ControlPlaneUpgraded",upgrader="OpenShift"} 3600`,
		`step_duration_seconds_count{step="ControlPlaneUpgraded",upgrader="OpenShift"} 2`,
	} {
		if !slices.Contains(got, want) {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}

// What is read belongs to all who read the cache.
func TestScrapesChangeNothing(t *testing.T) {
	shared := &memory{}
	for _, object := range everything() {
		shared.add(object)
	}
	before := shared.copy()
	expose(t, newTestCollector(shared, nil))
	if diff := cmp.Diff(before, shared.copy()); diff != "" {
		t.Errorf("a scrape changed the cache (-before +after):\n%s", diff)
	}
}
