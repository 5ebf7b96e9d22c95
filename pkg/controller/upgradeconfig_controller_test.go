// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// newConfig returns a config whose first start is startAfter, a Tuesday, changed by the overrides.
func newConfig(overrides ...func(*v1beta1.UpgradeConfig)) *v1beta1.UpgradeConfig {
	config := &v1beta1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{
			Name: "weekly", Namespace: namespace, UID: "weekly-config-uid", Generation: 1,
			CreationTimestamp: metav1.NewTime(startAfter.Add(-48 * time.Hour)),
		},
		Spec: v1beta1.UpgradeConfigSpec{
			Schedule: v1beta1.UpgradeConfigSchedule{Cron: "0 22 * * 2", Location: "UTC"},
		},
	}
	for _, override := range overrides {
		override(config)
	}
	return config
}

// jobsOf are the jobs in the cluster, by name.
func jobsOf(w *world) []v1beta1.UpgradeJob {
	w.t.Helper()
	list := &v1beta1.UpgradeJobList{}
	if err := w.api.past(func() error { return w.client.List(w.t.Context(), list) }); err != nil {
		w.t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b v1beta1.UpgradeJob) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

// ownedBy makes the job one of the config.
func ownedBy(config *v1beta1.UpgradeConfig) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) {
		job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(config, v1beta1.GroupVersion.WithKind("UpgradeConfig"))}
	}
}

func TestConfigCreatesItsJobInTime(t *testing.T) {
	config := newConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.PinVersionWindow = &v1beta1.Duration{Duration: 4 * time.Hour} })
	w := newWorld(t, newClusterVersion(), config).register(plain())
	r := w.configs()

	w.clock.SetTime(startAfter.Add(-4*time.Hour - 30*time.Second))
	if result := w.reconcile(r, config); result.RequeueAfter != 30*time.Second {
		t.Errorf("wakes after %s, want when the job is due", result.RequeueAfter)
	}
	if jobs := jobsOf(w); len(jobs) > 0 {
		t.Fatalf("there is a job already: %v", jobs[0].Name)
	}
	early := get(w, config)
	expectCondition(t, early.Status.Conditions, v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonValid)
	expectCondition(t, early.Status.Conditions, v1beta1.ConditionScheduling, metav1.ConditionTrue, v1beta1.ReasonScheduled, "2026-11-24T18:00:00Z")
	if got := early.Status.NextPossibleSchedules; len(got) != 10 || !got[0].Time.Equal(startAfter) || !got[9].Time.Equal(startAfter.AddDate(0, 0, 63)) {
		t.Errorf("next starts are %v, want ten Tuesdays", got)
	}
	if !early.Status.ScheduleObservedTime.Equal(&config.CreationTimestamp) || early.Status.ObservedGeneration != 1 {
		t.Errorf("got schedule observed at %s, generation %d, want the creation, 1", early.Status.ScheduleObservedTime, early.Status.ObservedGeneration)
	}
	w.api.writes()

	w.clock.SetTime(startAfter.Add(-4 * time.Hour))
	w.reconcile(r, config)
	jobs := jobsOf(w)
	if len(jobs) != 1 {
		t.Fatalf("there are %d jobs, want one", len(jobs))
	}
	job := &jobs[0]
	if !job.Spec.StartAfter.Time.Equal(startAfter) || job.Spec.DesiredVersion.Version != "4.18.2" || !metav1.IsControlledBy(job, config) {
		t.Errorf("got a job for %s, version %v, owners %v", job.Spec.StartAfter, job.Spec.DesiredVersion, job.OwnerReferences)
	}
	got := get(w, config)
	expectCondition(t, got.Status.Conditions, v1beta1.ConditionScheduling, metav1.ConditionFalse, v1beta1.ReasonJobActive, job.Name)
	if got.Status.LastScheduledUpgrade == nil || !got.Status.LastScheduledUpgrade.Time.Equal(startAfter) {
		t.Errorf("last scheduled is %s, want %s", got.Status.LastScheduledUpgrade, startAfter)
	}
	if diff := cmp.Diff([]string{"create UpgradeJob", "patch UpgradeConfig/status"}, w.api.writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"JobCreated"}, reasons(w.events())); diff != "" {
		t.Errorf("reasons of the Events (-want +got):\n%s", diff)
	}

	for range 3 {
		w.elapse(time.Minute)
		w.reconcile(r, config)
	}
	if got := w.api.writes(); len(got) > 0 {
		t.Errorf("passes without news wrote %v", got)
	}
}

