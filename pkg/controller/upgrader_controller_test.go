// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// newUpgrader returns an Upgrader of these steps.
func newUpgrader(list ...string) *v1beta1.Upgrader {
	variant := &v1beta1.Upgrader{ObjectMeta: metav1.ObjectMeta{Name: "ours", Generation: 2}}
	for _, condition := range list {
		variant.Spec.Steps = append(variant.Spec.Steps, v1beta1.UpgraderStep{Step: condition})
	}
	return variant
}

// plainSteps are the steps of plain, as the catalogue of the tests has them.
var plainSteps = []string{"Healthy", "UpgradeCommenced", "Upgraded"}

// withCatalogue gives the world a catalogue of the steps of plain. A job that ends gives back by the step Returned, which tells returned of it.
func (w *world) withCatalogue(returned *int) *world {
	w.t.Helper()
	w.catalogue = &upgrader.Catalogue{}
	for _, s := range plain().steps {
		err := w.catalogue.Add(upgrader.Entry{
			Condition: s.Condition(), Summary: "A step of the tests.",
			Rules: []upgrader.Rule{upgrader.StandsBefore("Upgraded", "it is over then")},
			Finally: []steps.Step{step{"Returned", func(*steps.Upgrade) (steps.Verdict, error) {
				*returned++
				return steps.Done(""), nil
			}}},
			New: func(upgrader.Parameters) (steps.Step, error) { return s, nil },
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return w
}

func (w *world) upgraderReconciler() *UpgraderReconciler {
	return setUp(w, &UpgraderReconciler{Client: w.client, Upgraders: w.finder(), Clock: w.clock})
}

func TestUpgraderTellsWhetherItCanBeUsed(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		variant *v1beta1.Upgrader
		taken   string
		status  metav1.ConditionStatus
		why     string
		words   []string
	}{
		{"a list that breaks no rule", newUpgrader(plainSteps...), "", metav1.ConditionTrue, v1beta1.ReasonValid, []string{"Jobs can use the upgrader."}},
		{"a list that breaks a rule", newUpgrader("Upgraded", "UpgradeCommenced"), "", metav1.ConditionFalse, v1beta1.ReasonInvalidSteps,
			[]string{"UpgradeCommenced stands before Upgraded: it is over then"}},
		{"a step that there is none of", newUpgrader("Coffee"), "", metav1.ConditionFalse, v1beta1.ReasonInvalidSteps, []string{"no step Coffee; known: Healthy"}},
		{"a name that is taken", newUpgrader(plainSteps...), "ours", metav1.ConditionFalse, v1beta1.ReasonNameTaken, []string{"built in", "ours"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, tc.variant).withCatalogue(new(int)).register(variant{name: tc.taken})
			r := w.upgraderReconciler()
			w.api.fault = failing("patch Upgrader/status", 1, errBroken)
			if result := w.reconcile(r, tc.variant); result.RequeueAfter == 0 {
				t.Error("a status that could not be written is not written again")
			}
			w.reconcile(r, tc.variant)
			got := get(w, tc.variant)
			expectCondition(t, got.Status.Conditions, v1beta1.ConditionReady, tc.status, tc.why, tc.words...)
			if got.Status.ObservedGeneration != 2 || got.Status.Conditions[0].ObservedGeneration != 2 {
				t.Errorf("the status is for generation %d, want 2", got.Status.ObservedGeneration)
			}
			w.api.calls = nil
			if result := w.reconcile(r, tc.variant); result != (ctrl.Result{}) || len(w.api.writes()) > 0 {
				t.Errorf("a status that holds is written again, or looked at again: %v", result)
			}
		})
	}
}

// ended is how the job has ended, as Condition(Reason); empty if it has not.
func (w *world) ended(job *v1beta1.UpgradeJob) string {
	for _, c := range get(w, job).Status.Conditions {
		if slices.Contains([]string{v1beta1.ConditionSucceeded, v1beta1.ConditionFailed, v1beta1.ConditionSkipped}, c.Type) {
			return c.Type + "(" + c.Reason + ")"
		}
	}
	return ""
}

// A job goes by an Upgrader as it goes by what is built in.
func TestJobOfADeclaredUpgrader(t *testing.T) {
	var returned int
	job := newJob("weekly", withUpgrader("ours"))
	w := newWorld(t, newClusterVersion(), job, newUpgrader(plainSteps...)).withCatalogue(&returned).register(plain())
	w.live(w.jobs(), job)
	if got := w.ended(job); got != "Succeeded(Upgraded)" || returned != 1 {
		t.Errorf("the job ended as %s, and gave back %d times", got, returned)
	}
	for _, condition := range plainSteps {
		expectCondition(t, get(w, job).Status.Conditions, condition, metav1.ConditionTrue, v1beta1.ReasonCompleted)
	}
}

// An Upgrader that comes late, or is put right, is not too late for a job that waits for it within its window.
func TestJobWaitsForItsUpgrader(t *testing.T) {
	job := newJob("weekly", withUpgrader("ours"))
	w := newWorld(t, newClusterVersion(), job, newUpgrader("Upgraded", "Healthy")).withCatalogue(new(int)).register(plain())
	r := w.jobs()
	w.reconcile(r, job)
	got := get(w, job)
	expectCondition(t, got.Status.Conditions, v1beta1.ConditionStarted, metav1.ConditionFalse, v1beta1.ReasonUnknownUpgrader, "Upgrader ours cannot be used: Healthy stands before Upgraded")
	expectCondition(t, got.Status.Conditions, v1beta1.ConditionPreflightHealthy, metav1.ConditionUnknown, v1beta1.ReasonUnknownUpgrader, "cannot be used")
	if b := got.Status.Blockers; len(b) != 1 || b[0].Code != v1beta1.ReasonUnknownUpgrader || b[0].Message != "Upgrader ours cannot be used: Healthy stands before Upgraded: it is over then." {
		t.Errorf("the blockers are %+v", b)
	}
	w.remove(newUpgrader())
	w.add(newUpgrader(plainSteps...))
	w.live(r, job)
	if got := w.ended(job); got != "Succeeded(Upgraded)" {
		t.Errorf("the job ended as %s", got)
	}
}

// A job that has started is not lost when its Upgrader goes: it says what it waits for, and goes on when the Upgrader is there again.
func TestStartedJobWhoseUpgraderIsGone(t *testing.T) {
	var returned int
	job := newJob("weekly", withUpgrader("ours"))
	w := newWorld(t, newClusterVersion(), job, newUpgrader(plainSteps...)).withCatalogue(&returned).register(plain())
	r := w.jobs()
	w.reconcile(r, job)
	w.remove(newUpgrader())
	w.elapse(progressInterval) // what a job waits for is written that often
	w.reconcile(r, job)
	got := get(w, job)
	if b := got.Status.Blockers; len(b) != 1 || b[0].Code != v1beta1.ReasonUnknownUpgrader || got.Status.Phase != v1beta1.PhaseActive {
		t.Errorf("phase %s, blockers %+v", got.Status.Phase, b)
	}
	w.add(newUpgrader(plainSteps...))
	w.live(r, job)
	if got := w.ended(job); got != "Succeeded(Upgraded)" {
		t.Errorf("the job ended as %s", got)
	}
}

// What a job of an Upgrader that is gone may hold is given back all the same.
func TestCleanupOfAJobWhoseUpgraderIsGone(t *testing.T) {
	var returned int
	job := newJob("weekly", withUpgrader("ours"), withPhase(v1beta1.PhaseActive))
	w := newWorld(t, newClusterVersion(lockedBy("upgrades/weekly")), job).withCatalogue(&returned).register(plain())
	w.remove(job)
	r := w.jobs()
	w.api.fault = failing("get Upgrader", 1, errBroken)
	w.reconcile(r, job)
	if w.gone(job) || w.lock() == "" {
		t.Error("the job is let go although nobody knows what it holds")
	}
	w.reconcile(r, job)
	if !w.gone(job) || w.lock() != "" || returned != 1 {
		t.Errorf("the job stays, or its lock %q, or what it held: given back %d times", w.lock(), returned)
	}
}

// A list of one's own can have the failure policy of OSD.
func TestJobOfADeclaredUpgraderHasToCommenceInItsWindow(t *testing.T) {
	for inWindow, want := range map[bool]string{true: "Failed(UpgradeWindowBreached)", false: ""} {
		declared := newUpgrader(plainSteps...)
		declared.Spec.FailUnlessCommenced = inWindow
		job := newJob("weekly", withUpgrader("ours"))
		w := newWorld(t, newClusterVersion(), job, declared).withCatalogue(new(int)).register(plain())
		sick := step{"Sick", func(*steps.Upgrade) (steps.Verdict, error) { return steps.Wait(0, "Sick", "It is sick."), nil }}
		if err := w.catalogue.Add(upgrader.Entry{Condition: "Sick", Summary: "Waits.", New: func(upgrader.Parameters) (steps.Step, error) { return sick, nil }}); err != nil {
			t.Fatal(err)
		}
		change(w, declared, func(u *v1beta1.Upgrader) {
			u.Spec.Steps = slices.Insert(u.Spec.Steps, 0, v1beta1.UpgraderStep{Step: "Sick"})
		})
		r := w.jobs()
		w.reconcile(r, job)
		w.elapse(v1beta1.DefaultUpgradeWindow)
		w.reconcile(r, job)
		if got := w.ended(job); got != want {
			t.Errorf("in a window %t: the job ended as %q, want %q", inWindow, got, want)
		}
	}
}

// An API server that cannot tell says nothing about an upgrader: nothing is recorded, and it is asked again.
func TestUpgradersThatCannotBeRead(t *testing.T) {
	job, config := newJob("weekly", withUpgrader("ours")), newConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.JobTemplate.Spec.Config.Upgrader = "ours" })
	hook := newHook("hook", withEvents("StepStarted/Healthy"))
	w := newWorld(t, newClusterVersion(), job, config, hook, newUpgrader(plainSteps...)).withCatalogue(new(int))
	w.api.fault = func(_ int, call string) (error, error) {
		if call == "get Upgrader" || call == "list UpgraderList" {
			return errBroken, nil
		}
		return nil, nil
	}
	for name, result := range map[string]ctrl.Result{
		"job": w.reconcile(w.jobs(), job), "config": w.reconcile(w.configs(), config), "hook": w.reconcile(w.hookReconciler(), hook),
	} {
		if result.RequeueAfter == 0 || result.RequeueAfter > time.Second {
			t.Errorf("%s: looks again after %s", name, result.RequeueAfter)
		}
	}
	if c := get(w, job).Status.Conditions; len(c) > 0 {
		t.Errorf("the job tells %s", describe(c))
	}
	if c := get(w, config).Status.Conditions; len(c) > 0 {
		t.Errorf("the config tells %s", describe(c))
	}
	if c := get(w, hook).Status.Conditions; len(c) > 0 {
		t.Errorf("the hook tells %s", describe(c))
	}
}

