// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	o "github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/planner"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// seen is a snapshot of a healthy cluster with these jobs, that long after the window opens.
func seen(after time.Duration, jobs ...*v1beta1.UpgradeJob) *snapshot {
	s := &snapshot{Now: window.Add(after), Version: o.ClusterVersion()}
	for _, job := range jobs {
		s.Jobs = append(s.Jobs, *job)
	}
	s.sort()
	return s
}

func hours(n int) *v1beta1.Duration { return &v1beta1.Duration{Duration: time.Duration(n) * time.Hour} }

func TestDeadlines(t *testing.T) {
	resume := func(at time.Duration) func(*v1beta1.UpgradeJob) {
		return func(job *v1beta1.UpgradeJob) {
			job.Spec.ResumeRequest = "again"
			lifecycle.Resume(job, window.Add(at))
		}
	}
	osd := func(job *v1beta1.UpgradeJob) { job.Spec.Config.Upgrader = "OSD" }
	for _, tc := range []struct {
		reason string
		job    *v1beta1.UpgradeJob
		after  time.Duration
		want   []string
	}{
		{"before the start", upgradeJob(), -time.Hour, []string{"startAfter 0s", "startBefore 1h0m0s", "upgradeTimeout 12h0m0s"}},
		{"when the start has come and nothing has started", upgradeJob(), time.Minute, []string{"startBefore 1h0m0s", "upgradeTimeout 12h0m0s"}},
		{"while health is waited for", upgradeJob(started(time.Minute, allSteps[:2]...), waiting(steps.ConditionClusterHealthyBeforeUpgrade, 5*time.Minute, "Unhealthy", "")), 6 * time.Minute,
			[]string{"preUpgradeHealthChecks.timeout 35m0s", "upgradeTimeout 12h0m0s"}},
		{"while acceptance is waited for", upgradeJob(started(time.Minute, preflightSteps...), waiting(steps.ConditionControlPlaneUpgraded, 11*time.Minute, "ControlPlaneUpdating", "")), 12 * time.Minute,
			[]string{"releaseAcceptTimeout 41m0s", "upgradeTimeout 12h0m0s"}},
		{"while health after the upgrade is waited for", upgradeJob(started(time.Minute, allSteps[:7]...), waiting(steps.ConditionClusterHealthyAfterUpgrade, 15*time.Minute, "Unhealthy", "")), 20 * time.Minute,
			[]string{"postUpgradeHealthChecks.timeout 45m0s", "upgradeTimeout 12h0m0s"}},
		{"while pools are paused", upgradeJob(started(time.Minute, allSteps[:9]...), pausedUntilNight), 4 * time.Hour,
			[]string{"delayMin 6h0m0s", "delayMax 8h0m0s", "upgradeTimeout 12h0m0s"}},
		{"an upgrader that has to commence in its window", upgradeJob(osd, started(time.Minute)), 2 * time.Minute, []string{"upgradeWindow 2h1m0s", "upgradeTimeout 12h0m0s"}},
		{"where health is waited for as long as that", upgradeJob(osd, started(time.Minute, allSteps[:2]...), waiting(steps.ConditionClusterHealthyBeforeUpgrade, 5*time.Minute, "Unhealthy", "")), 6 * time.Minute,
			[]string{"upgradeWindow 2h1m0s", "upgradeTimeout 12h0m0s"}},
		{"with another window", upgradeJob(osd, func(job *v1beta1.UpgradeJob) {
			job.Spec.Config.UpgradeWindow = &v1beta1.UpgradeWindow{TimeOut: hours(3)}
		}, started(0)), time.Minute,
			[]string{"upgradeWindow 3h0m0s", "upgradeTimeout 12h0m0s"}},
		{"of an Upgrader that commences in a window", upgradeJob(func(job *v1beta1.UpgradeJob) { job.Spec.Config.Upgrader = "own" }, started(0)), time.Minute,
			[]string{"upgradeWindow 2h0m0s", "upgradeTimeout 12h0m0s"}},
		{"of an Upgrader that does not", upgradeJob(func(job *v1beta1.UpgradeJob) { job.Spec.Config.Upgrader = "easy" }, started(0)), time.Minute,
			[]string{"upgradeTimeout 12h0m0s"}},
		{"without anything to upgrade", upgradeJob(func(job *v1beta1.UpgradeJob) { job.Spec.Config.Upgrader, job.Spec.DesiredVersion = "own", nil }, started(0)), time.Minute,
			[]string{"upgradeTimeout 12h0m0s"}},
		{"resumed the next day", upgradeJob(started(0, allSteps[:5]...), finished(v1beta1.Failed("TimedOut", ""), 12*time.Hour), resume(24*time.Hour)), 25 * time.Hour,
			[]string{"upgradeTimeout 36h0m0s"}},
		{"after the end", upgradeJob(started(0), finished(v1beta1.Failed("TimedOut", ""), 12*time.Hour)), 13 * time.Hour, nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var got []string
			s := seen(tc.after)
			s.Upgraders = []v1beta1.Upgrader{{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: v1beta1.UpgraderSpec{FailUnlessCommenced: true}}, {ObjectMeta: metav1.ObjectMeta{Name: "easy"}}}
			for _, d := range deadlinesOf(s, tc.job) {
				got = append(got, d.Name+" "+d.Time.Sub(window).String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestJobToShow(t *testing.T) {
	active := upgradeJob(jobNamed("active", -time.Hour), started(-time.Hour))
	failed := upgradeJob(jobNamed("failed", -48*time.Hour), started(-48*time.Hour), finished(v1beta1.Failed("TimedOut", ""), -36*time.Hour))
	resumed := upgradeJob(jobNamed("resumed", -96*time.Hour), started(-96*time.Hour), finished(v1beta1.Failed("TimedOut", ""), -12*time.Hour))
	older := upgradeJob(jobNamed("older", -96*time.Hour), started(-96*time.Hour), finished(v1beta1.Succeeded("Upgraded", ""), -90*time.Hour))
	next, later := upgradeJob(jobNamed("next", time.Hour)), upgradeJob(jobNamed("later", 48*time.Hour))
	for _, tc := range []struct {
		reason             string
		s                  *snapshot
		holder             string
		shown, after, last string
	}{
		{"the one in work", seen(0, next, active, failed, later), "", "active", "next", "failed"},
		{"the one that holds the cluster", seen(0, next, active, failed), "upgrades/next", "next", "", "failed"},
		{"not one that has ended and holds it still", seen(0, next, active, failed), "upgrades/failed", "active", "next", "failed"},
		{"else the next one", seen(0, next, failed, later, older), "", "next", "", "failed"},
		{"else the last one", seen(0, older, failed), "", "failed", "", ""},
		{"which may be one that started before others", seen(0, failed, resumed, older), "", "resumed", "", ""},
		{"else none", seen(0), "", "", "", ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			tc.s.Version.Annotations[v1beta1.UpgradeJobAnnotation] = tc.holder
			r := statusOf(tc.s, jobToShow(tc.s))
			name := func(j *jobSummary) string {
				if j == nil {
					return ""
				}
				return j.Name
			}
			shown := ""
			if r.Job != nil {
				shown = r.Job.Name
			}
			if shown != tc.shown || name(r.Next) != tc.after || name(r.Last) != tc.last {
				t.Errorf("it shows %q, next %q, last %q; want %q, %q, %q", shown, name(r.Next), name(r.Last), tc.shown, tc.after, tc.last)
			}
		})
	}
}

func TestSteps(t *testing.T) {
	list := func(s *snapshot, job *v1beta1.UpgradeJob) string {
		var words []string
		for _, step := range stepsOf(s, job) {
			words = append(words, step.Name+" "+step.State)
		}
		return strings.Join(words, ", ")
	}
	own := []v1beta1.Upgrader{{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: v1beta1.UpgraderSpec{Steps: []v1beta1.UpgraderStep{{Step: "A"}, {Step: "B"}, {Step: "C"}}}}}
	with := func(options ...func(*v1beta1.UpgradeJob)) *v1beta1.UpgradeJob {
		return upgradeJob(append([]func(*v1beta1.UpgradeJob){func(job *v1beta1.UpgradeJob) { job.Spec.Config.Upgrader = "own" }}, options...)...)
	}
	held := func(job *v1beta1.UpgradeJob) {
		addCondition(job, v1beta1.StepNotDone("B", v1beta1.ReasonHooksRunning, ""), 0)
	}
	undone := func(job *v1beta1.UpgradeJob) {
		job.Status.Steps[0].CompletionTime = nil
	}
	for _, tc := range []struct {
		reason string
		job    *v1beta1.UpgradeJob
		want   string
	}{
		{"before the start", with(), "A pending, B pending, C pending"},
		{"one waits", with(started(0, "A"), waiting("B", 0, "X", "")), "A completed, B waiting, C pending"},
		{"hooks hold one before it begins", with(started(0, "A"), held), "A completed, B waiting, C pending"},
		{"an earlier one was undone: only that is waited for", with(started(0, "A"), waiting("B", 0, "X", ""), undone), "A waiting, B pending, C pending"},
		{"one has ended the job", with(started(0, "A"), waiting("B", 0, "X", ""), finished(v1beta1.Failed("X", ""), time.Hour)), "A completed, B failed, C pending"},
		{"one that the upgrader does not have any more", with(started(0, "A", "Z")), "A completed, B pending, C pending, Z completed"},
		{"an upgrader that nobody knows", upgradeJob(func(job *v1beta1.UpgradeJob) { job.Spec.Config.Upgrader = "gone" }, started(0, "Q")), "Q completed"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := seen(time.Hour)
			s.Upgraders = own
			if got := list(s, tc.job); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestLeftPaused(t *testing.T) {
	live, over := upgradeJob(started(0)), upgradeJob(jobNamed("over", 0), started(0), finished(v1beta1.Failed("X", ""), time.Hour))
	ending := upgradeJob(jobNamed("ending", 0), started(0), finished(v1beta1.Failed("X", ""), time.Hour), func(job *v1beta1.UpgradeJob) {
		job.Finalizers = []string{v1beta1.UpgradeJobFinalizer}
	})
	for _, tc := range []struct {
		reason, holder, namespace string
		want                      bool
	}{
		{"by a job that runs", live.LockKey(), "", false},
		{"by a job that has ended", over.LockKey(), "", true},
		{"by a job that has ended, and is giving back what it held", ending.LockKey(), "", false},
		{"by a job that is gone", "upgrades/gone", "", true},
		{"by a job that the user may not see", "other/job", "upgrades", false},
		{"by a job that is gone from the one namespace that the user sees", "upgrades/gone", "upgrades", true},
		{"by what is no job", "somebody", "", false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := seen(time.Hour, live, over, ending)
			s.OneNamespace, s.Pools = tc.namespace, []mcfgv1.MachineConfigPool{*o.Pool("worker", o.PoolTowards("4.18.2", 1), o.PoolPausedBy(tc.holder))}
			if got := poolsOf(s, nil)[0].LeftPaused; got != tc.want {
				t.Errorf("left paused is %t, want %t", got, tc.want)
			}
		})
	}
}

// TestReceiversWithoutName: a receiver need not have a name; its status does.
func TestReceiversWithoutName(t *testing.T) {
	job := upgradeJob(started(0), withReceivers, func(job *v1beta1.UpgradeJob) {
		job.Spec.Config.Notifications = append([]v1beta1.NotificationReceiver{{Name: "chat"}}, v1beta1.NotificationReceiver{})
		job.Status.Notifications.Receivers[0].Name = "receiver-2"
	})
	want := notificationReport{Receiver: "receiver-2", Delivered: 1, Pending: 1, LastError: "it answered with status 503"}
	if diff := cmp.Diff(want, notificationsOf(job)[1]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNextStartOfAConfig(t *testing.T) {
	const hour, day, week = time.Hour, 24 * time.Hour, 7 * 24 * time.Hour
	past := suspensionWindow("past", -2*day, -day)
	ofConfigs := func(start, end time.Duration) *v1beta1.UpgradeSuspensionWindow {
		w := suspensionWindow("freeze", start, end)
		w.Spec.JobSelector = nil
		return w
	}
	pinned := func(hours int) *v1beta1.UpgradeConfig {
		return weekly(func(c *v1beta1.UpgradeConfig) {
			c.Spec.PinVersionWindow = &v1beta1.Duration{Duration: time.Duration(hours) * time.Hour}
		})
	}
	next := func(options ...func(*v1beta1.UpgradeJob)) *v1beta1.UpgradeJob {
		return upgradeJob(append([]func(*v1beta1.UpgradeJob){jobNamed("next", week)}, options...)...)
	}
	for _, tc := range []struct {
		reason string
		config *v1beta1.UpgradeConfig
		window *v1beta1.UpgradeSuspensionWindow
		job    *v1beta1.UpgradeJob
		now    time.Duration
		want   time.Duration
	}{
		{"the first that is to come", weekly(), past, nil, hour, week},
		{"not one in a suspension window", weekly(), suspensionWindow("freeze", week-hour, week+hour), nil, hour, 2 * week},
		{"not one whose job would be created in one", pinned(4), suspensionWindow("freeze", week-5*hour, week-3*hour), nil, hour, 2 * week},
		{"not one in a window of configs, if its job would be created before it", pinned(24), ofConfigs(week-hour, week+hour), nil, hour, 2 * week},
		{"one in a window of configs, if its job is there", pinned(24), ofConfigs(week-hour, week+hour), next(), week - 2*hour, week},
		{"not one in a window of jobs, even if its job is there", pinned(24), suspensionWindow("freeze", week-hour, week+hour), next(), week - 2*hour, 2 * week},
		{"not one whose job is over", pinned(24), past, next(finished(v1beta1.Failed("HookFailed", ""), week-3*hour)), week - 2*hour, 2 * week},
		{"the one of a job that was put off", pinned(24), past, upgradeJob(jobNamed(planner.NewJob(pinned(24), window.Add(week), nil).Name, week+hour)), week - 2*hour, week + hour},
		{"not the one of a job that was moved up, and has begun", pinned(24), past,
			upgradeJob(jobNamed(planner.NewJob(pinned(24), window.Add(week), nil).Name, week-3*hour), started(week-3*hour)), week - 2*hour, 2 * week},
		{"one whose job is created when a window ends", pinned(24), suspensionWindow("freeze", week-25*hour, week-24*hour+hour/2), nil, hour, week},
		{"not one whose job would be created when it is too late by the end of a window", pinned(24), suspensionWindow("freeze", week-25*hour, week-23*hour), nil, hour, 2 * week},
		{"not one whose job was not created in time", pinned(24), past, nil, week - 5*hour, 2 * week},
		{"one whose job may still be created", pinned(24), past, nil, week - 23*hour - hour/2, week},
		{"none while the schedule is suspended", weekly(func(c *v1beta1.UpgradeConfig) { c.Spec.Schedule.Suspend = true }), past, nil, hour, 0},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := seen(tc.now)
			if tc.job != nil {
				s = seen(tc.now, tc.job)
			}
			elsewhere := suspensionWindow("elsewhere", 0, 20*week)
			elsewhere.Namespace = "elsewhere"
			s.Windows = []v1beta1.UpgradeSuspensionWindow{*tc.window, *elsewhere}
			r := scheduleOf(s, tc.config)
			switch {
			case tc.want == 0 && r.NextStart != nil:
				t.Errorf("the next start is %s, want none", r.NextStart)
			case tc.want != 0 && (r.NextStart == nil || !r.NextStart.Time.Equal(window.Add(tc.want))):
				t.Errorf("the next start is %s, want %s", r.NextStart, window.Add(tc.want))
			}
		})
	}
}

func TestWhatTheClusterSaysIsTold(t *testing.T) {
	for _, tc := range []struct {
		reason string
		cv     *configv1.ClusterVersion
		want   clusterReport
	}{
		{"a target that is not accepted", o.ClusterVersion(o.Desired("4.18.2"), o.VersionCondition("ReleaseAccepted", configv1.ConditionFalse, "RetrievePayload", "no signature")),
			clusterReport{Version: "4.18.1", Desired: "4.18.2", Failing: "RetrievePayload: no signature", Available: "4.18.2"}},
		{"a release that cannot be applied", o.ClusterVersion(o.VersionCondition("Failing", configv1.ConditionTrue, "ClusterOperatorDegraded", "dns is degraded")),
			clusterReport{Version: "4.18.1", Failing: "ClusterOperatorDegraded: dns is degraded", Available: "4.18.2"}},
		{"a target that is reached", o.ClusterVersion(o.Desired("4.18.1"), o.Available()), clusterReport{Version: "4.18.1"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := clusterOf(&snapshot{Version: tc.cv})
			got.ID, got.Channel = "", ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
