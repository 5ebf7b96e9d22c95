// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
)

// operatorWithAllRights is a client of the operator's service account, to which everything is permitted for the time of the test: what is refused is
// refused by a policy.
func operatorWithAllRights(t *testing.T) client.WithWatch {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "all-rights-for-the-operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: environment.Namespace, Name: name}},
	}
	put(t, binding)
	operator := as(t, environment.OperatorUser)
	eventually(t, "the policies hold", func(ctx context.Context) error {
		refused := 0
		for _, object := range []client.Object{
			&configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "any"}, Spec: configv1.ClusterVersionSpec{ClusterID: "7d0c51de-0a82-4b09-b2b9-414dfee7210a"}},
			&mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "any"}}, machineSet(nil),
		} {
			if err := operator.Create(ctx, object, client.DryRunAll); err != nil && strings.Contains(err.Error(), "denied request: the operator") {
				refused++
			}
		}
		if refused < 3 {
			return errors.New("some do not yet")
		}
		return nil
	})
	return operator
}

// put creates an object for the time of the test.
func put(t *testing.T, object client.Object) {
	t.Helper()
	if err := admin.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(admin.Delete(context.WithoutCancel(t.Context()), object)); err != nil {
			t.Error(err)
		}
	})
}

// write is what the operator tries to write: a JSON merge patch.
type write struct {
	reason, patch string
	// refused is a part of the message of a refusal; empty for what is allowed.
	refused string
}

// check tries each of the writes on the object, as it was made.
func check(t *testing.T, operator client.Client, object client.Object, writes []write) {
	t.Helper()
	for _, w := range writes {
		t.Run(w.reason, func(t *testing.T) {
			target := object.DeepCopyObject().(client.Object)
			err := operator.Patch(t.Context(), target, client.RawPatch(types.MergePatchType, []byte(w.patch)), client.DryRunAll)
			if w.refused == "" {
				if err != nil {
					t.Errorf("%s: %v", w.patch, err)
				}
				if target.GetGeneration() == object.GetGeneration() && strings.Contains(w.patch, `"spec"`) {
					t.Errorf("%s changes nothing, the test is blind", w.patch)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "denied request: "+w.refused) {
				t.Errorf("%s: got %v, want a refusal with %q", w.patch, err, w.refused)
			}
			// It is the operator that is refused, and nobody else.
			if err := admin.Patch(t.Context(), target, client.RawPatch(types.MergePatchType, []byte(w.patch)), client.DryRunAll); err != nil {
				t.Errorf("%s by an administrator: %v", w.patch, err)
			}
		})
	}
}

func TestPolicyOfClusterVersions(t *testing.T) {
	const (
		specOnly       = "of the spec of a ClusterVersion"
		updateOnly     = "of a desired update the operator sets version and image only"
		metadataOnly   = "of the metadata of a ClusterVersion"
		annotationOnly = "of the annotations of a ClusterVersion"
	)
	operator := operatorWithAllRights(t)
	bare := &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version", Annotations: map[string]string{"other": "x"}, Labels: map[string]string{"other": "x"}},
		Spec:       configv1.ClusterVersionSpec{ClusterID: "7d0c51de-0a82-4b09-b2b9-414dfee7210a", Channel: "stable-4.18"},
	}
	put(t, bare)
	check(t, operator, bare, []write{
		{"a desired update and the lock", `{"metadata": {"annotations": {"managedupgrade.appuio.io/upgrade-job": "a/b"}}, "spec": {"desiredUpdate": {"version": "4.18.2", "image": "x", "force": null}}}`, ""},
		{"the lock", `{"metadata": {"annotations": {"managedupgrade.appuio.io/upgrade-job": "a/b"}}}`, ""},
		{"the channel", `{"spec": {"channel": "stable-4.19"}}`, ""},
		{"no channel", `{"spec": {"channel": null}}`, ""},
		{"the update server", `{"spec": {"upstream": "https://updates.example.com/graph"}}`, ""},
		{"capabilities", `{"spec": {"capabilities": {"baselineCapabilitySet": "None"}}}`, ""},
		{"overrides", `{"spec": {"overrides": [{"kind": "Deployment", "group": "apps", "namespace": "n", "name": "x", "unmanaged": true}]}}`, ""},

		{"another cluster", `{"spec": {"clusterID": "95f7c8ce-2211-4968-9c3a-8341ab020727"}}`, specOnly},
		{"force", `{"spec": {"desiredUpdate": {"version": "4.18.2", "force": true}}}`, updateOnly},
		{"architecture", `{"spec": {"desiredUpdate": {"version": "4.18.2", "architecture": "Multi"}}}`, updateOnly},
		{"a label", `{"metadata": {"labels": {"a": "b"}}}`, metadataOnly},
		{"no label", `{"metadata": {"labels": null}}`, metadataOnly},
		{"a finalizer", `{"metadata": {"finalizers": ["example.com/a"]}}`, metadataOnly},
		{"an owner", `{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "x", "uid": "x"}]}}`, metadataOnly},
		{"another annotation", `{"metadata": {"annotations": {"a": "b"}}}`, annotationOnly},
		{"another annotation of the operator's", `{"metadata": {"annotations": {"managedupgrade.appuio.io/other": "b"}}}`, annotationOnly},
		{"an annotation changed", `{"metadata": {"annotations": {"other": "y"}}}`, annotationOnly},
		{"an annotation removed", `{"metadata": {"annotations": {"other": null}}}`, annotationOnly},
		{"all annotations removed", `{"metadata": {"annotations": null}}`, annotationOnly},
	})
	if err := operator.Delete(t.Context(), bare, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "neither creates nor deletes a ClusterVersion") {
		t.Errorf("the operator deletes a ClusterVersion: %v", err)
	}
	status := client.RawPatch(types.MergePatchType, []byte(`{"status": {"desired": {"version": "4.18.1", "image": "x"}, "observedGeneration": 7, "versionHash": "x", "availableUpdates": []}}`))
	if err := operator.Status().Patch(t.Context(), bare.DeepCopy(), status, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "writes no status of a ClusterVersion") {
		t.Errorf("the operator writes the status of a ClusterVersion: %v", err)
	}
}

