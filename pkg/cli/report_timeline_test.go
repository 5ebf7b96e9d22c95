// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// told says what stands in a group of a timeline: "Label [state from-to, ...] detail", in minutes of the night.
func told(t timeline, title string) []string {
	var lines []string
	for _, group := range t.Groups {
		if group.Title != title {
			continue
		}
		for _, l := range group.Lanes {
			var bars []string
			for _, b := range l.Bars {
				open := ""
				if b.Open {
					open = "+"
				}
				bars = append(bars, fmt.Sprintf("%s %g-%g%s", b.State, minutesOf(b.Start), minutesOf(b.End), open))
			}
			for _, tick := range l.Ticks {
				bars = append(bars, fmt.Sprintf("tick %g", minutesOf(tick)))
			}
			lines = append(lines, fmt.Sprintf("%s [%s] %s", l.Label, strings.Join(bars, ", "), l.Detail))
		}
		if group.More != "" {
			lines = append(lines, group.More)
		}
	}
	return lines
}

func minutesOf(t time.Time) float64 { return t.Sub(night).Minutes() }

func factsAt(now float64, job *v1beta1.UpgradeJob) timelineFacts {
	return timelineFacts{Job: job, Now: minute(now).Time}
}

func TestTimelineOfSteps(t *testing.T) {
	waitsFor := func(code string, since float64) func(*v1beta1.UpgradeJob) {
		return func(job *v1beta1.UpgradeJob) {
			job.Status.Blockers = append(job.Status.Blockers, v1beta1.Blocker{Code: code, Since: minute(since), Message: "something"})
		}
	}
	for _, c := range []struct {
		reason string
		job    *v1beta1.UpgradeJob
		steps  []string
		now    float64
		want   []string
		notes  string
	}{{
		reason: "steps that are done, at once too, and those that have not begun",
		job:    nightJob("j", v1beta1.PhaseActive, step("A", 0, 3, "", ""), step("B", 3, 3, "", "")), steps: []string{"A", "B", "C"}, now: 4,
		want: []string{"A [done 0-3] 3 min", "B [done 3-3] 0 s", "C [] not begun"},
	}, {
		reason: "a job that never started has no bars",
		job:    nightJob("j", v1beta1.PhasePending, func(job *v1beta1.UpgradeJob) { job.Status.StartTime = nil }), steps: []string{"A"}, now: -20,
		want: []string{"A [] not begun"},
	}, {
		reason: "a step in work runs until now",
		job:    nightJob("j", v1beta1.PhaseActive, step("A", 1, 0, "ControlPlaneUpdating", ""), waitsFor("ClusterVersionUpdating", 1)), now: 9,
		want: []string{"A [running 1-9+] 8 min so far"},
	}, {
		reason: "what holds it up begins when the oldest blocker came",
		job:    nightJob("j", v1beta1.PhaseActive, step("A", 1, 0, "", ""), waitsFor("DrainBlocked", 6), waitsFor("NodeDegraded", 4), waitsFor("NodeUpdating", 2)), now: 9,
		want: []string{"A [running 1-4, waiting 4-9+] 8 min so far"},
	}, {
		reason: "a blocker that is older than the step does not begin before it",
		job:    nightJob("j", v1beta1.PhaseActive, step("A", 3, 0, "", ""), waitsFor("ClusterOperatorDegraded", -5)), now: 9,
		want: []string{"A [waiting 3-9+] 6 min so far"},
	}, {
		reason: "only the step in work waits, not one that is undone before it",
		job:    nightJob("j", v1beta1.PhaseActive, step("A", 1, 0, "", ""), step("B", 3, 0, "", ""), waitsFor("HookRunning", 4)), now: 9,
		want: []string{"A [running 1-9+] 8 min so far", "B [running 3-4, waiting 4-9+] 6 min so far"},
	}, {
		reason: "a step at which the job failed ends with it",
		job:    nightJob("j", v1beta1.PhaseFailed, step("A", 0, 3, "", ""), step("B", 3, 0, "TimedOut", ""), outcome(v1beta1.Failed("TimedOut", ""), 8)), now: 90,
		want: []string{"A [done 0-3] 3 min", "B [failed 3-8] failed after 5 min"},
	}, {
		reason: "a step of a skipped job was given up",
		job:    nightJob("j", v1beta1.PhaseSkipped, step("A", 0, 0, "Unhealthy", ""), outcome(v1beta1.Skipped("PreHealthCheckFailed", ""), 30)), now: 90,
		want: []string{"A [stopped 0-30] stopped after 30 min"},
	}, {
		reason: "a step that ended before it began, by two clocks, is a moment, and the report says so",
		job:    nightJob("j", v1beta1.PhaseActive, step("A", 5, 4, "", "")), now: 9,
		want: []string{"A [done 5-5] 0 s"}, notes: "ended 1 min before it began",
	}, {
		reason: "a computer whose clock is behind the cluster's",
		job:    nightJob("j", v1beta1.PhaseActive, step("A", 5, 7, "", ""), step("B", 7, 0, "", "")), now: 2,
		want: []string{"A [done 5-7] 2 min", "B [running 7-7+] 0 s so far"}, notes: "The newest time here is 5m0s after the time of the computer",
	}, {
		reason: "a step that was begun again",
		job:    nightJob("j", v1beta1.PhaseActive, step("A", 1, 2, "", ""), func(job *v1beta1.UpgradeJob) { job.Status.Steps[0].Attempts = 3 }), now: 9,
		want: []string{"A [done 1-2] 1 min"}, notes: "A was begun 3 times",
	}} {
		t.Run(c.reason, func(t *testing.T) {
			f := factsAt(c.now, c.job)
			f.Steps = c.steps
			line := timelineOf(f)
			if got := told(line, titleSteps); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if notes := strings.Join(line.Notes, "\n"); !strings.Contains(notes, c.notes) || c.notes == "" && notes != "" {
				t.Errorf("the notes are %q, want %q", notes, c.notes)
			}
		})
	}
}

