// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/controlplane"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

const (
	// podsPerNode of the cluster that is drained: 40,000 on 2,000 nodes.
	podsPerNode = 20
	// drainTime is how long each node drains, and drainGrace how long before the end of that its pods are listed.
	drainTime  = 3 * time.Second
	drainGrace = time.Second
	// podsAtOnce is how many pods are created in parallel.
	podsAtOnce = 32
)

// The targets for a roll with a NodeForceDrain.
const (
	targetMemoryDrains = 70.0 // MiB
	targetDrainWrites  = 1.0  // per node, more than a plain upgrade makes
)

// measureDrains measures an upgrade of the large cluster, full of pods, with a NodeForceDrain that looks into each of its nodes. The pods are
// of DaemonSets, so that none is to be evicted: that is the work of others.
func (b *bench) measureDrains(ctx context.Context) error {
	s := b.largeCluster()
	s.Timings.Drain = sim.Duration(drainTime)
	return b.withCluster(ctx, s, func(ctx context.Context) error {
		if err := b.fillNodes(ctx); err != nil {
			return err
		}
		drain := &v1beta1.NodeForceDrain{
			ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: "all-nodes"},
			Spec: v1beta1.NodeForceDrainSpec{
				NodeDrainGracePeriod:      &v1beta1.Duration{Duration: drainGrace},
				PodForceDeleteGracePeriod: &v1beta1.Duration{Duration: drainGrace},
			},
		}
		if err := b.env.Client.Create(ctx, drain); err != nil {
			return fmt.Errorf("create NodeForceDrain %s: %w", drain.Name, err)
		}
		m, err := b.upgradeByHand(ctx, version(1))
		if err != nil {
			return err
		}
		b.tell("with a NodeForceDrain", m)
		usage, err := b.operator.Usage()
		if err != nil {
			return err
		}
		what := fmt.Sprintf("%d nodes, %d pods, a NodeForceDrain", b.nodes, b.nodes*podsPerNode)
		b.add("peak resident memory, "+what+", one upgrade", "MiB", targetMemoryDrains, mebibytes(usage.PeakRSS))
		b.add("writes more than without, "+what, "per node", targetDrainWrites, float64(m.writes()-b.plainWrites)/float64(b.nodes))
		b.add("API requests per upgrade, "+what, "requests", noTarget, float64(len(m.requests)))
		b.add("CPU per upgrade, "+what, "s", noTarget, m.cpu.Seconds())
		return nil
	})
}

// writes counts the requests that change something.
func (m measurement) writes() int {
	return len(m.requests.filter(func(e *controlplane.AuditEvent) bool { return e.Verb != "get" && e.Verb != "list" && e.Verb != "watch" }))
}

// fillNodes creates the pods of DaemonSets on every node.
func (b *bench) fillNodes(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bench-pods"}}
	if err := b.env.Client.Create(ctx, namespace); err != nil {
		return fmt.Errorf("create Namespace %s: %w", namespace.Name, err)
	}
	nodes := &corev1.NodeList{}
	if err := b.env.Client.List(ctx, nodes); err != nil {
		return fmt.Errorf("list Nodes: %w", err)
	}
	b.say("creating %d pods on each of %d nodes", podsPerNode, len(nodes.Items))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(podsAtOnce)
	for i := range nodes.Items {
		for n := range podsPerNode {
			group.Go(func() error { return b.createPod(ctx, namespace.Name, nodes.Items[i].Name, n) })
		}
	}
	return group.Wait()
}

// createPod creates a pod as the DaemonSet controller does. The first ones wait for the service account of their namespace.
func (b *bench) createPod(ctx context.Context, namespace, node string, n int) error {
	daemonSet := fmt.Sprintf("agent-%d", n)
	for {
		err := b.env.Client.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: fmt.Sprintf("%s-%s", daemonSet, node),
				Labels: map[string]string{"app": daemonSet, "controller-revision-hash": "5d8f7c9b6d", "pod-template-generation": "1"},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "apps/v1", Kind: "DaemonSet", Name: daemonSet, UID: "0b1c2d3e-0000-4000-8000-000000000000", Controller: new(true),
				}},
			},
			Spec: corev1.PodSpec{
				NodeName: node, AutomountServiceAccountToken: new(false),
				Containers: []corev1.Container{{Name: "agent", Image: "registry.example.com/platform/agent:v1.2.3", Env: []corev1.EnvVar{{Name: "NODE", Value: node}}}},
			},
		})
		if err == nil {
			return nil
		}
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("create a pod of %s on Node %s: %w", daemonSet, node, err)
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}