func TestConfigConditions(t *testing.T) {
	freeze := &v1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Name: "freeze", Namespace: namespace},
		Spec: v1beta1.UpgradeSuspensionWindowSpec{
			Start: metav1.NewTime(startAfter.Add(-time.Hour)), End: metav1.NewTime(startAfter.Add(time.Hour)), ConfigSelector: &metav1.LabelSelector{},
		},
	}
	nothingOffered := newClusterVersion(func(cv *configv1.ClusterVersion) { cv.Status.AvailableUpdates = nil })
	schedule := func(cron, week, location string) *v1beta1.UpgradeConfig {
		return newConfig(func(c *v1beta1.UpgradeConfig) {
			c.Spec.Schedule = v1beta1.UpgradeConfigSchedule{Cron: cron, ISOWeek: week, Location: location}
		})
	}
	for _, tc := range []struct {
		reason            string
		config            *v1beta1.UpgradeConfig
		objects           []client.Object
		ready, scheduling string
		words             string
		created           bool
	}{
		{"a start is due", newConfig(), []client.Object{newClusterVersion()}, v1beta1.ReasonValid, v1beta1.ReasonJobActive, "", true},
		{"a cron with a wrong field", schedule("0 25 * * 2", "", "UTC"), nil, v1beta1.ReasonInvalidCron, v1beta1.ReasonInvalidConfig, "25", false},
		{"an ISO week that never is", schedule("0 22 * * 2", "54", "UTC"), nil, v1beta1.ReasonInvalidISOWeek, v1beta1.ReasonInvalidConfig, "54", false},
		{"an unknown time zone", schedule("0 22 * * 2", "", "Europe/Bern"), nil, v1beta1.ReasonInvalidLocation, v1beta1.ReasonInvalidConfig, "Europe/Bern", false},
		{"30 February", schedule("0 0 30 2 *", "", "UTC"), nil, v1beta1.ReasonNoNextSchedule, v1beta1.ReasonInvalidConfig, "", false},
		{"an unknown upgrader", newConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.JobTemplate.Spec.Config.Upgrader = "Custom" }), nil,
			v1beta1.ReasonUnknownUpgrader, v1beta1.ReasonInvalidConfig, "known: OpenShift", false},
		{"a query that is no PromQL", newConfig(func(c *v1beta1.UpgradeConfig) {
			c.Spec.JobTemplate.Spec.Config.PreUpgradeHealthChecks.CustomQueries = []v1beta1.CustomQuery{{Query: "up"}, {Query: "up !="}}
		}), []client.Object{newClusterVersion()}, v1beta1.ReasonInvalidQuery, v1beta1.ReasonInvalidConfig,
			"preUpgradeHealthChecks.customQueries[1]: the query is not PromQL: ", false},
		{"the same after the upgrade", newConfig(func(c *v1beta1.UpgradeConfig) {
			c.Spec.JobTemplate.Spec.Config.PostUpgradeHealthChecks.CustomQueries = []v1beta1.CustomQuery{{Query: "1"}}
		}), []client.Object{newClusterVersion()}, v1beta1.ReasonInvalidQuery, v1beta1.ReasonInvalidConfig,
			"postUpgradeHealthChecks.customQueries[0]: the query returns a scalar, want a vector", false},
		{"a glob that is none", newConfig(func(c *v1beta1.UpgradeConfig) {
			c.Spec.JobTemplate.Spec.Config.CapacityReservation = &v1beta1.CapacityReservation{Enabled: true, ExtraMachinePools: []string{"infra", "[a"}}
		}), []client.Object{newClusterVersion()}, v1beta1.ReasonInvalidPattern, v1beta1.ReasonInvalidConfig, `capacityReservation.extraMachinePools: "[a" is no glob pattern`, false},
		{"a namespace pattern that is none", newConfig(func(c *v1beta1.UpgradeConfig) {
			c.Spec.JobTemplate.Spec.Config.PDBForceDrainTimeout = &v1beta1.Duration{}
			c.Spec.JobTemplate.Spec.Config.NodeDrain = &v1beta1.NodeDrain{IgnoredNamespacePatterns: []string{"(a"}}
		}), []client.Object{newClusterVersion()}, v1beta1.ReasonInvalidPattern, v1beta1.ReasonInvalidConfig, "nodeDrain: ", false},
		{"an alert that is none", newConfig(func(c *v1beta1.UpgradeConfig) {
			c.Spec.JobTemplate.Spec.Config.Maintenance = &v1beta1.Maintenance{ControlPlaneCriticals: []string{"Down", "etcd("}}
		}), []client.Object{newClusterVersion()}, v1beta1.ReasonInvalidPattern, v1beta1.ReasonInvalidConfig, `maintenance.controlPlaneCriticals: "etcd(" is neither`, false},
		{"pools are delayed by a list without that", newConfig(func(c *v1beta1.UpgradeConfig) {
			c.Spec.JobTemplate.Spec.Config.MachineConfigPools = []v1beta1.MachineConfigPoolConfig{{DelayUpgrade: &v1beta1.DelayUpgrade{}}}
		}), []client.Object{newClusterVersion()}, v1beta1.ReasonUnknownUpgrader, v1beta1.ReasonInvalidConfig, "no step MachineConfigPoolsPaused", false},
		{"suspended", newConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.Schedule.Suspend = true }), []client.Object{newClusterVersion()},
			v1beta1.ReasonValid, v1beta1.ReasonSuspended, "spec.schedule.suspend", false},
		{"in a suspension window", newConfig(), []client.Object{newClusterVersion(), freeze}, v1beta1.ReasonValid, v1beta1.ReasonSuspensionWindow, "freeze", false},
		{"a job is active", newConfig(), []client.Object{newClusterVersion(), newJob("old", ownedBy(newConfig()), func(job *v1beta1.UpgradeJob) {
			job.Spec.StartAfter.Time = startAfter.Add(-24 * time.Hour)
		})}, v1beta1.ReasonValid, v1beta1.ReasonJobActive, "UpgradeJob old", false},
		{"a job of another config is active", newConfig(), []client.Object{newClusterVersion(), newJob("foreign")}, v1beta1.ReasonValid, v1beta1.ReasonJobActive, "weekly-", true},
		{"no update is offered", newConfig(), []client.Object{nothingOffered}, v1beta1.ReasonValid, v1beta1.ReasonNoUpdateAvailable, "offers no update", false},
		{"there is no ClusterVersion", newConfig(), nil, v1beta1.ReasonValid, v1beta1.ReasonNoUpdateAvailable, "offers no update", false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, append(tc.objects, tc.config)...).register(plain())
			before := len(jobsOf(w))
			r := w.configs()
			result := w.reconcile(r, tc.config)
			got := get(w, tc.config)
			ready := metav1.ConditionFalse
			if tc.ready == v1beta1.ReasonValid {
				ready = metav1.ConditionTrue
			}
			expectCondition(t, got.Status.Conditions, v1beta1.ConditionReady, ready, tc.ready)
			expectCondition(t, got.Status.Conditions, v1beta1.ConditionScheduling, metav1.ConditionFalse, tc.scheduling, tc.words)
			if created := len(jobsOf(w)) > before; created != tc.created {
				t.Errorf("a job was created: %t, want %t", created, tc.created)
			}
			switch valid := tc.ready == v1beta1.ReasonValid; {
			case valid && (result.RequeueAfter <= 0 || result.RequeueAfter > maxSleep || len(got.Status.NextPossibleSchedules) != 10):
				t.Errorf("looks again after %s, next starts %v", result.RequeueAfter, got.Status.NextPossibleSchedules)
			case !valid && (result.RequeueAfter != 0 || len(got.Status.NextPossibleSchedules) != 0):
				t.Errorf("looks again after %s, next starts %v, want none: only a change of the spec helps", result.RequeueAfter, got.Status.NextPossibleSchedules)
			}
			w.api.writes()
			w.reconcile(r, tc.config)
			if got := w.api.writes(); len(got) > 0 {
				t.Errorf("a second pass wrote %v", got)
			}
		})
	}
}

