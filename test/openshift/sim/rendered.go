// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Annotations of rendered configurations.
const (
	annotationReleaseVersion    = "machineconfiguration.openshift.io/release-image-version"
	annotationControllerVersion = "machineconfiguration.openshift.io/generated-by-controller-version"
)

// renderedName returns the name of a pool's rendered configuration in a release.
func (v *view) renderedName(pool, version string) string {
	return renderedName(pool, version, v.scenario.imageOf(version))
}

func renderedName(pool, version, image string) string {
	return fmt.Sprintf("rendered-%s-%s", pool, digest("rendered", pool, version, image)[:32])
}

// renderedConfig is the configuration of a pool in a release.
func renderedConfig(pool *mcfgv1.MachineConfigPool, name, version string) *mcfgv1.MachineConfig {
	isController := true
	return &mcfgv1.MachineConfig{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Annotations: map[string]string{
				annotationReleaseVersion:    version,
				annotationControllerVersion: digest("machine-config-controller", version)[:40],
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: mcfgv1.GroupVersion.String(), Kind: "MachineConfigPool", Name: pool.Name, UID: pool.UID,
				Controller: &isController, BlockOwnerDeletion: &isController,
			}},
		},
		Spec: mcfgv1.MachineConfigSpec{
			OSImageURL:      "quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:" + digest("os", version),
			KernelType:      "default",
			KernelArguments: []string{},
			Extensions:      []string{},
			Config:          runtime.RawExtension{Raw: []byte(`{"ignition":{"version":"3.4.0"}}`)},
		},
	}
}

// configurationReference is how a pool refers to its rendered configuration.
func configurationReference(name, pool string) mcfgv1.MachineConfigPoolStatusConfiguration {
	ref := mcfgv1.MachineConfigPoolStatusConfiguration{ObjectReference: corev1.ObjectReference{Name: name}}
	for _, source := range []string{"00-%s", "01-%s-container-runtime", "01-%s-kubelet", "99-%s-generated-registries", "99-%s-ssh"} {
		ref.Source = append(ref.Source, corev1.ObjectReference{
			APIVersion: mcfgv1.GroupVersion.String(), Kind: "MachineConfig", Name: fmt.Sprintf(source, pool),
		})
	}
	return ref
}
