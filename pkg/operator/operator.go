// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package operator puts the parts together: it builds the manager that runs the
// reconcilers. A main of one's own, with upgraders of one's own, needs this
// package, pkg/upgrader and pkg/steps.
package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/cincinnati"
	"github.com/appuio/managed-upgrade-operator/pkg/controller"
	"github.com/appuio/managed-upgrade-operator/pkg/dependency"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
	"github.com/appuio/managed-upgrade-operator/pkg/metrics"
	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
	"github.com/appuio/managed-upgrade-operator/pkg/muo"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// LeaderElectionID names the Lease of the leader.
const LeaderElectionID = "managed-upgrade-operator.managedupgrade.appuio.io"

// Times of the leader election that OpenShift asks of its operators: a leader rides out an API server that is away for
// a minute, as it is in every upgrade of the cluster.
const (
	LeaseDuration = 137 * time.Second
	RenewDeadline = 107 * time.Second
	RetryPeriod   = 26 * time.Second
)

// passTimeout bounds a pass: a request that hangs must not keep the deadlines of other objects waiting for ever.
const passTimeout = 2 * time.Minute

// Options of an operator.
type Options struct {
	// Namespace to watch; empty for all.
	Namespace string
	// OperatorNamespace is where the leader's Lease and the ClusterVersion stand. Required.
	OperatorNamespace string
	// HealthProbeAddress serves /healthz and /readyz; "0" for none.
	HealthProbeAddress string
	// LeaderElection lets one of several replicas work.
	LeaderElection bool
	// LeaseDuration, RenewDeadline and RetryPeriod of the leader election. Zero stands for the constants of this
	// package.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// Upgraders that jobs can choose. Required.
	Upgraders *upgrader.Registry
	// Catalogue has the steps of which objects of kind Upgrader are made. Nil for upgrader.NewCatalogue().
	Catalogue *upgrader.Catalogue
	// Monitoring says where Prometheus and Alertmanager are.
	Monitoring monitoring.Options
	// Metrics says how metrics are served.
	Metrics MetricsOptions
	// Version of the operator, for the metrics.
	Version string
	// Clock tells the time. Required.
	Clock clock.PassiveClock
}

// NewScheme returns a scheme with the kinds that the operator reads and writes.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		batchv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme, v1beta1.AddToScheme, v1alpha1.AddToScheme, apiserverv1.Install, configv1.Install, machinev1beta1.Install, mcfgv1.Install,
		operatorsv2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	metav1.AddMetaToScheme(scheme) //nolint:errcheck // registers fixed types; it returns nil or panics
	return scheme, nil
}

// New returns a manager with all reconcilers, ready to be started. ctx is used while building only.
func New(ctx context.Context, config *rest.Config, o Options) (ctrl.Manager, error) {
	if o.OperatorNamespace == "" || o.Upgraders == nil || o.Clock == nil {
		return nil, errors.New("build the operator: OperatorNamespace, Upgraders and Clock are required")
	}
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	watcher, err := monitoring.New(o.Monitoring)
	if err != nil {
		return nil, fmt.Errorf("build the client of the monitoring: %w", err)
	}
	profile := &tlsProfile{clock: o.Clock, log: ctrl.Log.WithName("metrics")}
	serving, err := metricsServer(o.Metrics, profile, o.Clock)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(withoutRepeatedWarnings(config), ctrl.Options{
		Scheme:                        scheme,
		Controller:                    ctrlconfig.Controller{ReconciliationTimeout: passTimeout},
		Cache:                         cacheOptions(o.Namespace, o.OperatorNamespace),
		Metrics:                       serving,
		HealthProbeBindAddress:        o.HealthProbeAddress,
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              LeaderElectionID,
		LeaderElectionNamespace:       o.OperatorNamespace,
		LeaderElectionReleaseOnCancel: true, // the process ends when the manager does
		LeaseDuration:                 ptr.To(orDefault(o.LeaseDuration, LeaseDuration)),
		RenewDeadline:                 ptr.To(orDefault(o.RenewDeadline, RenewDeadline)),
		RetryPeriod:                   ptr.To(orDefault(o.RetryPeriod, RetryPeriod)),
	})
	if err != nil {
		return nil, fmt.Errorf("build the manager: %w", explain(err))
	}
	profile.reader = mgr.GetAPIReader()
	upgraders := &upgrader.Finder{Registry: o.Upgraders, Catalogue: cmp.Or(o.Catalogue, upgrader.NewCatalogue()), Reader: mgr.GetClient()}
	collector := newCollector(mgr, upgraders, o)
	if err := addReconcilers(ctx, mgr, watcher, upgraders, collector, o); err != nil {
		return nil, explain(err)
	}
	if err := addProbes(mgr); err != nil {
		return nil, err
	}
	if err := ctrlmetrics.Registry.Register(collector); err != nil {
		return nil, fmt.Errorf("register the metrics: %w", err)
	}
	return mgr, nil
}

