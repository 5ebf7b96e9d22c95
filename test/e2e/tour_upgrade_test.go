// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// upgrade follows the upgrade, in which drains hang: that of a node, and that of a machine which goes. An extra machine is left without its
// MachineSet.
func (t *tour) upgrade() {
	t.t.Helper()
	installed := []string{"infra-0", "master-0", "night-0", "worker-0"}
	t.wait(t.job, done(commenced))
	worker := ""
	for _, extra := range t.extraNodes(installed...) {
		if strings.HasPrefix(extra.name, "a-worker-") {
			worker = extra.name
		}
	}
	t.wait(t.job, blockedBy("DrainBlocked", "Pod/"+t.shop+"/web", "worker-0"))
	t.scraper.tells("node_drain_state")
	t.gone(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: t.shop, Name: "web"}})
	t.gone(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: t.shop, Name: "cart"}})
	t.nodeIs(worker, "Done", nextMinor)
	t.protect(t.runs(t.namespace(nil), "stays", worker))
	t.orphan("b-infra")
	t.change(func(s *sim.Scenario) { s.Nodes = nil })
	t.wait(t.job, ran("unpause", unpause, v1beta1.HookRunActive, v1beta1.HookRunActive))
}

// release ends the hooks that hold both delayed pools while no operator is there. The next one finds out about both in one pass, which makes
// one Event of two.
func (t *tour) release() *environment.Operator {
	t.t.Helper()
	for _, run := range runsOf(t.job, "unpause", unpause) {
		t.let(t.podOf(run.Job), sim.OutcomeSucceed)
		t.eventually("the end of Job "+run.Job, func() error {
			if job := t.hookJob(run.Job); !slices.ContainsFunc(job.Status.Conditions, isFinal) {
				return errors.New("it is not finished")
			}
			return nil
		})
	}
	operator := t.scraper.start(environment.OperatorOptions{Args: t.proxies.flags()})
	t.wait(t.job, succeeded(), withoutFinalizers())
	t.everyNodeRuns(nextMinor)
	return operator
}

func (t *tour) hookJob(name string) *batchv1.Job {
	t.t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: name}}
	t.get(job)
	return job
}

// orphan deletes the extra MachineSet that is like another one, but not its Machine.
func (t *tour) orphan(original string) {
	t.t.Helper()
	sets, _ := t.extraMachines()
	i := slices.IndexFunc(sets, func(name string) bool { return strings.HasPrefix(name, original+"-upgrade-") })
	if i < 0 {
		t.t.Fatalf("there is no extra MachineSet like %s among %v", original, sets)
	}
	set := &machinev1beta1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: machineNamespace, Name: sets[i]}}
	if err := env.Client.Delete(t.ctx, set, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.t.Fatal(err)
	}
	t.gone(set)
}
