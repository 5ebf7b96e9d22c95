// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// seen is a node as the cache has it.
func seen(options ...func(*corev1.Node)) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: openshifttest.Node("worker-1", "worker", options...).ObjectMeta}
}

var (
	idleNode     = seen()
	draining     = seen(openshifttest.NodeDraining("x"))
	retried      = seen(openshifttest.NodeDraining("y"))
	drained      = seen(openshifttest.NodeDrained("x"))
	rebooting    = seen(openshifttest.NodeRebooting("x"))
	degradedNode = seen(openshifttest.NodeAnnotations(map[string]string{"state": "Degraded", "reason": "disk full"}))
	beating      = seen(openshifttest.NodeDraining("x"), func(n *corev1.Node) { n.ResourceVersion, n.Labels["zone"] = "7", "a" })
)

func TestNodesWakeJobsThatRun(t *testing.T) {
	w := newWorld(t, newJob("active", withPhase(v1beta1.PhaseActive)), newJob("paused", withPhase(v1beta1.PhasePaused)), newJob("failed", withPhase(v1beta1.PhaseFailed)),
		newJob("later", func(job *v1beta1.UpgradeJob) { job.Spec.StartAfter.Time = startAfter.Add(time.Second) }))
	woken := func(after time.Duration) map[string]time.Duration {
		return map[string]time.Duration{"active": after, "paused": after}
	}
	soon, later := woken(drainLook), woken(progressInterval)
	update := func(before, after client.Object) func(*testing.T, *queue) {
		return func(t *testing.T, q *queue) {
			w.jobs().awaitingNodes().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
		}
	}
	for _, tc := range []struct {
		reason string
		event  func(*testing.T, *queue)
		want   map[string]time.Duration
	}{
		{"it is cordoned and drains", func(t *testing.T, q *queue) {
			w.jobs().awaitingNodes().Create(t.Context(), event.CreateEvent{Object: draining}, q)
		}, soon},
		{"it drains", update(idleNode, draining), soon},
		{"it is drained anew", update(draining, retried), soon},
		{"it is degraded", update(rebooting, degradedNode), soon},
		{"it is drained", update(draining, drained), later},
		{"it reboots", update(drained, rebooting), later},
		{"it is cordoned by hand", func(t *testing.T, q *queue) {
			w.jobs().awaitingNodes().Create(t.Context(), event.CreateEvent{Object: idleNode}, q)
		}, later},
		{"it is uncordoned", func(t *testing.T, q *queue) {
			w.jobs().awaitingNodes().Delete(t.Context(), event.DeleteEvent{Object: draining}, q)
		}, later},
		{"the heartbeat of its kubelet", update(draining, beating), nil},
		{"nothing", update(draining, draining), nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			q := &queue{}
			tc.event(t, q)
			if diff := cmp.Diff(tc.want, q.added); diff != "" {
				t.Errorf("woken (-want +got):\n%s", diff)
			}
		})
	}
}

// The turns of many nodes become one look. None is lost: the look comes after it.
func TestTurnsOfManyNodesBecomeOneLook(t *testing.T) {
	w := newWorld(t, newJob("active", withPhase(v1beta1.PhaseActive)))
	h := w.jobs().awaitingNodes()
	for _, tc := range []struct {
		at            time.Duration
		before, after client.Object
		want          time.Duration // zero if a look is on its way
	}{
		{0, idleNode, draining, drainLook},
		{500 * time.Millisecond, idleNode, draining, 0},
		{600 * time.Millisecond, drained, rebooting, progressInterval},
		{900 * time.Millisecond, draining, drained, 0},
		{time.Second, idleNode, draining, drainLook},
		{10 * time.Second, drained, rebooting, 0},
		{10*time.Second + 600*time.Millisecond, drained, rebooting, progressInterval},
	} {
		w.clock.SetTime(startAfter.Add(tc.at))
		q := &queue{}
		h.Update(t.Context(), event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}, q)
		if got := q.added["active"]; got != tc.want {
			t.Errorf("after %s: woken after %s, want %s", tc.at, got, tc.want)
		}
	}
	w.clock.SetTime(startAfter.Add(-time.Hour)) // somebody sets the clock back
	w.add(newJob("early", func(job *v1beta1.UpgradeJob) { job.Spec.StartAfter.Time = startAfter.Add(-2 * time.Hour) }))
	q := &queue{}
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: idleNode, ObjectNew: draining}, q)
	if got := q.added["early"]; got != drainLook {
		t.Errorf("after the clock was set back: woken after %s, want %s", got, drainLook)
	}
}

