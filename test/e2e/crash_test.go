// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

func TestOperatorIsKilledAtAMomentOfTheUpgrade(t *testing.T) {
	moments := map[string]func(*cluster, *v1beta1.UpgradeJob){
		"before the start": func(c *cluster, job *v1beta1.UpgradeJob) {
			c.wait(job, notStarted(v1beta1.ReasonWaitingForStart))
		},
		"right after the start": func(c *cluster, job *v1beta1.UpgradeJob) {
			c.wait(job, started())
		},
		"while the control plane updates": func(c *cluster, _ *v1beta1.UpgradeJob) {
			c.accepted(offered)
		},
		"while the workers update": func(c *cluster, job *v1beta1.UpgradeJob) {
			c.wait(job, waitingIn(steps.ConditionMachineConfigPoolsUpgraded, v1beta1.ReasonMachineConfigPoolsUpdating))
		},
		"at the end": func(c *cluster, job *v1beta1.UpgradeJob) {
			c.wait(job, inPhase(v1beta1.PhaseSucceeded))
		},
	}
	for name, awaitMoment := range moments {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, func(s *sim.Scenario) { s.Workers.RenderDelay = sim.Duration(500 * time.Millisecond) })
			running := c.startOperator()
			job := create(c, aJob(startingAt(soon(500*time.Millisecond))))
			awaitMoment(c, job)
			running.Kill()
			c.startOperator()
			c.wait(job, succeeded(), withoutFinalizers())
			c.upgradedOnce(job)
		})
	}
}

func TestOperatorIsAwayUntilTheClusterIsThrough(t *testing.T) {
	c := newCluster(t)
	running := c.startOperator()
	job := c.wait(create(c, aJob()), started(), done(steps.ConditionUpgradeCommenced))
	running.Kill()
	c.completed(offered)
	c.nodeIs("worker-2", "Done", offered)
	c.startOperator()
	c.wait(job, succeeded())
	c.upgradedOnce(job)
}

// The operator is killed when the API server has carried out its n-th write, before it knows of that; for each n until
// an upgrade comes through without. The clusters of all these upgrades are one, which goes from release to release. A
// pool follows later, when a hook has been heard.
func TestOperatorIsKilledAfterEachOfItsWrites(t *testing.T) {
	c := newClusterFor(t, 5*patience, withFewNodes, withPool("night", 1), func(s *sim.Scenario) {
		const instant = sim.Duration(time.Millisecond)
		t := &s.Timings
		t.Accept, t.Operator, t.Graph, t.Render, t.Drain, t.Apply, t.Reboot = instant, instant, instant, instant, instant, instant, instant
	})
	create(c, aHook(at(unpause), aborting))
	proxy := c.startProxy()
	running := c.startOperatorThrough(proxy)
	held := 0
	for number, killed := 1, true; killed; number++ {
		version := fmt.Sprintf("4.18.%d", number+1)
		c.change(offering(version))
		c.offers(version)
		c.fromNowOn()
		killed = c.upgradeWithAKill(proxy, &running, number, version)
		if slices.ContainsFunc(past.poolsSince(c.began), func(r revision[*mcfgv1.MachineConfigPool]) bool { return r.object.Spec.Paused }) {
			held++
		}
	}
	if held < 10 {
		t.Errorf("the pool was paused in %d upgrades, want more: a pause and a release take several writes", held)
	}
}

// upgradeWithAKill does one upgrade in which the operator is killed after that write, and tells whether there were so
// many writes.
func (c *cluster) upgradeWithAKill(proxy *environment.Proxy, running **environment.Operator, number int, version string) bool {
	c.t.Helper()
	kills := make(chan environment.Write, 1)
	victim := *running
	proxy.Interpose(func(n int, w environment.Write) *environment.Fault {
		if n != number {
			return nil
		}
		return &environment.Fault{Commit: true, Then: func() { victim.Kill(); kills <- w }}
	})
	config := create(c, aConfig(creatingAJobNow(), ofJobs(withDelay("night", 2*time.Second, 0)), func(config *v1beta1.UpgradeConfig) {
		config.Name = fmt.Sprintf("killed-after-write-%d", number)
	}))
	killed, moved := false, false
	var job *v1beta1.UpgradeJob
	c.eventually(fmt.Sprintf("the upgrade to %s with a kill after write %d", version, number), func() error {
		select {
		case w := <-kills:
			c.t.Logf("killed after write %d: %s %s", number, w.Method, w.Path)
			killed = true
			*running = c.startOperatorThrough(proxy)
		default:
		}
		jobs := c.jobsOf(config)
		if len(jobs) == 0 {
			return errors.New("there is no job")
		}
		if job = &jobs[0]; !moved {
			c.startNow(job)
			moved = true
		}
		c.get(config)
		return errors.Join(
			check(job, succeeded(), withoutFinalizers()),
			unlocked(c.version()),
			conditionIs(config.Status.Conditions, v1beta1.ConditionScheduling, metav1.ConditionTrue, v1beta1.ReasonScheduled))
	})
	if !killed && len(kills) > 0 { // by the very last write
		<-kills
		killed = true
		*running = c.startOperatorThrough(proxy)
	}
	if got := job.Spec.DesiredVersion.Version; got != version {
		c.t.Errorf("the job is to %s, want %s", got, version)
	}
	c.upgradedOnce(job)
	written := 0
	for _, w := range proxy.Writes() { // one that was under way in the kill has no answer
		if strings.Contains(w.Body, "desiredUpdate") && w.Code == http.StatusOK {
			written++
		}
	}
	if written > 1 {
		c.t.Errorf("%d writes of desiredUpdate were carried out, want one", written)
	}
	c.everyNodeRuns(version)
	c.pool("night", free, updated)
	if c.everHeld("night", job) { // the delay may have been over before the pool could be paused
		if err := check(job, holdingNothing(), ran("backup", unpause, v1beta1.HookRunSucceeded)); err != nil {
			c.t.Error(err)
		}
		if n := len(c.hookJobsOf(job)); n != 1 {
			c.t.Errorf("the hook had %d Jobs, want one", n)
		}
	}
	c.remove(config)
	c.gone(config)
	c.gone(job)
	return killed
}

// nodeIs waits until a node says that it is in a state. With a version, it also has to run its configuration.
func (c *cluster) nodeIs(name, state string, version ...string) {
	c.t.Helper()
	c.eventually("node "+name, func() error {
		node := openshift.NodeMetadata()
		if err := env.Client.Get(c.ctx, client.ObjectKey{Name: name}, node); err != nil {
			return err
		}
		if got := node.Annotations["machineconfiguration.openshift.io/state"]; got != state {
			return fmt.Errorf("it is %s, want %s", got, state)
		}
		for _, v := range version {
			if got := c.releaseOn(node); got != v {
				return fmt.Errorf("it runs the configuration of %s, want %s", got, v)
			}
		}
		return nil
	})
}
