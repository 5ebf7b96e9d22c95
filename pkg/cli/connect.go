// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/go-logr/logr"
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
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	apiserverv1 "github.com/openshift/api/apiserver/v1"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// connect returns a client with the rights of the user. It fails only where there is no kubeconfig: nothing is asked yet.
func (t *tool) connect() (client.WithWatch, error) {
	if t.dial != nil {
		return t.dial()
	}
	config, err := t.flags.ToRESTConfig()
	if err == nil {
		err = t.configured(config)
	}
	if err != nil {
		return nil, explain("find the cluster", err)
	}
	config.UserAgent = "oc-managed-upgrade"
	config.QPS, config.Burst = requestsPerSecond, requestsAtOnce
	log.SetLogger(logr.Discard()) // else the library complains that nobody reads its log
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

// What a command may ask of the API server: draining nodes are looked into one after the other, and a person waits.
const (
	requestsPerSecond = 50
	requestsAtOnce    = 100
)

// defaultServer is what the flags take for the API server where nothing names one.
const defaultServer = "http://localhost:8080"

// errNoKubeconfig says that nothing names a cluster.
var errNoKubeconfig = errors.New("there is no kubeconfig")

// configured returns an error where nothing says which cluster is meant.
func (t *tool) configured(config *rest.Config) error {
	if config.Host != defaultServer || *t.flags.APIServer != "" || os.Getenv("KUBERNETES_MASTER") != "" {
		return nil
	}
	raw, err := t.flags.ToRawKubeConfigLoader().RawConfig()
	if err == nil && len(raw.Clusters) == 0 {
		return errNoKubeconfig
	}
	return err
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

// explain says what to do about an answer of the API server, in the words of an administrator. The act is half a sentence: "list UpgradeJobs". Nil for no
// error.
func explain(act string, err error) error {
	if err == nil {
		return nil
	}
	parts := []string{act}
	// Of a kind that is missing, client-go tells how it looked for it: the advice says the same in words.
	if !isKindMissing(err) {
		parts = append(parts, strings.Replace(err.Error(), "failed to get server groups: ", "", 1))
	}
	if advice := adviceOf(act, err); advice != "" {
		parts = append(parts, advice)
	}
	return explained{strings.Join(parts, ": "), err}
}

// explained is an error in other words.
type explained struct {
	text  string
	cause error
}

func (e explained) Error() string { return e.text }

// Unwrap is what the API server, or the way to it, said.
func (e explained) Unwrap() error { return e.cause }

func isKindMissing(err error) bool {
	return meta.IsNoMatchError(err) || discovery.IsGroupDiscoveryFailedError(err)
}

// adviceOf says what to do about an error; empty if that is not known.
func adviceOf(act string, err error) string {
	var (
		operation *net.OpError
		name      *net.DNSError
		address   *url.Error
		unknown   x509.UnknownAuthorityError
		hostname  x509.HostnameError
		expired   x509.CertificateInvalidError
	)
	switch {
	case apierrors.IsForbidden(err):
		return "ask for the ClusterRole managed-upgrade-operator-viewer, or managed-upgrade-operator-editor to change anything"
	case apierrors.IsUnauthorized(err):
		return "the cluster does not know you (any more): log in again"
	case errors.As(err, &unknown), errors.As(err, &hostname), errors.As(err, &expired):
		return "the certificate of the API server cannot be trusted: look at the certificate-authority of the kubeconfig"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &address) && address.Timeout(), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return "the API server does not answer in time: it may be about to restart, try again (--request-timeout gives it longer)"
	case errors.As(err, &operation), errors.As(err, &name):
		return "the cluster cannot be reached: look at the server of the kubeconfig, and at your network"
	case errors.Is(err, errNoKubeconfig), clientcmd.IsEmptyConfig(err), clientcmd.IsContextNotFound(err):
		return "log in (oc login), or name the file with --kubeconfig"
	case isKindMissing(err):
		return missingKind(err)
	case apierrors.IsNotFound(err) && strings.Contains(act, "ClusterVersion"):
		return "is this an OpenShift cluster?"
	}
	return ""
}

// missingKind says what a cluster lacks that does not know a kind.
func missingKind(err error) string {
	if strings.Contains(err.Error(), v1beta1.GroupVersion.Group) {
		return "the managed upgrade operator is not installed: the cluster does not have its kinds"
	}
	return "the cluster does not have the kinds of OpenShift: is this an OpenShift cluster?"
}
