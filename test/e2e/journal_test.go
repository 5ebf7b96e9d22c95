// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// journal keeps every revision of the objects that tell what the operator did, with the time of its arrival. A poll
// would see some of them only, and late.
type journal struct {
	mutex    sync.Mutex
	jobs     []revision[*v1beta1.UpgradeJob]
	versions []revision[*configv1.ClusterVersion]
	hookJobs []revision[*batchv1.Job]
	pods     []revision[*corev1.Pod]
	pools    []revision[*mcfgv1.MachineConfigPool]
	nodes    []revision[*corev1.Node]
	drains   []revision[*v1beta1.NodeForceDrain]
}

// revision is an object as it was from a moment on.
type revision[T client.Object] struct {
	seen   time.Time
	object T
}

// startJournal begins to keep revisions, until ctx ends. It goes on when the API server was away.
func startJournal(ctx context.Context) (*journal, error) {
	c, err := cache.New(env.Config(), cache.Options{Scheme: env.Client.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("keep a journal: %w", err)
	}
	j := &journal{}
	err = errors.Join(
		keep(ctx, c, &j.mutex, &j.jobs, &v1beta1.UpgradeJob{}),
		keep(ctx, c, &j.mutex, &j.versions, &configv1.ClusterVersion{}),
		keep(ctx, c, &j.mutex, &j.hookJobs, &batchv1.Job{}),
		keep(ctx, c, &j.mutex, &j.pods, &corev1.Pod{}),
		keep(ctx, c, &j.mutex, &j.pools, &mcfgv1.MachineConfigPool{}),
		keep(ctx, c, &j.mutex, &j.nodes, &corev1.Node{}),
		keep(ctx, c, &j.mutex, &j.drains, &v1beta1.NodeForceDrain{}),
	)
	if err != nil {
		return nil, err
	}
	go func() { _ = c.Start(ctx) }() // it fails only if it is started twice
	if !c.WaitForCacheSync(ctx) {
		return nil, errors.New("keep a journal: the watches do not begin")
	}
	return j, nil
}

func keep[T client.Object](ctx context.Context, c cache.Cache, mutex *sync.Mutex, revisions *[]revision[T], kind T) error {
	informer, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("keep a journal of %T: %w", kind, err)
	}
	add := func(o any) {
		mutex.Lock()
		defer mutex.Unlock()
		*revisions = append(*revisions, revision[T]{time.Now(), o.(T)})
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: add,
		UpdateFunc: func(before, after any) {
			if before.(T).GetResourceVersion() != after.(T).GetResourceVersion() {
				add(after)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("keep a journal of %T: %w", kind, err)
	}
	return nil
}

// jobsSince returns the revisions of all UpgradeJobs that arrived after a moment.
func (j *journal) jobsSince(began time.Time) []revision[*v1beta1.UpgradeJob] {
	return since(j, &j.jobs, began)
}

// versionsSince returns the revisions of OpenShift's ClusterVersion that arrived after a moment.
func (j *journal) versionsSince(began time.Time) []revision[*configv1.ClusterVersion] {
	return since(j, &j.versions, began)
}

// hookJobsSince returns the revisions of batch Jobs that arrived after a moment. All of them are of hooks.
func (j *journal) hookJobsSince(began time.Time) []revision[*batchv1.Job] {
	return since(j, &j.hookJobs, began)
}

// podsSince returns the revisions of pods that arrived after a moment.
func (j *journal) podsSince(began time.Time) []revision[*corev1.Pod] {
	return since(j, &j.pods, began)
}

// poolsSince returns the revisions of machine config pools that arrived after a moment.
func (j *journal) poolsSince(began time.Time) []revision[*mcfgv1.MachineConfigPool] {
	return since(j, &j.pools, began)
}

// nodesSince returns the revisions of nodes that arrived after a moment.
func (j *journal) nodesSince(began time.Time) []revision[*corev1.Node] {
	return since(j, &j.nodes, began)
}

// forceDrainsSince returns the revisions of NodeForceDrains that arrived after a moment.
func (j *journal) forceDrainsSince(began time.Time) []revision[*v1beta1.NodeForceDrain] {
	return since(j, &j.drains, began)
}

func since[T client.Object](j *journal, revisions *[]revision[T], began time.Time) []revision[T] {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	first := slices.IndexFunc(*revisions, func(r revision[T]) bool { return r.seen.After(began) })
	if first < 0 {
		return nil
	}
	return slices.Clone((*revisions)[first:])
}

// knows tells whether the revision has arrived.
func knows[T client.Object](revisions []revision[T], object T) bool {
	return slices.ContainsFunc(revisions, func(r revision[T]) bool {
		return r.object.GetUID() == object.GetUID() && r.object.GetResourceVersion() == object.GetResourceVersion()
	})
}
