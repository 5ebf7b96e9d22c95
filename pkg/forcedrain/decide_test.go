// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package forcedrain_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/forcedrain"
)

// seen is when the drain of most tests was seen first: not at a whole second, as most things are.
var seen = time.Date(2026, time.November, 24, 22, 0, 0, 400_000_000, time.UTC)

const id = "drain-a1"

// The grace periods of most tests.
var graces = forcedrain.Graces{Node: 15 * time.Minute, Protected: 15 * time.Minute, Pod: 2 * time.Minute}

func at(after time.Duration) time.Time { return seen.Add(after) }

// drain is one of the node worker-1 that was seen first that long after seen, and is to be looked at next at that time.
func drain(after time.Duration, next time.Time) forcedrain.Drain {
	return forcedrain.Drain{Node: "worker-1", ID: id, Observed: at(after), Next: next}
}

// draining is the node worker-1, whose drain began when it was seen.
func draining(o ...func(*forcedrain.Node)) forcedrain.Node {
	n := forcedrain.Node{Name: "worker-1", DrainID: id, Began: seen}
	for _, override := range o {
		override(&n)
	}
	return n
}

// unwitnessed is a drain that was under way when this process began.
func unwitnessed(n *forcedrain.Node) { n.Began = time.Time{} }

func begunAgain(after time.Duration) func(*forcedrain.Node) {
	return func(n *forcedrain.Node) { n.Began = at(after) }
}

// pod is one that is selected and runs.
func pod(name string, o ...func(*forcedrain.Pod)) forcedrain.Pod {
	p := forcedrain.Pod{Namespace: "shop", Name: name, Selected: true}
	for _, override := range o {
		override(&p)
	}
	return p
}

// requested is when the deletion of a pod was asked for, cut to the second as the API does.
func requested(when time.Time, grace int64) func(*forcedrain.Pod) {
	return func(p *forcedrain.Pod) { p.Requested, p.GraceSeconds = when.Truncate(time.Second), grace }
}

func protected(p *forcedrain.Pod) { p.Protection = forcedrain.Protected }

func unprotected(p *forcedrain.Pod) { p.Protection = forcedrain.Unprotected }

func notSelected(p *forcedrain.Pod) { p.Selected = false }

// confirmed is a view after the node was read.
func confirmed(cordoned time.Time, pods ...forcedrain.Pod) *forcedrain.View {
	return &forcedrain.View{Pods: pods, Confirmed: true, DrainID: id, Cordoned: cordoned}
}

func unconfirmed(pods ...forcedrain.Pod) *forcedrain.View { return &forcedrain.View{Pods: pods} }

// deletions names what is deleted, with a mark if that is by force.
func deletions(d forcedrain.Decision) []string {
	var names []string
	for _, deletion := range d.Delete {
		name := deletion.Drain.Node + ": " + deletion.Namespace + "/" + deletion.Name
		if deletion.Forced {
			name += "!"
		}
		names = append(names, name)
	}
	return names
}

