// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

var now = time.Date(2026, time.November, 24, 22, 0, 0, 0, time.UTC)

func newAPI(objects ...client.Object) client.WithWatch {
	inWork := func(o client.Object) []string {
		if _, ok := openshift.NodeInWork(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: o.GetAnnotations()}}); ok {
			return []string{"true"}
		}
		return nil
	}
	return openshifttest.NewClientBuilder(openshift.NodeField, inWork).WithObjects(objects...).Build()
}

// reversed lists in the reverse order of names: a cache promises none.
func reversed(api client.WithWatch) client.Client {
	return interceptor.NewClient(api, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := c.List(ctx, list, opts...); err != nil {
				return err
			}
			all, err := meta.ExtractList(list)
			if err != nil {
				return err
			}
			slices.Reverse(all)
			return meta.SetList(list, all)
		},
	})
}

func read(t *testing.T, api client.Reader) *configv1.ClusterVersion {
	t.Helper()
	cv := &configv1.ClusterVersion{}
	if err := api.Get(t.Context(), client.ObjectKey{Name: "version"}, cv); err != nil {
		t.Fatal(err)
	}
	return cv
}

// verb is a write of ClusterVersion/version.
type verb func(context.Context, *openshift.Cluster, *configv1.ClusterVersion) (*configv1.ClusterVersion, error)

func setDesiredUpdate(release openshift.Release) verb {
	return func(ctx context.Context, c *openshift.Cluster, cv *configv1.ClusterVersion) (*configv1.ClusterVersion, error) {
		return c.SetDesiredUpdate(ctx, cv, release, "night/to-4-18-2")
	}
}

// askedFor is a desired update that was set on behalf of the holder of the lock.
func askedFor(u configv1.Update) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) {
		openshifttest.DesiredUpdate(u)(cv)
		cv.Annotations[v1beta1.UpgradeJobAnnotation] = "night/to-4-18-2"
	}
}

func clearDesiredUpdate(ctx context.Context, c *openshift.Cluster, cv *configv1.ClusterVersion) (*configv1.ClusterVersion, error) {
	return c.ClearDesiredUpdate(ctx, cv)
}

func setLock(holder string) verb {
	return func(ctx context.Context, c *openshift.Cluster, cv *configv1.ClusterVersion) (*configv1.ClusterVersion, error) {
		return c.SetLock(ctx, cv, holder)
	}
}

