// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package pools_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/pools"
)

// startAfter is when the jobs of these tests start.
var startAfter = time.Date(2026, time.November, 24, 22, 0, 0, 0, time.UTC)

type entry = v1beta1.MachineConfigPoolConfig

func duration(d time.Duration) *v1beta1.Duration { return &v1beta1.Duration{Duration: d} }

// of returns an entry for the pools with that label.
func of(label string, delay *v1beta1.DelayUpgrade) entry {
	return entry{MatchLabels: &v1beta1.PoolSelector{Labels: map[string]string{label: ""}}, DelayUpgrade: delay}
}

// ofAll returns an entry for all pools.
func ofAll(delay *v1beta1.DelayUpgrade) entry {
	return entry{MatchLabels: &v1beta1.PoolSelector{}, DelayUpgrade: delay}
}

func after(d time.Duration) *v1beta1.DelayUpgrade {
	return &v1beta1.DelayUpgrade{DelayMin: duration(d)}
}

func between(from, to time.Duration) *v1beta1.DelayUpgrade {
	return &v1beta1.DelayUpgrade{DelayMin: duration(from), DelayMax: duration(to)}
}

// labelled gives a pool labels without values.
func labelled(names ...string) func(*mcfgv1.MachineConfigPool) {
	return func(pool *mcfgv1.MachineConfigPool) {
		for _, name := range names {
			pool.Labels[name] = ""
		}
	}
}

