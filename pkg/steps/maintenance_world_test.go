// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// silence is one in an Alertmanager of tests.
type silence struct {
	ID        string               `json:"id"`
	Matchers  []monitoring.Matcher `json:"matchers"`
	StartsAt  time.Time            `json:"startsAt"`
	EndsAt    time.Time            `json:"endsAt"`
	CreatedBy string               `json:"createdBy"`
	Comment   string               `json:"comment"`
}

// alertmanager does with silences what Alertmanager does, by the clock of a test: TestSilencesOfAlertmanager is passed with a real one too.
type alertmanager struct {
	*httptest.Server
	mutex    sync.Mutex
	clock    time.Time
	silences []silence
	requests int
	// status is the answer to requests of that method ("" for all) while it is set.
	status map[string]int
	// lost drops the answer to the next POST, which has landed.
	lost bool
}

func newAlertmanager(t *testing.T) *alertmanager {
	t.Helper()
	a := &alertmanager{clock: start, status: map[string]int{}}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *alertmanager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.requests++
	for _, method := range []string{"", r.Method} {
		if status := a.status[method]; status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	switch r.Method {
	case http.MethodGet:
		list := []map[string]any{}
		for _, s := range a.silences {
			list = append(list, map[string]any{
				"id": s.ID, "matchers": s.Matchers, "startsAt": s.StartsAt, "endsAt": s.EndsAt, "createdBy": s.CreatedBy, "comment": s.Comment,
				"status": map[string]string{"state": map[bool]string{true: "active", false: "expired"}[a.live(s)]},
			})
		}
		_ = json.NewEncoder(w).Encode(list)
	case http.MethodPost:
		a.post(w, r)
	case http.MethodDelete:
		if i := a.index(path.Base(r.URL.Path)); i < 0 {
			w.WriteHeader(http.StatusNotFound)
		} else if a.live(a.silences[i]) {
			a.silences[i].EndsAt = a.clock
		}
	}
}

func (a *alertmanager) post(w http.ResponseWriter, r *http.Request) {
	var s silence
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &s); err != nil || !s.EndsAt.After(a.clock) || s.Comment == "" || s.CreatedBy == "" || len(s.Matchers) == 0 {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(fmt.Sprintf("invalid silence: %s, %v", body, err))
		return
	}
	i := a.index(s.ID)
	switch {
	case s.ID != "" && i < 0:
		w.WriteHeader(http.StatusNotFound)
		return
	case s.ID != "" && a.live(a.silences[i]) && reflect.DeepEqual(s.Matchers, a.silences[i].Matchers) && s.StartsAt.Unix() == a.silences[i].StartsAt.Unix():
		a.silences[i] = s
	default:
		if s.ID != "" && a.live(a.silences[i]) {
			a.silences[i].EndsAt = a.clock
		}
		s.ID = fmt.Sprintf("silence-%d", len(a.silences)+1)
		if s.StartsAt.Before(a.clock) {
			s.StartsAt = a.clock
		}
		a.silences = append(a.silences, s)
	}
	if a.lost {
		a.lost = false
		panic(http.ErrAbortHandler)
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"silenceID": s.ID})
}

func (a *alertmanager) index(id string) int {
	return slices.IndexFunc(a.silences, func(s silence) bool { return s.ID == id })
}

func (a *alertmanager) live(s silence) bool { return s.EndsAt.After(a.clock) }

// say answers all requests of the method with the status, 0 for as it should be.
func (a *alertmanager) say(method string, status int) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.status[method] = status
}

// all are the silences that are active, as "id until HH:MM:SS: comment".
func (a *alertmanager) all() []string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	var all []string
	for _, s := range a.silences {
		if a.live(s) {
			all = append(all, fmt.Sprintf("%s until %s: %s", s.ID, s.EndsAt.Format(time.TimeOnly), s.Comment))
		}
	}
	return all
}

// made is how many silences were ever made.
func (a *alertmanager) made() int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return len(a.silences)
}

// asked is how many requests there were since it was asked last.
func (a *alertmanager) asked() int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	n := a.requests
	a.requests = 0
	return n
}

// deleteByHand ends a silence as somebody does by hand.
func (a *alertmanager) deleteByHand(id string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.silences[a.index(id)].EndsAt = a.clock
}

// forget loses all silences, as an Alertmanager without a disk does.
func (a *alertmanager) forget() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.silences = nil
}

// mark is what the comments of the job's silences end with.
const mark = " (UpgradeJob ns/job 0815)"

const (
	controlPlane = "Silence for OSD control plane upgrade to version 4.18.2" + mark
	criticals    = "Silence for critical alerts during OSD control plane upgrade to version 4.18.2" + mark
)

func workers(remaining int) string {
	return fmt.Sprintf("Silence for OSD worker node upgrade to version 4.18.2 with remaining %d nodes%s", remaining, mark)
}

// maintained is a world with an Alertmanager. One process lives through all passes, unless it is restarted.
type maintained struct {
	*world
	*alertmanager
	client *monitoring.Client
}

