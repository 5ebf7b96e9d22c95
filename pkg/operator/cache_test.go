// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// The machine-config operator works on cordoned nodes only, and what it does with them is in its annotations. The other
// nodes write their heartbeats day and night.
func TestCacheHasCordonedNodes(t *testing.T) {
	for o, by := range cacheOptions("upgrades", "upgrades").ByObject {
		if o.GetObjectKind().GroupVersionKind().Kind != "Node" {
			continue
		}
		if by.Field == nil || by.Field.Matches(fields.Set{"spec.unschedulable": "false"}) || !by.Field.Matches(fields.Set{"spec.unschedulable": "true"}) {
			t.Errorf("got the selector %v, want the cordoned nodes only", by.Field)
		}
		mco := map[string]string{
			"machineconfiguration.openshift.io/state": "Working", "machineconfiguration.openshift.io/reason": "disk full",
			"machineconfiguration.openshift.io/desiredDrain": "drain-1", "machineconfiguration.openshift.io/lastAppliedDrain": "uncordon-0",
		}
		node := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: "n", Labels: map[string]string{"node-role.kubernetes.io/worker": ""}, Annotations: maps.Clone(mco),
		}}
		node.Annotations["csi.volume.kubernetes.io/nodeid"] = "bulky"
		got, err := by.Transform(node)
		if err != nil {
			t.Fatal(err)
		}
		if kept := got.(*metav1.PartialObjectMetadata); !maps.Equal(kept.Annotations, mco) || len(kept.Labels) != 1 {
			t.Errorf("kept %v, %v; want its labels, by which it belongs to a pool, and what the machine-config operator says of it", kept.Labels, kept.Annotations)
		}
		return
	}
	t.Error("nothing said of nodes")
}
