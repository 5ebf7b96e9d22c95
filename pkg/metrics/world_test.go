// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// noon is when all tests are: 1000 days after the epoch, so that times are easy to read.
var noon = time.Unix(86400000, 0)

// at is a time so many seconds from noon.
func at(offset int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(offset) * time.Second)) }

func ptrAt(offset int) *metav1.Time { return ptr.To(at(offset)) }

// stepList is what upgrader OpenShift does in these tests.
var stepList = []string{"ClusterHealthyBeforeUpgrade", "UpgradeCommenced", "ControlPlaneUpgraded"}

func scheme() *kruntime.Scheme {
	s := kruntime.NewScheme()
	for _, add := range []func(*kruntime.Scheme) error{corev1.AddToScheme, v1beta1.AddToScheme, v1alpha1.AddToScheme, configv1.Install, mcfgv1.Install} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// newReader returns a cache with these objects.
func newReader(objects ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().WithScheme(scheme()).WithObjects(objects...).Build()
}

// newTestCollector returns a collector of the leader, changed by the override.
func newTestCollector(reader client.Reader, override func(*Options)) *Collector {
	o := Options{
		Reader: reader, Leading: func() bool { return true }, Clock: clocktesting.NewFakePassiveClock(noon), Version: "1.2.3",
		Steps: func(_ context.Context, name string) []string {
			if name == v1beta1.DefaultUpgrader {
				return stepList
			}
			return nil
		},
	}
	if override != nil {
		override(&o)
	}
	return NewCollector(o)
}

// expose returns the series of a scrape, in order, without the prefix of their names. With names only those of these metrics.
func expose(t *testing.T, c *Collector, names ...string) []string {
	t.Helper()
	if len(names) == 0 {
		for _, d := range all {
			names = append(names, strings.TrimPrefix(d.Name, Prefix))
		}
	}
	for i := range names {
		names[i] = Prefix + names[i]
	}
	text, err := testutil.CollectAndFormat(c, expfmt.TypeTextPlain, names...)
	if err != nil {
		t.Fatal(err)
	}
	problems, err := testutil.CollectAndLint(c, names...)
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
	got := []string{}
	for line := range strings.Lines(strings.ReplaceAll(string(text), runtime.Version(), "GO")) {
		if !strings.HasPrefix(line, "#") {
			got = append(got, strings.TrimPrefix(strings.TrimSpace(line), Prefix))
		}
	}
	return got
}

// expect fails unless a scrape has exactly these series of the metrics.
func expect(t *testing.T, c *Collector, metrics, want string) {
	t.Helper()
	lines := []string{}
	for line := range strings.Lines(want) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if diff := cmp.Diff(lines, expose(t, c, strings.Fields(metrics)...)); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

// newJob returns a job of config weekly that waits for its start in an hour, changed by the overrides.
func newJob(name string, overrides ...func(*v1beta1.UpgradeJob)) *v1beta1.UpgradeJob {
	job := &v1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: "upgrades", Name: name, UID: types.UID(name), Finalizers: []string{v1beta1.UpgradeJobFinalizer},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1beta1.GroupVersion.String(), Kind: "UpgradeConfig", Name: "weekly", UID: "weekly", Controller: ptr.To(true),
		}},
	}}
	job.Spec.StartAfter, job.Spec.StartBefore = at(3600), at(7200)
	job.Spec.DesiredVersion = &v1beta1.DesiredVersion{Version: "4.18.2", Image: "quay.io/release@sha256:2"}
	job.Spec.Config.UpgradeTimeout = &v1beta1.Duration{Duration: 10 * time.Hour}
	job.Status.Phase, job.Status.Conditions = v1beta1.PhasePending, []metav1.Condition{v1beta1.NotStarted(v1beta1.ReasonWaitingForStart, "")}
	for _, override := range overrides {
		override(job)
	}
	return job
}

