// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// keeping is a job that has failed and left pools paused.
func keeping(name string, overrides ...func(*v1beta1.UpgradeJob)) *v1beta1.UpgradeJob {
	return newJob(name, append([]func(*v1beta1.UpgradeJob){withPhase(v1beta1.PhaseFailed), byHand, func(job *v1beta1.UpgradeJob) {
		meta.SetStatusCondition(&job.Status.Conditions, v1beta1.StepHolds(poolsPaused, true, v1beta1.ReasonLeftPaused, "Left paused: infra."))
	}}, overrides...)...)
}

func inNamespace(name string) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) { job.Namespace = name }
}

// suspendedConfig returns a config that does nothing but look.
func suspendedConfig(name, inNamespace string) *v1beta1.UpgradeConfig {
	return newConfig(func(c *v1beta1.UpgradeConfig) {
		c.Name, c.Namespace, c.UID, c.Spec.Schedule.Suspend = name, inNamespace, types.UID(name+"-uid"), true
	})
}

// leftBy lists what a config tells of pools: pool and job.
func leftBy(w *world, config *v1beta1.UpgradeConfig) []string {
	var all []string
	for _, p := range get(w, config).Status.PausedMachineConfigPools {
		all = append(all, p.Name+" by "+p.Job)
	}
	return all
}

func TestConfigTellsOfPoolsThatWereLeftPaused(t *testing.T) {
	held := func(pool, job string) client.Object { return newPool(pool, heldFor(job)) }
	for _, tc := range []struct {
		reason  string
		objects []client.Object
		all     bool // all namespaces are watched
		want    []string
	}{
		{"none is paused", []client.Object{newPool("infra"), keeping("weekly")}, false, nil},
		{"one is, by a job that has failed", []client.Object{held("infra", "upgrades/weekly"), keeping("weekly")}, false, []string{"infra by weekly"}},
		{"two are, by two jobs", []client.Object{held("infra", "upgrades/weekly"), held("gpu", "upgrades/daily"), keeping("weekly"), keeping("daily")}, false,
			[]string{"gpu by daily", "infra by weekly"}},
		{"by a job that is gone", []client.Object{held("infra", "upgrades/weekly")}, false, []string{"infra by weekly"}},
		{"by a job that runs", []client.Object{held("infra", "upgrades/weekly"), newJob("weekly", withPhase(v1beta1.PhasePaused))}, false, nil},
		{"by a job that had kept it, and was resumed", []client.Object{held("infra", "upgrades/weekly"), keeping("weekly", withPhase(v1beta1.PhaseActive))}, false, nil},
		{"by a job that has not given back yet what it does not keep", []client.Object{held("infra", "upgrades/weekly"), newJob("weekly", withPhase(v1beta1.PhaseSucceeded))}, false, nil},
		{"by a job that keeps it, and waits for its last hooks", []client.Object{held("infra", "upgrades/weekly"), keeping("weekly", func(job *v1beta1.UpgradeJob) {
			job.Finalizers = []string{v1beta1.UpgradeJobFinalizer}
		})}, false, []string{"infra by weekly"}},
		{"because the job failed", []client.Object{held("infra", "upgrades/weekly"), keeping("weekly", func(job *v1beta1.UpgradeJob) {
			job.Finalizers, job.Status.Conditions[0].Reason = []string{v1beta1.UpgradeJobFinalizer}, v1beta1.ReasonPausedOnFailure
		})}, false, []string{"infra by weekly"}},
		{"by a job that has let go without a word", []client.Object{held("infra", "upgrades/weekly"), newJob("weekly", byHand, withPhase(v1beta1.PhaseFailed))}, false, []string{"infra by weekly"}},
		{"by hand", []client.Object{newPool("infra", openshifttest.PoolPaused())}, false, nil},
		{"by nobody any more", []client.Object{newPool("infra", heldFor("upgrades/weekly"), freed(true)), keeping("weekly")}, false, nil},
		{"by words that no job wrote", []client.Object{held("infra", "upgrades"), held("gpu", "somebody"), held("storage", "/")}, false, nil},
		{"by a job of a namespace that is not watched", []client.Object{held("infra", "elsewhere/weekly"), keeping("weekly", inNamespace("elsewhere"))}, false, nil},
		{"by a job of another namespace that is watched", []client.Object{held("infra", "elsewhere/weekly"), keeping("weekly", inNamespace("elsewhere"))}, true,
			[]string{"infra by elsewhere/weekly"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			configs := []*v1beta1.UpgradeConfig{suspendedConfig("a", namespace), suspendedConfig("b", namespace)}
			w := newWorld(t, append(tc.objects, newClusterVersion(), configs[0], configs[1])...).register(plain())
			r := w.configs()
			r.Namespace = namespace
			if tc.all {
				r.Namespace = ""
			}
			for _, config := range configs { // each of them tells: its jobs may release them
				w.events()
				w.reconcile(r, config)
				if diff := cmp.Diff(tc.want, leftBy(w, config)); diff != "" {
					t.Errorf("left (-want +got):\n%s", diff)
				}
				told := w.events()
				told = slices.DeleteFunc(told, func(e string) bool { return strings.Contains(e, "Suspended") })
				c := meta.FindStatusCondition(get(w, config).Status.Conditions, poolsPaused)
				if len(tc.want) == 0 {
					if c != nil || len(told) > 0 {
						t.Errorf("got the condition %+v, the Events %q, want none", c, told)
					}
					continue
				}
				words := strings.ReplaceAll(strings.Join(tc.want, ", "), " by ", " by UpgradeJob ")
				expectCondition(t, get(w, config).Status.Conditions, poolsPaused, metav1.ConditionTrue, v1beta1.ReasonLeftPaused, "Pools were left paused: "+words+". Their machines")
				if len(told) != 1 || !strings.HasPrefix(told[0], "Warning LeftPaused Pools were left paused: "+words) {
					t.Errorf("got the Events %q", told)
				}
			}
		})
	}
}

