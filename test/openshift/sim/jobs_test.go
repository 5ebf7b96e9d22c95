// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// jobCluster is a small cluster, and a namespace on it that Jobs can run in.
type jobCluster struct {
	*simulated
	namespace string
}

// startForJobs starts a cluster. The namespace is new, and allows what OpenShift
// allows in the namespaces of users.
func startForJobs(t *testing.T) *jobCluster {
	t.Helper()
	c := &jobCluster{simulated: start(t, quick())}
	c.namespace = c.newNamespace("jobs-")
	return c
}

// newNamespace makes a namespace that enforces the pod security level restricted,
// and waits until pods can run in it.
func (c *simulated) newNamespace(prefix string) string {
	c.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: prefix, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := c.client.Create(c.t.Context(), ns); err != nil {
		c.t.Fatal(err)
	}
	c.awaitAccount(ns.Name)
	return ns.Name
}

// operatorNamespace creates the operator's namespace, for good.
func (c *simulated) operatorNamespace() string {
	c.t.Helper()
	manifest, err := os.ReadFile("../../../deploy/namespace.yaml")
	if err != nil {
		c.t.Fatal(err)
	}
	ns := &corev1.Namespace{}
	if err := yaml.UnmarshalStrict(manifest, ns); err != nil {
		c.t.Fatal(err)
	}
	if err := c.client.Create(c.t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
		c.t.Fatal(err)
	}
	if level := ns.Labels["pod-security.kubernetes.io/enforce"]; level != "restricted" {
		c.t.Errorf("namespace %s enforces the level %q, and the test is about restricted", ns.Name, level)
	}
	c.awaitAccount(ns.Name)
	return ns.Name
}

// awaitAccount waits for the service account that the namespace's pods run as.
func (c *simulated) awaitAccount(namespace string) {
	c.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}
	c.eventually("service account", func() bool { return c.exists(account) })
}

// job creates a Job with one container, and the annotations key, value, ... on
// its pods.
func (c *jobCluster) job(annotations []string, edits ...func(*batchv1.Job)) *batchv1.Job {
	c.t.Helper()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, GenerateName: "job-"},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "main", Image: "example.com/image"}},
			}},
		},
	}
	for i := 0; i < len(annotations); i += 2 {
		metav1.SetMetaDataAnnotation(&job.Spec.Template.ObjectMeta, annotations[i], annotations[i+1])
	}
	for _, edit := range edits {
		edit(job)
	}
	if err := c.client.Create(c.t.Context(), job); err != nil {
		c.t.Fatal(err)
	}
	return job
}

// exists reads obj again and reports whether it exists.
func (c *simulated) exists(obj client.Object) bool {
	c.t.Helper()
	err := c.client.Get(c.t.Context(), client.ObjectKeyFromObject(obj), obj)
	if err != nil && !apierrors.IsNotFound(err) {
		c.t.Fatal(err)
	}
	return err == nil
}

// pods returns the pods of a Job.
func (c *jobCluster) pods(job *batchv1.Job) []corev1.Pod {
	c.t.Helper()
	pods := &corev1.PodList{}
	if err := c.client.List(c.t.Context(), pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
		c.t.Fatal(err)
	}
	return pods.Items
}

// pod waits for a Job's only pod to be as ok says, and returns it.
func (c *jobCluster) pod(job *batchv1.Job, what string, ok func(*corev1.Pod) bool) *corev1.Pod {
	c.t.Helper()
	var pod *corev1.Pod
	c.eventually("pod "+what, func() bool {
		pods := c.pods(job)
		if len(pods) != 1 {
			return false
		}
		pod = &pods[0]
		return ok(pod)
	})
	return pod
}

// ends waits for the Job to have a condition of that type, and returns it.
func (c *jobCluster) ends(job *batchv1.Job, t batchv1.JobConditionType) *batchv1.JobCondition {
	c.t.Helper()
	var found *batchv1.JobCondition
	c.eventually("Job "+string(t), func() bool {
		c.get(job)
		for i := range job.Status.Conditions {
			if condition := &job.Status.Conditions[i]; condition.Type == t && condition.Status == corev1.ConditionTrue {
				found = condition
			}
		}
		return found != nil
	})
	return found
}

func running(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning }

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func onFailure(job *batchv1.Job) {
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
}

// TestJobSucceeds runs where hooks run: in the operator's namespace, as it is deployed.
func TestJobSucceeds(t *testing.T) {
	c := startForJobs(t)
	c.namespace = c.operatorNamespace()
	job := c.job([]string{sim.AnnotationMessage, "all done"}, func(job *batchv1.Job) {
		spec := &job.Spec.Template.Spec
		spec.InitContainers = []corev1.Container{{Name: "init", Image: "example.com/image", Command: []string{"true"}}}
		spec.Containers[0].Env = []corev1.EnvVar{{Name: "WHO", Value: "world"}, {Name: "TEXT", Value: "hello $(WHO)"}}
		spec.Containers[0].Args = []string{"$(TEXT)", "$$(TEXT)"}
	})
	c.ends(job, batchv1.JobComplete)
	pod := c.pod(job, "ended", ended)
	if pod.Status.Phase != corev1.PodSucceeded || !strings.HasPrefix(pod.Spec.NodeName, "worker-") {
		t.Errorf("phase %s on node %q", pod.Status.Phase, pod.Spec.NodeName)
	}
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if end := status.State.Terminated; end == nil || end.ExitCode != 0 || end.Reason != "Completed" || end.Message != "all done" {
			t.Errorf("container %s has ended like %+v", status.Name, end)
		}
	}
	ran, err := sim.RanIn(pod)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]sim.Ran{
		"init": {Command: []string{"true"}},
		"main": {Args: []string{"hello world", "$(TEXT)"}, Env: map[string]string{"WHO": "world", "TEXT": "hello world"}},
	}
	if diff := cmp.Diff(want, ran); diff != "" {
		t.Errorf("what ran (-want +got):\n%s", diff)
	}
}