// withoutRepeatedWarnings logs a warning of the API server once: it warns of each Job of a hook that it does not meet the
// pod security level of its namespace, before the security context constraints have seen to that.
func withoutRepeatedWarnings(config *rest.Config) *rest.Config {
	if config == nil {
		return nil // the manager says so
	}
	config = rest.CopyConfig(config)
	if config.WarningHandler == nil && config.WarningHandlerWithContext == nil {
		config.WarningHandlerWithContext = log.NewKubeAPIWarningLogger(log.KubeAPIWarningLoggerOptions{Deduplicate: true})
	}
	return config
}

// explain says what to do about a cluster that lacks a kind.
func explain(err error) error {
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("%w: the operator needs an OpenShift cluster, and the CRDs of deploy/crds in it", err)
	}
	return err
}

// cacheOptions keeps the cache small: only the namespace that is watched, and of each object only what is read.
func cacheOptions(namespace, operatorNamespace string) cache.Options {
	options := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			openshift.MachineConfigMetadata(): {Transform: trimMachineConfig},
			openshift.NodeMetadata():          {Transform: trimNode, Field: fields.OneTermEqualSelector(openshift.NodeField, "true")},
		},
	}
	settings := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", muo.ConfigMapName)}
	hookJobs := cache.ByObject{Label: hookJobSelector(), Transform: trimHookJob}
	if namespace == "" {
		options.ByObject[&batchv1.Job{}] = hookJobs
		options.ByObject[&corev1.ConfigMap{}] = settings
		return options
	}
	hookJobs.Namespaces = map[string]cache.Config{namespace: {}}
	options.ByObject[&batchv1.Job{}] = hookJobs
	settings.Namespaces = map[string]cache.Config{namespace: {}}
	options.ByObject[&corev1.ConfigMap{}] = settings
	// Not by DefaultNamespaces: that would lead every read of a cluster-scoped kind through a detour.
	for _, kind := range []client.Object{&v1alpha1.UpgradeConfig{}, &v1beta1.NodeForceDrain{}, &v1beta1.UpgradeConfig{}, &v1beta1.UpgradeJob{}, &v1beta1.UpgradeJobHook{}, &v1beta1.UpgradeSuspensionWindow{}} {
		options.ByObject[kind] = cache.ByObject{Namespaces: map[string]cache.Config{namespace: {}}}
	}
	// The one that is synced, and those that stand where they have no effect and have to be told so.
	options.ByObject[&v1beta1.ClusterVersion{}] = cache.ByObject{Namespaces: map[string]cache.Config{namespace: {}, operatorNamespace: {}}}
	return options
}

var trimMachineConfig toolscache.TransformFunc = func(o any) (any, error) {
	if mc, ok := o.(*metav1.PartialObjectMetadata); ok {
		openshift.TrimMachineConfig(mc)
	}
	return o, nil
}

var trimNode toolscache.TransformFunc = func(o any) (any, error) {
	if node, ok := o.(*metav1.PartialObjectMetadata); ok {
		openshift.TrimNode(node)
	}
	return o, nil
}

// hookJobSelector selects the Jobs of hooks.
func hookJobSelector() labels.Selector {
	exists, err := labels.NewRequirement(v1beta1.HookUpgradeJobLabel, selection.Exists, nil)
	if err != nil {
		panic(fmt.Sprintf("%s is no label: %v", v1beta1.HookUpgradeJobLabel, err))
	}
	return labels.NewSelector().Add(*exists)
}

