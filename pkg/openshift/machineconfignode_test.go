// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// goesOn makes a stage of a MachineConfigNode one that is in progress.
func goesOn(stage mcfgv1.StateProgress, message string) func(*mcfgv1.MachineConfigNode) {
	return openshifttest.Stage(stage, metav1.ConditionUnknown, message)
}

const (
	drained, applied = mcfgv1.MachineConfigNodeUpdateDrained, mcfgv1.MachineConfigNodeUpdateFilesAndOS
	rebooted         = mcfgv1.MachineConfigNodeUpdateRebooted
	uncordoned       = mcfgv1.MachineConfigNodeUpdateUncordoned
	nodeDegraded     = mcfgv1.MachineConfigNodeNodeDegraded
)

// Words of the drain controller of the machine-config operator.
const (
	attempt = "Draining node. The drain will not be complete until desired drainer drain-1 matches current drainer uncordon-0"
	refusal = `[error when evicting pods/"cart-0" -n "shop": global timeout reached: 1m30s]`
	failure = "Error: Node Drain has not succeeded. Error is: " + refusal + " The drain will not be complete until desired drainer drain-1 matches current drainer uncordon-0"
)

func TestJudgeNodeProgress(t *testing.T) {
	type (
		nodeOption = func(*corev1.Node)
		stages     = []func(*mcfgv1.MachineConfigNode)
	)
	begun := openshifttest.NodeAnnotations(map[string]string{"state": "Working"})
	isDegraded := openshifttest.NodeAnnotations(map[string]string{"state": "Degraded"})
	because := openshifttest.NodeAnnotations(map[string]string{"reason": "disk full"})
	uncordoning := openshifttest.NodeAnnotations(map[string]string{"state": "Done", "desiredDrain": "uncordon-1"})
	failed := openshifttest.Stage(nodeDegraded, metav1.ConditionTrue, "cannot write /etc/motd")
	over := func(stage mcfgv1.StateProgress) func(*mcfgv1.MachineConfigNode) {
		return openshifttest.Stage(stage, metav1.ConditionTrue, "over")
	}
	idle := func(*corev1.Node) {}

	for _, tc := range []struct {
		reason string
		node   nodeOption
		stages stages
		want   string // what the node does
	}{
		{"nothing is begun", idle, nil, "is about to be updated"},
		{"the MachineConfigNode says so first: a drain", idle, stages{goesOn(drained, attempt)}, "is draining"},
		{"the MachineConfigNode says so first: files and OS", idle, stages{goesOn(applied, "")}, "is updating"},
		{"before the drain", begun, nil, "is updating"},
		{"before the drain, as the annotations have it", begun, stages{goesOn(drained, failure)}, "is draining: " + refusal},

		{"the drain goes on", openshifttest.NodeDraining("1"), stages{goesOn(drained, attempt)}, "is draining"},
		{"the drain has failed", openshifttest.NodeDraining("1"), stages{goesOn(drained, failure)}, "is draining: " + refusal},
		{"the drain has failed, in other words", openshifttest.NodeDraining("1"), stages{goesOn(drained, "cannot evict pod cart-0")}, "is draining: cannot evict pod cart-0"},
		{"the drain is not heard of yet", openshifttest.NodeDraining("1"), nil, "is draining"},
		{"the drain is over, which is not heard of yet", openshifttest.NodeDraining("1"), stages{over(drained), goesOn(applied, "")}, "is draining"},
		{"a drain that is asked for once more, after an attempt that came to rebooting", openshifttest.NodeDraining("1"), stages{over(drained), over(applied), goesOn(rebooted, "")}, "is draining"},
		{"what an attempt has left of the drain is told", openshifttest.NodeDraining("1"), stages{goesOn(drained, failure), goesOn(applied, "")}, "is draining: " + refusal},

		{"the drain is over, which the MachineConfigNode has not heard of yet", openshifttest.NodeDrained("1"), stages{goesOn(drained, failure)}, "is updating"},
		{"files and OS are written", openshifttest.NodeDrained("1"), stages{over(drained), goesOn(applied, "")}, "is updating"},
		{"the same in image mode", idle, stages{goesOn(mcfgv1.MachineConfigNodeUpdateFiles, "")}, "is updating"},
		{"the same of the image", idle, stages{goesOn(mcfgv1.MachineConfigNodeUpdateOS, "")}, "is updating"},
		{"the same while it is pulled", idle, stages{goesOn(mcfgv1.MachineConfigNodeImagePulledFromRegistry, "")}, "is updating"},
		{"the reboot has begun", openshifttest.NodeDrained("1"), stages{over(drained), over(applied), goesOn(rebooted, "")}, "is rebooting"},
		{"the reboot is not heard of yet", openshifttest.NodeRebooting("1"), stages{over(drained), goesOn(applied, "")}, "is rebooting"},
		{"the node is up again", openshifttest.NodeRebooting("1"), stages{over(rebooted), goesOn(uncordoned, "")}, "is being uncordoned"},
		{"the node is up again, which the MachineConfigNode has not heard of yet", uncordoning, stages{goesOn(rebooted, "")}, "is being uncordoned"},

		{"degraded", openshifttest.NodeDrained("1"), stages{goesOn(applied, ""), failed}, "is degraded: cannot write /etc/motd"},
		{"degraded while it drains", openshifttest.NodeDraining("1"), stages{goesOn(drained, failure), failed}, "is degraded: cannot write /etc/motd"},
		{"degraded by its annotations, without a reason", isDegraded, stages{failed}, "is degraded: cannot write /etc/motd"},
		{"degraded by its annotations, with a reason", func(n *corev1.Node) { isDegraded(n); because(n) }, stages{failed}, "is degraded: disk full"},
		{"degraded by its annotations alone", isDegraded, stages{goesOn(rebooted, "")}, "is degraded"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			node := metadataOf(openshifttest.Node("worker-0", "worker", openshifttest.NodeTowards("worker", "4.18.2"), tc.node))
			got, inWork := openshift.JudgeNodeProgress(node, openshifttest.MachineConfigNode("worker-0", "worker", "4.18.2", tc.stages...))
			if got.String() != tc.want || !inWork {
				t.Errorf("got %q, %t; want %q", got, inWork, tc.want)
			}
			// Of another configuration than the node is to have, or none: it tells nothing.
			alone, _ := openshift.NodeInWork(node)
			for _, other := range []*mcfgv1.MachineConfigNode{openshifttest.MachineConfigNode("worker-0", "worker", "4.18.3", tc.stages...), nil} {
				if got, inWork := openshift.JudgeNodeProgress(node, other); got != alone || !inWork {
					t.Errorf("with %v: got %q, %t; want %q", other, got, inWork, alone)
				}
			}
		})
	}
}