func TestJobFails(t *testing.T) {
	c := startForJobs(t)
	tests := []struct {
		reason      string
		annotations []string
		edit        func(*batchv1.Job)
		want        string // the reason of the Job's failure
	}{
		{"its container fails", []string{sim.AnnotationOutcome, sim.OutcomeFail}, func(*batchv1.Job) {}, batchv1.JobReasonBackoffLimitExceeded},
		{"its annotations are wrong", []string{sim.AnnotationOutcome, "explode"}, func(*batchv1.Job) {}, batchv1.JobReasonBackoffLimitExceeded},
		{"it has restarted often enough", []string{sim.AnnotationOutcome, sim.OutcomeFail},
			func(job *batchv1.Job) { onFailure(job); job.Spec.BackoffLimit = new(int32(2)) }, batchv1.JobReasonBackoffLimitExceeded},
		{"its time is over", []string{sim.AnnotationOutcome, sim.OutcomeHang},
			func(job *batchv1.Job) { job.Spec.ActiveDeadlineSeconds = new(int64(1)) }, batchv1.JobReasonDeadlineExceeded},
		{"its pod's time is over", []string{sim.AnnotationOutcome, sim.OutcomeHang},
			func(job *batchv1.Job) { job.Spec.Template.Spec.ActiveDeadlineSeconds = new(int64(1)) }, batchv1.JobReasonBackoffLimitExceeded},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			if got := c.ends(c.job(tt.annotations, tt.edit), batchv1.JobFailed); got.Reason != tt.want {
				t.Errorf("failed because of %s: %s; want %s", got.Reason, got.Message, tt.want)
			}
		})
	}
}

func TestHangingPodIsKilledWithItsJob(t *testing.T) {
	c := startForJobs(t)
	job := c.job([]string{sim.AnnotationOutcome, sim.OutcomeHang})
	pod := c.pod(job, "running", running)
	if err := c.client.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	c.eventually("pod gone", func() bool { return !c.exists(pod) })
}

func TestHangingPodLearnsItsOutcome(t *testing.T) {
	c := startForJobs(t)
	job := c.job([]string{sim.AnnotationOutcome, sim.OutcomeHang})
	pod := c.pod(job, "running", running)
	next := pod.DeepCopy()
	next.Annotations[sim.AnnotationOutcome] = sim.OutcomeFail
	if err := c.client.Patch(t.Context(), next, client.MergeFrom(pod)); err != nil {
		t.Fatal(err)
	}
	c.ends(job, batchv1.JobFailed)
}

func TestFinishedJobIsRemovedInTime(t *testing.T) {
	c := startForJobs(t)
	job := c.job(nil, func(job *batchv1.Job) { job.Spec.TTLSecondsAfterFinished = new(int32(0)) })
	c.eventually("Job gone", func() bool { return !c.exists(job) })
	c.eventually("pods gone", func() bool { return len(c.pods(job)) == 0 })
}

func TestPodsOutliveTheAPIServer(t *testing.T) {
	c := startForJobs(t)
	waits := c.job([]string{sim.AnnotationDuration, "2s"})
	c.pod(waits, "running", running)
	if err := plane.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := plane.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.ends(waits, batchv1.JobComplete)
	c.ends(c.job(nil), batchv1.JobComplete)
}

// TestPodsOfOthersAreLeftAlone has a Job behind the other pod: once the Job's has
// ended, the other one would have been touched.
func TestPodsOfOthersAreLeftAlone(t *testing.T) {
	c := startForJobs(t)
	other := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "other"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/image"}}},
	}
	if err := c.client.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	revision := other.ResourceVersion
	c.ends(c.job(nil), batchv1.JobComplete)
	c.get(other)
	if other.ResourceVersion != revision || other.Spec.NodeName != "" {
		t.Errorf("the pod of nobody was changed: node %q, status %+v", other.Spec.NodeName, other.Status)
	}
}

// TestJobIsQuick keeps the control plane quick enough for tests with many hooks.
// The Job controller gathers what happens to pods for a second before it looks.
func TestJobIsQuick(t *testing.T) {
	c := startForJobs(t)
	began := time.Now()
	var jobs []*batchv1.Job
	for range 50 {
		jobs = append(jobs, c.job(nil))
	}
	for _, job := range jobs {
		c.ends(job, batchv1.JobComplete)
	}
	if took := time.Since(began); took > patience/2 {
		t.Errorf("50 Jobs took %s", took)
	}
}
