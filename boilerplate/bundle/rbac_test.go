// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The operator may do the same whether kustomize or the Operator Lifecycle Manager has installed it, rule by rule.
func TestBundleGrantsWhatDeployGrants(t *testing.T) {
	m := makeBundle(t)
	want := allowed(t, m.deploy)
	strategy := m.csv.Spec.InstallStrategy.StrategySpec
	installed := slices.Concat(
		asObjects(t, "permissions", namespace, strategy.Permissions), asObjects(t, "clusterPermissions", "", strategy.ClusterPermissions),
		inNamespace(m.objects), m.supplement,
	)
	if difference := cmp.Diff(want, allowed(t, installed)); difference != "" {
		t.Errorf("allowed by deploy/ (-) and by the bundle with its supplement (+):\n%s", difference)
	}
	if len(want) < 30 || !slices.ContainsFunc(want, func(rule string) bool { return strings.Contains(rule, "monitoring-alertmanager-edit") }) {
		t.Errorf("only %d rules were found, or not those in other namespaces", len(want))
	}
}

// allowed lists what the service account of the operator may do, one line for each rule and where it holds, and each binding of a role that is
// somebody else's.
func allowed(t *testing.T, objects []*unstructured.Unstructured) []string {
	t.Helper()
	var lines []string
	for _, object := range objects {
		if kind := object.GetKind(); kind != "RoleBinding" && kind != "ClusterRoleBinding" {
			continue
		}
		binding := &rbacv1.RoleBinding{}
		if err := convert(object, binding); err != nil {
			t.Fatal(err)
		}
		if !bindsOperator(binding) {
			continue
		}
		in := ""
		if binding.RoleRef.Kind == "Role" {
			in = binding.Namespace
		}
		source := named(objects, binding.RoleRef.Kind, in, binding.RoleRef.Name)
		if source == nil {
			lines = append(lines, fmt.Sprintf("in %q: %s %s", binding.Namespace, binding.RoleRef.Kind, binding.RoleRef.Name))
			continue
		}
		role := &rbacv1.Role{}
		if err := convert(source, role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			text, err := json.Marshal(rule)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("in %q: %s", binding.Namespace, text))
		}
	}
	slices.Sort(lines)
	return lines
}

// asObjects returns the role and binding that the Operator Lifecycle Manager makes of permissions in a CSV.
func asObjects(t *testing.T, name, namespace string, permissions []v1alpha1.StrategyDeploymentPermissions) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	kind := "Role"
	if namespace == "" {
		kind = "ClusterRole"
	}
	for _, permission := range permissions {
		rules, err := json.Marshal(permission.Rules)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{
			fmt.Sprintf(`{"kind": %q, "metadata": {"name": %q, "namespace": %q}, "rules": %s}`, kind, name, namespace, rules),
			fmt.Sprintf(`{"kind": %q, "metadata": {"name": %q, "namespace": %q}, "roleRef": {"kind": %q, "name": %q},
				"subjects": [{"kind": "ServiceAccount", "namespace": %q, "name": %q}]}`,
				kind+"Binding", name, namespace, kind, name, packageName, permission.ServiceAccountName),
		} {
			object := &unstructured.Unstructured{}
			if err := json.Unmarshal([]byte(text), &object.Object); err != nil {
				t.Fatal(err)
			}
			objects = append(objects, object)
		}
	}
	return objects
}

// inNamespace returns the objects of a bundle as they are created: what has a namespace is in that of the operator.
func inNamespace(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var created []*unstructured.Unstructured
	for _, object := range objects {
		object = object.DeepCopy()
		if kind := object.GetKind(); kind == "Role" || kind == "RoleBinding" {
			object.SetNamespace(namespace)
		}
		created = append(created, object)
	}
	return created
}

// A binding that also binds somebody else cannot become permissions of a CSV.
func TestSharedBindingIsRefused(t *testing.T) {
	objects := asObjects(t, "shared", "", []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: packageName, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}}}}})
	if grants, taken, err := grantsOf(objects); err != nil || len(grants) != 1 || len(taken) != 2 || grants[0].namespace != "" {
		t.Errorf("of a binding in the whole cluster came %v, %d objects, %v", grants, len(taken), err)
	}
	subjects, _, _ := unstructured.NestedSlice(objects[1].Object, "subjects")
	objects[1].Object["subjects"] = append(subjects, map[string]any{"kind": "Group", "name": "everybody"})
	if _, _, err := grantsOf(objects); err == nil || !strings.Contains(err.Error(), "shared") {
		t.Errorf("a binding of others too: %v", err)
	}
}
