// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

func TestJudgeBudget(t *testing.T) {
	const (
		allows, never, exhausted = openshift.BudgetAllows, openshift.BudgetNeverAllows, openshift.BudgetExhausted
		unknown, uncounted       = openshift.BudgetNotComputed, openshift.BudgetCountsNoPods
	)
	type options = []func(*policyv1.PodDisruptionBudget)
	budget := func(required, healthy, pods int32, o ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
		return openshifttest.Budget("shop", "web", required, healthy, pods, o...)
	}
	syncFailed := openshifttest.BudgetCondition(policyv1.SyncFailedReason)
	for _, tc := range []struct {
		reason  string
		budget  *policyv1.PodDisruptionBudget
		options options
		want    openshift.BudgetState
		message string
	}{
		{"one of three may go", budget(2, 3, 3), nil, allows, ""},
		{"none has to be there", budget(0, 3, 3), nil, allows, ""},
		{"no pods: a number counts all that there are", budget(1, 0, 0), nil, allows, ""},

		{"all of them are required", budget(3, 3, 3), nil, never, "3 of 3 pods have to be healthy"},
		{"more than there are", budget(3, 1, 1), nil, never, "3 of 1 pods have to be healthy"},
		{"even if some are sick: they would not help", budget(3, 1, 3), nil, never, "3 of 3 pods have to be healthy"},
		{"a percentage that comes to all of them", budget(3, 3, 3), options{openshifttest.MinAvailable("90%")}, never, "3 of 3 pods have to be healthy"},
		{"none may be unavailable", budget(3, 3, 3), options{openshifttest.MaxUnavailable("0")}, never, "maxUnavailable is 0"},
		{"the same as a percentage", budget(3, 3, 3), options{openshifttest.MaxUnavailable("0%")}, never, "maxUnavailable is 0%"},
		{"all have to be available", budget(3, 3, 3), options{openshifttest.MinAvailable("100%")}, never, "minAvailable is 100%"},

		// The disruption controller says this of two healthy pods without a controller.
		{"none of them may be unavailable", budget(0, 2, 0), options{openshifttest.MaxUnavailable("0")}, never, "maxUnavailable is 0"},
		{"all of them have to be available", budget(0, 2, 0), options{openshifttest.MinAvailable("100%")}, never, "minAvailable is 100%"},
		{"one of them may be unavailable", budget(0, 2, 0), options{openshifttest.MaxUnavailable("1")}, uncounted, "pods without a controller count only if minAvailable is a number"},
		{"half of them have to be available", budget(0, 2, 0), options{openshifttest.MinAvailable("50%")}, uncounted, "pods without a controller count only if minAvailable is a number"},
		// And this if none is healthy, or if there are none: the status does not tell.
		{"they may be sick, or not there", budget(0, 0, 0), options{openshifttest.MaxUnavailable("1")}, uncounted, "pods without a controller count only if minAvailable is a number"},
		{"they may be sick, or not there, and none may be unavailable", budget(0, 0, 0), options{openshifttest.MaxUnavailable("0")}, never, "maxUnavailable is 0"},

		{"a sick pod is one too many", budget(2, 2, 3), nil, exhausted, "2 of 3 pods healthy, 2 required"},
		{"more sick pods", budget(2, 1, 3), nil, exhausted, "1 of 3 pods healthy, 2 required"},
		{"the controller cannot tell", budget(2, 3, 3), options{syncFailed}, unknown, "the disruption controller cannot compute it"},
		{"it could as long as there were no pods", budget(0, 0, 0), options{openshifttest.MaxUnavailable("1"), syncFailed}, unknown, "the disruption controller cannot compute it"},
		{"it never could", budget(2, 3, 3), options{openshifttest.BudgetNotObserved(), syncFailed}, unknown, "the disruption controller cannot compute it"},

		{"not looked at yet", budget(3, 3, 3), options{openshifttest.BudgetNotObserved()}, unknown, "the disruption controller has not looked at it yet"},
		{"not looked at yet, and without a generation", budget(3, 3, 3), options{
			openshifttest.BudgetNotObserved(), func(b *policyv1.PodDisruptionBudget) { b.Generation = 0 },
		}, unknown, "the disruption controller has not looked at it yet"},
		{"not looked at since it was changed", budget(2, 3, 3), options{func(b *policyv1.PodDisruptionBudget) { b.Generation++ }}, unknown, "the disruption controller has not looked at it yet"},
		{"not looked at yet, but its spec says enough", budget(3, 3, 3), options{openshifttest.BudgetNotObserved(), openshifttest.MaxUnavailable("0")}, never, "maxUnavailable is 0"},
		{"the same as a percentage", budget(3, 3, 3), options{openshifttest.BudgetNotObserved(), openshifttest.MaxUnavailable("0%")}, never, "maxUnavailable is 0%"},
		{"the same the other way round", budget(3, 3, 3), options{openshifttest.BudgetNotObserved(), openshifttest.MinAvailable("100%")}, never, "minAvailable is 100%"},
		{"a percentage that leaves some", budget(2, 3, 3), options{openshifttest.MinAvailable("99%")}, allows, ""},
		{"the same the other way round", budget(2, 3, 3), options{openshifttest.MaxUnavailable("1%")}, allows, ""},
		{"a hundred pods are not a hundred percent", budget(100, 101, 101), options{openshifttest.MinAvailable("100")}, allows, ""},

		{"a budget that is being deleted still counts", budget(3, 3, 3), options{func(b *policyv1.PodDisruptionBudget) { b.DeletionTimestamp = &metav1.Time{Time: now} }}, never, "3 of 3 pods have to be healthy"},
		{"no selector selects nothing", budget(3, 3, 3), options{openshifttest.BudgetSelector(nil), openshifttest.MaxUnavailable("0")}, allows, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			for _, option := range tc.options {
				option(tc.budget)
			}
			if got, message := openshift.JudgeBudget(tc.budget); got != tc.want || message != tc.message {
				t.Errorf("got %d, %q; want %d, %q", got, message, tc.want, tc.message)
			}
		})
	}
}
