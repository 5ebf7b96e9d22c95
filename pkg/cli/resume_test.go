// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// outcomeOf gives a job a condition that ends it.
func outcomeOf(c metav1.Condition) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) { meta.SetStatusCondition(&job.Status.Conditions, c) }
}

// doneSteps records steps as done.
func doneSteps(conditions ...string) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) {
		for _, condition := range conditions {
			job.Status.Steps = append(job.Status.Steps, v1beta1.StepStatus{
				Condition: condition, StartTime: metav1.NewTime(actNow.Add(-2 * time.Hour)), CompletionTime: &metav1.Time{Time: actNow.Add(-time.Hour)},
			})
			meta.SetStatusCondition(&job.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: "Done"})
		}
	}
}

// commencedAt records that the job asked for its version.
func commencedAt(at time.Time) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) { job.Status.CommenceTime = &metav1.Time{Time: at} }
}

func TestResume(t *testing.T) {
	config := actConfig()
	failed := actJob(config, actNow.Add(-12*time.Hour), v1beta1.PhaseFailed, outcomeOf(v1beta1.Failed("TimedOut", "The job did not end by 2026-11-23T09:00:00Z.")),
		commencedAt(actNow.Add(-11*time.Hour)), doneSteps("StartHooksCompleted", "MachineConfigPoolsPaused", "ClusterHealthyBeforeUpgrade", "UpdateAvailable", "UpgradeCommenced"))
	w := newActWorld(t, config, failed,
		openshifttest.ClusterVersion(openshifttest.Desired("4.18.2"), openshifttest.History(openshifttest.Partial("4.18.2"), openshifttest.Completed("4.18.1"))))

	w.expect("resume-no-terminal", ExitFailed, "resume", failed.Name)
	if got := get(w, failed).Spec.ResumeRequest; got != "" {
		t.Errorf("without an answer the request is %q", got)
	}
	w.expect("resume", ExitOK, "resume", failed.Name, "--yes")
	if got := get(w, failed).Spec.ResumeRequest; got != "2026-11-23T09:00:00Z" {
		t.Errorf("the request is %q, want the time", got)
	}
	w.expect("resume-twice", ExitFailed, "resume", failed.Name, "--yes", "--request", "again")
}

func TestResumeBeforeCommencing(t *testing.T) {
	config := actConfig()
	skipped := actJob(config, actNow.Add(-12*time.Hour), v1beta1.PhaseSkipped, outcomeOf(v1beta1.Skipped("PreHealthCheckFailed", "The cluster did not become healthy within 30m0s: etcd.")),
		doneSteps("StartHooksCompleted"))
	w := newActWorld(t, config, skipped, openshifttest.ClusterVersion())
	w.expect("resume-skipped", ExitOK, "resume", skipped.Name, "--yes", "--request", "TICKET-4711")
	if got := get(w, skipped).Spec.ResumeRequest; got != "TICKET-4711" {
		t.Errorf("the request is %q", got)
	}
}

