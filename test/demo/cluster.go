// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/test/environment"
)

// observer keeps up with what is shown of the cluster, by watches.
type observer struct {
	client  client.Client
	cluster *openshift.Cluster
	// changed has an element when something is different from what was last seen.
	changed chan struct{}
}

// observe starts to watch; it returns once everything has been seen. The watches end with ctx.
func observe(ctx context.Context, config *rest.Config, admin client.Client) (*observer, error) {
	seen, err := cache.New(config, cache.Options{Scheme: admin.Scheme(), DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return nil, fmt.Errorf("build a cache: %w", err)
	}
	o := &observer{changed: make(chan struct{}, 1)}
	for _, kind := range []client.Object{
		&v1beta1.UpgradeConfig{}, &v1beta1.UpgradeJob{}, &v1beta1.NodeForceDrain{},
		&configv1.ClusterVersion{}, &configv1.ClusterOperator{}, &mcfgv1.MachineConfigPool{},
		openshift.MachineConfigMetadata(), openshift.NodeMetadata(),
	} {
		informer, err := seen.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", kind, err)
		}
		if _, err := informer.AddEventHandler(o); err != nil {
			return nil, fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	o.client, err = client.New(config, client.Options{
		Scheme: admin.Scheme(), Mapper: admin.RESTMapper(), Cache: &client.CacheOptions{Reader: seen},
	})
	if err != nil {
		return nil, fmt.Errorf("build a client: %w", err)
	}
	o.cluster = openshift.NewCluster(o.client, admin)
	go func() { _ = seen.Start(ctx) }() // ends with ctx, with no other error
	if !seen.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("watch the cluster: %w", context.Cause(ctx))
	}
	return o, nil
}

var _ toolscache.ResourceEventHandler = &observer{}

// OnAdd, OnUpdate and OnDelete take note that something changed.
func (o *observer) OnAdd(any, bool)   { o.note() }
func (o *observer) OnUpdate(any, any) { o.note() }
func (o *observer) OnDelete(any)      { o.note() }

func (o *observer) note() {
	select {
	case o.changed <- struct{}{}:
	default: // noted already
	}
}

// sight is the cluster at one moment.
type sight struct {
	// config is nil before it is created.
	config *v1beta1.UpgradeConfig
	// job is the newest one, nil when there is none.
	job *v1beta1.UpgradeJob
	// pools are empty while there is no job.
	pools    []mcfgv1.MachineConfigPool
	drains   []v1beta1.NodeForceDrain
	progress progress
}

// progress is how far the cluster is on the way to the job's version.
type progress struct {
	operators, operatorsUpdated int32
	nodes, nodesUpdated         int32
	// working names the operators and nodes that are in work.
	working []string
}

// look sees the cluster as it is now.
func (o *observer) look(ctx context.Context) (sight, error) {
	var s sight
	configs, jobs, drains := &v1beta1.UpgradeConfigList{}, &v1beta1.UpgradeJobList{}, &v1beta1.NodeForceDrainList{}
	if err := o.client.List(ctx, configs, client.InNamespace(environment.Namespace)); err != nil {
		return s, fmt.Errorf("list UpgradeConfigs: %w", err)
	}
	if err := o.client.List(ctx, jobs, client.InNamespace(environment.Namespace)); err != nil {
		return s, fmt.Errorf("list UpgradeJobs: %w", err)
	}
	if err := o.client.List(ctx, drains, client.InNamespace(environment.Namespace)); err != nil {
		return s, fmt.Errorf("list NodeForceDrains: %w", err)
	}
	s.drains = drains.Items
	if len(configs.Items) > 0 {
		s.config = &configs.Items[0]
	}
	for i := range jobs.Items {
		if job := &jobs.Items[i]; s.job == nil || job.Spec.StartAfter.After(s.job.Spec.StartAfter.Time) {
			s.job = job
		}
	}
	if s.job == nil || s.job.Spec.DesiredVersion == nil {
		return s, nil
	}
	var err error
	if s.pools, err = o.cluster.Pools(ctx); err != nil {
		return s, err
	}
	s.progress, err = o.progress(ctx, s.pools, s.job.Spec.DesiredVersion.Version)
	return s, err
}

func (o *observer) progress(ctx context.Context, pools []mcfgv1.MachineConfigPool, version string) (progress, error) {
	var p progress
	operators, err := o.cluster.Operators(ctx)
	if err != nil {
		return p, err
	}
	for i := range operators {
		co := &operators[i]
		p.operators++
		switch {
		case openshift.OperatorVersion(co) == version:
			p.operatorsUpdated++
		case openshift.ConditionIs(co.Status.Conditions, configv1.OperatorProgressing, configv1.ConditionTrue):
			p.working = append(p.working, co.Name)
		}
	}
	slices.Sort(p.working)
	return p, o.addNodes(ctx, &p, pools, version)
}

func (o *observer) addNodes(ctx context.Context, p *progress, pools []mcfgv1.MachineConfigPool, version string) error {
	for i := range pools {
		status := &pools[i].Status
		p.nodes += status.MachineCount
		renderedBy, err := o.cluster.RenderedBy(ctx, pools[i].Spec.Configuration.Name)
		if err != nil {
			return err
		}
		if renderedBy == version {
			p.nodesUpdated += status.UpdatedMachineCount
		}
	}
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(openshift.NodeMetadata().GroupVersionKind())
	if err := o.client.List(ctx, nodes); err != nil {
		return fmt.Errorf("list Nodes: %w", err)
	}
	var names []string
	for i := range nodes.Items {
		if does, inWork := openshift.NodeInWork(&nodes.Items[i]); inWork {
			names = append(names, nodes.Items[i].Name+" "+does.String())
		}
	}
	slices.Sort(names)
	p.working = append(p.working, names...)
	return nil
}
