// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// poolLanes returns a lane for each machine config pool, by name.
func poolLanes(f timelineFacts, notes *notebook) laneGroup {
	group := laneGroup{Title: titlePools}
	for i := range f.Pools {
		if len(group.Lanes) == maxPoolLanes {
			group.More = fmt.Sprintf("and %d more pools", len(f.Pools)-maxPoolLanes)
			break
		}
		group.Lanes = append(group.Lanes, poolLane(f, &f.Pools[i], notes))
	}
	return group
}

func poolLane(f timelineFacts, pool *mcfgv1.MachineConfigPool, notes *notebook) lane {
	progress := openshift.JudgePool(pool, f.RenderedBy[pool.Name], f.Release)
	l := lane{Label: pool.Name, Detail: fmt.Sprintf("%d of %d updated", progress.OnRelease, pool.Status.MachineCount)}
	from, upgrades := f.Job.Status.CommenceTime, false
	if from != nil {
		var paused []bar
		var released time.Time
		paused, released, upgrades = pausedBars(f, pool, notes)
		l.Bars = paused
		if upgrades {
			l.Bars = append(l.Bars, updatingBars(f, pool, later(from.Time, released), notes)...)
		}
	}
	for _, n := range f.Nodes {
		if n.Pool == pool.Name && f.during(n.Done) {
			l.Ticks = append(l.Ticks, n.Done)
		}
	}
	slices.SortFunc(l.Ticks, time.Time.Compare)
	l.Idle = len(l.Bars) == 0 && len(l.Ticks) == 0
	return l
}

// pausedBars returns the time in which the job held the pool paused, when it was released, and whether it was or needs no release.
func pausedBars(f timelineFacts, pool *mcfgv1.MachineConfigPool, notes *notebook) ([]bar, time.Time, bool) {
	i := slices.IndexFunc(f.Job.Status.Pools, func(p v1beta1.MachineConfigPoolStatus) bool { return p.Name == pool.Name })
	if i < 0 {
		return nil, time.Time{}, true
	}
	p := &f.Job.Status.Pools[i]
	ours := p.Paused && p.PausedBy == f.Job.LockKey()
	if !ours && p.UnpauseAfter == nil {
		return nil, time.Time{}, true
	}
	start := pausedFrom(f.Job)
	if ours {
		b := bar{Start: start, End: later(f.Now, start), Open: true, State: barWaiting, Text: fmt.Sprintf("pool %s: paused by the job", pool.Name)}
		if f.Job.Status.Phase.Finished() {
			b.State, b.Text = barFailed, fmt.Sprintf("pool %s: left paused by the job, which has ended", pool.Name)
			b.End = later(f.end(), start)
		}
		return []bar{b}, time.Time{}, false
	}
	released := releasedAt(f, p)
	if released.After(f.Now) {
		return nil, time.Time{}, true // paused by somebody else, or not at all: the job tells nothing of it
	}
	notes.add("When a delayed pool was released is not recorded; drawn is the earliest time at which the job could.")
	return []bar{{Start: start, End: later(released, start), State: barWaiting, Text: fmt.Sprintf("pool %s: paused by the job", pool.Name)}}, released, true
}

// pausedFrom is when the job paused its pools.
func pausedFrom(job *v1beta1.UpgradeJob) time.Time {
	for _, s := range job.Status.Steps {
		if s.Condition == steps.ConditionMachineConfigPoolsPaused {
			return s.StartTime.Time
		}
	}
	if t, ok := timeOf(job.Status.StartTime); ok {
		return t
	}
	return job.Spec.StartAfter.Time
}

// releasedAt is the earliest time at which a delayed pool can have been released: its own, and when the control plane was upgraded.
func releasedAt(f timelineFacts, p *v1beta1.MachineConfigPoolStatus) time.Time {
	at := p.UnpauseAfter.Time
	for _, s := range f.Job.Status.Steps {
		if t, ok := timeOf(s.CompletionTime); ok && s.Condition == steps.ConditionControlPlaneUpgraded {
			at = later(at, t)
		}
	}
	return at
}

