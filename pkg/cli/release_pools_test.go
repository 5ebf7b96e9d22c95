// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// pausedWorld has a pool of each kind.
func pausedWorld(t *testing.T) (w *actWorld, failed, running *v1beta1.UpgradeJob) {
	config := actConfig()
	failed = actJob(config, actNow.Add(-9*24*time.Hour), v1beta1.PhaseFailed)
	ending := actJob(config, actNow.Add(-8*24*time.Hour), v1beta1.PhaseFailed, func(j *v1beta1.UpgradeJob) { j.Finalizers = []string{v1beta1.UpgradeJobFinalizer} })
	kept := actJob(config, actNow.Add(-7*24*time.Hour), v1beta1.PhaseFailed, func(j *v1beta1.UpgradeJob) { j.Finalizers = []string{v1beta1.UpgradeJobFinalizer} },
		outcomeOf(v1beta1.StepHolds(v1beta1.ConditionMachineConfigPoolsPaused, true, v1beta1.ReasonLeftPaused, "Left paused.")))
	running = actJob(config, actNow.Add(-time.Hour), v1beta1.PhasePaused)
	behind := openshifttest.PoolTowards("4.18.2", 1)
	return newActWorld(t, openshifttest.ClusterVersion(), config, failed, ending, kept, running,
		ofPool("master"), ofPool("worker"),
		ofPool("infra", behind, openshifttest.PoolPausedBy(failed.LockKey())),
		ofPool("storage", openshifttest.PoolPausedBy("upgrades/gone")),
		ofPool("kept", openshifttest.PoolPausedBy(kept.LockKey())),
		ofPool("ending", openshifttest.PoolPausedBy(ending.LockKey())),
		ofPool("delayed", openshifttest.PoolPausedBy(running.LockKey())),
		ofPool("by-hand", openshifttest.PoolPaused()),
		ofPool("odd", openshifttest.PoolPausedBy("somebody")),
	), failed, running
}

// paused are the names of the pools that are, in order.
func (w *actWorld) paused() []string {
	w.t.Helper()
	list := &mcfgv1.MachineConfigPoolList{}
	if err := w.c.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		if list.Items[i].Spec.Paused {
			names = append(names, list.Items[i].Name)
		} else if holder, there := list.Items[i].Annotations[v1beta1.UpgradeJobAnnotation]; there {
			w.t.Errorf("pool %s is not paused, and has the annotation %q", list.Items[i].Name, holder)
		}
	}
	slices.Sort(names)
	return names
}

func (w *actWorld) wantPaused(want ...string) {
	w.t.Helper()
	if got := w.paused(); !slices.Equal(got, want) {
		w.t.Errorf("paused are %v, want %v", got, want)
	}
}

func TestReleasePools(t *testing.T) {
	w, _, _ := pausedWorld(t)
	w.expect("release-no-terminal", ExitFailed, "release-pools")
	w.wantPaused("by-hand", "delayed", "ending", "infra", "kept", "odd", "storage")
	w.expect("release", ExitOK, "release-pools", "--yes")
	w.wantPaused("by-hand", "delayed", "ending", "odd")
	w.expect("release-again", ExitOK, "release-pools", "--yes")
}

func TestReleaseNamedPools(t *testing.T) {
	w, _, _ := pausedWorld(t)
	w.expect("release-one", ExitOK, "release-pools", "storage", "--yes")
	w.wantPaused("by-hand", "delayed", "ending", "infra", "kept", "odd")
	for _, name := range []string{"by-hand", "delayed", "ending", "odd", "worker", "nothing"} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.expect("release-refused-"+name, ExitFailed, "release-pools", "infra", name, "--yes")
			w.wantPaused("by-hand", "delayed", "ending", "infra", "kept", "odd")
		})
	}
}

func TestReleaseNoPools(t *testing.T) {
	w := newActWorld(t, openshifttest.ClusterVersion(), ofPool("master"), ofPool("worker"))
	w.expect("release-none", ExitOK, "release-pools")
}

func TestReleaseWhileLocked(t *testing.T) {
	w, _, running := pausedWorld(t)
	cv := openshifttest.ClusterVersion(heldBy(running.LockKey()))
	if err := w.c.Delete(t.Context(), cv); err != nil {
		t.Fatal(err)
	}
	if err := w.c.Create(t.Context(), cv); err != nil {
		t.Fatal(err)
	}
	w.expect("release-locked", ExitFailed, "release-pools", "--yes")
	w.wantPaused("by-hand", "delayed", "ending", "infra", "kept", "odd", "storage")
}

