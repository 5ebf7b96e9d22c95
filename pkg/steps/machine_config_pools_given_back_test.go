// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// inPhase is for jobs that have ended, or are deleted in that phase.
func inPhase(phase v1beta1.Phase) jobOption {
	return func(job *v1beta1.UpgradeJob) { job.Status.Phase = phase }
}

// holding records that the job holds pools paused.
func holding(job *v1beta1.UpgradeJob) {
	meta.SetStatusCondition(&job.Status.Conditions, v1beta1.StepHolds("MachineConfigPoolsPaused", true, v1beta1.ReasonDelaySet, "Paused: infra."))
}

func lockedByMe(cv *configv1.ClusterVersion) {
	cv.Annotations[v1beta1.UpgradeJobAnnotation] = me
}

// giveBack is the cleanup of a job that has ended, or is deleted, and the write of what it records.
func (w *world) giveBack() error {
	w.t.Helper()
	u := w.upgrade()
	u.Over, u.Hooks = nil, nil
	if _, err := steps.CleanUp(w.t.Context(), []steps.Step{steps.UnacceptedUpdateWithdrawn(), steps.MachineConfigPoolsGivenBack()}, u); err != nil {
		return err
	}
	return u.Persist(w.t.Context())
}

func TestMachineConfigPoolsGivenBack(t *testing.T) {
	infra, all := delays("infra", time.Hour, 0), pausesOnFailure(nil)
	failed, succeeded, skipped, deleted := inPhase(v1beta1.PhaseFailed), inPhase(v1beta1.PhaseSucceeded), inPhase(v1beta1.PhaseSkipped), inPhase(v1beta1.PhaseActive)
	accepted := []versionOption{desired, updating, lockedByMe}
	held := []client.Object{pool("infra", openshifttest.PoolPausedBy(me)), pool("worker"), pool("gpu", openshifttest.PoolPaused()), pool("storage", openshifttest.PoolPausedBy("ns/other"))}
	const (
		released = "False Released: No pool is paused by the job any more."
		left     = "True LeftPaused: Left paused: infra. The next job that gets through the control plane releases them."
	)
	free := []string{"gpu paused by hand", "infra free", "storage paused by ns/other", "worker free"}
	kept := []string{"gpu paused by hand", "infra paused by ns/job", "storage paused by ns/other", "worker free"}
	for _, tc := range []struct {
		reason    string
		job       []jobOption
		version   []versionOption
		objects   []client.Object
		condition string // empty if none is set
		pools     []string
	}{
		{"it succeeded", []jobOption{infra, succeeded, holding}, accepted, held, released, free},
		{"it was skipped", []jobOption{infra, skipped, holding}, nil, held, released, free},
		{"it was skipped, and somebody else upgrades", []jobOption{infra, skipped, holding}, accepted, held, released, free},
		{"it failed before the release was accepted", []jobOption{infra, failed, holding}, nil, held, released, free},
		{"it failed, and the release was asked for and not accepted", []jobOption{infra, failed, holding, begun(steps.ConditionUpgradeCommenced, 0)},
			[]versionOption{desired, lockedByMe}, held, released, free},
		{"it failed after the release was accepted", []jobOption{infra, failed, holding}, accepted, held, left, kept},
		{"it failed when the control plane was upgraded", []jobOption{infra, failed, holding}, []versionOption{desired, completed}, held, left, kept},
		{"it failed because somebody moved the cluster on", []jobOption{infra, failed, holding}, []versionOption{openshifttest.Desired("4.18.3"), openshifttest.History(
			openshifttest.Partial("4.18.3"), openshifttest.Completed(target), openshifttest.Completed("4.18.1"))}, held, left, kept},
		{"or before the release was completed", []jobOption{infra, failed, holding}, []versionOption{openshifttest.Desired("4.18.3"), openshifttest.History(
			openshifttest.Partial("4.18.3"), openshifttest.Abandoned(target), openshifttest.Completed("4.18.1"))}, held, left, kept},
		{"it is deleted before the release was accepted", []jobOption{infra, deleted, holding}, nil, held, released, free},
		{"it is deleted after", []jobOption{infra, deleted, holding}, accepted, held, left, kept},
		{"it is deleted while it is paused", []jobOption{infra, inPhase(v1beta1.PhasePaused), holding}, []versionOption{desired, completed}, held, left, kept},
		{"a job without a version succeeded", []jobOption{infra, withoutVersion, succeeded, holding}, nil, held, released, free},
		{"a job without a version failed: what is wrong is not known", []jobOption{infra, withoutVersion, failed, holding}, nil, held, left, kept},
		{"a job without a version is deleted", []jobOption{infra, withoutVersion, deleted, holding}, nil, held, released, free},
		{"nothing was said, and nothing is held", []jobOption{infra, failed}, accepted, []client.Object{pool("infra")}, "", []string{"infra free"}},
		{"nothing is held any more", []jobOption{infra, failed, holding}, accepted, []client.Object{pool("infra")}, released, []string{"infra free"}},
		{"the process ended before it was said", []jobOption{infra, deleted}, accepted, held, left, kept},
		{"somebody has unpaused it: the name goes", []jobOption{infra, succeeded, holding}, accepted, []client.Object{pool("infra", named(me))}, released, []string{"infra free"}},
		{"a job that held pools of others alone", []jobOption{succeeded, holding}, accepted, held[1:], released, append([]string{free[0]}, free[2:]...)},

		{"what is not upgraded is paused on failure", []jobOption{all, failed}, accepted, []client.Object{
			pool("master", openshifttest.PoolTowards(target, 1)), pool("worker", openshifttest.PoolTowards(target, 1)), pool("infra"),
			pool("gpu", openshifttest.PoolAt(target)), pool("storage", openshifttest.PoolTowards(target, 1), openshifttest.PoolPaused()),
		}, "True PausedOnFailure: Paused because the job failed: infra, worker. The next job that gets through the control plane releases them.",
			[]string{"gpu free", "infra paused by ns/job", "master free", "storage paused by hand", "worker paused by ns/job"}},
		{"what is selected", []jobOption{pausesOnFailure(poolLabel("worker")), failed}, accepted, []client.Object{pool("master"), pool("worker"), pool("infra")},
			"True PausedOnFailure: Paused because the job failed: worker. The next job that gets through the control plane releases them.",
			[]string{"infra free", "master free", "worker paused by ns/job"}},
		{"beside what is delayed", []jobOption{infra, all, failed, holding}, accepted, held,
			"True PausedOnFailure: Left paused: infra. Paused because the job failed: worker. The next job that gets through the control plane releases them.",
			[]string{"gpu paused by hand", "infra paused by ns/job", "storage paused by ns/other", "worker paused by ns/job"}},
		{"one that was delayed and rolls is held as what is delayed", []jobOption{infra, all, failed, holding}, accepted,
			[]client.Object{pool("infra", openshifttest.PoolTowards(target, 1))}, left, []string{"infra paused by ns/job"}},
		{"nothing before the release was accepted", []jobOption{all, failed}, nil, []client.Object{pool("worker")}, "", []string{"worker free"}},
		{"nothing of a job that is deleted", []jobOption{all, deleted}, accepted, []client.Object{pool("worker")}, "", []string{"worker free"}},
		{"nothing of a job that succeeded", []jobOption{all, succeeded}, accepted, []client.Object{pool("worker")}, "", []string{"worker free"}},
		{"nothing once the lock is released: somebody may have released the pools too", []jobOption{all, failed}, []versionOption{desired, updating},
			[]client.Object{pool("worker")}, "", []string{"worker free"}},
		{"nothing if all is upgraded", []jobOption{all, failed}, []versionOption{desired, completed, lockedByMe}, []client.Object{pool("worker", openshifttest.PoolAt(target))}, "",
			[]string{"worker free"}},
		{"a selector that is none selects nothing", []jobOption{infra, failed, func(job *v1beta1.UpgradeJob) {
			job.Spec.Config.MachineConfigPools[0].MatchLabels.Malformed = map[string]string{"size": "5"}
			all(job)
		}}, accepted, []client.Object{pool("worker")}, "", []string{"worker free"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, append(append(tc.objects, newJob(tc.job...), openshifttest.ClusterVersion(tc.version...)), renderedConfigs("infra", "worker", "gpu", "storage", "master")...)...)
			for range 2 { // it is repeated when the process ends before all is given back
				if err := w.giveBack(); err != nil {
					t.Fatal(err)
				}
				w.expectPools(tc.pools...)
				if tc.condition != "" {
					w.expectCondition("MachineConfigPoolsPaused", tc.condition)
				} else if c := meta.FindStatusCondition(w.job().Status.Conditions, "MachineConfigPoolsPaused"); c != nil {
					t.Errorf("got the condition %+v, want none", c)
				}
			}
		})
	}
}