// The annotations tell whether there is work.
func TestJudgeNodeProgressOfANodeThatIsNotInWork(t *testing.T) {
	node := metadataOf(openshifttest.Node("worker-0", "worker"))
	m := openshifttest.MachineConfigNode("worker-0", "worker", "4.18.1", goesOn(rebooted, ""), openshifttest.Stage(nodeDegraded, metav1.ConditionTrue, "x"))
	if got, inWork := openshift.JudgeNodeProgress(node, m); inWork || got != (openshift.NodeProgress{}) {
		t.Errorf("got %+v, %t", got, inWork)
	}
}

func TestJudgeNodeProgressBoundsTheMessage(t *testing.T) {
	for reason, change := range map[string]func(*corev1.Node){
		"of the MachineConfigNode": func(*corev1.Node) {},
		"of the annotations":       openshifttest.NodeAnnotations(map[string]string{"state": "Degraded", "reason": strings.Repeat("y", 1<<20)}),
	} {
		node := metadataOf(openshifttest.Node("worker-0", "worker", openshifttest.NodeDraining("1"), change))
		m := openshifttest.MachineConfigNode("worker-0", "worker", "4.18.1", goesOn(drained, strings.Repeat("x", 1<<15)))
		if got, _ := openshift.JudgeNodeProgress(node, m); len(got.Message) != openshift.MaxNodeMessageLength {
			t.Errorf("%s: got %d bytes, want %d", reason, len(got.Message), openshift.MaxNodeMessageLength)
		}
	}
}

// reading returns a client that answers each get of a MachineConfigNode with the error that the function returns, if any.
func reading(api client.WithWatch, refuse func() error) client.Reader {
	return interceptor.NewClient(api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := refuse(); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
}

var (
	resource  = mcfgv1.GroupVersion.WithResource("machineconfignodes").GroupResource()
	noMatch   = &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: mcfgv1.GroupName, Kind: "MachineConfigNode"}, SearchedVersions: []string{"v1"}}
	forbidden = apierrors.NewForbidden(resource, "worker-0", errors.New("no"))
)