func TestTimelineOfHooks(t *testing.T) {
	job := nightJob("j", v1beta1.PhaseActive, hook("a", "Start", "", 0, 2, ""), hook("b", "Start", "", 0, 0, ""), hook("a", "Finish", "", 1, 4, "it broke"), hook("c", "Start", "x", 3, 2, ""))
	line := timelineOf(factsAt(9, job))
	want := []string{"a [done 0-2, failed 1-4] 1 failed of 2 runs", "b [running 0-9+] 1 running of 1 run", "c [done 3-3] 1 run"}
	if got := told(line, titleHooks); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if text := line.Groups[0].Lanes[0].Bars[1].Text; !strings.Contains(text, "hook a at Finish: failed after 3 min: it broke") {
		t.Errorf("the failed run is told as %q", text)
	}
}

// TestTimelineKeepsFailedHooks drops runs that went well when there are too many hooks.
func TestTimelineKeepsFailedHooks(t *testing.T) {
	job := nightJob("j", v1beta1.PhaseActive)
	for i := range 60 {
		hook(fmt.Sprintf("good-%02d", i), "Start", "", 0, 1, "")(job)
	}
	hook("bad", "Start", "", 0, 1, "no")(job)
	got := told(timelineOf(factsAt(9, job)), titleHooks)
	if len(got) != maxHookLanes+1 || !strings.HasPrefix(got[0], "bad ") || got[maxHookLanes] != "and 21 more hooks" {
		t.Errorf("the hooks are %q", got)
	}
}

