// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// Kind is what a verdict says.
type Kind int

const (
	kindDone Kind = iota
	kindWait
	kindSkip
	kindFail
)

// Verdict is the answer of a step. Use Done, Wait, Skip or Fail to make one.
type Verdict struct {
	kind     Kind
	after    time.Duration
	reason   string
	message  string
	blockers []v1beta1.Blocker
	// condition of a step that is done and tells something else by it; nil of all others.
	condition func(step string) metav1.Condition
	// paused is set if the step waits for a time that was agreed.
	paused bool
}

// Done says that the step is done: the next one runs in the same pass. An empty message keeps the one that the
// condition has.
func Done(message string) Verdict {
	return Verdict{kind: kindDone, reason: v1beta1.ReasonCompleted, message: message}
}

// Holding says that the step is done, as Done does, and that its condition tells whether something is held, for that reason. The step
// is run again after that time at the latest; zero leaves that to the watches.
func Holding(holds bool, after time.Duration, reason, message string) Verdict {
	return Verdict{kind: kindDone, after: after, reason: reason, message: message, condition: func(step string) metav1.Condition {
		return v1beta1.StepHolds(step, holds, reason, message)
	}}
}

// AgainAfter has the steps run again after that time at the latest, although this one is done: it holds something that has to be renewed.
func (v Verdict) AgainAfter(after time.Duration) Verdict {
	v.after = soonest(v.after, after)
	return v
}

// Pause is a Wait for a time that was agreed, and for nothing else: the job is in phase Paused meanwhile.
func Pause(after time.Duration, reason, message string, blockers ...v1beta1.Blocker) Verdict {
	v := Wait(after, reason, message, blockers...)
	v.paused = true
	return v
}

// Wait says that the step is not done yet and what it waits for. It is run again after that time at the latest; zero
// leaves that to the watches and to the job's own deadlines. The runner fills in since when a blocker stands.
func Wait(after time.Duration, reason, message string, blockers ...v1beta1.Blocker) Verdict {
	return Verdict{kind: kindWait, after: after, reason: reason, message: message, blockers: blockers}
}

// Skip ends the job as Skipped. Only a step that is over once the upgrade has commenced may say so.
func Skip(reason, message string, blockers ...v1beta1.Blocker) Verdict {
	return Verdict{kind: kindSkip, reason: reason, message: message, blockers: blockers}
}

// Fail ends the job as Failed.
func Fail(reason, message string, blockers ...v1beta1.Blocker) Verdict {
	return Verdict{kind: kindFail, reason: reason, message: message, blockers: blockers}
}
