// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/environment"
)

func TestLongestNames(t *testing.T) {
	c := newCluster(t)
	c.startOperator()
	// The names differ at their end only, which a job's name has no room for.
	begin := strings.Repeat("a", validation.DNS1123SubdomainMaxLength-1)
	var jobs []*v1beta1.UpgradeJob
	for _, end := range []string{"x", "y"} {
		config := create(c, aConfig(creatingAJobNow(), func(config *v1beta1.UpgradeConfig) { config.Name = begin + end }))
		jobs = append(jobs, c.jobOf(config))
	}
	if jobs[0].Name == jobs[1].Name {
		t.Errorf("both jobs are named %s", jobs[0].Name)
	}
	for _, job := range jobs {
		if len(job.Name) > validation.LabelValueMaxLength {
			t.Errorf("the name %s does not fit into a label", job.Name)
		}
		c.startNow(job)
		c.wait(job, inPhase(v1beta1.PhaseSucceeded), withoutFinalizers())
	}
}

const otherNamespace = "other-team"

// watchAllNamespaces lets the operator work in all namespaces, as deploy/rbac/role.yaml says how, until the test ends.
func (c *cluster) watchAllNamespaces() {
	c.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: otherNamespace}}
	if err := env.Client.Create(c.ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		c.t.Fatal(err)
	}
	binding := create(c, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "managed-upgrade-operator-all-namespaces"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "managed-upgrade-operator"},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: environment.Namespace, Name: "managed-upgrade-operator",
		}},
	})
	c.atEnd = append(c.atEnd, func() { c.remove(binding) })
}

func TestSameNamesInTwoNamespaces(t *testing.T) {
	c := newCluster(t, stuck("network"))
	c.watchAllNamespaces()
	c.startOperator("--namespace=")
	var jobs []*v1beta1.UpgradeJob
	for _, namespace := range []string{environment.Namespace, otherNamespace} {
		config := create(c, aConfig(creatingAJobNow(), func(config *v1beta1.UpgradeConfig) { config.Namespace = namespace }))
		jobs = append(jobs, c.jobOf(config))
	}
	first, second := jobs[0], jobs[1]
	c.startNow(first)
	c.wait(first, done(steps.ConditionUpgradeCommenced))
	c.startNow(second)
	c.wait(second, notStarted(v1beta1.ReasonClusterLocked), saying(v1beta1.ConditionStarted, environment.Namespace+"/"+first.Name))

	c.change(mended)
	c.wait(first, succeeded(), withoutFinalizers())
	c.wait(second, inPhase(v1beta1.PhaseSucceeded), withoutFinalizers())
	if writes := c.desiredUpdateWrites(); len(writes) != 1 {
		t.Errorf("desiredUpdate was written %d times, want once", len(writes))
	}
}

func TestClusterVersionOfAnotherNamespaceHasNoEffect(t *testing.T) {
	c := newCluster(t)
	c.watchAllNamespaces()
	before := c.version()
	c.startOperator("--namespace=")
	elsewhere := create(c, aClusterVersion(func(cv *v1beta1.ClusterVersion) {
		cv.Namespace = otherNamespace
		cv.Spec.Template.Spec.Channel = "fast-4.18"
	}))
	c.waitSync(elsewhere, metav1.ConditionFalse, v1beta1.ReasonNotManaged, environment.Namespace)
	c.untouched(before)
}

func TestOtherNamespacesAreNotWatchedByDefault(t *testing.T) {
	c := newCluster(t)
	c.watchAllNamespaces()
	c.startOperator()
	elsewhere := create(c, aConfig(creatingAJobNow(), func(config *v1beta1.UpgradeConfig) { config.Namespace = otherNamespace }))
	here := create(c, aConfig(creatingAJobNow()))
	c.jobOf(here)
	c.get(elsewhere)
	if len(elsewhere.Status.Conditions) > 0 || len(c.jobsOf(elsewhere)) > 0 {
		t.Errorf("the operator works in a namespace that is not its own: %+v", elsewhere.Status)
	}
}
