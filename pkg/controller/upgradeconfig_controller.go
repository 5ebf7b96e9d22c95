// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/planner"
	"github.com/appuio/managed-upgrade-operator/pkg/schedule"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// actionSchedule is the action of Events on UpgradeConfigs.
const actionSchedule = "Schedule"

// UpgradeConfigReconciler creates UpgradeJobs at their time and removes old ones.
type UpgradeConfigReconciler struct {
	Client  client.Client
	Cluster *openshift.Cluster
	// Upgraders finds the variant of the config's jobs.
	Upgraders *upgrader.Finder
	Clock     clock.PassiveClock
	Events    events.EventRecorder
	// Namespace that the operator watches; empty for all.
	Namespace string

	retry     *retrier
	freshness *freshness
}

// Reconcile carries out the plan for one UpgradeConfig.
func (r *UpgradeConfigReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	config := &v1beta1.UpgradeConfig{}
	if err := r.Client.Get(ctx, req.NamespacedName, config); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if wait := r.freshness.wait(config); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if !config.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector deletes the jobs, and they clean up after themselves
	}
	base := config.DeepCopy()
	after, err := r.look(ctx, config)
	config.Status.ObservedGeneration = config.Generation
	wrote, writeErr := writeStatus(ctx, r.Client, base, config, upgradeConfigStatus)
	if wrote && writeErr == nil {
		r.freshness.wrote(config)
		r.tell(base, config)
		r.tellPools(base, config)
	}
	err = errors.Join(err, writeErr)
	return r.retry.after(ctx, req, after, err), nil
}

// look does what is to be done for the config, in memory as far as it is its status.
func (r *UpgradeConfigReconciler) look(ctx context.Context, config *v1beta1.UpgradeConfig) (time.Duration, error) {
	all, err := r.Cluster.Pools(ctx)
	if err != nil {
		return 0, err
	}
	after, err := r.schedule(ctx, config, all)
	return after, errors.Join(err, r.tellPausedPools(ctx, config, all))
}

func (r *UpgradeConfigReconciler) schedule(ctx context.Context, config *v1beta1.UpgradeConfig, all []mcfgv1.MachineConfigPool) (time.Duration, error) {
	if config.Status.ScheduleObservedTime == nil {
		config.Status.ScheduleObservedTime = ptr.To(config.CreationTimestamp)
	} else if config.Status.ObservedGeneration != config.Generation {
		config.Status.ScheduleObservedTime = &metav1.Time{Time: r.Clock.Now()}
	}
	facts, err := r.gather(ctx, config)
	if err != nil {
		return 0, err
	}
	job := &config.Spec.JobTemplate.Spec.Config
	_, upgraderErr := r.Upgraders.For(ctx, lifecycle.UpgraderOf(job), job)
	if upgraderErr != nil && !errors.Is(upgraderErr, upgrader.ErrUnusable) {
		return 0, upgraderErr
	}
	plan, notReady := r.plan(config, facts, all, upgraderErr)
	if notReady != nil {
		r.set(config, *notReady)
		r.set(config, v1beta1.NotScheduling(v1beta1.ReasonInvalidConfig, "The configuration cannot be used: "+notReady.Message))
		config.Status.NextPossibleSchedules = nil
		return 0, nil // a change of the spec wakes us
	}
	r.set(config, v1beta1.Ready(v1beta1.ReasonValid, "The configuration can be used."))

	if plan.Create != nil {
		if err := r.create(ctx, config, plan.Create); err != nil {
			r.set(config, v1beta1.NotScheduling(v1beta1.ReasonCreateFailed, openshift.Describe(err)))
			return 0, err
		}
	}
	if !plan.LastScheduled.IsZero() {
		config.Status.LastScheduledUpgrade = &metav1.Time{Time: plan.LastScheduled}
	}
	if skipped := plan.Skipped; skipped != nil && !apiequality.Semantic.DeepEqual(config.Status.LastSkippedStart, skipped) {
		log.FromContext(ctx).Info("A start is skipped", "start", skipped.StartAfter.Time, "reason", skipped.Reason, "message", skipped.Message)
	}
	config.Status.LastSkippedStart = plan.Skipped
	config.Status.NextPossibleSchedules = make([]metav1.Time, 0, len(plan.Starts))
	for _, start := range plan.Starts {
		config.Status.NextPossibleSchedules = append(config.Status.NextPossibleSchedules, metav1.NewTime(start))
	}
	r.set(config, plan.Scheduling)
	return plan.After, r.prune(ctx, config, facts.Jobs)
}

