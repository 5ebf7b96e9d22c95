// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"embed"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// crdFiles are the manifests of OpenShift's kinds, byte by byte those of
// github.com/openshift/api in the version of go.mod (*/zz_generated.crd-manifests,
// feature set Default); a test compares them.
//
//go:embed crds/*.yaml
var crdFiles embed.FS

// CRDs returns the definitions of OpenShift's kinds that Install creates.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := crdFiles.ReadDir("crds")
	if err != nil {
		return nil, fmt.Errorf("list CRD manifests: %w", err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		data, err := crdFiles.ReadFile("crds/" + file.Name())
		if err != nil {
			return nil, fmt.Errorf("read CRD manifest: %w", err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(data, crd); err != nil {
			return nil, fmt.Errorf("read CRD manifest %s: %w", file.Name(), err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// installCRDs creates the definitions that do not exist and waits until the API
// server serves them all.
func installCRDs(ctx context.Context, c client.Client) error {
	crds, err := CRDs()
	if err != nil {
		return err
	}
	for _, crd := range crds {
		if err := c.Create(ctx, crd); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create CRD %s: %w", crd.Name, err)
		}
	}
	for _, crd := range crds {
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			if err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
				return false, err
			}
			for _, condition := range crd.Status.Conditions {
				if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
					return true, nil
				}
			}
			return false, nil
		})
		if err != nil {
			return fmt.Errorf("wait for CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}