func TestConfigIsCorrected(t *testing.T) {
	config := newConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.Schedule.Location = "Europe/Bern" })
	w := newWorld(t, newClusterVersion(), config).register(plain())
	r := w.configs()
	w.reconcile(r, config)

	w.clock.SetTime(startAfter.Add(30 * time.Minute))
	change(w, config, func(c *v1beta1.UpgradeConfig) { c.Spec.Schedule.Location, c.Generation = "UTC", 2 })
	w.reconcile(r, config)
	got := get(w, config)
	expectCondition(t, got.Status.Conditions, v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonValid)
	expectCondition(t, got.Status.Conditions, v1beta1.ConditionScheduling, metav1.ConditionTrue, v1beta1.ReasonScheduled)
	if !got.Status.ScheduleObservedTime.Time.Equal(w.clock.Now()) || got.Status.ObservedGeneration != 2 {
		t.Errorf("got schedule observed at %s, generation %d, want now, 2", got.Status.ScheduleObservedTime, got.Status.ObservedGeneration)
	}
	if len(jobsOf(w)) > 0 || got.Status.LastSkippedStart != nil {
		t.Errorf("a start before the correction counts: skipped %v, jobs %v", got.Status.LastSkippedStart, jobsOf(w))
	}
}

func TestConfigTellsMissedStarts(t *testing.T) {
	config := newConfig()
	w := newWorld(t, newClusterVersion(), config).register(plain())
	w.clock.SetTime(startAfter.Add(2 * time.Hour))
	w.reconcile(w.configs(), config)
	got := get(w, config)
	if s := got.Status.LastSkippedStart; s == nil || !s.StartAfter.Time.Equal(startAfter) || s.Reason != v1beta1.ReasonMissed {
		t.Errorf("last skipped start is %v, want %s (Missed)", s, startAfter)
	}
	expectCondition(t, got.Status.Conditions, v1beta1.ConditionScheduling, metav1.ConditionTrue, v1beta1.ReasonScheduled, "was skipped (Missed)")
}

