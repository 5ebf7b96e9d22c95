// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// virtual is a cluster in memory whose time jumps to the next event.
type virtual struct {
	t         *testing.T
	view      *view
	watch     *stopwatch
	now       time.Time
	revisions []*configv1.ClusterVersion
	// refuses is what the API server says to an eviction; nil evicts.
	refuses func(*corev1.Pod) error
	// evictions counts the attempts.
	evictions int
	// reports are the revisions of worker-0's MachineConfigNode.
	reports []*mcfgv1.MachineConfigNode
}

func newVirtual(t *testing.T, s Scenario) *virtual {
	t.Helper()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC)
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(
		&configv1.ClusterVersion{}, &configv1.ClusterOperator{}, &mcfgv1.MachineConfigPool{},
		&machinev1beta1.MachineSet{}, &machinev1beta1.Machine{}).WithInterceptorFuncs(interceptor.Funcs{Create: withUID}).Build()
	i := &installation{client: c, scenario: &s, now: now}
	for _, step := range []func() error{
		func() error { return i.clusterVersion(t.Context()) },
		func() error { return i.clusterOperators(t.Context()) },
		func() error { return i.pools(t.Context()) },
		func() error { return i.nodes(t.Context()) },
		func() error { return i.poolStatuses(t.Context()) },
		func() error { return i.machines(t.Context()) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	v := &virtual{t: t, view: newView(), watch: newStopwatch(), now: now}
	v.view.scenario = &s
	for _, list := range []client.ObjectList{
		&configv1.ClusterVersionList{}, &configv1.ClusterOperatorList{}, &mcfgv1.MachineConfigPoolList{}, &mcfgv1.MachineConfigList{}, &corev1.NodeList{},
		&machinev1beta1.MachineSetList{}, &machinev1beta1.MachineList{},
	} {
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		switch l := list.(type) {
		case *configv1.ClusterVersionList:
			putAll(v, l.Items)
		case *configv1.ClusterOperatorList:
			putAll(v, l.Items)
		case *mcfgv1.MachineConfigPoolList:
			putAll(v, l.Items)
		case *mcfgv1.MachineConfigList:
			putAll(v, l.Items)
		case *corev1.NodeList:
			putAll(v, l.Items)
		case *machinev1beta1.MachineSetList:
			putAll(v, l.Items)
		case *machinev1beta1.MachineList:
			putAll(v, l.Items)
		}
	}
	v.view.version.Generation = 1
	v.view.version.Status.ObservedGeneration = 1
	v.revisions = append(v.revisions, v.view.version)
	return v
}

// withUID gives new objects a UID, which the fake API server does not.
func withUID(ctx context.Context, c client.WithWatch, obj client.Object, options ...client.CreateOption) error {
	obj.SetUID(types.UID("uid-" + obj.GetName()))
	return c.Create(ctx, obj, options...)
}

func putAll[T any, P interface {
	*T
	client.Object
}](v *virtual, items []T) {
	for i := range items {
		v.view.put(P(&items[i]))
	}
}

// round does what all controllers want now, and reports whether that was anything.
func (v *virtual) round() bool {
	v.watch.begin(v.now)
	var changes []change
	plans := []plan{planOperators, planVersion, planPools, planNodes, planEvictions, planPods, planMachineSets, planMachines, planIntegrities}
	if v.view.scenario.MachineConfigNodes {
		plans = append(plans, planReports)
	}
	for _, p := range plans {
		changes = append(changes, p(v.view, v.watch)...)
	}
	for _, c := range changes {
		if have := v.view.get(c.after); c.part != created && !equality.Semantic.DeepEqual(have, c.before) {
			continue // Two plans changed one object: the later one sees the news in the next round.
		}
		switch c.part {
		case evicted:
			v.evict(c.after.(*corev1.Pod))
			continue
		case deleted:
			v.deleteNow(c.after)
			continue
		case created:
			if c.after.GetUID() == "" {
				c.after.SetUID(types.UID("uid-" + c.after.GetName()))
			}
		case spec, status, bound:
		}
		if c.after.GetDeletionTimestamp() != nil && isMachine(c.after) && len(c.after.GetFinalizers()) == 0 {
			v.view.remove(c.after)
			continue
		}
		if pool, ok := c.after.(*mcfgv1.MachineConfigPool); ok && c.part == spec {
			pool.Generation++
		}
		v.view.put(c.after)
		if cv, ok := c.after.(*configv1.ClusterVersion); ok {
			v.revisions = append(v.revisions, cv)
		}
		if report, ok := c.after.(*mcfgv1.MachineConfigNode); ok && report.Name == "worker-0" {
			v.reports = append(v.reports, report)
		}
	}
	return len(changes) > 0
}

// evict is the API server's part of an eviction.
func (v *virtual) evict(pod *corev1.Pod) {
	v.evictions++
	last := attempt{at: v.now}
	if v.refuses != nil {
		if err := v.refuses(pod); err != nil {
			last.refusal = err.Error()
		}
	}
	if last.refusal == "" {
		v.delete(pod, 30)
	}
	v.view.pods.attempts[pod.UID] = last
}

// deleteNow is the API server's part of a deletion with a grace period of zero.
func (v *virtual) deleteNow(obj client.Object) {
	if len(obj.GetFinalizers()) == 0 {
		v.view.remove(obj)
		return
	}
	obj.SetDeletionTimestamp(new(metav1.NewTime(v.now)))
	v.view.put(obj)
}

// delete asks for the deletion of a pod with a grace period in seconds.
func (v *virtual) delete(pod *corev1.Pod, grace int64) {
	next := v.view.pods.all[client.ObjectKeyFromObject(pod)].DeepCopy()
	next.DeletionTimestamp = new(metav1.NewTime(v.now.Add(time.Duration(grace) * time.Second)))
	next.DeletionGracePeriodSeconds = &grace
	v.view.put(next)
}

// until lets the cluster work until reached holds.
func (v *virtual) until(what string, reached func() bool) {
	v.t.Helper()
	for range 20000 {
		if reached() {
			return
		}
		if v.round() {
			continue
		}
		if v.watch.wake.IsZero() {
			break
		}
		v.now = v.watch.wake
	}
	if !reached() {
		v.t.Fatalf("never: %s; conditions: %+v", what, v.view.version.Status.Conditions)
	}
}

// pass lets the cluster work for d.
func (v *virtual) pass(d time.Duration) {
	end := v.now.Add(d)
	for range 20000 {
		if v.round() {
			continue
		}
		if v.watch.wake.IsZero() || v.watch.wake.After(end) {
			break
		}
		v.now = v.watch.wake
	}
	v.now = end
	v.round()
}

// desire writes spec.desiredUpdate.
func (v *virtual) desire(update *configv1.Update) {
	cv := v.view.version.DeepCopy()
	cv.Spec.DesiredUpdate = update
	cv.Generation++
	v.view.put(cv)
	v.revisions = append(v.revisions, cv)
}

// change changes the scenario.
func (v *virtual) change(edit func(*Scenario)) {
	s := *v.view.scenario
	edit(&s)
	if err := s.Validate(); err != nil {
		v.t.Fatal(err)
	}
	v.view.scenario = &s
}

// upgrade updates to a version and waits for its completion.
func (v *virtual) upgrade(version string) {
	v.t.Helper()
	v.desire(&configv1.Update{Version: version})
	v.until(version+" completed", func() bool {
		newest := v.view.version.Status.History[0]
		return newest.Version == version && newest.State == configv1.CompletedUpdate
	})
	v.pass(time.Second)
}

// waitsOn reports whether the ClusterVersion's Progressing has that reason.
func (v *virtual) is(t configv1.ClusterStatusConditionType, st configv1.ConditionStatus, reason string) func() bool {
	return func() bool {
		c := findCondition(v.view.version.Status.Conditions, t)
		return c != nil && c.Status == st && c.Reason == reason
	}
}
