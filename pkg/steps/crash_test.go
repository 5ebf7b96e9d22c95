// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	batchv1 "k8s.io/api/batch/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// fault is what befalls a write.
type fault string

const (
	processEnds fault = "the process ends once it has landed"
	answerLost  fault = "it lands, and its answer is lost"
	refused     fault = "it is refused"
)

var errFault = errors.New("the API server is away")

// ended is what a pass panics with when its process ends.
type ended struct{}

// story is an upgrade in a cluster that moves on by itself between two passes.
type story struct {
	// sickUntil is the pass before which an operator is degraded.
	sickUntil int
	// refuses makes the cluster-version operator refuse the release until the job was resumed.
	refuses bool
	// stuck keeps the cluster-version operator from completing the release until the job was resumed.
	stuck bool
	// resumes makes somebody resume the job when it has failed.
	resumes bool
	// job is what else the job is told to do.
	job []jobOption
	// wantPools is how pools are held in the end.
	wantPools []string

	wantPhase v1beta1.Phase
	// wantDesired is what is left in spec.desiredUpdate.
	wantDesired *configv1.Update
	// wantWrites is how often desiredUpdate is written.
	wantWrites int
}

// process is an operator that keeps nothing from pass to pass but what it wrote. Its writes are counted, and the one
// with the number of the fault meets it.
type process struct {
	*world
	raw     client.WithWatch // the API without faults
	story   story
	fault   fault
	faultAt int

	writes        int
	desiredWrites int
}