// A MachineConfigNode is read where there is one, and done without where not, until it may be there.
func TestNodeProgress(t *testing.T) {
	for _, tc := range []struct {
		reason string
		err    error // of the first question
		asked  time.Duration
	}{
		{"it was not there", apierrors.NewNotFound(resource, "worker-0"), openshift.NodesInterval},
		{"the cluster did not have the kind, and was upgraded", noMatch, openshift.MachineConfigNodesLookup},
		{"it may not be read", forbidden, openshift.NodesInterval},
		{"the API server is away", errAway, openshift.NodesInterval},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			node := metadataOf(openshifttest.Node("worker-0", "worker", openshifttest.NodeDraining("1")))
			m := openshifttest.MachineConfigNode("worker-0", "worker", "4.18.1", goesOn(drained, failure))
			err := tc.err
			cluster := openshift.NewCluster(nil, reading(newAPI(m), func() error { return err }))
			expect := func(after time.Duration, want string) {
				t.Helper()
				if got, inWork := cluster.NodeProgress(t.Context(), node, now.Add(after)); got.String() != want || !inWork {
					t.Errorf("%s after: got %q, %t; want %q", after, got, inWork, want)
				}
			}
			expect(0, "is draining")
			err = nil
			// Asked again and again, as in a roll.
			for after := time.Second; after < tc.asked; after += time.Second {
				expect(after, "is draining")
			}
			expect(tc.asked, "is draining: "+refusal)
			err = errAway
			expect(tc.asked+openshift.NodesInterval-1, "is draining: "+refusal)
			expect(tc.asked+openshift.NodesInterval, "is draining")
		})
	}
}

// The annotations are of this moment, though the MachineConfigNode is not.
func TestNodeProgressGoesOnWithTheAnnotations(t *testing.T) {
	live := newAPI(openshifttest.MachineConfigNode("worker-0", "worker", "4.18.1", goesOn(drained, failure)))
	cluster := openshift.NewCluster(nil, live)
	for _, step := range []struct {
		option func(*corev1.Node)
		want   openshift.NodeProgress
	}{
		{openshifttest.NodeDraining("1"), openshift.NodeProgress{Phase: v1beta1.NodePhaseDraining, Message: refusal}},
		{openshifttest.NodeDrained("1"), openshift.NodeProgress{Phase: v1beta1.NodePhaseUpdating}},
		{openshifttest.NodeRebooting("1"), openshift.NodeProgress{Phase: v1beta1.NodePhaseRebooting}},
		{openshifttest.NodeCordoned(), openshift.NodeProgress{}}, // by hand
	} {
		node := metadataOf(openshifttest.Node("worker-0", "worker", step.option))
		if got, inWork := cluster.NodeProgress(t.Context(), node, now); got != step.want || inWork != (step.want.Phase != "") {
			t.Errorf("got %+v, %t; want %+v", got, inWork, step.want)
		}
	}
}

// Each node has a MachineConfigNode of its own, and a kind that is missing is missing for all.
func TestNodeProgressOfSeveralNodes(t *testing.T) {
	live := newAPI(
		openshifttest.MachineConfigNode("worker-0", "worker", "4.18.1", goesOn(drained, "a")), openshifttest.MachineConfigNode("worker-1", "worker", "4.18.1", goesOn(drained, "b")),
	)
	err := error(noMatch)
	cluster := openshift.NewCluster(nil, reading(live, func() error { return err }))
	message := func(name string, after time.Duration) string {
		node := metadataOf(openshifttest.Node(name, "worker", openshifttest.NodeDraining("1")))
		progress, _ := cluster.NodeProgress(t.Context(), node, now.Add(after))
		return progress.Message
	}
	if got := message("worker-0", 0); got != "" {
		t.Errorf("without the kind: got %q", got)
	}
	err = nil
	if got := message("worker-1", 0); got != "" {
		t.Errorf("it was looked for a moment ago: got %q", got)
	}
	for name, want := range map[string]string{"worker-0": "a", "worker-1": "b", "worker-2": ""} {
		if got := message(name, openshift.MachineConfigNodesLookup); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