// A cache that lags behind would leave a pool paused that nobody knows of.
func TestPoolsAreGivenBackThoughTheCacheDoesNotKnowThem(t *testing.T) {
	w := newWorld(t, newJob(delays("infra", time.Hour, 0), inPhase(v1beta1.PhaseSkipped), holding), openshifttest.ClusterVersion(), pool("infra"))
	before, err := w.cluster().LivePools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.editPool("infra", openshifttest.PoolPausedBy(me))
	w.cachedPools = before
	if err := w.giveBack(); err != nil {
		t.Fatal(err)
	}
	w.expectPools("infra free")
}

// The cache does not know yet that the release is accepted: released the machines would follow it, outside of the window.
func TestPoolsStayPausedThoughTheCacheDoesNotKnowThatTheReleaseIsAccepted(t *testing.T) {
	w := newWorld(t, newJob(delays("infra", time.Hour, 0), commenced, inPhase(v1beta1.PhaseFailed), holding), openshifttest.ClusterVersion(desired, lockedByMe),
		pool("infra", openshifttest.PoolPausedBy(me)))
	w.cached = w.version()
	w.update(updating)
	if err := w.giveBack(); err != nil {
		t.Fatal(err)
	}
	w.expectPools("infra paused by ns/job")
}

// The cluster-version operator accepts the release just when the job takes it back: released the machines would follow it.
func TestPoolsAreNotReleasedWhileTheReleaseIsStillAskedFor(t *testing.T) {
	for _, accepts := range []bool{true, false} {
		w := newWorld(t, newJob(delays("infra", time.Hour, 0), commenced, inPhase(v1beta1.PhaseFailed), holding), openshifttest.ClusterVersion(desired, lockedByMe),
			pool("infra", openshifttest.PoolPausedBy(me)))
		store := w.api
		w.refusing(errConflict, "version")
		u := w.upgrade()
		wait, err := steps.CleanUp(t.Context(), []steps.Step{steps.UnacceptedUpdateWithdrawn(), steps.MachineConfigPoolsGivenBack()}, u)
		if err == nil || wait <= 0 {
			t.Errorf("got %s, %v, want it to be repeated", wait, err)
		}
		w.expectPools("infra paused by ns/job")

		w.api = store
		want := "infra free"
		if accepts {
			w.update(updating)
			want = "infra paused by ns/job"
		}
		if err := w.giveBack(); err != nil {
			t.Fatal(err)
		}
		w.expectPools(want)
		if got := w.version().Spec.DesiredUpdate; (got != nil) != accepts {
			t.Errorf("got the desired update %v", got)
		}
	}
}