func newProcess(t *testing.T, s story, f fault, faultAt int) *process {
	impatient := func(job *v1beta1.UpgradeJob) { // or most passes would only wait
		job.Spec.Config.ReleaseAcceptTimeout = &v1beta1.Duration{Duration: 3 * time.Minute}
		job.Spec.Config.PreUpgradeHealthChecks.Timeout = &v1beta1.Duration{Duration: 5 * time.Minute}
	}
	w := newWorld(t, append(renderedConfigs(poolsOfStories...), newJob(append(s.job, impatient)...), openshifttest.ClusterVersion(),
		openshifttest.ClusterOperator("dns"), hookOn("approve", aborts, v1beta1.HookEventMachineConfigPoolUnpause))...)
	for _, name := range poolsOfStories {
		w.put(pool(name))
	}
	p := &process{world: w, raw: w.api, story: s, fault: f, faultAt: faultAt}
	w.api = interceptor.NewClient(w.api, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			return p.write(func() error {
				err := c.Patch(ctx, o, patch, options...)
				if err == nil && asksForAnUpdate(t, o, patch) {
					p.desiredWrites++
				}
				return err
			})
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if _, ofAHook := o.(*batchv1.Job); !ofAHook { // the cluster's own
				return c.Create(ctx, o, options...)
			}
			return p.write(func() error { return c.Create(ctx, o, options...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return p.write(func() error { return c.SubResource(name).Patch(ctx, o, patch, options...) })
		},
	})
	return p
}

func (p *process) write(do func() error) error {
	p.writes++
	if p.writes != p.faultAt {
		return do()
	}
	if p.fault == refused {
		return errFault
	}
	if err := do(); err != nil {
		return err
	}
	if p.fault == processEnds {
		panic(ended{})
	}
	return errFault
}

func asksForAnUpdate(t *testing.T, o client.Object, patch client.Patch) bool {
	data, err := patch.Data(o)
	if err != nil {
		t.Fatal(err)
	}
	var written struct {
		Spec struct {
			DesiredUpdate *configv1.Update `json:"desiredUpdate"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(data, &written); err != nil {
		t.Fatal(err)
	}
	return written.Spec.DesiredUpdate != nil
}

// pass does one pass, as the controller does, and tells whether the job has ended and is cleaned up.
func (p *process) pass() (over bool) {
	defer func() {
		if r := recover(); r != nil && r != (ended{}) {
			panic(r)
		}
	}()
	u := p.upgrade()
	if lifecycle.ResumeRequested(u.Job) {
		lifecycle.Resume(u.Job, p.now)
	} else if u.Job.Status.Phase.Finished() {
		return p.cleanUp(u)
	}
	before := p.job()
	if err := u.Hooks.Refresh(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	lifecycle.SetStarted(u.Job, openshift.RunningVersion(u.Version), p.now)
	checks := []healthcheck.Check{healthcheck.ClusterVersionHealthy(), healthcheck.DegradedOperators()}
	result := steps.Run(p.t.Context(), []steps.Step{
		steps.MachineConfigPoolsPaused(),
		steps.UntilCommenced(steps.ClusterHealthyBeforeUpgrade(checks...)),
		steps.UntilCommenced(steps.UpdateAvailable()),
		steps.UpgradeCommenced(),
		steps.ControlPlaneUpgraded(),
		steps.MachineConfigPoolsUpgraded(),
		steps.ClusterHealthyAfterUpgrade(checks...),
		steps.DelayedPoolsUpgraded(),
	}, u)
	if outcome, is := lifecycle.OutcomeOf(u.Job, result); is {
		lifecycle.Finish(u.Job, outcome, p.now)
	}
	if !apiequality.Semantic.DeepEqual(before.Status, u.Job.Status) {
		err := u.Persist(p.t.Context())
		if err != nil && !errors.Is(err, errFault) && !apierrors.IsConflict(err) { // after a lost answer the job is another one
			p.t.Fatal(err)
		}
	}
	return false
}

// clusterMoves lets the cluster do the next thing by itself.
func (p *process) clusterMoves(pass int) {
	switch sick := openshifttest.OperatorCondition(configv1.OperatorDegraded, configv1.ConditionTrue, "Sick", "It is sick."); pass {
	case 0:
		if p.story.sickUntil > 0 {
			p.put(openshifttest.ClusterOperator("dns", sick))
		}
	case p.story.sickUntil:
		p.put(openshifttest.ClusterOperator("dns"))
	}

	p.finishHooks()
	release, cv := openshift.Release{Version: target}, p.version()
	switch {
	case !openshift.Desires(cv, release):
	case !openshift.Accepted(cv, release):
		if p.story.refuses && p.job().LastResume() == nil {
			p.update(openshifttest.VersionCondition("ReleaseAccepted", configv1.ConditionFalse, "VerifyPayloadVersion", "No."))
			return
		}
		p.update(updating, openshifttest.VersionCondition("ReleaseAccepted", configv1.ConditionTrue, "PayloadLoaded", ""))
	case !openshift.Runs(cv, release):
		if p.story.stuck && p.job().LastResume() == nil {
			return
		}
		p.editPool("master", openshifttest.PoolAt(target))
		p.update(completed)
	default:
		for _, name := range poolsOfStories[1:] {
			p.roll(name)
		}
	}
}

// run does passes until the job has ended and nobody resumes it any more.
func (p *process) run() {
	p.t.Helper()
	const enough = 50
	for i := range enough {
		p.clusterMoves(i)
		if p.pass() {
			job := p.job()
			if !p.story.resumes || job.Spec.ResumeRequest != "" {
				return
			}
			job.Spec.ResumeRequest = "the mirror is repaired"
			if err := p.raw.Update(p.t.Context(), job); err != nil {
				p.t.Fatal(err)
			}
		}
		p.now = p.now.Add(time.Minute)
	}
	p.t.Fatalf("the job has not ended after %d passes: %s %v", enough, p.job().Status.Phase, conditionsOf(p.job()))
}

// end is how the world looks in the end; times aside, which a fault may put off.
func (p *process) end() map[string]any {
	job, cv := p.job(), p.version()
	var done []string
	for _, s := range job.Status.Steps {
		done = append(done, fmt.Sprintf("%s done=%t attempts=%d", s.Condition, s.CompletionTime != nil, s.Attempts))
	}
	return map[string]any{
		"phase": job.Status.Phase, "conditions": conditionsOf(job), "steps": done, "blockers": len(job.Status.Blockers),
		"spec": cv.Spec, "history": cv.Status.History, "annotations": cv.Annotations,
		"pools": p.poolsNow(), "hooks": p.runs(),
	}
}

// Whatever befalls any of the writes, the world ends the same, and the cluster is asked for the update once.
func TestAnUpgradeSurvivesAFaultAtAnyWrite(t *testing.T) {
	full := &configv1.Update{Version: target, Image: openshifttest.Image(target)}
	for name, s := range map[string]story{
		"an upgrade that waits for health first": {sickUntil: 3, wantPhase: v1beta1.PhaseSucceeded, wantDesired: full, wantWrites: 1},
		"a release that is refused":              {refuses: true, wantPhase: v1beta1.PhaseFailed, wantWrites: 1},
		"a release that is refused and resumed":  {refuses: true, resumes: true, wantPhase: v1beta1.PhaseSucceeded, wantDesired: full, wantWrites: 2},
		"a cluster that stays sick":              {sickUntil: 1000, wantPhase: v1beta1.PhaseSkipped},

		"two delayed pools": {job: twoDelays, wantPhase: v1beta1.PhaseSucceeded, wantDesired: full, wantWrites: 1},
		"two delayed pools of a cluster that stays sick": {
			job: twoDelays, sickUntil: 1000, wantPhase: v1beta1.PhaseSkipped,
		},
		"two delayed pools of a release that is refused": {
			job: append(twoDelays, pausesOnFailure(nil)), refuses: true, wantPhase: v1beta1.PhaseFailed, wantWrites: 1,
		},
		"two delayed pools of a control plane that hangs until the job is resumed": {
			job: append(twoDelays, pausesOnFailure(nil)), stuck: true, resumes: true, wantPhase: v1beta1.PhaseSucceeded, wantDesired: full, wantWrites: 1,
		},
	} {
		if s.wantPools == nil {
			s.wantPools = []string{"gpu free", "infra free", "master free", "worker free"}
		}
		t.Run(name, func(t *testing.T) {
			plain := newProcess(t, s, "", 0)
			plain.run()
			want := plain.end()
			if want["phase"] != s.wantPhase || plain.desiredWrites != s.wantWrites {
				t.Fatalf("without a fault: got %s after %d writes of desiredUpdate, want %s after %d: %v",
					want["phase"], plain.desiredWrites, s.wantPhase, s.wantWrites, want["conditions"])
			}
			if diff := cmp.Diff(s.wantDesired, plain.version().Spec.DesiredUpdate); diff != "" {
				t.Fatalf("without a fault: desiredUpdate (-want +got):\n%s", diff)
			}
			plain.expectPools(s.wantPools...)

			faults := []fault{processEnds, refused, answerLost}
			if len(s.job) > 0 {
				faults = faults[:2] // these stories are long, and the others have the last one
			}
			for _, f := range faults {
				for at := 1; at <= plain.writes; at++ {
					t.Run(fmt.Sprintf("write %d/%s", at, f), func(t *testing.T) {
						p := newProcess(t, s, f, at)
						p.run()
						if diff := cmp.Diff(want, p.end()); diff != "" {
							t.Errorf("the world ends otherwise than without a fault (-without +with):\n%s", diff)
						}
						if p.desiredWrites != s.wantWrites {
							t.Errorf("desiredUpdate was written %d times, want %d", p.desiredWrites, s.wantWrites)
						}
					})
				}
			}
		})
	}
}
