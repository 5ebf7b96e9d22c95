// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
	"github.com/appuio/managed-upgrade-operator/test/receiver"
)

// The conditions of the steps of the upgraders OSD and ARO that tests look at, as the Managed Upgrade Operator calls them.
const (
	startedSent        = "StartedNotificationSent"
	notDelayed         = "UpgradeNotDelayed"
	upgradable         = "IsClusterUpgradable"
	dependenciesThere  = "ExternalDependenciesAvailable"
	capacityReserved   = "ComputeCapacityReserved"
	controlPlaneQuiet  = "ControlPlaneMaintenanceWindowCreated"
	controlPlaneLoud   = "ControlPlaneMaintenanceWindowRemoved"
	workersQuiet       = "WorkersMaintenanceWindowCreated"
	workersUpgraded    = "WorkerNodesUpgraded"
	capacityRemoved    = "ComputeCapacityRemoved"
	workersLoud        = "WorkersMaintenanceWindowRemoved"
	postUpgradeTasks   = "PostUpgradeTasksCompleted"
	completedSent      = "CompletedNotificationSent"
	healthyBefore      = steps.ConditionClusterHealthyBeforeUpgrade
	commenced          = steps.ConditionUpgradeCommenced
	controlPlaneIsDone = steps.ConditionControlPlaneUpgraded
	healthyAfter       = steps.ConditionClusterHealthyAfterUpgrade
)

// stepsOfOSD are the steps of the upgrader OSD in their order.
var stepsOfOSD = []string{
	startedSent, notDelayed, upgradable, healthyBefore, dependenciesThere, capacityReserved, controlPlaneQuiet, commenced, controlPlaneIsDone,
	controlPlaneLoud, workersQuiet, workersUpgraded, capacityRemoved, workersLoud, healthyAfter, postUpgradeTasks, completedSent,
}

// stepsOfARO are those of the upgrader ARO.
var stepsOfARO = []string{
	startedSent, healthyBefore, dependenciesThere, capacityReserved, controlPlaneQuiet, commenced, controlPlaneIsDone,
	controlPlaneLoud, workersQuiet, workersUpgraded, capacityRemoved, workersLoud, healthyAfter, completedSent,
}

// withLateWorkers has the workers begin when the control plane is through, as they do where there are many more of them.
func withLateWorkers(s *sim.Scenario) { s.Workers.RenderDelay = sim.Duration(500 * time.Millisecond) }

// upgradedBy has a job go by the steps of an upgrader.
func upgradedBy(upgrader string) func(*v1beta1.UpgradeJob) {
	return configured(func(config *v1beta1.UpgradeJobConfig) { config.Upgrader = upgrader })
}

// commencingWithin gives an upgrade so long to commence, and says when it is late. Zero for no limit.
func commencingWithin(timeOut, delayTrigger time.Duration) func(*v1beta1.UpgradeJob) {
	return configured(func(config *v1beta1.UpgradeJobConfig) {
		config.UpgradeWindow = &v1beta1.UpgradeWindow{TimeOut: duration(timeOut), DelayTrigger: duration(delayTrigger)}
	})
}

// depending has a job wait for URLs.
func depending(urls ...string) func(*v1beta1.UpgradeJob) {
	return configured(func(config *v1beta1.UpgradeJobConfig) {
		config.ExternalDependencies = &v1beta1.ExternalDependencies{HTTP: &v1beta1.HTTPDependencies{URLs: urls, Timeout: duration(2 * time.Second)}}
	})
}

// reinitializing has a job tell the file integrity operator.
func reinitializing(job *v1beta1.UpgradeJob) {
	job.Spec.Config.PostUpgradeTasks = &v1beta1.PostUpgradeTasks{ReinitializeFileIntegrity: true}
}

// ofStages are the notifications of the stages of an upgrade.
const ofStages = v1beta1.NotificationFilter("upgrade.*")

