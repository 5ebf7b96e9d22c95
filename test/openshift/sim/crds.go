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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// reportCRDFiles is the manifest of MachineConfigNode, from the same place.
//
//go:embed crds/machineconfignodes/*.yaml
var reportCRDFiles embed.FS

// reportCRD is the name of MachineConfigNode's definition.
const reportCRD = "machineconfignodes.machineconfiguration.openshift.io"

// CRDs returns the definitions of OpenShift's kinds that every Install creates.
// That of MachineConfigNode, which depends on the scenario, is not among them.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) { return crdsIn(crdFiles, "crds") }

// crds returns all definitions of the scenario's kinds.
func (s *Scenario) crds() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	crds, err := CRDs()
	if err != nil || !s.MachineConfigNodes {
		return crds, err
	}
	more, err := crdsIn(reportCRDFiles, "crds/machineconfignodes")
	return append(crds, more...), err
}

// crdsIn reads the manifests of a folder, not of those in it.
func crdsIn(source embed.FS, folder string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := source.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("list CRD manifests: %w", err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		data, err := source.ReadFile(folder + "/" + file.Name())
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
// server serves them all. That of MachineConfigNode is removed where the scenario
// does not have it.
func installCRDs(ctx context.Context, c client.Client, s *Scenario) error {
	crds, err := s.crds()
	if err != nil {
		return err
	}
	if !s.MachineConfigNodes {
		if err := removeCRD(ctx, c, reportCRD); err != nil {
			return err
		}
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

// removeCRD deletes a definition with all objects of its kind, if it exists, and
// waits until it is gone.
func removeCRD(ctx context.Context, c client.Client, name string) error {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := c.Delete(ctx, crd); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete CRD %s: %w", name, err)
	}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait for the end of CRD %s: %w", name, err)
	}
	return nil
}
