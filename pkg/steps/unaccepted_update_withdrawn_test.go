// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

func lockedBy(holder string) versionOption {
	return func(cv *configv1.ClusterVersion) { cv.Annotations[v1beta1.UpgradeJobAnnotation] = holder }
}

func TestUnacceptedUpdateWithdrawn(t *testing.T) {
	attempted := begun(steps.ConditionUpgradeCommenced, 0)
	const other = "ns/another-job"
	for _, tc := range []struct {
		reason    string
		job       []jobOption
		version   []versionOption
		cached    *configv1.ClusterVersion
		holder    string // of the lock, if it is not the job
		withdrawn bool
	}{
		{
			reason: "asked for by another job, to which this one lost the lock", job: []jobOption{attempted},
			version: []versionOption{openshifttest.Desired(target)}, holder: other,
		},
		{
			reason: "asked for and never taken up", job: []jobOption{attempted}, version: []versionOption{openshifttest.Desired(target)}, withdrawn: true,
		},
		{
			reason: "the same, recorded as commenced", job: []jobOption{commenced}, version: []versionOption{openshifttest.Desired(target)}, withdrawn: true,
		},
		{
			reason: "the cache has not seen the desired update yet", job: []jobOption{attempted}, version: []versionOption{openshifttest.Desired(target)},
			cached: openshifttest.ClusterVersion(), withdrawn: true,
		},
		{
			reason: "taken up: the update goes on", job: []jobOption{commenced},
			version: []versionOption{openshifttest.Desired(target), openshifttest.History(openshifttest.Partial(target), openshifttest.Completed("4.18.1"))},
		},
		{
			reason: "taken up, and the cache has not seen it yet", job: []jobOption{commenced},
			version: []versionOption{openshifttest.Desired(target), openshifttest.History(openshifttest.Partial(target), openshifttest.Completed("4.18.1"))},
			cached:  openshifttest.ClusterVersion(openshifttest.Desired(target)),
		},
		{
			reason: "completed", job: []jobOption{commenced},
			version: []versionOption{openshifttest.Desired(target), openshifttest.History(openshifttest.Completed(target))},
		},
		{
			reason: "somebody else asked for it: the job did not come that far", version: []versionOption{openshifttest.Desired(target)},
		},
		{
			reason: "somebody asked for another one since", job: []jobOption{commenced}, version: []versionOption{openshifttest.Desired("4.18.3")},
		},
		{
			reason: "somebody cleared it since", job: []jobOption{commenced},
		},
		{
			reason: "a job without a version asked for nothing", job: []jobOption{withoutVersion, attempted}, version: []versionOption{openshifttest.Desired(target)},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			job := newJob(tc.job...)
			holder := tc.holder
			if holder == "" {
				holder = job.LockKey()
			}
			w := newWorld(t, job, openshifttest.ClusterVersion(append(tc.version, lockedBy(holder))...))
			w.cached = tc.cached
			want := w.version()
			if tc.withdrawn {
				want.Spec.DesiredUpdate = nil
			}
			u := w.upgrade()
			if wait, err := steps.CleanUp(t.Context(), []steps.Step{steps.UnacceptedUpdateWithdrawn()}, u); wait != 0 || err != nil {
				t.Fatalf("got %s, %v", wait, err)
			}
			got := w.version()
			if changed := got.ResourceVersion != want.ResourceVersion; changed != tc.withdrawn {
				t.Errorf("written: %t, want %t", changed, tc.withdrawn)
			}
			want.ResourceVersion = got.ResourceVersion
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("ClusterVersion/version (-want +got):\n%s", diff)
			}
			if tc.withdrawn && u.Version.ResourceVersion != got.ResourceVersion {
				t.Error("the cleanup after this one would judge an old ClusterVersion")
			}
		})
	}
}

func TestUnacceptedUpdateWithdrawnIsTriedAgain(t *testing.T) {
	for verb, funcs := range map[string]func(error) interceptor.Funcs{
		"get": func(broken error) interceptor.Funcs {
			return interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return broken
			}}
		},
		"patch": func(broken error) interceptor.Funcs {
			return interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return broken
			}}
		},
	} {
		t.Run(verb, func(t *testing.T) {
			broken := errors.New("on fire")
			job := newJob(commenced)
			w := newWorld(t, job, openshifttest.ClusterVersion(openshifttest.Desired(target), lockedBy(job.LockKey())))
			api := w.api
			u := w.upgrade()
			w.api = interceptor.NewClient(api, funcs(broken))
			u.Cluster = w.cluster()
			if _, err := steps.CleanUp(t.Context(), []steps.Step{steps.UnacceptedUpdateWithdrawn()}, u); !errors.Is(err, broken) {
				t.Errorf("got %v", err)
			}
			w.api = api
			u.Cluster = w.cluster()
			if wait, err := steps.CleanUp(t.Context(), []steps.Step{steps.UnacceptedUpdateWithdrawn()}, u); wait != 0 || err != nil {
				t.Errorf("the next time: got %s, %v", wait, err)
			}
			if got := w.version().Spec.DesiredUpdate; got != nil {
				t.Errorf("left behind: %+v", got)
			}
		})
	}
}
