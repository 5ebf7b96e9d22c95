// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// selectHooks returns the hooks that want the event, in order of their names, and claims those that run for one job only.
func (p *Pass) selectHooks(ctx context.Context, event Event) ([]v1beta1.UpgradeJobHook, error) {
	all, err := p.hooksFor(ctx, event)
	if err != nil {
		return nil, err
	}
	wanted := slices.DeleteFunc(all, func(h v1beta1.UpgradeJobHook) bool { return !slices.Contains(h.Spec.Events, event.Name) })
	for i := range wanted {
		if hook := &wanted[i]; hook.Spec.Run == v1beta1.HookRunNext && hook.Status.ClaimedBy == nil {
			if err := p.claim(ctx, hook); err != nil {
				return nil, err
			}
		}
	}
	return wanted, nil
}

// hooksFor returns the hooks that are for the job, whatever their events, in order of their names. A hook whose selector
// cannot be used selects nothing, and says so in its own condition.
func (p *Pass) hooksFor(ctx context.Context, event Event) ([]v1beta1.UpgradeJobHook, error) {
	all, err := p.list(ctx, event)
	if err != nil {
		return nil, err
	}
	hooks := slices.DeleteFunc(all, func(h v1beta1.UpgradeJobHook) bool {
		late := !event.Name.Holds() && h.CreationTimestamp.After(event.Time)
		return late || !h.DeletionTimestamp.IsZero() || !Selects(&h, p.Job)
	})
	slices.SortFunc(hooks, func(a, b v1beta1.UpgradeJobHook) int { return strings.Compare(a.Name, b.Name) })
	return hooks, nil
}

// list returns all hooks that there are. A hook and the job that it is for are often created in one go, and a hook is mended and
// the job resumed: the cache may know of the job before it knows of the hook, and is not asked then.
func (p *Pass) list(ctx context.Context, event Event) ([]v1beta1.UpgradeJobHook, error) {
	list := &v1beta1.UpgradeJobHookList{}
	reader := client.Reader(p.Client)
	if event.Name == v1beta1.HookEventCreate || p.Job.LastResume() != nil {
		reader = p.Live
	}
	if err := reader.List(ctx, list, client.InNamespace(p.Job.Namespace)); err != nil {
		return nil, fmt.Errorf("list UpgradeJobHooks: %w", err)
	}
	return list.Items, nil
}

// takenAway tells whether the hook, which the job had, is not meant for the event any more. That another job has it, or that its
// selector cannot be read, takes it from nobody.
func takenAway(hook *v1beta1.UpgradeJobHook, job *v1beta1.UpgradeJob, event Event) bool {
	if !hook.DeletionTimestamp.IsZero() || !slices.Contains(hook.Spec.Events, event.Name) {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(&hook.Spec.Selector)
	return err == nil && !selector.Matches(labels.Set(job.Labels))
}

// Selects tells whether the hook is for the job, whatever its events.
func Selects(hook *v1beta1.UpgradeJobHook, job *v1beta1.UpgradeJob) bool {
	if claim := hook.Status.ClaimedBy; hook.Spec.Run == v1beta1.HookRunNext && claim != nil && claim.UID != job.UID {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(&hook.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(job.Labels))
}

// claim takes the hook for the job. If another job has taken it since the cache was written, the write is a conflict.
func (p *Pass) claim(ctx context.Context, hook *v1beta1.UpgradeJobHook) error {
	base := hook.DeepCopy()
	hook.Status.ClaimedBy = &v1beta1.HookClaim{Name: p.Job.Name, UID: p.Job.UID}
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := p.Client.Status().Patch(ctx, hook, patch); err != nil {
		return fmt.Errorf("claim UpgradeJobHook %s: %w", hook.Name, err)
	}
	return nil
}
