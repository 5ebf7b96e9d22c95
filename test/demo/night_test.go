// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/appuio/managed-upgrade-operator/pkg/pools"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// The config delays the pool of the scenario, and no other.
func TestNightIsDelayed(t *testing.T) {
	s, err := scenario("", 1)
	if err != nil {
		t.Fatal(err)
	}
	a, err := appoint(start, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := pools.Parse(a.config.Spec.JobTemplate.Spec.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, pool := range append(s.CustomPools, sim.CustomPool{Name: "worker"}) {
		rule := rules.For(&mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: pool.Name, Labels: pool.Labels}})
		if want := pool.Name == nightPool; rule.Delayed() != want {
			t.Errorf("pool %s is delayed: %t, want %t", pool.Name, rule.Delayed(), want)
		}
	}
}

func TestForceDrain(t *testing.T) {
	drain, changes, err := forceDrain()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"nodeDrainGracePeriod: 8s instead of 15m0s", "podForceDeleteGracePeriod: 3s instead of 2m0s"}
	if !slices.Equal(changes, want) {
		t.Errorf("it says %q, want %q", changes, want)
	}
	if node, pod := drain.Spec.NodeDrainGracePeriod.Duration, drain.Spec.PodForceDeleteGracePeriod.Duration; node != drainGrace || pod != podGrace {
		t.Errorf("the grace periods are %s and %s", node, pod)
	}
	selector, err := metav1.LabelSelectorAsSelector(drain.Spec.NodeSelector)
	if err != nil {
		t.Fatal(err)
	}
	for pool, selected := range map[string]bool{nightPool: true, "worker": false} {
		if got := selector.Matches(labels.Set{"node-role.kubernetes.io/" + pool: ""}); got != selected {
			t.Errorf("it selects the nodes of pool %s: %t, want %t", pool, got, selected)
		}
	}
}

// What holds the drain up is where the others look for it, and in no way of the upgrade before.
func TestShop(t *testing.T) {
	budget, pod := &policyv1.PodDisruptionBudget{}, &corev1.Pod{}
	readShop(t, budget, pod)
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	if !selector.Matches(labels.Set(pod.Labels)) || pod.Namespace != budget.Namespace || budget.Spec.MinAvailable.IntValue() != 1 {
		t.Errorf("the budget %+v does not hold the pod %+v", budget.Spec, pod.ObjectMeta)
	}
	if pod.Spec.NodeName != nightPool+"-0" {
		t.Errorf("the pod is on node %s", pod.Spec.NodeName)
	}
	for _, annotation := range []string{sim.AnnotationRun, sim.AnnotationStuckTerminating} {
		if pod.Annotations[annotation] != "true" {
			t.Errorf("the pod's annotation %s is %q", annotation, pod.Annotations[annotation])
		}
	}
	if grace := time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second; grace >= podGrace {
		t.Errorf("the pod is killed after %s, before its own grace period of %s is over", podGrace, grace)
	}
	a, err := appoint(start, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	checks := a.config.Spec.JobTemplate.Spec.Config.PreUpgradeHealthChecks
	if !slices.Contains(checks.ExcludeNamespaces, pod.Namespace) {
		t.Errorf("budgets of %s are not excluded: %q are", pod.Namespace, checks.ExcludeNamespaces)
	}
}

// readShop reads the objects of the shop that are asked for.
func readShop(t *testing.T, into ...metav1.Object) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(environment.Root(), shopPath))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]metav1.Object{"PodDisruptionBudget": into[0], "Pod": into[1]}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		kind := &metav1.TypeMeta{}
		if err := yaml.Unmarshal(document, kind); err != nil {
			t.Fatal(err)
		}
		if object, wanted := kinds[kind.Kind]; wanted {
			if err := yaml.UnmarshalStrict(document, object); err != nil {
				t.Fatal(err)
			}
		}
	}
}
