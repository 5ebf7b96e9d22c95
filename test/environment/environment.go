// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package environment sets the operator up as an administrator would: a real
// control plane, the simulated OpenShift, a real Prometheus and a real
// Alertmanager, everything of deploy/, and the operator as a process of its own
// with the token of its service account. The end-to-end
// tests, the benchmarks and the demo begin here.
package environment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/pkg/operator"
	"github.com/appuio/managed-upgrade-operator/test/controlplane"
	"github.com/appuio/managed-upgrade-operator/test/monitoring"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// Namespace of the operator, as deploy/ has it.
const Namespace = "managed-upgrade-operator"

// Environment is a cluster with everything but the operator's process.
type Environment struct {
	*controlplane.ControlPlane
	// Client of an administrator, without a cache.
	Client client.WithWatch
	// Monitoring is the Prometheus and the Alertmanager that the operator asks, with no alert firing.
	Monitoring *monitoring.Monitoring

	dir string
}

// Options of an environment.
type Options struct {
	// Audit keeps a log of every request to the API server.
	Audit bool
	// Progress takes a line for each thing that takes long. Nil for silence.
	Progress io.Writer
	// Dir is kept when the environment stops; empty for one that is removed.
	Dir string
}

// Start starts the control plane and applies deploy/. The environment ends by Stop, with ctx, and with the process.
func Start(ctx context.Context, o Options) (*Environment, error) {
	openshiftCRDs, err := sim.CRDs()
	if err != nil {
		return nil, fmt.Errorf("read OpenShift's CRDs: %w", err)
	}
	cp, err := controlplane.Start(ctx, controlplane.Options{
		Dir:                      o.Dir,
		Progress:                 o.Progress,
		Audit:                    o.Audit,
		CRDs:                     openshiftCRDs,
		CRDPaths:                 []string{filepath.Join(Root(), "deploy", "crds")},
		RequireControllerManager: true,
	})
	if err != nil {
		return nil, fmt.Errorf("start the control plane: %w", err)
	}
	e := &Environment{ControlPlane: cp}
	e.Monitoring, err = monitoring.Start(ctx, monitoring.Options{Dir: e.Dir(), Progress: o.Progress})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the monitoring: %w", err), cp.Stop())
	}
	if err := e.prepare(ctx); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

// Stop ends everything, and returns once it is gone.
func (e *Environment) Stop() error {
	return errors.Join(e.Monitoring.Close(), e.ControlPlane.Stop())
}

func (e *Environment) prepare(ctx context.Context) error {
	var err error
	if e.Client, err = NewClient(e.Config()); err != nil {
		return err
	}
	if e.dir, err = os.MkdirTemp(e.Dir(), "operator-"); err != nil {
		return fmt.Errorf("make a folder for the operator: %w", err)
	}
	for _, file := range []string{
		"test/environment/testdata/openshift-config.yaml", "test/environment/testdata/openshift-monitoring.yaml", "test/environment/testdata/openshift-machine-api.yaml",
		"deploy/namespace.yaml", "deploy/rbac/service_account.yaml", "deploy/rbac/cluster_role.yaml", "deploy/rbac/role.yaml",
		"deploy/rbac/leader_election_role.yaml", "deploy/rbac/monitoring.yaml", "deploy/rbac/capacity.yaml", "deploy/rbac/metrics.yaml",
		"deploy/monitoring/prometheus_role.yaml",
		"deploy/admission/cluster_version.yaml", "deploy/admission/machine_config_pool.yaml", "deploy/admission/machines.yaml",
	} {
		if err := e.ApplyFile(ctx, filepath.Join(Root(), file)); err != nil {
			return err
		}
	}
	return nil
}

// NewClient returns a client that knows the kinds of the operator, of OpenShift and of Kubernetes.
func NewClient(config *rest.Config) (client.WithWatch, error) {
	scheme, err := operator.NewScheme()
	if err != nil {
		return nil, err
	}
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("build a client: %w", err)
	}
	return c, nil
}

// ApplyFile creates the objects of a file; those that exist are left as they are.
func (e *Environment) ApplyFile(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	defer file.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("apply %s: %w", path, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if err := e.Client.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("apply %s: create %s %s: %w", path, object.GetKind(), object.GetName(), err)
		}
	}
}

// Root is the root of the source tree.
func Root() string {
	_, file, _, _ := goruntime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}
