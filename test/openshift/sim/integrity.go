// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FileIntegrity is the File Integrity Operator of a managed cluster, and its object
// openshift-file-integrity/osd-fileintegrity.
type FileIntegrity struct {
	// Missing installs the kind, but not the object (installation).
	Missing bool `json:"missing,omitempty"`
	// Reinit passes until the operator has taken note of the annotation
	// file-integrity.openshift.io/re-init, and takes it off. 0 means 50ms.
	Reinit Duration `json:"reinit,omitempty"`
}

const (
	// AnnotationReinits is the simulator's own: how often the database of a
	// FileIntegrity has been built anew. It counts in the write that takes the
	// annotation for it off. See Reinits.
	AnnotationReinits = "openshift-simulator/re-inits"

	annotationReinit   = "file-integrity.openshift.io/re-init"
	integrityNamespace = "openshift-file-integrity"
	integrityName      = "osd-fileintegrity"
)

// integrityKind is the kind FileIntegrity.
var integrityKind = schema.GroupVersionKind{Group: "fileintegrity.openshift.io", Version: "v1alpha1", Kind: "FileIntegrity"}

// Reinits returns how often the database of a FileIntegrity has been built anew
// since it was installed.
func Reinits(integrity client.Object) int {
	count, err := strconv.Atoi(integrity.GetAnnotations()[AnnotationReinits])
	if err != nil {
		return 0 // It has never been counted.
	}
	return count
}

// integrityMetadata is an empty FileIntegrity, of which only the metadata is known.
func integrityMetadata() *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(integrityKind)
	return obj
}

func integrityMetadataList() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(integrityKind.GroupVersion().WithKind(integrityKind.Kind + "List"))
	return list
}

// planIntegrities lets the File Integrity Operator begin anew where it is asked to.
func planIntegrities(v *view, sw *stopwatch) []change {
	after := Duration(0)
	if v.scenario.FileIntegrity != nil {
		after = v.scenario.FileIntegrity.Reinit
	}
	var changes []change
	for key, integrity := range v.integrities {
		asked, found := integrity.Annotations[annotationReinit]
		if !found {
			sw.forget("integrity/" + key.String())
			continue
		}
		if !sw.passed("integrity/"+key.String(), asked, after.or(defaultMachineTime)) {
			continue
		}
		next := integrity.DeepCopy()
		next.SetGroupVersionKind(integrityKind) // Lists leave it out.
		delete(next.Annotations, annotationReinit)
		next.Annotations[AnnotationReinits] = strconv.Itoa(Reinits(integrity) + 1)
		changes = append(changes, change{
			before: integrity, after: next, part: spec,
			note: fmt.Sprintf("file integrity: %s builds its database anew (%s times by now)", key, next.Annotations[AnnotationReinits]),
		})
	}
	return changes
}

// fileIntegrity installs the object, if the scenario has it.
func (i *installation) fileIntegrity(ctx context.Context) error {
	if i.scenario.FileIntegrity == nil {
		return nil
	}
	if err := i.served(ctx, integrityMetadata()); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: integrityNamespace}}
	if err := i.client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", namespace.Name, err)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"config": map[string]any{"gracePeriod": int64(3600), "maxBackups": int64(5)},
			"nodeSelector": map[string]any{
				"node-role.kubernetes.io/worker": "",
			},
		},
	}}
	obj.SetGroupVersionKind(integrityKind)
	obj.SetNamespace(integrityNamespace)
	obj.SetName(integrityName)
	obj.SetAnnotations(map[string]string{"managed.openshift.io/customized": "false"})
	if err := i.client.Delete(ctx, obj.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
		return wrap(err, "delete", obj)
	}
	if i.scenario.FileIntegrity.Missing {
		return nil
	}
	if err := i.client.Create(ctx, obj); err != nil {
		return wrap(err, "create", obj)
	}
	obj.Object["status"] = map[string]any{"phase": "Active"}
	return wrap(i.client.Status().Update(ctx, obj), "update the status of", obj)
}

func (v *validator) fileIntegrity(f *FileIntegrity) {
	if f != nil {
		v.duration("fileIntegrity.reinit", f.Reinit)
	}
}
