// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// Pods that hold a drain up are deleted at the end of the grace period, and those that do not end are killed. What a drain does
// not care for is left alone.
func TestForceDrainMovesANodeThatHangs(t *testing.T) {
	const grace, podGrace = 4 * time.Second, 3 * time.Second
	c := newCluster(t, withFewNodes)
	shop := c.namespace(nil)
	web, stuck := c.runs(shop, "web", "worker-0"), c.runs(shop, "stuck", "worker-0", stuckTerminating)
	c.protect(web, stuck)
	bystanders := c.bystanders(shop, "worker-0")
	c.allowForceDrains()
	drain := create(c, aForceDrain(grace, killingAfter(podGrace)))
	c.startOperator()
	c.waitForceDrain(drain, metav1.ConditionTrue, v1beta1.ReasonValid)
	job := create(c, aJob(attentive(allowing)))
	began, observed := c.drains("worker-0", drain)
	c.notLaterThan("the observation of the drain", observed, began, time.Second+promptness) // it counts in whole seconds
	c.wait(job, blockedBy("DrainBlocked", "Pod/"+shop+"/web", "worker-0"))
	c.leftThere(web, stuck)
	c.gone(web)
	c.deletedAt(web, observed.Add(grace))
	c.gone(stuck)
	c.wait(job, succeeded(), withoutFinalizers())

	kills := c.deletionsOf(stuck)
	if len(kills) != 2 {
		t.Fatalf("pod stuck was deleted %d times, want twice", len(kills))
	}
	c.promptly("the deletion of pod stuck", kills[0].RequestReceivedTimestamp.Time, observed.Add(grace))
	// The API server knows whole seconds only.
	due := kills[0].RequestReceivedTimestamp.Add(podGrace)
	c.notLaterThan("the kill of pod stuck", kills[1].RequestReceivedTimestamp.Time, due, time.Second+promptness)
	c.toldToEndWithin(stuck, corev1.DefaultTerminationGracePeriodSeconds, 1)
	c.leftThere(bystanders...)
	c.get(drain)
	if st := drain.Status; st.PodsDeleted != 2 || st.PodsForceDeleted != 1 || len(st.LastDeletedPods) != 3 ||
		st.LastDeletedPods[0].Name != "stuck" || !st.LastDeletedPods[0].Forced || st.LastDeletedPods[0].NodeName != "worker-0" {
		t.Errorf("the NodeForceDrain says %+v", st)
	}
	c.told(drain, corev1.EventTypeWarning, "PodDeleted", shop+"/web", "worker-0")
	c.told(drain, corev1.EventTypeWarning, "PodForceDeleted", shop+"/stuck", "worker-0")
	c.upgradedOnce(job)
	c.everyNodeRuns(offered)
}

// bystanders are pods of a node that no drain cares for: of a DaemonSet, static, and finished.
func (c *cluster) bystanders(namespace, on string) []*corev1.Pod {
	c.t.Helper()
	labels := map[string]string{"app": "agent"}
	set := create(c, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/agent"}}},
			},
		},
	})
	host := node(on)
	c.get(host)
	finished := c.runs(namespace, "finished", on)
	editStatus(c, finished, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded })
	return []*corev1.Pod{
		finished,
		c.runs(namespace, "agent", on, ownedBy(set, "apps/v1", "DaemonSet")),
		c.runs(namespace, "static", on, ownedBy(host, "v1", "Node"), func(pod *corev1.Pod) { pod.Annotations[corev1.MirrorPodAnnotationKey] = "of-a-file" }),
	}
}

// toldToEndWithin expects by which grace periods a pod was asked to end, in seconds. What the kubelet says when it is gone
// does not count.
func (c *cluster) toldToEndWithin(pod *corev1.Pod, seconds ...int64) {
	c.t.Helper()
	var got []int64
	for _, r := range past.podsSince(c.began) {
		if grace := r.object.DeletionGracePeriodSeconds; r.object.UID == pod.UID && grace != nil && *grace > 0 {
			got = append(got, *grace)
		}
	}
	if got = slices.Compact(got); !slices.Equal(got, seconds) {
		c.t.Errorf("pod %s was asked to end within %d seconds, want %d", pod.Name, got, seconds)
	}
}

