// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package forcedrain_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/appuio/managed-upgrade-operator/pkg/forcedrain"
)

// story is a node and a process that watches it. What is true stands beside what the process can know of it.
type story struct {
	graces forcedrain.Graces
	now    time.Time

	// The node. It drains since began by the id; cordoned is what its taint tells.
	draining bool
	id       string
	began    time.Time
	cordoned time.Time
	pods     []*truePod
	created  int
	// budgetsAway is set while budgets cannot be listed.
	budgetsAway bool

	// The process: what its watch saw, what it remembers, and what is in the status.
	blind            bool // its watch is broken
	seen             *forcedrain.Node
	memory, recorded []forcedrain.Drain
}

type truePod struct {
	name      string
	selected  bool
	protected bool
	requested time.Time // the zero time if its deletion was not asked for
	grace     int64
}

// advance lets time pass, and has the process do what it wants to do meanwhile.
func (s *story) advance(t *rapid.T, d time.Duration) {
	end := s.now.Add(d)
	for {
		next := s.pass(t)
		if next.IsZero() || next.After(end) {
			break
		}
		s.now = next
	}
	s.now = end
}

// pass is one pass of the process, which keeps its promises.
func (s *story) pass(t *rapid.T) time.Time {
	facts := &forcedrain.Facts{Graces: s.graces, Recorded: append(slices.Clone(s.memory), s.recorded...), Views: map[string]forcedrain.View{}, Now: s.now}
	if s.seen != nil {
		facts.Nodes = []forcedrain.Node{*s.seen}
	}
	d := forcedrain.Decide(facts)
	for questions := 0; len(d.Read)+len(d.Judge)+len(d.Confirm) > 0; questions++ {
		if questions == 3 {
			t.Fatalf("asks for what it was told: %+v", d)
		}
		if len(d.Judge) > 0 && s.budgetsAway {
			d.LookAt("worker-1", s.now.Add(forcedrain.LookInterval))
			break
		}
		s.answer(facts, &d)
		d = forcedrain.Decide(facts)
	}
	for _, deletion := range d.Delete {
		s.delete(t, &deletion)
	}
	if !d.Next.IsZero() && !d.Next.After(s.now) {
		t.Fatalf("looks again at %s, which is not after %s", d.Next, s.now)
	}
	s.memory = d.Drains
	if rapid.Bool().Draw(t, "status written") {
		s.recorded = d.Drains
	}
	return d.Next
}

// answer reads what the decision asks for.
func (s *story) answer(facts *forcedrain.Facts, d *forcedrain.Decision) {
	view := facts.Views["worker-1"]
	switch {
	case len(d.Read) > 0:
		view.Pods = s.api()
	case len(d.Judge) > 0:
		for i, p := range s.pods {
			view.Pods[i].Protection = forcedrain.Unprotected
			if p.protected {
				view.Pods[i].Protection = forcedrain.Protected
			}
		}
	default:
		view.Confirmed, view.Cordoned = true, s.cordoned
		if s.draining {
			view.DrainID = s.id
		}
	}
	facts.Views["worker-1"] = view
}

// graceOf returns how long a node drains before the pod is deleted, zero for never.
func (s *story) graceOf(p *truePod) time.Duration {
	if p.protected {
		return s.graces.Protected
	}
	return s.graces.Node
}

// api returns the pods as the API tells of them.
func (s *story) api() []forcedrain.Pod {
	var pods []forcedrain.Pod
	for _, p := range s.pods {
		pod := forcedrain.Pod{Namespace: "shop", Name: p.name, Selected: p.selected}
		if !p.requested.IsZero() {
			grace := time.Duration(p.grace) * time.Second
			pod.Requested, pod.GraceSeconds = p.requested.Add(grace).Truncate(time.Second).Add(-grace), p.grace
		}
		pods = append(pods, pod)
	}
	return pods
}

// delete fails if the deletion is before its time.
func (s *story) delete(t *rapid.T, d *forcedrain.Deletion) {
	i := slices.IndexFunc(s.pods, func(p *truePod) bool { return p.name == d.Name })
	p := s.pods[i]
	switch {
	case !s.draining || d.Drain.ID != s.id:
		t.Fatalf("deletes %s for %s, while the node drains (%t) by %s", p.name, d.Drain.ID, s.draining, s.id)
	case !p.selected:
		t.Fatalf("deletes %s, which is not selected", p.name)
	case !d.Forced && (s.graceOf(p) == 0 || !p.requested.IsZero() || s.now.Before(s.began.Add(s.graceOf(p)))):
		t.Fatalf("deletes %+v at %s of a drain since %s, with the grace periods %+v", p, s.now, s.began, s.graces)
	case d.Forced && (s.graces.Pod == 0 || p.requested.IsZero() || p.grace <= 1 ||
		s.now.Before(p.requested.Add(s.graces.Pod)) || s.now.Before(s.began.Add(s.graces.Pod))):
		t.Fatalf("deletes %+v by force at %s of a drain since %s, with the grace periods %+v", p, s.now, s.began, s.graces)
	}
	if d.Forced {
		p.grace = 1
	} else {
		p.requested, p.grace = s.now, 30
	}
}

