// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// ownerIndex finds UpgradeJobs by the UID of the UpgradeConfig that controls them.
const ownerIndex = "ownerUID"

// SetupCache registers the index that the reconcilers use, and what is read but not watched, so that no pass has to
// wait for it.
func SetupCache(ctx context.Context, c cache.Cache) error {
	if _, err := c.GetInformer(ctx, openshift.MachineConfigMetadata(), cache.BlockUntilSynced(false)); err != nil {
		return fmt.Errorf("cache MachineConfigs: %w", err)
	}
	err := c.IndexField(ctx, &v1beta1.UpgradeJob{}, ownerIndex, func(o client.Object) []string {
		if owner := metav1.GetControllerOf(o); owner != nil {
			return []string{string(owner.UID)}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index UpgradeJobs by owner: %w", err)
	}
	return nil
}

// phaseChanged passes what changes a schedule: a job that came, went, or turned.
var phaseChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1beta1.UpgradeJob), e.ObjectNew.(*v1beta1.UpgradeJob)
		return before.Status.Phase != after.Status.Phase
	},
}

// availableUpdatesChanged passes what may make an update available for a start that is due.
var availableUpdatesChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*configv1.ClusterVersion), e.ObjectNew.(*configv1.ClusterVersion)
		return !slices.EqualFunc(before.Status.AvailableUpdates, after.Status.AvailableUpdates,
			func(a, b configv1.Release) bool { return a.Version == b.Version && a.Image == b.Image })
	},
}

// requestsFor lists objects of a namespace (all namespaces if it is empty) and returns a request for each.
func requestsFor(ctx context.Context, c client.Reader, list client.ObjectList, namespace string, items func() []client.Object) []ctrl.Request {
	if err := c.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		// A list from the cache fails only while the manager stops; after a restart every object is reconciled.
		log.FromContext(ctx).Error(err, "Listing objects for an event failed")
		return nil
	}
	objects := items()
	requests := make([]ctrl.Request, 0, len(objects))
	for _, o := range objects {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)})
	}
	return requests
}

// pointers returns the elements of a list as objects.
func pointers[T any, P interface {
	*T
	client.Object
}](items []T) []client.Object {
	objects := make([]client.Object, 0, len(items))
	for i := range items {
		objects = append(objects, P(&items[i]))
	}
	return objects
}
