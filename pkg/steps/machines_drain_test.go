// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// heldUp are a pod on a node, and the budget that lets nobody evict it.
func heldUp(app, node string) []client.Object {
	return []client.Object{openshifttest.Pod("shop", app, 0, node), openshifttest.Budget("shop", app, 1, 1, 1)}
}

const (
	cartIsHeld    = "pod shop/cart-0: PodDisruptionBudget shop/cart "
	cartBlocks    = "DrainBlocked Pod/shop/cart-0"
	workerUpdates = "MachineConfigPoolUpdating MachineConfigPool/worker"
)

// Most drains are over within a moment. One that is not is looked into then, not at the next turn of a pool.
func TestWhatHoldsADrainUpIsToldSoon(t *testing.T) {
	w := rolling(t, append(heldUp("cart", "worker-1"), worker("worker-1", openshifttest.NodeDraining("x")), worker("worker-2", openshifttest.NodeRebooting("x")))...)
	if got := w.look(); got.After != 2*time.Second {
		t.Errorf("comes back after %s, want 2s", got.After)
	}
	w.expectNodes("worker-1 Draining 0", "worker-2 Rebooting 0")
	if diff := cmp.Diff([]string{workerUpdates, "NodeUpdating Node/worker-1", "NodeUpdating Node/worker-2"}, blockersOf(w.job())); diff != "" {
		t.Errorf("blockers (-want +got):\n%s", diff)
	}

	w.now = w.now.Add(1500 * time.Millisecond)
	if got := w.look(); got.After != 500*time.Millisecond {
		t.Errorf("comes back after %s, want what is left of 2s", got.After)
	}
	w.now = w.now.Add(500 * time.Millisecond)
	if got := w.look(); got.After != openshift.NodesInterval {
		t.Errorf("comes back after %s, want %s", got.After, openshift.NodesInterval)
	}
	if diff := cmp.Diff([]string{cartBlocks, workerUpdates, "NodeUpdating Node/worker-1", "NodeUpdating Node/worker-2"}, blockersOf(w.job())); diff != "" {
		t.Errorf("blockers (-want +got):\n%s", diff)
	}
	b := w.job().Status.Blockers[0]
	if !strings.HasPrefix(b.Message, "Node worker-1 of pool worker is draining and waits for "+cartIsHeld) || b.ClearsWhen != "pod shop/cart-0 has left node worker-1" || !b.Since.Time.Equal(w.now) {
		t.Errorf("got the blocker %+v", b)
	}
	if nodes := w.nodesNow(); !strings.HasPrefix(nodes[0], "worker-1 Draining 2 "+cartIsHeld) {
		t.Errorf("got the nodes %q", nodes)
	}

	w.now = w.now.Add(10 * time.Second)
	w.look()
	if got := w.job().Status.Blockers[0]; !got.Since.Equal(&b.Since) {
		t.Errorf("the blocker stands since %s, want still %s", got.Since, b.Since)
	}
	if err := w.api.Delete(t.Context(), heldUp("cart", "worker-1")[0]); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(10 * time.Second)
	w.look()
	w.expectNodes("worker-1 Draining 22", "worker-2 Rebooting 22")
	if got := blockersOf(w.job()); got[0] != workerUpdates {
		t.Errorf("got the blockers %q after the pod is gone", got)
	}
}

// The pass comes back for a drain that has just begun, whatever the present step says.
func TestADrainWakesOtherStepsToo(t *testing.T) {
	w := rolling(t, worker("worker-1", openshifttest.NodeDraining("x")))
	for _, tc := range []struct{ wait, want time.Duration }{{0, 2 * time.Second}, {time.Hour, 2 * time.Second}, {time.Second, time.Second}} {
		if got := w.pass(answering(t, "Any", steps.Wait(tc.wait, "Waiting", "..."))); got.After != tc.want {
			t.Errorf("a step waits for %s: the pass comes back after %s, want %s", tc.wait, got.After, tc.want)
		}
	}
	if got := w.pass(failing(t, "Any", errors.New("on fire"))); got.After != 2*time.Second || got.Err == nil {
		t.Errorf("a step breaks: got %+v", got)
	}
	if got := w.pass(failing(t, "Any", errConflict)); got.After != 2*time.Second || got.Err == nil {
		t.Errorf("a step meets a conflict: got %+v", got)
	}
	if got := w.pass(answering(t, "Any", steps.Done("..."))); got.After != 0 {
		t.Errorf("all is done: the pass comes back after %s", got.After)
	}
}

// What does not go on by itself comes first, and of pools that are waited for only.
func TestWhatIsStuckComesFirst(t *testing.T) {
	objects := append(heldUp("cart", "worker-2"), heldUp("till", "infra-0")...)
	objects = append(objects, heldUp("desk", "alien")...)
	w := rolling(t, append(objects,
		pool("infra", openshifttest.PoolAt(target)), pool("gpu", openshifttest.PoolTowards(target, 0)),
		worker("worker-1", openshifttest.NodeRebooting("x")), worker("worker-2", openshifttest.NodeDraining("x")), worker("worker-3", degraded("disk full")),
		openshifttest.Node("infra-0", "infra", openshifttest.NodeDraining("x")), openshifttest.Node("alien", "nobody", openshifttest.NodeDraining("x")),
		openshifttest.Node("gpu-0", "gpu", degraded("no driver")))...)
	w.look()
	w.now = w.now.Add(5 * time.Second)
	w.look()
	want := []string{
		"NodeDegraded Node/gpu-0", cartBlocks, "NodeDegraded Node/worker-3",
		"MachineConfigPoolUpdating MachineConfigPool/gpu", workerUpdates, "NodeUpdating Node/worker-1", "NodeUpdating Node/worker-2",
	}
	if diff := cmp.Diff(want, blockersOf(w.job())); diff != "" {
		t.Errorf("blockers (-want +got):\n%s", diff)
	}
	messages := map[string]string{}
	for _, b := range w.job().Status.Blockers {
		messages[b.Object] = b.Message + " / " + b.ClearsWhen
	}
	for object, want := range map[string]string{
		"Node/gpu-0":    "Node gpu-0 of pool gpu is degraded: no driver / the machine-config daemon of node gpu-0 can go on",
		"Node/worker-1": "Node worker-1 of pool worker is rebooting / node worker-1 runs the new configuration and is schedulable",
	} {
		if messages[object] != want {
			t.Errorf("%s: got %q, want %q", object, messages[object], want)
		}
	}
	attention := map[string]bool{"DrainBlocked": true, "NodeDegraded": true}
	for _, b := range w.job().Status.Blockers {
		if steps.NeedsAttention(b) != attention[b.Code] {
			t.Errorf("%s needs attention: %t", b.Code, steps.NeedsAttention(b))
		}
	}
}

