// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

func TestForceDrainSelects(t *testing.T) {
	labelled := func(team string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}
	}
	namespaces := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "a"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bank", Labels: map[string]string{"team": "b"}}},
	}
	for _, tc := range []struct {
		reason string
		spec   v1beta1.NodeForceDrainSpec
		want   []string
	}{
		{"all", v1beta1.NodeForceDrainSpec{}, []string{"vault", "cart", "stock"}},
		{"nodes", v1beta1.NodeForceDrainSpec{NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": "app"}}}, []string{"vault", "cart"}},
		{"namespaces", v1beta1.NodeForceDrainSpec{NamespaceSelector: labelled("a")}, []string{"cart", "stock"}},
		{"namespaces that are known", v1beta1.NodeForceDrainSpec{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "team", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"b"}},
		}}}, []string{"cart", "stock"}},
		{"no namespace", v1beta1.NodeForceDrainSpec{NamespaceSelector: labelled("c")}, nil},
		{"pods", v1beta1.NodeForceDrainSpec{PodJQSelector: `.metadata.name | startswith("st")`}, []string{"stock"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			nfd := newForceDrain(func(n *v1beta1.NodeForceDrain) {
				n.Spec = tc.spec
				n.Spec.NodeDrainGracePeriod = &v1beta1.Duration{Duration: time.Minute}
			})
			w := newDrainWorld(t, nfd, namespaces...)
			w.pods.add("worker-1", "cart")
			w.pods.add("worker-1", "vault", func(p *corev1.Pod) { p.Namespace = "bank" })
			w.pods.add("worker-2", "stock")
			if tc.spec.NamespaceSelector != nil {
				w.pods.add("worker-2", "young", func(p *corev1.Pod) { p.Namespace = "younger-than-what-is-known" })
			}
			w.pods.add("worker-2", "lost", func(p *corev1.Pod) { p.Spec.NodeName = "worker-9" })
			w.pods.add("worker-2", "done", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
			w.pods.add("worker-2", "mirror", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} })
			w.drain("worker-1", drainA)
			w.drain("worker-2", drainA, func(n *corev1.Node) { n.Labels = nil })
			w.passes(time.Minute)
			var got []string
			for _, d := range w.pods.deletions {
				got = append(got, strings.Fields(d)[1])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
		})
	}
}

// Namespaces are read only when their labels matter, and then once for all nodes that are looked at together.
func TestForceDrainReadsLittle(t *testing.T) {
	nfd := newForceDrain(func(n *v1beta1.NodeForceDrain) {
		n.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
		n.Spec.PodForceDeleteGracePeriod = nil
	})
	w := newDrainWorld(t, nfd)
	for i := range 3 {
		node := fmt.Sprintf("worker-%d", i)
		w.drain(node, drainA)
		w.pods.add(node, "agent", func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}}
		})
	}
	reads := func() []string {
		w.api.calls = slices.DeleteFunc(w.api.calls, func(c string) bool { return strings.HasSuffix(c, "NodeForceDrain") || strings.HasPrefix(c, "patch") })
		defer w.api.writes()
		slices.Sort(w.api.calls)
		return w.api.calls
	}
	reads()
	w.passes(15*time.Minute - 1)
	if got := reads(); len(got) > 0 {
		t.Errorf("before anything can be due it reads %v", got)
	}
	w.elapse(1)
	w.pass()
	if want, got := []string{"list PodList", "list PodList", "list PodList"}, reads(); !slices.Equal(got, want) {
		t.Errorf("reads %v, want %v", got, want)
	}
	for i := range 3 {
		w.pods.add(fmt.Sprintf("worker-%d", i), "cart")
	}
	w.passes(time.Minute)
	if want, got := []string{"list PartialObjectMetadataList", "list PodList", "list PodList", "list PodList"}, reads(); !slices.Equal(got, want) {
		t.Errorf("reads %v, want %v", got, want)
	}
}

