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

// optionalCRDFiles are the manifests of kinds that only some scenarios have, a
// folder each. They come from the same place, but that of FileIntegrity, which is
// reduced: its operator is not part of OpenShift's API.
//
//go:embed crds/*/*.yaml
var optionalCRDFiles embed.FS

// optionalCRDs are the folders of optionalCRDFiles.
const (
	reportCRDs    = "crds/machineconfignodes"
	machineCRDs   = "crds/machines"
	integrityCRDs = "crds/fileintegrities"
)

// CRDs returns the definitions of OpenShift's kinds that every Install creates.
// Those that depend on the scenario are not among them: MachineConfigNode,
// MachineSet, Machine and FileIntegrity.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) { return crdsIn(crdFiles, "crds") }

// crds returns the definitions of the scenario's kinds, and of those that it does not have.
func (s *Scenario) crds() (wanted, unwanted []*apiextensionsv1.CustomResourceDefinition, err error) {
	if wanted, err = CRDs(); err != nil {
		return nil, nil, err
	}
	for folder, want := range map[string]bool{
		reportCRDs: s.MachineConfigNodes, machineCRDs: s.MachineAPI != nil, integrityCRDs: s.FileIntegrity != nil,
	} {
		more, err := crdsIn(optionalCRDFiles, folder)
		switch {
		case err != nil:
			return nil, nil, err
		case want:
			wanted = append(wanted, more...)
		default:
			unwanted = append(unwanted, more...)
		}
	}
	return wanted, unwanted, nil
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
// server serves them all. Those that the scenario does not have are removed.
func installCRDs(ctx context.Context, c client.Client, s *Scenario) error {
	crds, unwanted, err := s.crds()
	if err != nil {
		return err
	}
	for _, crd := range unwanted {
		if err := removeCRD(ctx, c, crd.Name); err != nil {
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
