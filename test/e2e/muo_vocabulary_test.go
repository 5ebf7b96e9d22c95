// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// theChannel is the one that the clusters of the tests are in.
var theChannel = sim.Default().Channel

// aManaged is an object of the Managed Upgrade Operator that wants the offered release now.
func aManaged(changes ...func(*v1alpha1.UpgradeConfig)) *v1alpha1.UpgradeConfig {
	config := &v1alpha1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: v1alpha1.UpgradeConfigName},
		Spec: v1alpha1.UpgradeConfigSpec{
			Type: v1alpha1.OSD, UpgradeAt: "2020-06-20T12:00:00Z", PDBForceDrainTimeout: 60,
			Desired: v1alpha1.Update{Channel: theChannel, Version: offered},
		},
	}
	for _, change := range changes {
		change(config)
	}
	return config
}

// wanting has the object want a release in a channel.
func wanting(version, channel string) func(*v1alpha1.UpgradeConfig) {
	return func(config *v1alpha1.UpgradeConfig) {
		config.Spec.Desired = v1alpha1.Update{Version: version, Channel: channel}
	}
}

// upgradingAt has the object start at a time.
func upgradingAt(moment time.Time) func(*v1alpha1.UpgradeConfig) {
	return func(config *v1alpha1.UpgradeConfig) { config.Spec.UpgradeAt = moment.UTC().Format(time.RFC3339) }
}

// tunables are the ConfigMap of the Managed Upgrade Operator.
func (c *cluster) tunables(content string) *corev1.ConfigMap {
	c.t.Helper()
	object := create(c, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: "managed-upgrade-operator-config"},
		Data:       map[string]string{"config.yaml": content},
	})
	c.atEnd = append(c.atEnd, func() {
		if err := client.IgnoreNotFound(env.Client.Delete(c.ctx, object)); err != nil {
			c.t.Error(err)
		}
	})
	return object
}

// managedExpectation is something that a test wants of the newest entry of the history.
type managedExpectation func(v1alpha1.UpgradeHistory) error

// waitManaged waits until the newest entry of the history is as expected, and returns it.
func (c *cluster) waitManaged(config *v1alpha1.UpgradeConfig, expected ...managedExpectation) v1alpha1.UpgradeHistory {
	c.t.Helper()
	var newest v1alpha1.UpgradeHistory
	c.eventually("UpgradeConfig of the Managed Upgrade Operator", func() error {
		if err := env.Client.Get(c.ctx, client.ObjectKeyFromObject(config), config); err != nil {
			return err
		}
		if len(config.Status.History) == 0 {
			return errors.New("it has no history")
		}
		newest = config.Status.History[0]
		var errs []error
		for _, e := range expected {
			errs = append(errs, e(newest))
		}
		return errors.Join(errs...)
	})
	return newest
}

// inManagedPhase expects a phase of the upgrade to a version.
func inManagedPhase(phase v1alpha1.UpgradePhase, version string) managedExpectation {
	return func(entry v1alpha1.UpgradeHistory) error {
		if entry.Phase != phase || entry.Version != version {
			return fmt.Errorf("the upgrade to %s is %s, want %s %s; conditions %s", entry.Version, entry.Phase, version, phase, managedSummary(entry))
		}
		return nil
	}
}

// managedCondition expects a condition whose message says the words.
func managedCondition(kind string, status metav1.ConditionStatus, words ...string) managedExpectation {
	return func(entry v1alpha1.UpgradeHistory) error {
		for _, condition := range entry.Conditions {
			if condition.Type != kind || condition.Status != status {
				continue
			}
			for _, word := range words {
				if !strings.Contains(condition.Message, word) {
					return fmt.Errorf("the message of %s does not say %q: %s", kind, word, condition.Message)
				}
			}
			return nil
		}
		return fmt.Errorf("want %s=%s, conditions are %s", kind, status, managedSummary(entry))
	}
}

// notValid expects that the object cannot be carried out, for a reason that says the words.
func notValid(words ...string) managedExpectation {
	return managedCondition(v1alpha1.ConditionValid, metav1.ConditionFalse, words...)
}

func managedSummary(entry v1alpha1.UpgradeHistory) string {
	var parts []string
	for _, c := range entry.Conditions {
		parts = append(parts, fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(parts, "; ")
}

// managedJobs returns the jobs of the object.
func (c *cluster) managedJobs(config *v1alpha1.UpgradeConfig) []v1beta1.UpgradeJob {
	c.t.Helper()
	return slices.DeleteFunc(c.allJobs(), func(job v1beta1.UpgradeJob) bool { return !metav1.IsControlledBy(&job, config) })
}

// managedJob waits for the one job of the object.
func (c *cluster) managedJob(config *v1alpha1.UpgradeConfig) *v1beta1.UpgradeJob {
	c.t.Helper()
	var jobs []v1beta1.UpgradeJob
	c.eventually("the job of the object", func() error {
		if jobs = c.managedJobs(config); len(jobs) != 1 {
			return fmt.Errorf("there are %d", len(jobs))
		}
		return nil
	})
	return &jobs[0]
}
