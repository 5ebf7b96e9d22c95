// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"context"
	"fmt"
	"testing"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// laggingPools is a cluster of which the cache shows the pools as they were when it was told to lag.
type laggingPools struct {
	*openshift.Cluster
	t     *testing.T
	api   client.WithWatch
	stale *mcfgv1.MachineConfigPoolList
}

func newLaggingPools(t *testing.T, pools ...client.Object) *laggingPools {
	l := &laggingPools{t: t, api: openshifttest.NewClientBuilder("x", func(client.Object) []string { return nil }).WithObjects(pools...).Build()}
	cache := interceptor.NewClient(l.api, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if l.stale != nil {
				l.stale.DeepCopyInto(list.(*mcfgv1.MachineConfigPoolList))
				return nil
			}
			return c.List(ctx, list, options...)
		},
	})
	l.Cluster = openshift.NewCluster(cache, l.api)
	return l
}

// lag makes the cache one that sees nothing new.
func (l *laggingPools) lag() {
	l.t.Helper()
	l.stale = &mcfgv1.MachineConfigPoolList{}
	if err := l.api.List(l.t.Context(), l.stale); err != nil {
		l.t.Fatal(err)
	}
}

// now tells how the pools are held, as the cluster has it.
func (l *laggingPools) now() string {
	l.t.Helper()
	pools, err := l.Pools(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	words := ""
	for i := range pools {
		words += fmt.Sprintf("%s %t by %q; ", pools[i].Name, pools[i].Spec.Paused, pools[i].Annotations["managedupgrade.appuio.io/upgrade-job"])
	}
	return words
}

func (l *laggingPools) pause(name string) {
	l.t.Helper()
	pool := &mcfgv1.MachineConfigPool{}
	if err := l.api.Get(l.t.Context(), client.ObjectKey{Name: name}, pool); err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.PausePool(l.t.Context(), pool, "night/job"); err != nil {
		l.t.Fatal(err)
	}
}

// To go by a cache that lags behind would mean to take a pool that was paused a moment ago for one that is not.
func TestPoolsAreAsTheyWereWritten(t *testing.T) {
	l := newLaggingPools(t, openshifttest.Pool("infra"), openshifttest.Pool("worker"))
	l.lag()
	l.pause("infra")
	const written = `infra true by "night/job"; worker false by ""; `
	for range 3 {
		if got := l.now(); got != written {
			t.Errorf("got %s, want %s", got, written)
		}
	}
	l.stale = nil
	if got := l.now(); got != written {
		t.Errorf("once the cache has seen it: got %s, want %s", got, written)
	}

	// Somebody writes it afterwards, and the cache has seen that: it counts.
	pool := &mcfgv1.MachineConfigPool{}
	if err := l.api.Get(t.Context(), client.ObjectKey{Name: "infra"}, pool); err != nil {
		t.Fatal(err)
	}
	pool.Spec.Paused = false
	if err := l.api.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	const changed = `infra false by "night/job"; worker false by ""; `
	if got := l.now(); got != changed {
		t.Errorf("after somebody has unpaused it: got %s, want %s", got, changed)
	}
	l.lag()
	if got := l.now(); got != changed {
		t.Errorf("what was seen once is not taken back: got %s, want %s", got, changed)
	}
}

// What the cache shows that has seen what was written and more is newer, though this process has not asked since.
func TestPoolsThatSomebodyHasWrittenSince(t *testing.T) {
	l := newLaggingPools(t, openshifttest.Pool("infra"))
	l.pause("infra")
	pool := &mcfgv1.MachineConfigPool{}
	if err := l.api.Get(t.Context(), client.ObjectKey{Name: "infra"}, pool); err != nil {
		t.Fatal(err)
	}
	pool.Spec.Paused, pool.Annotations = false, nil
	if err := l.api.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if got := l.now(); got != `infra false by ""; ` {
		t.Errorf("got %s", got)
	}
}

// A write that was refused changes nothing.
func TestPoolsThatCouldNotBeWritten(t *testing.T) {
	l := newLaggingPools(t, openshifttest.Pool("infra"))
	l.lag()
	if _, err := l.PausePool(t.Context(), openshifttest.Pool("infra", func(p *mcfgv1.MachineConfigPool) { p.ResourceVersion = "1" }), "night/job"); err == nil {
		t.Fatal("a stale pool could be written")
	}
	if got := l.now(); got != `infra false by ""; ` {
		t.Errorf("got %s", got)
	}
}

// A pool of the same name that was created anew is another one.
func TestPoolsThatWereCreatedAnew(t *testing.T) {
	l := newLaggingPools(t, openshifttest.Pool("infra", func(p *mcfgv1.MachineConfigPool) { p.UID = "old" }))
	l.pause("infra")
	anew := openshifttest.Pool("infra", func(p *mcfgv1.MachineConfigPool) { p.UID, p.ResourceVersion = "new", "1" })
	l.stale = &mcfgv1.MachineConfigPoolList{Items: []mcfgv1.MachineConfigPool{*anew}}
	if got := l.now(); got != `infra false by ""; ` {
		t.Errorf("got %s", got)
	}
}

// Versions of a cluster that was restored from a backup never come up to what was written before.
func TestPoolsOfARestoredClusterAreNotWaitedForForEver(t *testing.T) {
	l := newLaggingPools(t, openshifttest.Pool("infra"))
	l.lag()
	l.pause("infra")
	looks := 0
	for ; looks < 100_000 && l.now() == `infra true by "night/job"; `; looks++ {
	}
	if looks < 100 || looks == 100_000 {
		t.Errorf("it is given up after %d looks", looks)
	}
}
