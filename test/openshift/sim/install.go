// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"golang.org/x/sync/errgroup"
)

// Install makes the API server look like a cluster whose installation of
// s.Version is complete: CRDs, namespaces, the ClusterVersion, ClusterOperators,
// MachineConfigPools with their rendered MachineConfigs, Nodes, what else the
// scenario asks for (MachineConfigNodes, MachineSets, a FileIntegrity), and the
// scenario itself. Pods are admitted as by OpenShift's constraints restricted-v2, if the
// API server serves MutatingAdmissionPolicies.
//
// Objects of an earlier installation are replaced; Run must not be running then.
// A node lifecycle controller must not run on the API server, as it would miss
// the nodes' heartbeats.
func Install(ctx context.Context, cfg *rest.Config, s Scenario) error {
	if err := s.Validate(); err != nil {
		return err
	}
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	if err := clearMachines(ctx, c); err != nil {
		return err
	}
	if err := installCRDs(ctx, c, &s); err != nil {
		return err
	}
	i := &installation{client: c, scenario: &s, now: time.Now()}
	for _, step := range []func(context.Context) error{
		i.clear, i.namespaces, i.securityContextConstraints, i.clusterVersion, i.clusterOperators, i.pools, i.nodes, i.poolStatuses, i.reports,
		i.machines, i.fileIntegrity, i.machineAdmission, i.configMap,
	} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("install simulated OpenShift: %w", err)
		}
	}
	return nil
}

// installation creates the objects of a cluster.
type installation struct {
	client   client.Client
	scenario *Scenario
	now      time.Time

	version *configv1.ClusterVersion
	// owners are the MachineSets of the nodes that have Machines, by node.
	owners map[string]string
	// view collects what the pools' first status is made of.
	view *view
}

// clear removes the objects of an earlier installation.
func (i *installation) clear(ctx context.Context) error {
	kinds := []client.Object{
		&configv1.ClusterOperator{}, &configv1.ClusterVersion{}, &mcfgv1.MachineConfigPool{}, &mcfgv1.MachineConfig{},
	}
	if i.scenario.MachineConfigNodes {
		kinds = append(kinds, &mcfgv1.MachineConfigNode{})
	}
	for _, kind := range kinds {
		if err := i.served(ctx, kind); err != nil {
			return err
		}
		if err := i.client.DeleteAllOf(ctx, kind); err != nil {
			return fmt.Errorf("delete all %T: %w", kind, err)
		}
	}
	if err := i.client.DeleteAllOf(ctx, &corev1.Node{}, client.HasLabels{nodeLabel}); err != nil {
		return fmt.Errorf("delete nodes: %w", err)
	}
	return nil
}

// served waits until a kind whose CRD is established can be listed: discovery
// and the API server's storage follow a moment later.
func (i *installation) served(ctx context.Context, kind client.Object) error {
	gvk, err := i.client.GroupVersionKindFor(kind)
	if err != nil {
		return fmt.Errorf("look up %T: %w", kind, err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk)
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := i.client.List(ctx, list, client.Limit(1))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("wait for %s to be served: %w", gvk.Kind, err)
	}
	return nil
}

