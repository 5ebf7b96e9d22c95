// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

// clusterOperator is a ClusterOperator that every cluster has.
type clusterOperator struct {
	name string
	// level is the run level of its manifests in a release: the CVO updates the
	// operators of one level at the same time, and the levels one after the other.
	level int
	// namespaces hold what belongs to it, its own first.
	namespaces []string
}

// machineConfigOperator is the operator that updates the nodes.
const machineConfigOperator = "machine-config"

// clusterOperators is every operator, in the order of the levels and of names
// within a level.
var clusterOperators = []clusterOperator{
	{"config-operator", 10, []string{"openshift-config-operator"}},
	{"etcd", 12, []string{"openshift-etcd-operator", "openshift-etcd"}},
	{"kube-apiserver", 20, []string{"openshift-kube-apiserver-operator", "openshift-kube-apiserver"}},
	{"kube-controller-manager", 25, []string{"openshift-kube-controller-manager-operator", "openshift-kube-controller-manager"}},
	{"kube-scheduler", 25, []string{"openshift-kube-scheduler-operator", "openshift-kube-scheduler"}},
	{"cloud-controller-manager", 26, []string{"openshift-cloud-controller-manager-operator", "openshift-cloud-controller-manager"}},
	{"baremetal", 30, []string{"openshift-machine-api"}},
	{"control-plane-machine-set", 30, []string{"openshift-machine-api"}},
	{"machine-api", 30, []string{"openshift-machine-api"}},
	{"machine-approver", 30, []string{"openshift-cluster-machine-approver"}},
	{"openshift-apiserver", 30, []string{"openshift-apiserver-operator", "openshift-apiserver"}},
	{"authentication", 50, []string{"openshift-authentication-operator", "openshift-authentication", "openshift-oauth-apiserver"}},
	{"cloud-credential", 50, []string{"openshift-cloud-credential-operator"}},
	{"cluster-autoscaler", 50, []string{"openshift-machine-api"}},
	{"console", 50, []string{"openshift-console-operator", "openshift-console"}},
	{"csi-snapshot-controller", 50, []string{"openshift-cluster-storage-operator"}},
	{"image-registry", 50, []string{"openshift-image-registry"}},
	{"ingress", 50, []string{"openshift-ingress-operator", "openshift-ingress", "openshift-ingress-canary"}},
	{"insights", 50, []string{"openshift-insights"}},
	{"kube-storage-version-migrator", 50, []string{"openshift-kube-storage-version-migrator-operator", "openshift-kube-storage-version-migrator"}},
	{"marketplace", 50, []string{"openshift-marketplace"}},
	{"monitoring", 50, []string{"openshift-monitoring"}},
	{"node-tuning", 50, []string{"openshift-cluster-node-tuning-operator"}},
	{"olm", 50, []string{"openshift-cluster-olm-operator", "openshift-operator-controller", "openshift-catalogd"}},
	{"openshift-controller-manager", 50, []string{"openshift-controller-manager-operator", "openshift-controller-manager", "openshift-route-controller-manager"}},
	{"openshift-samples", 50, []string{"openshift-cluster-samples-operator"}},
	{"operator-lifecycle-manager", 50, []string{"openshift-operator-lifecycle-manager"}},
	{"operator-lifecycle-manager-catalog", 50, []string{"openshift-operator-lifecycle-manager"}},
	{"operator-lifecycle-manager-packageserver", 50, []string{"openshift-operator-lifecycle-manager"}},
	{"service-ca", 50, []string{"openshift-service-ca-operator", "openshift-service-ca"}},
	{"storage", 50, []string{"openshift-cluster-storage-operator", "openshift-cluster-csi-drivers"}},
	{"dns", 70, []string{"openshift-dns-operator", "openshift-dns"}},
	{"network", 70, []string{"openshift-network-operator", "openshift-ovn-kubernetes", "openshift-multus"}},
	{machineConfigOperator, 80, []string{"openshift-machine-config-operator"}},
}

// flappingOperators turn Degraded while a master is not ready, because they
// run on all of them.
var flappingOperators = map[string]bool{
	"etcd": true, "kube-apiserver": true, "kube-controller-manager": true, "kube-scheduler": true,
}

// manifestsPerOperator is the number of manifests that the CVO applies for each
// operator, its ClusterOperator last; the sum over all operators is about that
// of a real release.
const manifestsPerOperator = 27

// levelOf returns the run level of an operator, and whether there is one of that name.
func levelOf(name string) (int, bool) {
	for _, op := range clusterOperators {
		if op.name == name {
			return op.level, true
		}
	}
	return 0, false
}

// levels returns the operators by run level, in order.
func levels() [][]clusterOperator {
	var all [][]clusterOperator
	for i, op := range clusterOperators {
		if i == 0 || op.level != clusterOperators[i-1].level {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], op)
	}
	return all
}