// updatingBars returns when the machines of a pool were updated, from its conditions: since when it is being updated, or since when it is not any more.
func updatingBars(f timelineFacts, pool *mcfgv1.MachineConfigPool, from time.Time, notes *notebook) []bar {
	if since, message, ok := poolCondition(pool, mcfgv1.MachineConfigPoolDegraded); ok && !f.Job.Status.Phase.Finished() {
		return []bar{{Start: later(since, from), End: f.Now, Open: true, State: barFailed, Text: fmt.Sprintf("pool %s: degraded: %s", pool.Name, message)}}
	}
	if since, _, ok := poolCondition(pool, mcfgv1.MachineConfigPoolUpdating); ok && !f.Job.Status.Phase.Finished() {
		return []bar{{Start: later(since, from), End: later(f.Now, later(since, from)), Open: true, State: barRunning, Text: fmt.Sprintf("pool %s: machines are updated", pool.Name)}}
	}
	if since, _, ok := poolCondition(pool, mcfgv1.MachineConfigPoolUpdating); ok && f.during(since) {
		return []bar{{Start: later(since, from), End: later(f.end(), later(since, from)), State: barStopped, Text: fmt.Sprintf("pool %s: not done when the job ended", pool.Name)}}
	}
	since, _, ok := poolCondition(pool, mcfgv1.MachineConfigPoolUpdated)
	if !ok || !f.during(since) {
		return nil
	}
	notes.add("Of a pool that is updated, the cluster records when it was done, but not when it began: its bar is hatched and begins with the upgrade, or with its release.")
	return []bar{{Start: earlier(from, since), End: since, State: barUnknown, Text: fmt.Sprintf("pool %s: done; when it began is not recorded", pool.Name)}}
}

// poolCondition returns since when a condition of a pool is True; false if it is not.
func poolCondition(pool *mcfgv1.MachineConfigPool, conditionType mcfgv1.MachineConfigPoolConditionType) (time.Time, string, bool) {
	for i := range pool.Status.Conditions {
		if c := &pool.Status.Conditions[i]; c.Type == conditionType && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time, c.Message, true
		}
	}
	return time.Time{}, "", false
}

// end is until when something can have happened in the job.
func (f timelineFacts) end() time.Time {
	if t, ok := timeOf(f.Job.Status.CompletionTime); ok {
		return t
	}
	return f.Now
}

// during says whether a moment lies between the time at which the job commenced and its end: what the cluster tells of another time belongs to another upgrade.
func (f timelineFacts) during(at time.Time) bool {
	commenced, ok := timeOf(f.Job.Status.CommenceTime)
	return ok && !at.Before(commenced) && !at.After(f.end().Add(tolerableSkew))
}

// nodeLanes returns a lane for each node in work while the job is, what has failed and what waits first; the nodes that are done are ticks of their pools.
func nodeLanes(f timelineFacts, notes *notebook) laneGroup {
	group := laneGroup{Title: titleNodes}
	if _, commenced := timeOf(f.Job.Status.CommenceTime); !commenced {
		return group
	}
	done := 0
	var inWork []*nodeTimes
	for i := range f.Nodes {
		n := &f.Nodes[i]
		switch {
		case len(n.Stages) > 0 && !f.Job.Status.Phase.Finished():
			inWork = append(inWork, n)
		case f.during(n.Done):
			done++
		}
	}
	slices.SortStableFunc(inWork, func(a, b *nodeTimes) int {
		return cmp.Or(-compareBools(a.Failed, b.Failed), -compareBools(a.Waits != "", b.Waits != ""), cmp.Compare(a.Name, b.Name))
	})
	for _, n := range inWork[:min(len(inWork), maxNodeLanes)] {
		group.Lanes = append(group.Lanes, nodeLane(f, n))
	}
	if more := len(inWork) - maxNodeLanes; more > 0 {
		group.More = fmt.Sprintf("and %d more in work", more)
	}
	if done > 0 {
		notes.add("Nodes that are done (%d) have no rows: each is a tick in the row of its pool, at the time when it was done. When it began is not recorded by the cluster.", done)
	}
	if len(f.Nodes) == 0 {
		notes.add("The times of nodes are not known: the cluster has no MachineConfigNodes, or they may not be read.")
	}
	return group
}

// nodeLane returns the lane of a node in work: a bar for each stage that it went through.
func nodeLane(f timelineFacts, n *nodeTimes) lane {
	last := n.Stages[len(n.Stages)-1]
	l := lane{Label: n.Name, Detail: last.Name}
	for i, s := range n.Stages {
		b := bar{Start: s.Start, State: barDone, Text: fmt.Sprintf("node %s: %s", n.Name, s.Name)}
		if i < len(n.Stages)-1 {
			b.End = later(n.Stages[i+1].Start, s.Start)
			l.Bars = append(l.Bars, b)
			continue
		}
		b.End, b.Open, b.State = later(f.Now, s.Start), true, barRunning
		switch {
		case n.Failed:
			b.State = barFailed
			l.Detail = "degraded"
		case n.Waits != "":
			b.State = barWaiting
		}
		if text := cmp.Or(n.Waits, n.Message); text != "" {
			b.Text += ": " + text
		}
		l.Bars = append(l.Bars, b)
	}
	return l
}
