// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	o "github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// The window of the scenes: a Tuesday night in a zone one hour ahead of UTC.
var (
	zone   = time.FixedZone("CET", 3600)
	window = time.Date(2026, time.November, 24, 22, 0, 0, 0, zone)
)

// scene is a cluster at a moment.
type scene struct {
	name    string
	now     time.Time
	objects []client.Object
}

// at is the time that long after the window opens.
func at(after time.Duration) metav1.Time { return metav1.NewTime(window.Add(after)) }

// world returns a fake API with these objects.
func world(objects ...client.Object) *fake.ClientBuilder {
	// Of nodes that are listed as metadata the index does not see the spec. The machine-config operator cordons those that it works on.
	cordoned := func(object client.Object) []string {
		_, inWork := openshift.NodeInWork(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: object.GetAnnotations()}})
		return []string{fmt.Sprint(inWork)}
	}
	nodeOf := func(object client.Object) []string {
		if pod, ok := object.(*corev1.Pod); ok {
			return []string{pod.Spec.NodeName}
		}
		return nil
	}
	scheme, err := newScheme()
	if err != nil {
		panic(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).
		WithTypeConverters(managedfields.NewDeducedTypeConverter()). // the default parses the schema of all of Kubernetes each time
		WithStatusSubresource(&mcfgv1.MachineConfigPool{}).
		WithIndex(&corev1.Node{}, openshift.NodeField, cordoned).WithIndex(&corev1.Pod{}, "spec.nodeName", nodeOf).
		WithObjects(objects...)
}

// runTool runs a command line against a client at a time, and returns what it printed and its exit status.
func runTool(t *testing.T, c client.WithWatch, now time.Time, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	t.Setenv("COLUMNS", "120")
	var out, errOut bytes.Buffer
	tool := newTool(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut}, Options{Clock: clocktesting.NewFakeClock(now)})
	tool.dial = func() (client.WithWatch, error) { return c, nil }
	status = tool.run(context.Background(), args, "v0")
	return out.String(), errOut.String(), status
}

// upgradeJob returns a job of the config weekly from 4.18.1 to 4.18.2 that waits for the window.
func upgradeJob(options ...func(*v1beta1.UpgradeJob)) *v1beta1.UpgradeJob {
	job := &v1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "upgrades", Name: "weekly-1795554000-abc1234", CreationTimestamp: at(-4 * time.Hour),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "UpgradeConfig", Name: "weekly", Controller: new(true)}},
		},
		Spec: v1beta1.UpgradeJobSpec{
			StartAfter: at(0), StartBefore: at(time.Hour), DesiredVersion: &v1beta1.DesiredVersion{Version: "4.18.2", Image: o.Image("4.18.2")},
			Config: v1beta1.UpgradeJobConfig{Upgrader: "OpenShift"},
		},
		Status: v1beta1.UpgradeJobStatus{Phase: v1beta1.PhasePending},
	}
	for _, option := range options {
		option(job)
	}
	return job
}

// named gives the job a name and a start, that long after the window opens.
func jobNamed(name string, start time.Duration) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) {
		job.Name, job.Spec.StartAfter, job.Spec.StartBefore = name, at(start), at(start+time.Hour)
	}
}

func preflight(c metav1.Condition, blockers ...v1beta1.Blocker) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) {
		lifecycle.SetWaiting(job, lifecycle.Decision{Reason: v1beta1.ReasonWaitingForStart, Message: "The job starts at 2026-11-24T21:00:00Z."}, window.Add(-2*time.Hour))
		c.LastTransitionTime = at(-30 * time.Minute)
		job.Status.Conditions = append(job.Status.Conditions, c)
		job.Status.Blockers = blockers
	}
}

// started starts the job that long after the window opens, and lets it do these steps, each in two minutes.
func started(start time.Duration, done ...string) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) {
		lifecycle.SetStarted(job, "4.18.1", window.Add(start))
		for i, name := range done {
			begun := start + time.Duration(2*i)*time.Minute
			job.Status.Steps = append(job.Status.Steps, v1beta1.StepStatus{
				Condition: name, StartTime: at(begun), CompletionTime: new(at(begun + 2*time.Minute)), Attempts: 1,
			})
			addCondition(job, v1beta1.StepDone(name, "Done."), begun+2*time.Minute)
			if name == steps.ConditionUpgradeCommenced {
				job.Status.CommenceTime = new(at(begun))
			}
		}
	}
}

