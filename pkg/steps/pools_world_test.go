// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

type poolOption = func(*mcfgv1.MachineConfigPool)

// me is how the job of these tests stands on what it holds.
const me = "ns/job"

// poolLabel is the label by which a pool of these tests is selected.
func poolLabel(pool string) map[string]string {
	return map[string]string{"pools.operator.machineconfiguration.openshift.io/" + pool: ""}
}

// pool returns a pool that can be selected by its name.
func pool(name string, options ...poolOption) *mcfgv1.MachineConfigPool {
	p := openshifttest.Pool(name, options...)
	for key, value := range poolLabel(name) {
		p.Labels[key] = value
	}
	return p
}

// renderedConfigs are what both releases have rendered for these pools.
func renderedConfigs(names ...string) []client.Object {
	var all []client.Object
	for _, name := range names {
		all = append(all, openshifttest.MachineConfig(name, "4.18.1"), openshifttest.MachineConfig(name, target))
	}
	return all
}

// named puts a job on a pool that is not paused any more.
func named(job string) poolOption {
	return func(p *mcfgv1.MachineConfigPool) {
		openshifttest.PoolPausedBy(job)(p)
		p.Spec.Paused = false
	}
}

// delays has the job release a pool so long after its start at the earliest, and give up so long after it; zero for never.
func delays(pool string, from, until time.Duration) jobOption {
	return func(job *v1beta1.UpgradeJob) {
		entry := v1beta1.MachineConfigPoolConfig{
			MatchLabels: &v1beta1.PoolSelector{Labels: poolLabel(pool)}, DelayUpgrade: &v1beta1.DelayUpgrade{DelayMin: &v1beta1.Duration{Duration: from}},
		}
		if until > 0 {
			entry.DelayUpgrade.DelayMax = &v1beta1.Duration{Duration: until}
		}
		job.Spec.Config.MachineConfigPools = append(job.Spec.Config.MachineConfigPools, entry)
	}
}

// pausesOnFailure has the job pause pools when it fails: those that the labels select, or all.
func pausesOnFailure(labels map[string]string) jobOption {
	return func(job *v1beta1.UpgradeJob) {
		job.Spec.Config.PauseMachineConfigPoolsOnFailure = &v1beta1.PauseMachineConfigPoolsOnFailure{Enabled: true}
		if labels != nil {
			job.Spec.Config.PauseMachineConfigPoolsOnFailure.Selector = &metav1.LabelSelector{MatchLabels: labels}
		}
	}
}

// waitedFor records what the job waited for last.
func waitedFor(message string) jobOption {
	return func(job *v1beta1.UpgradeJob) {
		job.Status.Blockers = []v1beta1.Blocker{{Code: "Test", Message: message, ClearsWhen: "it goes", Since: metav1.NewTime(start)}}
	}
}

// poolsNow tells how each pool is held, by name.
func (w *world) poolsNow() []string {
	w.t.Helper()
	list := &mcfgv1.MachineConfigPoolList{}
	if err := w.api.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for i := range list.Items {
		p := &list.Items[i]
		name, isNamed := p.Annotations[v1beta1.UpgradeJobAnnotation]
		switch {
		case p.Spec.Paused && isNamed:
			all = append(all, p.Name+" paused by "+name)
		case p.Spec.Paused:
			all = append(all, p.Name+" paused by hand")
		case isNamed:
			all = append(all, p.Name+" free, but for "+name)
		default:
			all = append(all, p.Name+" free")
		}
	}
	return all
}

func (w *world) expectPools(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.poolsNow()); diff != "" {
		w.t.Errorf("pools (-want +got):\n%s", diff)
	}
}

