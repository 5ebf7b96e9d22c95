// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// lifecycleWorld is a cluster with an Operator Lifecycle Manager, as far as its OperatorCondition goes.
type lifecycleWorld struct {
	t          *testing.T
	clock      *clocktesting.FakePassiveClock
	client     client.Client
	reconciler *OperatorConditionReconciler
	// readFails and writeFails is the error with which that ends.
	readFails, writeFails error
	writes                int
}

// newLifecycleWorld returns a world with these objects, in which the manager has named the OperatorCondition operator.v1.
func newLifecycleWorld(t *testing.T, objects ...client.Object) *lifecycleWorld {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, operatorsv2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &lifecycleWorld{t: t, clock: clocktesting.NewFakePassiveClock(startAfter)}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	faulty := interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if w.readFails != nil {
				return w.readFails
			}
			return c.Get(ctx, key, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			w.writes++
			if w.writeFails != nil {
				return w.writeFails
			}
			return c.Patch(ctx, o, patch, opts...)
		},
	})
	w.reconciler = &OperatorConditionReconciler{
		Client: faulty, Live: faulty, Name: "operator.v1", Namespace: namespace, JobNamespace: namespace, Clock: w.clock, retry: newRetrier(),
	}
	return w
}

func newOperatorCondition(conditions ...metav1.Condition) *operatorsv2.OperatorCondition {
	return &operatorsv2.OperatorCondition{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "operator.v1"},
		Spec:       operatorsv2.OperatorConditionSpec{Deployments: []string{"operator"}, Conditions: conditions},
	}
}

// pass does one pass.
func (w *lifecycleWorld) pass() ctrl.Result {
	w.t.Helper()
	result, err := w.reconciler.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: "operator.v1"}})
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// told is what the manager was told last; nil if nothing was.
func (w *lifecycleWorld) told() *metav1.Condition {
	w.t.Helper()
	condition := &operatorsv2.OperatorCondition{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: "operator.v1"}, condition); err != nil {
		w.t.Fatal(err)
	}
	return meta.FindStatusCondition(condition.Spec.Conditions, operatorsv2.Upgradeable)
}

// aJobThat is a job in a phase, started or not, that holds something or not.
func aJobThat(phase v1beta1.Phase, started, holds bool) *v1beta1.UpgradeJob {
	job := &v1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "weekly"}, Status: v1beta1.UpgradeJobStatus{Phase: phase}}
	if started {
		job.Status.StartTime = &metav1.Time{Time: startAfter}
	}
	if holds {
		job.Finalizers = []string{v1beta1.UpgradeJobFinalizer}
	}
	return job
}

func TestOperatorIsNotReplacedWhileAJobIsInFlight(t *testing.T) {
	for _, tc := range []struct {
		reason      string
		job         *v1beta1.UpgradeJob
		upgradeable bool
	}{
		{"a job that is new", aJobThat("", false, true), true},
		{"a job that waits for its start", aJobThat(v1beta1.PhasePending, false, true), true},
		{"a job whose steps run", aJobThat(v1beta1.PhaseActive, true, true), false},
		{"a job whose pools wait for their time", aJobThat(v1beta1.PhasePaused, true, true), false},
		{"a job that gives back what it held", aJobThat(v1beta1.PhaseSucceeded, true, true), false},
		{"a failed job that cannot give back what it held", aJobThat(v1beta1.PhaseFailed, true, true), false},
		{"a job that was skipped after its start, and holds its lock", aJobThat(v1beta1.PhaseSkipped, true, true), false},
		{"a job that never started", aJobThat(v1beta1.PhaseSkipped, false, true), true},
		{"a job that has succeeded", aJobThat(v1beta1.PhaseSucceeded, true, false), true},
		{"a job that has failed", aJobThat(v1beta1.PhaseFailed, true, false), true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newLifecycleWorld(t, newOperatorCondition(), tc.job)
			if result := w.pass(); result != (ctrl.Result{}) {
				t.Errorf("it is looked at again after %v, though the watch tells", result)
			}
			got := w.told()
			switch {
			case got == nil:
				t.Fatal("the manager was not told")
			case tc.upgradeable && (got.Status != metav1.ConditionTrue || got.Reason != ReasonNoUpgradeInProgress):
				t.Errorf("told %s (%s), want that it can be replaced", got.Status, got.Reason)
			case !tc.upgradeable && (got.Status != metav1.ConditionFalse || got.Reason != ReasonUpgradeInProgress || !strings.Contains(got.Message, namespace+"/weekly")):
				t.Errorf("told %s (%s): %s; want that it cannot, for that job", got.Status, got.Reason, got.Message)
			}
			if !got.LastTransitionTime.Time.Equal(startAfter) || got.Message == "" {
				t.Errorf("told %+v, which is no valid condition", got)
			}
		})
	}
}

