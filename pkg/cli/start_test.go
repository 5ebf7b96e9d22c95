// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

func TestStart(t *testing.T) {
	disruptive := actHook("drain-announcement", v1beta1.HookEventStart, v1beta1.HookEventFinish)
	disruptive.Spec.Disruptive = true
	elsewhere := actHook("other-namespace", v1beta1.HookEventStart)
	elsewhere.Namespace = "elsewhere"
	config := actConfig(func(c *v1beta1.UpgradeConfig) {
		c.Spec.MaxUpgradeStartDelay = &v1beta1.Duration{Duration: 2 * time.Hour}
	})
	w := newActWorld(t, openshifttest.ClusterVersion(), config, actHook("backup", v1beta1.HookEventStart), disruptive, elsewhere,
		actJob(config, actNow.AddDate(0, 0, -6), v1beta1.PhaseSucceeded))

	w.expect("start-dry-run", ExitOK, "start", "weekly", "--dry-run")
	if got := len(w.jobs()); got != 1 {
		t.Fatalf("after a dry run there are %d jobs, want 1", got)
	}
	w.expect("start", ExitOK, "start", "weekly", "--yes")
	var created *v1beta1.UpgradeJob
	for _, job := range w.jobs() {
		if !job.Status.Phase.Finished() {
			created = &job
		}
	}
	if created == nil {
		t.Fatal("no job was created")
	}
	want := v1beta1.UpgradeJobSpec{
		StartAfter: metav1.NewTime(actNow.UTC()), StartBefore: metav1.NewTime(actNow.UTC().Add(2 * time.Hour)),
		DesiredVersion:                  &v1beta1.DesiredVersion{Version: "4.18.2", Image: openshifttest.Image("4.18.2")},
		DesiredVersionCheckAvailability: ptr.To(true),
	}
	if diff := cmp.Diff(want, created.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if !metav1.IsControlledBy(created, config) || created.Labels["tier"] != "prod" || created.Finalizers[0] != v1beta1.UpgradeJobFinalizer {
		t.Errorf("the job is not one of the config: %+v", created.ObjectMeta)
	}
	if created.OwnerReferences[0].BlockOwnerDeletion != nil {
		t.Error("blockOwnerDeletion is set: users lack the right")
	}
	w.expect("start-twice", ExitFailed, "start", "weekly", "--yes")
	if got := len(w.jobs()); got != 2 {
		t.Errorf("after a second call there are %d jobs, want 2", got)
	}
}

func TestStartLaterWithVersion(t *testing.T) {
	w := newActWorld(t, openshifttest.ClusterVersion(openshifttest.Available("4.18.2", "4.18.3")),
		actConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.Schedule.Suspend = true }))
	w.expect("start-later", ExitOK, "start", "upgrades/weekly", "--yes", "--in", "90m", "--version", "4.18.2")
	job := w.jobs()[0]
	if want := actNow.Add(90 * time.Minute); !job.Spec.StartAfter.Time.Equal(want) || job.Spec.DesiredVersion.Version != "4.18.2" {
		t.Errorf("start %s of version %s, want %s of 4.18.2", job.Spec.StartAfter, job.Spec.DesiredVersion.Version, want)
	}
}

// TestStartInTheSameSecond: a client that does not know of the first job yet creates no second one.
func TestStartInTheSameSecond(t *testing.T) {
	w := newActWorld(t, openshifttest.ClusterVersion(), actConfig())
	if text, status := w.run("start", "weekly", "--yes"); status != ExitOK {
		t.Fatal(text)
	}
	w.clock.Step(300 * time.Millisecond)
	w.funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if _, ok := list.(*v1beta1.UpgradeJobList); ok {
			return nil
		}
		return c.List(ctx, list, options...)
	}
	w.expect("start-same-second", ExitFailed, "start", "weekly", "--yes")
	if got := len(w.jobs()); got != 1 {
		t.Errorf("there are %d jobs, want 1", got)
	}
}

func TestStartWithoutUpdate(t *testing.T) {
	w := newActWorld(t, openshifttest.ClusterVersion(openshifttest.Available()),
		actConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.NoUpdatePolicy = v1beta1.NoUpdatePolicyCreateJob }))
	w.expect("start-without-version", ExitOK, "start", "weekly", "--yes")
	if job := w.jobs()[0]; job.Spec.DesiredVersion != nil {
		t.Errorf("the job has version %v, want none", job.Spec.DesiredVersion)
	}
}