// Configs and hooks know Upgraders too, and learn that one comes or goes.
func TestConfigsAndHooksOfADeclaredUpgrader(t *testing.T) {
	config := newConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.JobTemplate.Spec.Config.Upgrader = "ours" })
	hook := newHook("hook", withEvents("StepStarted/Healthy"))
	w := newWorld(t, newClusterVersion(), config, hook).withCatalogue(new(int))
	configs, hooks := w.configs(), w.hookReconciler()
	look := func(status metav1.ConditionStatus, ofConfig, ofHook string) {
		t.Helper()
		w.reconcile(configs, config)
		w.reconcile(hooks, hook)
		expectCondition(t, get(w, config).Status.Conditions, v1beta1.ConditionReady, status, ofConfig)
		expectCondition(t, get(w, hook).Status.Conditions, v1beta1.ConditionReady, status, ofHook)
	}
	look(metav1.ConditionFalse, v1beta1.ReasonUnknownUpgrader, v1beta1.ReasonUnknownStep)
	w.add(newUpgrader(plainSteps...))
	look(metav1.ConditionTrue, v1beta1.ReasonValid, v1beta1.ReasonValid)
	w.remove(newUpgrader())
	look(metav1.ConditionFalse, v1beta1.ReasonUnknownUpgrader, v1beta1.ReasonUnknownStep)
}

