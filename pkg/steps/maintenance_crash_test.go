// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// Whichever request the process ends after, or loses the answer of: no alert is ever silenced by two silences of one kind, those that are there are renewed,
// and none is left.
func TestSilencesSurvive(t *testing.T) {
	for _, fault := range []fault{processEnds, answerLost} {
		requests := 0
		for at := 0; at == 0 || at <= requests; at++ {
			t.Run(fmt.Sprintf("%s after request %d", fault, at), func(t *testing.T) {
				if n := liveThrough(t, fault, at); at == 0 {
					requests = n
				}
			})
		}
		if requests < 10 {
			t.Errorf("%d requests in all: that is not the story", requests)
		}
	}
}

// liveThrough runs through an upgrade in passes of five minutes. The request with the number meets the fault. It returns how many requests there were.
func liveThrough(t *testing.T, fault fault, faultAt int) int {
	t.Helper()
	m := newMaintained(t, newJob(known, withMaintenance(withCriticals)))
	m.put(openshifttest.MachineConfig("worker", target))
	var seen atomic.Int64
	struck := func() bool { return faultAt > 0 && seen.Load() >= int64(faultAt) }
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.ServeHTTP(w, r)
		kinds := map[string]int{}
		for _, s := range m.all() {
			_, comment, _ := strings.Cut(s, ": ")
			kinds[comment[:len("Silence for OSD c")]]++
		}
		for kind, n := range kinds {
			if n > 1 {
				t.Errorf("there are %d of %q", n, kind)
			}
		}
		if seen.Add(1) == int64(faultAt) {
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(between.Close)
	m.URL = between.URL
	m.restart()
	list := []steps.Step{
		steps.ControlPlaneMaintenanceWindowCreated(), steps.UpgradeCommenced(), steps.ControlPlaneUpgraded(), steps.ControlPlaneMaintenanceWindowRemoved(),
		steps.WorkersMaintenanceWindowCreated(), steps.WorkerNodesUpgraded(), steps.WorkersMaintenanceWindowRemoved(),
	}
	for pass := range 20 {
		switch m.at(time.Duration(pass) * 5 * time.Minute); pass {
		case 3:
			m.update(updating)
		case 8:
			m.update(completed)
			m.put(openshifttest.Pool("worker", openshifttest.PoolTowards(target, 1)))
		case 12:
			m.put(openshifttest.Pool("worker", openshifttest.PoolTowards(target, 2)))
		case 16:
			m.put(openshifttest.Pool("worker", openshifttest.PoolAt(target)))
		}
		before := struck()
		u := m.upgrade()
		u.Monitoring = m.client
		steps.Run(t.Context(), list, u)
		if struck() && !before && fault == processEnds {
			m.restart()
			continue
		}
		if err := u.Persist(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := 0
		switch {
		case struck() && !before: // it is tried again
			continue
		case pass < 8 && m.version().Spec.DesiredUpdate != nil:
			want = 2
		case pass >= 9 && pass < 16:
			want = 1
		}
		if got := len(m.all()); got != want && pass != 8 && pass != 0 {
			t.Errorf("pass %d: silenced are %q, want %d", pass, m.all(), want)
		}
	}
	job := m.job()
	job.Status.CompletionTime = ptr.To(metav1.NewTime(m.now))
	if err := m.api.Status().Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	for m.cleanUp() > 0 {
		m.at(m.now.Sub(start) + 10*time.Second)
	}
	if left := m.all(); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
	return int(seen.Load())
}