func TestOperatorConditionFollowsItsJobs(t *testing.T) {
	theirs := metav1.Condition{Type: "Degraded", Status: metav1.ConditionFalse, Reason: "Fine", LastTransitionTime: metav1.NewTime(startAfter)}
	second := aJobThat(v1beta1.PhaseFailed, true, true)
	second.Name = "earlier"
	elsewhere := aJobThat(v1beta1.PhaseActive, true, true)
	elsewhere.Namespace = "theirs"
	job := aJobThat(v1beta1.PhaseActive, true, true)
	w := newLifecycleWorld(t, newOperatorCondition(theirs), job, second, elsewhere)
	w.pass()
	w.clock.SetTime(startAfter.Add(time.Hour))
	w.pass()
	if got := w.told(); w.writes != 1 || got.Message != "In progress: UpgradeJob upgrades/earlier, upgrades/weekly" || !got.LastTransitionTime.Time.Equal(startAfter) {
		t.Errorf("told %+v, by %d writes; want both jobs, said once", got, w.writes)
	}
	for _, gone := range []client.Object{job, second} {
		gone.SetFinalizers(nil)
		if err := w.client.Update(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		if err := w.client.Delete(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
	}
	w.pass()
	if got := w.told(); got.Status != metav1.ConditionTrue || !got.LastTransitionTime.Time.Equal(startAfter.Add(time.Hour)) {
		t.Errorf("told %+v once the jobs have gone", got)
	}
	condition := &operatorsv2.OperatorCondition{}
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(newOperatorCondition()), condition); err != nil {
		t.Fatal(err)
	}
	if meta.FindStatusCondition(condition.Spec.Conditions, "Degraded") == nil || len(condition.Spec.Deployments) != 1 {
		t.Errorf("what others have written is gone: %+v", condition.Spec)
	}
	w.reconciler.JobNamespace = ""
	w.pass()
	if got := w.told(); got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, "theirs/weekly") {
		t.Errorf("told %+v of a job in another namespace, where all are watched", got)
	}
}

func TestOperatorConditionIsTriedAgain(t *testing.T) {
	noCRD := &meta.NoKindMatchError{GroupKind: operatorsv2.GroupVersion.WithKind("OperatorCondition").GroupKind()}
	job := aJobThat(v1beta1.PhaseActive, true, true)
	w := newLifecycleWorld(t, job)
	if result := w.pass(); result.RequeueAfter != missingDelay {
		t.Errorf("an object that is not there yet is looked for after %v", result.RequeueAfter)
	}
	w.readFails = noCRD
	if result := w.pass(); result.RequeueAfter != missingDelay {
		t.Errorf("without the CRD it is looked for after %v", result.RequeueAfter)
	}
	w.readFails = nil
	if err := w.client.Create(t.Context(), newOperatorCondition()); err != nil {
		t.Fatal(err)
	}
	for _, fault := range []error{errBroken, errConflict, errors.New("connection refused")} {
		w.writeFails = fault
		if result := w.pass(); result.RequeueAfter == 0 || result.RequeueAfter > maxBackoff {
			t.Errorf("after %v it is tried again after %v", fault, result.RequeueAfter)
		}
		if got := w.told(); got != nil {
			t.Fatalf("told %+v by a write that failed", got)
		}
	}
	w.writeFails = nil
	if result := w.pass(); result != (ctrl.Result{}) || w.told() == nil || w.told().Status != metav1.ConditionFalse {
		t.Errorf("told %+v, and again after %v, once everything is back", w.told(), result)
	}
}