func TestReleaseWhileUpdating(t *testing.T) {
	w := newActWorld(t, openshifttest.ClusterVersion(openshifttest.History(openshifttest.Partial("4.18.2"), openshifttest.Completed("4.18.1"))),
		ofPool("infra", openshifttest.PoolPausedBy("upgrades/gone")))
	w.expect("release-updating", ExitOK, "release-pools", "--yes")
	w.wantPaused()
}

// TestReleasePartly: what can be released is, whatever becomes of the others.
func TestReleasePartly(t *testing.T) {
	w, _, _ := pausedWorld(t)
	w.funcs.Patch = func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
		data, err := patch.Data(object)
		if err != nil || !strings.Contains(string(data), "resourceVersion") {
			t.Errorf("the patch has no lock: %s %v", data, err)
		}
		switch object.GetName() {
		case "infra":
			return conflict("machineconfigpools", "infra")
		case "kept":
			return denied("patch", "machineconfigpools")
		}
		return c.Patch(ctx, object, patch, options...)
	}
	w.expect("release-partly", ExitFailed, "release-pools", "--yes")
	w.wantPaused("by-hand", "delayed", "ending", "infra", "kept", "odd")
}

// TestReleaseLooksAgain: what was true when the user was asked need not be when they have answered.
func TestReleaseLooksAgain(t *testing.T) {
	all := []string{"by-hand", "delayed", "ending", "infra", "kept", "odd", "storage"}
	for _, tc := range []struct {
		reason  string
		happens func(w *actWorld, failed, running *v1beta1.UpgradeJob)
		says    string
		paused  []string
	}{
		{"nothing happens", func(*actWorld, *v1beta1.UpgradeJob, *v1beta1.UpgradeJob) {}, "MachineConfigPool infra is released.", []string{"by-hand", "delayed", "ending", "odd"}},
		{"a job takes the cluster", func(w *actWorld, _, running *v1beta1.UpgradeJob) {
			cv := openshifttest.ClusterVersion()
			w.change(cv, func() { cv.Annotations = map[string]string{v1beta1.UpgradeJobAnnotation: running.LockKey()} })
		}, "no pool is released: ", all},
		{"the job is resumed", func(w *actWorld, failed, _ *v1beta1.UpgradeJob) {
			w.change(failed, func() { failed.Status.Phase = v1beta1.PhaseActive })
		}, "MachineConfigPool infra has changed since you were asked: the job is not over", all},
		{"somebody releases a pool", func(w *actWorld, _, _ *v1beta1.UpgradeJob) {
			pool := ofPool("infra")
			w.change(pool, func() { pool.Spec.Paused, pool.Annotations = false, nil })
		}, "MachineConfigPool infra has changed since you were asked", []string{"by-hand", "delayed", "ending", "kept", "odd", "storage"}},
		{"the control plane is updated", func(w *actWorld, _, _ *v1beta1.UpgradeJob) {
			cv := openshifttest.ClusterVersion()
			w.change(cv, func() {
				cv.Status.History = append([]configv1.UpdateHistory{{State: configv1.PartialUpdate, Version: "4.18.3"}}, cv.Status.History...)
			})
		}, "since you were asked", all},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w, failed, running := pausedWorld(t)
			w.in, w.asked = "y\n", sync.OnceFunc(func() { tc.happens(w, failed, running) })
			if text, _ := w.run("release-pools"); !strings.Contains(text, tc.says) {
				t.Errorf("want %q:\n%s", tc.says, text)
			}
			w.wantPaused(tc.paused...)
		})
	}
}

// TestReleaseBlind: whoever may not see the job does not know that it is over.
func TestReleaseBlind(t *testing.T) {
	w, _, _ := pausedWorld(t)
	w.funcs.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
		if _, ok := object.(*v1beta1.UpgradeJob); ok {
			return denied("get", "upgradejobs")
		}
		return c.Get(ctx, key, object, options...)
	}
	w.expect("release-blind", ExitFailed, "release-pools", "--yes")
	w.wantPaused("by-hand", "delayed", "ending", "infra", "kept", "odd", "storage")
}
