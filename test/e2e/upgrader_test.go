// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/environment"
)

// anUpgrader is a variant of these steps.
func anUpgrader(name string, list ...string) *v1beta1.Upgrader {
	upgrader := &v1beta1.Upgrader{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, step := range list {
		upgrader.Spec.Steps = append(upgrader.Spec.Steps, v1beta1.UpgraderStep{Step: step})
	}
	return upgrader
}

// quietly is an order of steps that none of the built-in upgraders has.
var quietly = []string{
	startedSent, steps.ConditionStartHooksCompleted, healthyBefore, steps.ConditionUpdateAvailable, controlPlaneQuiet, commenced, controlPlaneIsDone,
	controlPlaneLoud, workersQuiet, workersUpgraded, workersLoud, healthyAfter, completedSent,
}

// waitUpgrader waits until an Upgrader says of its present spec whether it can be used, and why.
func (c *cluster) waitUpgrader(upgrader *v1beta1.Upgrader, status metav1.ConditionStatus, reason string, words ...string) {
	c.t.Helper()
	c.eventually("Upgrader "+upgrader.Name, func() error {
		if err := env.Client.Get(c.ctx, client.ObjectKeyFromObject(upgrader), upgrader); err != nil {
			return err
		}
		if upgrader.Status.ObservedGeneration != upgrader.Generation {
			return errors.New("its status is not of its present spec")
		}
		return conditionIs(upgrader.Status.Conditions, v1beta1.ConditionReady, status, reason, words...)
	})
}

// A variant that is declared, of steps that the operator has, runs a job to the end. A job waits for its upgrader.
func TestDeclaredUpgraderUpgradesTheCluster(t *testing.T) {
	c := newCluster(t, withLateWorkers)
	running := c.startOperator()
	job := create(c, aJob(upgradedBy("quietly"), silencing()))
	c.wait(job, notStarted(v1beta1.ReasonUnknownUpgrader), saying(v1beta1.ConditionStarted, "quietly"))
	upgrader := create(c, anUpgrader("quietly", quietly...))
	c.waitUpgrader(upgrader, metav1.ConditionTrue, v1beta1.ReasonValid)
	c.wait(job, done(controlPlaneQuiet))
	running.Kill()
	c.startOperator()
	c.wait(job, succeeded(), withoutFinalizers())
	c.wentThrough(job, quietly)
	c.silencedInItsWindows(job)
	c.nothingLeft(job)
	c.upgradedOnce(job)
	c.everyNodeRuns(offered)
}

// A variant whose steps stand in an order that cannot work is refused, with the rule that it breaks.
func TestDeclaredUpgraderThatBreaksARuleIsRefused(t *testing.T) {
	c := newCluster(t)
	c.startOperator()
	for _, tt := range []struct {
		name  string
		steps []string
		words []string
	}{
		{"late-health", []string{commenced, healthyBefore, controlPlaneIsDone}, []string{healthyBefore, commenced}},
		{"no-upgrade", []string{healthyBefore}, []string{commenced}},
		{"workers-first", []string{healthyBefore, commenced, workersUpgraded, controlPlaneIsDone}, []string{workersUpgraded, controlPlaneIsDone}},
		{"promises-first", []string{completedSent, healthyBefore, commenced, controlPlaneIsDone}, []string{completedSent}},
		{"never-loud", []string{workersLoud, commenced, controlPlaneIsDone, workersQuiet}, []string{workersLoud, workersQuiet}},
		{"capacity-kept", []string{capacityReserved, commenced, controlPlaneIsDone}, []string{capacityReserved, capacityRemoved}},
	} {
		expectRefusal(t, env.Client.Create(c.ctx, anUpgrader(tt.name, tt.steps...)), tt.words...)
	}
	// What only the operator can judge it judges at once.
	unknown := create(c, anUpgrader("unknown-step", healthyBefore, "MoonIsFull", commenced, controlPlaneIsDone, workersUpgraded))
	c.waitUpgrader(unknown, metav1.ConditionFalse, v1beta1.ReasonInvalidSteps, "MoonIsFull")
	taken := create(c, anUpgrader("osd", quietly...))
	c.waitUpgrader(taken, metav1.ConditionFalse, v1beta1.ReasonNameTaken, "OSD")
	odd := anUpgrader("odd-parameter", quietly...)
	odd.Spec.Steps[2].Parameters = map[string]string{"checks": "Nodes,Horoscope"}
	c.waitUpgrader(create(c, odd), metav1.ConditionFalse, v1beta1.ReasonInvalidSteps, "Horoscope")
	job := create(c, aJob(upgradedBy("unknown-step")))
	c.wait(job, notStarted(v1beta1.ReasonUnknownUpgrader), saying(v1beta1.ConditionStarted, "MoonIsFull"))
}

// changeApproved is the step of the manager in test/custom-upgrader.
const changeApproved = "ChangeApproved"

// A manager of one's own, which is built from a module of its own, has a step and an upgrader more. Upgraders that are declared can use the step
// too, but only with this manager.
func TestManagerOfOnesOwnUpgradesTheCluster(t *testing.T) {
	c := newClusterFor(t, 2*patience, offering(offered, "4.18.3"))
	custom, err := environment.BuildCustomOperator(c.ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c.kubectlAnywhere("apply", "--validate=strict", "-f", filepath.Join(environment.Root(), "test", "custom-upgrader", "upgrader.yaml"))
	declared := anUpgrader("approved-by-board")
	ours := c.startOperator()
	c.waitUpgrader(declared, metav1.ConditionFalse, v1beta1.ReasonInvalidSteps, changeApproved)
	ours.Kill()
	theirs, err := env.StartOperator(c.ctx, environment.OperatorOptions{Binary: custom, Args: []string{"--leader-elect=false"}})
	if err != nil {
		t.Fatal(err)
	}
	c.operators = append(c.operators, theirs)
	c.waitUpgrader(declared, metav1.ConditionTrue, v1beta1.ReasonValid)

	coded := create(c, aJob(named("coded"), upgradedBy("Approved")))
	c.wait(coded, waitingIn(changeApproved, "ChangeNotApproved"), blockers(1), blockedBy("ChangeNotApproved", "UpgradeJob/coded"))
	if writes := c.desiredUpdateWrites(); len(writes) > 0 {
		t.Fatal("the cluster is upgraded without an approval")
	}
	approve := func(job *v1beta1.UpgradeJob, annotation string) {
		edit(c, job, func(job *v1beta1.UpgradeJob) { job.Annotations = map[string]string{annotation: "CHG-1"} })
	}
	approve(coded, "example.com/approved-change")
	c.wait(coded, succeeded(), withoutFinalizers(), done(changeApproved), saying(changeApproved, "CHG-1"))
	c.offers("4.18.3")
	listed := aJob(named("listed"), upgradedBy(declared.Name), to("4.18.3"))
	listed.Annotations = map[string]string{"example.com/approved-by-board": "CHG-2"}
	c.wait(create(c, listed), succeeded(), withoutFinalizers(), done(changeApproved), saying(changeApproved, "CHG-2"))
	var names []string
	for _, step := range declared.Spec.Steps {
		names = append(names, step.Step)
	}
	c.wentThrough(listed, names)
	c.everyNodeRuns("4.18.3")
}
