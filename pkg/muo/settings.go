// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package muo

import (
	"time"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

const (
	// ConfigMapName is the name of the ConfigMap with the tunables, in the namespace of the UpgradeConfig.
	ConfigMapName = "managed-upgrade-operator-config"
	// ConfigMapKey is the key in it.
	ConfigMapKey = "config.yaml"
)

// Settings are the tunables.
type Settings struct {
	// UpgradeType is what the ConfigMap names as upgrader. The object decides, not it.
	UpgradeType string

	// ControlPlaneTime bounds the silences of the control plane's window, ControlPlaneCriticals are the critical alerts among them: names, or regular expressions.
	ControlPlaneTime      time.Duration
	ControlPlaneCriticals []string
	// ScaleTimeout is how long an extra machine may take, ExtraMachinePools are globs of the pools that get one beside worker.
	ScaleTimeout      time.Duration
	ExtraMachinePools []string
	// UpgradeWindow is how long after its start the upgrade has to have commenced, DelayTrigger after how long it is told to be late. 0: off.
	UpgradeWindow, DelayTrigger time.Duration
	// Of the drain of a node; see v1beta1.NodeDrain.
	NodeDrainTimeout, ExpectedNodeDrainTime time.Duration
	DisableDrainStrategies                  bool
	IgnoredNamespacePatterns                []string
	// IgnoredCriticals and IgnoredNamespaces are left out of the health checks.
	IgnoredCriticals, IgnoredNamespaces []string
	// HTTPTimeout is the time for an attempt at each of HTTPURLs.
	HTTPTimeout time.Duration
	HTTPURLs    []string
	// Cincinnati asks the update service about channels that the cluster is not in.
	Cincinnati bool
	// FedRAMP adds the tasks after an upgrade.
	FedRAMP bool
	// PreHealthCheck has every health check block an upgrade, not only alerts and operators.
	PreHealthCheck bool
	// ServiceLog tells the receivers of the stages of control plane and workers too.
	ServiceLog bool
	// Notifications are the receivers.
	Notifications []v1beta1.NotificationReceiver

	// Notes say what in the ConfigMap has no effect.
	Notes []string
}

// DefaultSettings are the tunables of a cluster without the ConfigMap, and those of each key that is missing in it.
func DefaultSettings() Settings {
	return Settings{
		ControlPlaneTime:      v1beta1.DefaultControlPlaneTime,
		ScaleTimeout:          v1beta1.DefaultCapacityTimeout,
		UpgradeWindow:         v1beta1.DefaultUpgradeWindow,
		DelayTrigger:          v1beta1.DefaultDelayTrigger,
		NodeDrainTimeout:      v1beta1.DefaultNodeDrainTimeout,
		ExpectedNodeDrainTime: v1beta1.DefaultExpectedNodeDrainTime,
		HTTPTimeout:           v1beta1.DefaultDependencyTimeout,
	}
}

// Names of feature gates, and of the source of configs that is not read.
const (
	gatePreHealthCheck = "PreHealthCheck"
	gateServiceLog     = "ServiceLogNotification"
	sourceOCM          = "OCM"
)

// ParseSettings reads the tunables from the text at ConfigMapKey. What it does not know becomes a note; what it knows and is not as it has
// to be is an error, which names all of it.
func ParseSettings(text string) (Settings, error) {
	r, err := newReader(text)
	if err != nil {
		return Settings{}, err
	}
	s := DefaultSettings()
	gates, source, localName, ignored := []string(nil), "", "", ""
	r.root(func(root section) {
		root.word("upgradeType", &s.UpgradeType)
		root.within("configManager", func(c section) {
			c.word("source", &source)
			c.word("ocmBaseUrl", &ignored)
			c.word("localConfigName", &localName)
			c.number("watchInterval", 0, 0, func(int64) {})
		})
		root.within("maintenance", func(m section) {
			m.minutes("controlPlaneTime", 1, &s.ControlPlaneTime)
			m.within("ignoredAlerts", func(i section) { i.words("controlPlaneCriticals", &s.ControlPlaneCriticals, isPattern) })
		})
		root.within("scale", func(c section) {
			c.minutes("timeOut", 1, &s.ScaleTimeout)
			c.words("extraMachinePools", &s.ExtraMachinePools, isGlob)
		})
		root.within("upgradeWindow", func(w section) {
			w.minutes("timeOut", 0, &s.UpgradeWindow)
			w.minutes("delayTrigger", 0, &s.DelayTrigger)
		})
		root.within("nodeDrain", func(d section) {
			d.minutes("timeOut", 1, &s.NodeDrainTimeout)
			d.minutes("expectedNodeDrainTime", 1, &s.ExpectedNodeDrainTime)
			d.flag("disableDrainStrategies", &s.DisableDrainStrategies)
			d.words("ignoredNamespacePatterns", &s.IgnoredNamespacePatterns, isPattern)
		})
		root.within("healthCheck", func(h section) {
			h.words("ignoredCriticals", &s.IgnoredCriticals, nil)
			h.words("ignoredNamespaces", &s.IgnoredNamespaces, nil)
		})
		root.within("extDependencyAvailabilityChecks", func(e section) {
			e.within("http", func(h section) {
				h.number("timeout", 1, 60, func(n int64) { s.HTTPTimeout = time.Duration(n) * time.Second })
				h.words("urls", &s.HTTPURLs, isURL)
			})
		})
		root.within("validation", func(v section) { v.flag("cincinnati", &s.Cincinnati) })
		root.within("environment", func(e section) { e.flag("fedramp", &s.FedRAMP) })
		root.within("featureGate", func(f section) { f.words("enabled", &gates, nil) })
		root.strict("notifications", &s.Notifications)
	})
	if err := r.err(); err != nil {
		return Settings{}, err
	}
	s.Notes = r.notes
	s.openGates(gates)
	if source == sourceOCM {
		s.note("configManager.source OCM: upgrade policies of OCM are not read, this object is what is carried out")
	}
	if localName != "" && localName != v1alpha1.UpgradeConfigName {
		s.note("configManager.localConfigName " + localName + " is ignored: the object is named " + v1alpha1.UpgradeConfigName)
	}
	return s, nil
}

func (s *Settings) openGates(gates []string) {
	for _, gate := range gates {
		switch gate {
		case gatePreHealthCheck:
			s.PreHealthCheck = true
		case gateServiceLog:
			s.ServiceLog = true
		default:
			s.note("featureGate " + gate + " is not known")
		}
	}
}

func (s *Settings) note(text string) { s.Notes = append(s.Notes, text) }

// NotesFor returns what is to be told of the settings beside the object.
func (s *Settings) NotesFor(config *v1alpha1.UpgradeConfig) []string {
	notes := append([]string(nil), s.Notes...)
	if s.UpgradeType != "" && s.UpgradeType != string(config.Spec.Type) {
		notes = append(notes, "upgradeType "+s.UpgradeType+" is ignored: spec.type is "+string(config.Spec.Type))
	}
	return notes
}