// see is the watch of the process.
func (s *story) see(first bool) {
	switch {
	case s.blind:
	case !s.draining:
		s.seen = nil
	case s.seen == nil || s.seen.DrainID != s.id:
		s.seen = &forcedrain.Node{Name: "worker-1", DrainID: s.id}
		if !first {
			s.seen.Began = s.now
		}
	}
}

func (s *story) begin(t *rapid.T) {
	if s.draining {
		return
	}
	s.draining, s.began = true, s.now
	s.id = rapid.SampledFrom([]string{"drain-a1", "drain-b2"}).Draw(t, "id")
	s.cordoned = s.now.Truncate(time.Second)
	s.see(false)
	// The taint comes a little after the node is cordoned. The process may look meanwhile, but it does not begin to run in
	// between: it would have to trust what is recorded.
	if lag := rapid.SampledFrom([]time.Duration{0, 700 * time.Millisecond, 5 * time.Second}).Draw(t, "lag of the taint"); lag > 0 && !s.blind {
		s.cordoned = time.Time{}
		s.advance(t, lag)
		s.cordoned = s.now.Truncate(time.Second)
	}
}

func (s *story) cancel(t *rapid.T) {
	if !s.draining {
		return
	}
	if s.blind { // taints do not tell apart what happened within a second or two
		s.advance(t, 2*time.Second)
	}
	s.draining = false
	s.see(false)
}

func (s *story) restart(*rapid.T) {
	s.memory, s.seen, s.blind = nil, nil, false
	s.see(true)
}

func (s *story) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"begin":   s.begin,
		"cancel":  s.cancel,
		"restart": s.restart,
		"lose the watch": func(t *rapid.T) {
			s.advance(t, time.Second)
			s.blind = true
		},
		"regain the watch": func(t *rapid.T) {
			s.advance(t, time.Second)
			s.blind = false
			s.see(false)
		},
		"a pod": func(t *rapid.T) {
			s.created++
			s.pods = append(s.pods, &truePod{
				name: fmt.Sprintf("pod-%d", s.created), selected: rapid.Bool().Draw(t, "selected"), protected: rapid.Bool().Draw(t, "protected"),
			})
		},
		"budgets come and go": func(t *rapid.T) {
			for _, p := range s.pods {
				p.protected = rapid.Bool().Draw(t, p.name)
			}
		},
		"budgets cannot be listed": func(t *rapid.T) { s.budgetsAway = rapid.Bool().Draw(t, "away") },
		"evict": func(t *rapid.T) {
			for _, p := range s.pods {
				if p.requested.IsZero() && rapid.Bool().Draw(t, p.name) {
					p.requested, p.grace = s.now, rapid.Int64Range(0, 90).Draw(t, "grace")
				}
			}
		},
		"": func(t *rapid.T) {
			s.advance(t, time.Duration(rapid.Int64Range(0, int64(5*time.Minute)).Draw(t, "time")))
		},
	}
}

// expectProgress lets the drain go on undisturbed, after which no pod that is selected may be left alone.
func (s *story) expectProgress(t *rapid.T) {
	if !s.draining {
		s.begin(t)
	}
	s.blind, s.budgetsAway = false, false
	s.see(false)
	// A pod that came late is found in a minute. The rest is for the lag of a taint, and for the second in which it came.
	s.advance(t, max(s.graces.Node, s.graces.Protected)+s.graces.Pod+forcedrain.LookInterval+10*time.Second)
	s.pass(t)
	for _, p := range s.pods {
		switch {
		case !p.selected:
		case s.graceOf(p) > 0 && p.requested.IsZero():
			t.Fatalf("%+v is left alone at %s by a drain since %s, with the grace periods %+v", p, s.now, s.began, s.graces)
		case s.graces.Pod > 0 && p.grace > 1 && !s.now.Before(p.requested.Add(s.graces.Pod+10*time.Second)):
			t.Fatalf("%+v hangs at %s in a drain since %s, with the grace periods %+v", p, s.now, s.began, s.graces)
		}
	}
}

// Whatever becomes of drains, of the process and of its writes, nothing is deleted before its time, and everything is then.
func TestNothingIsDeletedBeforeItsTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grace := rapid.SampledFrom([]time.Duration{0, time.Second, 90 * time.Second, 15 * time.Minute})
		s := &story{
			graces: forcedrain.Graces{Node: grace.Draw(t, "node grace"), Protected: grace.Draw(t, "protected grace"), Pod: grace.Draw(t, "pod grace")},
			now:    seen.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "fraction"))),
		}
		t.Repeat(s.actions())
		s.expectProgress(t)
	})
}