// Each turn is told once, and since when a pool stands is kept.
func TestConfigTellsOfEachPoolOnce(t *testing.T) {
	config := suspendedConfig("a", namespace)
	w := newWorld(t, newClusterVersion(), config, newPool("infra"), newPool("gpu"), keeping("weekly")).register(plain())
	r := w.configs()
	r.Namespace = namespace
	since := func() []string {
		var all []string
		for _, p := range get(w, config).Status.PausedMachineConfigPools {
			all = append(all, fmt.Sprintf("%s %s", p.Name, p.Since.Sub(startAfter)))
		}
		return all
	}
	w.reconcile(r, config)
	w.events()
	for i, tc := range []struct {
		reason  string
		happens func()
		since   []string
		told    []string
	}{
		{"one is left", func() { change(w, newPool("infra"), heldFor("upgrades/weekly")) }, []string{"infra 0s"}, []string{"Warning LeftPaused Pools were left paused: infra by UpgradeJob weekly."}},
		{"time passes", func() {}, []string{"infra 0s"}, nil},
		{"another process looks", func() { r = w.configs(); r.Namespace = namespace }, []string{"infra 0s"}, nil},
		{"another one is left", func() { change(w, newPool("gpu"), heldFor("upgrades/weekly")) }, []string{"gpu 3h0m0s", "infra 0s"},
			[]string{"Warning LeftPaused Pools were left paused: gpu by UpgradeJob weekly, infra by UpgradeJob weekly."}},
		{"one is released", func() { change(w, newPool("infra"), freed(false)) }, []string{"gpu 3h0m0s"}, []string{"Warning LeftPaused Pools were left paused: gpu by UpgradeJob weekly."}},
		{"the other one too", func() { change(w, newPool("gpu"), freed(false)) }, nil, []string{"Normal Released No pool is left paused any more."}},
		{"and nothing more", func() {}, nil, nil},
		{"it is left again", func() { change(w, newPool("infra"), heldFor("upgrades/weekly")) }, []string{"infra 7h0m0s"}, []string{"Warning LeftPaused "}},
	} {
		w.clock.SetTime(startAfter.Add(time.Duration(i) * time.Hour))
		tc.happens()
		w.reconcile(r, config)
		if diff := cmp.Diff(tc.since, since()); diff != "" {
			t.Errorf("%s: since (-want +got):\n%s", tc.reason, diff)
		}
		w.expectEvents(tc.reason, tc.told...)
	}
}