func TestDecideAboutPods(t *testing.T) {
	const second, minute = time.Second, time.Minute
	cordoned := seen.Truncate(time.Second) // before it was seen, in the same second
	for _, tc := range []struct {
		reason  string
		now     time.Duration // after seen
		drain   forcedrain.Drain
		graces  forcedrain.Graces
		view    *forcedrain.View
		delete  []string
		next    time.Duration // after seen; zero for never
		read    bool
		confirm bool
	}{
		{"at first nothing is read", 0, drain(0, time.Time{}), graces, nil, nil, 2 * minute, false, false},
		{"nor for want of a grace period for pods", 2 * minute, drain(0, time.Time{}), forcedrain.Graces{Node: 15 * minute, Protected: 15 * minute}, nil, nil, 15 * minute, false, false},
		{"nor ever without any", 99 * minute, drain(0, time.Time{}), forcedrain.Graces{}, nil, nil, 0, false, false},
		{"the first that may be due", 2 * minute, drain(0, time.Time{}), graces, nil, nil, 0, true, false},
		{"a nanosecond before", 2*minute - 1, drain(0, time.Time{}), graces, nil, nil, 2 * minute, false, false},
		{"no look before its time", 3 * minute, drain(0, at(4*minute)), graces, nil, nil, 4 * minute, false, false},

		{"pods that run have time", 2 * minute, drain(0, time.Time{}), graces, unconfirmed(pod("cart")), nil, 4 * minute, false, false},
		{"the node is read before a pod is deleted", 15 * minute, drain(0, at(15*minute)), graces, unconfirmed(pod("cart")), nil, 0, false, true},
		{"the grace period of the node is over", 15 * minute, drain(0, at(15*minute)), graces, confirmed(cordoned, pod("cart"), pod("a")),
			[]string{"worker-1: shop/a", "worker-1: shop/cart"}, 16 * minute, false, false},
		{"a nanosecond before", 15*minute - 1, drain(0, at(14*minute)), graces, unconfirmed(pod("cart")), nil, 15 * minute, false, false},
		{"only pods that are selected", 15 * minute, drain(0, at(15*minute)), graces, unconfirmed(pod("cart", notSelected)), nil, 16 * minute, false, false},
		{"one that ends already is not deleted twice", 15 * minute, drain(0, at(15*minute)), graces, unconfirmed(pod("cart", requested(at(14*minute), 600))), nil, 16 * minute, false, false},
		{"the grace period of the node is off", 99 * minute, drain(0, at(98*minute)), forcedrain.Graces{Pod: 2 * minute}, unconfirmed(pod("cart")), nil, 101 * minute, false, false},
		{"it is looked at every minute from then on", 20 * minute, drain(0, at(20*minute)), forcedrain.Graces{Node: 15 * minute, Protected: 15 * minute}, unconfirmed(), nil, 21 * minute, false, false},

		// Requested at 5m, which is 22:05:00.4; the API says 22:05:00, which may have been 22:05:01.
		{"one that hangs has time", 6 * minute, drain(0, at(6*minute)), graces, unconfirmed(pod("cart", requested(at(5*minute), 30))), nil, 7*minute + 600*time.Millisecond, false, false},
		{"just before its time", 7*minute + 600*time.Millisecond - 1, drain(0, at(7*minute)), graces, unconfirmed(pod("cart", requested(at(5*minute), 30))), nil, 7*minute + 600*time.Millisecond, false, false},
		{"its time has come", 7*minute + 600*time.Millisecond, drain(0, at(7*minute)), graces, confirmed(cordoned, pod("cart", requested(at(5*minute), 30))),
			[]string{"worker-1: shop/cart!"}, 9*minute + 600*time.Millisecond, false, false},
		{"even where those that run are left alone", 7*minute + 600*time.Millisecond, drain(0, at(7*minute)), forcedrain.Graces{Pod: 2 * minute}, confirmed(cordoned, pod("cart", requested(at(5*minute), 30)), pod("run")),
			[]string{"worker-1: shop/cart!"}, 9*minute + 600*time.Millisecond, false, false},
		{"it hung before the drain: that counts from the drain", 2*minute - 1, drain(0, at(minute)), graces, unconfirmed(pod("cart", requested(at(-time.Hour), 30))), nil, 2 * minute, false, false},
		{"and then comes its time", 2 * minute, drain(0, at(minute)), graces, confirmed(cordoned, pod("cart", requested(at(-time.Hour), 30))), []string{"worker-1: shop/cart!"}, 4 * minute, false, false},
		{"not one that is not selected", 99 * minute, drain(0, at(98*minute)), forcedrain.Graces{Pod: 2 * minute}, unconfirmed(pod("cart", requested(at(0), 30), notSelected)), nil, 101 * minute, false, false},
		{"never twice", 99 * minute, drain(0, at(98*minute)), forcedrain.Graces{Pod: 2 * minute}, unconfirmed(pod("cart", requested(at(0), 1))), nil, 101 * minute, false, false},
		{"nor where its own grace is none", 99 * minute, drain(0, at(98*minute)), forcedrain.Graces{Pod: 2 * minute}, unconfirmed(pod("cart", requested(at(0), 0))), nil, 101 * minute, false, false},
		{"nor where it is off", 99 * minute, drain(0, at(98*minute)), forcedrain.Graces{Node: 999 * minute, Protected: 999 * minute}, unconfirmed(pod("cart", requested(at(0), 30))), nil, 999 * minute, false, false},
		{"a grace period of nearly nothing does not make it look all the time", minute, drain(0, at(minute)), forcedrain.Graces{Pod: 1}, unconfirmed(), nil, minute + second, false, false},
		{"pods are deleted in order, by force or not", 20 * minute, drain(0, at(20*minute)), graces, confirmed(cordoned, pod("c"), pod("b", requested(at(5*minute), 30)), pod("a")),
			[]string{"worker-1: shop/a", "worker-1: shop/b!", "worker-1: shop/c"}, 21 * minute, false, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			facts := &forcedrain.Facts{
				Graces: tc.graces, Recorded: []forcedrain.Drain{tc.drain}, Nodes: []forcedrain.Node{draining()}, Views: map[string]forcedrain.View{}, Now: at(tc.now),
			}
			if tc.view != nil {
				facts.Views["worker-1"] = *tc.view
			}
			d := forcedrain.Decide(facts)
			if diff := cmp.Diff(tc.delete, deletions(d)); diff != "" {
				t.Errorf("deletes (-want +got):\n%s", diff)
			}
			var next time.Time
			if tc.next > 0 {
				next = at(tc.next)
			}
			if !d.Next.Equal(next) {
				t.Errorf("looks again at %s, want %s", d.Next, next)
			}
			if got := len(d.Read) == 1; got != tc.read {
				t.Errorf("reads the pods of %v, want %t", d.Read, tc.read)
			}
			if got := len(d.Confirm) == 1; got != tc.confirm {
				t.Errorf("reads the nodes %v, want %t", d.Confirm, tc.confirm)
			}
			if tc.view != nil && !tc.confirm && !d.Drains[0].Next.Equal(next) {
				t.Errorf("remembers to look at %s, want %s", d.Drains[0].Next, next)
			}
		})
	}
}