// The lock was released, which the cache does not know yet: somebody may have released the pools since.
func TestPoolsAreNotPausedOnFailureWithALockOfYesterday(t *testing.T) {
	w := newWorld(t, append(renderedConfigs("worker"), newJob(pausesOnFailure(nil), commenced, inPhase(v1beta1.PhaseFailed)), openshifttest.ClusterVersion(desired, updating, lockedByMe), pool("worker"))...)
	w.cached = w.version()
	w.update(func(cv *configv1.ClusterVersion) { delete(cv.Annotations, v1beta1.UpgradeJobAnnotation) })
	if err := w.giveBack(); err != nil {
		t.Fatal(err)
	}
	w.expectPools("worker free")
}

func TestWhatIsGivenBackStandsInTheStatusOfPools(t *testing.T) {
	for _, tc := range []struct {
		reason string
		job    []jobOption
		want   map[string]string // of each pool, who has paused it
	}{
		{"released", []jobOption{delays("infra", 2*time.Hour, 0), inPhase(v1beta1.PhaseSkipped)}, map[string]string{"infra": "", "worker": ""}},
		{"paused on failure", []jobOption{delays("infra", 2*time.Hour, 0), pausesOnFailure(nil), inPhase(v1beta1.PhaseFailed)}, map[string]string{"infra": me, "worker": me}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, append(renderedConfigs("infra", "worker"), newJob(tc.job...), openshifttest.ClusterVersion(desired, updating, lockedByMe),
				pool("infra", openshifttest.PoolPausedBy(me)), pool("worker"))...)
			w.pass(steps.MachineConfigPoolsPaused())
			if err := w.giveBack(); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, p := range w.job().Status.Pools {
				got[p.Name] = p.PausedBy
				if p.Paused != (p.PausedBy != "") || (!p.Paused && p.State == v1beta1.PoolStatePaused) {
					t.Errorf("pool %s: paused %t by %q, state %s", p.Name, p.Paused, p.PausedBy, p.State)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("status.pools (-want +got):\n%s", diff)
			}
		})
	}
}

