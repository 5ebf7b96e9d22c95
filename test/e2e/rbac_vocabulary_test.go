// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/appuio/managed-upgrade-operator/test/environment"
)

// markGroup is an API group of which there is no kind: a permission in it tells that a change of a role has arrived.
const markGroup = "marks.example.com"

// accesses are the different ones that the operator used on the tour, and that were asked for in its name.
func (r *travelled) accesses() []access {
	all := map[access]bool{}
	for _, request := range r.requests {
		if request.ObjectRef.Resource != "" { // everybody may ask what kinds there are
			all[accessOf(request)] = true
		}
	}
	for _, a := range r.asked {
		all[a] = true
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b access) int { return cmp.Compare(a.String(), b.String()) })
}

// permissions are the roles of the operator that are shipped, and what binds it to these and to others.
type permissions struct {
	roles    []client.Object // *rbacv1.Role and *rbacv1.ClusterRole
	bindings []client.Object
}

// shippedPermissions reads deploy/rbac, but for the roles of people.
func shippedPermissions(t *testing.T) permissions {
	t.Helper()
	var shipped permissions
	root := filepath.Join(environment.Root(), "deploy", "rbac")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "users":
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".yaml":
			return nil
		}
		return shipped.read(path)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(shipped.roles) < 5 || len(shipped.bindings) <= len(shipped.roles) {
		t.Fatalf("found %d roles and %d bindings, the test is blind", len(shipped.roles), len(shipped.bindings))
	}
	return shipped
}

func (p *permissions) read(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, document := range bytes.Split(content, []byte("\n---\n")) {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(document, &kind); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		object, list := client.Object(nil), &p.bindings
		switch kind.Kind {
		case "Role":
			object, list = &rbacv1.Role{}, &p.roles
		case "ClusterRole":
			object, list = &rbacv1.ClusterRole{}, &p.roles
		case "RoleBinding":
			object = &rbacv1.RoleBinding{}
		case "ClusterRoleBinding":
			object = &rbacv1.ClusterRoleBinding{}
		default:
			continue
		}
		if err := yaml.UnmarshalStrict(document, object); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		*list = append(*list, object)
	}
	return nil
}

// rulesOf returns where the rules of a role stand.
func rulesOf(role client.Object) *[]rbacv1.PolicyRule {
	switch role := role.(type) {
	case *rbacv1.Role:
		return &role.Rules
	case *rbacv1.ClusterRole:
		return &role.Rules
	}
	return nil
}

// single takes rules apart into those of one verb on one resource, and of one name where there are names.
func single(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					one := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}}
					for _, name := range rule.ResourceNames {
						named := *one.DeepCopy()
						named.ResourceNames = []string{name}
						all = append(all, named)
					}
					if len(rule.ResourceNames) == 0 {
						all = append(all, one)
					}
				}
			}
		}
		for _, url := range rule.NonResourceURLs {
			for _, verb := range rule.Verbs {
				all = append(all, rbacv1.PolicyRule{NonResourceURLs: []string{url}, Verbs: []string{verb}})
			}
		}
	}
	return all
}