func TestTimelineOfPools(t *testing.T) {
	commenced := func(job *v1beta1.UpgradeJob) { job.Status.CommenceTime = ptr.To(minute(10)) }
	ended := func(job *v1beta1.UpgradeJob) { job.Status.CompletionTime = ptr.To(minute(90)) }
	holds := func(p v1beta1.MachineConfigPoolStatus) func(*v1beta1.UpgradeJob) {
		return func(job *v1beta1.UpgradeJob) {
			p.Name = "worker"
			job.Status.Pools = append(job.Status.Pools, p)
		}
	}
	paused := step("MachineConfigPoolsPaused", 5, 6, "", "")
	towards, at := openshifttest.PoolTowards("4.18.2", 1), openshifttest.PoolAt("4.18.2")
	for _, c := range []struct {
		reason string
		job    *v1beta1.UpgradeJob
		pool   []func(*mcfgv1.MachineConfigPool)
		want   string
		notes  string
	}{{
		reason: "before the upgrade commences nothing of the pool is the job's",
		job:    nightJob("j", v1beta1.PhaseActive), pool: []func(*mcfgv1.MachineConfigPool){towards, poolSince(mcfgv1.MachineConfigPoolUpdating, 20, 3, 1)},
		want: "worker [] 1 of 3 updated",
	}, {
		reason: "a pool that is being updated",
		job:    nightJob("j", v1beta1.PhaseActive, commenced), pool: []func(*mcfgv1.MachineConfigPool){towards, poolSince(mcfgv1.MachineConfigPoolUpdating, 20, 3, 1)},
		want: "worker [running 20-100+, tick 30, tick 40] 1 of 3 updated", notes: "are done (2)",
	}, {
		reason: "a pool that is done: when it began is not known",
		job:    nightJob("j", v1beta1.PhaseActive, commenced), pool: []func(*mcfgv1.MachineConfigPool){at, poolSince(mcfgv1.MachineConfigPoolUpdated, 50, 3, 3)},
		want: "worker [unknown 10-50, tick 30, tick 40] 3 of 3 updated", notes: "not when it began",
	}, {
		reason: "a pool that was done before has nothing to do",
		job:    nightJob("j", v1beta1.PhaseActive, func(job *v1beta1.UpgradeJob) { job.Status.CommenceTime = ptr.To(minute(60)) }),
		pool:   []func(*mcfgv1.MachineConfigPool){at, poolSince(mcfgv1.MachineConfigPoolUpdated, 50, 3, 3)}, want: "worker [] 3 of 3 updated",
	}, {
		reason: "a degraded pool",
		job:    nightJob("j", v1beta1.PhaseActive, commenced),
		pool:   []func(*mcfgv1.MachineConfigPool){towards, openshifttest.PoolCondition(mcfgv1.MachineConfigPoolDegraded, "node x"), poolSince(mcfgv1.MachineConfigPoolDegraded, 33, 3, 1)},
		want:   "worker [failed 33-100+, tick 30, tick 40] 1 of 3 updated",
	}, {
		reason: "a pool that waits for its time",
		job:    nightJob("j", v1beta1.PhasePaused, commenced, paused, holds(v1beta1.MachineConfigPoolStatus{Paused: true, PausedBy: "managed-upgrade-operator/j", UnpauseAfter: ptr.To(minute(300))})),
		pool:   []func(*mcfgv1.MachineConfigPool){towards, openshifttest.PoolPausedBy("managed-upgrade-operator/j"), poolSince("", 0, 3, 0)},
		want:   "worker [waiting 5-100+, tick 30, tick 40] 0 of 3 updated",
	}, {
		reason: "a pool that was released when the control plane was done, which was later than its time",
		job: nightJob("j", v1beta1.PhaseActive, commenced, paused, step("ControlPlaneUpgraded", 10, 70, "", ""),
			holds(v1beta1.MachineConfigPoolStatus{UnpauseAfter: ptr.To(minute(30))})),
		pool: []func(*mcfgv1.MachineConfigPool){towards, poolSince(mcfgv1.MachineConfigPoolUpdating, 71, 3, 1)},
		want: "worker [waiting 5-70, running 71-100+, tick 30, tick 40] 1 of 3 updated", notes: "earliest time",
	}, {
		reason: "a pool whose time has not come, and that somebody has released",
		job:    nightJob("j", v1beta1.PhaseActive, commenced, paused, holds(v1beta1.MachineConfigPoolStatus{UnpauseAfter: ptr.To(minute(300))})),
		pool:   []func(*mcfgv1.MachineConfigPool){towards, poolSince(mcfgv1.MachineConfigPoolUpdating, 20, 3, 1)},
		want:   "worker [running 20-100+, tick 30, tick 40] 1 of 3 updated",
	}, {
		reason: "a pool that somebody else paused is not the job's",
		job:    nightJob("j", v1beta1.PhaseActive, commenced, paused, holds(v1beta1.MachineConfigPoolStatus{Paused: true})),
		pool:   []func(*mcfgv1.MachineConfigPool){towards, openshifttest.PoolPaused(), poolSince("", 0, 3, 0)},
		want:   "worker [tick 30, tick 40] 0 of 3 updated",
	}, {
		reason: "a pool that a failed job left paused",
		job: nightJob("j", v1beta1.PhaseFailed, commenced, ended, paused,
			holds(v1beta1.MachineConfigPoolStatus{Paused: true, PausedBy: "managed-upgrade-operator/j"})),
		pool: []func(*mcfgv1.MachineConfigPool){towards, openshifttest.PoolPausedBy("managed-upgrade-operator/j"), poolSince("", 0, 3, 0)},
		want: "worker [failed 5-90+, tick 30, tick 40] 0 of 3 updated",
	}, {
		reason: "a pool that was not done when the job ended",
		job:    nightJob("j", v1beta1.PhaseFailed, commenced, ended), pool: []func(*mcfgv1.MachineConfigPool){towards, poolSince(mcfgv1.MachineConfigPoolUpdating, 20, 3, 1)},
		want: "worker [stopped 20-90, tick 30, tick 40] 1 of 3 updated",
	}, {
		reason: "a pool that moved after the job belongs to another upgrade",
		job:    nightJob("j", v1beta1.PhaseSucceeded, commenced, func(job *v1beta1.UpgradeJob) { job.Status.CompletionTime = ptr.To(minute(15)) }),
		pool:   []func(*mcfgv1.MachineConfigPool){at, poolSince(mcfgv1.MachineConfigPoolUpdated, 50, 3, 3)}, want: "worker [] 3 of 3 updated",
	}} {
		t.Run(c.reason, func(t *testing.T) {
			f := factsAt(100, c.job)
			f.Pools = []mcfgv1.MachineConfigPool{*openshifttest.Pool("worker", c.pool...)}
			f.Nodes = []nodeTimes{{Name: "a", Pool: "worker", Done: minute(40).Time}, {Name: "b", Pool: "worker", Done: minute(30).Time}, {Name: "c", Pool: "worker", Done: minute(-600).Time}}
			line := timelineOf(f)
			if got := told(line, titlePools); !slices.Equal(got, []string{c.want}) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if notes := strings.Join(line.Notes, "\n"); !strings.Contains(notes, c.notes) {
				t.Errorf("the notes are %q, want %q", notes, c.notes)
			}
		})
	}
}

