// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/forcedrain"
)

// drainMemory is what this process knows of a NodeForceDrain beyond its status. It is used by one worker.
type drainMemory struct {
	uid        types.UID
	generation int64
	// selection of that generation, or why there is none.
	selection *forcedrain.Selection
	invalid   *forcedrain.InvalidError
	// drains are followed since the last pass.
	drains []forcedrain.Drain
	// unrecorded are deletions that are not in the status yet, oldest first.
	unrecorded []v1beta1.DeletedPod
	// refused is what the API server said to what it did not permit, and failed how podJQSelector failed, by node as of the last look.
	refused, failed map[string]string
}

// memory returns what is known of the object, for its present spec.
func (r *NodeForceDrainReconciler) memory(key types.NamespacedName, nfd *v1beta1.NodeForceDrain) *drainMemory {
	m := r.memories[key]
	if m == nil || m.uid != nfd.UID {
		m = &drainMemory{uid: nfd.UID, refused: map[string]string{}, failed: map[string]string{}}
		r.memories[key] = m
	}
	if m.selection == nil && m.invalid == nil || m.generation != nfd.Generation {
		m.adopt(nfd)
	}
	if isRecorded(&nfd.Status, m.unrecorded) {
		m.unrecorded = nil // by a write whose answer was lost
	}
	return m
}

// adopt prepares a new spec. When a node is looked at next depends on it.
func (m *drainMemory) adopt(nfd *v1beta1.NodeForceDrain) {
	m.generation, m.selection, m.invalid = nfd.Generation, nil, nil
	selection, err := forcedrain.NewSelection(&nfd.Spec)
	if err == nil {
		m.selection = selection
	} else if !errors.As(err, &m.invalid) {
		m.invalid = &forcedrain.InvalidError{Reason: v1beta1.ReasonError} // cannot be: see NewSelection
	}
	for i := range m.drains {
		m.drains[i].Next = m.drains[i].Next.AddDate(-m.drains[i].Next.Year(), 0, 0)
	}
	clear(m.refused)
	clear(m.failed)
}
