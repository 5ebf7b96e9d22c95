// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// versionName is the name of the one ClusterVersion.
const versionName = "version"

// scheme has the kinds that the simulator deals with.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, apiextensionsv1.AddToScheme, configv1.Install, mcfgv1.Install, machinev1beta1.Install,
	} {
		if err := add(s); err != nil {
			panic(fmt.Sprintf("build scheme: %v", err))
		}
	}
	return s
}()

// tuned returns a configuration for clients that are limited by the API server alone.
func tuned(cfg *rest.Config) *rest.Config {
	c := rest.CopyConfig(cfg)
	c.QPS = -1
	c.UserAgent = "openshift-simulator"
	// The Go types have fields that the CRDs of the default feature set lack,
	// and the API server warns of each one.
	c.WarningHandlerWithContext = rest.NoWarnings{}
	return c
}

// newClient returns a client for all kinds of the scheme.
func newClient(cfg *rest.Config) (client.WithWatch, error) {
	c, err := client.NewWithWatch(tuned(cfg), client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("build client: %w", err)
	}
	return c, nil
}

// newEvictor returns a client for evictions. Unlike the other one it can be told
// not to repeat a request that the API server puts off.
func newEvictor(cfg *rest.Config) (rest.Interface, error) {
	core, err := corev1client.NewForConfig(tuned(cfg))
	if err != nil {
		return nil, fmt.Errorf("build client for evictions: %w", err)
	}
	return core.RESTClient(), nil
}
