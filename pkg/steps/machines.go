// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/pools"
)

const (
	// drainPatience is how long a node may drain before anybody asks what holds it up: most drains are over by then, or
	// wait for pods that are ending.
	drainPatience = 2 * time.Second
	// maxNodesLookedInto is how many draining nodes, and how many others, are looked into at once, those first that are
	// longest where they are: each costs requests, and who mends one after the other sees the next ones too.
	maxNodesLookedInto = 8
	// maxNodeMessageLength bounds what is told of one node, in bytes.
	maxNodeMessageLength = 512
)

// machines is what a pass has seen of the cluster's pools and nodes before its first step.
type machines struct {
	nodes []nodeInWork // those longest in their phase first
	after time.Duration
	// written are the pools that the pass has paused or released.
	written []*mcfgv1.MachineConfigPool
}

func (m *machines) wrote(pool *mcfgv1.MachineConfigPool) { m.written = append(m.written, pool) }

// correct puts into the status what the pass has written of pools since it looked.
func (m *machines) correct(status *v1beta1.UpgradeJobStatus) {
	for _, pool := range m.written {
		for i := range status.Pools {
			if status.Pools[i].Name == pool.Name {
				status.Pools[i].Paused, status.Pools[i].PausedBy = pool.Spec.Paused, pools.Holder(pool)
				if !pool.Spec.Paused && status.Pools[i].State == v1beta1.PoolStatePaused {
					status.Pools[i].State = v1beta1.PoolStateUpdating
				}
			}
		}
	}
}

// nodeInWork is a node that the machine-config operator works on.
type nodeInWork struct {
	name, pool string
	progress   openshift.NodeProgress
	since      time.Time
	held       []openshift.HeldEviction
}

// observe looks at pools and nodes, and records in the status of the job, in memory, how far they are. What cannot be
// read stays as it was: the API server comes and goes while masters reboot.
func observe(ctx context.Context, u *Upgrade) machines {
	all, err := u.Cluster.Pools(ctx)
	if err != nil {
		log.FromContext(ctx).V(1).Info("The pools are not known", "cause", err.Error())
		return machines{}
	}
	seen, err := seeNodes(ctx, u, all)
	if err != nil {
		log.FromContext(ctx).V(1).Info("The nodes in work are not known", "cause", err.Error())
		return machines{}
	}
	judged, err := judgePools(ctx, u.Cluster, all, comingTo(u))
	if err != nil {
		log.FromContext(ctx).V(1).Info("How far the pools are is not known", "cause", err.Error())
		return seen
	}
	rules, err := pools.Parse(u.Job.Spec.Config)
	if err != nil {
		rules = &pools.Rules{} // the step that needs them tells
	}
	status := make([]v1beta1.MachineConfigPoolStatus, 0, len(judged))
	for _, p := range judged[:min(len(judged), v1beta1.MaxPoolStatuses)] {
		status = append(status, poolStatus(u.Job, p, rules.For(p.pool), seen.nodes))
	}
	u.Job.Status.Pools = status
	return seen
}

// comingTo is the version that the cluster runs, or is on its way to.
func comingTo(u *Upgrade) string {
	if history := u.Version.Status.History; len(history) > 0 {
		return history[0].Version
	}
	return ""
}

// seeNodes returns the nodes in work, and looks into those that are longest where they are.
func seeNodes(ctx context.Context, u *Upgrade, all []mcfgv1.MachineConfigPool) (machines, error) {
	found, err := u.Cluster.NodesInWork(ctx)
	if err != nil || len(found) == 0 {
		return machines{}, err
	}
	known := knownPhases(u.Job)
	membership := openshift.NewMembership(all)
	byName := make(map[string]*metav1.PartialObjectMetadata, len(found))
	var m machines
	for i := range found {
		node := &found[i]
		progress, _ := openshift.NodeInWork(node)
		n := nodeInWork{name: node.Name, pool: membership.PoolOf(node), progress: progress}
		n.tellSince(u, known)
		m.nodes = append(m.nodes, n)
		byName[node.Name] = node
	}
	slices.SortFunc(m.nodes, func(a, b nodeInWork) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.name, b.name))
	})
	draining, others := 0, 0
	for i := range m.nodes {
		n := &m.nodes[i]
		_, drains := openshift.PendingDrain(byName[n.name])
		kind := &others
		if drains {
			kind = &draining
		}
		if *kind++; *kind > maxNodesLookedInto {
			continue
		}
		if left := n.since.Add(drainPatience).Sub(u.Now); left > 0 && drains {
			m.after = soonest(m.after, left)
			continue
		}
		n.lookInto(ctx, u, byName[n.name])
		n.tellSince(u, known)
	}
	return m, nil
}

// tellSince says since when the node is in its phase: as this process has seen it, or an earlier one.
func (n *nodeInWork) tellSince(u *Upgrade, known map[string]v1beta1.NodeStatus) {
	n.since = u.Cluster.PhaseSince(n.name, n.progress.Phase, u.Now)
	if k, ok := known[n.name]; ok && k.Phase == n.progress.Phase && k.Since.Time.Before(n.since) {
		n.since = k.Since.Time
	}
}