func TestDecideSinceWhenANodeDrains(t *testing.T) {
	const minute = time.Minute
	old := drain(-time.Hour, time.Time{})
	for _, tc := range []struct {
		reason   string
		now      time.Duration
		node     forcedrain.Node
		recorded []forcedrain.Drain
		want     forcedrain.Drain
	}{
		{"seen for the first time", minute, draining(), nil, drain(minute, time.Time{})},
		{"seen before", minute, draining(), []forcedrain.Drain{drain(0, at(2*minute))}, drain(0, at(2*minute))},
		{"seen before by another process", minute, draining(unwitnessed), []forcedrain.Drain{old}, old},
		{"by another id", minute, draining(func(n *forcedrain.Node) { n.DrainID = "drain-b2" }), []forcedrain.Drain{drain(0, time.Time{})},
			forcedrain.Drain{Node: "worker-1", ID: "drain-b2", Observed: at(minute)}},
		{"of another node", minute, draining(func(n *forcedrain.Node) { n.Name = "worker-2" }), []forcedrain.Drain{drain(0, time.Time{})},
			forcedrain.Drain{Node: "worker-2", ID: id, Observed: at(minute)}},
		{"given up and asked for again by the same id", 20 * minute, draining(begunAgain(19 * minute)), []forcedrain.Drain{drain(0, at(21*minute))}, drain(20*minute, time.Time{})},
		{"and seen since", 21 * minute, draining(begunAgain(19 * minute)), []forcedrain.Drain{drain(0, time.Time{}), drain(20*minute, time.Time{})}, drain(20*minute, time.Time{})},
		{"what this process knows counts more than the status", 5 * minute, draining(unwitnessed), []forcedrain.Drain{drain(minute, at(6*minute)), old}, drain(minute, at(6*minute))},
		{"the clock was set back since it began", -time.Hour, draining(), nil, drain(0, time.Time{})},
		{"recorded to the microsecond, and not as earlier than it was", minute + 1, draining(), nil, drain(minute+time.Microsecond, time.Time{})},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			d := forcedrain.Decide(&forcedrain.Facts{Graces: graces, Recorded: tc.recorded, Nodes: []forcedrain.Node{tc.node}, Now: at(tc.now)})
			if diff := cmp.Diff([]forcedrain.Drain{tc.want}, d.Drains); diff != "" {
				t.Errorf("follows (-want +got):\n%s", diff)
			}
		})
	}
	if d := forcedrain.Decide(&forcedrain.Facts{Graces: graces, Recorded: []forcedrain.Drain{old}, Now: seen}); len(d.Drains) > 0 || !d.Next.IsZero() {
		t.Errorf("a drain that is over is followed: %+v", d)
	}
}

