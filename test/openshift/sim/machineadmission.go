// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	_ "embed" // for the manifests
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// machineAdmissionManifests stand for the validating webhook of MachineSets.
//
//go:embed machineadmission.yaml
var machineAdmissionManifests []byte

// refusalsName is the ConfigMap with what the scenario has refused.
const refusalsName = "refused-machinesets"

// machineAdmission installs what refuses MachineSets, and returns once it does.
func (i *installation) machineAdmission(ctx context.Context) error {
	if i.scenario.MachineAPI == nil {
		return nil
	}
	// The API server has to know the parameters before it is told to look at them.
	if err := writeRefusals(ctx, i.client, i.scenario.MachineAPI); err != nil {
		return err
	}
	if err := i.replaceAll(ctx, machineAdmissionManifests); err != nil {
		return fmt.Errorf("install the admission of MachineSets: %w", err)
	}
	if err := awaitRefusal(ctx, i.client, "does not match template", func(probe *machinev1beta1.MachineSet) {
		probe.Spec.Template.Labels = nil
	}); err != nil {
		return err
	}
	return awaitRefusals(ctx, i.client, i.scenario.MachineAPI)
}

// refusals are the patterns of names that are refused, and what is said to them.
func (m *MachineAPI) refusals() map[string]string {
	data := map[string]string{}
	var all []string
	for n, fault := range m.Faults {
		if fault.Refused != "" {
			data[fmt.Sprintf("pattern.%d", n)] = fault.pattern()
			data[fmt.Sprintf("message.%d", n)] = fault.Refused
			all = append(all, fault.pattern(), fault.Refused)
		}
	}
	data["revision"] = digest(all...)[:16]
	return data
}

// writeRefusals tells the API server which MachineSets to refuse.
func writeRefusals(ctx context.Context, c client.Client, m *MachineAPI) error {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: refusalsName}, Data: m.refusals(),
	}
	err := c.Create(ctx, cm.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		err = c.Update(ctx, cm)
	}
	if err != nil {
		return fmt.Errorf("write ConfigMap %s/%s: %w", Namespace, refusalsName, err)
	}
	return nil
}

// awaitRefusals waits until the API server has taken notice of the refusals.
func awaitRefusals(ctx context.Context, c client.Client, m *MachineAPI) error {
	return awaitRefusal(ctx, c, "this revision of the refusals is in force", func(probe *machinev1beta1.MachineSet) {
		probe.Annotations = map[string]string{"revision": m.refusals()["revision"]}
	})
}

// awaitRefusal waits until the API server refuses a MachineSet with these words.
func awaitRefusal(ctx context.Context, c client.Client, words string, edit func(*machinev1beta1.MachineSet)) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		chosen := map[string]string{machineSetLabel: "probe"}
		probe := &machinev1beta1.MachineSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: machineNamespace, Name: "openshift-simulator-probe"},
			Spec: machinev1beta1.MachineSetSpec{
				Replicas: new(int32(0)), Selector: metav1.LabelSelector{MatchLabels: chosen},
				Template: machinev1beta1.MachineTemplateSpec{
					ObjectMeta: machinev1beta1.ObjectMeta{Labels: chosen},
					Spec: machinev1beta1.MachineSpec{
						ProviderSpec: machinev1beta1.ProviderSpec{Value: &runtime.RawExtension{Raw: []byte("{}")}},
					},
				},
			},
		}
		edit(probe)
		last = c.Create(ctx, probe, client.DryRunAll)
		return apierrors.IsForbidden(last) && strings.Contains(last.Error(), words), nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("wait for the admission of MachineSets: %w", err), last)
	}
	return nil
}

// refuse has a change of the scenario's refusals take effect.
func refuse(ctx context.Context, cfg *rest.Config, before, after *MachineAPI) error {
	if before == nil || after == nil || maps.Equal(before.refusals(), after.refusals()) {
		return nil
	}
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	if err := writeRefusals(ctx, c, after); err != nil {
		return err
	}
	return awaitRefusals(ctx, c, after)
}