// Each node that is looked into costs requests: it is the eight that drain for longest, and the eight of the others that
// are longest where they are. However many reboot, a drain that hangs is seen.
func TestNodesThatAreLongestWhereTheyAreAreLookedInto(t *testing.T) {
	w := rolling(t)
	asked := map[string]bool{}
	w.api = interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if _, ok := o.(*mcfgv1.MachineConfigNode); ok {
				asked[key.Name] = true
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	w.same = nil
	w.same = w.cluster()
	for i := range 12 {
		w.put(worker(fmt.Sprintf("reboots-%02d", 20-i), openshifttest.NodeRebooting("x")))
		w.put(worker(fmt.Sprintf("drains-%02d", 20-i), openshifttest.NodeDraining("x")))
		w.look()
		w.now = w.now.Add(20 * time.Second)
	}
	clear(asked)
	w.look()
	var want []string
	for i := 13; i <= 20; i++ {
		want = append(want, fmt.Sprintf("drains-%02d", i), fmt.Sprintf("reboots-%02d", i))
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(asked))); diff != "" {
		t.Errorf("looked into (-want +got):\n%s", diff)
	}
}

// A node that is not looked into yet needs no pass of its own: it gets its turn when another one has moved on.
func TestADrainBehindManyOthersWakesNobody(t *testing.T) {
	w := rolling(t)
	for i := range 8 {
		w.put(worker(fmt.Sprintf("worker-%d", i), openshifttest.NodeDraining("x")))
	}
	w.look()
	w.now = w.now.Add(10 * time.Second)
	w.look()
	w.put(heldUp("cart", "worker-8")...)
	w.put(worker("worker-8", openshifttest.NodeDraining("x")))
	if got := w.look(); got.After != openshift.NodesInterval {
		t.Errorf("comes back after %s, want %s", got.After, openshift.NodesInterval)
	}
	w.put(worker("worker-0", openshifttest.NodeDrained("x")))
	w.now = w.now.Add(10 * time.Second)
	w.look() // seen to be updating, which is more recent
	if got := blockersOf(w.job()); got[0] != cartBlocks {
		t.Errorf("got the blockers %q, want what holds worker-8 first", got)
	}
}

// What holds a drain up is an extra: that it cannot be told changes nothing else.
func TestADrainThatCannotBeLookedInto(t *testing.T) {
	for _, kind := range []string{"PodList", "PodDisruptionBudgetList"} {
		w := rolling(t, append(heldUp("cart", "worker-1"), worker("worker-1", openshifttest.NodeDraining("x")))...)
		w.look()
		w.now = w.now.Add(5 * time.Second)
		store := w.api
		w.api, w.same = interceptor.NewClient(store, failingList(errors.New("on fire"), kind)), nil
		w.same = w.cluster()
		w.look()
		w.expectNodes("worker-1 Draining 5")
		if diff := cmp.Diff([]string{workerUpdates, "NodeUpdating Node/worker-1"}, blockersOf(w.job())); diff != "" {
			t.Errorf("%s: blockers (-want +got):\n%s", kind, diff)
		}
	}
}

// The words of the machine-config operator's own attempts stand where nothing better is known.
func TestADrainThatFailsForAnotherReason(t *testing.T) {
	const told = "Error: Node Drain has not succeeded. Error is: error when evicting pods/\"x\": too many requests The drain will not be complete until desired drainer drain-x matches current drainer uncordon-0"
	mcn := openshifttest.MachineConfigNode("worker-1", "worker", target, openshifttest.Stage(mcfgv1.MachineConfigNodeUpdateDrained, metav1.ConditionUnknown, told))
	w := rolling(t, mcn, worker("worker-1", openshifttest.NodeDraining("x")))
	w.look()
	w.now = w.now.Add(2 * time.Second)
	w.look()
	w.expectNodes(`worker-1 Draining 2 error when evicting pods/"x": too many requests`)
	w.put(heldUp("cart", "worker-1")...)
	w.now = w.now.Add(10 * time.Second)
	w.look()
	if nodes := w.nodesNow(); !strings.HasPrefix(nodes[0], "worker-1 Draining 12 "+cartIsHeld) {
		t.Errorf("got the nodes %q", nodes)
	}
	blocker := v1beta1.Blocker{}
	for _, b := range w.job().Status.Blockers {
		if b.Object == "Node/worker-1" {
			blocker = b
		}
	}
	if want := `Node worker-1 of pool worker is draining: error when evicting pods/"x": too many requests`; blocker.Message != want {
		t.Errorf("got the blocker %+v, want it to say %q", blocker, want)
	}
}