// A drain that is given up and asked for again, with the same id, begins anew.
func TestForceDrainCountsFromTheLastBeginningOfADrain(t *testing.T) {
	const grace, given = 4 * time.Second, 2 * time.Second
	c := newCluster(t, withFewNodes, func(s *sim.Scenario) {
		s.Nodes = []sim.NodeFault{{Name: "worker-0", AbandonsDrain: sim.Duration(given)}}
	})
	web := c.runs(c.namespace(nil), "web", "worker-0")
	c.protect(web)
	c.allowForceDrains()
	drain := create(c, aForceDrain(grace))
	c.startOperator()
	job := create(c, aJob(attentive(allowing)))
	var drains []begunDrain
	c.eventually("the drain is given up and asked for again", func() error {
		if drains = c.drainsBegun("worker-0"); len(drains) != 2 {
			return fmt.Errorf("the drains are %v", drains)
		}
		return nil
	})
	if first, second := drains[0], drains[1]; first.id != second.id || second.at.Sub(first.at) < given-inFlight {
		t.Fatalf("the drains are %v, want the same one again, %s after the first", drains, given)
	}
	_, observed := c.drains("worker-0", drain)
	c.gone(web)
	c.deletedAt(web, observed.Add(grace))
	c.wait(job, succeeded(), withoutFinalizers())
}

// The operator is killed in the middle of a grace period: the deadline stands.
func TestForceDrainKeepsItsDeadlineWhenTheOperatorIsKilled(t *testing.T) {
	const grace = 5 * time.Second
	c := newCluster(t, withFewNodes)
	shop := c.namespace(map[string]string{"tier": "batch"})
	web := c.runs(shop, "web", "worker-0", podLabelled("force", "yes"))
	keeps := c.runs(shop, "keeps", "worker-0")
	elsewhere := c.runs(c.namespace(nil), "elsewhere", "worker-0", podLabelled("force", "yes"))
	budget := c.protect(web, keeps)
	other := c.protect(elsewhere)
	c.allowForceDrains()
	drain := create(c, aForceDrain(grace, selectingPods(`.metadata.labels.force == "yes"`), func(spec *v1beta1.NodeForceDrainSpec) {
		spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "batch"}}
		spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/worker": ""}}
	}))
	running := c.startOperator()
	job := create(c, aJob(attentive(allowing)))
	_, observed := c.drains("worker-0", drain)
	running.Kill()
	c.leftThere(web)
	c.startOperator()
	c.gone(web)
	// Since when a node is cordoned is known in whole seconds only; a drain is never taken for an older one.
	deletion := c.deletionsOf(web)[0].RequestReceivedTimestamp.Time
	c.notLaterThan("the deletion of pod web", deletion, observed.Add(grace), time.Second+promptness)
	if deletion.Before(observed.Add(grace)) {
		t.Errorf("pod web was deleted %s before its time", observed.Add(grace).Sub(deletion))
	}
	// What is not selected stays, however often the operator looks.
	c.until(observed.Add(grace + 3*time.Second))
	c.leftThere(keeps, elsewhere)
	c.remove(budget)
	c.remove(other)
	c.wait(job, succeeded(), withoutFinalizers())
	if n := len(c.deletionsOf(keeps)) + len(c.deletionsOf(elsewhere)); n > 0 {
		t.Errorf("pods that are not selected were deleted %d times", n)
	}
}

