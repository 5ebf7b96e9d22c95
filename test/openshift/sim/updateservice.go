// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/appuio/managed-upgrade-operator/test/programs"
)

// UpdateService is the update service (Cincinnati) of a simulated cluster: an HTTP
// server on 127.0.0.1 that answers with the graph of the scenario as it is at the
// time. Its methods may be called from any goroutine.
type UpdateService struct {
	configMaps corev1client.ConfigMapInterface
	port       *programs.Port

	mu       sync.Mutex // guards what follows
	server   *http.Server
	ended    chan struct{} // closed once the server no longer listens
	closed   bool
	requests []UpdateRequest
}

// UpdateRequest is a request that has come in, and how it was answered.
type UpdateRequest struct {
	// Channel, Arch, Version and ID are the parameters of those names; empty when
	// they were left out.
	Channel, Arch, Version, ID string
	// Accept is the header of that name.
	Accept string
	// Status is that of the answer; 0 as long as there is none.
	Status int
}

// The service has the graph at these paths, as the real ones do.
const (
	graphPath   = "/graph"
	graphV1Path = "/v1/graph"
	publicPath  = "/api/upgrades_info/graph"
)

// StartUpdateService serves the graph of the cluster that is, or will be, installed
// on this API server, until Close is called or ctx ends. Scenario.Upstream makes it
// known to the cluster.
func StartUpdateService(ctx context.Context, cfg *rest.Config) (*UpdateService, error) {
	core, err := corev1client.NewForConfig(tuned(cfg))
	if err != nil {
		return nil, fmt.Errorf("start the update service: %w", err)
	}
	port, err := programs.LeasePort()
	if err != nil {
		return nil, fmt.Errorf("start the update service: %w", err)
	}
	u := &UpdateService{configMaps: core.ConfigMaps(Namespace), port: port}
	if err := u.Start(ctx); err != nil {
		return nil, errors.Join(err, u.Close())
	}
	context.AfterFunc(ctx, func() { _ = u.Close() })
	return u, nil
}

// URL is the address of the graph, which stays the same for good.
func (u *UpdateService) URL() string { return "http://" + u.port.Address() + graphPath }

// Start listens again after Stop, at the same address. It is an error when it listens.
func (u *UpdateService) Start(ctx context.Context) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.closed:
		return errors.New("start the update service: it has been closed")
	case u.server != nil:
		return errors.New("start the update service: it listens already")
	}
	listener, err := u.port.Listen(ctx)
	if err != nil {
		return fmt.Errorf("start the update service: %w", err)
	}
	mux := http.NewServeMux()
	for _, path := range []string{graphPath, graphV1Path, publicPath} {
		mux.HandleFunc("GET "+path, u.serve)
	}
	server, ended := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}, make(chan struct{})
	u.server, u.ended = server, ended
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // until stop
	}()
	return nil
}

// Stop ends all connections, and refuses new ones until Start. It does nothing when
// the service does not listen.
func (u *UpdateService) Stop() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stop()
}

func (u *UpdateService) stop() error {
	if u.server == nil {
		return nil
	}
	server := u.server
	u.server = nil
	if err := server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("stop the update service: %w", err)
	}
	<-u.ended // from now on connections are refused
	return nil
}

// Close ends the service for good. Further calls do nothing.
func (u *UpdateService) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return nil
	}
	u.closed = true
	return errors.Join(u.stop(), u.port.Release())
}

// Requests returns all requests that have come in, the first one first.
func (u *UpdateService) Requests() []UpdateRequest {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.requests)
}

// serve answers a request, and keeps book of it.
func (u *UpdateService) serve(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	u.mu.Lock()
	place := len(u.requests)
	u.requests = append(u.requests, UpdateRequest{
		Channel: query.Get("channel"), Arch: query.Get("arch"), Version: query.Get("version"), ID: query.Get("id"),
		Accept: r.Header.Get("Accept"),
	})
	u.mu.Unlock()
	a := u.answer(r)
	if pause(r.Context(), a.after) != nil {
		return // Nobody waits for it any more.
	}
	u.mu.Lock()
	u.requests[place].Status = a.status
	u.mu.Unlock()
	w.Header().Set("Content-Type", a.contentType)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // A client that hangs up has its reasons.
}

// graphAnswer is what is said to a request, and after how long.
type graphAnswer struct {
	after       time.Duration
	status      int
	contentType string
	body        []byte
}

const (
	jsonType       = "application/json"
	cincinnatiType = "application/vnd.redhat.cincinnati.v1+json"
)

// acceptable are the values of the header Accept that are served, and as what.
// Like the real service this one understands no lists.
var acceptable = map[string]string{
	"": jsonType, jsonType: jsonType, "*": jsonType, "*/*": jsonType, "application/*": jsonType, cincinnatiType: cincinnatiType,
}

// validChannel is what the service takes for the name of a channel.
var validChannel = regexp.MustCompile(`^[0-9a-z\-.]+$`)

// answer judges a request as the real service does.
func (u *UpdateService) answer(r *http.Request) graphAnswer {
	s, err := u.scenario(r.Context())
	if err != nil {
		return graphError(http.StatusInternalServerError, "failed_upstream_fetch", "failed to fetch upstream graph: "+err.Error())
	}
	a := s.answerGraph(r)
	a.after = time.Duration(s.Graph.Slow)
	return a
}

func (s *Scenario) answerGraph(r *http.Request) graphAnswer {
	query := r.URL.Query()
	contentType, accepted := acceptable[r.Header.Get("Accept")]
	channel := query.Get("channel")
	switch {
	case s.Graph.Status != 0:
		return graphAnswer{status: s.Graph.Status, contentType: "text/plain; charset=utf-8", body: []byte(http.StatusText(s.Graph.Status) + "\n")}
	case !accepted:
		return graphError(http.StatusNotAcceptable, "invalid_content_type", "invalid Content-Type requested")
	case !query.Has("channel"):
		return graphError(http.StatusBadRequest, "missing_params", "mandatory client parameters missing: channel")
	case !validChannel.MatchString(channel):
		return graphError(http.StatusBadRequest, "invalid_params",
			fmt.Sprintf("invalid client parameters: channel '%s' does not match regex '%s'", channel, validChannel))
	}
	body, err := json.Marshal(s.graphOf(channel, cmp.Or(query.Get("arch"), archDefault), query.Get("version")))
	if err != nil {
		return graphError(http.StatusInternalServerError, "failed_json_out", "failed to serialize JSON: "+err.Error())
	}
	return graphAnswer{status: http.StatusOK, contentType: contentType, body: body}
}

// graphError is the answer to a request that is refused.
func graphError(status int, kind, value string) graphAnswer {
	// Two strings can always be written as JSON.
	body, _ := json.Marshal(map[string]string{"kind": kind, "value": value})
	return graphAnswer{status: status, contentType: jsonType, body: body}
}

// scenario reads the live scenario.
func (u *UpdateService) scenario(ctx context.Context) (Scenario, error) {
	cm, err := u.configMaps.Get(ctx, ConfigMapName, metav1.GetOptions{})
	if err != nil {
		return Scenario{}, err
	}
	return scenarioOf(cm)
}
