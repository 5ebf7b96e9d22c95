// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/dependency"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

func dependingOn(urls ...string) jobOption {
	return func(job *v1beta1.UpgradeJob) {
		job.Spec.Config.ExternalDependencies = &v1beta1.ExternalDependencies{HTTP: &v1beta1.HTTPDependencies{URLs: urls}}
	}
}

// dependencyServer answers with a status that can be changed, and counts how often it was asked.
type dependencyServer struct {
	*httptest.Server
	status, asked atomic.Int64
}

func newDependencyServer(t *testing.T, status int) *dependencyServer {
	s := &dependencyServer{}
	s.status.Store(int64(status))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.asked.Add(1)
		w.WriteHeader(int(s.status.Load()))
	}))
	t.Cleanup(s.Close)
	return s
}

// ask runs the step after that time since the start.
func (w *world) ask(ctx context.Context, prober *dependency.Prober, after time.Duration) steps.Result {
	w.t.Helper()
	w.now = start.Add(after)
	u := w.upgrade()
	u.Dependencies = prober
	result := steps.Run(ctx, []steps.Step{steps.ExternalDependenciesAvailable()}, u)
	if err := u.Persist(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return result
}

func TestExternalDependenciesAvailable(t *testing.T) {
	step := steps.ExternalDependenciesAvailable()
	good, bad := newDependencyServer(t, http.StatusOK), newDependencyServer(t, http.StatusNotFound)
	w := newWorld(t, newJob(dependingOn(good.URL, bad.URL+"/registry?token=secret")), openshifttest.ClusterVersion())
	prober := &dependency.Prober{}
	blockers := []string{"ExternalDependencyUnavailable " + bad.URL + "/registry"}
	unavailable := verdict{
		outcome: steps.Running, reason: v1beta1.ReasonDependenciesUnavailable, after: 30 * time.Second, blockers: blockers, says: "answers 404 Not Found",
	}

	for _, after := range []time.Duration{0, 29 * time.Second} { // one answer for both
		result := w.ask(t.Context(), prober, after)
		unavailable.check(t, step, result, w.job())
	}
	bad.status.Store(http.StatusNoContent)
	for _, after := range []time.Duration{31 * time.Second, 59 * time.Second} {
		result := w.ask(t.Context(), prober, after)
		verdict{outcome: steps.Completed, reason: "Completed", says: "External dependencies answer: 2."}.check(t, step, result, w.job())
	}
	if good.asked.Load() != 2 || bad.asked.Load() != 2 {
		t.Errorf("asked %d and %d times, want twice", good.asked.Load(), bad.asked.Load())
	}
	// It is a preflight: what goes away again holds the upgrade up again.
	bad.status.Store(http.StatusNotFound)
	unavailable.check(t, step, w.ask(t.Context(), prober, 62*time.Second), w.job())
	// And the job does not wait for longer than its window is open.
	last := w.ask(t.Context(), prober, time.Hour+time.Millisecond)
	verdict{outcome: steps.Skipped, reason: v1beta1.ReasonExpired, blockers: blockers, says: "could not commence"}.check(t, step, last, w.job())
}

func TestExternalDependenciesAvailableIsDoneAtOnce(t *testing.T) {
	for _, tc := range []stepCase{
		{reason: "there are none", want: verdict{outcome: steps.Completed, reason: "Completed", says: "externalDependencies is empty"}},
		{reason: "the list is empty", job: []jobOption{dependingOn()}, want: verdict{outcome: steps.Completed, reason: "Completed", says: "externalDependencies is empty"}},
		{
			reason: "nothing is upgraded", job: []jobOption{dependingOn("http://127.0.0.1:1/"), withoutVersion},
			want: verdict{outcome: steps.Completed, reason: "Completed", says: "no version"},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) { tc.run(t, steps.ExternalDependenciesAvailable()) })
	}
}

func TestExternalDependenciesAvailableMeetsAnError(t *testing.T) {
	server := newDependencyServer(t, http.StatusOK)
	w := newWorld(t, newJob(dependingOn(server.URL)), openshifttest.ClusterVersion())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if result := w.ask(ctx, &dependency.Prober{}, 0); !errors.Is(result.Err, context.Canceled) || result.Outcome != steps.Running {
		t.Errorf("the pass is over: got %+v", result)
	}
	if result := w.ask(t.Context(), nil, 0); result.Err == nil {
		t.Errorf("nobody asks: got %+v", result)
	}
}

// Who does not answer does not keep the job beyond its window.
func TestExternalDependenciesAvailableEndsWithTheWindow(t *testing.T) {
	released := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-released:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(released) })
	w := newWorld(t, newJob(dependingOn(server.URL)), openshifttest.ClusterVersion())
	began := time.Now()
	result := w.ask(t.Context(), &dependency.Prober{}, time.Hour-100*time.Millisecond)
	verdict{
		outcome: steps.Running, reason: v1beta1.ReasonDependenciesUnavailable, after: 101 * time.Millisecond,
		blockers: []string{"ExternalDependencyUnavailable " + server.URL}, says: "does not answer in time",
	}.check(t, steps.ExternalDependenciesAvailable(), result, w.job())
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}
