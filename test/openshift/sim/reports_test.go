// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reporting is a cluster that updates, with MachineConfigNodes.
func reporting(t *testing.T, edits ...func(*Scenario)) *virtual {
	t.Helper()
	return drainingCluster(t, append(edits, func(s *Scenario) { s.MachineConfigNodes = true })...)
}

// phases lists the conditions of a report that are not False, Unknown ones with a question mark.
func phases(report *mcfgv1.MachineConfigNode) string {
	var said []string
	for _, c := range report.Status.Conditions {
		switch c.Status {
		case metav1.ConditionTrue:
			said = append(said, c.Type)
		case metav1.ConditionUnknown:
			said = append(said, c.Type+"?")
		case metav1.ConditionFalse:
		}
	}
	slices.Sort(said)
	return strings.Join(said, " ")
}

// phasesSeen returns how worker-0's report changed.
func (v *virtual) phasesSeen() []string {
	var seen []string
	for _, report := range v.reports {
		if now := phases(report); len(seen) == 0 || seen[len(seen)-1] != now {
			seen = append(seen, now)
		}
	}
	return seen
}

func (v *virtual) message(phase mcfgv1.StateProgress) string {
	v.t.Helper()
	conditions := v.view.reports["worker-0"].Status.Conditions
	i := indexOf(conditions, phase)
	if i < 0 {
		v.t.Fatalf("no condition %s in %v", phase, conditions)
	}
	return conditions[i].Message
}

// untilReported waits until worker-0 is updated, and its report says so.
func (v *virtual) untilReported() {
	v.t.Helper()
	v.until("worker-0 is updated and reported", func() bool {
		report := v.view.reports["worker-0"]
		return report != nil && report.Spec.ConfigVersion.Desired != v.reports[0].Spec.ConfigVersion.Desired && phases(report) == "Updated" &&
			report.Status.ConfigVersion.Current == report.Spec.ConfigVersion.Desired
	})
}

func TestReportFollowsTheNode(t *testing.T) {
	v := reporting(t)
	v.until("a report", func() bool {
		return v.view.reports["worker-0"] != nil && v.view.reports["worker-0"].Status.ConfigVersion != nil
	})
	first := v.view.reports["worker-0"]
	old := v.node("worker-0").Annotations[annotationCurrentConfig]
	if first.Spec.Node.Name != "worker-0" || first.Spec.Pool.Name != workerPool || first.Spec.ConfigVersion.Desired != old || *first.Status.ConfigVersion != (mcfgv1.MachineConfigNodeStatusMachineConfigVersion{Current: old, Desired: old}) {
		t.Errorf("first report: %+v, %+v", first.Spec, first.Status.ConfigVersion)
	}
	for _, c := range first.Status.Conditions {
		if c.Type != "Updated" && (c.Status != metav1.ConditionFalse || c.Reason != "NotYetOccurred" || c.Message != "This node has not yet entered the "+c.Type+" phase") {
			t.Errorf("first report says %+v", c)
		}
	}
	v.untilReported()
	want := []string{
		"", "Updated",
		"UpdateExecuted? UpdatePrepared",
		"Cordoned Drained? UpdateExecuted? UpdatePrepared",
		"AppliedFilesAndOS? Cordoned Drained UpdateExecuted? UpdatePrepared",
		"AppliedFilesAndOS Cordoned Drained RebootedNode? UpdateExecuted UpdatePostActionComplete? UpdatePrepared",
		"AppliedFilesAndOS Cordoned Drained RebootedNode Resumed UpdateExecuted UpdatePostActionComplete UpdatePrepared",
		"AppliedFilesAndOS Cordoned Drained RebootedNode Resumed Uncordoned? UpdateComplete? UpdateExecuted UpdatePostActionComplete UpdatePrepared",
		"AppliedFilesAndOS Cordoned Drained RebootedNode Resumed Uncordoned UpdateComplete UpdateExecuted UpdatePostActionComplete UpdatePrepared",
		"Updated",
	}
	if diff := cmp.Diff(want, v.phasesSeen()); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	config := v.view.pools[workerPool].Spec.Configuration.Name
	if m, want := v.message(mcfgv1.MachineConfigNodeResumed), "Action during update to "+config+": In desired config . Resumed normal operations."; m != want {
		t.Errorf("after the update Resumed says %q, want %q", m, want)
	}
	if m := v.message(mcfgv1.MachineConfigNodeUpdated); m != "Node worker-0 Updated" {
		t.Errorf("Updated says %q", m)
	}
	last := v.view.reports["worker-0"]
	if last.Status.ConfigVersion.Current != config || last.Status.ConfigVersion.Desired != config {
		t.Errorf("after the update the report is of %+v, want %s", last.Status.ConfigVersion, config)
	}
}

