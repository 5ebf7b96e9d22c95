// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writeStatus writes the status of obj if it differs from that of base, which is obj as it was read. It fails with a
// conflict if the object was changed since: conditions are a list, which a merge patch replaces as a whole. It tells
// whether it tried.
func writeStatus[T any](ctx context.Context, c client.Client, base, obj client.Object, status func(client.Object) *T) (bool, error) {
	if apiequality.Semantic.DeepEqual(status(base), status(obj)) {
		return false, nil
	}
	return true, patchStatus(ctx, c, base, obj)
}

// patchStatus writes the status of obj, whatever base is. It fails with a conflict if the object was changed since.
func patchStatus(ctx context.Context, c client.Client, base, obj client.Object) error {
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := c.Status().Patch(ctx, obj, patch); err != nil {
		return fmt.Errorf("write the status of %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// setCondition puts a condition into a list, as of now and for the generation that was judged.
func setCondition(conditions *[]metav1.Condition, c metav1.Condition, generation int64, clk clock.PassiveClock) {
	c.ObservedGeneration = generation
	c.LastTransitionTime = metav1.NewTime(clk.Now())
	meta.SetStatusCondition(conditions, c)
}
