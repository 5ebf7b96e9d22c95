// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

const (
	// forcedDrainsRetry is after how long it is tried again to create a NodeForceDrain.
	forcedDrainsRetry   = 10 * time.Second
	blockerForcedDrains = "DrainsNotForced"
)

// ForceDrains keeps the NodeForceDrain of a job.
type ForceDrains interface {
	// Ensure creates it, unless it is there.
	Ensure(ctx context.Context, job *v1beta1.UpgradeJob, spec v1beta1.NodeForceDrainSpec) error
	// Remove deletes it, if it is there.
	Remove(ctx context.Context, job *v1beta1.UpgradeJob) error
}

// WithForcedDrains has pods deleted that hold up the drain of a node, as config.nodeDrain and config.pdbForceDrainTimeout say, from when the step first
// waits until the job ends. It is a NodeForceDrain of the job's that says so.
func WithForcedDrains(step Step) Step { return withForcedDrains{step} }

type withForcedDrains struct{ Step }

func (s withForcedDrains) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	spec, wanted := ForcedDrain(&u.Job.Spec.Config)
	if !wanted || u.ForceDrains == nil || !u.Commenced() {
		return s.Step.Run(ctx, u)
	}
	verdict, err := s.Step.Run(ctx, u)
	if err != nil || verdict.kind != kindWait {
		return verdict, err
	}
	if err := u.ForceDrains.Ensure(ctx, u.Job, spec); apierrors.IsConflict(err) {
		return Verdict{}, err
	} else if err != nil { // the upgrade goes on all the same, and how far it is has to be seen
		verdict = verdict.AgainAfter(forcedDrainsRetry)
		verdict.blockers = append(verdict.blockers, v1beta1.Blocker{
			Code: blockerForcedDrains, Object: "NodeForceDrain/" + u.Job.Name, Message: "Pods that hold up drains are not deleted: " + openshift.Describe(err),
			ClearsWhen: "the NodeForceDrain of the job can be created",
		})
	}
	return verdict, nil
}

// Unwrap returns the step itself.
func (s withForcedDrains) Unwrap() Step { return s.Step }

// ForcedDrain returns what the config says of pods that hold up the drain of a node, and false if it leaves all of them alone. The nodes of
// the control plane are left to OpenShift.
func ForcedDrain(config *v1beta1.UpgradeJobConfig) (v1beta1.NodeForceDrainSpec, bool) {
	drain := config.NodeDrain
	if drain == nil {
		drain = &v1beta1.NodeDrain{}
	}
	if config.PDBForceDrainTimeout == nil || drain.DisableDrainStrategies {
		return v1beta1.NodeForceDrainSpec{}, false
	}
	timeOut := drain.TimeOut.Or(v1beta1.DefaultNodeDrainTimeout)
	expected := drain.ExpectedNodeDrainTime.Or(v1beta1.DefaultExpectedNodeDrainTime)
	protected := config.PDBForceDrainTimeout.Duration
	if protected == 0 {
		protected = expected
	}
	return v1beta1.NodeForceDrainSpec{
		NodeSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "node-role.kubernetes.io/master", Operator: metav1.LabelSelectorOpDoesNotExist},
			{Key: "node-role.kubernetes.io/control-plane", Operator: metav1.LabelSelectorOpDoesNotExist},
		}},
		IgnoredNamespacePatterns: drain.IgnoredNamespacePatterns,
		NodeDrainGracePeriod:     duration(timeOut),
		ProtectedPodGracePeriod:  duration(protected),
		// A pod that asks for much time to end, such as a database, gets what the others have to go at all.
		PodForceDeleteGracePeriod: duration(max(timeOut, expected)),
	}, true
}

func duration(d time.Duration) *v1beta1.Duration { return &v1beta1.Duration{Duration: d} }

// ForcedDrainsEnded is cleanup: it removes the NodeForceDrain of the job.
func ForcedDrainsEnded() Step { return forcedDrainsEnded{} }

type forcedDrainsEnded struct{}

func (forcedDrainsEnded) Condition() string { return "ForcedDrainsEnded" }

func (forcedDrainsEnded) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	if _, wanted := ForcedDrain(&u.Job.Spec.Config); !wanted || u.ForceDrains == nil {
		return Done(""), nil
	}
	return Done(""), u.ForceDrains.Remove(ctx, u.Job)
}
