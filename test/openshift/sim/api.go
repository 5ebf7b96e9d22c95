// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// versionName is the name of the one ClusterVersion.
const versionName = "version"

// scheme has the kinds that the simulator deals with.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, apiextensionsv1.AddToScheme, configv1.Install, mcfgv1.Install,
	} {
		if err := add(s); err != nil {
			panic(fmt.Sprintf("build scheme: %v", err))
		}
	}
	return s
}()

// newClient returns a client that is limited by the API server alone.
func newClient(cfg *rest.Config) (client.WithWatch, error) {
	tuned := rest.CopyConfig(cfg)
	tuned.QPS = -1
	tuned.UserAgent = "openshift-simulator"
	// The Go types have fields that the CRDs of the default feature set lack,
	// and the API server warns of each one.
	tuned.WarningHandlerWithContext = rest.NoWarnings{}
	c, err := client.NewWithWatch(tuned, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("build client: %w", err)
	}
	return c, nil
}
