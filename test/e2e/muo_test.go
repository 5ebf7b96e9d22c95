// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// What is shipped as an example of the Managed Upgrade Operator's object drives an upgrade, with a release that this cluster is offered in
// another channel. Its history is what the users of that operator know.
func TestManagedSampleUpgradesTheCluster(t *testing.T) {
	const channel = "fast-4.18"
	c := newCluster(t, withMachines, withLateWorkers, func(s *sim.Scenario) {
		s.Channels = []string{s.Channel, channel}
		s.Updates[0].Channels = []string{channel}
		s.Graph.Retrieval = sim.Duration(300 * time.Millisecond)
	})
	before := c.nodeNames()
	c.startOperator()
	sample, err := os.ReadFile(filepath.Join(environment.Root(), "deploy", "samples", "muo-upgradeconfig.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "upgradeconfig.yaml")
	c.write(file, []byte(strings.NewReplacer("fast-4.4", channel, "4.4.6", offered).Replace(string(sample))))
	if out := c.kubectlAnywhere("apply", "--validate=strict", "-f", file); strings.Contains(out, "Warning") {
		t.Errorf("kubectl warns: %s", out)
	}
	config := aManaged()
	entry := c.waitManaged(config, inManagedPhase(v1alpha1.UpgradePhaseUpgraded, offered))
	job := c.wait(c.managedJob(config), succeeded(), withoutFinalizers())
	c.wentThrough(job, stepsOfOSD)
	c.reserved(job, before, "worker")
	c.silencedInItsWindows(job)
	c.nothingLeft(job)
	c.expectManagedHistory(entry, job)
	c.channelBeforeUpdate(channel)
	if out := c.kubectl("get", "upgrade", config.Name); !strings.Contains(out, offered) || !strings.Contains(out, "Upgraded") || !strings.Contains(out, completedSent) {
		t.Errorf("kubectl shows\n%s", out)
	}

	// It is not carried out again, neither by another operator nor when its job is gone.
	c.remove(job)
	c.gone(job)
	c.operators[0].Kill()
	c.startOperator()
	edit(c, config, func(config *v1alpha1.UpgradeConfig) { config.Annotations = map[string]string{"looked": "at"} })
	c.until(time.Now().Add(2 * time.Second))
	if jobs := c.managedJobs(config); len(jobs) > 0 {
		t.Errorf("there is another job: %s", jobs[0].Name)
	}
	c.waitManaged(config, inManagedPhase(v1alpha1.UpgradePhaseUpgraded, offered))
}

// expectManagedHistory judges the history of an upgrade that succeeded.
func (c *cluster) expectManagedHistory(entry v1alpha1.UpgradeHistory, job *v1beta1.UpgradeJob) {
	c.t.Helper()
	if entry.PrecedingVersion != installed {
		c.t.Errorf("the version before was %q", entry.PrecedingVersion)
	}
	moments := []*metav1.Time{entry.StartTime, entry.WorkerStartTime, entry.WorkerCompleteTime, entry.CompleteTime}
	for i, at := range moments {
		if at == nil || i > 0 && moments[i-1] != nil && at.Before(moments[i-1]) {
			c.t.Errorf("start, start and end of the workers, and end are %v", moments)
			break
		}
	}
	var got []string
	for _, condition := range entry.Conditions {
		if !slices.Contains(stepsOfOSD, condition.Type) {
			continue
		}
		got = append(got, condition.Type)
		step := stepOf(c.t, job, condition.Type)
		if condition.Status != metav1.ConditionTrue || condition.Message == "" || condition.LastProbeTime.IsZero() || condition.LastTransitionTime.IsZero() ||
			!condition.StartTime.Equal(&step.StartTime) || !condition.CompleteTime.Equal(step.CompletionTime) {
			c.t.Errorf("condition %+v does not fit step %+v", condition, step)
		}
	}
	want := slices.Clone(stepsOfOSD)
	slices.Reverse(want)
	if !slices.Equal(got, want) || entry.Conditions[0].Type != completedSent {
		c.t.Errorf("the conditions are\n%v, want\n%v", got, want)
	}
}

// channelBeforeUpdate expects that the cluster was set to a channel before it was asked for the release.
func (c *cluster) channelBeforeUpdate(channel string) {
	c.t.Helper()
	var set order
	for _, r := range past.versionsSince(c.began) {
		if set == 0 && r.object.Spec.Channel == channel {
			set = orderOf(r.object)
		}
	}
	if asked := orderOf(c.desiredUpdateWrites()[0].object); set == 0 || set >= asked {
		c.t.Errorf("channel %s was set at %d, the cluster was asked for the release at %d", channel, set, asked)
	}
}

// What cannot be carried out makes no job, and the object says why. When it is mended it is carried out.
func TestManagedConfigThatCannotBeCarriedOutSaysWhy(t *testing.T) {
	c := newCluster(t, func(s *sim.Scenario) {
		s.Updates = append(s.Updates, sim.OfferedUpdate{Version: "4.18.3", Risks: []sim.Risk{{Name: "DataLoss", Message: "Data may be lost.", Applies: sim.AppliesYes}}})
	})
	before := c.version()
	c.startOperator()
	later := soon(time.Hour)
	broken := c.tunables("maintenance: {controlPlaneTime: ninety}\n")
	config := create(c, aManaged(upgradingAt(later)))
	c.waitManaged(config, notValid("managed-upgrade-operator-config", "controlPlaneTime"))
	edit(c, broken, func(object *corev1.ConfigMap) {
		object.Data["config.yaml"] = "nodeDrain: {ignoredNamespacePatterns: ['(']}\n"
	})
	c.waitManaged(config, notValid("ignoredNamespacePatterns"))
	c.remove(broken)
	for _, tt := range []struct {
		change func(*v1alpha1.UpgradeConfig)
		words  []string
	}{
		{wanting("4.17.9", theChannel), []string{"4.17.9", installed}},
		{wanting("4.18.9", theChannel), []string{"4.18.9", "offer"}},
		{wanting("4.18.2", "nightly-4.18"), []string{"nightly-4.18"}},
		{wanting("latest", theChannel), []string{"latest"}},
		{wanting(offered, ""), []string{"channel"}},
		{func(config *v1alpha1.UpgradeConfig) { config.Spec.UpgradeAt = "tomorrow" }, []string{"upgradeAt", "tomorrow"}},
		{wanting("4.18.3", theChannel), []string{"DataLoss", v1alpha1.AcceptRisksAnnotation}},
	} {
		edit(c, config, func(config *v1alpha1.UpgradeConfig) {
			config.Spec = aManaged(upgradingAt(later)).Spec
			tt.change(config)
		})
		c.waitManaged(config, notValid(tt.words...))
		if jobs := c.managedJobs(config); len(jobs) > 0 {
			t.Errorf("%v: there is the job %s", tt.words, jobs[0].Name)
		}
	}
	c.told(config, corev1.EventTypeWarning, "", "DataLoss")
	edit(c, config, func(config *v1alpha1.UpgradeConfig) {
		config.Annotations = map[string]string{v1alpha1.AcceptRisksAnnotation: "DataLoss"}
	})
	job := c.managedJob(config)
	c.untouched(before)
	if d := job.Spec.DesiredVersion; d == nil || d.Version != "4.18.3" || !job.Spec.StartAfter.Time.Equal(later) {
		t.Errorf("the job is to %+v at %s", d, job.Spec.StartAfter)
	}
	edit(c, config, upgradingAt(time.Now()))
	c.waitManaged(config, inManagedPhase(v1alpha1.UpgradePhaseUpgraded, "4.18.3"))
	c.waitVersion("the update", desires("4.18.3"))
}

// An object that is changed before the start has another job instead; while the upgrade runs the change waits for its end. One that is
// deleted takes its job along.
func TestManagedConfigIsChangedAndDeleted(t *testing.T) {
	c := newCluster(t, withMachines, offering(offered, "4.18.3"))
	c.startOperator()
	c.tunables("maintenance: {controlPlaneTime: 77}\nscale: {timeOut: 9}\nupgradeWindow: {timeOut: 33}\n")
	config := create(c, aManaged(upgradingAt(soon(time.Hour))))
	first := c.wait(c.managedJob(config), notStarted(v1beta1.ReasonWaitingForStart))
	if got := first.Spec.Config; got.Upgrader != "OSD" || got.Maintenance.ControlPlaneTime.Duration != 77*time.Minute ||
		got.CapacityReservation.TimeOut.Duration != 9*time.Minute || got.UpgradeWindow.TimeOut.Duration != 33*time.Minute ||
		got.PDBForceDrainTimeout.Duration != time.Hour || got.UpgradeWindow.DelayTrigger.Duration != 30*time.Minute {
		t.Errorf("the config of the job is %s", text(got))
	}
	c.waitManaged(config, inManagedPhase(v1alpha1.UpgradePhasePending, offered))
	c.remove(config)
	c.gone(config)
	c.gone(first)

	config = create(c, aManaged(upgradingAt(soon(time.Hour))))
	second := c.managedJob(config)
	c.change(stuck("network"))
	edit(c, config, func(config *v1alpha1.UpgradeConfig) {
		config.Spec.CapacityReservation = true
		upgradingAt(soon(0))(config)
	})
	c.gone(second)
	third := c.wait(c.managedJob(config), done(commenced))
	c.extraMachinesExist(1, 1)
	c.awaitSilences(third, ofControlPlane)
	c.waitManaged(config, inManagedPhase(v1alpha1.UpgradePhaseUpgrading, offered), managedCondition(controlPlaneIsDone, metav1.ConditionFalse))

	edit(c, config, wanting("4.18.3", theChannel))
	c.eventually("the change is told of", func() error {
		c.get(config)
		if n := len(config.Status.History); n != 2 {
			return fmt.Errorf("the history has %d entries", n)
		}
		return errors.Join(inManagedPhase(v1alpha1.UpgradePhasePending, "4.18.3")(config.Status.History[0]), inManagedPhase(v1alpha1.UpgradePhaseUpgrading, offered)(config.Status.History[1]))
	})
	if err := check(c.managedJob(config), done(commenced)); err != nil {
		t.Error(err)
	}
	c.remove(config)
	c.gone(config)
	c.gone(third)
	c.nothingLeft(third)
	c.waitVersion("the lock", unlocked)
	c.waitVersion("the update goes on", desires(offered))
	c.change(mended)
	c.completed(offered)
}

// With the validation of the update service, the object may want a release of a channel that the cluster is not in.
func TestManagedConfigIsValidatedByTheUpdateService(t *testing.T) {
	const channel = "fast-4.18"
	service, err := sim.StartUpdateService(t.Context(), env.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = service.Close() })
	c := newCluster(t, func(s *sim.Scenario) {
		s.Channels = []string{s.Channel, channel}
		s.Updates[0].Channels = []string{channel}
		s.Upstream = service.URL()
	})
	before := c.version()
	c.startOperator()
	c.tunables("validation: {cincinnati: true}\n")
	config := create(c, aManaged(wanting("4.18.7", channel), upgradingAt(soon(time.Hour))))
	c.waitManaged(config, notValid("4.18.7", channel))
	edit(c, config, wanting(offered, "nightly-4.18"))
	c.waitManaged(config, notValid("nightly-4.18"))
	if jobs := c.managedJobs(config); len(jobs) > 0 {
		t.Errorf("there is the job %s", jobs[0].Name)
	}
	edit(c, config, wanting(offered, channel))
	c.managedJob(config)
	c.untouched(before)
	asked := service.Requests()
	for _, r := range asked {
		if r.Version != installed || r.Arch == "" || r.Accept == "" || r.Status != 200 {
			t.Errorf("the update service was asked %+v", r)
		}
	}
	if len(asked) == 0 || len(asked) > 4 {
		t.Errorf("the update service was asked %d times", len(asked))
	}
	edit(c, config, upgradingAt(time.Now()))
	c.waitManaged(config, inManagedPhase(v1alpha1.UpgradePhaseUpgraded, offered))
	c.channelBeforeUpdate(channel)
	c.waitVersion("the release", history(offered, configv1.CompletedUpdate))
}
