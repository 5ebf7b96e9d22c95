// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

func metadataOf(node *corev1.Node) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: node.ObjectMeta}
}

// An update of a node, annotation by annotation, in the order in which the machine-config operator sets them.
func TestNodeInWorkDuringAnUpdate(t *testing.T) {
	node := metadataOf(openshifttest.Node("worker-0", "worker"))
	for _, step := range []struct {
		reason string
		change map[string]string
		phase  v1beta1.NodePhase
		does   string
		drain  string // that is pending
	}{
		{"between two updates", nil, "", "", ""},
		{"a new configuration is desired", map[string]string{"desiredConfig": "rendered-worker-4.18.2"}, v1beta1.NodePhasePending, "is about to be updated", ""},
		{"the daemon begins", map[string]string{"state": "Working"}, v1beta1.NodePhaseUpdating, "is updating", ""},
		{"the daemon asks for a drain", map[string]string{"desiredDrain": "drain-1"}, v1beta1.NodePhaseDraining, "is draining", "drain-1"},
		{"the node is drained, files and OS are written", map[string]string{"lastAppliedDrain": "drain-1"}, v1beta1.NodePhaseUpdating, "is updating", ""},
		{"the node reboots", map[string]string{"state": "Rebooting"}, v1beta1.NodePhaseRebooting, "is rebooting", ""},
		{"the node is up again, and the daemon asks to uncordon it", map[string]string{"desiredDrain": "uncordon-1"}, v1beta1.NodePhaseDone, "is being uncordoned", ""},
		{"configuration and state are reported before it is uncordoned", map[string]string{"currentConfig": "rendered-worker-4.18.2", "state": "Done"}, v1beta1.NodePhaseDone, "is being uncordoned", ""},
		{"over", map[string]string{"lastAppliedDrain": "uncordon-1"}, "", "", ""},
	} {
		for key, value := range step.change {
			node.Annotations["machineconfiguration.openshift.io/"+key] = value
		}
		progress, inWork := openshift.NodeInWork(node)
		if progress.Phase != step.phase || progress.String() != step.does || inWork != (step.phase != "") {
			t.Errorf("%s: got %s, %q, %t; want %s, %q", step.reason, progress.Phase, progress, inWork, step.phase, step.does)
		}
		if drain, pending := openshift.PendingDrain(node); pending != (step.drain != "") || pending && drain != step.drain {
			t.Errorf("%s: got the pending drain %q, %t; want %q", step.reason, drain, pending, step.drain)
		}
	}
}

func TestNodeInWork(t *testing.T) {
	const degraded, updating = v1beta1.NodePhaseDegraded, v1beta1.NodePhaseUpdating
	for _, tc := range []struct {
		reason string
		change map[string]string
		want   openshift.NodeProgress
		does   string
	}{
		{"degraded, with the daemon's reason", map[string]string{"state": "Degraded", "reason": "disk full"}, openshift.NodeProgress{Phase: degraded, Message: "disk full"}, "is degraded: disk full"},
		{"degraded without a reason", map[string]string{"state": "Degraded"}, openshift.NodeProgress{Phase: degraded}, "is degraded"},
		{
			"degraded comes before draining: the drain may be why", map[string]string{"state": "Degraded", "reason": "failed to drain node", "desiredDrain": "drain-1"},
			openshift.NodeProgress{Phase: degraded, Message: "failed to drain node"}, "is degraded: failed to drain node",
		},
		{
			"a configuration that cannot be reconciled", map[string]string{"state": "Unreconcilable", "reason": "kernel arguments"},
			openshift.NodeProgress{Phase: degraded, Message: "kernel arguments"}, "is degraded: kernel arguments",
		},
		{"a reason that is left over is no work", map[string]string{"reason": "disk full"}, openshift.NodeProgress{}, ""},
		{"a drain by hand leaves no annotation", map[string]string{}, openshift.NodeProgress{}, ""},
		{"a state that is not known yet", map[string]string{"state": ""}, openshift.NodeProgress{Phase: updating}, "is updating"},
		{"a reason that is left over is not told of other work", map[string]string{"state": "Working", "reason": "disk full"}, openshift.NodeProgress{Phase: updating}, "is updating"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			node := openshifttest.Node("worker-0", "worker", openshifttest.NodeAnnotations(tc.change))
			got, inWork := openshift.NodeInWork(metadataOf(node))
			if got != tc.want || got.String() != tc.does || inWork != (tc.does != "") {
				t.Errorf("got %+v, %q, %t; want %+v, %q", got, got, inWork, tc.want, tc.does)
			}
		})
	}
	t.Run("a node that the machine-config operator does not manage", func(t *testing.T) {
		if got, inWork := openshift.NodeInWork(&metav1.PartialObjectMetadata{}); inWork {
			t.Errorf("got %q", got)
		}
	})
}

