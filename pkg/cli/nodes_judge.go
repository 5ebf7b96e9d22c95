// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/pools"
)

// hostsOf tells how far each node is; of one pool, if one is named.
func hostsOf(s *snapshot, found *hosts, pool string) nodesReport {
	r := nodesReport{Release: s.release(), Nodes: []hostReport{}, NotShown: s.Unread}
	work := make(map[string]*nodeInWork, len(s.Nodes))
	for i := range s.Nodes {
		work[s.Nodes[i].Name] = &s.Nodes[i]
	}
	byName := make(map[string]*mcfgv1.MachineConfigPool, len(s.Pools))
	for i := range s.Pools {
		byName[s.Pools[i].Name] = &s.Pools[i]
	}
	membership := openshift.NewMembership(s.Pools)
	for i := range found.nodes {
		node := &found.nodes[i]
		in := membership.PoolOf(&metav1.PartialObjectMetadata{ObjectMeta: node.ObjectMeta})
		if pool == "" || pool == in {
			r.Nodes = append(r.Nodes, hostOf(s, found, node, byName[in], work[node.Name]))
		}
	}
	return r
}

func hostOf(s *snapshot, found *hosts, node *corev1.Node, pool *mcfgv1.MachineConfigPool, work *nodeInWork) hostReport {
	r := hostReport{
		Name: node.Name, Roles: rolesOf(node), Kubelet: strings.TrimPrefix(node.Status.NodeInfo.KubeletVersion, "v"),
		CurrentConfig: node.Annotations[currentConfigAnnotation],
	}
	r.CurrentVersion = found.versions[r.CurrentConfig]
	if pool != nil {
		r.Pool, r.TargetConfig, r.TargetVersion = pool.Name, pool.Spec.Configuration.Name, s.RenderedBy[pool.Name]
	}
	if r.Pool == "master" {
		r.ControlPlane = controlPlaneVersion(s)
	}
	judgeHost(&r, s, node, pool, work)
	return r
}

// judgeHost fills in the state of the node, why, and since when.
func judgeHost(r *hostReport, s *snapshot, node *corev1.Node, pool *mcfgv1.MachineConfigPool, work *nodeInWork) {
	facts := openshift.JudgeNode(node)
	switch {
	case work != nil:
		judgeWork(r, work)
	case facts.NotReady != nil:
		r.State, r.Reason = hostNotReady, strings.TrimSuffix(facts.NotReady.Reason+": "+facts.NotReady.Message, ": ")
		r.Since = notReadySince(node)
	case facts.CordonedByHand:
		r.State, r.Reason = hostCordoned, "somebody cordoned it"
	case pool == nil:
		r.State = hostUnmanaged
	default:
		judgeIdle(r, s, pool)
	}
}

// judgeIdle fills in the state of a node that nobody works on: whether it has the configuration of its pool, and that is of the release.
func judgeIdle(r *hostReport, s *snapshot, pool *mcfgv1.MachineConfigPool) {
	current, lacks := r.CurrentConfig == r.TargetConfig, ""
	if !openshift.JudgePool(pool, r.TargetVersion, s.release()).Rendered {
		lacks = fmt.Sprintf("has no configuration of %s yet", s.release())
	}
	switch {
	case current && lacks == "":
		r.State = hostDone
	case pool.Spec.Paused:
		r.State, r.Reason = hostPaused, strings.TrimSuffix(fmt.Sprintf("pool %s is paused by %s", pool.Name, pools.Holder(pool)), " by ")
		if lacks != "" {
			r.Reason += ", and " + lacks
		}
	case current:
		r.State, r.Reason = hostPending, fmt.Sprintf("pool %s %s", pool.Name, lacks)
	default:
		r.State, r.Reason = hostPending, "its turn has not come"
	}
}

var workStates = map[v1beta1.NodePhase]string{
	v1beta1.NodePhasePending: hostPending, v1beta1.NodePhaseDraining: hostDraining, v1beta1.NodePhaseUpdating: hostUpdating,
	v1beta1.NodePhaseRebooting: hostRebooting, v1beta1.NodePhaseDone: hostUncordoning, v1beta1.NodePhaseDegraded: hostDegraded,
}

func judgeWork(r *hostReport, work *nodeInWork) {
	n := workOf(work)
	r.State, r.Reason, r.Since, r.HeldBy = workStates[work.Progress.Phase], n.doing(), n.Since, n.HeldBy
	if r.State == hostDraining && len(n.HeldBy) > 0 {
		r.State = hostDrainBlocked
	}
}

func notReadySince(node *corev1.Node) *metav1.Time {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady && !c.LastTransitionTime.IsZero() {
			return &c.LastTransitionTime
		}
	}
	return nil
}

const rolePrefix = "node-role.kubernetes.io/"

// rolesOf are the roles of a node, by name.
func rolesOf(node *corev1.Node) []string {
	var roles []string
	for label := range node.Labels {
		if role, ok := strings.CutPrefix(label, rolePrefix); ok {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	return roles
}

// controlPlaneVersion is the version of Kubernetes that all API servers have come to; empty if that is not known.
func controlPlaneVersion(s *snapshot) string {
	for i := range s.Operators {
		if s.Operators[i].Name != "kube-apiserver" {
			continue
		}
		for _, version := range s.Operators[i].Status.Versions {
			if version.Name == "kube-apiserver" {
				return version.Version
			}
		}
	}
	return ""
}