func TestPoolsThatAreReleasedWakeTheJobThatHeldThem(t *testing.T) {
	byWeekly, byOther := newPool("infra", heldFor("upgrades/weekly")), newPool("infra", heldFor("upgrades/other"))
	byHand, byNobody := newPool("infra", openshifttest.PoolPaused()), newPool("infra", heldFor("somebody"))
	unpaused := newPool("infra", heldFor("upgrades/weekly"), freed(true))
	for _, tc := range []struct {
		reason        string
		before, after *mcfgv1.MachineConfigPool // after is nil for a pool that is gone
		want          []string
	}{
		{"it is paused", newPool("infra"), byWeekly, nil},
		{"it is released", byWeekly, newPool("infra"), []string{"weekly"}},
		{"it is unpaused by hand", byWeekly, unpaused, []string{"weekly"}},
		{"somebody takes it over", byWeekly, byHand, []string{"weekly"}},
		{"another job takes it over", byWeekly, byOther, []string{"weekly"}},
		{"it makes progress", byWeekly, newPool("infra", openshifttest.PoolTowards("4.18.2", 1), heldFor("upgrades/weekly")), nil},
		{"that of somebody is unpaused", byHand, newPool("infra"), nil},
		{"a name that is no job's is taken off", byNobody, newPool("infra"), nil},
		{"it is gone", byWeekly, nil, []string{"weekly"}},
		{"one that is not held is gone", newPool("infra"), nil, nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			q, h := &queue{}, newWorld(t).jobs().formerHolder()
			if tc.after == nil {
				h.Delete(t.Context(), event.DeleteEvent{Object: tc.before}, q)
			} else {
				h.Update(t.Context(), event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}, q)
			}
			var got []string
			for name := range q.added {
				got = append(got, name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("woken (-want +got):\n%s", diff)
			}
		})
	}
}

// Blockers come and go by the dozen, and are told every ten seconds. One that does not go by itself wants somebody's attention.
func TestWhatNeedsAttentionIsToldAtOnce(t *testing.T) {
	job := newJob("weekly")
	var blockers []v1beta1.Blocker
	w := newWorld(t, newClusterVersion(), job).register(waiting(func() (steps.Verdict, error) {
		return steps.Wait(0, "Updating", "It goes on.", append([]v1beta1.Blocker{}, blockers...)...), nil
	}))
	r := w.jobs()
	moves := func(node string) v1beta1.Blocker {
		return v1beta1.Blocker{Code: "NodeUpdating", Object: "Node/" + node}
	}
	stuck := func(pod string) v1beta1.Blocker {
		return v1beta1.Blocker{Code: "DrainBlocked", Object: "Pod/shop/" + pod}
	}
	broken := v1beta1.Blocker{Code: "NodeDegraded", Object: "Node/a"}
	blockers = []v1beta1.Blocker{moves("a")}
	w.reconcile(r, job)
	for _, tc := range []struct {
		reason string
		now    []v1beta1.Blocker
		told   bool
	}{
		{"another node moves", []v1beta1.Blocker{moves("a"), moves("b")}, false},
		{"a drain hangs", []v1beta1.Blocker{stuck("cart-0"), moves("a")}, true},
		{"a node moves beside it", []v1beta1.Blocker{stuck("cart-0"), moves("a"), moves("c")}, false},
		{"another pod holds it up", []v1beta1.Blocker{stuck("cart-1"), moves("a")}, true},
		{"a node is degraded", []v1beta1.Blocker{stuck("cart-1"), broken}, true},
		{"the drain goes on", []v1beta1.Blocker{broken}, false},
		{"so does the node", []v1beta1.Blocker{moves("a")}, false},
		{"and moves on", []v1beta1.Blocker{moves("b")}, false},
	} {
		w.api.writes()
		blockers = tc.now
		w.elapse(time.Second)
		result := w.reconcile(r, job)
		if told := len(w.api.writes()) > 0; told != tc.told {
			t.Errorf("%s: told at once %t, want %t", tc.reason, told, tc.told)
		}
		if !tc.told && (result.RequeueAfter <= 0 || result.RequeueAfter > progressInterval) {
			t.Errorf("%s: wakes after %s, want when it is told", tc.reason, result.RequeueAfter)
		}
	}
}

// A drain that hangs is told within seconds of its beginning, whatever else the job waits for.
func TestADrainThatHangsIsToldInSeconds(t *testing.T) {
	job := newJob("weekly", withPhase(v1beta1.PhaseActive))
	w := newWorld(t, newClusterVersion(), job).register(withPools())
	w.add(newPool("worker"), openshifttest.MachineConfig("worker", "4.18.1"))
	r := w.jobs()
	w.reconcile(r, job)
	w.acceptUpdate()
	w.completeUpdate()
	change(w, newPool("worker"), openshifttest.PoolTowards("4.18.2", 1))
	w.reconcile(r, job)

	w.add(openshifttest.Node("worker-1", "worker", openshifttest.NodeTowards("worker", "4.18.2"), openshifttest.NodeDraining("x")),
		openshifttest.Budget("shop", "cart", 1, 1, 1), openshifttest.Pod("shop", "cart", 0, "worker-1"))
	began := w.clock.Now()
	q := &queue{}
	r.awaitingNodes().Create(t.Context(), event.CreateEvent{Object: draining}, q)
	w.elapse(q.added["weekly"])
	for len(get(w, job).Status.Blockers) == 0 || get(w, job).Status.Blockers[0].Code != "DrainBlocked" {
		result := w.reconcile(r, job)
		if w.clock.Now().Sub(began) >= 5*time.Second {
			t.Fatalf("got the blockers %+v after %s", get(w, job).Status.Blockers, w.clock.Now().Sub(began))
		}
		if b := get(w, job).Status.Blockers; len(b) == 0 || b[0].Code != "DrainBlocked" {
			w.elapse(result.RequeueAfter)
		}
	}
	if b := get(w, job).Status.Blockers[0]; b.Object != "Pod/shop/cart-0" {
		t.Errorf("got the blocker %+v", b)
	}
}
