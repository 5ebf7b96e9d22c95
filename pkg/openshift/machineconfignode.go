// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

const (
	// MachineConfigNodesLookup is how long a cluster that does not have the kind MachineConfigNode is taken not to have it:
	// it may get it with an upgrade.
	MachineConfigNodesLookup = 10 * time.Minute
	// MaxNodeMessageLength bounds what NodeProgress quotes of what is said of a node, in bytes.
	MaxNodeMessageLength = 1024
)

// machineConfigNodes are the MachineConfigNodes of the cluster, where it has them.
type machineConfigNodes struct {
	answers nodeAnswers[*mcfgv1.MachineConfigNode]

	mutex    sync.Mutex
	missing  bool // the cluster did not have the kind
	lookedAt time.Time
}

// NodeProgress says what the machine-config operator does with the node at present; false if nothing. Where the cluster
// has a MachineConfigNode of that name it says more than the annotations of the node do; one that cannot be read is done
// without. It costs a request per node in work and NodesInterval.
func (c *Cluster) NodeProgress(ctx context.Context, node *metav1.PartialObjectMetadata, now time.Time) (NodeProgress, bool) {
	if _, inWork := NodeInWork(node); !inWork {
		return NodeProgress{}, false
	}
	found, err := c.machineConfigNodes.answers.get(ctx, node.Name, now, NodesInterval, func(ctx context.Context) (*mcfgv1.MachineConfigNode, error) {
		return c.machineConfigNode(ctx, node.Name, now)
	})
	if err != nil {
		log.FromContext(ctx).V(1).Info("The MachineConfigNode is not known", "node", node.Name, "cause", err.Error())
		found = nil
	}
	return JudgeNodeProgress(node, found)
}

// machineConfigNode returns what JudgeNodeProgress reads of the MachineConfigNode, or nil if there is none.
func (c *Cluster) machineConfigNode(ctx context.Context, node string, now time.Time) (*mcfgv1.MachineConfigNode, error) {
	if c.machineConfigNodes.knownMissing(now) {
		return nil, nil
	}
	found := &mcfgv1.MachineConfigNode{}
	err := c.live.Get(ctx, client.ObjectKey{Name: node}, found)
	switch {
	case meta.IsNoMatchError(err):
		c.machineConfigNodes.setMissing(now)
		return nil, nil
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get MachineConfigNode/%s: %w", node, err)
	}
	trimmed := &mcfgv1.MachineConfigNode{}
	trimmed.Spec.ConfigVersion, trimmed.Status.Conditions = found.Spec.ConfigVersion, found.Status.Conditions
	return trimmed, nil
}

func (m *machineConfigNodes) knownMissing(now time.Time) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.missing && now.Sub(m.lookedAt).Abs() < MachineConfigNodesLookup
}

func (m *machineConfigNodes) setMissing(now time.Time) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.missing, m.lookedAt = true, now
}

// JudgeNodeProgress says what the machine-config operator does with the node at present; false if nothing. It goes by the
// annotations of the node, and by the MachineConfigNode where it says more; that may be nil.
//
// Two programs write them one after the other, so either may lag. A MachineConfigNode of another configuration than the
// one that the node is to have tells nothing. One that is further on is believed, one that is not so far is not. And a
// drain goes on for as long as the annotations ask for it: of an earlier attempt, the MachineConfigNode still has what that
// had come to.
func JudgeNodeProgress(node *metav1.PartialObjectMetadata, m *mcfgv1.MachineConfigNode) (NodeProgress, bool) {
	progress, inWork := NodeInWork(node)
	if inWork && m != nil && m.Spec.ConfigVersion.Desired == node.Annotations[desiredConfigAnnotation] {
		progress = refine(progress, node, m)
	}
	progress.Message = v1beta1.Truncate(progress.Message, MaxNodeMessageLength)
	return progress, inWork
}

