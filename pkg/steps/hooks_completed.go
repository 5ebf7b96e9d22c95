// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
)

// Conditions of the steps that run hooks.
const (
	ConditionStartHooksCompleted      = "StartHooksCompleted"
	ConditionCompletionHooksCompleted = "CompletionHooksCompleted"
)

// StartHooksCompleted runs the hooks of the event Start, and waits for them.
func StartHooksCompleted() Step {
	return hooksCompleted{ConditionStartHooksCompleted, hooks.Event{
		Name: v1beta1.HookEventStart, Reason: v1beta1.ReasonStarted, Message: "The job has started.",
	}}
}

// CompletionHooksCompleted runs the hooks of the event UpgradeComplete, and waits for them.
func CompletionHooksCompleted() Step {
	return hooksCompleted{ConditionCompletionHooksCompleted, hooks.Event{
		Name: v1beta1.HookEventUpgradeComplete, Reason: v1beta1.ReasonUpgraded, Message: "The cluster is upgraded and healthy.",
	}}
}

type hooksCompleted struct {
	condition string
	event     hooks.Event
}

func (s hooksCompleted) Condition() string { return s.condition }

func (s hooksCompleted) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	verdict, err := hold(ctx, u, s.event)
	if err == nil && verdict.kind == kindDone && verdict.message == "" {
		verdict.message = "There are no hooks of " + string(s.event.Name) + "."
	}
	return verdict, err
}
