// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// HealthChecks selects health checks and says how long to wait for them.
type HealthChecks struct {
	// timeout is how long to wait for a healthy cluster.
	// +kubebuilder:default="30m"
	// +optional
	Timeout *Duration `json:"timeout,omitempty"`

	// interval is how often to look again at what cannot be watched, such as alerts, while an unhealthy cluster is waited for.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('10m')",message="must be at least 1s and at most 10m"
	// +optional
	Interval *Duration `json:"interval,omitempty"`

	// checkCriticalAlerts requires that no alert of severity critical is firing. Silenced alerts do not count, nor do alerts
	// of this operator, whose names begin with ManagedUpgrade.
	// +kubebuilder:default=true
	// +optional
	CheckCriticalAlerts *bool `json:"checkCriticalAlerts,omitempty"`

	// checkDegradedOperators requires every ClusterOperator to report that it is available and not degraded, and
	// ClusterVersion not to be failing.
	// +kubebuilder:default=true
	// +optional
	CheckDegradedOperators *bool `json:"checkDegradedOperators,omitempty"`

	// skipDegradedOperatorsCheck turns checkDegradedOperators off.
	// +optional
	SkipDegradedOperatorsCheck bool `json:"skipDegradedOperatorsCheck,omitempty"`

	// checkMachineConfigPools requires every MachineConfigPool to be neither degraded nor updating. A paused pool is let alone.
	// +kubebuilder:default=true
	// +optional
	CheckMachineConfigPools *bool `json:"checkMachineConfigPools,omitempty"`

	// checkNodes requires every Node to be ready, not cordoned by hand, and not short of memory, disk or process ids.
	// +kubebuilder:default=true
	// +optional
	CheckNodes *bool `json:"checkNodes,omitempty"`

	// checkPodDisruptionBudgets requires that no PodDisruptionBudget makes the drain of a node impossible. Before an
	// upgrade only.
	// +kubebuilder:default=true
	// +optional
	CheckPodDisruptionBudgets *bool `json:"checkPodDisruptionBudgets,omitempty"`

	// checkUpgradeable requires, for an upgrade to another minor version, that neither ClusterVersion nor any ClusterOperator
	// reports Upgradeable=False. Before an upgrade only.
	// +kubebuilder:default=true
	// +optional
	CheckUpgradeable *bool `json:"checkUpgradeable,omitempty"`

	// checkRemovedAPIs requires, for an upgrade to another minor version, that nobody used an API in the last 24 hours that
	// the Kubernetes version of the target does not serve any more. Before an upgrade only.
	// +kubebuilder:default=true
	// +optional
	CheckRemovedAPIs *bool `json:"checkRemovedAPIs,omitempty"`

	// kubernetesVersion of the target, e.g. "1.33", for checkRemovedAPIs. Only needed where it does not follow from the
	// version of OpenShift: 4.x ships 1.(x+13). If the two differ, the higher one counts.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[0-9]+[.][0-9]+$')",message="must be a minor version such as 1.33"
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// excludeAlerts are left out of checkCriticalAlerts.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=alertname
	// +optional
	ExcludeAlerts []ExcludedAlert `json:"excludeAlerts,omitempty"`

	// excludeNamespaces are left out of checkCriticalAlerts and checkPodDisruptionBudgets: alerts with such a value of the
	// label namespace, and budgets in such a namespace.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	ExcludeNamespaces []string `json:"excludeNamespaces,omitempty"`

	// excludeOperators are left out of checkDegradedOperators: names of ClusterOperators, or names of
	// namespaces, which stand for the ClusterOperators that list them in relatedObjects.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	ExcludeOperators []string `json:"excludeOperators,omitempty"`

	// customQueries are PromQL queries that must return nothing: any sample that is returned means that the cluster is unhealthy.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=query
	// +optional
	CustomQueries []CustomQuery `json:"customQueries,omitempty"`

	// whenUnavailable says what it means for checkCriticalAlerts and customQueries that Prometheus is not there: that the
	// cluster is unhealthy (Fail), or nothing (Ignore). Prometheus is not there where none is configured, where nobody
	// listens at its address or answers in time, and where a gateway says so. An answer that refuses access, that cannot be
	// trusted, or that reports a bad query always means that the cluster is unhealthy.
	// +kubebuilder:default=Fail
	// +optional
	WhenUnavailable UnavailablePolicy `json:"whenUnavailable,omitempty"`
}

// ExcludedAlert names alerts to leave out.
type ExcludedAlert struct {
	// alertname is the name of the alerts.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	AlertName string `json:"alertname"`
}

// CustomQuery is a PromQL query for signs of an unhealthy cluster.
type CustomQuery struct {
	// query is the PromQL expression, e.g. up{job="shop"} != 1. It has to return a vector.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Query string `json:"query"`
}

// UnavailablePolicy says what it means that Prometheus is not there.
//
// +kubebuilder:validation:Enum=Fail;Ignore
type UnavailablePolicy string

const (
	// UnavailableFail means: the cluster counts as unhealthy. It is the default.
	UnavailableFail UnavailablePolicy = "Fail"
	// UnavailableIgnore means: the cluster counts as healthy, as far as Prometheus would tell.
	UnavailableIgnore UnavailablePolicy = "Ignore"
)
