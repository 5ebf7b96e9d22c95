// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// A config tells by Events what it decides, each decision once, however often it comes to the same.
func TestConfigNotifiesOfItsDecisionsOnce(t *testing.T) {
	c := newCluster(t, offering())
	missed := create(c, aConfig(creatingAJobAt(time.Now().Add(-time.Minute)), func(config *v1beta1.UpgradeConfig) {
		config.Name = "missed"
		config.Spec.MaxSchedulingDelay = duration(time.Second)
	}))
	c.startOperator()
	none := create(c, aConfig(creatingAJobNow(), func(config *v1beta1.UpgradeConfig) { config.Name = "nothing-to-do" }))
	turning := create(c, aConfig(func(config *v1beta1.UpgradeConfig) { config.Name = "turning" }))
	c.waitConfig(turning, v1beta1.ConditionScheduling, metav1.ConditionTrue, v1beta1.ReasonScheduled)
	if events := c.eventsAbout(turning.UID); len(events) > 0 {
		t.Errorf("that nothing is wrong with a new config is told by %d Events", len(events))
	}
	suspend := func(yes bool) func(*v1beta1.UpgradeConfig) {
		return func(config *v1beta1.UpgradeConfig) { config.Spec.Schedule.Suspend = yes }
	}
	c.told(missed, corev1.EventTypeNormal, "StartSkipped")
	c.told(none, corev1.EventTypeNormal, v1beta1.ReasonNoUpdateAvailable)
	edit(c, turning, suspend(true))
	c.told(turning, corev1.EventTypeNormal, v1beta1.ReasonSuspended, "suspend")
	edit(c, turning, suspend(false))
	c.told(turning, corev1.EventTypeNormal, v1beta1.ReasonScheduled)
	freeze := create(c, aFreeze(ofAllConfigs))
	c.told(turning, corev1.EventTypeNormal, v1beta1.ReasonSuspensionWindow, freeze.Name)

	// What changes nothing is told to nobody.
	for i := range 5 {
		for _, config := range []*v1beta1.UpgradeConfig{missed, none, turning} {
			edit(c, config, func(config *v1beta1.UpgradeConfig) {
				config.Spec.FailedJobsHistoryLimit = new(int32(i + 1))
			})
			c.eventually("the config is looked at again", func() error {
				if c.get(config); config.Status.ObservedGeneration != config.Generation {
					return fmt.Errorf("its status is of generation %d, not %d", config.Status.ObservedGeneration, config.Generation)
				}
				return nil
			})
		}
	}
	for config, want := range map[*v1beta1.UpgradeConfig][]string{
		missed: {"StartSkipped", v1beta1.ReasonSuspensionWindow},
		// Its start is due: it is skipped for want of an update, and then for the window.
		none:    {v1beta1.ReasonNoUpdateAvailable, v1beta1.ReasonSuspensionWindow},
		turning: {v1beta1.ReasonScheduled, v1beta1.ReasonSuspended, v1beta1.ReasonSuspensionWindow},
	} {
		var got []string
		for _, e := range c.eventsAbout(config.UID) {
			if got = append(got, e.Reason); e.Series != nil || e.Note == "" || e.Action == "" {
				t.Errorf("the Event of %s is %+v", config.Name, e)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("the Events of %s are %v, want %v", config.Name, got, want)
		}
	}
}