func TestPoolOf(t *testing.T) {
	pool := func(name string) mcfgv1.MachineConfigPool { return *openshifttest.Pool(name) }
	selecting := func(name string, selector *metav1.LabelSelector) mcfgv1.MachineConfigPool {
		return *openshifttest.Pool(name, func(p *mcfgv1.MachineConfigPool) { p.Spec.NodeSelector = selector })
	}
	infra := openshifttest.Node("n", "worker", openshifttest.NodeRole("infra"))
	compact := openshifttest.Node("n", "worker", openshifttest.NodeRole("master"))

	for _, tc := range []struct {
		reason string
		node   *corev1.Node
		pools  []mcfgv1.MachineConfigPool
		want   string
	}{
		{"a worker", openshifttest.Node("n", "worker"), []mcfgv1.MachineConfigPool{pool("master"), pool("worker"), pool("infra")}, "worker"},
		{"a custom pool comes before worker", infra, []mcfgv1.MachineConfigPool{pool("worker"), pool("infra")}, "infra"},
		{"whatever the order of the list", infra, []mcfgv1.MachineConfigPool{pool("infra"), pool("worker")}, "infra"},
		{"master comes before worker", compact, []mcfgv1.MachineConfigPool{pool("worker"), pool("master")}, "master"},
		{"whatever the order of the list", compact, []mcfgv1.MachineConfigPool{pool("master"), pool("worker")}, "master"},
		{"no pool selects it", openshifttest.Node("n", "gpu"), []mcfgv1.MachineConfigPool{pool("master"), pool("worker")}, ""},
		{"a pool without a selector selects nothing", openshifttest.Node("n", "gpu"), []mcfgv1.MachineConfigPool{selecting("gpu", nil)}, ""},
		{"an empty selector selects nothing", openshifttest.Node("n", "gpu"), []mcfgv1.MachineConfigPool{selecting("gpu", &metav1.LabelSelector{})}, ""},
		{"a selector that cannot be parsed selects nothing", openshifttest.Node("n", "gpu"), []mcfgv1.MachineConfigPool{
			selecting("gpu", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}),
		}, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := openshift.NewMembership(tc.pools).PoolOf(metadataOf(tc.node)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTrimMachineConfig(t *testing.T) {
	full := openshifttest.MachineConfig("worker", "4.18.2")
	mc := &metav1.PartialObjectMetadata{ObjectMeta: full.ObjectMeta}
	want := mc.DeepCopy()
	mc.Annotations["machineconfiguration.openshift.io/generated-by-controller-version"] = "0123"
	mc.Labels = map[string]string{"a": "b"}
	mc.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "controller"}}
	mc.OwnerReferences = []metav1.OwnerReference{{Name: "worker"}}

	openshift.TrimMachineConfig(mc)
	if diff := cmp.Diff(want, mc); diff != "" {
		t.Error(diff)
	}

	byHand := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"}}}
	openshift.TrimMachineConfig(byHand)
	if len(byHand.Annotations) != 0 {
		t.Errorf("a configuration that no release rendered: got %v", byHand.Annotations)
	}
}

func TestTrimNode(t *testing.T) {
	node := metadataOf(openshifttest.Node("worker-0", "worker", openshifttest.NodeDraining("1")))
	want := node.DeepCopy()
	node.Annotations["csi.volume.kubernetes.io/nodeid"] = strings.Repeat("x", 1000)
	node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	node.OwnerReferences = []metav1.OwnerReference{{Name: "machine"}}

	openshift.TrimNode(node)
	if diff := cmp.Diff(want, node); diff != "" {
		t.Error(diff)
	}
}