func TestStartRefused(t *testing.T) {
	config := actConfig()
	hour := func(h int) time.Time { return actNow.Add(time.Duration(h) * time.Hour) }
	other := actConfig(func(c *v1beta1.UpgradeConfig) { c.Name, c.UID = "other", "uid-other" })
	holder := actJob(other, hour(-1), v1beta1.PhaseActive)
	holding := actJob(other, hour(-1), v1beta1.PhaseFailed, func(j *v1beta1.UpgradeJob) { j.Finalizers = []string{v1beta1.UpgradeJobFinalizer} })
	over := actJob(other, hour(-1), v1beta1.PhaseFailed)
	with := func(options ...func(*configv1.ClusterVersion)) client.Object {
		return openshifttest.ClusterVersion(options...)
	}
	invalid := actConfig()
	meta.SetStatusCondition(&invalid.Status.Conditions, v1beta1.NotReady(v1beta1.ReasonInvalidCron, "invalid cron: what."))
	for _, tc := range []struct {
		name    string
		objects []client.Object
		args    []string
		want    string // empty: it is not refused
	}{
		{"unknown", []client.Object{with(), config}, []string{"wekly"}, `there is no UpgradeConfig "wekly": there are upgrades/weekly`},
		{"unfinished", []client.Object{with(), config, actJob(config, hour(36), v1beta1.PhasePending)}, []string{"weekly"}, "of the config is not finished (Pending)"},
		{"unfinished without a phase", []client.Object{with(), config, actJob(config, hour(36), "")}, []string{"weekly"}, "of the config is not finished (Pending)"},
		{"job of another config", []client.Object{with(), config, actJob(other, hour(36), v1beta1.PhasePending)}, []string{"weekly"}, ""},
		{"locked", []client.Object{with(heldBy(holder.LockKey())), config, holder}, []string{"weekly"}, "the cluster is locked by UpgradeJob " + holder.LockKey()},
		{"locked by a job that cleans up", []client.Object{with(heldBy(holding.LockKey())), config, holding}, []string{"weekly"}, "the cluster is locked by UpgradeJob"},
		{"lock of a job that is over", []client.Object{with(heldBy(over.LockKey())), config, over}, []string{"weekly"}, ""},
		{"lock of a job that is gone", []client.Object{with(heldBy("upgrades/gone")), config}, []string{"weekly"}, ""},
		{"locked by a stranger", []client.Object{with(heldBy("somebody")), config}, []string{"weekly"}, `the cluster is locked by "somebody"`},
		{"updating", []client.Object{with(openshifttest.History(openshifttest.Partial("4.18.2"), openshifttest.Completed("4.18.1"))), config}, []string{"weekly"}, "the cluster is being updated to 4.18.2"},
		{"window of configs", []client.Object{with(), config, actWindow("freeze", hour(-1), hour(1), ofConfigs)}, []string{"weekly"}, "UpgradeSuspensionWindow upgrades/freeze suspends upgrades until Mon 2026-11-23 11:00 CET: Black Friday"},
		{"window of jobs", []client.Object{with(), config, actWindow("freeze", hour(-1), hour(1), ofJobs)}, []string{"weekly"}, "UpgradeSuspensionWindow upgrades/freeze suspends"},
		{"window of jobs at the start", []client.Object{with(), config, actWindow("freeze", hour(1), hour(3), ofJobs)}, []string{"weekly", "--in", "2h"}, "UpgradeSuspensionWindow upgrades/freeze suspends"},
		{"window is over at the start", []client.Object{with(), config, actWindow("freeze", hour(-1), hour(1), ofJobs)}, []string{"weekly", "--in", "2h"}, ""},
		{"window of configs is over at the start", []client.Object{with(), config, actWindow("freeze", hour(-1), hour(1), ofConfigs)}, []string{"weekly", "--in", "2h"}, ""},
		{"window ends at the start", []client.Object{with(), config, actWindow("freeze", hour(-2), actNow, ofJobs, ofConfigs)}, []string{"weekly"}, ""},
		{"no update", []client.Object{with(openshifttest.Available()), config}, []string{"weekly"}, "the cluster offers no update of 4.18.1"},
		{"version not offered", []client.Object{with(), config}, []string{"weekly", "--version", "4.19.0"}, "the cluster does not offer version 4.19.0: it offers 4.18.2"},
		{"version offered conditionally", []client.Object{with(openshifttest.Conditional("4.18.5", metav1.ConditionUnknown, "x", "y")), config},
			[]string{"weekly", "--version", "4.18.5"}, "it is offered conditionally only"},
		{"config cannot be used", []client.Object{with(), invalid}, []string{"weekly"}, "cannot be used: invalid cron: what."},
		{"unknown upgrader", []client.Object{with(), actConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.JobTemplate.Spec.Config.Upgrader = "Mine" })}, []string{"weekly"},
			`there is no upgrader "Mine"`},
		{"no cluster version", []client.Object{config}, []string{"weekly"}, "get ClusterVersion/version"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newActWorld(t, tc.objects...)
			before := len(w.jobs())
			text, status := w.run(append([]string{"start", "--yes"}, tc.args...)...)
			if tc.want == "" {
				if status != ExitOK || len(w.jobs()) != before+1 {
					t.Errorf("status %d and %d jobs more, want 0 and 1:\n%s", status, len(w.jobs())-before, text)
				}
				return
			}
			if status != ExitFailed || !strings.Contains(text, tc.want) || len(w.jobs()) != before {
				t.Errorf("status %d, %d jobs more, output:\n%s\nwant 1, none, and %q", status, len(w.jobs())-before, text, tc.want)
			}
		})
	}
}

