// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

type nodeOption = func(*corev1.Node)

// worker returns a worker that is to have the new configuration.
func worker(name string, options ...nodeOption) *corev1.Node {
	return openshifttest.Node(name, "worker", append([]nodeOption{openshifttest.NodeTowards("worker", target)}, options...)...)
}

// degraded makes the machine-config daemon of a node give up.
func degraded(reason string) nodeOption {
	return openshifttest.NodeAnnotations(map[string]string{"state": "Degraded", "reason": reason})
}

// rolling is the world in which the workers follow the control plane.
func rolling(t *testing.T, objects ...client.Object) *world {
	w := newRelease(t, newJob(begun(steps.ConditionMachineConfigPoolsUpgraded, 0)), append(objects, pool("worker", openshifttest.PoolTowards(target, 1)))...)
	w.same = w.cluster()
	return w
}

// look is a pass over the pools.
func (w *world) look() steps.Result {
	w.t.Helper()
	result := w.pass(steps.MachineConfigPoolsUpgraded())
	if result.Err != nil {
		w.t.Fatal(result.Err)
	}
	return result
}

// nodesNow tells of each node in the status: its phase, for how many seconds, and what else is said.
func (w *world) nodesNow() []string {
	w.t.Helper()
	var all []string
	for _, p := range w.job().Status.Pools {
		for _, n := range p.Nodes {
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %.0f %s", n.Name, n.Phase, w.now.Sub(n.Since.Time).Seconds(), n.Message)))
		}
	}
	return all
}

func (w *world) expectNodes(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.nodesNow()); diff != "" {
		w.t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

func TestStatusOfPools(t *testing.T) {
	note := "Entries 0, 2 of machineConfigPools select the pool; the first of them counts."
	w := newRelease(t, newJob(delays("infra", 2*time.Hour, 5*time.Hour), delays("gpu", 3*time.Hour, 0), delays("infra", time.Hour, 0)),
		pool("master", openshifttest.PoolAt(target)), pool("worker", openshifttest.PoolTowards(target, 1)), behind("infra", openshifttest.PoolPausedBy(me)),
		pool("gpu", openshifttest.PoolPaused()), pool("storage", openshifttest.PoolTowards(target, 2), openshifttest.PoolCondition(mcfgv1.MachineConfigPoolNodeDegraded, "disk full"),
			func(p *mcfgv1.MachineConfigPool) { p.Status.DegradedMachineCount = 1 }),
		openshifttest.MachineConfig("storage", target), openshifttest.MachineConfig("master", target),
		worker("worker-1", openshifttest.NodeRebooting("x")), openshifttest.Node("infra-0", "infra"))
	w.look()
	at := func(after time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(start.Add(after))) }
	status := func(name string, state v1beta1.PoolState, updated, unavailable int32, s v1beta1.MachineConfigPoolStatus) v1beta1.MachineConfigPoolStatus {
		s.Name, s.State, s.Machines, s.Updated, s.Unavailable = name, state, 3, updated, unavailable
		s.CurrentConfig, s.TargetConfig = openshifttest.RenderedConfig(name, "4.18.1"), openshifttest.RenderedConfig(name, target)
		return s
	}
	want := []v1beta1.MachineConfigPoolStatus{
		status("gpu", "Paused", 3, 0, v1beta1.MachineConfigPoolStatus{Paused: true, UnpauseAfter: at(3 * time.Hour)}),
		status("infra", "Paused", 0, 0, v1beta1.MachineConfigPoolStatus{Paused: true, PausedBy: me, UnpauseAfter: at(2 * time.Hour), UnpauseBefore: at(5 * time.Hour), Message: note}),
		status("master", "Updated", 3, 0, v1beta1.MachineConfigPoolStatus{}),
		status("storage", "Degraded", 2, 1, v1beta1.MachineConfigPoolStatus{Degraded: 1}),
		status("worker", "Updating", 1, 1, v1beta1.MachineConfigPoolStatus{NodesInWork: 1, Nodes: []v1beta1.NodeStatus{{Name: "worker-1", Phase: "Rebooting", Since: metav1.NewTime(start)}}}),
	}
	want[0].TargetConfig = want[0].CurrentConfig
	want[2].CurrentConfig = want[2].TargetConfig
	if diff := cmp.Diff(want, w.job().Status.Pools); diff != "" {
		t.Errorf("status.pools (-want +got):\n%s", diff)
	}
	before := w.job().Status
	w.now = w.now.Add(time.Minute)
	w.look()
	if diff := cmp.Diff(before, w.job().Status); diff != "" {
		t.Errorf("a minute later something else is said (-before +after):\n%s", diff)
	}
}

// The release that the cluster is on its way to counts, before it is completed.
func TestStatusOfPoolsBeforeTheReleaseIsCompleted(t *testing.T) {
	w := newWorld(t, append(renderedConfigs("infra", "worker"), newJob(commenced), openshifttest.ClusterVersion(desired, updating), pool("infra"), pool("worker", openshifttest.PoolAt(target)))...)
	w.pass(steps.ControlPlaneUpgraded())
	for _, p := range w.job().Status.Pools {
		if want := map[string]v1beta1.PoolState{"infra": "NotRendered", "worker": "Updated"}[p.Name]; p.State != want {
			t.Errorf("pool %s is %s, want %s", p.Name, p.State, want)
		}
	}
}