func addCondition(job *v1beta1.UpgradeJob, c metav1.Condition, when time.Duration) {
	c.LastTransitionTime = at(when)
	job.Status.Conditions = append(job.Status.Conditions, c)
}

// waiting has a step of the job wait since that long after the window opens.
func waiting(name string, since time.Duration, reason, message string, blockers ...v1beta1.Blocker) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) {
		job.Status.Steps = append(job.Status.Steps, v1beta1.StepStatus{Condition: name, StartTime: at(since), Attempts: 1})
		addCondition(job, v1beta1.StepNotDone(name, reason, message), since)
		job.Status.Blockers = blockers
	}
}

func finished(outcome metav1.Condition, when time.Duration) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) { lifecycle.Finish(job, outcome, window.Add(when)) }
}

func blocker(code, object string, since time.Duration, message, clears string) v1beta1.Blocker {
	return v1beta1.Blocker{Code: code, Object: object, Since: at(since), Message: message, ClearsWhen: clears}
}

// The steps of the upgrader OpenShift up to the one that is named last.
var (
	preflightSteps = []string{"StartHooksCompleted", "MachineConfigPoolsPaused", "ClusterHealthyBeforeUpgrade", "UpdateAvailable", "UpgradeCommenced"}
	allSteps       = append(append([]string{}, preflightSteps...), "ControlPlaneUpgraded", "MachineConfigPoolsUpgraded", "ClusterHealthyAfterUpgrade",
		"CompletionHooksCompleted", "DelayedPoolsUpgraded")
)

// weekly is the config of the jobs.
func weekly(options ...func(*v1beta1.UpgradeConfig)) *v1beta1.UpgradeConfig {
	config := &v1beta1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "weekly"}}
	config.Spec.Schedule = v1beta1.UpgradeConfigSchedule{Cron: "0 22 * * 2", Location: "Europe/Zurich"}
	for i := range 10 {
		config.Status.NextPossibleSchedules = append(config.Status.NextPossibleSchedules, at(time.Duration(i)*7*24*time.Hour))
	}
	for _, option := range options {
		option(config)
	}
	return config
}

func suspensionWindow(name string, start, end time.Duration) *v1beta1.UpgradeSuspensionWindow {
	return &v1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: name},
		Spec: v1beta1.UpgradeSuspensionWindowSpec{
			Start: at(start), End: at(end), Reason: "Black Friday", ConfigSelector: &metav1.LabelSelector{}, JobSelector: &metav1.LabelSelector{},
		},
		Status: v1beta1.UpgradeSuspensionWindowStatus{MatchingConfigs: []v1beta1.MatchingObject{{Name: "weekly"}}},
	}
}

// cluster returns OpenShift's objects at rest at 4.18.1: three masters, three workers.
func cluster(options ...func(*configv1.ClusterVersion)) []client.Object {
	return append([]client.Object{
		o.ClusterVersion(options...), o.ClusterOperator("dns"), o.ClusterOperator("etcd"), o.ClusterOperator("kube-apiserver"), o.Pool("master"), o.Pool("worker"),
	}, configs("4.18.1", "4.18.2")...)
}

// configs are the rendered configurations of releases.
func configs(versions ...string) []client.Object {
	var objects []client.Object
	for _, version := range versions {
		objects = append(objects, o.MachineConfig("master", version), o.MachineConfig("worker", version))
	}
	return objects
}

// updating is the ClusterVersion on its way to 4.18.2, of which the operator says so.
func updating(message string) *configv1.ClusterVersion {
	return lockedBy(o.ClusterVersion(o.Desired("4.18.2"), o.History(o.Partial("4.18.2"), o.Completed("4.18.1")), o.Available(),
		o.VersionCondition(configv1.OperatorProgressing, configv1.ConditionTrue, "", message)))
}

func lockedBy(cv *configv1.ClusterVersion) *configv1.ClusterVersion {
	cv.Annotations[v1beta1.UpgradeJobAnnotation] = "upgrades/weekly-1795554000-abc1234"
	return cv
}

func upgraded() *configv1.ClusterVersion {
	return lockedBy(o.ClusterVersion(o.Desired("4.18.2"), o.History(o.Completed("4.18.2"), o.Completed("4.18.1")), o.Available()))
}
