// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/pools"
)

// tellPausedPools records the pools that jobs which are over have left paused. Every config tells: the next job of any of
// them releases the pools, and a job that left one, or its config, may be gone.
func (r *UpgradeConfigReconciler) tellPausedPools(ctx context.Context, config *v1beta1.UpgradeConfig, all []mcfgv1.MachineConfigPool) error {
	since := map[string]v1beta1.PausedMachineConfigPool{}
	for _, p := range config.Status.PausedMachineConfigPools {
		since[p.Name+" "+p.Job] = p
	}
	var left []v1beta1.PausedMachineConfigPool
	var words []string
	for i := range all {
		namespace, name, isJob := strings.Cut(pools.Holder(&all[i]), "/")
		if !isJob || !r.watches(namespace) || len(left) == v1beta1.MaxPoolStatuses {
			continue
		}
		isLeft, err := r.leftPaused(ctx, client.ObjectKey{Namespace: namespace, Name: name})
		if err != nil {
			return err
		}
		if !isLeft {
			continue
		}
		if namespace != config.Namespace {
			name = pools.Holder(&all[i])
		}
		paused := v1beta1.PausedMachineConfigPool{Name: all[i].Name, Job: name, Since: metav1.NewTime(r.Clock.Now())}
		if known, ok := since[paused.Name+" "+name]; ok {
			paused.Since = known.Since
		}
		left = append(left, paused)
		words = append(words, fmt.Sprintf("%s by UpgradeJob %s", paused.Name, name))
	}
	config.Status.PausedMachineConfigPools = left
	if len(left) == 0 {
		meta.RemoveStatusCondition(&config.Status.Conditions, v1beta1.ConditionMachineConfigPoolsPaused)
		return nil
	}
	r.set(config, v1beta1.MachineConfigPoolsLeftPaused(fmt.Sprintf(
		"Pools were left paused: %s. Their machines do not follow, and get no new certificates, until the next job that gets through the control plane releases them.",
		strings.Join(words, ", "))))
	return nil
}

// watches tells whether jobs of the namespace are known.
func (r *UpgradeConfigReconciler) watches(namespace string) bool {
	return r.Namespace == "" || r.Namespace == namespace
}

// leftPaused tells whether a job in whose name a pool is paused is over, and has given back what it does not keep.
func (r *UpgradeConfigReconciler) leftPaused(ctx context.Context, key client.ObjectKey) (bool, error) {
	job := &v1beta1.UpgradeJob{}
	err := r.Client.Get(ctx, key, job)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("get UpgradeJob %s, in whose name a pool is paused: %w", key.Name, err)
	}
	return pools.LeftBy(job), nil
}

// tellPools publishes that pools have been left paused, and that none is any more.
func (r *UpgradeConfigReconciler) tellPools(base, config *v1beta1.UpgradeConfig) {
	before := meta.FindStatusCondition(base.Status.Conditions, v1beta1.ConditionMachineConfigPoolsPaused)
	after := meta.FindStatusCondition(config.Status.Conditions, v1beta1.ConditionMachineConfigPoolsPaused)
	switch {
	case after != nil && (before == nil || before.Message != after.Message):
		r.Events.Eventf(config, nil, corev1.EventTypeWarning, after.Reason, after.Type, "%s", v1beta1.Truncate(after.Message, maxNote))
	case after == nil && before != nil:
		r.Events.Eventf(config, nil, corev1.EventTypeNormal, v1beta1.ReasonReleased, before.Type, "No pool is left paused any more.")
	}
}

var errPoolCannotBeDelayed = errors.New("pool cannot be delayed")

// validatePools looks at the settings about pools: hours before a window is better than in it.
func validatePools(config v1beta1.UpgradeJobConfig, all []mcfgv1.MachineConfigPool) error {
	rules, err := pools.Parse(config)
	if err != nil {
		return err
	}
	if why := rules.Refused(all); why != "" {
		return fmt.Errorf("%w: %s", errPoolCannotBeDelayed, why)
	}
	return nil
}

// poolSettingsChanged passes what may change what is said of a pool: its labels, who paused it, that it came or went.
var poolSettingsChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*mcfgv1.MachineConfigPool), e.ObjectNew.(*mcfgv1.MachineConfigPool)
		return pools.Holder(before) != pools.Holder(after) || !maps.Equal(before.Labels, after.Labels)
	},
}

// poolsLeft passes the moment in which a job leaves pools paused, or is gone.
var poolsLeft = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return pools.LeftBy(e.ObjectOld.(*v1beta1.UpgradeJob)) != pools.LeftBy(e.ObjectNew.(*v1beta1.UpgradeJob))
	},
}