// trimHookJob drops the pod template, in which the whole UpgradeJob is as the environment of each container.
var trimHookJob toolscache.TransformFunc = func(o any) (any, error) {
	if job, ok := o.(*batchv1.Job); ok {
		job.ManagedFields = nil
		job.Spec.Template = corev1.PodTemplateSpec{}
	}
	return o, nil
}

func addReconcilers(ctx context.Context, mgr ctrl.Manager, watcher *monitoring.Client, upgraders *upgrader.Finder, collector *metrics.Collector, o Options) error {
	if err := controller.SetupCache(ctx, mgr.GetCache()); err != nil {
		return err
	}
	cluster := openshift.NewCluster(mgr.GetClient(), mgr.GetAPIReader())
	recorder := mgr.GetEventRecorder("managed-upgrade-operator")
	jobs := &controller.UpgradeJobReconciler{
		Client: mgr.GetClient(), Cluster: cluster, Monitoring: watcher, Upgraders: upgraders, Clock: o.Clock, Events: recorder,
		Namespace: o.Namespace, Hooks: &hooks.Engine{Client: mgr.GetClient(), Live: mgr.GetAPIReader()}, Dependencies: &dependency.Prober{},
		Live: mgr.GetAPIReader(), StepCompleted: collector.StepCompleted,
	}
	for name, reconciler := range map[string]interface{ SetupWithManager(ctrl.Manager) error }{
		"Upgrader": &controller.UpgraderReconciler{
			Client: mgr.GetClient(), Upgraders: upgraders, Clock: o.Clock,
		},
		"UpgradeConfig": &controller.UpgradeConfigReconciler{
			Client: mgr.GetClient(), Cluster: cluster, Upgraders: upgraders, Clock: o.Clock, Events: recorder, Namespace: o.Namespace,
		},
		"UpgradeJob": jobs,
		"UpgradeConfig of the Managed Upgrade Operator": &controller.MUOUpgradeConfigReconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Cluster: cluster, Graph: &cincinnati.Client{}, Clock: o.Clock, Events: recorder,
		},
		"notifications": &controller.NotificationReconciler{
			Client: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Cluster: cluster, Clock: o.Clock, Jobs: jobs,
		},
		"UpgradeJobHook": &controller.UpgradeJobHookReconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Upgraders: upgraders, Clock: o.Clock,
		},
		"UpgradeSuspensionWindow": &controller.UpgradeSuspensionWindowReconciler{
			Client: mgr.GetClient(), Clock: o.Clock,
		},
		"ClusterVersion": &controller.ClusterVersionReconciler{
			Client: mgr.GetClient(), Cluster: cluster, Clock: o.Clock, Namespace: o.OperatorNamespace, JobNamespace: o.Namespace,
		},
		"NodeForceDrain": &controller.NodeForceDrainReconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: o.Clock, Events: recorder, Namespace: cmp.Or(o.Namespace, o.OperatorNamespace),
		},
	} {
		if err := reconciler.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("set up the reconciler of %s: %w", name, err)
		}
	}
	return addOperatorCondition(mgr, o)
}

// addOperatorCondition lets the Operator Lifecycle Manager know when not to replace the operator, if that manager has installed it. What it names
// is in the environment and not an option, so that a main of one's own has this too.
func addOperatorCondition(mgr ctrl.Manager, o Options) error {
	name := os.Getenv(controller.OperatorConditionVariable)
	if name == "" {
		return nil
	}
	condition := &controller.OperatorConditionReconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Name: name, Namespace: o.OperatorNamespace, JobNamespace: o.Namespace, Clock: o.Clock,
	}
	if err := condition.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up the reconciler of the OperatorCondition: %w", err)
	}
	return nil
}

// probeTimeout is how long a readiness probe looks for the cache before it says no.
const probeTimeout = 500 * time.Millisecond

func addProbes(mgr ctrl.Manager) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add the liveness probe: %w", err)
	}
	// Without its cache a replica is of no use, as leader or as the next one.
	synced := func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), probeTimeout)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the cache is not synced")
		}
		return nil
	}
	if err := mgr.AddReadyzCheck("cache", synced); err != nil {
		return fmt.Errorf("add the readiness probe: %w", err)
	}
	return nil
}

func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}