// What an administrator has forced may stay and go, and does not keep the operator from anything.
func TestPolicyOfClusterVersionsThatAreForced(t *testing.T) {
	operator := operatorWithAllRights(t)
	forced := &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version", Annotations: map[string]string{v1beta1.UpgradeJobAnnotation: "a/b"}},
		Spec: configv1.ClusterVersionSpec{
			ClusterID: "7d0c51de-0a82-4b09-b2b9-414dfee7210a", DesiredUpdate: &configv1.Update{Version: "4.18.2", Force: true},
		},
	}
	put(t, forced)
	const updateOnly = "of a desired update the operator sets version and image only"
	check(t, operator, forced, []write{
		{"the lock is released", `{"metadata": {"annotations": null}}`, ""},
		{"the channel", `{"spec": {"channel": "stable-4.19"}}`, ""},
		{"the update is taken back", `{"spec": {"desiredUpdate": null}}`, ""},
		{"another without force", `{"spec": {"desiredUpdate": {"version": "4.18.3", "force": null}}}`, ""},
		{"another with force", `{"spec": {"desiredUpdate": {"version": "4.18.3"}}}`, updateOnly},
	})
}

func TestPolicyOfMachineConfigPools(t *testing.T) {
	const (
		specOnly       = "of the spec of a MachineConfigPool"
		metadataOnly   = "of the metadata of a MachineConfigPool"
		annotationOnly = "of the annotations of a MachineConfigPool"
	)
	operator := operatorWithAllRights(t)
	pool := &mcfgv1.MachineConfigPool{
		ObjectMeta: metav1.ObjectMeta{Name: "canary", Labels: map[string]string{"other": "x"}, Annotations: map[string]string{"other": "x"}},
		Spec:       mcfgv1.MachineConfigPoolSpec{NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
	}
	put(t, pool)
	check(t, operator, pool, []write{
		{"pause", `{"metadata": {"annotations": {"managedupgrade.appuio.io/upgrade-job": "a/b"}}, "spec": {"paused": true}}`, ""},
		{"another annotation of the operator's", `{"metadata": {"annotations": {"managedupgrade.appuio.io/other": "b"}}}`, ""},

		{"configuration", `{"spec": {"configuration": {"name": "mine"}}}`, specOnly},
		{"maxUnavailable", `{"spec": {"maxUnavailable": 10}}`, specOnly},
		{"nodeSelector", `{"spec": {"nodeSelector": {"matchLabels": {"a": "c"}}}}`, specOnly},
		{"no nodeSelector", `{"spec": {"nodeSelector": null}}`, specOnly},
		{"pause and more", `{"spec": {"paused": true, "machineConfigSelector": {"matchLabels": {"a": "b"}}}}`, specOnly},
		{"a label", `{"metadata": {"labels": {"a": "b"}}}`, metadataOnly},
		{"a finalizer", `{"metadata": {"finalizers": ["example.com/a"]}}`, metadataOnly},
		{"another annotation", `{"metadata": {"annotations": {"a": "b"}}}`, annotationOnly},
		{"an annotation like the operator's", `{"metadata": {"annotations": {"managedupgrade.appuio.io.example.com/a": "b"}}}`, annotationOnly},
		{"an annotation changed", `{"metadata": {"annotations": {"other": "y"}}}`, annotationOnly},
		{"an annotation removed", `{"metadata": {"annotations": {"other": null}}}`, annotationOnly},
	})
	paused := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "paused", Annotations: map[string]string{v1beta1.UpgradeJobAnnotation: "a/b"}}}
	paused.Spec.Paused = true
	put(t, paused)
	check(t, operator, paused, []write{
		{"release", `{"metadata": {"annotations": {"managedupgrade.appuio.io/upgrade-job": null}}, "spec": {"paused": false}}`, ""},
	})
	if err := operator.Delete(t.Context(), pool, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "neither creates nor deletes a MachineConfigPool") {
		t.Errorf("the operator deletes a MachineConfigPool: %v", err)
	}
	status := client.RawPatch(types.MergePatchType, []byte(`{"status": {"machineCount": 7}}`))
	if err := operator.Status().Patch(t.Context(), pool.DeepCopy(), status, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "writes no status of a MachineConfigPool") {
		t.Errorf("the operator writes the status of a MachineConfigPool: %v", err)
	}
}

