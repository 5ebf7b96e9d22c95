// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/operator-framework/api/crds"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/controller"
	"github.com/appuio/managed-upgrade-operator/test/environment"
)

// csvName is the version of the operator that the Operator Lifecycle Manager has installed, and the name of its OperatorCondition.
const csvName = "managed-upgrade-operator.v0.1.0"

// theOperatorCondition is as the Operator Lifecycle Manager makes it, which knows of no condition yet.
func theOperatorCondition() *operatorsv2.OperatorCondition {
	return &operatorsv2.OperatorCondition{
		ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: csvName},
		Spec:       operatorsv2.OperatorConditionSpec{ServiceAccounts: []string{"managed-upgrade-operator"}, Deployments: []string{"managed-upgrade-operator"}},
	}
}

// managedByOLM makes what the Operator Lifecycle Manager makes for an operator that it has installed: the OperatorCondition, and the right
// to get, update and patch this one. It goes with the cluster.
func (c *cluster) managedByOLM() {
	c.t.Helper()
	name := metav1.ObjectMeta{Namespace: environment.Namespace, Name: csvName}
	crd := crds.OperatorCondition()
	for _, object := range []client.Object{
		crd,
		&rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{operatorsv2.GroupVersion.Group}, Resources: []string{"operatorconditions"}, ResourceNames: []string{csvName}, Verbs: []string{"get", "update", "patch"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: csvName},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: environment.Namespace, Name: "managed-upgrade-operator"}},
		},
	} {
		create(c, object)
		c.atEnd = append(c.atEnd, func() { c.remove(object) })
	}
	c.eventually("the API server serves OperatorConditions", func() error {
		c.get(crd)
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return env.Client.Create(c.ctx, theOperatorCondition())
			}
		}
		return errors.New("the CRD is not established")
	})
}

// upgradeable waits until the operator tells so of itself, and returns the whole condition.
func (c *cluster) upgradeable(status metav1.ConditionStatus, reason string, words ...string) metav1.Condition {
	c.t.Helper()
	condition := theOperatorCondition()
	c.eventually("the OperatorCondition", func() error {
		if err := env.Client.Get(c.ctx, client.ObjectKeyFromObject(condition), condition); err != nil {
			return err
		}
		return conditionIs(condition.Spec.Conditions, operatorsv2.Upgradeable, status, reason, words...)
	})
	return *meta.FindStatusCondition(condition.Spec.Conditions, operatorsv2.Upgradeable)
}

// The Operator Lifecycle Manager replaces no operator that has a job in flight: it is told before the cluster's upgrade begins, also of a job that
// only waits for its pools, and until the job has given back what it held, even if that takes a new process.
func TestOperatorIsNotReplacedWhileAJobIsInFlight(t *testing.T) {
	c := newCluster(t, withFewNodes)
	c.managedByOLM()
	installed := environment.OperatorOptions{
		Args: []string{"--leader-elect=false"}, Env: []string{controller.OperatorConditionVariable + "=" + csvName},
	}
	running := c.start(installed)
	c.upgradeable(metav1.ConditionTrue, controller.ReasonNoUpgradeInProgress)

	job := create(c, aJob(delaying("worker", time.Hour, 0)))
	told := c.upgradeable(metav1.ConditionFalse, controller.ReasonUpgradeInProgress, keyOf(job))
	c.wait(job, inPhase(v1beta1.PhasePaused))
	if again := c.upgradeable(metav1.ConditionFalse, controller.ReasonUpgradeInProgress, keyOf(job)); again != told {
		t.Errorf("what it tells has changed from %+v to %+v while the job went on", told, again)
	}
	running.Kill()
	c.remove(job)
	c.upgradeable(metav1.ConditionFalse, controller.ReasonUpgradeInProgress, keyOf(job))

	c.start(installed)
	c.gone(job)
	c.upgradeable(metav1.ConditionTrue, controller.ReasonNoUpgradeInProgress)
	c.eventually("it was written at each turn, and never besides", func() error { return c.conditionWrites(3) })
}

// conditionWrites tells whether the operator has written an OperatorCondition that often, each time with success.
func (c *cluster) conditionWrites(want int) error {
	got := 0
	for _, r := range c.operatorRequests() {
		if r.ObjectRef.Resource != "operatorconditions" {
			continue
		}
		if r.ResponseStatus.Code >= 400 {
			return fmt.Errorf("a request was answered by %d: %s %s", r.ResponseStatus.Code, r.Verb, r.RequestURI)
		}
		if r.Verb == "patch" {
			got++
		} else if r.Verb != "get" {
			return fmt.Errorf("an unexpected request: %s %s", r.Verb, r.RequestURI)
		}
	}
	if got != want {
		return fmt.Errorf("it was written %d times, want %d", got, want)
	}
	return nil
}
