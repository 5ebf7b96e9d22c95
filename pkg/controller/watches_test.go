// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// turn is a change of an object, and whether it is more than progress.
type turn[T client.Object] struct {
	reason string
	change func(T)
	want   bool
}

func expectTurns[T client.Object](t *testing.T, base T, turned func(a, b client.Object) bool, turns []turn[T]) {
	t.Helper()
	for _, tc := range append(turns, turn[T]{"nothing", func(T) {}, false}) {
		t.Run(tc.reason, func(t *testing.T) {
			changed := base.DeepCopyObject().(T)
			tc.change(changed)
			if got := turned(base, changed); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
			if got := turned(changed, base); got != tc.want {
				t.Errorf("backwards: got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestClusterVersionTurned(t *testing.T) {
	expectTurns(t, newClusterVersion(), clusterVersionTurned, []turn[*configv1.ClusterVersion]{
		{"the spec", func(cv *configv1.ClusterVersion) { cv.Generation++ }, true},
		{"the lock", lockedBy("upgrades/weekly"), true},
		{"another annotation", func(cv *configv1.ClusterVersion) { cv.Annotations = map[string]string{"other": "x"} }, false},
		{"an update withdrawn", func(cv *configv1.ClusterVersion) { cv.Status.AvailableUpdates = nil }, true},
		{"another image of an update", func(cv *configv1.ClusterVersion) { cv.Status.AvailableUpdates[0].Image = "other" }, true},
		{"an update's channels", func(cv *configv1.ClusterVersion) { cv.Status.AvailableUpdates[0].Channels = []string{"fast"} }, false},
		{"an entry of the history", func(cv *configv1.ClusterVersion) {
			cv.Status.History = append([]configv1.UpdateHistory{{State: configv1.PartialUpdate, Version: "4.18.2"}}, cv.Status.History...)
		}, true},
		{"an entry is completed", func(cv *configv1.ClusterVersion) {
			cv.Status.History[0].CompletionTime = &metav1.Time{Time: startAfter}
		}, true},
		{"a condition's status", func(cv *configv1.ClusterVersion) { cv.Status.Conditions[0].Status = configv1.ConditionFalse }, true},
		{"a condition's reason", func(cv *configv1.ClusterVersion) { cv.Status.Conditions[0].Reason = "NoRoute" }, true},
		{"a condition's message", func(cv *configv1.ClusterVersion) { cv.Status.Conditions[0].Message = "Working: 17% done" }, false},
		{"a new condition", func(cv *configv1.ClusterVersion) {
			cv.Status.Conditions = append(cv.Status.Conditions, configv1.ClusterOperatorStatusCondition{Type: openshift.Failing, Status: configv1.ConditionFalse})
		}, true},
		{"the heartbeat of a write", func(cv *configv1.ClusterVersion) { cv.ResourceVersion = "7" }, false},
	})
}

func TestClusterOperatorTurned(t *testing.T) {
	operator := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "etcd"}}
	operator.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
		{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue}, {Type: configv1.OperatorProgressing, Status: configv1.ConditionFalse},
		{Type: configv1.OperatorDegraded, Status: configv1.ConditionFalse}, {Type: configv1.OperatorUpgradeable, Status: configv1.ConditionTrue},
	}
	set := func(i int, status configv1.ConditionStatus) func(*configv1.ClusterOperator) {
		return func(co *configv1.ClusterOperator) { co.Status.Conditions[i].Status = status }
	}
	expectTurns(t, operator, clusterOperatorTurned, []turn[*configv1.ClusterOperator]{
		{"not available any more", set(0, configv1.ConditionFalse), true},
		{"progressing", set(1, configv1.ConditionTrue), false},
		{"degraded", set(2, configv1.ConditionTrue), true},
		{"not upgradeable any more", set(3, configv1.ConditionFalse), true},
		{"degraded for another reason", func(co *configv1.ClusterOperator) { co.Status.Conditions[2].Reason = "Other" }, true},
		{"other words", func(co *configv1.ClusterOperator) { co.Status.Conditions[2].Message = "other" }, false},
		{"a version", func(co *configv1.ClusterOperator) {
			co.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: "4.18.2"}}
		}, false},
		{"a condition is gone", func(co *configv1.ClusterOperator) { co.Status.Conditions = co.Status.Conditions[:2] }, true},
	})
}

func TestPoolTurned(t *testing.T) {
	pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker", Generation: 2}}
	pool.Status = mcfgv1.MachineConfigPoolStatus{
		ObservedGeneration: 2, MachineCount: 6, UpdatedMachineCount: 2, ReadyMachineCount: 2, UnavailableMachineCount: 1,
		Conditions: []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdating, Status: corev1.ConditionTrue}},
	}
	expectTurns(t, pool, poolTurned, []turn[*mcfgv1.MachineConfigPool]{
		{"the spec", func(p *mcfgv1.MachineConfigPool) { p.Generation++ }, true},
		{"the spec was seen", func(p *mcfgv1.MachineConfigPool) { p.Status.ObservedGeneration++ }, true},
		{"the configuration", func(p *mcfgv1.MachineConfigPool) { p.Status.Configuration.Name = "rendered-worker-2" }, true},
		{"one more machine", func(p *mcfgv1.MachineConfigPool) { p.Status.UpdatedMachineCount, p.Status.ReadyMachineCount = 3, 3 }, false},
		{"the last machine", func(p *mcfgv1.MachineConfigPool) { p.Status.UpdatedMachineCount = 6 }, true},
		{"a machine is degraded", func(p *mcfgv1.MachineConfigPool) { p.Status.DegradedMachineCount = 1 }, true},
		{"a machine is unavailable", func(p *mcfgv1.MachineConfigPool) { p.Status.UnavailableMachineCount = 2 }, false},
		{"a condition's status", func(p *mcfgv1.MachineConfigPool) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, true},
		{"a condition's reason", func(p *mcfgv1.MachineConfigPool) { p.Status.Conditions[0].Reason = "Other" }, true},
		{"a condition's message", func(p *mcfgv1.MachineConfigPool) { p.Status.Conditions[0].Message = "other" }, false},
	})
}