// tell publishes what has turned since base. It runs after the status is written, so that each turn is told once.
func (r *UpgradeConfigReconciler) tell(base, config *v1beta1.UpgradeConfig) {
	before := meta.FindStatusCondition(base.Status.Conditions, v1beta1.ConditionScheduling)
	after := meta.FindStatusCondition(config.Status.Conditions, v1beta1.ConditionScheduling)
	eventType := schedulingEvent(before, after)
	if eventType != "" {
		r.Events.Eventf(config, nil, eventType, after.Reason, actionSchedule, "%s", v1beta1.Truncate(after.Message, maxNote))
	}
	// What is in the way may be described anew in each pass.
	old, skipped := base.Status.LastSkippedStart, config.Status.LastSkippedStart
	told := eventType != "" && skipped != nil && skipped.Reason == after.Reason
	if skipped != nil && !told && (old == nil || !old.StartAfter.Equal(&skipped.StartAfter) || old.Reason != skipped.Reason) {
		r.Events.Eventf(config, nil, corev1.EventTypeNormal, "StartSkipped", actionSchedule, "%s", v1beta1.Truncate(fmt.Sprintf(
			"No job is created for the start at %s (%s): %s", skipped.StartAfter.UTC().Format(time.RFC3339), skipped.Reason, skipped.Message), maxNote))
	}
}

// schedulingEvent returns the type of the Event for a turn of the condition Scheduling; empty if it is not worth one. That
// a job is created, and that it is over, are Events of their own.
func schedulingEvent(before, after *metav1.Condition) string {
	var was string
	if before != nil {
		was = before.Reason
	}
	if after == nil || after.Reason == was {
		return ""
	}
	switch after.Reason {
	case v1beta1.ReasonCreateFailed, v1beta1.ReasonInvalidConfig:
		return corev1.EventTypeWarning
	case v1beta1.ReasonSuspended, v1beta1.ReasonSuspensionWindow, v1beta1.ReasonNoUpdateAvailable:
		return corev1.EventTypeNormal
	case v1beta1.ReasonScheduled:
		switch was {
		case v1beta1.ReasonSuspended, v1beta1.ReasonSuspensionWindow, v1beta1.ReasonInvalidConfig, v1beta1.ReasonCreateFailed:
			return corev1.EventTypeNormal
		}
	}
	return ""
}

// gather reads what a plan needs to know, all of it from the cache.
func (r *UpgradeConfigReconciler) gather(ctx context.Context, config *v1beta1.UpgradeConfig) (planner.Facts, error) {
	jobs, windows := &v1beta1.UpgradeJobList{}, &v1beta1.UpgradeSuspensionWindowList{}
	inNamespace := client.InNamespace(config.Namespace)
	if err := r.Client.List(ctx, jobs, inNamespace, client.MatchingFields{ownerIndex: string(config.UID)}); err != nil {
		return planner.Facts{}, fmt.Errorf("list UpgradeJobs: %w", err)
	}
	if err := r.Client.List(ctx, windows, inNamespace); err != nil {
		return planner.Facts{}, fmt.Errorf("list UpgradeSuspensionWindows: %w", err)
	}
	facts := planner.Facts{Jobs: jobs.Items, Windows: windows.Items}
	cv, err := r.Cluster.Version(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		return planner.Facts{}, err
	}
	if err == nil {
		if update, ok := openshift.HighestAvailable(cv); ok {
			facts.Update = &update
		}
	}
	return facts, nil
}

// plan returns the plan, or the condition that says why there can be none.
func (r *UpgradeConfigReconciler) plan(config *v1beta1.UpgradeConfig, facts planner.Facts, all []mcfgv1.MachineConfigPool, upgraderErr error) (planner.Plan, *metav1.Condition) {
	if upgraderErr != nil {
		return planner.Plan{}, ptr.To(v1beta1.NotReady(v1beta1.ReasonUnknownUpgrader, upgraderErr.Error()))
	}
	if err := validateQueries(config.Spec.JobTemplate.Spec.Config); err != nil {
		return planner.Plan{}, ptr.To(v1beta1.NotReady(v1beta1.ReasonInvalidQuery, err.Error()))
	}
	if err := steps.ValidatePatterns(&config.Spec.JobTemplate.Spec.Config); err != nil {
		return planner.Plan{}, ptr.To(v1beta1.NotReady(v1beta1.ReasonInvalidPattern, err.Error()))
	}
	if err := validatePools(config.Spec.JobTemplate.Spec.Config, all); errors.Is(err, errPoolCannotBeDelayed) {
		return planner.Plan{}, ptr.To(v1beta1.NotReady(v1beta1.ReasonPoolCannotBeDelayed, err.Error()))
	} else if err != nil {
		return planner.Plan{}, ptr.To(v1beta1.NotReady(v1beta1.ReasonInvalidSelector, err.Error()))
	}
	spec := config.Spec.Schedule
	s, err := schedule.Parse(spec.Cron, spec.ISOWeek, spec.Location)
	if err != nil {
		return planner.Plan{}, ptr.To(v1beta1.NotReady(scheduleReason(err), err.Error()))
	}
	plan, err := planner.Make(config, s, facts, r.Clock.Now())
	if err != nil {
		return planner.Plan{}, ptr.To(v1beta1.NotReady(scheduleReason(err), err.Error()))
	}
	return plan, nil
}

