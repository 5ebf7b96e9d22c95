// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodeTimes is when what happened to a node, as far as the cluster tells.
type nodeTimes struct {
	Name, Pool string
	// Stages that a node in work has come to, in order of time. Empty for one that is not.
	Stages []nodeStage
	// Done is when the node was done last; zero where that is not known.
	Done time.Time
	// Failed is set for a node that is degraded.
	Failed bool
	// Waits is what a drain waits for in vain.
	Waits string
	// Message is what the cluster says of the node.
	Message string
}

// nodeStage is a stage of the update of a node.
type nodeStage struct {
	Name  string
	Start time.Time
}

// nodesPage is how many objects are read at once.
const nodesPage = 500

// readNodeTimes reads what MachineConfigNodes tell; nothing where the cluster does not have the kind or the user may not read it: a report can do without.
func (s *snapshot) readNodeTimes(ctx context.Context, c client.Client) ([]nodeTimes, error) {
	var all []nodeTimes
	list := &mcfgv1.MachineConfigNodeList{}
	for {
		err := c.List(ctx, list, client.Limit(nodesPage), client.Continue(list.Continue))
		if err != nil {
			return nil, s.doWithout("list MachineConfigNodes", err)
		}
		for i := range list.Items {
			all = append(all, nodeTimesOf(&list.Items[i]))
		}
		if list.Continue == "" {
			return all, nil
		}
	}
}

// stages of a node's update in order, each with the condition that turns True when it begins.
var nodeStages = []struct {
	begins mcfgv1.StateProgress
	name   string
}{
	{mcfgv1.MachineConfigNodeUpdatePrepared, "preparing"},
	{mcfgv1.MachineConfigNodeUpdateCordoned, "draining"},
	{mcfgv1.MachineConfigNodeUpdateDrained, "updating"},
	{mcfgv1.MachineConfigNodeUpdateFilesAndOS, "rebooting"},
	{mcfgv1.MachineConfigNodeUpdateOS, "rebooting"}, // instead of the one before, where the status of image mode is reported
	{mcfgv1.MachineConfigNodeUpdateRebooted, "finishing"},
}

// nodeTimesOf reads the conditions of a MachineConfigNode. While the node is in work, those that are True tell when each stage was over; when it is done, they are
// all reset, and only the time of that is left.
func nodeTimesOf(m *mcfgv1.MachineConfigNode) nodeTimes {
	n := nodeTimes{Name: m.Name, Pool: m.Spec.Pool.Name}
	if updated := meta.FindStatusCondition(m.Status.Conditions, string(mcfgv1.MachineConfigNodeUpdated)); updated != nil && updated.Status == metav1.ConditionTrue {
		n.Done = updated.LastTransitionTime.Time
		return n
	}
	for _, stage := range nodeStages {
		c := meta.FindStatusCondition(m.Status.Conditions, string(stage.begins))
		if c == nil || c.Status != metav1.ConditionTrue {
			continue
		}
		start := c.LastTransitionTime.Time
		if len(n.Stages) > 0 && start.Before(n.Stages[len(n.Stages)-1].Start) {
			continue // of an earlier attempt
		}
		n.Stages = append(n.Stages, nodeStage{stage.name, start})
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, string(mcfgv1.MachineConfigNodeNodeDegraded)); c != nil && c.Status == metav1.ConditionTrue {
		n.Failed, n.Message = true, c.Message
		if len(n.Stages) == 0 {
			n.Stages = []nodeStage{{"degraded", c.LastTransitionTime.Time}}
		}
	}
	return n
}

// mergeNodes adds to what MachineConfigNodes tell what the report knows of nodes in work, which is all there is on clusters without that kind.
func mergeNodes(times []nodeTimes, nodes []nodeReport) []nodeTimes {
	merged := slices.Clone(times)
	for _, node := range nodes {
		i := slices.IndexFunc(merged, func(n nodeTimes) bool { return n.Name == node.Name })
		if i < 0 {
			merged = append(merged, nodeTimes{Name: node.Name, Pool: node.Pool})
			i = len(merged) - 1
		}
		n := &merged[i]
		if since, ok := timeOf(node.Since); ok && len(n.Stages) == 0 {
			n.Stages = []nodeStage{{strings.ToLower(node.Phase), since}}
		}
		n.Message = cmp.Or(n.Message, node.Message)
		n.Failed = n.Failed || node.Phase == "Degraded"
		var held []string
		for _, pod := range node.HeldBy {
			held = append(held, pod.Message)
		}
		n.Waits = strings.Join(held, "; ")
	}
	return merged
}
