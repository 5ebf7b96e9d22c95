// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"golang.org/x/sync/errgroup"
)

// watched is a kind that the simulator has to know the objects of.
type watched struct {
	object client.Object
	keep   func(client.Object) client.Object // nil: all of it
	list   func() client.ObjectList
}

// watchAll keeps the cluster up to date. Each channel that it returns is closed
// once one of the kinds is complete.
func (r *runner) watchAll(ctx context.Context, group *errgroup.Group) []<-chan struct{} {
	var synced []<-chan struct{}
	kinds := []watched{
		{&configv1.ClusterVersion{}, nil, func() client.ObjectList { return &configv1.ClusterVersionList{} }},
		{&configv1.ClusterOperator{}, nil, func() client.ObjectList { return &configv1.ClusterOperatorList{} }},
		{&mcfgv1.MachineConfigPool{}, nil, func() client.ObjectList { return &mcfgv1.MachineConfigPoolList{} }},
		{&mcfgv1.MachineConfig{}, nil, func() client.ObjectList { return &mcfgv1.MachineConfigList{} }},
		{&corev1.Node{}, nil, func() client.ObjectList { return &corev1.NodeList{} }},
		{&corev1.Pod{}, keepPod, func() client.ObjectList { return &corev1.PodList{} }},
	}
	if r.reports {
		kinds = append(kinds, watched{&mcfgv1.MachineConfigNode{}, nil, func() client.ObjectList { return &mcfgv1.MachineConfigNodeList{} }})
	}
	if r.machines {
		kinds = append(kinds,
			watched{&machinev1beta1.MachineSet{}, nil, func() client.ObjectList { return &machinev1beta1.MachineSetList{} }},
			watched{&machinev1beta1.Machine{}, nil, func() client.ObjectList { return &machinev1beta1.MachineList{} }},
		)
	}
	if r.integrities {
		kinds = append(kinds, watched{integrityMetadata(), nil, func() client.ObjectList { return integrityMetadataList() }})
	}
	for _, kind := range kinds {
		f := &feed{
			kind: kind.object, keep: kind.keep, synced: make(chan struct{}),
			observe: r.cluster.observe, forget: r.cluster.forget, bury: r.cluster.bury, replace: r.cluster.replace,
		}
		synced = append(synced, f.synced)
		group.Go(func() error { return r.watch(ctx, f, kind.list) })
	}
	f := &feed{
		kind: &corev1.ConfigMap{}, synced: make(chan struct{}),
		observe: r.scenarioChanged, forget: func(client.Object) {}, bury: func(client.Object) {},
		replace: func(_ client.Object, list []client.Object) {
			for _, obj := range list {
				r.scenarioChanged(obj)
			}
		},
	}
	synced = append(synced, f.synced)
	group.Go(func() error {
		return r.watch(ctx, f, func() client.ObjectList { return &corev1.ConfigMapList{} }, client.InNamespace(Namespace))
	})
	return synced
}

// scenarioChanged takes an edited scenario over. One that cannot be read is
// reported, and the present one stays in force.
func (r *runner) scenarioChanged(obj client.Object) {
	cm, ok := obj.(*corev1.ConfigMap)
	if !ok || cm.Name != ConfigMapName {
		return
	}
	s, err := scenarioOf(cm)
	if err != nil {
		r.say(fmt.Sprintf("simulator: keeping the present scenario: %v", err))
		return
	}
	r.cluster.setScenario(s)
}

// watch lists and watches one kind until ctx ends. A reflector by itself waits
// up to half a minute before it asks a returned API server again; here every
// failure ends the reflector's turn, and the next one begins soon.
func (r *runner) watch(ctx context.Context, f *feed, newList func() client.ObjectList, in ...client.ListOption) error {
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := newList()
			err := r.client.List(ctx, list, append(in, &client.ListOptions{Raw: &options})...)
			return list, opaque(err)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := r.client.Watch(ctx, newList(), append(in, &client.ListOptions{Raw: &options})...)
			return w, opaque(err)
		},
	}
	for ctx.Err() == nil {
		reflector := cache.NewReflectorWithOptions(source, f.kind, f, cache.ReflectorOptions{})
		// Its error needs no words: writes fail as well when the API server is away.
		_ = reflector.ListAndWatchWithContext(ctx)
		if pause(ctx, retryAfter) != nil {
			break
		}
	}
	return nil
}

// opaque hides the cause of an error, so that the reflector does not wait for
// the API server to return.
func opaque(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%v", err) //nolint:errorlint // Hiding the cause is the purpose.
}