// Each verb changes what it is for, and not one field more.
func TestVerbs(t *testing.T) {
	for _, tc := range []struct {
		reason string
		before func(*configv1.ClusterVersion)
		verb   verb
		want   func(*configv1.ClusterVersion)
	}{
		{
			reason: "version and image",
			verb:   setDesiredUpdate(openshift.Release{Version: "4.18.2", Image: "a"}),
			want:   askedFor(configv1.Update{Version: "4.18.2", Image: "a"}),
		},
		{
			reason: "force, architecture and image of an earlier update are reset",
			before: openshifttest.DesiredUpdate(configv1.Update{Version: "4.18.1", Image: "old", Force: true, Architecture: "Multi"}),
			verb:   setDesiredUpdate(openshift.Release{Version: "4.18.2"}),
			want:   askedFor(configv1.Update{Version: "4.18.2"}),
		},
		{
			reason: "the version of an earlier update is reset when an image alone is asked for",
			before: openshifttest.DesiredUpdate(configv1.Update{Version: "4.18.1"}),
			verb:   setDesiredUpdate(openshift.Release{Image: "a"}),
			want:   askedFor(configv1.Update{Image: "a"}),
		},
		{
			reason: "a desired update is taken back",
			before: openshifttest.DesiredUpdate(configv1.Update{Version: "4.18.2", Image: "a", Force: true}),
			verb:   clearDesiredUpdate,
			want:   func(cv *configv1.ClusterVersion) { cv.Spec.DesiredUpdate = nil },
		},
		{
			reason: "the lock is taken",
			before: openshifttest.Desired("4.18.1"),
			verb:   setLock("ns/job"),
			want:   func(cv *configv1.ClusterVersion) { cv.Annotations[v1beta1.UpgradeJobAnnotation] = "ns/job" },
		},
		{
			reason: "the lock is taken over",
			before: func(cv *configv1.ClusterVersion) { cv.Annotations[v1beta1.UpgradeJobAnnotation] = "ns/gone" },
			verb:   setLock("ns/job"),
			want:   func(cv *configv1.ClusterVersion) { cv.Annotations[v1beta1.UpgradeJobAnnotation] = "ns/job" },
		},
		{
			reason: "the lock is released",
			before: func(cv *configv1.ClusterVersion) { cv.Annotations[v1beta1.UpgradeJobAnnotation] = "ns/job" },
			verb:   setLock(""),
			want:   func(cv *configv1.ClusterVersion) { delete(cv.Annotations, v1beta1.UpgradeJobAnnotation) },
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			initial := openshifttest.ClusterVersion()
			if tc.before != nil {
				tc.before(initial)
			}
			api := newAPI(initial)
			before := read(t, api)

			written, err := tc.verb(t.Context(), openshift.NewCluster(api, api), before.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			got, want := read(t, api), before.DeepCopy()
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

func TestVerbsRefuseAStaleObject(t *testing.T) {
	for name, run := range map[string]verb{
		"SetDesiredUpdate":   setDesiredUpdate(version("4.18.2")),
		"ClearDesiredUpdate": clearDesiredUpdate,
		"SetLock":            setLock("ns/job"),
	} {
		t.Run(name, func(t *testing.T) {
			api := newAPI(openshifttest.ClusterVersion(openshifttest.Desired("4.18.1")))
			stale := read(t, api)
			changed := stale.DeepCopy()
			changed.Spec.Channel = "fast-4.18"
			if err := api.Update(t.Context(), changed); err != nil {
				t.Fatal(err)
			}
			before := read(t, api)

			_, err := run(t.Context(), openshift.NewCluster(api, api), stale)
			if !apierrors.IsConflict(err) {
				t.Errorf("got %v, want a conflict", err)
			}
			if diff := cmp.Diff(before, read(t, api)); diff != "" {
				t.Errorf("it was written:\n%s", diff)
			}
		})
	}
}

// Version may lag behind, LiveVersion never does.
func TestVersionAndLiveVersion(t *testing.T) {
	cache := newAPI(openshifttest.ClusterVersion())
	live := newAPI(openshifttest.ClusterVersion(openshifttest.Desired("4.18.2")))
	cluster := openshift.NewCluster(cache, live)

	cached, err := cluster.Version(t.Context())
	if err != nil || cached.Spec.DesiredUpdate != nil {
		t.Errorf("Version: got %+v, %v", cached, err)
	}
	now, err := cluster.LiveVersion(t.Context())
	if err != nil || !openshift.Desires(now, version("4.18.2")) {
		t.Errorf("LiveVersion: got %+v, %v", now, err)
	}
}

func TestRenderedBy(t *testing.T) {
	byHand := openshifttest.MachineConfig("worker", "4.18.2")
	byHand.Name, byHand.Annotations = "99-by-hand", nil
	api := newAPI(openshifttest.MachineConfig("worker", "4.18.1"), byHand)
	cluster := openshift.NewCluster(api, api)
	for config, want := range map[string]string{
		"rendered-worker-4.18.1": "4.18.1",
		"99-by-hand":             "",
		"gone":                   "",
	} {
		if got, err := cluster.RenderedBy(t.Context(), config); got != want || err != nil {
			t.Errorf("%s: got %q, %v; want %q", config, got, err, want)
		}
	}
}

func TestLists(t *testing.T) {
	api := newAPI(
		openshifttest.ClusterOperator("dns"), openshifttest.ClusterOperator("console"), openshifttest.Pool("worker"), openshifttest.Pool("master"),
	)
	cluster := openshift.NewCluster(reversed(api), newAPI())

	operators, err := cluster.Operators(t.Context())
	if err != nil {
		t.Error(err)
	}
	var got []string
	for i := range operators {
		got = append(got, operators[i].Name)
	}
	slices.Sort(got)
	pools, err := cluster.Pools(t.Context())
	if err != nil {
		t.Error(err)
	}
	for i := range pools {
		got = append(got, pools[i].Name)
	}
	if diff := cmp.Diff([]string{"console", "dns", "master", "worker"}, got); diff != "" {
		t.Errorf("every operator, and every pool in order of name (-want +got):\n%s", diff)
	}
}

// Nodes are read from the cache, which has those that are cordoned, by whomever.
func TestNodesInWork(t *testing.T) {
	cache := newAPI(
		openshifttest.Node("worker-2", "worker", openshifttest.NodeDraining("1")),
		openshifttest.Node("worker-1", "worker", openshifttest.NodeRebooting("1")),
		openshifttest.Node("worker-0", "worker", openshifttest.NodeCordoned()),
	)
	live := newAPI(openshifttest.Node("worker-3", "worker", openshifttest.NodeDraining("1")))
	nodes, err := openshift.NewCluster(reversed(cache), live).NodesInWork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range nodes {
		got = append(got, nodes[i].Name)
	}
	if diff := cmp.Diff([]string{"worker-1", "worker-2"}, got); diff != "" {
		t.Errorf("not the one that is cordoned by hand, and in order of name (-want +got):\n%s", diff)
	}
}

// Errors say what was being done to which object, once, and can be told apart.
func TestErrorsNameTheAct(t *testing.T) {
	broken := errors.New("etcd is away")
	api := interceptor.NewClient(newAPI(openshifttest.ClusterVersion()), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return broken
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return broken
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return broken
		},
	})
	cluster := openshift.NewCluster(api, api)
	cv := openshifttest.ClusterVersion()
	for act, run := range map[string]func(context.Context) error{
		"get ClusterVersion/version":   func(ctx context.Context) error { _, err := cluster.Version(ctx); return err },
		"get ClusterVersion/version: ": func(ctx context.Context) error { _, err := cluster.LiveVersion(ctx); return err },
		"get MachineConfig/rendered":   func(ctx context.Context) error { _, err := cluster.RenderedBy(ctx, "rendered"); return err },
		"list ClusterOperators":        func(ctx context.Context) error { _, err := cluster.Operators(ctx); return err },
		"list MachineConfigPools":      func(ctx context.Context) error { _, err := cluster.Pools(ctx); return err },
		"list MachineConfigPools: ":    func(ctx context.Context) error { _, err := cluster.LivePools(ctx); return err },
		"list Nodes":                   func(ctx context.Context) error { _, err := cluster.NodesInWork(ctx); return err },
		"list Nodes: ":                 func(ctx context.Context) error { _, err := cluster.Nodes(ctx, now, time.Minute); return err },
		"list PodDisruptionBudgets":    func(ctx context.Context) error { _, err := cluster.Budgets(ctx, now, time.Minute); return err },
		"list APIRequestCounts":        func(ctx context.Context) error { _, err := cluster.RemovedAPIs(ctx, now, time.Minute); return err },
		"list Pods of Node/worker-0":   func(ctx context.Context) error { _, err := cluster.HeldDrain(ctx, "worker-0", now); return err },
		"patch ClusterVersion/version": func(ctx context.Context) error { _, err := cluster.ClearDesiredUpdate(ctx, cv); return err },
		"patch MachineConfigPool/a": func(ctx context.Context) error {
			_, err := cluster.PausePool(ctx, openshifttest.Pool("a"), "ns/job")
			return err
		},
		"patch MachineConfigPool/b": func(ctx context.Context) error {
			_, err := cluster.ReleasePool(ctx, openshifttest.Pool("b"))
			return err
		},
	} {
		err := run(t.Context())
		if !errors.Is(err, broken) {
			t.Errorf("%s: got %v, want the error of the API in it", act, err)
		} else if !strings.HasPrefix(err.Error(), act) || strings.Count(err.Error(), broken.Error()) != 1 {
			t.Errorf("%s: got %q", act, err)
		}
	}
}