func parse(t *testing.T, config v1beta1.UpgradeJobConfig) *pools.Rules {
	t.Helper()
	rules, err := pools.Parse(config)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

const (
	requiredLabel = "operator.machineconfiguration.openshift.io/required-for-upgrade"
	refused       = "machineConfigPools[0] delays pool %, which cannot be: OpenShift needs it for the upgrade of the control plane. "
)

func TestRuleOfAPool(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		entries []entry
		pool    *mcfgv1.MachineConfigPool
		want    pools.Rule
		note    string // its beginning
	}{
		{"no settings", nil, openshifttest.Pool("worker"), pools.Rule{}, ""},
		{"no entry for the pool", []entry{of("infra", after(time.Hour))}, openshifttest.Pool("worker"), pools.Rule{}, ""},
		{"an entry without a selector is for none", []entry{{DelayUpgrade: after(time.Hour)}}, openshifttest.Pool("worker"), pools.Rule{}, ""},
		{"an entry for all", []entry{ofAll(between(time.Hour, 2*time.Hour))}, openshifttest.Pool("worker"),
			pools.Rule{Entries: []int{0}, DelayMin: time.Hour, DelayMax: 2 * time.Hour}, ""},
		{"an entry for the pool", []entry{of("infra", after(time.Hour)), of("gpu", between(2*time.Hour, 3*time.Hour))}, openshifttest.Pool("a", labelled("gpu")),
			pools.Rule{Entries: []int{1}, DelayMin: 2 * time.Hour, DelayMax: 3 * time.Hour}, ""},
		{"an entry without a delay", []entry{ofAll(nil)}, openshifttest.Pool("worker"), pools.Rule{Entries: []int{0}}, ""},
		{"several entries: the first counts", []entry{of("infra", after(9*time.Hour)), of("gpu", after(2*time.Hour)), ofAll(between(time.Hour, 3*time.Hour))},
			openshifttest.Pool("a", labelled("gpu")), pools.Rule{Entries: []int{1, 2}, DelayMin: 2 * time.Hour},
			"Entries 1, 2 of machineConfigPools select the pool; the first of them counts."},
		{"also if it has no delay", []entry{of("gpu", nil), ofAll(after(time.Hour))}, openshifttest.Pool("a", labelled("gpu")), pools.Rule{Entries: []int{0, 1}},
			"Entries 0, 1 of machineConfigPools select the pool; the first of them counts."},
		{"the masters", []entry{ofAll(after(time.Hour))}, openshifttest.Pool("master"), pools.Rule{Entries: []int{0}}, refused},
		{"the masters, without the label", []entry{ofAll(after(time.Hour))}, openshifttest.Pool("master", func(p *mcfgv1.MachineConfigPool) { p.Labels = nil }),
			pools.Rule{Entries: []int{0}}, refused},
		{"another pool that the control plane needs", []entry{of("gpu", after(time.Hour))}, openshifttest.Pool("a", labelled("gpu", requiredLabel)),
			pools.Rule{Entries: []int{0}}, refused},
		{"the masters without a delay", []entry{ofAll(nil)}, openshifttest.Pool("master"), pools.Rule{Entries: []int{0}}, ""},
		{"the masters with a delay of zero", []entry{ofAll(after(0))}, openshifttest.Pool("master"), pools.Rule{Entries: []int{0}}, ""},
		{"the masters, whose first entry has no delay", []entry{of(requiredLabel, nil), ofAll(after(time.Hour))}, openshifttest.Pool("master"),
			pools.Rule{Entries: []int{0, 1}}, "Entries 0, 1 of machineConfigPools select the pool; the first of them counts."},
		{"the masters, twice", []entry{ofAll(after(time.Hour)), ofAll(nil)}, openshifttest.Pool("master"), pools.Rule{Entries: []int{0, 1}},
			"Entries 0, 1 of machineConfigPools select the pool; the first of them counts. " + refused},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := parse(t, v1beta1.UpgradeJobConfig{MachineConfigPools: tc.entries}).For(tc.pool)
			note := strings.ReplaceAll(tc.note, "%", tc.pool.Name)
			if !strings.HasPrefix(got.Note(), note) || (note == "") != (got.Note() == "") {
				t.Errorf("note: got %q, want %q", got.Note(), note)
			}
			if isRefused := strings.Contains(tc.note, refused); isRefused != (got.Refused != "") {
				t.Errorf("refused: got %q, want it %t", got.Refused, isRefused)
			}
			if got.Delayed() != (tc.want.DelayMin > 0) {
				t.Errorf("delayed: got %t", got.Delayed())
			}
			tc.want.Refused = got.Refused
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("rule (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefusedNamesTheFirstPool(t *testing.T) {
	all := []mcfgv1.MachineConfigPool{*openshifttest.Pool("gpu"), *openshifttest.Pool("master"), *openshifttest.Pool("worker")}
	for _, tc := range []struct {
		reason  string
		entries []entry
		want    string
	}{
		{"nothing is delayed", nil, ""},
		{"others are", []entry{of(requiredLabel, nil), ofAll(after(time.Hour))}, ""},
		{"all are", []entry{ofAll(after(time.Hour))}, strings.ReplaceAll(refused, "%", "master")},
	} {
		got := parse(t, v1beta1.UpgradeJobConfig{MachineConfigPools: tc.entries}).Refused(all)
		if !strings.HasPrefix(got, tc.want) || (tc.want == "") != (got == "") {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
	}
}

func TestTimesOfARule(t *testing.T) {
	resumed := func(after time.Duration) func(*v1beta1.UpgradeJob) {
		return func(job *v1beta1.UpgradeJob) {
			job.Status.ResumedRequests = append(job.Status.ResumedRequests, v1beta1.ResumedRequest{
				Request: after.String(), Time: metav1.NewTime(startAfter.Add(after)), Reopened: "Failed(UnpausingPoolsExpired)",
			})
		}
	}
	for _, tc := range []struct {
		reason  string
		delay   *v1beta1.DelayUpgrade
		changes []func(*v1beta1.UpgradeJob)
		from    time.Duration
		until   time.Duration // zero for no bound
	}{
		{"no bound", after(time.Hour), nil, time.Hour, 0},
		{"a bound", between(time.Hour, 3*time.Hour), nil, time.Hour, 3 * time.Hour},
		{"a resumed job has as long again, and waits no longer", between(time.Hour, 3*time.Hour), []func(*v1beta1.UpgradeJob){resumed(20 * time.Hour)}, time.Hour, 23 * time.Hour},
		{"the last resume counts", between(time.Hour, 3*time.Hour), []func(*v1beta1.UpgradeJob){resumed(20 * time.Hour), resumed(40 * time.Hour)}, time.Hour, 43 * time.Hour},
		{"a job that was resumed before its start", between(time.Hour, 3*time.Hour), []func(*v1beta1.UpgradeJob){resumed(-time.Hour)}, time.Hour, 3 * time.Hour},
		{"no bound for a resumed job either", after(time.Hour), []func(*v1beta1.UpgradeJob){resumed(20 * time.Hour)}, time.Hour, 0},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			job := &v1beta1.UpgradeJob{Spec: v1beta1.UpgradeJobSpec{StartAfter: metav1.NewTime(startAfter)}}
			for _, change := range tc.changes {
				change(job)
			}
			rule := parse(t, v1beta1.UpgradeJobConfig{MachineConfigPools: []entry{ofAll(tc.delay)}}).For(openshifttest.Pool("worker"))
			if got := rule.UnpauseAfter(job).Sub(startAfter); got != tc.from {
				t.Errorf("released after %s, want %s", got, tc.from)
			}
			before, bounded := rule.UnpauseBefore(job)
			if bounded != (tc.until > 0) || (bounded && before.Sub(startAfter) != tc.until) {
				t.Errorf("released before %s (%t), want %s", before.Sub(startAfter), bounded, tc.until)
			}
		})
	}
}

func TestPausedOnFailure(t *testing.T) {
	selecting := func(s *metav1.LabelSelector) *v1beta1.PauseMachineConfigPoolsOnFailure {
		return &v1beta1.PauseMachineConfigPoolsOnFailure{Enabled: true, Selector: s}
	}
	for _, tc := range []struct {
		reason string
		pause  *v1beta1.PauseMachineConfigPoolsOnFailure
		want   []string
	}{
		{"not set", nil, nil},
		{"not enabled", &v1beta1.PauseMachineConfigPoolsOnFailure{Selector: &metav1.LabelSelector{}}, nil},
		{"without a selector", selecting(nil), []string{"gpu", "worker"}},
		{"with an empty selector", selecting(&metav1.LabelSelector{}), []string{"gpu", "worker"}},
		{"with a selector", selecting(&metav1.LabelSelector{MatchLabels: map[string]string{"gpu": ""}}), []string{"gpu"}},
		{"with one of pools that the control plane needs", selecting(&metav1.LabelSelector{MatchLabels: map[string]string{requiredLabel: ""}}), nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			rules := parse(t, v1beta1.UpgradeJobConfig{PauseMachineConfigPoolsOnFailure: tc.pause})
			var got []string
			for _, pool := range []*mcfgv1.MachineConfigPool{
				openshifttest.Pool("arbiter", labelled(requiredLabel)), openshifttest.Pool("gpu", labelled("gpu")), openshifttest.Pool("master"), openshifttest.Pool("worker"),
			} {
				if rules.PausedOnFailure(pool) {
					got = append(got, pool.Name)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("pools (-want +got):\n%s", diff)
			}
			if enabled := tc.pause != nil && tc.pause.Enabled; rules.PausesOnFailure() != enabled {
				t.Errorf("pauses: got %t", rules.PausesOnFailure())
			}
		})
	}
}

func TestParseNamesTheEntry(t *testing.T) {
	for _, tc := range []struct {
		reason string
		config v1beta1.UpgradeJobConfig
		want   string
	}{
		{"the second entry", v1beta1.UpgradeJobConfig{MachineConfigPools: []entry{ofAll(nil), {MatchLabels: &v1beta1.PoolSelector{Malformed: map[string]string{"size": "5"}}}}},
			"machineConfigPools[1].matchLabels: the value of label size is not a string but 5; put it in quotes"},
		{"the selector of what is paused on failure", v1beta1.UpgradeJobConfig{PauseMachineConfigPoolsOnFailure: &v1beta1.PauseMachineConfigPoolsOnFailure{
			Enabled: true, Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}},
		}}, `pauseMachineConfigPoolsOnFailure.selector: "Like" is not a valid label selector operator`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if _, err := pools.Parse(tc.config); err == nil || err.Error() != tc.want {
				t.Errorf("got the error %v, want %q", err, tc.want)
			}
		})
	}
	unused := v1beta1.UpgradeJobConfig{PauseMachineConfigPoolsOnFailure: &v1beta1.PauseMachineConfigPoolsOnFailure{
		Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}},
	}}
	parse(t, unused) // what is not enabled stops no job
}

