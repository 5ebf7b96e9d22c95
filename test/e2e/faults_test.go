// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
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

// Each pause and each release of a pool fails in three ways, one after the other; the last time it is done, and nobody
// knows.
func TestWritesOfPoolsFail(t *testing.T) {
	faults := map[string][]environment.Fault{
		"noon":  {{Code: http.StatusInternalServerError}, {Code: http.StatusConflict}, {Commit: true, Code: http.StatusGatewayTimeout}},
		"night": {{}, {Code: http.StatusServiceUnavailable}, {Commit: true}},
	}
	c := newCluster(t, withFewNodes, withPool("noon", 1), withPool("night", 1))
	create(c, aHook(at(unpause), aborting))
	proxy := c.startProxy()
	writes := map[string]int{}
	proxy.Interpose(func(_ int, w environment.Write) *environment.Fault {
		resource, pool := path.Split(w.Path)
		if !strings.HasSuffix(resource, "/machineconfigpools/") {
			return nil
		}
		release := fmt.Sprintf("%s %t", pool, strings.Contains(w.Body, `"paused":false`))
		n, list := writes[release], faults[pool]
		if writes[release]++; n < len(list) {
			return &list[n]
		}
		return nil
	})
	c.startOperatorThrough(proxy)
	job := create(c, aJob(delaying("noon", 8*time.Second, 0), delaying("night", 8*time.Second, 0)))
	c.wait(job, succeeded(), withoutFinalizers(), holdingNothing(), ran("backup", unpause, v1beta1.HookRunSucceeded, v1beta1.HookRunSucceeded))
	for _, pool := range []string{"noon", "night"} {
		c.pool(pool, free, updated)
		c.rebootedAfter(pool, orderOf(c.turnOf(pool, heldBy(job)).object), orderOf(c.releaseOf(pool).object))
		for _, release := range []string{"false", "true"} {
			// The last one was done, and is repeated in vain where the watch tells of it later than the retry comes.
			if n := writes[pool+" "+release]; n < len(faults[pool]) {
				t.Errorf("there were %d writes of pool %s (release: %s), want %d at least", n, pool, release, len(faults[pool]))
			}
		}
	}
	c.upgradedOnce(job)
}

// The first deletions of pods fail, and so does every other write of the status that tells of them.
func TestWritesOfAForcedDrainFail(t *testing.T) {
	faults := map[string][]environment.Fault{
		"web":   {{Code: http.StatusInternalServerError}, {Code: http.StatusConflict}, {}},
		"stuck": {{Commit: true, Code: http.StatusGatewayTimeout}, {Code: http.StatusServiceUnavailable}},
		"app-nodes": {
			{Code: http.StatusConflict}, {Commit: true}, {Code: http.StatusInternalServerError}, {Commit: true, Code: http.StatusGatewayTimeout},
		},
	}
	c := newCluster(t, withFewNodes)
	shop := c.namespace(nil)
	web, stuck := c.runs(shop, "web", "worker-0"), c.runs(shop, "stuck", "worker-0", stuckTerminating)
	c.protect(web, stuck)
	c.allowForceDrains()
	drain := create(c, aForceDrain(2*time.Second, killingAfter(2*time.Second)))
	proxy := c.startProxy()
	writes := map[string]int{}
	proxy.Interpose(func(_ int, w environment.Write) *environment.Fault {
		name := path.Base(strings.TrimSuffix(w.Path, "/status"))
		list := faults[name]
		n := writes[name]
		writes[name]++
		switch {
		case w.Method == http.MethodDelete && n < len(list):
			return &list[n]
		case strings.HasSuffix(w.Path, "/nodeforcedrains/app-nodes/status") && n%2 == 0:
			return &list[n/2%len(list)]
		}
		return nil
	})
	c.startOperatorThrough(proxy)
	job := c.wait(create(c, aJob(attentive(allowing))), succeeded(), withoutFinalizers())
	c.gone(web)
	c.gone(stuck)
	if writes["web"] <= len(faults["web"]) || writes["stuck"] <= len(faults["stuck"]) || writes["app-nodes"] < 3 {
		t.Errorf("there were too few writes for the faults: %v", writes)
	}
	c.eventually("the status of the NodeForceDrain", func() error {
		c.get(drain)
		// What the API server did without saying so may not be counted.
		if st := drain.Status; st.PodsDeleted < 1 || st.PodsDeleted > 2 || st.PodsForceDeleted != 1 {
			return fmt.Errorf("it tells of %d deletions and %d forced ones", st.PodsDeleted, st.PodsForceDeleted)
		}
		return nil
	})
	c.upgradedOnce(job)
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
