// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

// The ConfigMap that holds the live scenario, and the key in it.
const (
	Namespace     = "openshift-simulator"
	ConfigMapName = "scenario"
	configMapKey  = "scenario.yaml"
)

// Update changes the live scenario: change gets the present one, and Run acts on
// the outcome within milliseconds. It is safe to call from several goroutines;
// change may be called again after a conflict, so it must not have side effects.
//
// Refusals of MachineSets (MachineSetFault.Refused) are in force when it returns. They
// are the one thing that an edit of the ConfigMap by hand does not change.
func Update(ctx context.Context, cfg *rest.Config, change func(*Scenario)) error {
	var before, after *MachineAPI
	core, err := corev1client.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("build client: %w", err)
	}
	configMaps := core.ConfigMaps(Namespace)
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		cm, err := configMaps.Get(ctx, ConfigMapName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s, err := scenarioOf(cm)
		if err != nil {
			return err
		}
		before = s.MachineAPI.clone()
		change(&s)
		after = s.MachineAPI
		if err := s.Validate(); err != nil {
			return err
		}
		text, err := s.YAML()
		if err != nil {
			return err
		}
		cm.Data = map[string]string{configMapKey: text}
		_, err = configMaps.Update(ctx, cm, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("update scenario %s/%s: %w", Namespace, ConfigMapName, err)
	}
	return refuse(ctx, cfg, before, after)
}

// configMap holds a scenario.
func configMap(s Scenario) (*corev1.ConfigMap, error) {
	text, err := s.YAML()
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: ConfigMapName},
		Data:       map[string]string{configMapKey: text},
	}, nil
}

// scenarioOf reads the scenario in a ConfigMap.
func scenarioOf(cm *corev1.ConfigMap) (Scenario, error) {
	text, found := cm.Data[configMapKey]
	if !found {
		return Scenario{}, fmt.Errorf("ConfigMap %s/%s has no key %s", cm.Namespace, cm.Name, configMapKey)
	}
	return Parse([]byte(text), Scenario{})
}