func TestPhasesOfNodesCountFromWhenTheyWereSeen(t *testing.T) {
	w := rolling(t, worker("worker-1", openshifttest.NodeRebooting("x")), worker("worker-2", degraded("disk full")))
	w.look()
	w.expectNodes("worker-1 Rebooting 0", "worker-2 Degraded 0 disk full")
	w.now = w.now.Add(10 * time.Second)
	w.look()
	w.expectNodes("worker-1 Rebooting 10", "worker-2 Degraded 10 disk full")

	w.put(worker("worker-2", openshifttest.NodeRebooting("y")))
	w.look()
	w.expectNodes("worker-1 Rebooting 10", "worker-2 Rebooting 0")
	w.now = w.now.Add(10 * time.Second)
	w.same = nil // another process comes
	w.same = w.cluster()
	w.look()
	w.expectNodes("worker-1 Rebooting 20", "worker-2 Rebooting 10")

	w.put(worker("worker-1"))
	if err := w.api.Delete(t.Context(), worker("worker-2")); err != nil {
		t.Fatal(err)
	}
	w.look()
	w.expectNodes("worker-1 Pending 0")
	w.put(openshifttest.Node("worker-1", "worker"))
	w.look()
	w.expectNodes()
}

// A MachineConfigNode says more than the annotations do. Since when counts for what is told.
func TestPhasesOfNodesByTheirMachineConfigNodes(t *testing.T) {
	w := rolling(t, worker("worker-1", openshifttest.NodeDrained("x")), openshifttest.MachineConfigNode("worker-1", "worker", target))
	w.look()
	w.expectNodes("worker-1 Updating 0")
	w.now = w.now.Add(20 * time.Second)
	w.put(openshifttest.MachineConfigNode("worker-1", "worker", target, openshifttest.Stage(mcfgv1.MachineConfigNodeUpdateRebooted, metav1.ConditionUnknown, "")))
	w.look()
	w.expectNodes("worker-1 Rebooting 0")
	w.now = w.now.Add(10 * time.Second)
	w.look()
	w.expectNodes("worker-1 Rebooting 10")
	w.now = w.now.Add(10 * time.Second)
	w.same = nil // another process comes
	w.same = w.cluster()
	w.look()
	w.expectNodes("worker-1 Rebooting 20")
}

func TestStatusOfPoolsIsBounded(t *testing.T) {
	var objects []client.Object
	for i := range 70 {
		objects = append(objects, pool(fmt.Sprintf("a-%02d", i)))
	}
	w := rolling(t, objects...)
	w.look()
	if got := w.job().Status.Pools; len(got) != 64 || got[0].Name != "a-00" || got[63].Name != "a-63" {
		t.Errorf("got %d pools, want the first 64", len(got))
	}

	w = rolling(t)
	for _, i := range []int{9, 3, 11, 1, 5, 7, 0, 2, 4, 6, 8, 10} { // one every 10 s
		w.put(worker(fmt.Sprintf("worker-%02d", i), degraded(strings.Repeat("é", 300))))
		w.look()
		w.now = w.now.Add(10 * time.Second)
	}
	w.look()
	p := w.job().Status.Pools[0]
	var names []string
	for _, n := range p.Nodes {
		names = append(names, strings.TrimPrefix(n.Name, "worker-"))
		if len(n.Message) > 512 || !strings.HasSuffix(n.Message, "é...") {
			t.Errorf("got a message of %d bytes of %s: %q", len(n.Message), n.Name, n.Message)
		}
	}
	if diff := cmp.Diff([]string{"00", "01", "02", "03", "04", "05", "06", "07", "09", "11"}, names); diff != "" || p.NodesInWork != 12 {
		t.Errorf("got %d nodes in work, and those that are longest at it, by name (-want +got):\n%s", p.NodesInWork, diff)
	}
}

func TestWhatCannotBeReadOfPoolsStaysAsItWas(t *testing.T) {
	broken := errors.New("on fire")
	w := rolling(t, worker("worker-1", openshifttest.NodeRebooting("x")))
	w.look()
	before := w.job().Status.Pools
	w.editPool("worker", openshifttest.PoolTowards(target, 2))
	w.put(worker("worker-1", degraded("disk full")))
	for _, kind := range []string{"MachineConfigPoolList", "NodeList", "MachineConfig"} {
		u := w.upgrade()
		if w.breakList(u, broken, kind); kind == "MachineConfig" {
			w.breakGet(u, broken, kind)
		}
		if kind == "NodeList" {
			u.Cluster = openshift.NewCluster(interceptor.NewClient(w.api, failingList(broken, "Node")), w.api)
		}
		steps.Run(t.Context(), []steps.Step{answering(t, "Any", steps.Done("..."))}, u)
		if diff := cmp.Diff(before, u.Job.Status.Pools); diff != "" {
			t.Errorf("%s (-before +after):\n%s", kind, diff)
		}
	}
	u := w.upgrade()
	u.Job.Spec.Config.MachineConfigPools = []v1beta1.MachineConfigPoolConfig{{MatchLabels: &v1beta1.PoolSelector{Malformed: map[string]string{"size": "5"}}}}
	steps.Run(t.Context(), []steps.Step{answering(t, "Any", steps.Done("..."))}, u)
	if got := u.Job.Status.Pools[0].Updated; got != 2 {
		t.Errorf("a selector that is none: %d machines are said to be updated, want 2", got)
	}
}
