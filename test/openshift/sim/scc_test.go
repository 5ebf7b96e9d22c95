// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// filledContainer is the security context of a container that said nothing.
func filledContainer() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), RunAsNonRoot: new(true), RunAsUser: new(int64(1000650000)),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// filledPod is the security context of a pod that said nothing.
func filledPod() *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{
		FSGroup: new(int64(1000650000)), SELinuxOptions: &corev1.SELinuxOptions{Level: "s0:c26,c5"},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

func TestSecurityContextsAreFilledIn(t *testing.T) {
	c := start(t, quick())
	namespace := c.newNamespace("constrained-")
	tests := []struct {
		reason   string
		edit     func(*corev1.PodSpec)
		wantPod  func(*corev1.PodSecurityContext)
		wantMain func(*corev1.SecurityContext)
	}{
		{
			reason: "nothing is said",
			edit:   func(*corev1.PodSpec) {},
		}, {
			reason: "what is said stays",
			edit: func(spec *corev1.PodSpec) {
				spec.SecurityContext = &corev1.PodSecurityContext{
					FSGroup: new(int64(7)), SupplementalGroups: []int64{8}, SELinuxOptions: &corev1.SELinuxOptions{Type: "container_t", Level: "s0"},
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: new("mine")},
				}
				spec.Containers[0].SecurityContext = &corev1.SecurityContext{
					RunAsUser: new(int64(9)), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_BIND_SERVICE"}, Drop: []corev1.Capability{"KILL"}},
				}
			},
			wantPod: func(want *corev1.PodSecurityContext) {
				*want = corev1.PodSecurityContext{
					FSGroup: new(int64(7)), SupplementalGroups: []int64{8}, SELinuxOptions: &corev1.SELinuxOptions{Type: "container_t", Level: "s0"},
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: new("mine")},
				}
			},
			wantMain: func(want *corev1.SecurityContext) {
				want.RunAsUser, want.ReadOnlyRootFilesystem = new(int64(9)), new(true)
				want.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"NET_BIND_SERVICE"}, Drop: []corev1.Capability{"KILL", "ALL"}}
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			pod := newPod(namespace, tt.edit)
			if err := c.client.Create(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			wantPod, wantMain := filledPod(), filledContainer()
			if tt.wantPod != nil {
				tt.wantPod(wantPod)
				tt.wantMain(wantMain)
			}
			if diff := cmp.Diff(wantPod, pod.Spec.SecurityContext); diff != "" {
				t.Errorf("pod (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(wantMain, pod.Spec.Containers[0].SecurityContext); diff != "" {
				t.Errorf("container (-want +got):\n%s", diff)
			}
			for i, other := range []corev1.Container{pod.Spec.Containers[1], pod.Spec.InitContainers[0]} {
				if diff := cmp.Diff(filledContainer(), other.SecurityContext); diff != "" {
					t.Errorf("other container %d (-want +got):\n%s", i, diff)
				}
			}
			if scc := pod.Annotations["openshift.io/scc"]; scc != "restricted-v2" {
				t.Errorf("admitted by %q", scc)
			}
		})
	}
}

// newPod has two containers and an init container, which say nothing of security.
func newPod(namespace string, edit func(*corev1.PodSpec)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "pod-"},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "init", Image: "image"}},
			Containers: []corev1.Container{
				{Name: "main", Image: "image", Env: []corev1.EnvVar{{Name: "TWICE", Value: "1"}, {Name: "TWICE", Value: "2"}}},
				{Name: "beside", Image: "image"},
			},
		},
	}
	edit(&pod.Spec)
	return pod
}

func TestUserOfTheNamespaceIsUsed(t *testing.T) {
	c := start(t, quick())
	name := c.newNamespace("ranged-")
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.get(ns)
	ns.Annotations = map[string]string{"openshift.io/sa.scc.uid-range": "1000720000/10000", "openshift.io/sa.scc.mcs": "s0:c1,c2"}
	if err := c.client.Update(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	c.eventually("pod of that user", func() bool {
		pod := newPod(name, func(*corev1.PodSpec) {})
		if err := c.client.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		return *pod.Spec.Containers[0].SecurityContext.RunAsUser == 1000720000 &&
			*pod.Spec.SecurityContext.FSGroup == 1000720000 && pod.Spec.SecurityContext.SELinuxOptions.Level == "s0:c1,c2"
	})
}

func TestPodsThatAskForMoreAreLeftAlone(t *testing.T) {
	c := start(t, quick())
	restricted := c.newNamespace("restricted-")
	free := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.newNamespace("free-")}}
	c.get(free)
	free.Labels["pod-security.kubernetes.io/enforce"] = "privileged"
	if err := c.client.Update(t.Context(), free); err != nil {
		t.Fatal(err)
	}
	container := func(sc corev1.SecurityContext) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) { spec.InitContainers[0].SecurityContext = &sc }
	}
	tests := map[string]func(*corev1.PodSpec){
		"privileged":   container(corev1.SecurityContext{Privileged: new(true)}),
		"root":         container(corev1.SecurityContext{RunAsUser: new(int64(0))}),
		"anybody":      container(corev1.SecurityContext{RunAsNonRoot: new(false)}),
		"escalation":   container(corev1.SecurityContext{AllowPrivilegeEscalation: new(true)}),
		"a capability": container(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}}),
		"the whole pod is root": func(spec *corev1.PodSpec) {
			spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(0))}
		},
		"the host's network":   func(spec *corev1.PodSpec) { spec.HostNetwork = true },
		"the host's processes": func(spec *corev1.PodSpec) { spec.HostPID = true },
		"the host's files": func(spec *corev1.PodSpec) {
			spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		},
	}
	for name, edit := range tests {
		t.Run(name, func(t *testing.T) {
			if err := c.client.Create(t.Context(), newPod(restricted, edit)); !apierrors.IsForbidden(err) {
				t.Errorf("where the level restricted is enforced: %v, want Forbidden", err)
			}
			var pod *corev1.Pod
			c.eventually("pod admitted where nothing is enforced", func() bool {
				pod = newPod(free.Name, edit)
				return c.client.Create(t.Context(), pod) == nil
			})
			if pod.Spec.Containers[0].SecurityContext != nil || pod.Annotations["openshift.io/scc"] != "" {
				t.Errorf("it was changed: %v, %v", pod.Annotations, pod.Spec.Containers[0].SecurityContext)
			}
		})
	}
}