// wentThrough expects that all steps of a job, and no others, stand in its conditions and in its steps in that order, are True, and were
// done one after the other. What is looked at until the upgrade commences may have been undone meanwhile, and done again.
func (c *cluster) wentThrough(job *v1beta1.UpgradeJob, want []string) {
	c.t.Helper()
	var conditions, recorded []string
	for _, condition := range job.Status.Conditions {
		if slices.Contains([]string{v1beta1.ConditionCreateHooksCompleted, v1beta1.ConditionStarted, v1beta1.ConditionPreflightHealthy, v1beta1.ConditionSucceeded}, condition.Type) {
			continue
		}
		if conditions = append(conditions, condition.Type); condition.Status != metav1.ConditionTrue || condition.Reason != v1beta1.ReasonCompleted {
			c.t.Errorf("condition %s is %s (%s: %s)", condition.Type, condition.Status, condition.Reason, condition.Message)
		}
	}
	var last metav1.Time
	for _, step := range job.Status.Steps {
		recorded = append(recorded, step.Condition)
		preflight := slices.Index(recorded, commenced) < 0
		if step.CompletionTime == nil || !preflight && step.CompletionTime.Before(&last) || step.CompletionTime.Before(&step.StartTime) {
			c.t.Errorf("step %s was started at %s and done at %v, the one before at %s", step.Condition, step.StartTime, step.CompletionTime, last)
			continue
		}
		if last.Before(step.CompletionTime) {
			last = *step.CompletionTime
		}
	}
	for what, got := range map[string][]string{"conditions": conditions, "steps": recorded} {
		if !slices.Equal(got, want) {
			c.t.Errorf("the %s are\n%s, want\n%s", what, strings.Join(got, " "), strings.Join(want, " "))
		}
	}
	var before order
	for _, step := range want {
		at := c.orderWhen(job, turned(step, metav1.ConditionTrue, v1beta1.ReasonCompleted))
		if at < before {
			c.t.Errorf("step %s was done before the one that stands before it", step)
		}
		before = at
	}
}

// stagesTold expects that a receiver was told of these stages of a job, of each once, in that order, and that the job says so too.
func (c *cluster) stagesTold(job *v1beta1.UpgradeJob, r *receiver.Receiver, want ...v1beta1.UpgradeStage) {
	c.t.Helper()
	stages := func(events []receiver.Received) []string {
		var got []string
		once, err := distinct(events)
		if err != nil {
			c.t.Error(err)
		}
		for _, e := range once {
			if n := newsIn(e); n.Job.UID == string(job.UID) && strings.HasPrefix(string(typeOf(e)), "upgrade.") {
				got = append(got, string(typeOf(e)))
			}
		}
		return got
	}
	var types, recorded []string
	for _, stage := range want {
		types = append(types, string(stage.Notification()))
	}
	for _, stage := range job.Status.Stages {
		recorded = append(recorded, string(stage.Stage.Notification()))
	}
	if !slices.Equal(recorded, types) {
		c.t.Errorf("the job says that it told of %v, want %v", recorded, types)
	}
	events := c.awaits(r, func(events []receiver.Received) error {
		if got := stages(events); len(got) < len(types) {
			return fmt.Errorf("UpgradeJob %s: told of %v, want %v", job.Name, got, types)
		}
		return nil
	})
	if got := stages(events); !slices.Equal(got, types) {
		c.t.Errorf("the receiver was told of %v, want %v", got, types)
	}
}

// nothingLeft expects that nothing is there any more of what a job made for the time of the upgrade, now that the job holds nothing: no silence,
// no NodeForceDrain, no MachineSet, and after a moment no Machine. It is so whatever the outcome.
func (c *cluster) nothingLeft(job *v1beta1.UpgradeJob) {
	c.t.Helper()
	if err := errors.Join(c.silenced(job), c.noForceDrainOf(job)); err != nil {
		c.t.Errorf("UpgradeJob %s has left something: %v", job.Name, err)
	}
	c.extraMachinesExist(0, 0)
}

// noForceDrainOf expects that the job keeps no NodeForceDrain.
func (c *cluster) noForceDrainOf(job *v1beta1.UpgradeJob) error {
	list := &v1beta1.NodeForceDrainList{}
	if err := env.Client.List(c.ctx, list); err != nil {
		return err
	}
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], job) {
			return errors.New("its NodeForceDrain is still there")
		}
	}
	return nil
}
