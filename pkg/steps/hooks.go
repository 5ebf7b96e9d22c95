// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
)

// hold lets the hooks of an event run, and answers Done when the upgrade may go on. Before it changes anything it takes
// the lock.
func hold(ctx context.Context, u *Upgrade, event hooks.Event) (Verdict, error) {
	if u.Hooks == nil { // nothing is changed in this pass
		return Done(""), nil
	}
	event.Time = u.Now
	progress, err := u.Hooks.Emit(ctx, event)
	switch {
	case progress.Aborted != nil: // whatever the others do
		return Fail(v1beta1.ReasonHookFailed, HookAborted(*progress.Aborted)), nil
	case err != nil:
		return Verdict{}, err
	case len(progress.Running) == 0:
		return Done(HooksRan(progress)), nil
	}
	return u.awaitHooks(progress), nil
}

// awaitHooks waits for hooks.
func (u *Upgrade) awaitHooks(progress hooks.Progress) Verdict {
	return u.awaitBeforeCommencing(0, v1beta1.ReasonHooksRunning, HooksRunning(progress), HookBlockers(progress))
}

// awaitBeforeCommencing waits. Before the upgrade has commenced it does so no longer than the job's window is open.
func (u *Upgrade) awaitBeforeCommencing(after time.Duration, reason, message string, blockers []v1beta1.Blocker) Verdict {
	if !u.Needed() || u.Commenced() {
		return Wait(after, reason, message, blockers...)
	}
	before := u.CommenceBefore()
	if u.Now.After(before) {
		return Skip(v1beta1.ReasonExpired, fmt.Sprintf("The upgrade could not commence by %s. %s", stamp(before), message), blockers...)
	}
	return Wait(soonest(after, before.Sub(u.Now)+time.Millisecond), reason, message, blockers...)
}

// HookAborted says which hook ended the job, and why.
func HookAborted(run v1beta1.HookRun) string {
	return fmt.Sprintf("UpgradeJobHook %s failed at %s: %s", run.UpgradeJobHook, run.HookEvent, run.Message)
}

// HooksRan says how the hooks of an event fared; nothing if there were none.
func HooksRan(p hooks.Progress) string {
	if p.Succeeded+len(p.Ignored) == 0 {
		return ""
	}
	message := fmt.Sprintf("Hooks of %s: %d of %d succeeded.", p.Event, p.Succeeded, p.Succeeded+len(p.Ignored))
	for i, run := range p.Ignored {
		if i == maxHooksNamed {
			return message + fmt.Sprintf(" %d more failed and are ignored.", len(p.Ignored)-i)
		}
		message += fmt.Sprintf(" UpgradeJobHook %s failed and is ignored: %s", run.UpgradeJobHook, v1beta1.Truncate(run.Message, 160))
	}
	return message
}

// maxHooksNamed is how many hooks a message names.
const maxHooksNamed = 3

// HooksRunning says which hooks are waited for.
func HooksRunning(p hooks.Progress) string {
	names := make([]string, 0, maxHooksNamed+1)
	for i, run := range p.Running {
		if i == maxHooksNamed {
			names = append(names, fmt.Sprintf("and %d more", len(p.Running)-i))
			break
		}
		names = append(names, v1beta1.Truncate(run.UpgradeJobHook, 80))
	}
	return fmt.Sprintf("Waiting for the hooks of %s: %s.", p.Event, strings.Join(names, ", "))
}

// HookBlockers are the hooks that are waited for.
func HookBlockers(p hooks.Progress) []v1beta1.Blocker {
	blockers := make([]v1beta1.Blocker, 0, len(p.Running))
	for _, run := range p.Running {
		blockers = append(blockers, v1beta1.Blocker{
			Code:       v1beta1.ReasonHookRunning,
			Object:     "UpgradeJobHook/" + run.UpgradeJobHook,
			Message:    fmt.Sprintf("UpgradeJobHook %s of %s runs as Job %s.", run.UpgradeJobHook, run.HookEvent, run.Job),
			ClearsWhen: fmt.Sprintf("Job %s has finished", run.Job),
		})
	}
	return blockers
}
