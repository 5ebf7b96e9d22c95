// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func startAlertmanager(t *testing.T) *Alertmanager {
	t.Helper()
	a, err := StartAlertmanager(t.Context(), AlertmanagerOptions{Progress: t.Output()})
	must(t, err)
	t.Cleanup(func() { must(t, a.Close()) })
	return a
}

// post writes a silence as a client does that knows what it wants, and returns its id.
func post(t *testing.T, a *Alertmanager, s Silence) string {
	t.Helper()
	var answer struct {
		SilenceID string `json:"silenceID"`
	}
	must(t, a.call(t.Context(), http.MethodPost, "/api/v2/silences", s, &answer))
	return answer.SilenceID
}

// aSilence lasts from now on for so long.
func aSilence(lasts time.Duration) Silence {
	now := time.Now()
	return Silence{
		CreatedBy: "night", Comment: "An upgrade is running.", StartsAt: now, EndsAt: now.Add(lasts),
		Matchers: []Matcher{
			{Name: "severity", Value: "(warning|info)", IsRegex: true, IsEqual: true}, {Name: "namespace", Value: "shop"},
		},
	}
}

// the returns a silence by its id.
func the(t *testing.T, a *Alertmanager, id string) Silence {
	t.Helper()
	silences, err := a.Silences(t.Context())
	must(t, err)
	i := slices.IndexFunc(silences, func(s Silence) bool { return s.ID == id })
	if i < 0 {
		t.Fatalf("silence %s is not known", id)
	}
	return silences[i]
}

func TestSilencesOfEveryState(t *testing.T) {
	a := startAlertmanager(t)
	active := post(t, a, aSilence(time.Hour))
	later := aSilence(2 * time.Hour)
	later.StartsAt = later.StartsAt.Add(time.Hour)
	pending := post(t, a, later)
	expired := post(t, a, aSilence(time.Hour))
	must(t, a.Expire(t.Context(), expired))

	for id, state := range map[string]string{active: SilenceActive, pending: SilencePending, expired: SilenceExpired} {
		if got := the(t, a, id).Status.State; got != state {
			t.Errorf("a silence is %s, want %s", got, state)
		}
	}
	silences, err := a.Silences(t.Context())
	must(t, err)
	if len(silences) != 3 || silences[0].ID != pending || silences[2].ID != active {
		t.Errorf("silences: %+v, want the one first that begins last", silences)
	}
	got := the(t, a, active)
	if words := fmt.Sprint(got.Matchers); words != `[severity=~"(warning|info)" namespace!="shop"]` {
		t.Errorf("matchers: %s", words)
	}
	if got.CreatedBy != "night" || got.Comment != "An upgrade is running." || time.Until(got.EndsAt) < 55*time.Minute {
		t.Errorf("silence: %+v", got)
	}
}

// kinds words events, like "Created Extended Ended early".
func kinds(events []SilenceEvent) string {
	var words []string
	for _, event := range events {
		words = append(words, string(event.Kind))
		if event.Early {
			words = append(words, "early")
		}
	}
	return strings.Join(words, " ")
}

func TestSilenceRecorder(t *testing.T) {
	a := startAlertmanager(t)
	r, err := a.RecordSilences(t.Context())
	must(t, err)
	defer r.Close()
	before := time.Now()
	kept := post(t, a, aSilence(time.Hour))
	short := post(t, a, aSilence(time.Second))
	must(t, r.Look(t.Context()))
	between := time.Now()
	for _, lasts := range []time.Duration{2 * time.Hour, 90 * time.Minute} {
		s := the(t, a, kept)
		s.EndsAt = time.Now().Add(lasts)
		if id := post(t, a, s); id != kept {
			t.Fatalf("the silence has become %s, want %s as before", id, kept)
		}
		must(t, r.Look(t.Context()))
	}
	must(t, a.Expire(t.Context(), kept))
	must(t, await(t.Context(), func(context.Context) error { // the recorder by itself
		if got := kinds(r.Of(short)); got != "Created Ended" {
			return errors.New(got)
		}
		return nil
	}))
	if got, want := kinds(r.Of(kept)), "Created Extended Shortened Ended early"; got != want {
		t.Errorf("events: %s, want %s", got, want)
	}
	if got := len(r.Events()); got != 6 {
		t.Errorf("%d events in all, want 6", got)
	}
	for at, want := range map[time.Time]int{before.Add(-time.Second): 0, between: 2, time.Now().Add(time.Second): 0} {
		if got := r.ActiveAt(at); len(got) != want {
			t.Errorf("active then: %+v, want %d", got, want)
		}
	}
}

func TestSilenceRecorderBeginsWithWhatThereIs(t *testing.T) {
	a := startAlertmanager(t)
	active, expired := post(t, a, aSilence(time.Hour)), post(t, a, aSilence(time.Hour))
	must(t, a.Expire(t.Context(), expired))
	r, err := a.RecordSilences(t.Context())
	must(t, err)
	r.Close()
	r.Close()
	if got, want := kinds(r.Of(active))+", "+kinds(r.Of(expired)), "Created, Created Ended early"; got != want {
		t.Errorf("events: %s, want %s", got, want)
	}
	must(t, a.Stop())
	if _, err := a.RecordSilences(t.Context()); err == nil {
		t.Error("record the silences of an Alertmanager that is away: no error")
	}
}

func TestGatewayIsAwayForAWhile(t *testing.T) {
	gateway, client := startGateway(t, "http://"+startBackend(t).Address())
	gateway.SetToken("secret")
	ask := func() (int, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		status, _, err := client.get(ctx, "/metrics", "Bearer secret")
		return status, err
	}
	for how, fits := range map[Away]func(int, error) bool{
		AwayRefused:     func(_ int, err error) bool { return errors.Is(err, syscall.ECONNREFUSED) },
		AwayUnavailable: func(status int, err error) bool { return err == nil && status == http.StatusServiceUnavailable },
		AwayHangs:       func(_ int, err error) bool { return errors.Is(err, context.DeadlineExceeded) },
	} {
		back, err := gateway.GoAway(t.Context(), how)
		must(t, err)
		if status, err := ask(); !fits(status, err) {
			t.Errorf("%s: %d, %v", how, status, err)
		}
		for range 2 {
			must(t, back())
		}
		if status, err := ask(); err != nil || status != http.StatusOK {
			t.Errorf("back from %s: %d, %v, want the answer of the backend", how, status, err)
		}
	}
	if _, err := gateway.GoAway(t.Context(), "cheese"); err == nil {
		t.Error("an unknown way to be away: no error")
	}
}