func describeRule(rule rbacv1.PolicyRule) string {
	words := []string{strings.Join(rule.Verbs, ","), strings.Join(rule.Resources, ","), strings.Join(rule.NonResourceURLs, ",")}
	if group := strings.Join(rule.APIGroups, ","); group != "" {
		words = append(words, "of "+group)
	}
	if len(rule.ResourceNames) > 0 {
		words = append(words, "named "+strings.Join(rule.ResourceNames, ","))
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

// judge finds out what is refused when a permission is gone.
type judge struct {
	*cluster
	// operator has the token of the operator.
	operator client.Client
	accesses []access
	// owned are objects that the operator creates; admission asks whether it may update the finalizers of their owners.
	owned []client.Object
	// judged counts the permissions that were taken away.
	judged int
	marks  int
}

// asOperator is a client with the token of the operator.
func (c *cluster) asOperator() client.Client {
	c.t.Helper()
	token, err := env.ServiceAccountToken(c.ctx, environment.Namespace, "managed-upgrade-operator")
	if err != nil {
		c.t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(env.Config())
	config.BearerToken, config.QPS = token, -1
	operator, err := environment.NewClient(config)
	if err != nil {
		c.t.Fatal(err)
	}
	return operator
}

// firstRefused returns what of the tour is refused at present, in words; empty for nothing. Only what is about one of the resources is asked
// for; none stand for all.
func (j *judge) firstRefused(resources ...string) string {
	j.t.Helper()
	for _, a := range j.accesses {
		resource := strings.Trim(a.resource+"/"+a.subresource, "/")
		if (len(resources) == 0 || slices.Contains(resources, resource)) && !j.may(operatorItself, a) {
			return a.String()
		}
	}
	if len(resources) > 0 && !slices.ContainsFunc(resources, func(r string) bool { return strings.HasSuffix(r, "/finalizers") }) {
		return ""
	}
	for _, object := range j.owned {
		if refused := j.createAgain(object); refused != "" {
			return refused
		}
	}
	return ""
}

// createAgain has the operator create an object with the same owners, without effect, and returns the refusal.
func (j *judge) createAgain(object client.Object) string {
	j.t.Helper()
	again := object.DeepCopyObject().(client.Object)
	again.SetName("again")
	again.SetResourceVersion("")
	again.SetUID("")
	if job, ok := again.(*batchv1.Job); ok { // the API server chooses these
		job.Spec.Selector, job.Spec.Template.Labels = nil, nil
	}
	err := j.operator.Create(j.ctx, again, client.DryRunAll)
	if apierrors.IsForbidden(err) {
		return err.Error()
	}
	if err != nil {
		j.t.Fatalf("create what the operator had created: %v", err)
	}
	return ""
}

// takeAwayOneByOne takes each permission of a role away, and expects that something is refused then. The role is as it was afterwards.
func (j *judge) takeAwayOneByOne(shipped client.Object) {
	j.t.Helper()
	live := shipped.DeepCopyObject().(client.Object)
	j.get(live)
	whole := slices.Clone(*rulesOf(live))
	defer func() {
		j.setRules(live, whole)
		j.putBack(live, whole)
	}()
	all := single(*rulesOf(shipped))
	for i, rule := range all {
		j.setRules(live, slices.Delete(slices.Clone(all), i, i+1))
		j.judged++
		if j.firstRefused(rule.Resources...) == "" {
			j.t.Errorf("%T %s: nothing needs the permission to %s", shipped, shipped.GetName(), describeRule(rule))
		}
	}
}

// without takes one permission out of a role, until the function that it returns is called. The role is as it was when the test ends.
func (j *judge) without(role client.Object, verb, resource string) (restore func()) {
	j.t.Helper()
	j.get(role)
	all := single(*rulesOf(role))
	rest := slices.DeleteFunc(slices.Clone(all), func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.Verbs, verb) && slices.Contains(rule.Resources, resource)
	})
	if len(rest) != len(all)-1 {
		j.t.Fatalf("%d permissions of %s are to %s %s", len(all)-len(rest), role.GetName(), verb, resource)
	}
	taken := slices.DeleteFunc(all, func(rule rbacv1.PolicyRule) bool { return slices.ContainsFunc(rest, sameRule(rule)) })
	before := slices.Clone(*rulesOf(role))
	j.atEnd = append(j.atEnd, func() { j.putBack(role, before) })
	j.setRules(role, rest)
	return func() {
		j.t.Helper()
		j.get(role)
		j.setRules(role, append(*rulesOf(role), taken...))
	}
}

// putBack writes the rules of a role as they were, without waiting for anything.
func (j *judge) putBack(role client.Object, rules []rbacv1.PolicyRule) {
	j.t.Helper()
	j.get(role)
	*rulesOf(role) = rules
	if err := env.Client.Update(j.ctx, role); err != nil {
		j.t.Error(err)
	}
}

func sameRule(rule rbacv1.PolicyRule) func(rbacv1.PolicyRule) bool {
	return func(other rbacv1.PolicyRule) bool { return apiequality.Semantic.DeepEqual(rule, other) }
}

// setRules writes the rules of a role, and waits until the API server goes by them.
func (j *judge) setRules(role client.Object, rules []rbacv1.PolicyRule) {
	j.t.Helper()
	j.marks++
	mark := access{verb: "get", group: markGroup, resource: "marks", name: strconv.Itoa(j.marks), namespace: cmp.Or(role.GetNamespace(), environment.Namespace)}
	*rulesOf(role) = append(slices.Clone(rules), rbacv1.PolicyRule{
		APIGroups: []string{mark.group}, Resources: []string{mark.resource}, ResourceNames: []string{mark.name}, Verbs: []string{mark.verb},
	})
	if err := env.Client.Update(j.ctx, role); err != nil {
		j.t.Fatal(err)
	}
	j.eventually("the API server knows "+role.GetName(), func() error {
		if !j.may(operatorItself, mark) {
			return errors.New("it does not yet")
		}
		return nil
	})
}

// takeAwayBinding removes a binding, and expects that something is refused then. It is as it was afterwards.
func (j *judge) takeAwayBinding(shipped client.Object) {
	j.t.Helper()
	live := shipped.DeepCopyObject().(client.Object)
	j.get(live)
	j.remove(live)
	j.judged++
	ctx, cancel := context.WithTimeout(j.ctx, patience/6)
	defer cancel()
	refused := poll(ctx, func() error {
		if j.firstRefused() == "" {
			return errors.New("nothing needs it")
		}
		return nil
	})
	if refused != nil {
		j.t.Errorf("%T %s: %v", shipped, shipped.GetName(), refused)
	}
	create(j.cluster, shipped.DeepCopyObject().(client.Object))
	j.eventually(shipped.GetName()+" counts again", func() error {
		if refused := j.firstRefused(); refused != "" {
			return errors.New(refused)
		}
		return nil
	})
}
