// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package monitoring asks Prometheus (or Thanos, which speaks the same) and
// Alertmanager about the cluster, and has alerts silenced.
//
// It fails closed: an error, a warning that the answer is incomplete, and a
// response that does not call itself a success are never an empty answer.
package monitoring

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"

	"github.com/appuio/managed-upgrade-operator/pkg/poll"
)

// Addresses of the monitoring that OpenShift brings along.
const (
	DefaultPrometheusURL   = "https://thanos-querier.openshift-monitoring.svc:9091"
	DefaultAlertmanagerURL = "https://alertmanager-main.openshift-monitoring.svc:9094"
)

// Files that OpenShift mounts into every pod: the token of its service account, which is renewed in place, and the CA
// of the certificates of services.
const (
	DefaultTokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token" //nolint:gosec // a path, no token
	DefaultCAFile    = "/var/run/secrets/kubernetes.io/serviceaccount/service-ca.crt"
)

// DefaultTimeout is how long an answer may take.
const DefaultTimeout = 10 * time.Second

// Options say where monitoring is.
type Options struct {
	// PrometheusURL of Prometheus or Thanos; empty if there is none. It must not contain a password.
	PrometheusURL string
	// AlertmanagerURL of Alertmanager; empty if there is none: then no alert counts as silenced.
	AlertmanagerURL string
	// TokenFile has the bearer token. It is read anew for each request; empty for none.
	TokenFile string
	// CAFile has the certificates to trust. It is read anew when it changes; empty for those of the system.
	CAFile string
	// Timeout of a request; DefaultTimeout if zero.
	Timeout time.Duration
	// Transport carries the requests, with credentials and trust of its own: TokenFile and CAFile do not count then. Nil: one is made of them.
	Transport http.RoundTripper
}

// Client asks Prometheus and Alertmanager. The zero value, and nil, have neither. It may be used from several goroutines.
type Client struct {
	prometheus   promv1.API
	alertmanager api.Client
	silencer     api.Client // the same, without what is said of Prometheus's API
	timeout      time.Duration

	mutex    sync.Mutex // of what follows
	queries  map[string]*query
	silenced *poll.Question[[]model.LabelSet]
	silences *poll.Question[[]Silence]
}

// New returns a client. Nothing is asked yet: an error means that the options cannot be used.
func New(o Options) (*Client, error) {
	c := &Client{timeout: o.Timeout}
	c.Forget()
	if c.timeout == 0 {
		c.timeout = DefaultTimeout
	}
	if o.PrometheusURL != "" {
		// Thanos is told not to leave out what it cannot reach. Prometheus does not know the parameter and ignores it.
		endpoint, err := newEndpoint(o.PrometheusURL, "partial_response=false", o)
		if err != nil {
			return nil, fmt.Errorf("reach Prometheus: %w", err)
		}
		c.prometheus = promv1.NewAPI(endpoint)
	}
	if o.AlertmanagerURL != "" {
		endpoint, err := newEndpoint(o.AlertmanagerURL, "", o)
		if err != nil {
			return nil, fmt.Errorf("reach Alertmanager: %w", err)
		}
		c.alertmanager, c.silencer = endpoint, endpoint.Client
	}
	return c, nil
}

// Forget drops all answers. It is for when nobody will want them soon: those of an alert storm are large.
func (c *Client) Forget() {
	if c == nil {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.queries, c.silenced, c.silences = map[string]*query{}, &poll.Question[[]model.LabelSet]{}, &poll.Question[[]Silence]{}
}

// newEndpoint returns a client that adds the parameters to each request.
func newEndpoint(address, parameters string, o Options) (strict, error) {
	u, err := parseURL(address)
	if err != nil {
		return strict{}, err
	}
	if u.Scheme == "http" && !loopback(u.Hostname()) && (o.TokenFile != "" || o.Transport != nil) {
		return strict{}, errors.New("the token would be sent in clear: use https, or no token file")
	}
	transport := o.Transport
	if transport == nil {
		if transport, err = newTransport(o); err != nil {
			return strict{}, err
		}
	}
	u.RawQuery = parameters
	client, err := api.NewClient(api.Config{Address: u.String(), Client: &http.Client{
		Transport: bounded{transport},
		// A redirect leads to somebody else, who would be handed the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
	if err != nil {
		return strict{}, err
	}
	return strict{client}, nil
}

// newTransport returns a transport with the credentials and the trust of the options.
func newTransport(o Options) (http.RoundTripper, error) {
	settings := promconfig.HTTPClientConfig{
		TLSConfig:   promconfig.TLSConfig{CAFile: o.CAFile},
		ProxyConfig: promconfig.ProxyConfig{ProxyFromEnvironment: true},
	}
	if o.TokenFile != "" {
		settings.Authorization = &promconfig.Authorization{Type: "Bearer", CredentialsFile: o.TokenFile}
	}
	return promconfig.NewRoundTripperFromConfig(settings, "monitoring")
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// parseURL explains what is wrong with an address. It never repeats it: it may contain a password.
func parseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("the URL cannot be parsed")
	case u.User != nil:
		return nil, errors.New("the URL contains a user or a password: use a token file")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the URL does not begin with http:// or https://")
	case u.Host == "":
		return nil, errors.New("the URL has no host")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the URL has a query or a fragment")
	}
	return u, nil
}
