// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/appuio/managed-upgrade-operator/pkg/metrics"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// newCollector returns what tells Prometheus of the objects in the manager's cache, once the manager is the leader.
func newCollector(mgr ctrl.Manager, upgraders *upgrader.Finder, o Options) *metrics.Collector {
	return metrics.NewCollector(metrics.Options{
		Reader: mgr.GetCache(), Namespace: o.Namespace, Clock: o.Clock, Version: cmp.Or(o.Version, "devel"),
		Leading: func() bool {
			select {
			case <-mgr.Elected():
				return true
			default:
				return false
			}
		},
		Steps: func(ctx context.Context, name string) []string {
			variant, err := upgraders.Get(ctx, name)
			if err != nil {
				return nil // the job itself says why
			}
			var conditions []string
			for _, step := range variant.Steps() {
				conditions = append(conditions, step.Condition())
			}
			return conditions
		},
	})
}
