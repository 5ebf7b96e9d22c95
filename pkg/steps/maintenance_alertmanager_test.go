// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	realmonitoring "github.com/appuio/managed-upgrade-operator/test/monitoring"
)

// A whole life of silences, with the Alertmanager of these tests and with a real one: what the first one does is what the second one does.
func TestSilencesOfAlertmanager(t *testing.T) {
	t.Run("simulated", func(t *testing.T) {
		m := newMaintained(t)
		m.alertmanager.clock = time.Now()
		lifeOfSilences(t, m.URL)
	})
	t.Run("real", func(t *testing.T) {
		server, err := realmonitoring.StartAlertmanager(t.Context(), realmonitoring.AlertmanagerOptions{Progress: os.Stderr})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := server.Close(); err != nil {
				t.Error(err)
			}
		})
		lifeOfSilences(t, server.URL())
	})
}

func lifeOfSilences(t *testing.T, url string) {
	begun := time.Now().Truncate(time.Second)
	atNow := func(job *v1beta1.UpgradeJob) {
		job.Spec.StartAfter.Time, job.Spec.StartBefore.Time, job.Status.StartTime.Time = begun, begun.Add(time.Hour), begun
	}
	m := newMaintained(t, newJob(known, atNow, withMaintenance(withCriticals)))
	m.URL = url
	m.restart()
	at := func(after time.Duration) *maintained { m.now = begun.Add(after); return m }
	ids := map[string]bool{}
	// check checks the comments of all silences that are live, and until when, and how many there ever were.
	check := func(made int, want ...string) {
		t.Helper()
		list, err := m.client.Silences(t.Context(), m.now, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range list {
			ids[s.ID] = true
			if s.Live() {
				got = append(got, fmt.Sprintf("%s until %s", strings.TrimSuffix(s.Comment, mark), s.EndsAt.Sub(begun)))
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) || len(ids) != made {
			t.Errorf("%d were made, silenced are %q; want %d, %q", len(ids), got, made, want)
		}
	}
	criticals, all := "Silence for critical alerts during OSD control plane upgrade to version 4.18.2", "Silence for OSD control plane upgrade to version 4.18.2"
	create := steps.ControlPlaneMaintenanceWindowCreated()

	at(0).killed(create)
	at(0).pass(create)
	check(2, all+" until 25m0s", criticals+" until 25m0s")
	at(10*time.Minute).pass(create, steps.UpgradeCommenced())
	check(2, all+" until 35m0s", criticals+" until 35m0s")

	request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, url+"/api/v2/silence/"+m.job().Status.MaintenanceWindows[0].Silences[0].ID, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	at(20 * time.Minute).pass(create)
	check(2, criticals+" until 45m0s")
	m.says(windowCreated, true, "Somebody has deleted the silence of warnings, which is not made again.")

	m.update(completed)
	m.put(openshifttest.MachineConfig("worker", target))
	m.put(openshifttest.Pool("worker", openshifttest.PoolTowards(target, 1)))
	both := []steps.Step{create, steps.ControlPlaneMaintenanceWindowRemoved(), steps.WorkersMaintenanceWindowCreated()}
	at(21 * time.Minute).pass(both...)
	check(3, "Silence for OSD worker node upgrade to version 4.18.2 with remaining 2 nodes until 46m0s")
	m.put(openshifttest.Pool("worker", openshifttest.PoolTowards(target, 2)))
	at(22 * time.Minute).pass(both...)
	check(3, "Silence for OSD worker node upgrade to version 4.18.2 with remaining 1 nodes until 47m0s")

	m.restart()
	if wait := at(23 * time.Minute).cleanUp(); wait != 0 {
		t.Errorf("the cleanup waits for %s", wait)
	}
	check(3)
}