func TestResumeRefused(t *testing.T) {
	config := actConfig()
	other := actConfig(func(c *v1beta1.UpgradeConfig) { c.Name, c.UID = "other", "uid-other" })
	start := actNow.Add(-time.Hour)
	job := func(phase v1beta1.Phase, options ...func(*v1beta1.UpgradeJob)) *v1beta1.UpgradeJob {
		return actJob(config, start, phase, options...)
	}
	running := actJob(other, start, v1beta1.PhaseActive)
	used := func(j *v1beta1.UpgradeJob) {
		j.Status.ResumedRequests = []v1beta1.ResumedRequest{{Request: "one", Reopened: "Failed(TimedOut)"}}
	}
	asked := func(j *v1beta1.UpgradeJob) { j.Spec.ResumeRequest = "two" }
	window := actWindow("freeze", start, actNow.Add(time.Hour), ofJobs)
	onItsWay := openshifttest.History(openshifttest.Partial("4.18.2"), openshifttest.Completed("4.18.1"))
	for _, tc := range []struct {
		name    string
		job     *v1beta1.UpgradeJob
		objects []client.Object
		args    []string
		want    string // empty: it is not refused
	}{
		{"succeeded", job(v1beta1.PhaseSucceeded), []client.Object{openshifttest.ClusterVersion()}, nil, "it has succeeded"},
		{"active", job(v1beta1.PhaseActive), []client.Object{openshifttest.ClusterVersion()}, nil, "it has not ended (Active)"},
		{"not seen yet", job(""), []client.Object{openshifttest.ClusterVersion()}, nil, "it has not ended (Pending)"},
		{"request used before", job(v1beta1.PhaseFailed, used), []client.Object{openshifttest.ClusterVersion()}, []string{"--request", "one"}, `request "one" was used before`},
		{"request is there", job(v1beta1.PhaseFailed, asked), []client.Object{openshifttest.ClusterVersion()}, nil, `it is asked to already, by request "two"`},
		{"locked", job(v1beta1.PhaseFailed), []client.Object{openshifttest.ClusterVersion(heldBy(running.LockKey())), running}, nil, "the cluster is locked by UpgradeJob " + running.LockKey()},
		{"own lock", job(v1beta1.PhaseFailed), []client.Object{openshifttest.ClusterVersion(heldBy(job(v1beta1.PhaseFailed).LockKey()))}, nil, ""},
		{"another runs", job(v1beta1.PhaseFailed), []client.Object{openshifttest.ClusterVersion(), running}, nil, "UpgradeJob " + running.LockKey() + " runs (Active)"},
		{"in a window", job(v1beta1.PhaseSkipped), []client.Object{openshifttest.ClusterVersion(), window}, nil, "UpgradeSuspensionWindow upgrades/freeze suspends"},
		{"in a window, commenced", job(v1beta1.PhaseFailed, commencedAt(start)), []client.Object{openshifttest.ClusterVersion(openshifttest.Desired("4.18.2"), onItsWay), window}, nil, ""},
		{"updated by somebody else", job(v1beta1.PhaseSkipped), []client.Object{openshifttest.ClusterVersion(onItsWay)}, nil, "the cluster is being updated to 4.18.2, and not by this job"},
		{"unknown upgrader", job(v1beta1.PhaseFailed, func(j *v1beta1.UpgradeJob) { j.Spec.Config.Upgrader = "Mine" }), []client.Object{openshifttest.ClusterVersion()}, nil, `there is no upgrader "Mine"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newActWorld(t, append(tc.objects, config, tc.job)...)
			before := tc.job.Spec.ResumeRequest
			text, status := w.run(append([]string{"resume", tc.job.Name, "--yes"}, tc.args...)...)
			after := get(w, tc.job).Spec.ResumeRequest
			if tc.want == "" {
				if status != ExitOK || after == "" {
					t.Errorf("status %d and request %q, want 0 and one:\n%s", status, after, text)
				}
				return
			}
			if status != ExitFailed || !strings.Contains(text, tc.want) || after != before {
				t.Errorf("status %d, request %q, output:\n%s\nwant 1, %q and %q", status, after, text, before, tc.want)
			}
		})
	}
}

func TestResumeConflict(t *testing.T) {
	config := actConfig()
	failed := actJob(config, actNow.Add(-time.Hour), v1beta1.PhaseFailed)
	w := newActWorld(t, config, failed, openshifttest.ClusterVersion())
	w.funcs.Patch = func(_ context.Context, _ client.WithWatch, _ client.Object, patch client.Patch, _ ...client.PatchOption) error {
		data, err := patch.Data(failed)
		if err != nil || !strings.Contains(string(data), "resourceVersion") {
			t.Errorf("the patch has no lock: %s %v", data, err)
		}
		return conflict("upgradejobs", failed.Name)
	}
	w.expect("resume-conflict", ExitFailed, "resume", failed.Name, "--yes")
	w.expect("resume-usage", ExitUsage, "resume", failed.Name, "--request", strings.Repeat("x", 129))
}
