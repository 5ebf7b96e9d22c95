// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// maxNodesLookedInto is how many draining nodes, and how many others in work, are looked into: each costs requests, and who mends one after the other sees the next ones too.
const maxNodesLookedInto = 8

// nodeInWork is a node that the machine-config operator works on.
type nodeInWork struct {
	Name, Pool string
	Progress   openshift.NodeProgress
	// Since is when the operator saw the node first in its phase; nil where it did not tell.
	Since *metav1.Time
	// Held are the pods that its drain waits for in vain.
	Held []openshift.HeldEviction
}

// readMachines adds how far pools and nodes are.
func (s *snapshot) readMachines(ctx context.Context, c client.Client, cluster *openshift.Cluster) error {
	if err := s.readRendered(ctx, cluster); err != nil {
		return err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	err := c.List(ctx, list, client.MatchingFields{openshift.NodeField: "true"})
	if err != nil {
		return s.doWithout("list Nodes", err)
	}
	return s.seeNodes(ctx, cluster, list.Items, "")
}

// seeNodes looks at the nodes of a pool, or at all where none is named, and into the first ones of those in work. It notes of how many it cannot tell what
// holds their drains.
func (s *snapshot) seeNodes(ctx context.Context, cluster *openshift.Cluster, nodes []metav1.PartialObjectMetadata, pool string) error {
	slices.SortFunc(nodes, func(a, b metav1.PartialObjectMetadata) int { return cmp.Compare(a.Name, b.Name) })
	membership, known := openshift.NewMembership(s.Pools), s.knownNodes()
	looked := map[bool]int{} // draining, or not
	for i := range nodes {
		progress, inWork := openshift.NodeInWork(&nodes[i])
		if !inWork {
			continue
		}
		n := nodeInWork{Name: nodes[i].Name, Pool: membership.PoolOf(&nodes[i]), Progress: progress}
		if pool != "" && pool != n.Pool {
			continue
		}
		_, draining := openshift.PendingDrain(&nodes[i])
		if looked[draining]++; looked[draining] <= maxNodesLookedInto {
			if err := n.lookInto(ctx, s, cluster, &nodes[i]); err != nil {
				return err
			}
		}
		if k, ok := known[n.Name]; ok && k.Phase == n.Progress.Phase {
			n.Since = &k.Since
			n.Progress.Message = cmp.Or(n.Progress.Message, k.Message)
		}
		s.Nodes = append(s.Nodes, n)
	}
	if more := looked[true] - maxNodesLookedInto; more > 0 {
		s.unread(fmt.Sprintf("what holds the drains of %d more nodes: only the first %d are looked into", more, maxNodesLookedInto))
	}
	return nil
}

// lookInto asks what the machine-config operator says of the node, and what holds its drain up.
func (n *nodeInWork) lookInto(ctx context.Context, s *snapshot, cluster *openshift.Cluster, node *metav1.PartialObjectMetadata) error {
	if progress, ok := cluster.NodeProgress(ctx, node, s.Now); ok {
		n.Progress = progress
	}
	if _, draining := openshift.PendingDrain(node); !draining {
		return nil
	}
	held, err := cluster.HeldDrain(ctx, n.Name, s.Now)
	n.Held = held
	return s.doWithout("list Pods and PodDisruptionBudgets of draining nodes", err)
}

// knownNodes are the nodes that the statuses of unfinished jobs tell of, by name.
func (s *snapshot) knownNodes() map[string]v1beta1.NodeStatus {
	known := map[string]v1beta1.NodeStatus{}
	for i := range s.Jobs {
		if s.Jobs[i].Status.Phase.Finished() {
			continue
		}
		for _, pool := range s.Jobs[i].Status.Pools {
			for _, node := range pool.Nodes {
				known[node.Name] = node
			}
		}
	}
	return known
}
