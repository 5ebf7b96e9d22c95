// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/pools"
)

// poolsOf tells how far each pool is. When the job releases it stands in the job's status.
func poolsOf(s *snapshot, job *v1beta1.UpgradeJob) []poolReport {
	var reports []poolReport
	for i := range s.Pools {
		reports = append(reports, poolOf(s, &s.Pools[i], job))
	}
	return reports
}

func poolOf(s *snapshot, pool *mcfgv1.MachineConfigPool, job *v1beta1.UpgradeJob) poolReport {
	progress := openshift.JudgePool(pool, s.RenderedBy[pool.Name], s.release())
	st := &pool.Status
	r := poolReport{
		Name: pool.Name, State: progress.State.String(), Message: progress.Message, Machines: st.MachineCount, Updated: st.UpdatedMachineCount, OnRelease: progress.OnRelease,
		Unavailable: st.UnavailableMachineCount, Degraded: st.DegradedMachineCount, Paused: pool.Spec.Paused, PausedBy: pools.Holder(pool),
	}
	r.LeftPaused = pools.Left(r.PausedBy, s.Jobs, s.OneNamespace)
	if job == nil || job.Status.Phase.Finished() {
		return r
	}
	for _, p := range job.Status.Pools {
		if p.Name == pool.Name && pool.Spec.Paused {
			r.UnpauseAfter, r.UnpauseBefore = p.UnpauseAfter, p.UnpauseBefore
		}
	}
	return r
}

// nodesOf tells of the nodes in work.
func nodesOf(s *snapshot) []nodeReport {
	var reports []nodeReport
	for i := range s.Nodes {
		reports = append(reports, workOf(&s.Nodes[i]))
	}
	return reports
}

// workOf tells of a node in work.
func workOf(n *nodeInWork) nodeReport {
	r := nodeReport{Name: n.Name, Pool: n.Pool, Phase: string(n.Progress.Phase), Since: n.Since, Message: n.Progress.Message}
	for _, h := range n.Held {
		r.HeldBy = append(r.HeldBy, heldPodReport{Pod: h.Namespace + "/" + h.Name, Reason: string(h.Reason), Budgets: h.Budgets, Message: h.Message})
	}
	return r
}

// doing says what becomes of the node, for people: what holds its drain up before what the machine-config operator says.
func (n *nodeReport) doing() string {
	if len(n.HeldBy) == 0 {
		return n.Message
	}
	held := make([]string, 0, len(n.HeldBy))
	for _, h := range n.HeldBy {
		held = append(held, fmt.Sprintf("pod %s: %s", h.Pod, h.Message))
	}
	return strings.Join(held, "; ")
}

// remark says how a pool is, for people.
func (p *poolReport) remark(v *view) string {
	switch {
	case p.LeftPaused:
		return "LEFT PAUSED by a job that is over"
	case p.Paused && p.UnpauseAfter != nil && p.UnpauseAfter.After(v.now):
		return fmt.Sprintf("paused until %s, %s", v.moment(p.UnpauseAfter.Time), v.distance(p.UnpauseAfter.Time))
	case p.Paused:
		return "paused by " + cmp.Or(p.PausedBy, "somebody else")
	case p.State == openshift.PoolDegraded.String():
		return p.State + ", " + p.Message
	case p.State == openshift.PoolNotRendered.String():
		return "waits for the configuration of the release"
	case p.Unavailable > 0:
		return fmt.Sprintf("%s, %d unavailable", p.State, p.Unavailable)
	}
	return p.State
}