func refine(progress NodeProgress, node *metav1.PartialObjectMetadata, m *mcfgv1.MachineConfigNode) NodeProgress {
	degraded := stageIn(m, mcfgv1.MachineConfigNodeNodeDegraded, metav1.ConditionTrue)
	switch {
	case progress.Phase == v1beta1.NodePhaseDegraded && (progress.Message != "" || degraded == nil):
		return progress
	case degraded != nil:
		return NodeProgress{v1beta1.NodePhaseDegraded, degraded.Message}
	}
	if phase := phaseOf(m); slices.Index(phases, phase) > comeTo(progress.Phase, node) {
		progress.Phase = phase
	}
	if c := stageIn(m, mcfgv1.MachineConfigNodeUpdateDrained, metav1.ConditionUnknown); c != nil && progress.Phase == v1beta1.NodePhaseDraining {
		progress.Message = drainError(c.Message)
	}
	return progress
}

// phases of a node that is not degraded, in the order in which it goes through them.
var phases = []v1beta1.NodePhase{
	v1beta1.NodePhasePending, v1beta1.NodePhaseDraining, v1beta1.NodePhaseUpdating, v1beta1.NodePhaseRebooting, v1beta1.NodePhaseDone,
}

// comeTo returns how far the node has come at least, as an index of phases.
func comeTo(phase v1beta1.NodePhase, node *metav1.PartialObjectMetadata) int {
	if _, draining := PendingDrain(node); draining {
		return len(phases)
	}
	if phase == v1beta1.NodePhaseUpdating && !strings.HasPrefix(node.Annotations[lastAppliedDrainAnnotation], drainPrefix) {
		return 0 // the daemon has begun, and not asked for a drain yet
	}
	return slices.Index(phases, phase)
}

// phaseOf returns the phase of the node according to the MachineConfigNode, of which the conditions are Unknown that are
// in progress; empty if it does not tell.
func phaseOf(m *mcfgv1.MachineConfigNode) v1beta1.NodePhase {
	for _, s := range []struct { // the latest first: what has failed half-way stays Unknown
		stage mcfgv1.StateProgress
		phase v1beta1.NodePhase
	}{
		{mcfgv1.MachineConfigNodeUpdateUncordoned, v1beta1.NodePhaseDone},
		{mcfgv1.MachineConfigNodeUpdateRebooted, v1beta1.NodePhaseRebooting},
		{mcfgv1.MachineConfigNodeUpdateFilesAndOS, v1beta1.NodePhaseUpdating},
		// These are there instead where the status of image mode is reported.
		{mcfgv1.MachineConfigNodeUpdateFiles, v1beta1.NodePhaseUpdating},
		{mcfgv1.MachineConfigNodeUpdateOS, v1beta1.NodePhaseUpdating},
		{mcfgv1.MachineConfigNodeImagePulledFromRegistry, v1beta1.NodePhaseUpdating},
		{mcfgv1.MachineConfigNodeUpdateDrained, v1beta1.NodePhaseDraining},
	} {
		if stageIn(m, s.stage, metav1.ConditionUnknown) != nil {
			return s.phase
		}
	}
	return ""
}

// stageIn returns the condition of a stage if it has that status, or nil.
func stageIn(m *mcfgv1.MachineConfigNode, stage mcfgv1.StateProgress, status metav1.ConditionStatus) *metav1.Condition {
	c := meta.FindStatusCondition(m.Status.Conditions, string(stage))
	if c == nil || c.Status != status {
		return nil
	}
	return c
}

// What the drain controller of the machine-config operator says around the error of an attempt, and instead of one while
// an attempt goes on.
const (
	drainGoesOn      = "Draining node."
	beforeDrainError = "Error: Node Drain has not succeeded. Error is: "
	afterDrainError  = " The drain will not be complete until desired drainer "
)

// drainError returns why the last attempt to drain the node has failed; empty if that is not known.
func drainError(message string) string {
	if strings.HasPrefix(message, drainGoesOn) {
		return ""
	}
	message, _, _ = strings.Cut(strings.TrimPrefix(message, beforeDrainError), afterDrainError)
	return message
}
