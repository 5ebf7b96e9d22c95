// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/environment"
)

// aClusterVersion is a ClusterVersion of ours that asks for nothing yet.
func aClusterVersion(changes ...func(*v1beta1.ClusterVersion)) *v1beta1.ClusterVersion {
	cv := &v1beta1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: v1beta1.ClusterVersionName}}
	for _, change := range changes {
		change(cv)
	}
	return cv
}

// onChannel makes the template ask for a channel.
func onChannel(channel string) func(*v1beta1.ClusterVersion) {
	return func(cv *v1beta1.ClusterVersion) { cv.Spec.Template.Spec.Channel = channel }
}

// waitSync waits until the condition Ready of our ClusterVersion is as expected.
func (c *cluster) waitSync(cv *v1beta1.ClusterVersion, status metav1.ConditionStatus, reason string, words ...string) {
	c.t.Helper()
	c.eventually("our ClusterVersion", func() error {
		if err := env.Client.Get(c.ctx, client.ObjectKeyFromObject(cv), cv); err != nil {
			return err
		}
		if cv.Status.ObservedGeneration != cv.Generation {
			return errors.New("its status is that of an older spec")
		}
		return conditionIs(cv.Status.Conditions, v1beta1.ConditionReady, status, reason, words...)
	})
}

// followsChannel expects that OpenShift's ClusterVersion follows a channel.
func followsChannel(channel string) func(*configv1.ClusterVersion) error {
	return func(cv *configv1.ClusterVersion) error {
		if cv.Spec.Channel != channel {
			return fmt.Errorf("the channel is %q, want %q", cv.Spec.Channel, channel)
		}
		return nil
	}
}

func TestClusterVersionIsSyncedAndNothingElseIsTouched(t *testing.T) {
	c := newCluster(t)
	const foreign = "https://updates.example.com/graph"
	before := edit(c, c.version(), func(cv *configv1.ClusterVersion) {
		cv.Spec.Upstream = foreign
		cv.Spec.DesiredUpdate = &configv1.Update{Version: installed}
	})
	c.fromNowOn()
	c.startOperator()

	unmanaged := []configv1.ComponentOverride{{Kind: "Deployment", Group: "apps", Namespace: "openshift-console", Name: "console", Unmanaged: true}}
	ours := create(c, aClusterVersion(onChannel("fast-4.18"), func(cv *v1beta1.ClusterVersion) {
		cv.Spec.Template.Spec.Overrides = unmanaged
		cv.Spec.Template.Spec.DesiredUpdate = &v1beta1.IgnoredUpdate{Version: "9.9.9", Force: true}
	}))
	c.waitSync(ours, metav1.ConditionTrue, v1beta1.ReasonSynced)
	synced := c.waitVersion("the channel", followsChannel("fast-4.18"))
	if len(synced.Spec.Overrides) != 1 || synced.Spec.Overrides[0] != unmanaged[0] {
		t.Errorf("the overrides are %+v, want %+v", synced.Spec.Overrides, unmanaged)
	}
	if got := ours.Status.Current; got == nil || got.Channel != "fast-4.18" || got.DesiredUpdate != nil {
		t.Errorf("status.current is %+v", got)
	}

	edit(c, ours, func(cv *v1beta1.ClusterVersion) { cv.Spec.Template.Spec.Overrides = nil })
	c.waitSync(ours, metav1.ConditionTrue, v1beta1.ReasonSynced)
	after := c.waitVersion("what the template does not ask for any more is removed", func(cv *configv1.ClusterVersion) error {
		if len(cv.Spec.Overrides) > 0 {
			return fmt.Errorf("the overrides are %+v", cv.Spec.Overrides)
		}
		return nil
	})
	if after.Spec.Upstream != foreign || after.Spec.ClusterID != before.Spec.ClusterID || after.Spec.Channel != "fast-4.18" {
		t.Errorf("somebody else's fields changed: %+v, were %+v", after.Spec, before.Spec)
	}
	if writes := c.desiredUpdateWrites(); len(writes) > 0 {
		t.Errorf("desiredUpdate was written %d times, want never: %+v", len(writes), after.Spec.DesiredUpdate)
	}
}

func TestDriftIsCorrectedAtOnce(t *testing.T) {
	c := newCluster(t)
	c.startOperator()
	ours := create(c, aClusterVersion(onChannel("fast-4.18")))
	c.waitSync(ours, metav1.ConditionTrue, v1beta1.ReasonSynced)
	c.waitVersion("the channel", followsChannel("fast-4.18"))
	drifted := time.Now()
	edit(c, c.version(), func(cv *configv1.ClusterVersion) { cv.Spec.Channel = "candidate-4.18" })
	c.waitVersion("the channel is corrected", followsChannel("fast-4.18"))
	c.promptly("the correction", time.Now(), drifted)
}

func TestOverlayTakesEffectAtItsTime(t *testing.T) {
	c := newCluster(t)
	c.startOperator()
	from := soon(2 * time.Second)
	overlay := func(from time.Time, channel string) v1beta1.ClusterVersionOverlay {
		return v1beta1.ClusterVersionOverlay{
			From:    metav1.NewTime(from),
			Overlay: v1beta1.ClusterVersionTemplate{Spec: v1beta1.DesiredClusterVersionSpec{Channel: channel}},
		}
	}
	ours := create(c, aClusterVersion(onChannel("stable-4.18"), func(cv *v1beta1.ClusterVersion) {
		cv.Spec.Template.Spec.Upstream = "https://updates.example.com/graph"
		cv.Spec.Overlays = []v1beta1.ClusterVersionOverlay{overlay(from.Add(time.Hour), "candidate-4.18"), overlay(from, "fast-4.18")}
	}))
	c.waitSync(ours, metav1.ConditionTrue, v1beta1.ReasonSynced)
	if ours.Status.OverlayApplied != nil || ours.Status.Current.Channel != "stable-4.18" {
		t.Errorf("an overlay applies before its time: %+v", ours.Status)
	}
	preview := ours.Status.Overlays
	if len(preview) != 2 || !preview[0].From.Time.Equal(from) || preview[0].Preview.Channel != "fast-4.18" ||
		preview[0].Preview.Upstream != ours.Spec.Template.Spec.Upstream || preview[1].Preview.Channel != "candidate-4.18" {
		t.Errorf("the preview is %+v", preview)
	}

	c.waitVersion("the channel of the overlay", followsChannel("fast-4.18"))
	for _, r := range past.versionsSince(c.began) {
		if r.object.Spec.Channel == "fast-4.18" {
			c.promptly("the overlay", r.seen, from)
			break
		}
	}
	c.eventually("the status tells of the overlay", func() error {
		c.get(ours)
		if got := ours.Status.OverlayApplied; got == nil || !got.From.Time.Equal(from) || ours.Status.Current.Channel != "fast-4.18" {
			return fmt.Errorf("the status is %+v", ours.Status)
		}
		return nil
	})
}

func TestClusterVersionIsSyncedDuringAnUpgrade(t *testing.T) {
	c := newCluster(t, stuck("network"))
	c.startOperator()
	job := c.wait(create(c, aJob()), done(steps.ConditionUpgradeCommenced))
	ours := create(c, aClusterVersion(onChannel("fast-4.18")))
	c.waitSync(ours, metav1.ConditionTrue, v1beta1.ReasonSynced)
	c.change(mended)
	c.wait(job, succeeded())
	c.upgradedOnce(job)
	c.waitVersion("the channel", followsChannel("fast-4.18"))
}
