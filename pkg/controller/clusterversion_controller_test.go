// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

func (w *world) clusterVersions() *ClusterVersionReconciler {
	return setUp(w, &ClusterVersionReconciler{Client: w.client, Cluster: w.cluster, Clock: w.clock, Namespace: namespace})
}

// newManaged returns our ClusterVersion, which asks for the channel stable-4.19, changed by the overrides.
func newManaged(overrides ...func(*v1beta1.ClusterVersion)) *v1beta1.ClusterVersion {
	cv := &v1beta1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version", Namespace: namespace, UID: "managed-uid", Generation: 1}}
	cv.Spec.Template.Spec = v1beta1.DesiredClusterVersionSpec{
		Channel: "stable-4.19", DesiredUpdate: &v1beta1.IgnoredUpdate{Version: "4.20.0", Force: true},
	}
	for _, override := range overrides {
		override(cv)
	}
	return cv
}

func TestClusterVersionIsSynced(t *testing.T) {
	managed := newManaged()
	w := newWorld(t, newClusterVersion(func(cv *configv1.ClusterVersion) { cv.Spec.Upstream = "https://own" }), managed)
	r := w.clusterVersions()
	if result := w.reconcile(r, managed); result.RequeueAfter != 0 {
		t.Errorf("looks again after %s, want only by a watch", result.RequeueAfter)
	}
	upstream, got := get(w, newClusterVersion()), get(w, managed)
	if upstream.Spec.Channel != "stable-4.19" || upstream.Spec.Upstream != "https://own" || upstream.Spec.DesiredUpdate != nil {
		t.Errorf("got spec %+v, want the channel alone changed", upstream.Spec)
	}
	expectCondition(t, got.Status.Conditions, v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonSynced)
	if got.Status.Current == nil || got.Status.Current.Channel != "stable-4.19" || got.Status.Current.DesiredUpdate != nil || got.Status.ObservedGeneration != 1 {
		t.Errorf("got status %+v, want the channel", got.Status)
	}
	if writes := w.api.writes(); !slices.Equal(writes, []string{"apply ClusterVersion", "patch ClusterVersion/status"}) {
		t.Errorf("wrote %v, want the spec and the status", writes)
	}

	w.reconcile(r, managed)
	if writes := w.api.writes(); len(writes) > 0 {
		t.Errorf("a pass without news wrote %v", writes)
	}

	change(w, upstream, func(cv *configv1.ClusterVersion) { cv.Spec.Channel, cv.Spec.Upstream = "fast-4.19", "https://mirror" })
	w.reconcile(r, managed)
	if upstream := get(w, upstream); upstream.Spec.Channel != "stable-4.19" || upstream.Spec.Upstream != "https://mirror" {
		t.Errorf("got spec %+v, want the channel corrected and the rest left alone", upstream.Spec)
	}
	if writes := w.api.writes(); !slices.Equal(writes, []string{"apply ClusterVersion"}) {
		t.Errorf("a correction wrote %v, want the spec alone", writes)
	}
}

func TestClusterVersionTakesBackWhatItSet(t *testing.T) {
	managed := newManaged(func(cv *v1beta1.ClusterVersion) { cv.Spec.Template.Spec.Upstream = "https://mirror" })
	w := newWorld(t, newClusterVersion(), managed)
	r := w.clusterVersions()
	w.reconcile(r, managed)
	if got := get(w, newClusterVersion()).Spec.Upstream; got != "https://mirror" {
		t.Fatalf("upstream is %q, want the mirror", got)
	}
	change(w, managed, func(cv *v1beta1.ClusterVersion) { cv.Spec.Template.Spec.Upstream, cv.Generation = "", 2 })
	w.reconcile(r, managed)
	upstream := get(w, newClusterVersion())
	if upstream.Spec.Upstream != "" || upstream.Spec.Channel != "stable-4.19" {
		t.Errorf("got spec %+v, want the mirror gone and the rest as it was", upstream.Spec)
	}
}

