// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// drainSpec is what the NodeForceDrains of these tests say.
var drainSpec = v1beta1.NodeForceDrainSpec{NodeDrainGracePeriod: &v1beta1.Duration{Duration: 45 * time.Minute}, IgnoredNamespacePatterns: []string{"^openshift-"}}

// drainOwnedBy is a NodeForceDrain of the job's name, with a spec of its own, that a job of that UID controls; of nobody if it is empty.
func drainOwnedBy(uid types.UID) *v1beta1.NodeForceDrain {
	return newForceDrain(func(n *v1beta1.NodeForceDrain) {
		n.Name = "night"
		if uid != "" {
			n.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: v1beta1.GroupVersion.String(), Kind: "UpgradeJob", Name: "night", UID: uid, Controller: new(true),
			}}
		}
	})
}

func (w *world) forceDrains() *forceDrains { return newForceDrains(w.client, w.hooks.Live) }

// forceDrainsNow lists the NodeForceDrains that there are.
func (w *world) forceDrainsNow() []v1beta1.NodeForceDrain {
	w.t.Helper()
	list := &v1beta1.NodeForceDrainList{}
	if err := w.api.past(func() error { return w.client.List(w.t.Context(), list) }); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// unseen has the cache not know of any NodeForceDrain that is the job's.
func (w *world) unseen() {
	w.api.stale = func(o client.Object) bool {
		nfd, ok := o.(*v1beta1.NodeForceDrain)
		if ok {
			newForceDrain().DeepCopyInto(nfd)
		}
		return ok
	}
}

func TestForceDrainsEnsure(t *testing.T) {
	job := newJob("night")
	w := newWorld(t, job)
	for range 3 {
		if err := w.forceDrains().Ensure(t.Context(), job, drainSpec); err != nil {
			t.Fatal(err)
		}
	}
	if writes := w.api.writes(); !slices.Equal(writes, []string{"create NodeForceDrain"}) {
		t.Errorf("wrote %v, want one", writes)
	}
	all := w.forceDrainsNow()
	if len(all) != 1 {
		t.Fatalf("there are %d", len(all))
	}
	made := all[0]
	if made.Namespace != job.Namespace || made.Name != "night" || !metav1.IsControlledBy(&made, job) || made.Labels["managedupgrade.appuio.io/upgrade-job"] != "night-uid" {
		t.Errorf("it is %+v", made.ObjectMeta)
	}
	if owner := metav1.GetControllerOf(&made); owner == nil || owner.APIVersion != "managedupgrade.appuio.io/v1beta1" || owner.Kind != "UpgradeJob" || owner.Name != "night" {
		t.Errorf("its owner is %+v", owner)
	}
	if diff := cmp.Diff(drainSpec, made.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestForceDrainsEnsureWhereThereIsOne(t *testing.T) {
	for _, tc := range []struct {
		reason string
		owner  types.UID
		unseen bool
		want   string
	}{
		{"its own, changed by somebody", "night-uid", false, ""},
		{"its own, which the cache does not know yet", "night-uid", true, ""},
		{"somebody's", "", false, "there is one already, which does not belong to UpgradeJob night"},
		{"somebody's, which the cache does not know yet", "", true, "does not belong to UpgradeJob night"},
		{"that of a job of the same name that is gone", "another-uid", false, "does not belong to UpgradeJob night"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			job, there := newJob("night"), drainOwnedBy(tc.owner)
			w := newWorld(t, job, there)
			if tc.unseen {
				w.unseen()
			}
			err := w.forceDrains().Ensure(t.Context(), job, drainSpec)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("failed: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got error %v, want %q", err, tc.want)
			}
			if all := w.forceDrainsNow(); len(all) != 1 || all[0].UID != there.UID || cmp.Diff(there.Spec, all[0].Spec) != "" {
				t.Errorf("there are %+v, want the one that was there", all)
			}
		})
	}
}

func TestForceDrainsRemove(t *testing.T) {
	for _, tc := range []struct {
		reason string
		there  *v1beta1.NodeForceDrain
		unseen bool
		gone   bool
	}{
		{"its own", drainOwnedBy("night-uid"), false, true},
		{"its own, which the cache does not know yet", drainOwnedBy("night-uid"), true, true},
		{"somebody's", drainOwnedBy(""), false, false},
		{"that of a job of the same name that is gone", drainOwnedBy("another-uid"), false, false},
		{"none", nil, false, true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			job, other := newJob("night"), newForceDrain()
			objects := []client.Object{job, other}
			if tc.there != nil {
				objects = append(objects, tc.there)
			}
			w := newWorld(t, objects...)
			if tc.unseen {
				w.unseen()
			}
			for range 2 { // also when it is gone
				if err := w.forceDrains().Remove(t.Context(), job); err != nil {
					t.Fatal(err)
				}
			}
			if gone := w.gone(drainOwnedBy("")); gone != tc.gone {
				t.Errorf("gone: %t, want %t", gone, tc.gone)
			}
			if w.gone(other) {
				t.Error("another one is gone, too")
			}
		})
	}
}

// What the API server answers in the way of races is no failure; the rest is.
func TestForceDrainsFail(t *testing.T) {
	resource := v1beta1.GroupVersion.WithResource("nodeforcedrains").GroupResource()
	for _, tc := range []struct {
		call string
		err  error
		want string
	}{
		{"get NodeForceDrain", errBroken, "get NodeForceDrain night: "},
		{"delete NodeForceDrain", errBroken, "delete NodeForceDrain night: "},
		{"delete NodeForceDrain", apierrors.NewNotFound(resource, "night"), ""},
		{"delete NodeForceDrain", apierrors.NewConflict(resource, "night", errors.New("the UID does not match")), ""},
		{"delete NodeForceDrain", apierrors.NewForbidden(resource, "night", errors.New("no")), "delete NodeForceDrain night: "},
	} {
		w := newWorld(t, newJob("night"), drainOwnedBy("night-uid"))
		w.api.fault = failing(tc.call, 1, tc.err)
		expectError(t, fmt.Sprintf("Remove, when %s fails with %v", tc.call, tc.err), w.forceDrains().Remove(t.Context(), newJob("night")), tc.want)
	}
	for _, tc := range []struct {
		call string
		err  error
		want string
	}{
		{"get NodeForceDrain", errBroken, "get NodeForceDrain night: "},
		{"create NodeForceDrain", errBroken, "create NodeForceDrain night: "},
		{"create NodeForceDrain", apierrors.NewAlreadyExists(resource, "night"), "create NodeForceDrain night: another one went just now"},
	} {
		w := newWorld(t, newJob("night"))
		w.api.fault = failing(tc.call, 1, tc.err)
		expectError(t, fmt.Sprintf("Ensure, when %s fails with %v", tc.call, tc.err), w.forceDrains().Ensure(t.Context(), newJob("night"), drainSpec), tc.want)
		if err := w.forceDrains().Ensure(t.Context(), newJob("night"), drainSpec); err != nil || len(w.forceDrainsNow()) != 1 {
			t.Errorf("the next pass does not make up for it: %v", err)
		}
	}
}

func expectError(t *testing.T, when string, err error, want string) {
	t.Helper()
	if (want == "" && err != nil) || (want != "" && (err == nil || !strings.HasPrefix(err.Error(), want))) {
		t.Errorf("%s: got error %v, want %q", when, err, want)
	}
}
