// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

func TestUpgradeCommenced(t *testing.T) {
	full := &configv1.Update{Version: target, Image: openshifttest.Image(target)}
	other := configv1.Update{Version: "4.18.1", Image: "mirror.example.com/release@sha256:0", Force: true, Architecture: configv1.ClusterVersionArchitectureMulti}
	asked := verdict{outcome: steps.Completed, reason: "Completed", says: "ClusterVersion/version is asked to update to 4.18.2"}

	for _, tc := range []struct {
		stepCase
		desired *configv1.Update // afterwards
	}{
		{
			stepCase: stepCase{reason: "version and image are asked for", want: asked},
			desired:  full,
		},
		{
			stepCase: stepCase{reason: "the image is filled in as the cluster offers it", job: []jobOption{byVersion}, want: asked},
			desired:  full,
		},
		{
			stepCase: stepCase{reason: "so is the version", job: []jobOption{byImage}, want: asked},
			desired:  full,
		},
		{
			stepCase: stepCase{reason: "what is not offered is asked for as the job has it", job: []jobOption{byVersion}, version: []versionOption{openshifttest.Available()}, want: asked},
			desired:  &configv1.Update{Version: target},
		},
		{
			stepCase: stepCase{
				reason: "an image alone", job: []jobOption{byImage}, version: []versionOption{openshifttest.Available()},
				want: verdict{outcome: steps.Completed, reason: "Completed", says: "is asked to update to " + openshifttest.Image(target)},
			},
			desired: &configv1.Update{Image: openshifttest.Image(target)},
		},
		{
			stepCase: stepCase{reason: "what an earlier update left is reset: never force", version: []versionOption{openshifttest.DesiredUpdate(other)}, want: asked},
			desired:  full,
		},
		{
			stepCase: stepCase{reason: "at the last moment of the window", after: time.Hour, want: asked},
			desired:  full,
		},
		{
			stepCase: stepCase{
				reason: "the window has passed", after: time.Hour + time.Second,
				want: verdict{outcome: steps.Skipped, reason: v1beta1.ReasonExpired, says: "could not commence by 2026-11-24T23:00:00Z"},
			},
		},
		{
			stepCase: stepCase{reason: "a resume opens it anew", job: []jobOption{resumed(5 * time.Hour)}, after: 5 * time.Hour, want: asked},
			desired:  full,
		},
		{
			stepCase: stepCase{
				reason: "commenced before: once is enough", job: []jobOption{commenced}, after: 2 * time.Hour,
				want: verdict{outcome: steps.Completed, reason: "Completed", says: "Done before."},
			},
		},
		{
			stepCase: stepCase{
				reason: "the process ended before the write was recorded: no second write, also after the window",
				job:    []jobOption{begun(steps.ConditionUpgradeCommenced, 0)}, version: []versionOption{openshifttest.DesiredUpdate(configv1.Update{Version: target, Architecture: "Multi"})},
				after: 2 * time.Hour, want: asked,
			},
			desired: &configv1.Update{Version: target, Architecture: "Multi"},
		},
		{
			stepCase: stepCase{
				reason: "a job without a version", job: []jobOption{withoutVersion},
				want: verdict{outcome: steps.Completed, reason: "Completed", says: "no version"},
			},
		},
		{
			stepCase: stepCase{
				reason: "the cluster runs it already", version: []versionOption{openshifttest.History(openshifttest.Completed(target))},
				want: verdict{outcome: steps.Completed, reason: "Completed", says: "runs 4.18.2 already"},
			},
		},
		{
			stepCase: stepCase{
				reason:  "asked for the version of an abandoned update: it does not run",
				version: []versionOption{openshifttest.History(openshifttest.Completed("4.18.1"), openshifttest.Abandoned(target))}, want: asked,
			},
			desired: full,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := tc.run(t, steps.UpgradeCommenced())
			want := openshifttest.ClusterVersion(tc.version...)
			if !reflect.DeepEqual(want.Spec.DesiredUpdate, tc.desired) { // the write takes the lock by the way
				want.Annotations[v1beta1.UpgradeJobAnnotation] = w.job().LockKey()
			}
			want.Spec.DesiredUpdate = tc.desired
			got := w.version()
			want.ResourceVersion = got.ResourceVersion
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("ClusterVersion/version (-want +got):\n%s", diff)
			}
		})
	}
}

// Whoever judged an old state must not commence an upgrade.
func TestUpgradeCommencedRefusesWhatIsStale(t *testing.T) {
	for reason, change := range map[string]func(*world){
		"somebody has changed ClusterVersion since": func(w *world) {
			w.update(func(cv *configv1.ClusterVersion) { cv.Spec.Channel = "fast-4.18" })
		},
		"somebody else has worked on the job since": func(w *world) {
			job := w.job()
			job.Status.ObservedGeneration++
			if err := w.api.Status().Update(w.t.Context(), job); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t, newJob(), openshifttest.ClusterVersion())
			stale := w.upgrade()
			change(w)
			result := steps.Run(t.Context(), []steps.Step{steps.UpgradeCommenced()}, stale)
			if !apierrors.IsConflict(result.Err) {
				t.Errorf("got %+v, want a conflict", result)
			}
			if got := w.version().Spec.DesiredUpdate; got != nil {
				t.Errorf("%+v was asked for", got)
			}
			if result := w.pass(steps.UpgradeCommenced()); result.Outcome != steps.Completed {
				t.Errorf("the next pass: got %+v", result)
			}
		})
	}
}

// The intent is recorded first: it tells the next process that a desired update in the spec is this job's.
func TestTheIntentIsRecordedBeforeTheDesiredUpdate(t *testing.T) {
	broken := errors.New("on fire")
	w := newWorld(t, newJob(), openshifttest.ClusterVersion())
	api := w.api
	w.api = interceptor.NewClient(api, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			if u := (&world{t: t, api: api, now: start}).upgrade(); u.Job.Status.CommenceTime == nil {
				t.Error("the intent is not recorded")
			}
			return broken
		},
	})
	result := w.pass(steps.UpgradeCommenced())
	if !errors.Is(result.Err, broken) {
		t.Errorf("got %+v", result)
	}
	if w.upgrade().Commenced() {
		t.Error("a write that failed has commenced nothing")
	}
}

// The steps behind it run in the same pass, with a cache that cannot have seen the write.
func TestUpgradeCommencedHandsOnWhatItWrote(t *testing.T) {
	w := newWorld(t, newJob(), openshifttest.ClusterVersion())
	u := w.upgrade()
	if result := steps.Run(t.Context(), []steps.Step{steps.UpgradeCommenced()}, u); result.Outcome != steps.Completed {
		t.Fatalf("got %+v", result)
	}
	if diff := cmp.Diff(w.version(), u.Version); diff != "" {
		t.Errorf("(-written +handed on):\n%s", diff)
	}
}