func TestConfigAfterALostAnswer(t *testing.T) {
	// The job was created, the process ended before it could record that, and the cache has not seen the job yet.
	config := newConfig()
	w := newWorld(t, newClusterVersion(), config).register(plain())
	w.api.fault = failing("patch UpgradeConfig/status", 1, errBroken)
	if result := w.reconcile(w.configs(), config); result.RequeueAfter != minBackoff {
		t.Errorf("tries again after %s, want %s", result.RequeueAfter, minBackoff)
	}
	w.events()

	w.api.blind = true
	w.reconcile(w.configs(), config)
	if jobs := jobsOf(w); len(jobs) != 1 {
		t.Errorf("there are %d jobs, want one", len(jobs))
	}
	if got := get(w, config).Status.LastScheduledUpgrade; got == nil || !got.Time.Equal(startAfter) {
		t.Errorf("last scheduled is %s, want %s", got, startAfter)
	}
	if got := w.events(); len(got) > 0 {
		t.Errorf("it is told again: %v", got)
	}
}

func TestConfigLeavesAForeignJobAlone(t *testing.T) {
	config := newConfig()
	w := newWorld(t, newClusterVersion(), config).register(plain())
	w.reconcile(w.configs(), config)
	foreign := jobsOf(w)[0]
	foreign.OwnerReferences, foreign.ResourceVersion, foreign.UID = nil, "", "foreign"

	w = newWorld(t, newClusterVersion(), newConfig(), &foreign).register(plain())
	r := w.configs()
	for _, want := range []time.Duration{minBackoff, 2 * minBackoff, 4 * minBackoff} {
		if result := w.reconcile(r, config); result.RequeueAfter != want {
			t.Errorf("tries again after %s, want %s", result.RequeueAfter, want)
		}
	}
	if jobs := jobsOf(w); len(jobs) != 1 || len(jobs[0].OwnerReferences) != 0 {
		t.Errorf("jobs are %v, want the foreign one as it was", jobs)
	}
	if got := get(w, config).Status.LastScheduledUpgrade; got != nil {
		t.Errorf("the foreign job is recorded as scheduled: %s", got)
	}
}

func TestConfigPrunesItsHistory(t *testing.T) {
	config := newConfig(func(c *v1beta1.UpgradeConfig) {
		c.Spec.SuccessfulJobsHistoryLimit, c.Spec.FailedJobsHistoryLimit = ptr.To[int32](2), ptr.To[int32](1)
	})
	objects := []client.Object{newClusterVersion(), config}
	for i, phase := range []v1beta1.Phase{
		v1beta1.PhaseSucceeded, v1beta1.PhaseFailed, v1beta1.PhaseSucceeded, v1beta1.PhaseSkipped, v1beta1.PhaseSucceeded, v1beta1.PhaseSucceeded,
	} {
		objects = append(objects, newJob(fmt.Sprint("job-", i), ownedBy(config), withPhase(phase), byHand, func(job *v1beta1.UpgradeJob) {
			job.Spec.StartAfter.Time = startAfter.AddDate(0, 0, 7*(i-10))
		}))
	}
	objects = append(objects, newJob("foreign", withPhase(v1beta1.PhaseSucceeded), byHand, func(job *v1beta1.UpgradeJob) {
		job.Spec.StartAfter.Time = startAfter.AddDate(-1, 0, 0)
	}))
	w := newWorld(t, objects...).register(plain())
	w.clock.SetTime(startAfter.Add(-time.Hour))
	r := w.configs()

	w.api.fault = failing("delete UpgradeJob", 1, errBroken)
	if result := w.reconcile(r, config); result.RequeueAfter != minBackoff {
		t.Errorf("tries again after %s, want %s", result.RequeueAfter, minBackoff)
	}
	w.api.fault = failing("delete UpgradeJob", 1, apierrors.NewNotFound(v1beta1.GroupVersion.WithResource("upgradejobs").GroupResource(), "job-0"))
	w.reconcile(r, config)
	w.api.fault = nil
	w.reconcile(r, config)
	var names []string
	for _, job := range jobsOf(w) {
		names = append(names, job.Name)
	}
	if want := []string{"foreign", "job-3", "job-4", "job-5"}; !slices.Equal(names, want) {
		t.Errorf("jobs are %v, want %v", names, want)
	}
}

