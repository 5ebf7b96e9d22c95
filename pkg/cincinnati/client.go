// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package cincinnati asks an update service of OpenShift which updates there are
// in a channel, also in one that the cluster is not in.
package cincinnati

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/appuio/managed-upgrade-operator/pkg/poll"
)

const (
	// DefaultUpstream is where clusters ask that name no update service of their own.
	DefaultUpstream = "https://api.openshift.com/api/upgrades_info/v1/graph"
	// maxGraph bounds what is read of an answer: the biggest channels take about 5 MB.
	maxGraph = 32 << 20
	// timeout of a question, with everything.
	timeout = 20 * time.Second
	// maxAge is how old an answer may be that is given again.
	maxAge = time.Minute
	// maxRedirects that are followed.
	maxRedirects = 5
)

const contentType = "application/json"

// ErrUnavailable is wrapped by errors of an update service that does not answer, or not with a graph.
var ErrUnavailable = errors.New("the update service is not available")

// Query says what is asked for.
type Query struct {
	// Upstream is the URL of the update service; empty for DefaultUpstream.
	Upstream string
	// Channel of the graph.
	Channel string
	// Arch is the architecture of the releases, as Go names it, or multi. Empty: that which the update service takes then.
	Arch string
	// ClusterID and Version are of the cluster that asks.
	ClusterID, Version string
}

// Client asks update services. The zero value is ready, and asks through the proxy of the environment. It may be used from several goroutines.
type Client struct {
	// Transport carries the requests; nil for one of its own.
	Transport http.RoundTripper

	once     sync.Once
	client   *http.Client
	mutex    sync.Mutex
	asked    Query
	question *poll.Question[*Graph]
}

// Graph returns the graph of a channel. An answer is shared for a minute by all who ask the same, also that there is none; now is the time.
// Its errors wrap ErrUnavailable and are the same for the same cause.
func (c *Client) Graph(ctx context.Context, now time.Time, q Query) (*Graph, error) {
	if q.Upstream == "" {
		q.Upstream = DefaultUpstream
	}
	c.mutex.Lock()
	if c.question == nil || c.asked != q {
		c.asked, c.question = q, &poll.Question[*Graph]{}
	}
	question := c.question
	c.mutex.Unlock()
	return question.Get(ctx, now, maxAge, func(ctx context.Context) (*Graph, error) { return c.ask(ctx, q) })
}

func (c *Client) ask(ctx context.Context, q Query) (*Graph, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	address, err := q.url()
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: its URL cannot be used", ErrUnavailable)
	}
	request.Header.Set("Accept", contentType)
	response, err := c.http().Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrUnavailable, describe(ctx, err))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, response.Body, 4<<10) // so that the connection can be used again
		return nil, fmt.Errorf("%w: it answers with status %d", ErrUnavailable, response.StatusCode)
	}
	return read(ctx, response)
}

// url is the address of the question.
func (q Query) url() (string, error) {
	u, err := url.Parse(q.Upstream)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return "", fmt.Errorf("%w: its URL in ClusterVersion is none of http or https", ErrUnavailable)
	}
	values := u.Query()
	for key, value := range map[string]string{"channel": q.Channel, "arch": q.Arch, "id": q.ClusterID, "version": q.Version} {
		if value != "" {
			values.Set(key, value)
		}
	}
	u.RawQuery = values.Encode()
	return u.String(), nil
}

func (c *Client) http() *http.Client {
	c.once.Do(func() {
		transport := c.Transport
		if transport == nil {
			own := http.DefaultTransport.(*http.Transport).Clone() // with the proxy of the environment
			own.MaxIdleConns = 2                                   // it is asked once in minutes
			transport = own
		}
		c.client = &http.Client{Transport: transport, CheckRedirect: redirect}
	})
	return c.client
}

// Reasons for which a redirect is not followed.
var (
	errRedirects = errors.New("it redirects too often")
	errDowngrade = errors.New("it redirects from https to http")
)

func redirect(request *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maxRedirects:
		return errRedirects
	case via[0].URL.Scheme == "https" && request.URL.Scheme != "https":
		return errDowngrade
	}
	return nil
}

// describe returns words for an error that stay the same while its cause does: without ports of this side and times.
func describe(ctx context.Context, err error) string {
	var name *net.DNSError
	var dial *net.OpError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Sprintf("it does not answer within %s", timeout)
	case errors.Is(err, errRedirects):
		return errRedirects.Error()
	case errors.Is(err, errDowngrade):
		return errDowngrade.Error()
	case errors.As(err, &name):
		return "its name cannot be resolved"
	case errors.As(err, &dial) && dial.Op == "proxyconnect":
		return "the proxy cannot be reached"
	case errors.As(err, &dial) && dial.Op == "dial":
		return "it cannot be reached"
	case isCertificate(err):
		return "its certificate cannot be trusted"
	}
	return "the connection to it broke"
}

// read reads the graph in a response.
func read(ctx context.Context, response *http.Response) (*Graph, error) {
	if media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err == nil && media != contentType && media != "application/vnd.redhat.cincinnati.v1+json" {
		return nil, fmt.Errorf("%w: it answers with %s", ErrUnavailable, media)
	}
	graph := &Graph{}
	err := json.NewDecoder(http.MaxBytesReader(nil, response.Body, maxGraph)).Decode(graph)
	var tooLong *http.MaxBytesError
	switch {
	case err == nil && graph.Nodes != nil:
		return graph, nil
	case errors.As(err, &tooLong):
		return nil, fmt.Errorf("%w: its answer is longer than %d MiB", ErrUnavailable, maxGraph>>20)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %s", ErrUnavailable, describe(ctx, err))
	}
	return nil, fmt.Errorf("%w: its answer is no graph", ErrUnavailable)
}

// isCertificate tells whether a connection failed because of the certificate of the other side.
func isCertificate(err error) bool {
	var verification *tls.CertificateVerificationError
	return errors.As(err, &verification)
}
