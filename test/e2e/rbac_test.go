// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// Every permission that is shipped is one without which the tour would have come upon a refusal, and the tour came upon none. What follows
// takes away one verb on one resource at a time, and asks the API server's own authorizer what it says to each request of the tour then.
func TestShippedPermissionsAreAllNeeded(t *testing.T) {
	record := takeTour(t)
	c := newClusterFor(t, 2*patience)
	c.allowForceDrains()
	j := &judge{cluster: c, operator: c.asOperator(), accesses: record.accesses(), owned: record.owned}
	if refused := j.firstRefused(); refused != "" {
		t.Fatalf("with all that is shipped the operator is refused: %s", refused)
	}
	for _, r := range record.requests {
		if r.Annotations.Decision == "forbid" {
			t.Errorf("on the tour the operator was not allowed to %s %s", r.Verb, r.RequestURI)
		}
	}
	shipped := shippedPermissions(t)
	for _, role := range shipped.roles {
		j.takeAwayOneByOne(role)
	}
	for _, binding := range shipped.bindings {
		j.takeAwayBinding(binding)
	}
	t.Logf("%d permissions and bindings of %d roles and %d bindings were judged by %d requests that differ", j.judged, len(shipped.roles), len(shipped.bindings), len(j.accesses))
}

// Where a permission is missing nevertheless, the job says which one, waits, and goes on once it is there.
func TestMissingPermissionIsNamed(t *testing.T) {
	c := newCluster(t, withFewNodes, withPool("night", 1))
	j := &judge{cluster: c}
	namespaced := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "managed-upgrade-operator"}}
	clusterWide := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "managed-upgrade-operator-cluster"}}
	mayReadSecrets := j.without(namespaced, "get", "secrets")
	mayCreateJobs := j.without(namespaced, "create", "jobs")
	mayPausePools := j.without(clusterWide, "patch", "machineconfigpools")
	r := c.aReceiver()
	create(c, aHook())
	c.startOperator()
	job := create(c, aJob(delaying("night", 20*time.Second, 0), notifying(c.knownAs("all", r))))

	c.wait(job, notDelivered("all", "may not read Secret all"))
	mayReadSecrets()
	c.wait(job, sayingInBlockers(`cannot create resource "jobs" in API group "batch"`), waitingIn(steps.ConditionStartHooksCompleted, v1beta1.ReasonError))
	mayCreateJobs()
	c.wait(job, sayingInBlockers(`cannot patch resource "machineconfigpools" in API group "machineconfiguration.openshift.io"`))
	if writes := c.desiredUpdateWrites(); len(writes) > 0 {
		t.Error("the cluster is upgraded though a pool that is to follow later is not held")
	}
	mayPausePools()
	c.wait(job, holding("night"))
	c.judged = time.Now() // what was asked for before was refused on purpose
	c.wait(job, succeeded(), withoutFinalizers())
	c.awaits(r, whole(job))
	c.upgradedOnce(job)
}
