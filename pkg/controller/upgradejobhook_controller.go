// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// UpgradeJobHookReconciler tells on each hook whether it can be used and how it fared, and gives a hook that ran for a
// skipped job free for the next one. The hooks are run by UpgradeJobReconciler.
type UpgradeJobHookReconciler struct {
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Upgraders knows the steps that a hook can name.
	Upgraders *upgrader.Finder
	Clock     clock.PassiveClock

	retry     *retrier
	freshness *freshness
}

// Reconcile updates the status of one hook.
func (r *UpgradeJobHookReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hook := &v1beta1.UpgradeJobHook{}
	if err := r.Client.Get(ctx, req.NamespacedName, hook); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if wait := r.freshness.wait(hook); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if !hook.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // it runs for nobody any more
	}
	base := hook.DeepCopy()
	err := errors.Join(r.validate(ctx, hook), r.follow(ctx, hook))
	wrote, writeErr := writeStatus(ctx, r.Client, base, hook, upgradeJobHookStatus)
	if wrote && writeErr == nil {
		r.freshness.wrote(hook)
		logClaim(ctx, base, hook)
	}
	return r.retry.after(ctx, req, 0, errors.Join(err, writeErr)), nil
}

// validate records whether the spec can be used.
func (r *UpgradeJobHookReconciler) validate(ctx context.Context, hook *v1beta1.UpgradeJobHook) error {
	ready, err := r.judge(ctx, hook)
	if err != nil {
		return err
	}
	setCondition(&hook.Status.Conditions, ready, hook.Generation, r.Clock)
	hook.Status.ObservedGeneration = hook.Generation
	return nil
}

// judge tells whether the spec can be used. The API server is asked once for a generation; after a refusal in
// each pass, because it may be a quota or a policy that has changed since.
func (r *UpgradeJobHookReconciler) judge(ctx context.Context, hook *v1beta1.UpgradeJobHook) (metav1.Condition, error) {
	if _, err := metav1.LabelSelectorAsSelector(&hook.Spec.Selector); err != nil {
		return v1beta1.NotReady(v1beta1.ReasonInvalidSelector, fmt.Sprintf(
			"spec.selector cannot be parsed, so that it selects nothing: %v", err)), nil
	}
	known, err := r.Upgraders.Conditions(ctx)
	if err != nil {
		return metav1.Condition{}, err
	}
	// They are those of this process: another version of the operator may have others
	for i, event := range hook.Spec.Events {
		if step := event.Step(); step != "" && !slices.Contains(known, step) {
			return v1beta1.NotReady(v1beta1.ReasonUnknownStep, fmt.Sprintf(
				"spec.events[%d]: no upgrader has a step %s; known: %s.", i, step, strings.Join(known, ", "))), nil
		}
	}
	if hook.Status.ObservedGeneration != hook.Generation || !meta.IsStatusConditionTrue(hook.Status.Conditions, v1beta1.ConditionReady) {
		if refusal, err := r.tryTemplate(ctx, hook); refusal != "" || err != nil {
			return v1beta1.NotReady(v1beta1.ReasonInvalidTemplate, refusal), err
		}
	}
	return v1beta1.Ready(v1beta1.ReasonValid, "The hook can be used."), nil
}

// tryTemplate has the API server judge the Job of the hook, which is not created. It returns why the Job is refused,
// empty if it is not.
func (r *UpgradeJobHookReconciler) tryTemplate(ctx context.Context, hook *v1beta1.UpgradeJobHook) (string, error) {
	job, err := hooks.Trial(r.Client, hook)
	if err != nil {
		return "", err
	}
	err = r.Client.Create(ctx, job, client.DryRunAll)
	switch {
	case err == nil:
		return "", nil
	case apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err):
		// The name and the UID that a dry run makes up are others each time.
		name := regexp.MustCompile(regexp.QuoteMeta(job.GenerateName) + "[a-z0-9]*")
		text := uid.ReplaceAllLiteralString(name.ReplaceAllLiteralString(describeRefusal(err), hook.Name), "...")
		return "The API server refuses the Job: " + text, nil
	}
	return "", fmt.Errorf("try to create a Job of UpgradeJobHook %s: %w", hook.Name, err)
}

var uid = regexp.MustCompile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

// describeRefusal says why a Job is refused. Fields are named as they stand in the hook.
func describeRefusal(err error) string {
	var refused apierrors.APIStatus
	if !errors.As(err, &refused) {
		return err.Error()
	}
	status := refused.Status()
	if status.Details == nil || !slices.ContainsFunc(status.Details.Causes, isAboutField) {
		return status.Message
	}
	var lines []string
	for _, cause := range status.Details.Causes {
		line := cause.Message
		if isAboutField(cause) {
			line = fmt.Sprintf("spec.template.%s: %s", cause.Field, cause.Message)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

func isAboutField(cause metav1.StatusCause) bool { return cause.Field != "" }

// follow records what became of the runs of the hook, and gives up a claim that the job has no use for any more.
func (r *UpgradeJobHookReconciler) follow(ctx context.Context, hook *v1beta1.UpgradeJobHook) error {
	jobs := &v1beta1.UpgradeJobList{}
	if err := r.Client.List(ctx, jobs, client.InNamespace(hook.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list UpgradeJobs: %w", err)
	}
	hook.Status.LastResults = lastResults(hook, jobs.Items)
	if claim := hook.Status.ClaimedBy; claim != nil && !isClaimed(hook, jobs.Items) {
		live := &v1beta1.UpgradeJob{} // the cache may not know a new job yet
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: hook.Namespace, Name: claim.Name}, live)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get UpgradeJob %s, which has claimed the hook: %w", claim.Name, err)
		}
		if err != nil || live.UID != claim.UID || hasNoUseFor(live, hook.Name) {
			hook.Status.ClaimedBy = nil
		}
	}
	return nil
}

func logClaim(ctx context.Context, base, hook *v1beta1.UpgradeJobHook) {
	if claim := base.Status.ClaimedBy; claim != nil && hook.Status.ClaimedBy == nil {
		log.FromContext(ctx).Info("The hook is for the next UpgradeJob: the one that had claimed it was skipped, or deleted before the hook ran", "job", claim.Name)
	}
}

func upgradeJobHookStatus(o client.Object) *v1beta1.UpgradeJobHookStatus {
	return &o.(*v1beta1.UpgradeJobHook).Status
}

// SetupWithManager registers the reconciler and its watches.
func (r *UpgradeJobHookReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.retry = newRetrier()
	r.freshness = newFreshness()
	return ctrl.NewControllerManagedBy(mgr).
		Named("upgradejobhook").
		For(&v1beta1.UpgradeJobHook{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, hookClaimed))).
		Watches(&v1beta1.Upgrader{}, handler.EnqueueRequestsFromMapFunc(r.everyHook), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1beta1.UpgradeJob{}, handler.EnqueueRequestsFromMapFunc(r.hooksOf), builder.WithPredicates(hookRunsTurned)).
		Complete(r)
}