// editPool changes a pool as the machine-config operator, or somebody, does.
func (w *world) editPool(name string, options ...poolOption) {
	w.t.Helper()
	p := &mcfgv1.MachineConfigPool{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Name: name}, p); err != nil {
		w.t.Fatal(err)
	}
	for _, option := range options {
		option(p)
	}
	status := p.Status
	if err := w.api.Update(w.t.Context(), p); err != nil {
		w.t.Fatal(err)
	}
	p.Status = status
	if err := w.api.Status().Update(w.t.Context(), p); err != nil {
		w.t.Fatal(err)
	}
}

// refusing makes the API refuse writes of an object.
func (w *world) refusing(err error, name string) {
	w.api = interceptor.NewClient(w.api, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if o.GetName() == name {
				return err
			}
			return c.Patch(ctx, o, patch, options...)
		},
	})
}

// breakList and breakGet fail the reads of a kind in a pass that is about to begin.
func (w *world) breakList(u *steps.Upgrade, err error, kind string) {
	broken := interceptor.NewClient(w.api, failingList(err, kind))
	u.Cluster = openshift.NewCluster(broken, broken)
}

func (w *world) breakGet(u *steps.Upgrade, err error, kind string) {
	broken := interceptor.NewClient(w.api, failingGet(err, kind))
	u.Cluster = openshift.NewCluster(broken, broken)
}

// expectCondition fails unless the job says just that by the condition.
func (w *world) expectCondition(conditionType, want string) {
	w.t.Helper()
	c := meta.FindStatusCondition(w.job().Status.Conditions, conditionType)
	if c == nil {
		w.t.Errorf("there is no condition %s, want %s", conditionType, want)
		return
	}
	if got := fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message); got != want {
		w.t.Errorf("condition %s (-want +got):\n%s", conditionType, cmp.Diff(want, got))
	}
}

// blockersOf returns code and object of each blocker.
func blockersOf(job *v1beta1.UpgradeJob) []string {
	var all []string
	for _, b := range job.Status.Blockers {
		all = append(all, b.Code+" "+b.Object)
	}
	return all
}

// poolCase is a step about pools in a situation, and what comes of it.
type poolCase struct {
	reason string

	job     []jobOption
	version []versionOption
	objects []client.Object
	over    []string      // jobs that are over
	after   time.Duration // since the start

	outcome   steps.Outcome // Completed stands for Done
	paused    bool
	wake      time.Duration // until the next pass at the latest
	condition string
	blockers  []string
	pools     []string
	locked    bool
}

// run runs the step, checks what came of it, and that another pass changes nothing more.
func (c *poolCase) run(t *testing.T, step steps.Step) {
	t.Helper()
	w := newWorld(t, append([]client.Object{newJob(c.job...), openshifttest.ClusterVersion(c.version...)}, c.objects...)...)
	w.now, w.over = start.Add(c.after), c.over
	got := w.pass(step)
	if got.Err != nil {
		t.Fatalf("got the error %v", got.Err)
	}
	if got.Outcome != c.outcome || got.After != c.wake || got.Paused != c.paused {
		t.Errorf("got outcome %d, wake-up after %s, paused %t, want %d, %s, %t", got.Outcome, got.After, got.Paused, c.outcome, c.wake, c.paused)
	}
	w.expectCondition(step.Condition(), c.condition)
	if diff := cmp.Diff(c.blockers, blockersOf(w.job())); diff != "" {
		t.Errorf("blockers (-want +got):\n%s", diff)
	}
	w.expectPools(c.pools...)
	if _, locked := w.version().Annotations[v1beta1.UpgradeJobAnnotation]; locked != c.locked {
		t.Errorf("the cluster is locked: %t, want %t", locked, c.locked)
	}

	if c.outcome == steps.Failed || c.outcome == steps.Skipped {
		return
	}
	before := w.job().Status
	w.pass(step)
	after := w.job().Status
	before.Pools, after.Pools = nil, nil // they are as the pass found them
	if diff := cmp.Diff(before, after); diff != "" || len(w.turned) > 0 {
		t.Errorf("another pass changes what is said, and tells %v (-before +after):\n%s", w.turned, diff)
	}
	w.expectPools(c.pools...)
}
