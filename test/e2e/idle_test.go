// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
)

// An operator that has nothing to do asks for nothing and writes nothing. It runs as it is shipped, with the election
// of a leader, next to a config that is suspended, one whose time has not come, an object of the Managed Upgrade Operator whose has not, a
// NodeForceDrain, an Upgrader, and a job that is done.
func TestIdleOperatorMakesNoRequests(t *testing.T) {
	const quiet, idle = 3 * time.Second, time.Minute
	c := newClusterFor(t, idle+patience)
	c.start(environment.OperatorOptions{}) // no flags
	suspended := create(c, aConfig(func(config *v1beta1.UpgradeConfig) {
		config.Name = "suspended"
		config.Spec.Schedule.Suspend = true
	}))
	notDue := create(c, aConfig(func(config *v1beta1.UpgradeConfig) { config.Name = "not-due" }))
	create(c, aClusterVersion(onChannel("fast-4.18")))
	create(c, aFreeze())
	create(c, aForceDrain(time.Minute))
	upgrader := create(c, anUpgrader("quietly", quietly...))
	c.wait(create(c, aJob()), succeeded(), withoutFinalizers())
	c.change(offering("4.18.3"))
	c.offers("4.18.3")
	managed := create(c, aManaged(wanting("4.18.3", theChannel), upgradingAt(soon(24*time.Hour))))
	c.wait(c.managedJob(managed), notStarted(v1beta1.ReasonWaitingForStart))
	c.waitUpgrader(upgrader, metav1.ConditionTrue, v1beta1.ReasonValid)
	c.waitConfig(suspended, v1beta1.ConditionScheduling, metav1.ConditionFalse, v1beta1.ReasonSuspended)
	c.waitConfig(notDue, v1beta1.ConditionScheduling, metav1.ConditionTrue, v1beta1.ReasonScheduled)

	c.eventually("the operator comes to rest", func() error {
		for _, r := range c.operatorRequests() {
			if since := time.Since(r.RequestReceivedTimestamp.Time); r.ObjectRef.Resource != "leases" && since < quiet {
				return fmt.Errorf("it made a request %s ago: %s %s", since, r.Verb, r.RequestURI)
			}
		}
		return nil
	})
	c.fromNowOn()
	asked := c.queries()
	c.until(time.Now().Add(idle))
	if got := c.queries() - asked; got > 0 {
		t.Errorf("an idle operator asks Prometheus %d times", got)
	}
	watches, renewals := 0, 0
	for _, r := range c.operatorRequests() {
		switch {
		case r.Verb == "watch":
			watches++
		case r.ObjectRef.Resource == "leases":
			renewals++
		default:
			t.Errorf("an idle operator makes a request: %s %s", r.Verb, r.RequestURI)
		}
	}
	t.Logf("in %s: %d requests for watches, %d for the lease", idle, watches, renewals)
}