func TestDecideWhetherTheDrainIsANewerOne(t *testing.T) {
	const minute, millisecond = time.Minute, time.Millisecond
	now := at(15 * minute)
	whole := func(after time.Duration) time.Time { return at(after).Truncate(time.Second) }
	another := confirmed(whole(0), pod("cart"))
	another.DrainID = "drain-b2"
	over := confirmed(whole(0), pod("cart"))
	over.DrainID = ""
	for _, tc := range []struct {
		reason string
		node   forcedrain.Node
		view   *forcedrain.View
		delete bool
		since  time.Duration // after seen
		next   time.Duration
	}{
		{"cordoned before it was seen, in the same second", draining(), confirmed(whole(0), pod("cart")), true, 0, 16 * minute},
		{"the taint was late", draining(), confirmed(whole(600*millisecond), pod("cart")), false, 1600 * millisecond, 15*minute + 1600*millisecond},
		{"cordoned anew, which nobody here saw", draining(), confirmed(whole(10*minute), pod("cart")), false, 10*minute + 600*millisecond, 17 * minute},
		{"not known when it was cordoned", draining(), confirmed(time.Time{}, pod("cart")), true, 0, 16 * minute},
		{"cordoned long before", draining(), confirmed(whole(-time.Hour), pod("cart")), true, 0, 16 * minute},
		{"seen by another process, cordoned before", draining(unwitnessed), confirmed(whole(-time.Second), pod("cart")), true, 0, 16 * minute},
		{"seen by another process, cordoned perhaps after, in the same second", draining(unwitnessed), confirmed(whole(0), pod("cart")), false, 600 * millisecond, 15*minute + 600*millisecond},
		{"seen by another process, cordoned anew", draining(unwitnessed), confirmed(whole(10*minute), pod("cart")), false, 10*minute + 600*millisecond, 17 * minute},
		{"another drain by now", draining(), another, false, 0, 16 * minute},
		{"over by now", draining(), over, false, 0, 16 * minute},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			facts := &forcedrain.Facts{
				Graces: graces, Recorded: []forcedrain.Drain{drain(0, now)}, Nodes: []forcedrain.Node{tc.node},
				Views: map[string]forcedrain.View{"worker-1": *tc.view}, Now: now,
			}
			d := forcedrain.Decide(facts)
			if got := len(d.Delete) > 0; got != tc.delete {
				t.Errorf("deletes %v, want %t", deletions(d), tc.delete)
			}
			if diff := cmp.Diff([]forcedrain.Drain{drain(tc.since, at(tc.next))}, d.Drains); diff != "" {
				t.Errorf("follows (-want +got):\n%s", diff)
			}
			if !tc.delete || tc.since != 0 {
				return
			}
			for _, deletion := range d.Delete {
				if !deletion.Drain.Observed.Equal(seen) {
					t.Errorf("deletes a pod of a drain since %s", deletion.Drain.Observed)
				}
			}
		})
	}
}

