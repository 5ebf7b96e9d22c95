// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// poolVerb is a write of a MachineConfigPool.
type poolVerb func(context.Context, *openshift.Cluster, *mcfgv1.MachineConfigPool) (*mcfgv1.MachineConfigPool, error)

func pausePool(ctx context.Context, c *openshift.Cluster, pool *mcfgv1.MachineConfigPool) (*mcfgv1.MachineConfigPool, error) {
	return c.PausePool(ctx, pool, "night/to-4-18-2")
}

func releasePool(ctx context.Context, c *openshift.Cluster, pool *mcfgv1.MachineConfigPool) (*mcfgv1.MachineConfigPool, error) {
	return c.ReleasePool(ctx, pool)
}

func readPool(t *testing.T, api client.Reader) *mcfgv1.MachineConfigPool {
	t.Helper()
	pool := &mcfgv1.MachineConfigPool{}
	if err := api.Get(t.Context(), client.ObjectKey{Name: "worker"}, pool); err != nil {
		t.Fatal(err)
	}
	return pool
}

// withNote adds an annotation of somebody else.
func withNote(pool *mcfgv1.MachineConfigPool) {
	if pool.Annotations == nil {
		pool.Annotations = map[string]string{}
	}
	pool.Annotations["example.com/note"] = "kept"
}

// Each verb changes what it is for, and not one field more.
func TestPoolVerbs(t *testing.T) {
	for _, tc := range []struct {
		reason string
		before []func(*mcfgv1.MachineConfigPool)
		verb   poolVerb
		want   func(*mcfgv1.MachineConfigPool)
	}{
		{
			"a pool is paused, and says by which job", []func(*mcfgv1.MachineConfigPool){withNote}, pausePool,
			func(pool *mcfgv1.MachineConfigPool) {
				pool.Spec.Paused, pool.Annotations[v1beta1.UpgradeJobAnnotation] = true, "night/to-4-18-2"
			},
		},
		{
			"a pool without annotations", nil, pausePool,
			func(pool *mcfgv1.MachineConfigPool) {
				pool.Spec.Paused, pool.Annotations = true, map[string]string{v1beta1.UpgradeJobAnnotation: "night/to-4-18-2"}
			},
		},
		{
			"a pool that an earlier job left paused is taken over", []func(*mcfgv1.MachineConfigPool){openshifttest.PoolPausedBy("night/earlier")}, pausePool,
			func(pool *mcfgv1.MachineConfigPool) {
				pool.Annotations[v1beta1.UpgradeJobAnnotation] = "night/to-4-18-2"
			},
		},
		{
			"a pool is released, and says nothing of the job any more", []func(*mcfgv1.MachineConfigPool){withNote, openshifttest.PoolPausedBy("night/to-4-18-2")}, releasePool,
			func(pool *mcfgv1.MachineConfigPool) {
				pool.Spec.Paused = false
				delete(pool.Annotations, v1beta1.UpgradeJobAnnotation)
			},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			api := newAPI(openshifttest.Pool("worker", tc.before...))
			before := readPool(t, api)

			written, err := tc.verb(t.Context(), openshift.NewCluster(api, newAPI()), before.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			got, want := readPool(t, api), before.DeepCopy()
			tc.want(want)
			want.ResourceVersion = got.ResourceVersion
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("in the API (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(got, written); diff != "" {
				t.Errorf("what was returned is not what was written (-written +returned):\n%s", diff)
			}
		})
	}
}

func TestPoolVerbsRefuseAStaleObject(t *testing.T) {
	for name, run := range map[string]poolVerb{"PausePool": pausePool, "ReleasePool": releasePool} {
		t.Run(name, func(t *testing.T) {
			api := newAPI(openshifttest.Pool("worker"))
			stale := readPool(t, api)
			changed := stale.DeepCopy()
			openshifttest.PoolPausedBy("night/another")(changed)
			if err := api.Update(t.Context(), changed); err != nil {
				t.Fatal(err)
			}
			before := readPool(t, api)

			_, err := run(t.Context(), openshift.NewCluster(api, api), stale)
			if !apierrors.IsConflict(err) {
				t.Errorf("got %v, want a conflict", err)
			}
			if diff := cmp.Diff(before, readPool(t, api)); diff != "" {
				t.Errorf("it was written:\n%s", diff)
			}
		})
	}
}

// Pools may lag behind, LivePools never do.
func TestPoolsAndLivePools(t *testing.T) {
	cache := newAPI(openshifttest.Pool("worker"))
	live := newAPI(openshifttest.Pool("worker", openshifttest.PoolPausedBy("night/another")))
	cluster := openshift.NewCluster(cache, live)

	cached, err := cluster.Pools(t.Context())
	if err != nil || len(cached) != 1 || cached[0].Spec.Paused {
		t.Errorf("Pools: got %+v, %v", cached, err)
	}
	pools, err := cluster.LivePools(t.Context())
	if err != nil || len(pools) != 1 || !pools[0].Spec.Paused {
		t.Errorf("LivePools: got %+v, %v", pools, err)
	}
}
