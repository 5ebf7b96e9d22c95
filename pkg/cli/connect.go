// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiserverv1 "github.com/openshift/api/apiserver/v1"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// connect returns a client with the rights of the user. It fails only where there is no kubeconfig: nothing is asked yet.
func (t *tool) connect() (client.WithWatch, error) {
	config, err := t.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	config.UserAgent = "oc-managed-upgrade"
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, explain("reach the cluster", err)
	}
	return c, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		batchv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme, v1beta1.AddToScheme, v1alpha1.AddToScheme, apiserverv1.Install, configv1.Install,
		machinev1beta1.Install, mcfgv1.Install,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	metav1.AddMetaToScheme(scheme) //nolint:errcheck // registers fixed types; it returns nil or panics
	return scheme, nil
}

// inNamespaces calls list with the namespaces in which the user wants to look: the one of --namespace; without it all, or, where the user may
// not look into all, the one of the kubeconfig's context.
func (t *tool) inNamespaces(ctx context.Context, list func(context.Context, ...client.ListOption) error) error {
	namespace, err := t.namespace()
	if err != nil {
		return err
	}
	if *t.flags.Namespace != "" {
		return list(ctx, client.InNamespace(namespace))
	}
	err = list(ctx)
	if !apierrors.IsForbidden(err) {
		return err
	}
	return list(ctx, client.InNamespace(namespace))
}

// namespace is the one of --namespace, else that of the kubeconfig's context.
func (t *tool) namespace() (string, error) {
	namespace, _, err := t.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("read the namespace of the kubeconfig: %w", err)
	}
	return namespace, nil
}

// explain says what to do about an answer of the API server, in the words of an administrator. The act is half a sentence: "list UpgradeJobs".
func explain(act string, err error) error {
	var unreachable *url.Error
	var operation *net.OpError
	switch {
	case err == nil:
		return nil
	case meta.IsNoMatchError(err) || discovery.IsGroupDiscoveryFailedError(err):
		return fmt.Errorf("%s: the cluster does not know the kind (%w): is the managed upgrade operator installed, and is this an OpenShift cluster?", act, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w: ask for the ClusterRole managed-upgrade-operator-viewer, or -editor to change anything", act, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: the cluster does not know you any more: log in again (%w)", act, err)
	case errors.As(err, &operation) && errors.As(err, &unreachable):
		return fmt.Errorf("%s: the cluster cannot be reached: %w", act, operation)
	}
	return fmt.Errorf("%s: %w", act, err)
}
