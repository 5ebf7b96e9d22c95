// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
)

// Where OpenShift has its monitoring, and the certificates of its routes.
const (
	monitoringNamespace = "openshift-monitoring"
	prometheusRoute     = "thanos-querier"
	alertmanagerRoute   = "alertmanager-main"
	managedNamespace    = "openshift-config-managed"
	ingressCertificates = "default-ingress-cert"
	certificatesKey     = "ca-bundle.crt"
)

var routeKind = schema.GroupVersionKind{Group: "route.openshift.io", Version: "v1", Kind: "Route"}

// monitoringOptions say where to ask for alerts, and with which credentials.
type monitoringOptions struct {
	prometheusURL, alertmanagerURL, tokenFile, caFile string
}

func (o *monitoringOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.prometheusURL, "prometheus-url", "",
		"URL of Prometheus or Thanos. The token of the kubeconfig is not sent there. The route thanos-querier of OpenShift where none is given.")
	flags.StringVar(&o.alertmanagerURL, "alertmanager-url", "",
		"URL of Alertmanager, which knows the silenced alerts. Only together with --prometheus-url; the route alertmanager-main of OpenShift where neither is given.")
	flags.StringVar(&o.tokenFile, "prometheus-token-file", "", "File with a bearer token for both. The token of the kubeconfig where none is given.")
	flags.StringVar(&o.caFile, "prometheus-ca-file", "", "File with the CA certificates of both. Those of this computer, of the kubeconfig and of OpenShift's ingress where none is given.")
}

// monitoringServers is the way to the cluster's monitoring.
type monitoringServers struct {
	// client asks it; nil if there is no way.
	client *monitoring.Client
	// missing says why there is no way, and what to do about it.
	missing string
	// distrust says what to do where the certificates of the servers cannot be verified.
	distrust string
}

// findMonitoring returns the way to Prometheus and Alertmanager. It fails only for flags that cannot be used.
func (t *tool) findMonitoring(ctx context.Context, c client.Client, o monitoringOptions) (monitoringServers, error) {
	if o.alertmanagerURL != "" && o.prometheusURL == "" { // the token that OpenShift's routes get would be sent there
		return monitoringServers{}, usagef("--alertmanager-url can be given only together with --prometheus-url")
	}
	for _, file := range []string{o.tokenFile, o.caFile} {
		if file == "" {
			continue
		}
		if _, err := os.Stat(file); err != nil {
			return monitoringServers{}, usagef("a file for Prometheus cannot be read: %v", err)
		}
	}
	servers := monitoringServers{distrust: "give the CA certificates by --prometheus-ca-file"}
	options := monitoring.Options{PrometheusURL: o.prometheusURL, AlertmanagerURL: o.alertmanagerURL, TokenFile: o.tokenFile, CAFile: o.caFile}
	if o.prometheusURL == "" {
		host, missing := routeHost(ctx, c, prometheusRoute)
		if missing != "" {
			return monitoringServers{missing: missing}, nil
		}
		options.PrometheusURL = "https://" + host
		if host, missing := routeHost(ctx, c, alertmanagerRoute); missing == "" {
			options.AlertmanagerURL = "https://" + host
		}
		roots, distrust, err := t.trusted(ctx, c, o.caFile)
		if err != nil {
			return monitoringServers{}, err
		}
		servers.distrust = cmp.Or(distrust, servers.distrust)
		options.Transport, missing, err = t.routeTransport(ctx, roots, o)
		if err != nil || missing != "" {
			return monitoringServers{missing: missing}, err
		}
	}
	found, err := monitoring.New(options)
	if err != nil {
		return monitoringServers{}, usageError{err}
	}
	servers.client = found
	return servers, nil
}