// Expressions are held against the schemas that the API server serves, as Kubernetes does for status.typeChecking.
func TestPoliciesTypeCheck(t *testing.T) {
	api, err := discovery.NewDiscoveryClientForConfig(plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	checker := &validating.TypeChecker{
		SchemaResolver: &resolver.ClientDiscoveryResolver{Discovery: api},
		RestMapper:     restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(api)),
	}
	policies := &admissionv1.ValidatingAdmissionPolicyList{}
	if err := admin.List(t.Context(), policies, client.MatchingLabels{"app.kubernetes.io/name": name}); err != nil || len(policies.Items) != 3 {
		t.Fatalf("got %d policies: %v", len(policies.Items), err)
	}
	bindings := &admissionv1.ValidatingAdmissionPolicyBindingList{}
	if err := admin.List(t.Context(), bindings, client.MatchingLabels{"app.kubernetes.io/name": name}); err != nil {
		t.Fatal(err)
	}
	bound := map[string]bool{}
	for _, b := range bindings.Items {
		bound[b.Spec.PolicyName] = len(b.Spec.ValidationActions) == 1 && b.Spec.ValidationActions[0] == admissionv1.Deny
	}
	for i := range policies.Items {
		policy := &policies.Items[i]
		if warnings := checker.Check(policy); len(warnings) > 0 {
			t.Errorf("%s: %v", policy.Name, warnings)
		}
		if *policy.Spec.FailurePolicy != admissionv1.Fail || !bound[policy.Name] {
			t.Errorf("%s: an error of it counts as %s, and that it is bound is %t", policy.Name, *policy.Spec.FailurePolicy, bound[policy.Name])
		}
		if of := policy.Spec.MatchConditions[0].Expression; !strings.Contains(of, `"`+environment.OperatorUser+`"`) {
			t.Errorf("%s is about %s", policy.Name, of)
		}
		// The check sees the types: what no object has is an error.
		policy.Spec.Validations = append(policy.Spec.Validations, admissionv1.Validation{Expression: "object.spec.noneOfThatName == 7"})
		if warnings := checker.Check(policy); len(warnings) != 1 {
			t.Errorf("%s: with an error the check says %v", policy.Name, warnings)
		}
	}
}