func TestConfigTellsOfPoolsWhatIsWritten(t *testing.T) {
	for _, err := range []error{errBroken, errConflict} {
		config := suspendedConfig("a", namespace)
		w := newWorld(t, newClusterVersion(), config, newPool("infra", heldFor("upgrades/weekly"))).register(plain())
		w.api.fault = failing("patch UpgradeConfig/status", 1, err)
		r := w.configs()
		w.reconcile(r, config)
		w.expectEvents("while the status cannot be written")
		w.reconcile(r, config)
		w.expectEvents("once it is written", "Normal Suspended ", "Warning LeftPaused ")
	}
}

// Whether a job is over is not known for a moment: nothing is taken back, and the schedule goes on.
func TestConfigThatCannotReadAJobTellsWhatItKnew(t *testing.T) {
	config := newConfig()
	w := newWorld(t, newClusterVersion(), config, newPool("infra", heldFor("upgrades/old")), keeping("old")).register(plain())
	w.clock.SetTime(startAfter.Add(-time.Minute))
	r := w.configs()
	w.reconcile(r, config)
	w.clock.SetTime(startAfter)
	w.api.fault = failing("get UpgradeJob", 1, errBroken)
	if result := w.reconcile(r, config); result.RequeueAfter <= 0 || result.RequeueAfter > maxBackoff {
		t.Errorf("tries again after %s", result.RequeueAfter)
	}
	if diff := cmp.Diff([]string{"infra by old"}, leftBy(w, config)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	expectCondition(t, get(w, config).Status.Conditions, poolsPaused, metav1.ConditionTrue, v1beta1.ReasonLeftPaused)
	if jobs := jobsOf(w); len(jobs) != 2 {
		t.Errorf("there are %d jobs, want one for the start as well", len(jobs))
	}
}

func TestConfigTellsOfSoManyPools(t *testing.T) {
	config := suspendedConfig("a", namespace)
	w := newWorld(t, newClusterVersion(), config).register(plain())
	for i := range 70 {
		w.add(newPool(fmt.Sprintf("pool-%02d", i), heldFor("upgrades/weekly")))
	}
	w.reconcile(w.configs(), config)
	got := get(w, config)
	c := meta.FindStatusCondition(got.Status.Conditions, poolsPaused)
	if len(got.Status.PausedMachineConfigPools) != 64 || c == nil || len(c.Message) > v1beta1.MaxMessageLength || !strings.HasSuffix(c.Message, "...") {
		t.Errorf("got %d pools and %+v, want 64 and a message that is cut", len(got.Status.PausedMachineConfigPools), c)
	}
}

func TestConfigWhosePoolsCannotBeUsed(t *testing.T) {
	malformed := func(config *v1beta1.UpgradeJobConfig) {
		config.MachineConfigPools = []v1beta1.MachineConfigPoolConfig{{MatchLabels: &v1beta1.PoolSelector{Malformed: map[string]string{"size": "5"}}}}
	}
	onFailure := func(config *v1beta1.UpgradeJobConfig) {
		pausing(config)
		config.PauseMachineConfigPoolsOnFailure.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
	}
	for _, tc := range []struct {
		reason  string
		config  func(*v1beta1.UpgradeJobConfig)
		because string
		words   string
	}{
		{"a selector that is none", malformed, v1beta1.ReasonInvalidSelector, "machineConfigPools[0].matchLabels: the value of label size is not a string but 5; put it in quotes"},
		{"one of what is paused on failure", onFailure, v1beta1.ReasonInvalidSelector, "pauseMachineConfigPoolsOnFailure.selector: "},
		{"the masters cannot be delayed", delayingPool("master", time.Hour), v1beta1.ReasonPoolCannotBeDelayed, "machineConfigPools[0] delays pool master, which cannot be: OpenShift needs it"},
		{"a pool that can be", delayingPool("infra", time.Hour), v1beta1.ReasonValid, ""},
		{"a pool that there is not", delayingPool("gpu", time.Hour), v1beta1.ReasonValid, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			config := newConfig(func(c *v1beta1.UpgradeConfig) { tc.config(&c.Spec.JobTemplate.Spec.Config) })
			w := newWorld(t, newClusterVersion(), config, newPool("master"), newPool("infra")).register(delaying())
			r := w.configs()
			w.reconcile(r, config)
			if tc.because == v1beta1.ReasonValid {
				expectCondition(t, get(w, config).Status.Conditions, v1beta1.ConditionReady, metav1.ConditionTrue, tc.because)
				return
			}
			expectCondition(t, get(w, config).Status.Conditions, v1beta1.ConditionReady, metav1.ConditionFalse, tc.because, tc.words)
			expectCondition(t, get(w, config).Status.Conditions, v1beta1.ConditionScheduling, metav1.ConditionFalse, v1beta1.ReasonInvalidConfig, tc.words)
			if jobs := jobsOf(w); len(jobs) > 0 {
				t.Errorf("a job was created: %s", jobs[0].Name)
			}
		})
	}
}