func TestReportSaysWhatHoldsTheDrainUp(t *testing.T) {
	v := reporting(t)
	v.view.put(podOn("worker-0", "stuck", annotated(AnnotationStuckTerminating, "true")))
	v.view.put(podOn("worker-0", "held"))
	refuses := func(pod *corev1.Pod) error {
		if pod.Name == "held" {
			return errBudget
		}
		return nil
	}
	v.untilDraining()
	v.until("the drain is reported", func() bool { return strings.HasPrefix(v.message(mcfgv1.MachineConfigNodeUpdateDrained), "Dra") })
	if m := v.message(mcfgv1.MachineConfigNodeUpdateDrained); !strings.HasPrefix(m, "Draining node. The drain will not be complete until desired drainer drain-") {
		t.Errorf("an untroubled drain says %q", m)
	}
	v.refuses = refuses
	v.view.put(podOn("worker-0", "held", func(pod *corev1.Pod) { pod.UID = "another" }))
	held := `error when evicting pods/"held" -n "shop": ` + budgetRefuses
	const stuck = `error when waiting for pod "stuck" in namespace "shop" to terminate: global timeout reached: 1m30s`
	says := func(text string) func() bool {
		return func() bool {
			return strings.HasPrefix(v.message(mcfgv1.MachineConfigNodeUpdateDrained), "Error: Node Drain has not succeeded. Error is: "+text+" The drain will not be complete until")
		}
	}
	v.until("the refusal is reported", says(held))
	v.until("both are reported", says("["+held+", "+stuck+"]"))
	v.refuses = nil
	v.until("the stuck one is reported", says(stuck))
	v.delete(v.view.pods.all[podKey("stuck")], 1)
	v.untilReported()
	if m := v.message(mcfgv1.MachineConfigNodeUpdateDrained); !strings.Contains(m, ": Drained node. The drain is complete as the desired drainer matches current drainer: drain-") {
		t.Errorf("after the update Drained says %q", m)
	}
}

func TestReportSaysThatTheNodeIsDegraded(t *testing.T) {
	v := reporting(t, func(s *Scenario) { s.Timings.DrainFails = Duration(time.Minute) })
	v.view.put(podOn("worker-0", "held"))
	v.refuses = func(*corev1.Pod) error { return errors.New("no") }
	v.until("degraded", func() bool {
		return v.view.reports["worker-0"] != nil && conditionStatus(v.view.reports["worker-0"], mcfgv1.MachineConfigNodeNodeDegraded) == metav1.ConditionTrue
	})
	if m := v.message(mcfgv1.MachineConfigNodeNodeDegraded); !strings.HasSuffix(m, drainFailure("worker-0")) {
		t.Errorf("NodeDegraded says %q", m)
	}
	v.refuses = nil
	v.until("well", func() bool {
		return conditionStatus(v.view.reports["worker-0"], mcfgv1.MachineConfigNodeNodeDegraded) == metav1.ConditionFalse
	})
	if phases(v.view.reports["worker-0"]) == "Updated" {
		t.Error("it is well only after the update")
	}
	v.untilReported()
}

func TestReportOfADrainThatIsGivenUp(t *testing.T) {
	v := reporting(t, func(s *Scenario) {
		s.Nodes = []NodeFault{{Name: "worker-0", AbandonsDrain: Duration(time.Second)}}
	})
	v.untilReported()
	seen := v.phasesSeen()
	first := slices.Index(seen, "Cordoned Drained? UpdateExecuted? UpdatePrepared")
	again := slices.Index(seen, "Cordoned Drained? Uncordoned UpdateComplete UpdateExecuted? UpdatePrepared")
	if first < 0 || again < first {
		t.Errorf("the drain is reported as number %d and %d of %q", first, again, seen)
	}
}

func TestReportNamesPodsInOrder(t *testing.T) {
	v := reporting(t)
	v.refuses = func(*corev1.Pod) error { return errBudget }
	var want []string
	for _, name := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") { // too many to be in order by chance
		v.view.put(podOn("worker-0", name))
		want = append(want, `error when evicting pods/"`+name+`" -n "shop": `+budgetRefuses)
	}
	v.untilDraining()
	v.pass(time.Second)
	r := reporter{node: v.node("worker-0"), pods: v.view.pods, watch: v.watch}
	if diff := cmp.Diff(want, r.drainProblems()); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestReportWaitsForTheDaemon has a node that is to be updated and has not begun.
func TestReportWaitsForTheDaemon(t *testing.T) {
	v := reporting(t)
	v.until("a report", func() bool {
		return v.view.reports["worker-0"] != nil && phases(v.view.reports["worker-0"]) == "Updated"
	})
	node := v.node("worker-0").DeepCopy()
	node.Annotations[annotationDesiredConfig] = "rendered-worker-next"
	r := reporter{node: node, pods: v.view.pods, watch: v.watch}
	report := v.view.reports["worker-0"].DeepCopy()
	report.Spec.ConfigVersion.Desired = "rendered-worker-next"
	if next := r.report(report); next != nil {
		t.Errorf("before the daemon begins the report turns to %q: %+v", phases(next), next.Status.ConfigVersion)
	}
	node.Annotations[annotationState] = stateWorking
	if next := r.report(report); next == nil || phases(next) != "UpdateExecuted? UpdatePrepared" || next.Status.ConfigVersion.Desired != "rendered-worker-next" {
		t.Errorf("once the daemon has begun the report is %+v", next)
	}
}
