// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshifttest

import (
	apiserverv1 "github.com/openshift/api/apiserver/v1"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// NewClientBuilder returns a builder of a fake API with the kinds that the operator reads and writes and their status
// subresources. inWork is the index by which nodes are found, under its name; it is a parameter because this package
// serves the tests of the package that defines it. Pods are found by spec.nodeName.
func NewClientBuilder(index string, inWork client.IndexerFunc) *fake.ClientBuilder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		batchv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme, v1beta1.AddToScheme, apiserverv1.Install, configv1.Install, machinev1beta1.Install, mcfgv1.Install,
	} {
		utilruntime.Must(add(scheme))
	}
	return fake.NewClientBuilder().
		WithScheme(scheme).
		WithTypeConverters(managedfields.NewDeducedTypeConverter()). // the default parses the schema of all of Kubernetes each time
		WithStatusSubresource(
			&v1beta1.UpgradeJob{}, &v1beta1.UpgradeJobHook{}, &configv1.ClusterVersion{}, &configv1.ClusterOperator{}, &mcfgv1.MachineConfigPool{},
		).
		WithIndex(&corev1.Node{}, index, inWork).
		WithIndex(&corev1.Pod{}, "spec.nodeName", nodeOfPod)
}

// nodeOfPod is the index by which the API server finds the pods of a node.
func nodeOfPod(o client.Object) []string {
	if pod, ok := o.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
		return []string{pod.Spec.NodeName}
	}
	return nil
}