// TestStartAgreedLate: a question that stood open for hours creates no job whose time is over, and none that the user did not see.
func TestStartAgreedLate(t *testing.T) {
	const evening = 8 * time.Hour
	for _, tc := range []struct {
		reason  string
		open    time.Duration
		args    []string
		changes func(*actWorld)
		start   time.Duration
		want    string // empty: a job is created
	}{
		{"at once", 0, nil, nil, 0, ""},
		{"within a minute", time.Minute, nil, nil, 0, ""},
		{"in the evening", evening, nil, nil, evening, ""},
		{"in the evening, for a time that has passed", evening, []string{"--in", "1h"}, nil, evening, ""},
		{"in the evening, for a time that is to come", evening, []string{"--in", "24h"}, nil, 24 * time.Hour, ""},
		{"in the evening, in a window", evening, nil, func(w *actWorld) {
			w.create(actWindow("freeze", actNow.Add(time.Hour), actNow.Add(24*time.Hour), ofJobs))
		}, 0, "UpgradeSuspensionWindow upgrades/freeze suspends"},
		{"in the evening, when another version is offered", evening, nil, func(w *actWorld) { w.offer("4.18.3") }, 0, "the version was 4.18.2 when you were asked, and would be 4.18.3 now"},
		{"in the evening, when another version is offered beside the one wanted", evening, []string{"--version", "4.18.2"}, func(w *actWorld) { w.offer("4.18.2", "4.18.3") }, evening, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newActWorld(t, openshifttest.ClusterVersion(), actConfig())
			w.in, w.asked = "y\n", sync.OnceFunc(func() {
				w.clock.Step(tc.open)
				if tc.changes != nil {
					tc.changes(w)
				}
			})
			text, status := w.run(append([]string{"start", "weekly"}, tc.args...)...)
			jobs := w.jobs()
			switch {
			case tc.want != "" && (status != ExitFailed || !strings.Contains(text, tc.want) || len(jobs) != 0):
				t.Errorf("status %d and %d jobs, want 1, none and %q:\n%s", status, len(jobs), tc.want, text)
			case tc.want == "" && (status != ExitOK || len(jobs) != 1):
				t.Errorf("status %d and %d jobs, want 0 and one:\n%s", status, len(jobs), text)
			case tc.want == "" && (!jobs[0].Spec.StartAfter.Time.Equal(actNow.Add(tc.start)) || !strings.Contains(text, "UpgradeJob upgrades/"+jobs[0].Name+" is created")):
				t.Errorf("job %s starts %s, want %s:\n%s", jobs[0].Name, jobs[0].Spec.StartAfter, actNow.Add(tc.start), text)
			}
		})
	}
}

// create creates an object.
func (w *actWorld) create(object client.Object) {
	w.t.Helper()
	if err := w.c.Create(w.t.Context(), object); err != nil {
		w.t.Error(err)
	}
}

// offer has the cluster offer those versions, and no others.
func (w *actWorld) offer(versions ...string) {
	w.t.Helper()
	cv := get(w, openshifttest.ClusterVersion())
	openshifttest.Available(versions...)(cv)
	if err := w.c.Update(w.t.Context(), cv); err != nil {
		w.t.Error(err)
	}
}

func TestStartAsksAndExplains(t *testing.T) {
	w := newActWorld(t, openshifttest.ClusterVersion(), actConfig())
	w.expect("start-no-terminal", ExitFailed, "start", "weekly")
	w.expect("start-usage", ExitUsage, "start")
	w.expect("start-negative", ExitUsage, "start", "weekly", "--in", "-5m")
	w.funcs.Create = func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return denied("create", "upgradejobs")
	}
	w.expect("start-forbidden", ExitFailed, "start", "weekly", "--yes")
	if got := len(w.jobs()); got != 0 {
		t.Errorf("there are %d jobs, want none", got)
	}
}