func newMaintained(t *testing.T, objects ...client.Object) *maintained {
	t.Helper()
	if !slices.ContainsFunc(objects, func(o client.Object) bool { _, is := o.(*v1beta1.UpgradeJob); return is }) {
		objects = append(objects, newJob(known))
	}
	m := &maintained{world: newWorld(t, append(objects, openshifttest.ClusterVersion())...), alertmanager: newAlertmanager(t)}
	m.restart()
	return m
}

// known gives the job the uid that the comments have.
func known(job *v1beta1.UpgradeJob) { job.UID = "0815" }

func withMaintenance(change func(*v1beta1.Maintenance)) jobOption {
	return func(job *v1beta1.UpgradeJob) {
		job.Spec.Config.Maintenance = &v1beta1.Maintenance{}
		change(job.Spec.Config.Maintenance)
	}
}

func withCriticals(m *v1beta1.Maintenance) {
	m.ControlPlaneCriticals = []string{"EtcdDown", "API.*Down"}
}

// restart begins a process that knows nothing.
func (m *maintained) restart() {
	m.t.Helper()
	var err error
	if m.client, err = monitoring.New(monitoring.Options{AlertmanagerURL: m.URL}); err != nil {
		m.t.Fatal(err)
	}
}

// at sets the time since the start, of everybody.
func (m *maintained) at(after time.Duration) *maintained {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.now, m.clock = start.Add(after), start.Add(after)
	return m
}

// upgrading is the step that the others stand before: nothing is completed.
type upgrading struct{}

func (upgrading) Condition() string { return "Waiting" }

func (upgrading) Run(context.Context, *steps.Upgrade) (steps.Verdict, error) {
	return steps.Wait(0, "Waiting", "It waits."), nil
}

// pass does one pass and writes the job's status.
func (m *maintained) pass(list ...steps.Step) steps.Result {
	m.t.Helper()
	u := m.upgrade()
	u.Monitoring = m.client
	result := steps.Run(m.t.Context(), append(list, upgrading{}), u)
	if err := u.Persist(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
	return result
}

// killed does one pass of which nothing is recorded.
func (m *maintained) killed(list ...steps.Step) {
	m.t.Helper()
	u := m.upgrade()
	u.Monitoring = m.client
	steps.Run(m.t.Context(), list, u)
	m.restart()
}

// cleanUp does the cleanup, and returns how long it waits.
func (m *maintained) cleanUp() time.Duration {
	m.t.Helper()
	u := m.upgrade()
	u.Monitoring, u.Hooks = m.client, nil
	wait, err := steps.CleanUp(m.t.Context(), []steps.Step{steps.SilencesRemoved()}, u)
	if err != nil {
		m.t.Fatal(err)
	}
	if wait == 0 { // as the controller does
		if err := u.Persist(m.t.Context()); err != nil {
			m.t.Fatal(err)
		}
	}
	return wait
}

// want checks that the pass is to be repeated after that time, and what is silenced, in order.
func (m *maintained) want(result steps.Result, after time.Duration, silences ...string) {
	m.t.Helper()
	if result.Outcome != steps.Running || result.Err != nil || result.After != after {
		m.t.Errorf("got %+v, want one after %s", result, after)
	}
	if got := m.all(); !slices.Equal(got, silences) {
		m.t.Errorf("silenced are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(silences, "\n"))
	}
}

// says checks the message of a condition, and whether it is True.
func (m *maintained) says(condition string, holds bool, message string) {
	m.t.Helper()
	for _, c := range m.job().Status.Conditions {
		if c.Type == condition {
			if c.Message != message || (c.Status == metav1.ConditionTrue) != holds {
				m.t.Errorf("%s=%s says\n%q, want\n%q", condition, c.Status, c.Message, message)
			}
			return
		}
	}
	m.t.Errorf("there is no condition %s", condition)
}

// windowStatus returns what is recorded of a window, as "from until ids: warning", empty if nothing is.
func (m *maintained) windowStatus(name v1beta1.MaintenanceWindowName) string {
	m.t.Helper()
	for _, w := range m.job().Status.MaintenanceWindows {
		if w.Name != name {
			continue
		}
		text := fmt.Sprintf("%s to %s", w.StartTime.UTC().Format(time.TimeOnly), w.Until.UTC().Format(time.TimeOnly))
		for _, s := range w.Silences {
			text += fmt.Sprintf(", %s until %s", s.ID, s.EndTime.UTC().Format(time.TimeOnly))
			if s.Critical {
				text += " (critical)"
			}
		}
		if w.Warning != "" {
			text += "; " + w.Warning
		}
		return text
	}
	return ""
}

// records checks what is recorded of a window.
func (m *maintained) records(name v1beta1.MaintenanceWindowName, want string) {
	m.t.Helper()
	if got := m.windowStatus(name); got != want {
		m.t.Errorf("recorded is\n%q, want\n%q", got, want)
	}
}