// namespaces creates the namespaces in which clients look for something.
func (i *installation) namespaces(ctx context.Context) error {
	for _, name := range []string{
		Namespace, "openshift-cluster-version", "openshift-config", "openshift-config-managed",
		"openshift-machine-api", "openshift-machine-config-operator", "openshift-monitoring",
	} {
		err := i.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	return nil
}

// The installation is told to have begun and ended so long ago.
const (
	installBegan = 50 * time.Minute
	installEnded = 10 * time.Minute
)

// at returns the moment so long before the installation's now.
func (i *installation) at(before time.Duration) metav1.Time {
	return metav1.NewTime(i.now.Add(-before).Truncate(time.Second))
}

// capabilities are those of a default installation.
var capabilities = []configv1.ClusterVersionCapability{
	"Build", "CSISnapshot", "CloudControllerManager", "CloudCredential", "Console", "DeploymentConfig", "ImageRegistry",
	"Ingress", "Insights", "MachineAPI", "NodeTuning", "OperatorLifecycleManager", "OperatorLifecycleManagerV1", "Storage",
	"baremetal", "marketplace", "openshift-samples",
}

// clusterVersion creates ClusterVersion/version with one completed history entry.
func (i *installation) clusterVersion(ctx context.Context) error {
	s := i.scenario
	id := digest("cluster", i.now.String())
	cv := &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: versionName},
		Spec: configv1.ClusterVersionSpec{
			Channel:   s.Channel,
			Upstream:  configv1.URL(s.Upstream),
			ClusterID: configv1.ClusterID(fmt.Sprintf("%s-%s-4%s-8%s-%s", id[:8], id[8:12], id[12:15], id[15:18], id[18:30])),
		},
	}
	if err := i.client.Create(ctx, cv); err != nil {
		return fmt.Errorf("create ClusterVersion: %w", err)
	}
	ended := i.at(installEnded)
	o := s.offerFor(s.Version, s.Channel, i.now)
	cv.Status = configv1.ClusterVersionStatus{
		Desired: s.describe(s.Version),
		History: []configv1.UpdateHistory{{
			State: configv1.CompletedUpdate, StartedTime: i.at(installBegan), CompletionTime: &ended,
			Version: s.Version, Image: s.imageOf(s.Version),
		}},
		ObservedGeneration: cv.Generation,
		VersionHash:        versionHash(s.Version),
		AvailableUpdates:   o.available,
		ConditionalUpdates: o.conditional,
		Capabilities: configv1.ClusterVersionCapabilitiesStatus{
			EnabledCapabilities: capabilities, KnownCapabilities: capabilities,
		},
	}
	cv.Status.Desired.Channels = o.channels
	for _, c := range []configv1.ClusterOperatorStatusCondition{
		condition(conditionCapabilities, configv1.ConditionFalse, reasonAsExpected, "Capabilities match configured spec"),
		condition(conditionReleaseAccepted, configv1.ConditionTrue, reasonPayloadLoaded, loaded(s.Version, s.imageOf(s.Version))+` architecture="amd64"`),
		condition(configv1.OperatorAvailable, configv1.ConditionTrue, "", "Done applying "+s.Version),
		condition(conditionFailing, configv1.ConditionFalse, "", ""),
		condition(configv1.OperatorProgressing, configv1.ConditionFalse, "", "Cluster version is "+s.Version),
		o.retrieved,
	} {
		setCondition(&cv.Status.Conditions, c, ended.Time)
	}
	if err := i.client.Status().Update(ctx, cv); err != nil {
		return fmt.Errorf("update status of ClusterVersion: %w", err)
	}
	i.version = cv
	return nil
}

func (i *installation) clusterOperators(ctx context.Context) error {
	var group errgroup.Group
	group.SetLimit(parallelWrites)
	for _, op := range clusterOperators {
		group.Go(func() error { return i.clusterOperator(ctx, op) })
	}
	return group.Wait()
}

func (i *installation) clusterOperator(ctx context.Context, op clusterOperator) error {
	isController := true
	co := &configv1.ClusterOperator{
		ObjectMeta: metav1.ObjectMeta{
			Name:        op.name,
			Annotations: map[string]string{"include.release.openshift.io/self-managed-high-availability": "true"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: configv1.GroupVersion.String(), Kind: "ClusterVersion", Name: versionName, UID: i.version.UID, Controller: &isController,
			}},
		},
	}
	if err := i.client.Create(ctx, co); err != nil {
		return fmt.Errorf("create ClusterOperator %s: %w", op.name, err)
	}
	co.Status.Versions = operatorVersions(op.name, i.scenario.Version)
	for _, namespace := range op.namespaces {
		co.Status.RelatedObjects = append(co.Status.RelatedObjects, configv1.ObjectReference{Resource: "namespaces", Name: namespace})
	}
	watch := newStopwatch()
	watch.begin(i.now.Add(-installEnded))
	o := operator{op: op, view: &view{scenario: i.scenario}, watch: watch, fault: i.scenario.operatorFault(op.name, i.scenario.Version)}
	o.set(&co.Status, condition(configv1.OperatorProgressing, configv1.ConditionFalse, reasonAsExpected, ""))
	o.judge(&co.Status, nil)
	if err := i.client.Status().Update(ctx, co); err != nil {
		return fmt.Errorf("update status of ClusterOperator %s: %w", op.name, err)
	}
	return nil
}

// configMap keeps the scenario in the cluster. It comes last, as Run looks for it first.
func (i *installation) configMap(ctx context.Context) error {
	cm, err := configMap(*i.scenario)
	if err != nil {
		return err
	}
	err = i.client.Create(ctx, cm)
	if apierrors.IsAlreadyExists(err) {
		err = i.client.Update(ctx, cm)
	}
	if err != nil {
		return fmt.Errorf("write ConfigMap %s/%s: %w", Namespace, ConfigMapName, err)
	}
	return nil
}
