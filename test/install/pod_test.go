// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/pkg/command"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
	"github.com/appuio/managed-upgrade-operator/test/environment"
)

const name = "managed-upgrade-operator"

// read returns the object of that name in the operator's namespace.
func read[T any, P interface {
	*T
	client.Object
}](t *testing.T, name string) P {
	t.Helper()
	object := P(new(T))
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: environment.Namespace, Name: name}, object); err != nil {
		t.Fatal(err)
	}
	return object
}

// podOf is a pod as the Deployment would make it, with changes.
func podOf(t *testing.T, changes ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	template := read[appsv1.Deployment](t, name).Spec.Template
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.GenerateName = environment.Namespace, name+"-"
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// The API server's own admission, at the level restricted, lets the operator's pods in, in the class of priority that they name, and no others.
func TestPodsAreRestricted(t *testing.T) {
	pod := podOf(t)
	if err := admin.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if pod.Spec.Priority == nil || *pod.Spec.Priority != 2000000000 {
		t.Errorf("the priority is %v, want that of system-cluster-critical", pod.Spec.Priority)
	}
	manager := func(change func(*corev1.SecurityContext)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { change(p.Spec.Containers[0].SecurityContext) }
	}
	for reason, change := range map[string]func(*corev1.Pod){
		"privileged":                                   manager(func(s *corev1.SecurityContext) { s.Privileged, s.AllowPrivilegeEscalation = new(true), nil }),
		"allowPrivilegeEscalation != false":            manager(func(s *corev1.SecurityContext) { s.AllowPrivilegeEscalation = nil }),
		"unrestricted capabilities":                    manager(func(s *corev1.SecurityContext) { s.Capabilities = nil }),
		"runAsNonRoot != true":                         func(p *corev1.Pod) { p.Spec.SecurityContext.RunAsNonRoot = nil },
		"seccompProfile":                               func(p *corev1.Pod) { p.Spec.SecurityContext.SeccompProfile = nil },
		"host namespaces":                              func(p *corev1.Pod) { p.Spec.HostNetwork = true },
		"no PriorityClass with name none-of-that-name": func(p *corev1.Pod) { p.Spec.PriorityClassName = "none-of-that-name" },
	} {
		t.Run(reason, func(t *testing.T) {
			err := admin.Create(t.Context(), podOf(t, change), client.DryRunAll)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), reason) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// What selects the pods selects them, what names a port names one, and the flags are flags.
func TestObjectsFitTogether(t *testing.T) {
	pod := podOf(t)
	container := pod.Spec.Containers[0]
	ports := map[string]int32{}
	for _, p := range container.Ports {
		ports[p.Name] = p.ContainerPort
	}

	deployment := read[appsv1.Deployment](t, name)
	budget := read[policyv1.PodDisruptionBudget](t, name)
	policy := read[networkingv1.NetworkPolicy](t, name)
	service := read[corev1.Service](t, name+"-metrics")
	selectors := map[string]*metav1.LabelSelector{
		"Deployment": deployment.Spec.Selector, "PodDisruptionBudget": budget.Spec.Selector, "NetworkPolicy": &policy.Spec.PodSelector,
		"Service":                     {MatchLabels: service.Spec.Selector},
		"anti-affinity":               pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector,
		"topology spread constraints": pod.Spec.TopologySpreadConstraints[0].LabelSelector,
	}
	for of, s := range selectors {
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil || selector.Empty() || !selector.Matches(labels.Set(pod.Labels)) {
			t.Errorf("%s selects %q, the pods have %q: %v", of, selector, pod.Labels, err)
		}
	}
	named := []string{
		container.LivenessProbe.HTTPGet.Port.StrVal, container.ReadinessProbe.HTTPGet.Port.StrVal,
		service.Spec.Ports[0].TargetPort.StrVal, policy.Spec.Ingress[0].Ports[0].Port.StrVal,
	}
	for _, port := range named {
		if ports[port] == 0 {
			t.Errorf("there is no port %q, but %v", port, slices.Collect(maps.Keys(ports)))
		}
	}
	if got := service.Spec.Ports[0].Port; got != ports["https"] {
		t.Errorf("a headless Service has the port %d, the pod %d", got, ports["https"])
	}
	if mount, volume := container.VolumeMounts[0], pod.Spec.Volumes[0]; volume.Secret == nil || mount.Name != volume.Name ||
		volume.Secret.SecretName != service.Annotations["service.beta.openshift.io/serving-cert-secret-name"] ||
		!slices.Contains(container.Args, "--metrics-cert-dir="+mount.MountPath) {
		t.Errorf("the certificate goes from the Service's annotations %q by the volume %v to %q, and the flags are %q", service.Annotations, volume, mount.MountPath, container.Args)
	}
	checkFlags(t, container.Args, ports)
}

// checkFlags has the operator parse its flags.
func checkFlags(t *testing.T, args []string, ports map[string]int32) {
	t.Helper()
	var out bytes.Buffer
	if err := command.Run(t.Context(), append(slices.Clone(args), "--version"), &out, &out, command.Options{Upgraders: upgrader.BuiltIn()}); err != nil {
		t.Errorf("the flags %q: %v", args, err)
	}
	for flag, port := range map[string]string{"--metrics-bind-address": "https", "--health-probe-bind-address": "probes"} {
		if want := flag + "=:" + fmt.Sprint(ports[port]); !slices.Contains(args, want) {
			t.Errorf("the flags %q have no %s", args, want)
		}
	}
}

// A replica survives the drain of its node, and never holds one up.
func TestPodsLeaveNodesThatAreDrained(t *testing.T) {
	deployment := read[appsv1.Deployment](t, name)
	pod := podOf(t)
	if *deployment.Spec.Replicas != 2 || deployment.Spec.Strategy.RollingUpdate.MaxSurge.IntValue() != 0 {
		t.Errorf("there are %d replicas, and %s more during a rollout", *deployment.Spec.Replicas, deployment.Spec.Strategy.RollingUpdate.MaxSurge)
	}
	unschedulable := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	master := corev1.Taint{Key: "node-role.kubernetes.io/master", Effect: corev1.TaintEffectNoSchedule}
	tolerates := func(taint corev1.Taint) bool {
		return slices.ContainsFunc(pod.Spec.Tolerations, func(to corev1.Toleration) bool {
			return (to.Key == taint.Key || to.Key == "") && (to.Effect == taint.Effect || to.Effect == "") && to.Operator == corev1.TolerationOpExists
		})
	}
	if tolerates(unschedulable) || !tolerates(master) {
		t.Errorf("the tolerations are %v", pod.Spec.Tolerations)
	}
	if terms := pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution; terms[0].TopologyKey != corev1.LabelHostname {
		t.Errorf("two replicas may be on one node: %v", terms)
	}
	budget := read[policyv1.PodDisruptionBudget](t, name).Spec
	if budget.MinAvailable != nil || budget.MaxUnavailable.IntValue() != 1 || *budget.UnhealthyPodEvictionPolicy != policyv1.AlwaysAllow {
		t.Errorf("the budget is %v", budget)
	}
	if resources := pod.Spec.Containers[0].Resources; len(resources.Limits) != 0 || resources.Requests.Cpu().IsZero() || resources.Requests.Memory().IsZero() {
		t.Errorf("the resources are %v", resources)
	}
}