// A pool gets labels, and loses them: what is said of the config follows, without a change of the config.
func TestConfigIsReadyWhenThePoolsAre(t *testing.T) {
	config := newConfig(func(c *v1beta1.UpgradeConfig) { delayingPool("night", time.Hour)(&c.Spec.JobTemplate.Spec.Config) })
	w := newWorld(t, newClusterVersion(), config, newPool("master"), newPool("infra")).register(delaying())
	w.clock.SetTime(startAfter.Add(-time.Hour))
	r := w.configs()
	for _, tc := range []struct {
		reason string
		label  func(*mcfgv1.MachineConfigPool)
		ready  string
	}{
		{"it selects nothing", nil, v1beta1.ReasonValid},
		{"somebody labels the masters", func(p *mcfgv1.MachineConfigPool) { p.Labels = mcpLabel("night") }, v1beta1.ReasonPoolCannotBeDelayed},
		{"and takes the label off", func(p *mcfgv1.MachineConfigPool) { p.Labels = nil }, v1beta1.ReasonValid},
	} {
		if tc.label != nil {
			before := get(w, newPool("master"))
			after := change(w, newPool("master"), tc.label)
			if !poolSettingsChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
				t.Errorf("%s: the config is not told", tc.reason)
			}
		}
		w.reconcile(r, config)
		status := metav1.ConditionFalse
		if tc.ready == v1beta1.ReasonValid {
			status = metav1.ConditionTrue
		}
		expectCondition(t, get(w, config).Status.Conditions, v1beta1.ConditionReady, status, tc.ready)
	}
}

func TestPoolsWakeConfigs(t *testing.T) {
	update := func(p interface{ Update(event.UpdateEvent) bool }) func(a, b client.Object) bool {
		return func(a, b client.Object) bool { return p.Update(event.UpdateEvent{ObjectOld: a, ObjectNew: b}) }
	}
	expectTurns(t, newPool("infra"), update(poolSettingsChanged), []turn[*mcfgv1.MachineConfigPool]{
		{"a job pauses it", heldFor("upgrades/weekly"), true},
		{"its labels", func(p *mcfgv1.MachineConfigPool) { p.Labels["a"] = "b" }, true},
		{"somebody pauses it", openshifttest.PoolPaused(), false},
		{"its progress", openshifttest.PoolTowards("4.18.2", 1), false},
		{"another annotation", func(p *mcfgv1.MachineConfigPool) { p.Annotations = map[string]string{"a": "b"} }, false},
	})
	expectTurns(t, newJob("weekly"), update(poolsLeft), []turn[*v1beta1.UpgradeJob]{
		{"it has failed and given back what it does not keep", func(job *v1beta1.UpgradeJob) { byHand(job); withPhase(v1beta1.PhaseFailed)(job) }, true},
		{"it tells what it keeps", func(job *v1beta1.UpgradeJob) {
			finalizers := job.Finalizers
			*job = *keeping("weekly")
			job.Finalizers = finalizers
		}, true},
		{"it has failed, and has not given anything back", withPhase(v1beta1.PhaseFailed), false},
		{"it is paused", withPhase(v1beta1.PhasePaused), false},
	})
	for _, p := range []interface {
		Create(event.CreateEvent) bool
		Delete(event.DeleteEvent) bool
	}{poolSettingsChanged, poolsLeft} {
		if !p.Delete(event.DeleteEvent{Object: newPool("infra")}) {
			t.Error("what is gone is not told")
		}
	}
	if !poolSettingsChanged.Create(event.CreateEvent{Object: newPool("infra")}) || poolsLeft.Create(event.CreateEvent{Object: newJob("weekly")}) {
		t.Error("a new pool is to be told, a new job is not")
	}
}

// delaying is a variant that pauses pools.
func delaying() variant {
	v := plain()
	v.steps = append(v.steps, steps.MachineConfigPoolsPaused())
	return v
}
