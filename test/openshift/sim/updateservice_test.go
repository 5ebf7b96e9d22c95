// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

func startUpdateService(t *testing.T) *sim.UpdateService {
	t.Helper()
	u, err := sim.StartUpdateService(t.Context(), plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Errorf("close the update service: %v", err)
		}
	})
	return u
}

// ask asks for the graph of a channel, and returns the status and the versions in it.
func ask(t *testing.T, url string) (status int, versions []string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"?channel=stable-4.18&arch=amd64&version=4.18.1&id=7d0c51de", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json")
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return response.StatusCode, nil, nil
	}
	var graph struct {
		Nodes []struct{ Version string }
	}
	if err := json.NewDecoder(response.Body).Decode(&graph); err != nil {
		t.Fatal(err)
	}
	for _, node := range graph.Nodes {
		versions = append(versions, node.Version)
	}
	return response.StatusCode, versions, nil
}

func TestUpdateService(t *testing.T) {
	u := startUpdateService(t)
	s := quick()
	s.Upstream = u.URL()
	c := start(t, s)
	upstream := string(c.version().Spec.Upstream)
	if upstream != u.URL() {
		t.Fatalf("upstream of the ClusterVersion: %q", upstream)
	}
	expect := func(what string, wantStatus, wantVersions int) {
		t.Helper()
		if status, versions, err := ask(t, upstream); err != nil || status != wantStatus || len(versions) != wantVersions {
			t.Errorf("%s: %d, %v, %v", what, status, versions, err)
		}
	}
	expect("as installed", 200, 2)
	c.change(func(s *sim.Scenario) { s.Updates = append(s.Updates, sim.OfferedUpdate{Version: "4.18.3"}) })
	expect("one more update", 200, 3)
	c.change(func(s *sim.Scenario) { s.Graph.Status = 502 })
	expect("an error", 502, 0)
	c.change(func(s *sim.Scenario) { s.Graph = sim.Graph{Slow: sim.Duration(300 * time.Millisecond)} })
	began := time.Now()
	expect("slow", 200, 3)
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("it took %s", took)
	}

	for range 2 {
		if err := u.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := ask(t, upstream); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("while it is away: %v, want a refused connection", err)
	}
	if err := u.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := u.Start(t.Context()); err == nil {
		t.Error("Start while it listens: no error")
	}
	expect("back", 200, 3)
	requests := u.Requests()
	want := sim.UpdateRequest{Channel: "stable-4.18", Arch: "amd64", Version: "4.18.1", ID: "7d0c51de", Accept: "application/json", Status: 502}
	if len(requests) != 5 || requests[2] != want {
		t.Errorf("requests: %+v", requests)
	}
	if err := u.Close(); err != nil {
		t.Error(err)
	}
	if err := u.Start(t.Context()); err == nil {
		t.Error("Start after Close: no error")
	}
}

func TestFileIntegrity(t *testing.T) {
	s := quick()
	s.FileIntegrity = &sim.FileIntegrity{}
	c := start(t, s)
	integrity := &unstructured.Unstructured{}
	integrity.SetAPIVersion("fileintegrity.openshift.io/v1alpha1")
	integrity.SetKind("FileIntegrity")
	key := client.ObjectKey{Namespace: "openshift-file-integrity", Name: "osd-fileintegrity"}
	get := func() {
		t.Helper()
		if err := c.client.Get(t.Context(), key, integrity); err != nil {
			t.Fatal(err)
		}
	}
	for round := 1; round <= 2; round++ {
		get()
		before := integrity.DeepCopy()
		annotations := integrity.GetAnnotations()
		annotations["file-integrity.openshift.io/re-init"] = ""
		integrity.SetAnnotations(annotations)
		if err := c.client.Patch(t.Context(), integrity, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		c.eventually("built anew", func() bool { get(); return sim.Reinits(integrity) == round })
		if _, asked := integrity.GetAnnotations()["file-integrity.openshift.io/re-init"]; asked {
			t.Error("it is still asked for")
		}
	}
	if phase, _, err := unstructured.NestedString(integrity.Object, "status", "phase"); err != nil || phase != "Active" {
		t.Errorf("phase %q, %v", phase, err)
	}

	c.halt()
	s.FileIntegrity.Missing = true
	if err := sim.Install(t.Context(), plane.Config(), s); err != nil {
		t.Fatal(err)
	}
	if err := c.client.Get(t.Context(), key, integrity); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the object that is missing: %v", err)
	}
}
