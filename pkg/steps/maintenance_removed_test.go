// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

const windowRemoved = steps.ConditionControlPlaneMaintenanceWindowRemoved

const serviceUnavailable = "Alertmanager answers 503 Service Unavailable"

// newUpgraded is a cluster whose control plane is upgraded, with the silences of its window and one of somebody else.
func newUpgraded(t *testing.T) *maintained {
	t.Helper()
	m := newMaintained(t, newJob(known, withMaintenance(withCriticals)))
	m.pass(steps.ControlPlaneMaintenanceWindowCreated(), steps.UpgradeCommenced())
	m.update(completed)
	m.silences = append(m.silences, m.silences[0])
	m.silences[2].Comment, m.silences[2].ID, m.silences[2].CreatedBy = "Another one", "another", "somebody"
	return m
}

const anotherOne = "another until 22:25:00: Another one"

func TestMaintenanceWindowRemoved(t *testing.T) {
	m := newUpgraded(t)
	list := []steps.Step{steps.ControlPlaneMaintenanceWindowCreated(), steps.ControlPlaneMaintenanceWindowRemoved()}
	m.want(m.at(time.Minute).pass(list...), 0, anotherOne)
	m.says(windowRemoved, true, "Nothing is silenced for the window any more.")
	m.records(ofControlPlane, "22:00:00 to 22:01:00")
	m.asked()
	m.want(m.at(20*time.Minute).pass(list...), 0, anotherOne)
	m.update(openshifttest.History(openshifttest.Completed("4.18.1"))) // whatever the cluster says later
	m.want(m.at(21*time.Minute).pass(list...), 0, anotherOne)
	if n := m.asked(); n != 0 {
		t.Errorf("%d requests once the window is closed", n)
	}
}

func TestMaintenanceWindowRemovedUnrecorded(t *testing.T) {
	m := newMaintained(t)
	m.killed(steps.ControlPlaneMaintenanceWindowCreated())
	m.want(m.pass(steps.WorkersMaintenanceWindowRemoved()), 0, "silence-1 until 22:25:00: "+controlPlane)
	m.want(m.pass(steps.ControlPlaneMaintenanceWindowRemoved()), 0)
}

func TestMaintenanceWindowRemovedWithoutAlertmanager(t *testing.T) {
	both := []string{"silence-1 until 22:25:00: " + controlPlane, "silence-2 until 22:25:00: " + criticals, anotherOne}
	list := []steps.Step{steps.ControlPlaneMaintenanceWindowCreated(), steps.ControlPlaneMaintenanceWindowRemoved()}
	for _, method := range []string{"", http.MethodDelete} {
		t.Run("back in time"+method, func(t *testing.T) {
			m := newUpgraded(t)
			m.say(method, http.StatusServiceUnavailable)
			m.want(m.at(12*time.Minute).pass(list...), time.Minute, both...)
			m.want(m.at(24*time.Minute+30*time.Second).pass(list...), 30*time.Second, both...)
			text := "The silences could not be ended: " + serviceUnavailable + ". They lapse at 2026-11-24T22:25:00Z."
			m.says(windowRemoved, true, text)
			m.records(ofControlPlane, "22:00:00 to 22:12:00, silence-1 until 22:25:00, silence-2 until 22:25:00 (critical); "+text)
			m.say(method, 0)
			m.restart()
			m.want(m.at(24*time.Minute+40*time.Second).pass(list...), 0, anotherOne)
			m.says(windowRemoved, true, "Nothing is silenced for the window any more.")
			m.records(ofControlPlane, "22:00:00 to 22:12:00")
		})
	}
	t.Run("not before they have lapsed", func(t *testing.T) {
		m := newUpgraded(t)
		m.say("", http.StatusServiceUnavailable)
		m.pass(list...)
		m.want(m.at(25*time.Minute).pass(list...), 0)
		m.says(windowRemoved, true, "The silences have lapsed. They could not be ended before: "+serviceUnavailable+".")
		m.records(ofControlPlane, "22:00:00 to 22:00:00")
	})
	t.Run("none is configured", func(t *testing.T) {
		m := newUpgraded(t)
		m.client = nil
		m.want(m.pass(list...), 0, both...)
		m.says(windowRemoved, true, "No alert is silenced: no Alertmanager is configured.")
	})
}

func TestSilencesRemoved(t *testing.T) {
	// ended makes the job one that has just failed, whose status is otherwise as it was, or nothing.
	ended := func(m *maintained, keepsStatus bool) {
		job := m.job()
		if !keepsStatus {
			job.Status.MaintenanceWindows, job.Status.Steps = nil, nil
		}
		job.Status.Phase, job.Status.CompletionTime = v1beta1.PhaseFailed, ptr.To(metav1.NewTime(m.now))
		if err := m.api.Status().Update(m.t.Context(), job); err != nil {
			m.t.Fatal(err)
		}
	}
	for _, keeps := range []bool{true, false} {
		m := newUpgraded(t)
		m.put(openshifttest.MachineConfig("worker", target), openshifttest.MachineConfig("worker", "4.18.1"), openshifttest.Pool("worker", openshifttest.PoolTowards(target, 1)))
		m.pass(steps.WorkersMaintenanceWindowCreated())
		if n := len(m.all()); n != 4 {
			t.Fatalf("%d silences before", n)
		}
		ended(m.at(5*time.Minute), keeps)
		m.restart()
		if wait := m.cleanUp(); wait != 0 || len(m.all()) != 1 {
			t.Errorf("status kept: %t: it waits for %s, silenced are %q", keeps, wait, m.all())
		}
		for _, w := range m.job().Status.MaintenanceWindows {
			if len(w.Silences) > 0 || w.Until.After(m.now) {
				t.Errorf("recorded is %+v, want a closed window", w)
			}
		}

		m = newUpgraded(t)
		ended(m.at(5*time.Minute), keeps)
		m.say("", http.StatusServiceUnavailable)
		waits := 20 * time.Minute // as recorded
		if !keeps {
			waits = 25*time.Minute + time.Second // as if it was made at the end
		}
		for _, passed := range []time.Duration{0, waits - 3*time.Second} {
			if wait := m.at(5*time.Minute + passed).cleanUp(); wait != min(10*time.Second, waits-passed) {
				t.Errorf("status kept: %t: after %s it waits for %s", keeps, passed, wait)
			}
		}
		if wait := m.at(5*time.Minute + waits).cleanUp(); wait != 0 {
			t.Errorf("status kept: %t: it waits for %s after the last silence has lapsed", keeps, wait)
		}
	}
}

func TestSilencesRemovedOfAJobWithoutAny(t *testing.T) {
	closed := newUpgraded(t)
	closed.pass(steps.ControlPlaneMaintenanceWindowRemoved())
	job := closed.job()
	job.Status.CompletionTime = ptr.To(metav1.NewTime(start))
	if err := closed.api.Status().Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	closed.say("", http.StatusServiceUnavailable)
	if wait := closed.cleanUp(); wait != 0 {
		t.Errorf("it waits for %s though its windows are closed", wait)
	}
	m := newMaintained(t)
	m.say("", http.StatusServiceUnavailable)
	if wait := m.cleanUp(); wait != 0 {
		t.Errorf("it waits for %s for nothing", wait)
	}
	m.client = nil
	if wait := m.cleanUp(); wait != 0 {
		t.Errorf("without Alertmanager it waits for %s", wait)
	}
}