// validateQueries looks at the queries of both health checks: hours before a window is better than in it.
func validateQueries(config v1beta1.UpgradeJobConfig) error {
	if err := healthcheck.Validate(config.PreUpgradeHealthChecks); err != nil {
		return fmt.Errorf("preUpgradeHealthChecks.%w", err)
	}
	if err := healthcheck.Validate(config.PostUpgradeHealthChecks); err != nil {
		return fmt.Errorf("postUpgradeHealthChecks.%w", err)
	}
	return nil
}

func scheduleReason(err error) string {
	switch {
	case errors.Is(err, schedule.ErrInvalidCron):
		return v1beta1.ReasonInvalidCron
	case errors.Is(err, schedule.ErrInvalidISOWeek):
		return v1beta1.ReasonInvalidISOWeek
	case errors.Is(err, schedule.ErrInvalidLocation):
		return v1beta1.ReasonInvalidLocation
	default:
		return v1beta1.ReasonNoNextSchedule
	}
}

// create creates the job. One that exists already is the one that an earlier pass created before it could record it.
func (r *UpgradeConfigReconciler) create(ctx context.Context, config *v1beta1.UpgradeConfig, job *v1beta1.UpgradeJob) error {
	err := r.Client.Create(ctx, job)
	if apierrors.IsAlreadyExists(err) {
		existing := &v1beta1.UpgradeJob{}
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(job), existing); err != nil {
			return fmt.Errorf("get UpgradeJob %s: %w", job.Name, err)
		}
		if !metav1.IsControlledBy(existing, config) {
			return fmt.Errorf("create UpgradeJob %s: somebody else created one of this name", job.Name)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("create UpgradeJob %s: %w", job.Name, err)
	}
	version := "none"
	if v := job.Spec.DesiredVersion; v != nil {
		version = v.Version
	}
	log.FromContext(ctx).Info("Created UpgradeJob", "job", job.Name, "startAfter", job.Spec.StartAfter.Time, "version", version)
	r.Events.Eventf(config, job, corev1.EventTypeNormal, "JobCreated", actionSchedule, "Created UpgradeJob %s, version %s, start at %s",
		job.Name, version, job.Spec.StartAfter.UTC().Format(time.RFC3339))
	return nil
}

func (r *UpgradeConfigReconciler) prune(ctx context.Context, config *v1beta1.UpgradeConfig, jobs []v1beta1.UpgradeJob) error {
	for _, job := range planner.Superfluous(config, jobs) {
		err := r.Client.Delete(ctx, &job, client.Preconditions{UID: &job.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete UpgradeJob %s: %w", job.Name, err)
		}
		log.FromContext(ctx).Info("Deleted an UpgradeJob beyond the history limit", "job", job.Name)
	}
	return nil
}

func (r *UpgradeConfigReconciler) set(config *v1beta1.UpgradeConfig, c metav1.Condition) {
	setCondition(&config.Status.Conditions, c, config.Generation, r.Clock)
}

func upgradeConfigStatus(o client.Object) *v1beta1.UpgradeConfigStatus {
	return &o.(*v1beta1.UpgradeConfig).Status
}

// SetupWithManager registers the reconciler and its watches.
func (r *UpgradeConfigReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.retry = newRetrier()
	r.freshness = newFreshness()
	everyConfig := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []ctrl.Request {
		configs := &v1beta1.UpgradeConfigList{}
		return requestsFor(ctx, r.Client, configs, o.GetNamespace(), func() []client.Object { return pointers(configs.Items) })
	})
	everywhere := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []ctrl.Request {
		configs := &v1beta1.UpgradeConfigList{}
		return requestsFor(ctx, r.Client, configs, "", func() []client.Object { return pointers(configs.Items) })
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("upgradeconfig").
		For(&v1beta1.UpgradeConfig{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		Owns(&v1beta1.UpgradeJob{}, builder.WithPredicates(phaseChanged)).
		Watches(&v1beta1.UpgradeSuspensionWindow{}, everyConfig, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&configv1.ClusterVersion{}, everyConfig, builder.WithPredicates(availableUpdatesChanged)).
		Watches(&v1beta1.UpgradeJob{}, everywhere, builder.WithPredicates(poolsLeft)).
		Watches(&mcfgv1.MachineConfigPool{}, everywhere, builder.WithPredicates(poolSettingsChanged)).
		Watches(&v1beta1.Upgrader{}, handler.EnqueueRequestsFromMapFunc(r.configsOf), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}
