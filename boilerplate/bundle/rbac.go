// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// grant is what the service account of the operator is allowed by one binding.
type grant struct {
	// namespace in which it holds; empty for the whole cluster.
	namespace string
	rules     []rbacv1.PolicyRule
}

// grantsOf returns what can stand in a CSV: the rules that are bound to the service account in the namespace of the operator or in the whole cluster.
// With them come the bindings and roles from which they were read. What is bound in other namespaces, and roles that are not in deploy/, are no
// matter for a CSV.
func grantsOf(objects []*unstructured.Unstructured) ([]grant, []*unstructured.Unstructured, error) {
	var grants []grant
	var taken []*unstructured.Unstructured
	for _, kind := range []string{"ClusterRoleBinding", "RoleBinding"} {
		for _, object := range of(objects, kind) {
			binding := &rbacv1.RoleBinding{} // the other kind has the same fields
			if err := convert(object, binding); err != nil {
				return nil, nil, err
			}
			if !bindsOperator(binding) || (kind == "RoleBinding" && binding.Namespace != namespace) {
				continue
			}
			in := ""
			if binding.RoleRef.Kind == "Role" {
				in = binding.Namespace
			}
			source := named(objects, binding.RoleRef.Kind, in, binding.RoleRef.Name)
			if source == nil {
				continue
			}
			role := &rbacv1.Role{}
			if err := convert(source, role); err != nil {
				return nil, nil, err
			}
			if len(binding.Subjects) > 1 {
				return nil, nil, fmt.Errorf("%s %s binds others than the operator's service account, which a CSV cannot", kind, binding.Name)
			}
			grants = append(grants, grant{namespace: binding.Namespace, rules: role.Rules})
			taken = append(taken, object, source)
		}
	}
	return grants, taken, nil
}

// bindsOperator tells whether the binding is for the operator's service account.
func bindsOperator(binding *rbacv1.RoleBinding) bool {
	for _, subject := range binding.Subjects {
		if subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == namespace && subject.Name == packageName {
			return true
		}
	}
	return false
}

// rulesIn returns the rules of all grants of a namespace; of the whole cluster if it is empty.
func (p *parts) rulesIn(namespace string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, g := range p.grants {
		if g.namespace == namespace {
			rules = append(rules, g.rules...)
		}
	}
	return rules
}

// convert reads an object as its Go type.
func convert(object *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return fmt.Errorf("read %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
