// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/appuio/managed-upgrade-operator/test/environment"
)

const ours, legacy = ".managedupgrade.appuio.io", ".upgrade.managed.openshift.io"

// namespaced are the kinds of the operator that belong to a namespace.
var namespaced = []string{
	"clusterversions" + ours, "nodeforcedrains" + ours, "upgradeconfigs" + ours, "upgradejobhooks" + ours, "upgradejobs" + ours,
	"upgradesuspensionwindows" + ours, "upgradeconfigs" + legacy,
}

// grant binds a ClusterRole to a user of that name; in the operator's namespace, or everywhere.
func grant(t *testing.T, role string, everywhere bool) (user string) {
	t.Helper()
	user = "user-of-" + role
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	if everywhere {
		put(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: ref, Subjects: subjects})
	} else {
		put(t, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: user}, RoleRef: ref, Subjects: subjects})
	}
	return user
}

// may asks the API server whether that user may do it to that resource: "pods", "pods/log" or "upgradejobs.managedupgrade.appuio.io/status".
func may(ctx context.Context, t *testing.T, user, verb, resource, namespace string) bool {
	t.Helper()
	resource, sub, _ := strings.Cut(resource, "/")
	parsed := schema.ParseGroupResource(resource)
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, Groups: []string{"system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: parsed.Group, Resource: parsed.Resource, Subresource: sub,
		},
	}}
	if err := admin.Create(ctx, review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// TestRolesOfUsers looks at each role alone: what it permits, and what would be too much.
func TestRolesOfUsers(t *testing.T) {
	read, change := []string{"get", "list", "watch"}, []string{"create", "update", "patch", "delete"}
	all := append(append([]string{}, read...), change...)
	cluster := []string{
		"clusterversions.config.openshift.io", "clusteroperators.config.openshift.io", "machineconfigpools.machineconfiguration.openshift.io",
		"machineconfignodes.machineconfiguration.openshift.io", "machineconfigs.machineconfiguration.openshift.io", "nodes", "upgraders" + ours,
	}
	never := []string{
		"secrets", "configmaps", "pods/exec", "pods/log", "pods/eviction", "serviceaccounts/token", "jobs.batch", "upgradejobs" + ours + "/status", "clusterversions.config.openshift.io",
		"machineconfigs.machineconfiguration.openshift.io", "nodes", "nodeforcedrains" + ours, "clusterversions" + ours, "upgraders" + ours,
	}
	type rule struct{ verbs, resources []string }
	for _, tc := range []struct {
		role       string
		everywhere bool
		can        []rule
		cannot     []rule
	}{
		{
			"managed-upgrade-operator-viewer", true,
			[]rule{{read, namespaced}, {read, cluster}, {read, []string{
				"pods", "namespaces", "poddisruptionbudgets.policy", "jobs.batch", "apirequestcounts.apiserver.openshift.io", "routes.route.openshift.io",
			}}},
			[]rule{{change, namespaced}, {change, never}, {read, []string{"secrets", "configmaps", "pods/log"}}, {change, []string{"pods", "machineconfigpools.machineconfiguration.openshift.io"}}},
		}, {
			"managed-upgrade-operator-namespace-viewer", false,
			[]rule{{read, namespaced}}, []rule{{change, namespaced}, {read, cluster}, {all, never[:8]}},
		}, {
			"managed-upgrade-operator-editor", false,
			[]rule{{all, []string{"upgradeconfigs" + ours, "upgradejobs" + ours, "upgradesuspensionwindows" + ours, "upgradeconfigs" + legacy}}},
			[]rule{{change, never}, {change, []string{"upgradejobhooks" + ours}}, {read, []string{"secrets"}}, {[]string{"deletecollection"}, namespaced}},
		}, {
			"managed-upgrade-operator-hook-author", false,
			[]rule{{all, []string{"upgradejobhooks" + ours}}},
			[]rule{{change, never}, {change, []string{"upgradeconfigs" + ours, "upgradejobs" + ours}}, {all, []string{"secrets", "jobs.batch"}}},
		}, {
			"managed-upgrade-operator-pool-releaser", true,
			[]rule{{append(read, "patch"), []string{"machineconfigpools.machineconfiguration.openshift.io"}}},
			[]rule{{all, never}, {[]string{"create", "update", "delete"}, []string{"machineconfigpools.machineconfiguration.openshift.io"}}},
		},
	} {
		t.Run(tc.role, func(t *testing.T) {
			user := grant(t, tc.role, tc.everywhere)
			first := tc.can[0]
			eventually(t, "the binding holds", func(ctx context.Context) error {
				if !may(ctx, t, user, first.verbs[0], first.resources[0], environment.Namespace) {
					return fmt.Errorf("%s may not %s %s", user, first.verbs[0], first.resources[0])
				}
				return nil
			})
			for want, rules := range map[bool][]rule{true: tc.can, false: tc.cannot} {
				for _, r := range rules {
					for _, resource := range r.resources {
						for _, verb := range r.verbs {
							if got := may(t.Context(), t, user, verb, resource, environment.Namespace); got != want {
								t.Errorf("%s %s is %t, want %t", verb, resource, got, want)
							}
						}
					}
				}
			}
		})
	}
}

// Who may view a namespace sees the operator's kinds in it, who may read the cluster sees everything; and nobody becomes an author of upgrades or hooks by a role
// that they have for another reason.
func TestRolesThatAreAggregated(t *testing.T) {
	put(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	for role, want := range map[string]map[string]bool{
		"view":           {"get upgradejobs" + ours: true, "list nodes": false, "list machineconfigpools.machineconfiguration.openshift.io": false},
		"edit":           {"get upgradejobs" + ours: true, "list nodes": false},
		"admin":          {"get upgradejobs" + ours: true, "list nodes": false},
		"cluster-reader": {"get upgradejobs" + ours: true, "list nodes": true, "list machineconfigpools.machineconfiguration.openshift.io": true, "get secrets": false},
	} {
		user := grant(t, role, role == "cluster-reader")
		eventually(t, role+" is aggregated", func(ctx context.Context) error {
			for what, want := range want {
				verb, resource, _ := strings.Cut(what, " ")
				if got := may(ctx, t, user, verb, resource, environment.Namespace); got != want {
					return fmt.Errorf("that %s may %s is %t", user, what, got)
				}
			}
			return nil
		})
		for _, resource := range namespaced {
			for _, verb := range []string{"create", "update", "patch", "delete"} {
				if may(t.Context(), t, user, verb, resource, environment.Namespace) {
					t.Errorf("%s may %s %s", user, verb, resource)
				}
			}
		}
		if role != "cluster-reader" && may(t.Context(), t, user, "get", "upgradejobs"+ours, "other") {
			t.Errorf("%s sees another namespace", user)
		}
	}
}