func TestForceDrainThatCannotBeUsed(t *testing.T) {
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Likes"}}}
	for _, tc := range []struct {
		reason string
		change func(*v1beta1.NodeForceDrain)
		want   string
		words  string
	}{
		{"its nodes", func(n *v1beta1.NodeForceDrain) { n.Spec.NodeSelector = broken }, v1beta1.ReasonInvalidSelector, "spec.nodeSelector"},
		{"its namespaces", func(n *v1beta1.NodeForceDrain) { n.Spec.NamespaceSelector = broken }, v1beta1.ReasonInvalidSelector, "spec.namespaceSelector"},
		{"its jq", func(n *v1beta1.NodeForceDrain) { n.Spec.PodJQSelector = ".[" }, v1beta1.ReasonInvalidJQ, "unexpected EOF"},
		{"its patterns", func(n *v1beta1.NodeForceDrain) { n.Spec.IgnoredNamespacePatterns = []string{"^openshift-", "shop["} }, v1beta1.ReasonInvalidPattern, `spec.ignoredNamespacePatterns has "shop["`},
		{"its place", func(n *v1beta1.NodeForceDrain) { n.Namespace = "tenant" }, v1beta1.ReasonNotManaged, "namespace upgrades"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newDrainWorld(t, newForceDrain(tc.change))
			w.pods.add("worker-1", "cart")
			w.drain("worker-1", drainA)
			if after := w.passes(time.Hour); after != 0 {
				t.Errorf("looks again after %s", after)
			}
			w.expectDeletions()
			w.ready(metav1.ConditionFalse, tc.want, tc.words)
			status := w.status()
			if w.pods.lists > 0 || len(status.LastObservedNodeDrain) > 0 || status.ObservedGeneration != 1 {
				t.Errorf("it looked at %d nodes; status %+v", w.pods.lists, status)
			}
			if tc.want == v1beta1.ReasonNotManaged {
				return
			}
			change(w.world, w.nfd, func(n *v1beta1.NodeForceDrain) { n.Spec, n.Generation = newForceDrain().Spec, 2 })
			w.passes(15 * time.Minute)
			w.ready(metav1.ConditionTrue, v1beta1.ReasonValid)
			if len(w.pods.deletions) != 1 {
				t.Errorf("deletions %v, want one after the spec was mended", w.pods.deletions)
			}
		})
	}
}

func TestForceDrainTellsHowItsSelectorFails(t *testing.T) {
	nfd := newForceDrain(func(n *v1beta1.NodeForceDrain) { n.Spec.PodJQSelector = `.metadata.labels.tier | startswith("batch")` })
	w := newDrainWorld(t, nfd)
	for _, name := range []string{"alpha", "zulu"} { // the API tells of the last one first
		w.pods.add("worker-1", name)
	}
	w.pods.add("worker-1", "batch", func(p *corev1.Pod) { p.Labels = map[string]string{"tier": "batch-1"} })
	w.drain("worker-1", drainA)
	w.passes(15 * time.Minute)
	w.expectDeletions("15m0s batch grace 30")
	w.ready(metav1.ConditionTrue, v1beta1.ReasonValid, "podJQSelector failed for 2 pods of node worker-1, the first being shop/alpha: startswith(")
	w.pods.end("batch")
	w.api.writes()
	w.passes(10 * time.Minute)
	if writes := w.api.writes(); len(writes) > 0 {
		t.Errorf("the same failure was written again: %v", writes)
	}
	w.pods.end("zulu")
	w.pods.end("alpha")
	w.passes(2 * time.Minute)
	if c := w.status().Conditions[0]; strings.Contains(c.Message, "failed") {
		t.Errorf("says %q of pods that are gone", c.Message)
	}
	w.pods.add("worker-1", "late")
	w.passes(2 * time.Minute)
	w.ready(metav1.ConditionTrue, v1beta1.ReasonValid, "shop/late")
	w.drained("worker-1")
	w.passes(time.Second)
	if c := w.status().Conditions[0]; strings.Contains(c.Message, "failed") {
		t.Errorf("says %q of a drain that is over", c.Message)
	}
}