func TestPredicatesOfJobs(t *testing.T) {
	update := func(p interface{ Update(event.UpdateEvent) bool }) func(a, b client.Object) bool {
		return func(a, b client.Object) bool { return p.Update(event.UpdateEvent{ObjectOld: a, ObjectNew: b}) }
	}
	active := withPhase(v1beta1.PhaseActive)
	progress := func(job *v1beta1.UpgradeJob) { job.Status.Blockers = []v1beta1.Blocker{{Code: "x"}} }
	deleted := func(job *v1beta1.UpgradeJob) { job.DeletionTimestamp = &metav1.Time{Time: startAfter} }
	expectTurns(t, newJob("weekly"), update(phaseChanged), []turn[*v1beta1.UpgradeJob]{
		{"its phase", active, true}, {"its progress", progress, false}, {"its deletion", deleted, false},
	})
	expectTurns(t, newJob("weekly"), update(deletionRequested), []turn[*v1beta1.UpgradeJob]{
		{"its phase", active, false}, {"its progress", progress, false}, {"its deletion", deleted, true},
	})
}

// queue notes what is added to it.
type queue struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]
	added map[string]time.Duration
}

func (q *queue) Add(r ctrl.Request) { q.AddAfter(r, 0) }

func (q *queue) AddAfter(r ctrl.Request, after time.Duration) {
	if q.added == nil {
		q.added = map[string]time.Duration{}
	}
	q.added[r.Name] = after
}

func TestOpenShiftWakesJobs(t *testing.T) {
	objects := []client.Object{
		newJob("active", withPhase(v1beta1.PhaseActive)),
		newJob("pending", withPhase(v1beta1.PhasePending)), // it waits for the lock
		newJob("later", func(job *v1beta1.UpgradeJob) { job.Spec.StartAfter.Time = startAfter.Add(time.Second) }),
		newJob("succeeded", withPhase(v1beta1.PhaseSucceeded)),
		newJob("failed", withPhase(v1beta1.PhaseFailed)),
		newJob("elsewhere", withPhase(v1beta1.PhaseActive), func(job *v1beta1.UpgradeJob) { job.Namespace = "elsewhere" }),
	}
	w := newWorld(t, objects...)
	r := w.jobs()
	turned := true
	h := r.awaitingJobs(func(client.Object, client.Object) bool { return turned })
	now := map[string]time.Duration{"active": 0, "pending": 0, "elsewhere": 0, "later": 0} // the last one tells how it would find the cluster
	later := map[string]time.Duration{"active": progressInterval, "pending": progressInterval, "elsewhere": progressInterval}
	for _, tc := range []struct {
		reason string
		event  func(q *queue)
		want   map[string]time.Duration
	}{
		{"an object came", func(q *queue) { h.Create(t.Context(), event.CreateEvent{}, q) }, now},
		{"an object went", func(q *queue) { h.Delete(t.Context(), event.DeleteEvent{}, q) }, now},
		{"an object turned", func(q *queue) { h.Update(t.Context(), event.UpdateEvent{}, q) }, now},
		{"an object made progress", func(q *queue) { turned = false; h.Update(t.Context(), event.UpdateEvent{}, q) }, later},
		{"the manager stops", func(q *queue) {
			w.api.fault = failing("list UpgradeJobList", 1, errors.New("the cache is stopped"))
			h.Create(t.Context(), event.CreateEvent{}, q)
		}, nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			q := &queue{}
			tc.event(q)
			if diff := cmp.Diff(tc.want, q.added); diff != "" {
				t.Errorf("woken (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSetupCacheTellsWhatFailed(t *testing.T) {
	broken := errors.New("no match")
	for _, tc := range []struct {
		errs []error
		want string
	}{
		{[]error{broken}, "cache MachineConfigs: no match"},
		{[]error{nil, broken}, "index UpgradeJobs by owner: no match"},
	} {
		if err := SetupCache(t.Context(), &indexes{err: tc.errs}); err == nil || err.Error() != tc.want || !errors.Is(err, broken) {
			t.Errorf("got error %v, want %q", err, tc.want)
		}
	}
}

func TestIndexes(t *testing.T) {
	setup := &indexes{}
	if err := SetupCache(t.Context(), setup); err != nil {
		t.Fatal(err)
	}
	extract := map[string]client.IndexerFunc{}
	for _, i := range setup.found {
		extract[i.field] = i.extract
	}
	for _, tc := range []struct {
		reason string
		index  string
		object client.Object
		want   []string
	}{
		{"a job of a config", ownerIndex, newJob("weekly", ownedBy(newConfig())), []string{"weekly-config-uid"}},
		{"a job made by hand", ownerIndex, newJob("by-hand"), nil},
		{"a job that a config owns but does not control", ownerIndex, newJob("owned", func(job *v1beta1.UpgradeJob) {
			job.OwnerReferences = []metav1.OwnerReference{{Kind: "UpgradeConfig", UID: "weekly-config-uid"}}
		}), nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := extract[tc.index](tc.object); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