// running is a job whose upgrade commenced ten minutes ago.
func running(job *v1beta1.UpgradeJob) {
	job.Spec.StartAfter, job.Spec.StartBefore = at(-1200), at(2400)
	job.Status.Phase, job.Status.FromVersion = v1beta1.PhaseActive, "4.18.1"
	job.Status.StartTime, job.Status.CommenceTime = ptrAt(-1200), ptrAt(-600)
	job.Status.Conditions = []metav1.Condition{
		v1beta1.Started(""), v1beta1.StepDone(stepList[0], ""), v1beta1.StepDone(stepList[1], ""),
		v1beta1.StepNotDone(stepList[2], v1beta1.ReasonControlPlaneUpdating, ""),
	}
	job.Status.Steps = []v1beta1.StepStatus{
		{Condition: stepList[0], StartTime: at(-1200), CompletionTime: ptrAt(-610), Attempts: 1},
		{Condition: stepList[1], StartTime: at(-610), CompletionTime: ptrAt(-600), Attempts: 1},
		{Condition: stepList[2], StartTime: at(-600), Attempts: 1},
	}
}

// ended gives a job an outcome, an hour after a start so many seconds from noon.
func ended(start int, outcome metav1.Condition) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) {
		job.Finalizers = nil
		job.Spec.StartAfter, job.Spec.StartBefore = at(start), at(start+3600)
		job.Status.Phase, job.Status.CompletionTime = v1beta1.Phase(outcome.Type), ptrAt(start+3600)
		job.Status.Conditions = []metav1.Condition{v1beta1.Started(""), outcome}
	}
}

// madeByHand is a job of no config.
func madeByHand(job *v1beta1.UpgradeJob) { job.OwnerReferences = nil }

// newConfig returns the config weekly, changed by the override.
func newConfig(override func(*v1beta1.UpgradeConfig)) *v1beta1.UpgradeConfig {
	config := &v1beta1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "weekly", UID: "weekly"}}
	config.Spec.Schedule = v1beta1.UpgradeConfigSchedule{Cron: "0 22 * * 2", ISOWeek: "@odd", Location: "Europe/Zurich"}
	config.Status.Conditions = []metav1.Condition{v1beta1.Ready(v1beta1.ReasonValid, ""), v1beta1.Scheduling("")}
	if override != nil {
		override(config)
	}
	return config
}

// newPool returns a pool of ten machines, changed by the override.
func newPool(name string, override func(*mcfgv1.MachineConfigPool)) *mcfgv1.MachineConfigPool {
	pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pool.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + name: ""}}
	pool.Status = mcfgv1.MachineConfigPoolStatus{MachineCount: 10, UpdatedMachineCount: 7, UnavailableMachineCount: 2, DegradedMachineCount: 1}
	if override != nil {
		override(pool)
	}
	return pool
}

// pausedBy pauses a pool in the name of a job.
func pausedBy(holder string) func(*mcfgv1.MachineConfigPool) {
	return func(pool *mcfgv1.MachineConfigPool) {
		pool.Spec.Paused, pool.Annotations = true, map[string]string{v1beta1.UpgradeJobAnnotation: holder}
	}
}

// newNode returns a cordoned node of pool worker with these annotations of the machine-config operator: keys and values by turns.
func newNode(name string, annotations ...string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"node-role.kubernetes.io/worker": ""}, Annotations: map[string]string{},
	}}
	for i := 0; i < len(annotations); i += 2 {
		node.Annotations["machineconfiguration.openshift.io/"+annotations[i]] = annotations[i+1]
	}
	return node
}

// newVersion returns the cluster's ClusterVersion, which runs 4.18.1, changed by the override.
func newVersion(override func(*configv1.ClusterVersion)) *configv1.ClusterVersion {
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.ClusterVersionName}}
	version.Spec.Channel, version.Spec.ClusterID, version.Spec.Upstream = "stable-4.18", "c1", "https://updates"
	version.Status.Desired.Version = "4.18.1"
	version.Status.History = []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "4.18.1"}}
	if override != nil {
		override(version)
	}
	return version
}