func TestConfigThatIsDeletedCreatesNothing(t *testing.T) {
	config := newConfig(func(c *v1beta1.UpgradeConfig) { c.Finalizers = []string{"foregroundDeletion"} })
	w := newWorld(t, newClusterVersion(), config).register(plain())
	w.remove(config)
	if result := w.reconcile(w.configs(), config); result.RequeueAfter != 0 || len(jobsOf(w)) > 0 || len(w.api.writes()) > 0 {
		t.Errorf("looks again after %s, jobs %v, want nothing", result.RequeueAfter, jobsOf(w))
	}
	empty := newWorld(t)
	if result := empty.reconcile(empty.configs(), config); result.RequeueAfter != 0 {
		t.Errorf("a config that is gone is looked at again after %s", result.RequeueAfter)
	}
}

func TestConfigStaleCacheIsWaitedFor(t *testing.T) {
	config := newConfig()
	w := newWorld(t, newClusterVersion(), config).register(plain())
	r := w.configs()
	old := get(w, config)
	w.reconcile(r, config)
	w.api.writes()
	w.api.stale = func(o client.Object) bool {
		stale, ok := o.(*v1beta1.UpgradeConfig)
		if ok {
			old.DeepCopyInto(stale)
		}
		return ok
	}
	if result := w.reconcile(r, config); result.RequeueAfter <= 0 || result.RequeueAfter > time.Second {
		t.Errorf("looks again after %s", result.RequeueAfter)
	}
	if got := w.api.writes(); len(got) > 0 {
		t.Errorf("a pass over a stale config wrote %v", got)
	}
}

func TestConfigFaultAtEachCall(t *testing.T) {
	live := func(t *testing.T, fault func(int, string) (error, error)) (*world, string) {
		config := newConfig()
		old := newJob("old", ownedBy(config), withPhase(v1beta1.PhaseFailed), byHand, func(job *v1beta1.UpgradeJob) { job.Spec.StartAfter.Time = startAfter.AddDate(0, 0, -14) })
		older := newJob("older", ownedBy(config), withPhase(v1beta1.PhaseFailed), byHand, func(job *v1beta1.UpgradeJob) { job.Spec.StartAfter.Time = startAfter.AddDate(0, 0, -21) })
		config.Spec.FailedJobsHistoryLimit = ptr.To[int32](1)
		w := newWorld(t, newClusterVersion(), config, old, older).register(plain())
		w.api.fault = fault
		r := w.configs()
		for range 4 {
			result := w.reconcile(r, config)
			w.elapse(min(result.RequeueAfter, time.Second))
		}
		got := get(w, config)
		var jobs []string
		for _, job := range jobsOf(w) {
			jobs = append(jobs, fmt.Sprint(job.Name, " ", job.Spec.StartAfter.UTC(), " ", job.Spec.DesiredVersion))
		}
		return w, fmt.Sprintf("%s\nlast %s, skipped %v\n%s", describe(got.Status.Conditions), got.Status.LastScheduledUpgrade,
			got.Status.LastSkippedStart, strings.Join(jobs, "\n"))
	}
	clean, want := live(t, nil)
	if strings.Contains(want, "older") || !strings.Contains(want, "weekly-1795557600") {
		t.Fatalf("a life without faults ends with %s", want)
	}
	for i, call := range slices.Clone(clean.api.calls) {
		for when, err := range map[string][2]error{
			"breaks before its effect": {errBroken, nil}, "breaks after its effect": {nil, errBroken}, "conflicts": {errConflict, nil},
		} {
			t.Run(fmt.Sprintf("call %d, %s, %s", i, call, when), func(t *testing.T) {
				_, got := live(t, func(n int, _ string) (error, error) {
					if n == i {
						return err[0], err[1]
					}
					return nil, nil
				})
				if got != want {
					t.Errorf("outcome (-without fault +got):\n%s", cmp.Diff(want, got))
				}
			})
		}
	}
}
