// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// Nodes finds every Node that is not ready, that somebody cordoned, or that is short of memory, disk or process ids. The
// machine-config operator leaves out a node that is not ready or takes no pods, and counts it as unavailable, which holds
// up the others; one that is short of something sheds pods, and takes none of those that are drained elsewhere.
func Nodes() Check { return nodes{} }

type nodes struct{}

func (nodes) Name() string { return "Nodes" }

func (n nodes) Run(ctx context.Context, request Request) (Report, error) {
	if !enabled(request.Config.CheckNodes) {
		return Report{Skipped: skippedOff}, nil
	}
	all, err := request.Cluster.Nodes(ctx, request.Now, request.MaxAge)
	if err != nil {
		return Report{}, err
	}
	report := Report{Recheck: request.MaxAge}
	for i := range all {
		report.Findings = append(report.Findings, n.findings(&all[i])...)
	}
	return report, nil
}

func (nodes) findings(node *openshift.NodeFacts) []Finding {
	var findings []Finding
	add := func(reason, what, clears string) {
		findings = append(findings, Finding{
			Object:     "Node/" + node.Name,
			Reason:     reason,
			Message:    fmt.Sprintf("Node %s %s", node.Name, what),
			ClearsWhen: fmt.Sprintf("Node %s %s", node.Name, clears),
		})
	}
	if c := node.NotReady; c != nil {
		add("NodeNotReady", fmt.Sprintf("is not ready (%s): %s", c.Reason, c.Message), "reports Ready=True")
	}
	if node.CordonedByHand {
		add("NodeCordoned", "is cordoned, and not by the machine-config operator", "is uncordoned")
	}
	for _, c := range node.Pressures {
		add("Node"+string(c.Type), fmt.Sprintf("is short of %s (%s): %s", pressed[c.Type], c.Reason, c.Message),
			fmt.Sprintf("reports %s=False", c.Type))
	}
	return findings
}

// pressed is what a node is short of by its condition.
var pressed = map[corev1.NodeConditionType]string{
	corev1.NodeMemoryPressure: "memory",
	corev1.NodeDiskPressure:   "disk",
	corev1.NodePIDPressure:    "process ids",
}
