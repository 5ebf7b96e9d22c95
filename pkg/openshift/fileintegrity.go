// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Where the FileIntegrity stands whose database is made anew after an upgrade.
const (
	FileIntegrityNamespace = "openshift-file-integrity"
	FileIntegrityName      = "osd-fileintegrity"

	reinitAnnotation = "file-integrity.openshift.io/re-init"
)

// ReinitializeFileIntegrity has the file integrity operator take the files of all nodes as they are now. It is false if the cluster has no such FileIntegrity.
// The operator takes the annotation off when it has begun: to ask again before that changes nothing.
func (c *Cluster) ReinitializeFileIntegrity(ctx context.Context) (bool, error) {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{reinitAnnotation: ""}}})
	if err != nil {
		return false, fmt.Errorf("encode patch of FileIntegrity/%s: %w", FileIntegrityName, err)
	}
	written := &unstructured.Unstructured{}
	written.SetGroupVersionKind(schema.GroupVersionKind{Group: "fileintegrity.openshift.io", Version: "v1alpha1", Kind: "FileIntegrity"})
	written.SetNamespace(FileIntegrityNamespace)
	written.SetName(FileIntegrityName)
	err = c.client.Patch(ctx, written, client.RawPatch(types.MergePatchType, data))
	if withoutKind(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("patch FileIntegrity/%s: %w", FileIntegrityName, err)
	}
	return true, nil
}