// What cannot be written of one pool keeps no other from being given back, and nothing is said before all is.
func TestPoolsAreGivenBackAfterAnError(t *testing.T) {
	broken := errors.New("on fire")
	for _, tc := range []struct {
		reason, broken string
		job            []jobOption
		between, end   []string
		condition      string
	}{
		{"to be released", "gpu", []jobOption{inPhase(v1beta1.PhaseSucceeded)}, []string{"gpu paused by ns/job", "infra free", "worker free"}, []string{"gpu free", "infra free", "worker free"},
			"False Released: No pool is paused by the job any more."},
		{"to be paused", "worker", []jobOption{inPhase(v1beta1.PhaseFailed), pausesOnFailure(nil)}, []string{"gpu paused by ns/job", "infra paused by ns/job", "worker free"},
			[]string{"gpu paused by ns/job", "infra paused by ns/job", "worker paused by ns/job"},
			"True PausedOnFailure: Left paused: gpu, infra. Paused because the job failed: worker. The next job that gets through the control plane releases them."},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, append(renderedConfigs("gpu", "infra", "worker"), newJob(append(tc.job, delays("infra", time.Hour, 0), delays("gpu", time.Hour, 0), holding)...),
				openshifttest.ClusterVersion(desired, updating, lockedByMe), behind("gpu", openshifttest.PoolPausedBy(me)), behind("infra", openshifttest.PoolPausedBy(me)), behind("worker"))...)
			store := w.api
			w.refusing(broken, tc.broken)
			if err := w.giveBack(); !errors.Is(err, broken) {
				t.Errorf("got the error %v", err)
			}
			w.expectPools(tc.between...)
			w.expectCondition("MachineConfigPoolsPaused", "True DelaySet: Paused: infra.")
			w.api = store
			if err := w.giveBack(); err != nil {
				t.Fatal(err)
			}
			w.expectPools(tc.end...)
			w.expectCondition("MachineConfigPoolsPaused", tc.condition)
		})
	}
	t.Run("the pools cannot be listed", func(t *testing.T) {
		w := newWorld(t, newJob(delays("infra", time.Hour, 0), inPhase(v1beta1.PhaseFailed)), openshifttest.ClusterVersion(), pool("infra", openshifttest.PoolPausedBy(me)))
		w.api = interceptor.NewClient(w.api, failingList(broken, "MachineConfigPoolList"))
		if err := w.giveBack(); !errors.Is(err, broken) {
			t.Errorf("got the error %v", err)
		}
	})
}

// The process ends before or after any of the writes, or its answer is lost: what is left in the end is the same.
func TestGivingBackIsRepeatedAfterACrash(t *testing.T) {
	for reason, options := range map[string][]jobOption{
		"of a job that failed":    {inPhase(v1beta1.PhaseFailed), pausesOnFailure(nil)},
		"of a job that succeeded": {inPhase(v1beta1.PhaseSucceeded)},
	} {
		t.Run(reason, func(t *testing.T) {
			build := func() *world {
				return newWorld(t, append(renderedConfigs("gpu", "infra", "worker", "storage"),
					newJob(append(options, delays("infra", time.Hour, 0), delays("gpu", time.Hour, 0), holding)...), openshifttest.ClusterVersion(desired, updating, lockedByMe),
					behind("gpu", openshifttest.PoolPausedBy(me)), behind("infra", openshifttest.PoolPausedBy(me)), behind("worker"), behind("storage"))...)
			}
			plain := build()
			if err := plain.giveBack(); err != nil {
				t.Fatal(err)
			}
			for write := 1; write <= 3; write++ {
				for _, lands := range []bool{false, true} {
					t.Run(fmt.Sprintf("write %d, lands %t", write, lands), func(t *testing.T) {
						w := build()
						store, n := w.api, 0
						fails := func(do func() error) error {
							if n++; n < write {
								return do()
							}
							if n == write && lands {
								if err := do(); err != nil {
									return err
								}
							}
							return errFault
						}
						w.api = interceptor.NewClient(store, interceptor.Funcs{
							Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
								return fails(func() error { return c.Patch(ctx, o, p, opts...) })
							},
							SubResourcePatch: func(ctx context.Context, c client.Client, name string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
								return fails(func() error { return c.SubResource(name).Patch(ctx, o, p, opts...) })
							},
						})
						if err := w.giveBack(); !errors.Is(err, errFault) {
							t.Fatalf("got the error %v, want the fault", err)
						}
						w.api = store
						if err := w.giveBack(); err != nil {
							t.Fatal(err)
						}
						w.expectPools(plain.poolsNow()...)
						if diff := cmp.Diff(conditionsOf(plain.job()), conditionsOf(w.job())); diff != "" {
							t.Errorf("conditions (-without a crash +with one):\n%s", diff)
						}
					})
				}
			}
		})
	}
}