// routeHost returns the host of a route of OpenShift's monitoring, or says why it is not known.
func routeHost(ctx context.Context, c client.Reader, name string) (host, missing string) {
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(routeKind)
	err := c.Get(ctx, client.ObjectKey{Namespace: monitoringNamespace, Name: name}, route)
	if err == nil {
		if host, _, _ = unstructured.NestedString(route.Object, "spec", "host"); host != "" {
			return host, ""
		}
		return "", fmt.Sprintf("route %s in namespace %s has no host: give --prometheus-url", name, monitoringNamespace)
	}
	why := err.Error()
	switch {
	case apierrors.IsForbidden(err):
		why = fmt.Sprintf("you may not get it (ClusterRole managed-upgrade-operator-viewer has the permission): %s", why)
	case apierrors.IsNotFound(err):
		why = "there is none"
	case meta.IsNoMatchError(err):
		why = "the cluster has no routes"
	}
	return "", fmt.Sprintf("Prometheus is looked for by route %s in namespace %s, but %s: give --prometheus-url", name, monitoringNamespace, why)
}

// routeTransport carries requests to OpenShift's routes, with the token of the file or of the kubeconfig, or says that there is no token.
func (t *tool) routeTransport(ctx context.Context, roots *x509.CertPool, o monitoringOptions) (carrier http.RoundTripper, missing string, err error) {
	base := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	if o.tokenFile != "" {
		carrier, err = transport.NewBearerAuthWithRefreshRoundTripper("", o.tokenFile, base)
		if err != nil {
			return nil, "", usagef("--prometheus-token-file cannot be read: %v", err)
		}
		return carrier, "", nil
	}
	config, err := t.flags.ToRESTConfig()
	if err != nil {
		return nil, "", fmt.Errorf("read the token of the kubeconfig: %w", err)
	}
	header, err := authorization(ctx, config)
	if err != nil {
		return nil, "", fmt.Errorf("read the token of the kubeconfig: %w", err)
	}
	token, isToken := strings.CutPrefix(header, "Bearer ")
	if !isToken {
		return nil, "the kubeconfig has no token to ask Prometheus with (a client certificate does not do): give one by --prometheus-token-file, e.g. of `oc create token`", nil
	}
	return transport.NewBearerAuthRoundTripper(token, base), "", nil
}

// authorization is the header by which the kubeconfig authorizes requests, whatever makes it: a token, a file, a program. Empty if there is none.
func authorization(ctx context.Context, config *rest.Config) (string, error) {
	header := ""
	capture := carry(func(r *http.Request) (*http.Response, error) {
		header = r.Header.Get("Authorization")
		return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: r}, nil
	})
	wrapped, err := rest.HTTPWrappersForConfig(config, capture)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://localhost", nil)
	if err != nil {
		return "", err
	}
	response, err := wrapped.RoundTrip(request) // nothing is sent
	if err != nil {
		return "", err
	}
	return header, response.Body.Close()
}

// carry is a function that carries requests.
type carry func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (c carry) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }

// trusted returns the certificates by which OpenShift's routes are known: those of the file, or those of this computer, of the kubeconfig's cluster, and of the
// ingress. Where the user may not read the last, distrust says so.
func (t *tool) trusted(ctx context.Context, c client.Reader, caFile string) (roots *x509.CertPool, distrust string, err error) {
	if caFile != "" {
		roots = x509.NewCertPool()
		content, err := os.ReadFile(caFile) //nolint:gosec // the user names the file
		if err != nil {
			return nil, "", usagef("--prometheus-ca-file cannot be read: %v", err)
		}
		if !roots.AppendCertsFromPEM(content) {
			return nil, "", usageError{errors.New("--prometheus-ca-file has no certificate in it")}
		}
		return roots, "", nil
	}
	if roots, err = x509.SystemCertPool(); err != nil {
		roots = x509.NewCertPool()
	}
	config, err := t.flags.ToRESTConfig()
	if err == nil {
		err = rest.LoadTLSFiles(config)
	}
	if err != nil {
		return nil, "", fmt.Errorf("read the certificates of the kubeconfig: %w", err)
	}
	roots.AppendCertsFromPEM(config.CAData)
	certificates := &corev1.ConfigMap{}
	err = c.Get(ctx, client.ObjectKey{Namespace: managedNamespace, Name: ingressCertificates}, certificates)
	if apierrors.IsForbidden(err) {
		distrust = fmt.Sprintf("you may not get ConfigMap %s/%s, which has the CA certificates of OpenShift's ingress: give them by --prometheus-ca-file",
			managedNamespace, ingressCertificates)
	}
	roots.AppendCertsFromPEM([]byte(certificates.Data[certificatesKey])) // none if it could not be read
	return roots, distrust, nil
}
