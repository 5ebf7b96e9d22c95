// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// variant returns the upgrader of the job. Whether it does all that the config asks for matters until the job starts.
func (p *pass) variant(ctx context.Context) (upgrader.Upgrader, error) {
	name := lifecycle.UpgraderOf(&p.job.Spec.Config)
	if lifecycle.Started(p.job) {
		return p.Upgraders.Get(ctx, name)
	}
	return p.Upgraders.For(ctx, name, &p.job.Spec.Config)
}

// commenceBy returns when the job fails if its upgrade has not commenced by then; the zero time if its upgrader has no such limit, or if there is
// nothing to upgrade.
func commenceBy(variant upgrader.Upgrader, upgrade *steps.Upgrade) time.Time {
	timeOut := v1beta1.DefaultUpgradeWindow
	if window := upgrade.Job.Spec.Config.UpgradeWindow; window != nil {
		timeOut = window.TimeOut.Or(timeOut)
	}
	if !upgrader.CommencesInWindow(variant) || timeOut == 0 || !upgrade.Needed() {
		return time.Time{}
	}
	return upgrade.RunningSince().Add(timeOut)
}

// upToDate returns what a job is judged by that would fail for not having commenced, although it was about to: a cache that lags behind its write looks the same.
func (p *pass) upToDate(ctx context.Context, variant upgrader.Upgrader, upgrade *steps.Upgrade) (*steps.Upgrade, error) {
	by := commenceBy(variant, upgrade)
	if by.IsZero() || p.now.Before(by) || p.job.Status.CommenceTime == nil || upgrade.Commenced() {
		return upgrade, nil
	}
	live, err := p.Cluster.LiveVersion(ctx)
	if err != nil {
		return nil, err
	}
	p.version = live
	return &steps.Upgrade{Job: p.job, Now: p.now, Version: live}, nil
}

// tellFailure tells those who were told that the upgrade has started that it will not be completed.
func (p *pass) tellFailure(outcome metav1.Condition) {
	if outcome.Type == v1beta1.ConditionSucceeded || len(p.job.Status.Stages) == 0 {
		return
	}
	upgrade := &steps.Upgrade{Job: p.job, Now: p.now, Announce: p.announce}
	upgrade.Tell(v1beta1.StageFailed, outcome.Reason+": "+outcome.Message)
}

// awaitedDelivery passes that a receiver got further, of a job that waits for it.
var awaitedDelivery = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1beta1.UpgradeJob)
		after, isJob := e.ObjectNew.(*v1beta1.UpgradeJob)
		if !ok || !isJob || before.Status.Notifications == nil || after.Status.Notifications == nil {
			return false
		}
		for i := range after.Status.Conditions {
			if after.Status.Conditions[i].Reason == v1beta1.ReasonNotificationPending {
				return !apiequality.Semantic.DeepEqual(before.Status.Notifications.Receivers, after.Status.Notifications.Receivers)
			}
		}
		return false
	},
}