// Who wants pods to be deleted has to permit it.
func TestForceDrainNeedsAPermission(t *testing.T) {
	const grace = 2 * time.Second
	c := newCluster(t, withFewNodes)
	c.mayDeletePods(false)
	web := c.runs(c.namespace(nil), "web", "worker-0")
	c.protect(web)
	drain := create(c, aForceDrain(grace))
	c.startOperator()
	job := create(c, aJob(attentive(allowing)))
	c.waitForceDrain(drain, metav1.ConditionFalse, v1beta1.ReasonForbidden, "deploy/rbac/force-drain")
	c.told(drain, corev1.EventTypeWarning, v1beta1.ReasonForbidden, "deploy/rbac/force-drain")
	c.leftThere(web)
	c.wait(job, blockedBy("DrainBlocked", "Pod/"+web.Namespace+"/web", "worker-0"))
	c.allowForceDrains()
	c.judged = time.Now() // what was asked for before was refused on purpose
	edit(c, drain, func(drain *v1beta1.NodeForceDrain) { drain.Spec.PodForceDeleteGracePeriod = duration(time.Minute) })
	c.gone(web)
	c.waitForceDrain(drain, metav1.ConditionTrue, v1beta1.ReasonValid)
	c.wait(job, succeeded(), withoutFinalizers())
}

func TestForceDrainThatCannotBeUsedSaysHowToMendIt(t *testing.T) {
	c := newCluster(t, withFewNodes)
	c.startOperator()
	drain := create(c, aForceDrain(time.Minute, selectingPods(`.metadata.labels.tier == "batch"`)))
	c.waitForceDrain(drain, metav1.ConditionTrue, v1beta1.ReasonValid)
	for _, tt := range []struct {
		change func(*v1beta1.NodeForceDrainSpec)
		reason string
		words  []string
	}{
		{selectingPods(`.metadata.labels |`), v1beta1.ReasonInvalidJQ, []string{"podJQSelector", "unexpected"}},
		{selectingPods(`tier(.)`), v1beta1.ReasonInvalidJQ, []string{"podJQSelector", "tier/1"}},
		{func(spec *v1beta1.NodeForceDrainSpec) {
			spec.NodeSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
		}, v1beta1.ReasonInvalidSelector, []string{"nodeSelector", "Near"}},
		{func(spec *v1beta1.NodeForceDrainSpec) {
			spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "not a value"}}
		}, v1beta1.ReasonInvalidSelector, []string{"namespaceSelector", "not a value"}},
	} {
		edit(c, drain, func(drain *v1beta1.NodeForceDrain) {
			drain.Spec = aForceDrain(time.Minute).Spec
			tt.change(&drain.Spec)
		})
		c.waitForceDrain(drain, metav1.ConditionFalse, tt.reason, tt.words...)
	}
	edit(c, drain, func(drain *v1beta1.NodeForceDrain) { drain.Spec = aForceDrain(time.Minute).Spec })
	c.waitForceDrain(drain, metav1.ConditionTrue, v1beta1.ReasonValid)
}

// Whoever may write in a namespace of their own must not have the pods of others deleted.
func TestForceDrainOfATenantHasNoEffect(t *testing.T) {
	c := newCluster(t, withFewNodes)
	c.watchAllNamespaces()
	c.startOperator("--namespace=")
	ours := create(c, aForceDrain(time.Minute))
	theirs := aForceDrain(time.Second)
	theirs.Namespace = otherNamespace
	create(c, theirs)
	c.waitForceDrain(ours, metav1.ConditionTrue, v1beta1.ReasonValid)
	c.waitForceDrain(theirs, metav1.ConditionFalse, v1beta1.ReasonNotManaged, "managed-upgrade-operator")
	web := c.runs(c.namespace(nil), "web", "worker-0")
	budget := c.protect(web)
	job := create(c, aJob(attentive(allowing)))
	_, observed := c.drains("worker-0", ours)
	c.until(observed.Add(2 * time.Second))
	c.leftThere(web)
	c.remove(budget)
	c.wait(job, succeeded(), withoutFinalizers())
}