func TestClusterVersionOverlay(t *testing.T) {
	managed := newManaged(func(cv *v1beta1.ClusterVersion) {
		cv.Spec.Overlays = []v1beta1.ClusterVersionOverlay{{
			From:    metav1.NewTime(startAfter.Add(30 * time.Second)),
			Overlay: v1beta1.ClusterVersionTemplate{Spec: v1beta1.DesiredClusterVersionSpec{Channel: "stable-4.20"}},
		}}
	})
	w := newWorld(t, newClusterVersion(), managed)
	r := w.clusterVersions()
	if result := w.reconcile(r, managed); result.RequeueAfter != 30*time.Second {
		t.Errorf("wakes after %s, want at the overlay", result.RequeueAfter)
	}
	got := get(w, managed)
	if got.Status.OverlayApplied != nil || len(got.Status.Overlays) != 1 || got.Status.Overlays[0].Preview.Channel != "stable-4.20" {
		t.Errorf("got overlay %v, previews %v, want a preview alone", got.Status.OverlayApplied, got.Status.Overlays)
	}
	w.elapse(30 * time.Second)
	if result := w.reconcile(r, managed); result.RequeueAfter != 0 {
		t.Errorf("looks again after %s, want only by a watch", result.RequeueAfter)
	}
	if got := get(w, newClusterVersion()).Spec.Channel; got != "stable-4.20" {
		t.Errorf("the channel is %q, want that of the overlay", got)
	}
	if got := get(w, managed).Status.OverlayApplied; got == nil || !got.From.Time.Equal(w.clock.Now()) {
		t.Errorf("the overlay applied is %v", got)
	}
}

func TestClusterVersionThatIsNotSynced(t *testing.T) {
	elsewhere := newManaged(func(cv *v1beta1.ClusterVersion) { cv.Namespace = "elsewhere" })
	for _, tc := range []struct {
		reason  string
		managed *v1beta1.ClusterVersion
		objects []client.Object
		fault   func(int, string) (error, error)
		because string
		words   string
		after   time.Duration
	}{
		{"of another namespace", elsewhere, []client.Object{newClusterVersion()}, nil, v1beta1.ReasonNotManaged, "namespace, upgrades", 0},
		{"the write fails", newManaged(), []client.Object{newClusterVersion()}, failing("apply ClusterVersion", -1, errBroken), v1beta1.ReasonSyncFailed, "etcd has no leader", minBackoff},
		{"OpenShift has none", newManaged(), nil, nil, v1beta1.ReasonSyncFailed, "get ClusterVersion/version", minBackoff},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, append(tc.objects, tc.managed)...)
			w.api.fault = tc.fault
			r := w.clusterVersions()
			if result := w.reconcile(r, tc.managed); result.RequeueAfter != tc.after {
				t.Errorf("looks again after %s, want %s", result.RequeueAfter, tc.after)
			}
			expectCondition(t, get(w, tc.managed).Status.Conditions, v1beta1.ConditionReady, metav1.ConditionFalse, tc.because, tc.words)
			if len(tc.objects) > 0 {
				if got := get(w, newClusterVersion()).Spec.Channel; got != "stable-4.18" {
					t.Errorf("the channel became %q", got)
				}
			}
			w.api.writes()
			w.reconcile(r, tc.managed)
			if got := w.api.writes(); slices.Contains(got, "patch ClusterVersion/status") {
				t.Errorf("the same failure was written again: %v", got)
			}
		})
	}
}

func TestClusterVersionRecovers(t *testing.T) {
	managed := newManaged()
	w := newWorld(t, newClusterVersion(), managed)
	r := w.clusterVersions()
	for _, call := range []string{"apply ClusterVersion", "patch ClusterVersion/status", "get ClusterVersion", "get openshift.ClusterVersion"} {
		w.api.fault = failing(call, 1, errBroken)
		w.reconcile(r, managed)
	}
	w.reconcile(r, managed)
	expectCondition(t, get(w, managed).Status.Conditions, v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonSynced)
	if got := get(w, newClusterVersion()).Spec.Channel; got != "stable-4.19" {
		t.Errorf("the channel is %q, want it synced", got)
	}
}

func TestClusterVersionThatIsDeletedLeavesTheSpec(t *testing.T) {
	managed := newManaged(func(cv *v1beta1.ClusterVersion) { cv.Finalizers = []string{"foregroundDeletion"} })
	w := newWorld(t, newClusterVersion(), managed)
	w.remove(managed)
	r := w.clusterVersions()
	if result := w.reconcile(r, managed); result.RequeueAfter != 0 || len(w.api.writes()) > 0 {
		t.Errorf("a deleted ClusterVersion is still synced")
	}
	empty := newWorld(t)
	if result := empty.reconcile(empty.clusterVersions(), managed); result.RequeueAfter != 0 {
		t.Errorf("one that is gone is looked at again after %s", result.RequeueAfter)
	}
}
