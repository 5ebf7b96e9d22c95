// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// forcingDrains has a job delete pods that hold up a drain, after so long: those that a budget protects, and others; it expects drains to take
// so long. Namespaces that match a pattern are left alone.
func forcingDrains(protected, others, expected time.Duration, ignored ...string) func(*v1beta1.UpgradeJob) {
	return configured(func(config *v1beta1.UpgradeJobConfig) {
		config.PDBForceDrainTimeout = duration(protected)
		config.NodeDrain = &v1beta1.NodeDrain{TimeOut: duration(others), ExpectedNodeDrainTime: duration(expected), IgnoredNamespacePatterns: ignored}
	})
}

// Each kind of pod that holds up a drain is deleted at its time, and those in a namespace that is to be ignored never. The masters are left
// to OpenShift.
func TestOSDForcesDrainsAtTheirTime(t *testing.T) {
	const protected, others, expected = 7 * time.Second, 4 * time.Second, 2 * time.Second
	c := newCluster(t, withFewNodes)
	shop, kept := c.namespace(nil), c.namespaceCalled("kept-")
	web := c.runs(shop, "web", "worker-0")
	stuck := c.runs(shop, "stuck", "worker-0", stuckTerminating)
	bare := c.runs(shop, "bare", "worker-0")
	keeps := c.runs(kept, "keeps", "worker-0")
	// Nobody evicts a pod without a controller from now on: it is the simulation that looks for this.
	edit(c, bare, func(pod *corev1.Pod) { delete(pod.Annotations, sim.AnnotationRun) })
	c.protect(web)
	budget := c.protect(keeps)
	c.allowForceDrains()
	c.startOperator()
	job := create(c, aJob(upgradedBy("OSD"), silencing(), attentive(allowing), forcingDrains(protected, others, expected, "^kept-")))
	c.wait(job, done(commenced))
	drain := &v1beta1.NodeForceDrain{ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: job.Name}}
	c.waitForceDrain(drain, metav1.ConditionTrue, v1beta1.ReasonValid)
	if !metav1.IsControlledBy(drain, job) {
		t.Errorf("the NodeForceDrain is not of the job: %+v", drain.OwnerReferences)
	}
	_, observed := c.drains("worker-0", drain)
	c.gone(stuck)
	c.gone(bare)
	c.deletedAt(bare, observed.Add(others))
	c.leftThere(web, keeps)
	c.gone(web)
	c.deletedAt(web, observed.Add(protected))
	if kills := c.deletionsOf(stuck); len(kills) != 1 {
		t.Errorf("pod stuck was deleted %d times, want once", len(kills))
	} else {
		kill, due := kills[0].RequestReceivedTimestamp.Time, c.terminatingSince(stuck).Add(others)
		if c.notLaterThan("the kill of pod stuck", kill, due, time.Second+promptness); kill.Before(due.Add(-inFlight)) { // whole seconds
			t.Errorf("pod stuck was killed %s before its time", due.Sub(kill))
		}
	}
	c.toldToEndWithin(stuck, corev1.DefaultTerminationGracePeriodSeconds, 1)
	c.until(observed.Add(protected + 2*time.Second))
	c.leftThere(keeps)
	c.remove(budget)
	c.wait(job, succeeded(), withoutFinalizers())
	if n := len(c.deletionsOf(keeps)); n > 0 {
		t.Errorf("the pod in a namespace that is to be ignored was deleted %d times", n)
	}
	c.nothingLeft(job)
	c.upgradedOnce(job)
	c.everyNodeRuns(offered)
}

// terminatingSince is when a pod was asked to end.
func (c *cluster) terminatingSince(pod *corev1.Pod) time.Time {
	c.t.Helper()
	for _, r := range past.podsSince(c.began) {
		if r.object.UID == pod.UID && r.object.DeletionTimestamp != nil {
			return r.seen
		}
	}
	c.t.Fatalf("pod %s was never asked to end", pod.Name)
	return time.Time{}
}

// namespaceCalled creates a namespace whose name begins like that, until the test ends.
func (c *cluster) namespaceCalled(prefix string) string {
	c.t.Helper()
	namespace := create(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}})
	c.atEnd = append(c.atEnd, func() { c.remove(namespace) })
	return namespace.Name
}