func TestMayPause(t *testing.T) {
	for _, tc := range []struct {
		reason string
		config v1beta1.UpgradeJobConfig
		want   bool
	}{
		{"nothing is set", v1beta1.UpgradeJobConfig{}, false},
		{"entries without a delay", v1beta1.UpgradeJobConfig{MachineConfigPools: []entry{ofAll(nil), ofAll(after(0))}}, false},
		{"an entry with a delay", v1beta1.UpgradeJobConfig{MachineConfigPools: []entry{ofAll(nil), ofAll(after(time.Second))}}, true},
		{"on failure, but not enabled", v1beta1.UpgradeJobConfig{PauseMachineConfigPoolsOnFailure: &v1beta1.PauseMachineConfigPoolsOnFailure{}}, false},
		{"on failure", v1beta1.UpgradeJobConfig{PauseMachineConfigPoolsOnFailure: &v1beta1.PauseMachineConfigPoolsOnFailure{Enabled: true}}, true},
	} {
		if got := pools.MayPause(tc.config); got != tc.want {
			t.Errorf("%s: got %t", tc.reason, got)
		}
	}
}

func TestHolders(t *testing.T) {
	all := []mcfgv1.MachineConfigPool{
		*openshifttest.Pool("a", openshifttest.PoolPausedBy("night/job")),
		*openshifttest.Pool("b", openshifttest.PoolPausedBy("night/other")),
		*openshifttest.Pool("c", openshifttest.PoolPaused()),
		*openshifttest.Pool("d"),
		*openshifttest.Pool("e", openshifttest.PoolPausedBy("night/job"), func(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = false }), // by hand since
		*openshifttest.Pool("f", openshifttest.PoolPausedBy("night/job")),
	}
	var names, holders []string
	for i := range all {
		names = append(names, pools.Names(&all[i]))
		holders = append(holders, pools.Holder(&all[i]))
	}
	if diff := cmp.Diff([]string{"night/job", "night/other", "", "", "night/job", "night/job"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"night/job", "night/other", "", "", "", "night/job"}, holders); diff != "" {
		t.Errorf("holders (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "f"}, pools.HeldBy(all, "night/job")); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
}