func TestTimelineOfNodes(t *testing.T) {
	job := nightJob("j", v1beta1.PhaseActive, func(job *v1beta1.UpgradeJob) { job.Status.CommenceTime = ptr.To(minute(10)) })
	f := factsAt(60, job)
	f.Nodes = mergeNodes([]nodeTimes{
		{Name: "done", Pool: "worker", Done: minute(30).Time},
		{Name: "moves", Pool: "worker", Stages: []nodeStage{{"preparing", minute(40).Time}, {"draining", minute(41).Time}, {"updating", minute(45).Time}}},
		{Name: "held", Pool: "worker", Stages: []nodeStage{{"draining", minute(50).Time}}},
		{Name: "skewed", Pool: "worker", Stages: []nodeStage{{"draining", minute(61).Time}}},
	}, []nodeReport{
		{Name: "held", Phase: "Draining", HeldBy: []heldPodReport{{Message: "no disruption"}}},
		{Name: "sick", Pool: "worker", Phase: "Degraded", Since: ptr.To(minute(55)), Message: "disk full"},
	})
	want := []string{
		"sick [failed 55-60+] degraded", "held [waiting 50-60+] draining", "moves [done 40-41, done 41-45, running 45-60+] updating", "skewed [running 61-61+] draining",
	}
	if got := told(timelineOf(f), titleNodes); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	job.Status.Phase, job.Status.CompletionTime = v1beta1.PhaseFailed, ptr.To(minute(58))
	if got := told(timelineOf(f), titleNodes); len(got) != 0 {
		t.Errorf("nodes that are in work now are told of in a job that has ended: %q", got)
	}
	f.Nodes = nil
	if notes := timelineOf(f).Notes; !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "times of nodes are not known") }) {
		t.Errorf("the notes are %q", notes)
	}
}

func TestNodeTimesOf(t *testing.T) {
	condition := func(kind mcfgv1.StateProgress, status metav1.ConditionStatus, at float64) metav1.Condition {
		return metav1.Condition{Type: string(kind), Status: status, LastTransitionTime: minute(at), Message: "said"}
	}
	for _, c := range []struct {
		reason     string
		conditions []metav1.Condition
		want       string
	}{
		{"a node that is done", []metav1.Condition{condition("Updated", "True", 30), condition("UpdatePrepared", "False", 30)}, "done 30"},
		{"a node that drains", []metav1.Condition{condition("Updated", "False", 1), condition("UpdatePrepared", "True", 1), condition("Cordoned", "True", 2), condition("Drained", "Unknown", 2)}, "preparing 1 draining 2"},
		{"a node that reboots", []metav1.Condition{
			condition("Updated", "False", 1), condition("UpdatePrepared", "True", 1), condition("Cordoned", "True", 2), condition("Drained", "True", 5),
			condition("AppliedFilesAndOS", "True", 8), condition("RebootedNode", "Unknown", 8),
		}, "preparing 1 draining 2 updating 5 rebooting 8"},
		{"a node in image mode", []metav1.Condition{
			condition("UpdatePrepared", "True", 1), condition("Cordoned", "True", 2), condition("Drained", "True", 5), condition("AppliedFiles", "True", 6), condition("AppliedOSImage", "True", 8),
		}, "preparing 1 draining 2 updating 5 rebooting 8"},
		{"what is left of an earlier attempt", []metav1.Condition{condition("UpdatePrepared", "True", 9), condition("Cordoned", "True", 10), condition("Drained", "True", 5)}, "preparing 9 draining 10"},
		{"a degraded node", []metav1.Condition{condition("UpdatePrepared", "True", 9), condition("NodeDegraded", "True", 12)}, "preparing 9 failed: said"},
		{"a node that is degraded before anything", []metav1.Condition{condition("NodeDegraded", "True", 12)}, "degraded 12 failed: said"},
		{"a node of which nothing is said", nil, ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			m := openshifttest.MachineConfigNode("n", "worker", "4.18.2")
			m.Status.Conditions = c.conditions
			n := nodeTimesOf(m)
			var got []string
			if !n.Done.IsZero() {
				got = append(got, fmt.Sprintf("done %g", minutesOf(n.Done)))
			}
			for _, s := range n.Stages {
				got = append(got, fmt.Sprintf("%s %g", s.Name, minutesOf(s.Start)))
			}
			if n.Failed {
				got = append(got, "failed: "+n.Message)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
