// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package environment_test

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/appuio/managed-upgrade-operator/test/environment"
)

const object = "/apis/config.openshift.io/v1/clusterversions/version"

// behindProxy starts a server, a proxy in front of it, and returns both with a client of the proxy.
func behindProxy(t *testing.T, handler http.HandlerFunc) (*environment.Proxy, *http.Client) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	proxy, err := environment.StartProxy(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Stop)
	transport, err := rest.TransportFor(&rest.Config{
		Host: proxy.URL(), TLSClientConfig: rest.TLSClientConfig{CAData: proxy.CA()}, BearerToken: "of-the-client",
	})
	if err != nil {
		t.Fatal(err)
	}
	return proxy, &http.Client{Transport: transport}
}

func request(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestProxyForwardsWithTheCredentialsOfTheClient(t *testing.T) {
	proxy, client := behindProxy(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL, r.Header.Get("Authorization"), body)
	})
	response, err := client.Do(request(t, http.MethodPatch, proxy.URL()+object+"?fieldManager=me", "{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if want := "PATCH " + object + "?fieldManager=me Bearer of-the-client {}"; string(got) != want {
		t.Errorf("the server got %q, want %q", got, want)
	}
	want := []environment.Write{{Method: http.MethodPatch, Path: object, Body: "{}", Code: http.StatusCreated}}
	if diff := cmp.Diff(want, proxy.Writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestProxyStreamsAWatch(t *testing.T) {
	released := make(chan struct{})
	proxy, client := behindProxy(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "first")
		w.(http.Flusher).Flush()
		select {
		case <-released:
		case <-r.Context().Done():
		}
		fmt.Fprintln(w, "second")
	})
	response, err := client.Do(request(t, http.MethodGet, proxy.URL()+object+"?watch=1", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	if !lines.Scan() || lines.Text() != "first" {
		t.Fatalf("first line is %q: %v", lines.Text(), lines.Err())
	}
	close(released)
	if !lines.Scan() || lines.Text() != "second" {
		t.Fatalf("second line is %q: %v", lines.Text(), lines.Err())
	}
	if writes := proxy.Writes(); len(writes) > 0 {
		t.Errorf("a watch counts as a write: %v", writes)
	}
}

func TestProxyInjectsFaults(t *testing.T) {
	tests := map[string]struct {
		fault                  environment.Fault
		wantAnswer, wantServed int
	}{
		"an error instead of the API server": {environment.Fault{Code: http.StatusConflict}, http.StatusConflict, 0},
		"an error although it is done":       {environment.Fault{Commit: true, Code: http.StatusGatewayTimeout}, http.StatusGatewayTimeout, 1},
		"no answer although it is done":      {environment.Fault{Commit: true}, 0, 1},
		"no answer":                          {environment.Fault{}, 0, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var served atomic.Int32
			proxy, client := behindProxy(t, func(http.ResponseWriter, *http.Request) { served.Add(1) })
			servedBefore := int32(-1)
			tt.fault.Then = func() { servedBefore = served.Load() }
			proxy.Interpose(func(number int, w environment.Write) *environment.Fault {
				if number != 2 {
					return nil
				}
				return &tt.fault
			})
			for number, want := range []int{http.StatusOK, tt.wantAnswer, http.StatusOK} {
				got := 0
				if response, err := client.Do(request(t, http.MethodPost, proxy.URL()+object, "{}")); err == nil {
					response.Body.Close()
					got = response.StatusCode
				}
				if got != want {
					t.Errorf("write %d is answered %d, want %d", number+1, got, want)
				}
			}
			if want := int32(2 + tt.wantServed); served.Load() != want {
				t.Errorf("the server saw %d writes, want %d", served.Load(), want)
			}
			if want := int32(1 + tt.wantServed); servedBefore != want {
				t.Errorf("Then was called when the server had seen %d writes, want %d", servedBefore, want)
			}
			if writes := proxy.Writes(); len(writes) != 3 {
				t.Errorf("%d writes were seen, want 3", len(writes))
			}
		})
	}
}

func TestProxyLeavesLeasesAndEventsAlone(t *testing.T) {
	proxy, client := behindProxy(t, func(http.ResponseWriter, *http.Request) {})
	proxy.Interpose(func(int, environment.Write) *environment.Fault {
		return &environment.Fault{Code: http.StatusInternalServerError}
	})
	for _, path := range []string{
		"/apis/coordination.k8s.io/v1/namespaces/x/leases/leader", "/apis/events.k8s.io/v1/namespaces/x/events",
	} {
		response, err := client.Do(request(t, http.MethodPut, proxy.URL()+path, "{}"))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s is answered %d", path, response.StatusCode)
		}
	}
}
