// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"slices"
	"testing"
	"time"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/controlplane"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// An operator that is not upgradeable, and a client of an API that Kubernetes 1.32 removes, are no obstacles to a patch
// update. To an update to 4.19 they are.
func TestObstaclesOfAMinorUpdate(t *testing.T) {
	c := newCluster(t, offering(offered, "4.19.0"), faulty(sim.OperatorFault{Name: "storage", NotUpgradeable: true}))
	api := c.requestRemovedAPI("flowschemas.v1beta3.flowcontrol.apiserver.k8s.io", "system:serviceaccount:shop:deployer", "deployer/v1.2")
	c.startOperator()
	patch := c.wait(create(c, aJob(attentive())), succeeded())
	c.upgradedOnce(patch)
	if slices.ContainsFunc(c.operatorRequests(), forRemovedAPIs) {
		t.Error("for a patch update the operator asks who uses APIs")
	}
	c.thenOffers(patch, "4.19.0")

	job := create(c, aJob(named("minor"), to("4.19.0"), attentive()))
	c.wait(job, unhealthy(), blockers(3),
		blockedBy("ClusterOperatorNotUpgradeable", "ClusterOperator/storage", "not upgradeable to 4.19.0", "DeprecatedConfiguration"),
		blockedBy("ClusterVersionNotUpgradeable", "ClusterVersion/version"),
		blockedBy("RemovedAPIInUse", "APIRequestCount/"+api.Name, "removed in Kubernetes 1.32", "4.19.0", "system:serviceaccount:shop:deployer (deployer/v1.2)"))
	if !slices.ContainsFunc(c.operatorRequests(), forRemovedAPIs) {
		t.Error("for a minor update the operator does not ask who uses APIs")
	}
	c.change(mended)
	c.waitVersion("OpenShift would let it through", func(cv *configv1.ClusterVersion) error {
		if found := openshift.Condition(cv.Status.Conditions, configv1.OperatorUpgradeable); found != nil && found.Status == configv1.ConditionFalse {
			return errors.New(found.Message)
		}
		return nil
	})
	c.leftAlone(job)
	c.remove(api)
	c.goesOn(job, time.Now())
}

// An operator that turns degraded just before the time is over may be well in a moment.
func TestFlapAtTheEndOfTheTimeDoesNotFailTheJob(t *testing.T) {
	const timeout = 7 * time.Second // so that a flap is one for 3.5s
	c := newCluster(t, func(s *sim.Scenario) { s.Workers.RenderDelay = sim.Duration(time.Second) })
	c.startOperator()
	job := create(c, aJob(attentive(givingUpAfter(timeout))))
	c.wait(job, done(steps.ConditionControlPlaneUpgraded))
	c.change(degraded("ingress"))
	c.wait(job, waitingIn(steps.ConditionClusterHealthyAfterUpgrade, v1beta1.ReasonUnhealthy), blockedBy("ClusterOperatorDegraded", "ClusterOperator/ingress"))
	end := stepOf(t, job, steps.ConditionClusterHealthyAfterUpgrade).StartTime.Add(timeout)

	c.until(end.Add(-2 * time.Second))
	c.change(degraded("storage"))
	c.operatorIs("storage", configv1.OperatorDegraded, configv1.ConditionTrue)
	c.change(recovered("ingress"))
	c.wait(job, blockers(1), blockedBy("ClusterOperatorDegraded", "ClusterOperator/storage"))
	if time.Now().After(end) {
		t.Fatal("the operator that is no flap recovers too late for this test")
	}
	c.until(end.Add(promptness / 2))
	c.get(job)
	if err := check(job, inPhase(v1beta1.PhaseActive)); err != nil {
		t.Fatalf("a flap ends the job: %v", err)
	}
	c.change(mended)
	c.wait(job, succeeded())
	c.upgradedOnce(job)
}

// requestRemovedAPI has the API server tell, until the test ends, that a client used an API that Kubernetes 1.32 removes.
func (c *cluster) requestRemovedAPI(name, user, agent string) *apiserverv1.APIRequestCount {
	c.t.Helper()
	count := create(c, &apiserverv1.APIRequestCount{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: apiserverv1.APIRequestCountSpec{NumberOfUsersToReport: 10}})
	c.atEnd = append(c.atEnd, func() { _ = env.Client.Delete(c.ctx, count) })
	return editStatus(c, count, func(count *apiserverv1.APIRequestCount) {
		count.Status.RemovedInRelease = "1.32"
		count.Status.RequestCount = 3
		count.Status.Last24h = []apiserverv1.PerResourceAPIRequestLog{{RequestCount: 3, ByNode: []apiserverv1.PerNodeAPIRequestLog{{
			NodeName: "10.0.0.1", RequestCount: 3, ByUser: []apiserverv1.PerUserAPIRequestCount{{
				UserName: user, UserAgent: agent, RequestCount: 3,
				ByVerb: []apiserverv1.PerVerbAPIRequestCount{{Verb: "list", RequestCount: 3}},
			}},
		}}}}
	})
}

func forRemovedAPIs(request controlplane.AuditEvent) bool {
	return request.ObjectRef.Resource == "apirequestcounts"
}
