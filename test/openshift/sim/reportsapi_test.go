// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// report reads a node's MachineConfigNode.
func (c *simulated) report(node string) *mcfgv1.MachineConfigNode {
	c.t.Helper()
	report := &mcfgv1.MachineConfigNode{ObjectMeta: metav1.ObjectMeta{Name: node}}
	c.get(report)
	return report
}

func reportIs(report *mcfgv1.MachineConfigNode, phase mcfgv1.StateProgress, status metav1.ConditionStatus) bool {
	return meta.IsStatusConditionPresentAndEqual(report.Status.Conditions, string(phase), status)
}

func TestMachineConfigNodes(t *testing.T) {
	s := quick()
	s.MachineConfigNodes = true
	s.CustomPools = []sim.CustomPool{{Name: "infra", Pool: sim.Pool{Size: 1}}}
	c := startWithShop(t, s)
	if report := c.report("infra-0"); report.Spec.Pool.Name != "infra" || !reportIs(report, mcfgv1.MachineConfigNodeUpdated, metav1.ConditionTrue) {
		t.Errorf("after the installation: %+v", report)
	}
	c.ready(c.deploy("worker-0", "held", sim.AnnotationRun, "true"))
	budget := c.budget("held")
	c.desire(&configv1.Update{Version: desiredVersion})
	c.eventually("the report tells of the budget", func() bool {
		report := c.report("worker-0")
		drained := meta.FindStatusCondition(report.Status.Conditions, "Drained")
		return drained.Status == metav1.ConditionUnknown &&
			strings.Contains(drained.Message, `pods/"held" -n "`+c.namespace+`": Cannot evict pod as it would violate the pod's disruption budget.`)
	})
	if err := c.client.Delete(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	c.eventually("pools updated", c.updated(desiredVersion))
	reports := &mcfgv1.MachineConfigNodeList{}
	c.eventually("all reports tell of it", func() bool {
		if err := c.client.List(t.Context(), reports); err != nil {
			t.Fatal(err)
		}
		for _, report := range reports.Items {
			current := report.Status.ConfigVersion.Current
			if current != c.pool(report.Spec.Pool.Name).Spec.Configuration.Name || current != report.Spec.ConfigVersion.Desired ||
				!reportIs(&report, mcfgv1.MachineConfigNodeUpdated, metav1.ConditionTrue) {
				return false
			}
		}
		return len(reports.Items) == 7
	})
	c.halt()

	if err := sim.Install(t.Context(), plane.Config(), quick()); err != nil {
		t.Fatal(err)
	}
	c.run()
	if err := c.client.List(t.Context(), reports); !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		t.Errorf("an installation without MachineConfigNodes has the kind: %v", err)
	}
	c.desire(&configv1.Update{Version: desiredVersion})
	c.eventually("pools updated without reports", c.updated(desiredVersion))
}