// A drain that was found to be newer is not found to be newer still: its pods are deleted when the second grace period is over.
func TestDecideRestartsADrainOnce(t *testing.T) {
	for _, node := range []forcedrain.Node{draining(), draining(unwitnessed)} {
		facts := &forcedrain.Facts{
			Graces: graces, Recorded: []forcedrain.Drain{drain(0, at(15*time.Minute))}, Nodes: []forcedrain.Node{node},
			Views: map[string]forcedrain.View{"worker-1": *confirmed(at(10*time.Minute).Truncate(time.Second), pod("cart"))}, Now: at(15 * time.Minute),
		}
		for range 20 {
			d := forcedrain.Decide(facts)
			if len(d.Delete) > 0 {
				break
			}
			facts.Recorded, facts.Now = d.Drains, d.Next
		}
		if want := at(25*time.Minute + 600*time.Millisecond); !facts.Now.Equal(want) {
			t.Errorf("deleted at %s, want %s", facts.Now, want)
		}
	}
}

func TestDecideFollowsTheOldestDrains(t *testing.T) {
	const more = 3
	facts := &forcedrain.Facts{Graces: graces, Now: at(time.Hour)}
	name := func(i int) string { return fmt.Sprintf("worker-%03d", i) }
	for i := v1beta1.MaxObservedDrains + more - 1; i >= 0; i-- { // the last ones began first
		facts.Nodes = append(facts.Nodes, forcedrain.Node{Name: name(i), DrainID: id, Began: at(-time.Duration(i) * time.Second)})
	}
	facts.Nodes[0].Began = at(0) // the youngest of them, which is recorded already
	facts.Recorded = []forcedrain.Drain{{Node: facts.Nodes[0].Name, ID: id, Observed: at(time.Second)}}
	d := forcedrain.Decide(facts)
	if len(d.Drains) != v1beta1.MaxObservedDrains || !d.Crowded {
		t.Fatalf("follows %d drains (crowded: %t), want %d", len(d.Drains), d.Crowded, v1beta1.MaxObservedDrains)
	}
	if first, last := d.Drains[0].Node, d.Drains[len(d.Drains)-1]; first != name(more) || last.Node != facts.Nodes[0].Name || !last.Observed.Equal(at(time.Second)) {
		t.Errorf("follows %s to %+v, want those that began first, and the one that is recorded", first, last)
	}

	facts.Recorded = d.Drains
	facts.Nodes = facts.Nodes[more:] // some are done
	facts.Now = at(2 * time.Hour)
	d = forcedrain.Decide(facts)
	if len(d.Drains) != v1beta1.MaxObservedDrains || d.Crowded {
		t.Fatalf("follows %d drains (crowded: %t), want all that are left", len(d.Drains), d.Crowded)
	}
	if first := d.Drains[0]; first.Node != name(0) || !first.Observed.Equal(facts.Now) {
		t.Errorf("the first is %+v, want the one that waited, from now on", first)
	}
}

func TestLookAt(t *testing.T) {
	d := forcedrain.Decision{Drains: []forcedrain.Drain{{Node: "a", Next: at(1)}, {Node: "b", Next: at(2)}}, Next: at(1)}
	d.LookAt("a", time.Time{})
	d.LookAt("b", at(9))
	if !d.Drains[0].Next.IsZero() || !d.Drains[1].Next.Equal(at(9)) || !d.Next.Equal(at(1)) {
		t.Errorf("got %+v", d)
	}
	d.LookAt("b", seen)
	if !d.Next.Equal(seen) {
		t.Errorf("looks again at %s, want earlier", d.Next)
	}
}