// An Upgrader that comes or goes wakes those that go by it, and no others.
func TestAnUpgraderWakesThoseThatGoByIt(t *testing.T) {
	ours := func(c *v1beta1.UpgradeConfig) { c.Name, c.Spec.JobTemplate.Spec.Config.Upgrader = "other", "ours" }
	w := newWorld(t,
		newJob("pending", withUpgrader("ours")), newJob("active", withUpgrader("ours"), withPhase(v1beta1.PhaseActive)),
		newJob("over", withUpgrader("ours"), withPhase(v1beta1.PhaseFailed)), newJob("usual"), newJob("named", withUpgrader(v1beta1.DefaultUpgrader)),
		newConfig(), newConfig(ours), newHook("one"), newHook("two"),
	)
	names := func(requests []ctrl.Request) []string {
		var all []string
		for _, r := range requests {
			all = append(all, r.Name)
		}
		slices.Sort(all)
		return all
	}
	if got := names(w.jobs().jobsOf(t.Context(), newUpgrader())); !slices.Equal(got, []string{"active", "pending"}) {
		t.Errorf("jobs %v", got)
	}
	if got := names(w.configs().configsOf(t.Context(), newUpgrader())); !slices.Equal(got, []string{"other"}) {
		t.Errorf("configs %v", got)
	}
	if got := names(w.hookReconciler().everyHook(t.Context(), newUpgrader())); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("hooks %v", got)
	}
}
