// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package muo

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/names"
)

// SettingsAnnotation is, on an UpgradeJob, a hash of what it was made of: the release and the tunables. A job that has not started and was made
// of something else is replaced.
const SettingsAnnotation = "managedupgrade.appuio.io/muo-settings"

const (
	// Lengths of the hashes in the name of a job and in its annotation, in hex digits.
	nameHashLength     = 7
	settingsHashLength = 16
	// endless is how long an upgrade may take where nothing bounds it.
	endless = maxMinutes * time.Minute
	// generous is how long an upgrade may take beyond the time in which it has to commence.
	generous = 72 * time.Hour
)

// JobName is the name of the job for the object's spec; empty for a spec without a time. It depends on nothing else, so that a process that
// ends before it has recorded a job cannot make a second one. A field that is added to the spec must be left out where it is empty, or every
// object would ask for another upgrade.
func JobName(config *v1alpha1.UpgradeConfig) string {
	at, err := upgradeAt(config.Spec)
	if err != nil {
		return ""
	}
	suffix := fmt.Sprintf("-%d-%s", at.Unix(), hash([]any{config.Name, config.Spec}, nameHashLength))
	return names.WithSuffix(config.Name, suffix, validation.LabelValueMaxLength)
}

func hash(value any, digits int) string {
	sum := sha256.New()
	// Encoding cannot fail for what was decoded, nor can the hash.
	_ = json.NewEncoder(sum).Encode(value)
	return hex.EncodeToString(sum.Sum(nil))[:digits]
}

// Job describes the job for an object that was judged valid, as of now.
func Job(config *v1alpha1.UpgradeConfig, settings Settings, judgement Judgement, now time.Time) *v1beta1.UpgradeJob {
	spec := v1beta1.UpgradeJobSpec{
		DesiredVersion:                  &v1beta1.DesiredVersion{Version: judgement.Release.Version, Image: judgement.Release.Image},
		DesiredVersionCheckAvailability: ptr.To(judgement.CheckAvailability),
		Config:                          jobConfig(config, settings),
	}
	made := hash(spec, settingsHashLength)
	start := startAfter(config, now)
	spec.StartAfter = metav1.NewTime(start)
	spec.StartBefore = metav1.NewTime(start.Add(window(settings)))
	return &v1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{
			Name:            JobName(config),
			Namespace:       config.Namespace,
			Labels:          map[string]string{v1alpha1.UpgradeConfigLabel: config.Name},
			Annotations:     map[string]string{SettingsAnnotation: made},
			Finalizers:      []string{v1beta1.UpgradeJobFinalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(config, v1alpha1.GroupVersion.WithKind("UpgradeConfig"))},
		},
		Spec: spec,
	}
}

// startAfter is the start of the job. A time before the object was there stands for now.
func startAfter(config *v1alpha1.UpgradeConfig, now time.Time) time.Time {
	at, _ := upgradeAt(config.Spec) // it was judged
	if at.Before(config.CreationTimestamp.Time) {
		return now.UTC().Truncate(time.Second)
	}
	return at
}

// window is how long after its start the upgrade has to have commenced.
func window(settings Settings) time.Duration {
	if settings.UpgradeWindow == 0 {
		return endless
	}
	return settings.UpgradeWindow
}

func jobConfig(config *v1alpha1.UpgradeConfig, s Settings) v1beta1.UpgradeJobConfig {
	whole := min(window(s)+generous, endless)
	stages := v1beta1.StageNotificationsOutcome
	if s.ServiceLog {
		stages = v1beta1.StageNotificationsAll
	}
	c := v1beta1.UpgradeJobConfig{
		Upgrader:       string(config.Spec.Type),
		UpgradeTimeout: duration(whole),
		// The window ends a job whose cluster does not get healthy, not the health check.
		PreUpgradeHealthChecks:  healthChecks(s, window(s)),
		PostUpgradeHealthChecks: healthChecks(s, whole),
		Channel:                 config.Spec.Desired.Channel,
		UpgradeWindow:           &v1beta1.UpgradeWindow{TimeOut: duration(s.UpgradeWindow), DelayTrigger: duration(s.DelayTrigger)},
		Maintenance:             &v1beta1.Maintenance{ControlPlaneTime: duration(s.ControlPlaneTime), ControlPlaneCriticals: s.ControlPlaneCriticals},
		CapacityReservation: &v1beta1.CapacityReservation{
			Enabled: config.Spec.CapacityReservation, TimeOut: duration(s.ScaleTimeout), ExtraMachinePools: s.ExtraMachinePools,
		},
		NodeDrain: &v1beta1.NodeDrain{
			TimeOut: duration(s.NodeDrainTimeout), ExpectedNodeDrainTime: duration(s.ExpectedNodeDrainTime),
			DisableDrainStrategies: s.DisableDrainStrategies, IgnoredNamespacePatterns: s.IgnoredNamespacePatterns,
		},
		PDBForceDrainTimeout: duration(time.Duration(config.Spec.PDBForceDrainTimeout) * time.Minute),
		StageNotifications:   stages,
		Notifications:        s.Notifications,
	}
	if len(s.HTTPURLs) > 0 {
		c.ExternalDependencies = &v1beta1.ExternalDependencies{HTTP: &v1beta1.HTTPDependencies{Timeout: duration(s.HTTPTimeout), URLs: s.HTTPURLs}}
	}
	if s.FedRAMP {
		c.PostUpgradeTasks = &v1beta1.PostUpgradeTasks{ReinitializeFileIntegrity: true}
	}
	return *c.DeepCopy() // the settings are shared
}

// healthChecks are alerts and operators alone, as in the Managed Upgrade Operator, or every check there is. Budgets that allow no disruption are what
// PDBForceDrainTimeout is for; they count only where nobody may force a drain.
func healthChecks(s Settings, timeout time.Duration) v1beta1.HealthChecks {
	checks := v1beta1.HealthChecks{Timeout: duration(timeout), ExcludeNamespaces: s.IgnoredNamespaces}
	for _, name := range s.IgnoredCriticals {
		checks.ExcludeAlerts = append(checks.ExcludeAlerts, v1beta1.ExcludedAlert{AlertName: name})
	}
	if !s.PreHealthCheck {
		checks.CheckNodes, checks.CheckMachineConfigPools, checks.CheckRemovedAPIs = ptr.To(false), ptr.To(false), ptr.To(false)
	}
	if !s.PreHealthCheck || !s.DisableDrainStrategies {
		checks.CheckPodDisruptionBudgets = ptr.To(false)
	}
	if !s.DisableDrainStrategies { // a budget that allows no eviction is what PDBForceDrainTimeout is for
		checks.CheckPodDisruptionBudgets = ptr.To(false)
	}
	return checks
}

func duration(d time.Duration) *v1beta1.Duration { return &v1beta1.Duration{Duration: d} }
