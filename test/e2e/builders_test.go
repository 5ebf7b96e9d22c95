// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// soon is the first whole second after a while: the API knows no fractions of seconds.
func soon(after time.Duration) time.Time {
	return time.Now().Add(after).Truncate(time.Second).Add(time.Second)
}

// aJob is a job to the offered release that may start at once and for an hour.
func aJob(changes ...func(*v1beta1.UpgradeJob)) *v1beta1.UpgradeJob {
	now := time.Now().Truncate(time.Second)
	job := &v1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: "upgrade"},
		Spec: v1beta1.UpgradeJobSpec{
			StartAfter:     metav1.NewTime(now),
			StartBefore:    metav1.NewTime(now.Add(time.Hour)),
			DesiredVersion: &v1beta1.DesiredVersion{Version: offered, Image: sim.Image(offered)},
		},
	}
	for _, change := range changes {
		change(job)
	}
	return job
}

func named(name string) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) { job.Name = name }
}

func startingAt(start time.Time) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) { job.Spec.StartAfter = metav1.NewTime(start) }
}

func startingBefore(end time.Time) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) { job.Spec.StartBefore = metav1.NewTime(end) }
}

func to(version string) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) {
		job.Spec.DesiredVersion = &v1beta1.DesiredVersion{Version: version, Image: sim.Image(version)}
	}
}

// configured changes the configuration of a job.
func configured(change func(*v1beta1.UpgradeJobConfig)) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) { change(&job.Spec.Config) }
}

func duration(d time.Duration) *v1beta1.Duration { return &v1beta1.Duration{Duration: d} }

// farAway is a schedule whose starts are a month apart. With a pinVersionWindow, its job can be had at any moment.
const farAway = "0 0 1 * *"

// nextFarAway is the next start of farAway.
func nextFarAway() time.Time {
	now := time.Now().UTC()
	return time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
}

// aConfig is a config whose next start is far away.
func aConfig(changes ...func(*v1beta1.UpgradeConfig)) *v1beta1.UpgradeConfig {
	config := &v1beta1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: "cluster-upgrade"},
		Spec:       v1beta1.UpgradeConfigSpec{Schedule: v1beta1.UpgradeConfigSchedule{Cron: farAway, Location: "UTC"}},
	}
	for _, change := range changes {
		change(config)
	}
	return config
}

// creatingAJobAt makes the config create the job of its far away start at that moment.
func creatingAJobAt(moment time.Time) func(*v1beta1.UpgradeConfig) {
	return func(config *v1beta1.UpgradeConfig) {
		config.Spec.PinVersionWindow = duration(nextFarAway().Sub(moment))
	}
}

// creatingAJobNow makes the config create the job of its far away start as soon as it is seen.
func creatingAJobNow() func(*v1beta1.UpgradeConfig) {
	return creatingAJobAt(time.Now().Add(-time.Second))
}

// startNow moves the start of a pending job to this moment.
func (c *cluster) startNow(job *v1beta1.UpgradeJob) {
	c.t.Helper()
	edit(c, job, startingAt(time.Now().Truncate(time.Second)))
}

// aFreeze is a suspension window around this moment that selects nothing yet.
func aFreeze(changes ...func(*v1beta1.UpgradeSuspensionWindow)) *v1beta1.UpgradeSuspensionWindow {
	window := &v1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: "freeze"},
		Spec: v1beta1.UpgradeSuspensionWindowSpec{
			Start:  metav1.NewTime(time.Now().Add(-time.Hour)),
			End:    metav1.NewTime(time.Now().Add(time.Hour)),
			Reason: "year-end change freeze",
		},
	}
	for _, change := range changes {
		change(window)
	}
	return window
}

func ofAllConfigs(window *v1beta1.UpgradeSuspensionWindow) {
	window.Spec.ConfigSelector = &metav1.LabelSelector{}
}

func ofAllJobs(window *v1beta1.UpgradeSuspensionWindow) {
	window.Spec.JobSelector = &metav1.LabelSelector{}
}

// degraded makes a ClusterOperator degraded.
func degraded(operator string) func(*sim.Scenario) {
	return faulty(sim.OperatorFault{Name: operator, Degraded: true})
}

// stuck makes a ClusterOperator update for ever.
func stuck(operator string) func(*sim.Scenario) {
	return faulty(sim.OperatorFault{Name: operator, NeverReports: true})
}

func faulty(fault sim.OperatorFault) func(*sim.Scenario) {
	return func(s *sim.Scenario) { s.Operators = append(s.Operators, fault) }
}

// mended makes all ClusterOperators well.
func mended(s *sim.Scenario) { s.Operators = nil }

// offering makes the cluster offer these updates.
func offering(versions ...string) func(*sim.Scenario) {
	return func(s *sim.Scenario) {
		s.Updates = nil
		for _, version := range versions {
			s.Updates = append(s.Updates, sim.OfferedUpdate{Version: version})
		}
	}
}

// desires expects that the cluster is asked for a release, "" for none.
func desires(version string) func(*configv1.ClusterVersion) error {
	return func(cv *configv1.ClusterVersion) error {
		got := ""
		if u := cv.Spec.DesiredUpdate; u != nil {
			got = u.Version
		}
		if got != version {
			return fmt.Errorf("the desired update is %q, want %q", got, version)
		}
		return nil
	}
}

// unlocked expects that no job holds the cluster.
func unlocked(cv *configv1.ClusterVersion) error {
	if holder, locked := cv.Annotations[v1beta1.UpgradeJobAnnotation]; locked {
		return fmt.Errorf("the cluster is locked by %q", holder)
	}
	return nil
}

// history expects the newest history entry: its version, and its state where one is given.
func history(version string, state configv1.UpdateState) func(*configv1.ClusterVersion) error {
	return func(cv *configv1.ClusterVersion) error {
		newest := cv.Status.History[0]
		if newest.Version != version || (state != "" && newest.State != state) {
			return fmt.Errorf("the newest history entry is %s %s, want %s %s", newest.Version, newest.State, version, state)
		}
		return nil
	}
}