// knownPhases are the nodes that the job's status has.
func knownPhases(job *v1beta1.UpgradeJob) map[string]v1beta1.NodeStatus {
	known := map[string]v1beta1.NodeStatus{}
	for i := range job.Status.Pools {
		for _, n := range job.Status.Pools[i].Nodes {
			known[n.Name] = n
		}
	}
	return known
}

// lookInto asks what the machine-config operator says of the node, and what holds its drain up.
func (n *nodeInWork) lookInto(ctx context.Context, u *Upgrade, node *metav1.PartialObjectMetadata) {
	if progress, ok := u.Cluster.NodeProgress(ctx, node, u.Now); ok {
		n.progress = progress
	}
	if _, draining := openshift.PendingDrain(node); !draining {
		return
	}
	held, err := u.Cluster.HeldDrain(ctx, n.name, u.Now)
	if err != nil {
		log.FromContext(ctx).V(1).Info("What holds the drain of a node up is not known", "node", n.name, "cause", err.Error())
		return
	}
	n.held = held
}

// message says what else is to be known of the node.
func (n *nodeInWork) message() string {
	if len(n.held) == 0 {
		return n.progress.Message
	}
	words := make([]string, 0, len(n.held))
	for _, h := range n.held {
		words = append(words, h.String())
	}
	return strings.Join(words, "; ")
}

// poolStatus is what the status of the job tells of a pool.
func poolStatus(job *v1beta1.UpgradeJob, p judgedPool, rule pools.Rule, nodes []nodeInWork) v1beta1.MachineConfigPoolStatus {
	st := &p.pool.Status
	s := v1beta1.MachineConfigPoolStatus{
		Name: p.pool.Name, State: v1beta1.PoolState(p.State.String()), Paused: p.pool.Spec.Paused, PausedBy: pools.Holder(p.pool),
		Machines: st.MachineCount, Updated: st.UpdatedMachineCount, Unavailable: st.UnavailableMachineCount, Degraded: st.DegradedMachineCount,
		CurrentConfig: st.Configuration.Name, TargetConfig: p.pool.Spec.Configuration.Name,
		Message: v1beta1.Truncate(rule.Note(), maxNodeMessageLength),
	}
	if rule.Delayed() {
		s.UnpauseAfter = ptr.To(metav1.NewTime(rule.UnpauseAfter(job)))
		if before, ok := rule.UnpauseBefore(job); ok {
			s.UnpauseBefore = ptr.To(metav1.NewTime(before))
		}
	}
	for i := range nodes {
		if nodes[i].pool == p.pool.Name {
			s.NodesInWork++
			s.Nodes = append(s.Nodes, nodes[i].status())
		}
	}
	s.Nodes = s.Nodes[:min(len(s.Nodes), v1beta1.MaxNodeStatuses)]
	slices.SortFunc(s.Nodes, func(a, b v1beta1.NodeStatus) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

func (n *nodeInWork) status() v1beta1.NodeStatus {
	return v1beta1.NodeStatus{
		Name: n.name, Phase: n.progress.Phase, Since: metav1.NewTime(n.since),
		Message: v1beta1.Truncate(n.message(), maxNodeMessageLength),
	}
}

// Codes of blockers that name nodes, and what is on them.
const (
	blockerDrainBlocked = "DrainBlocked"
	blockerNodeDegraded = "NodeDegraded"
	blockerNodeUpdating = "NodeUpdating"
)

// blockers returns what is to be told of the nodes of these pools: first what does not go on by itself, then what does.
func (m *machines) blockers(of map[string]bool) (stuck, moving []v1beta1.Blocker) {
	for i := range m.nodes {
		n := &m.nodes[i]
		if !of[n.pool] {
			continue
		}
		for _, h := range n.held {
			stuck = append(stuck, v1beta1.Blocker{
				Code: blockerDrainBlocked, Object: "Pod/" + h.Namespace + "/" + h.Name,
				Message:    fmt.Sprintf("Node %s of pool %s is draining and waits for %s", n.name, n.pool, h),
				ClearsWhen: fmt.Sprintf("pod %s/%s has left node %s", h.Namespace, h.Name, n.name),
			})
		}
		b := v1beta1.Blocker{
			Code: blockerNodeUpdating, Object: "Node/" + n.name,
			Message:    fmt.Sprintf("Node %s of pool %s %s", n.name, n.pool, n.progress),
			ClearsWhen: fmt.Sprintf("node %s runs the new configuration and is schedulable", n.name),
		}
		if n.progress.Phase == v1beta1.NodePhaseDegraded {
			b.Code, b.ClearsWhen = blockerNodeDegraded, fmt.Sprintf("the machine-config daemon of node %s can go on", n.name)
			stuck = append(stuck, b)
			continue
		}
		moving = append(moving, b)
	}
	return stuck, moving
}

// NeedsAttention tells whether a blocker is about something that does not go on by itself, and so is to be told at once.
func NeedsAttention(b v1beta1.Blocker) bool {
	return b.Code == blockerDrainBlocked || b.Code == blockerNodeDegraded
}

// soonest returns the shorter of two waits, of which zero means none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
