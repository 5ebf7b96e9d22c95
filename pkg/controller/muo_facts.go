// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/cincinnati"
	"github.com/appuio/managed-upgrade-operator/pkg/muo"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// judge tells whether the upgrade can be done, and when to judge anew if nothing that is watched changes.
func (p *muoPass) judge(ctx context.Context) (muo.Settings, muo.Judgement, time.Duration, error) {
	settings, problem, err := p.settings(ctx)
	if err != nil {
		return settings, muo.Judgement{}, 0, err
	}
	if problem != nil {
		return settings, muo.Judgement{
			Verdict: muo.Invalid, Reason: muo.ReasonInvalidSettings,
			Message: fmt.Sprintf("%s of ConfigMap %s cannot be used: %v.", muo.ConfigMapKey, muo.ConfigMapName, problem),
		}, 0, nil
	}
	facts := muo.Facts{Settings: settings}
	cv, err := p.Cluster.Version(ctx)
	if client.IgnoreNotFound(err) != nil {
		return settings, muo.Judgement{}, 0, err
	}
	if err == nil {
		facts.Version = cv
	}
	if facts.Version != nil && muo.AsksGraph(p.config, settings, cv) {
		if facts.Edge, err = p.edge(ctx, cv); err != nil {
			return settings, muo.Judgement{}, 0, err
		}
	}
	judgement := muo.Judge(p.config, facts)
	if facts.Edge != nil && judgement.Verdict != muo.Valid {
		return settings, judgement, muoRecheck, nil
	}
	return settings, judgement, 0, nil
}

// settings reads the tunables. problem says why they cannot be used.
func (p *muoPass) settings(ctx context.Context) (settings muo.Settings, problem, err error) {
	config := &corev1.ConfigMap{}
	err = p.Client.Get(ctx, client.ObjectKey{Namespace: p.config.Namespace, Name: muo.ConfigMapName}, config)
	if apierrors.IsNotFound(err) {
		return muo.DefaultSettings(), nil, nil
	}
	if err != nil {
		return muo.Settings{}, nil, fmt.Errorf("get ConfigMap %s: %w", muo.ConfigMapName, err)
	}
	text, ok := config.Data[muo.ConfigMapKey]
	if !ok {
		settings = muo.DefaultSettings()
		settings.Notes = []string{fmt.Sprintf("ConfigMap %s has no key %s", muo.ConfigMapName, muo.ConfigMapKey)}
		return settings, nil, nil
	}
	settings, problem = muo.ParseSettings(text)
	return settings, problem, nil
}

// edge asks the update service for the way to the desired version.
func (p *muoPass) edge(ctx context.Context, cv *configv1.ClusterVersion) (*muo.Edge, error) {
	arch, err := p.architecture(ctx, cv)
	if err != nil {
		return nil, err
	}
	running, desired := openshift.RunningVersion(cv), p.config.Spec.Desired
	graph, err := p.Graph.Graph(ctx, p.now, cincinnati.Query{
		Upstream: string(cv.Spec.Upstream), Channel: desired.Channel, Arch: arch, ClusterID: string(cv.Spec.ClusterID), Version: running,
	})
	if err != nil {
		return &muo.Edge{Problem: err.Error()}, nil //nolint:nilerr // that there is no answer is what is to be told
	}
	edge := &muo.Edge{}
	_, edge.KnowsRunning = graph.Has(running)
	_, edge.KnowsTarget = graph.Has(desired.Version)
	update, exists := graph.Update(running, desired.Version)
	edge.Exists, edge.Image, edge.Risks = exists, update.Payload, update.Risks
	return edge, nil
}

// Labels of nodes.
const (
	masterLabel = "node-role.kubernetes.io/master"
	archLabel   = corev1.LabelArchStable
)

// architecture is that of the releases that the cluster runs: multi, or that of its control plane, on which the cluster-version operator asks
// for updates itself. Empty if it cannot be told.
func (p *muoPass) architecture(ctx context.Context, cv *configv1.ClusterVersion) (string, error) {
	if cv.Status.Desired.Architecture == configv1.ClusterVersionArchitectureMulti {
		return "multi", nil
	}
	for _, options := range [][]client.ListOption{{client.HasLabels{masterLabel}}, nil} { // a hosted control plane has no masters
		nodes := &metav1.PartialObjectMetadataList{}
		nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
		if err := p.Live.List(ctx, nodes, append(options, client.Limit(1))...); err != nil {
			return "", fmt.Errorf("list a Node for the architecture: %w", err)
		}
		if len(nodes.Items) > 0 {
			return nodes.Items[0].Labels[archLabel], nil
		}
	}
	return "", nil
}

// muoJobChanged passes what an UpgradeConfig tells of its job.
var muoJobChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1beta1.UpgradeJob), e.ObjectNew.(*v1beta1.UpgradeJob)
		a, b := &before.Status, &after.Status
		return a.Phase != b.Phase || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			before.Generation != after.Generation ||
			!apiequality.Semantic.DeepEqual(a.Conditions, b.Conditions) || !apiequality.Semantic.DeepEqual(a.Steps, b.Steps) ||
			!apiequality.Semantic.DeepEqual([]any{a.StartTime, a.CompletionTime, a.FromVersion}, []any{b.StartTime, b.CompletionTime, b.FromVersion})
	},
}

// muoVersionChanged passes what may change whether an upgrade can be done.
var muoVersionChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*configv1.ClusterVersion), e.ObjectNew.(*configv1.ClusterVersion)
		a, b := &before.Status, &after.Status
		return before.Generation != after.Generation ||
			!apiequality.Semantic.DeepEqual(a.AvailableUpdates, b.AvailableUpdates) || !apiequality.Semantic.DeepEqual(a.ConditionalUpdates, b.ConditionalUpdates) ||
			!apiequality.Semantic.DeepEqual(a.History, b.History) || !apiequality.Semantic.DeepEqual(a.Desired, b.Desired) ||
			!apiequality.Semantic.DeepEqual(openshift.Condition(a.Conditions, configv1.RetrievedUpdates), openshift.Condition(b.Conditions, configv1.RetrievedUpdates))
	},
}
