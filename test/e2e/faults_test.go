// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/pkg/operator"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// Every other write fails, in one way or another. Which ones is left to chance: regular faults could meet the same write
// of each pass.
func TestEveryOtherWriteFails(t *testing.T) {
	faults := map[string]environment.Fault{
		"internal error":                {Code: http.StatusInternalServerError},
		"conflict":                      {Code: http.StatusConflict},
		"timeout, although it was done": {Commit: true, Code: http.StatusGatewayTimeout},
		"no answer, although done":      {Commit: true},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			proxy := c.startProxy()
			c.startOperatorThrough(proxy)
			chance := rand.New(rand.NewPCG(1, 2))
			proxy.Interpose(func(int, environment.Write) *environment.Fault {
				if chance.IntN(2) == 0 {
					return nil
				}
				return &fault
			})
			config := create(c, aConfig(creatingAJobNow()))
			job := c.jobOf(config)
			c.startNow(job)
			c.wait(job, succeeded(), withoutFinalizers())
			c.upgradedOnce(job)
			if n := len(proxy.Writes()); n < 10 {
				t.Errorf("the proxy saw %d writes only", n)
			}
		})
	}
}

func TestAPIServerIsAwayDuringTheUpgrade(t *testing.T) {
	c := newCluster(t, func(s *sim.Scenario) { s.Timings.Operator = sim.Duration(100 * time.Millisecond) })
	c.startOperator()
	job := create(c, aJob())
	c.wait(job, done(steps.ConditionUpgradeCommenced))
	c.accepted(offered)
	if err := env.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := env.StartAPIServer(c.ctx); err != nil {
		t.Fatal(err)
	}
	c.judged = time.Now()
	c.wait(job, succeeded(), withoutFinalizers())
	c.upgradedOnce(job)
}

func TestLeaderIsKilledDuringTheUpgrade(t *testing.T) {
	c := newCluster(t, stuck("network"))
	election := []string{
		"--leader-elect=true", "--leader-election-lease-duration=3s",
		"--leader-election-renew-deadline=2s", "--leader-election-retry-period=500ms",
	}
	leader := c.startOperator(election...)
	first := c.leader("")
	c.startOperator(election...)
	job := c.wait(create(c, aJob()), done(steps.ConditionUpgradeCommenced))
	c.accepted(offered)
	if got := c.leader(""); got != first {
		t.Fatalf("the leader is %s, want %s", got, first)
	}
	leader.Kill()
	c.change(mended)
	c.leader(first)
	c.wait(job, succeeded(), withoutFinalizers())
	c.upgradedOnce(job)
}

// leader waits until there is a leader, another one than that given, and returns its name.
func (c *cluster) leader(other string) string {
	c.t.Helper()
	lease := &coordinationv1.Lease{}
	c.eventually("a leader", func() error {
		if err := env.Client.Get(c.ctx, client.ObjectKey{Namespace: environment.Namespace, Name: operator.LeaderElectionID}, lease); err != nil {
			return err
		}
		if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder == "" || holder == other {
			return fmt.Errorf("it is %q", holder)
		}
		return nil
	})
	return *lease.Spec.HolderIdentity
}
