// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"maps"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"golang.org/x/sync/errgroup"
)

const (
	masterLabel = "node-role.kubernetes.io/master"
	// nodeLabel marks the simulator's own nodes.
	nodeLabel = "openshift-simulator/node"
)

// roleLabel is the label of the nodes of a pool.
func roleLabel(pool string) string { return "node-role.kubernetes.io/" + pool }

// allPools returns every pool of the scenario by name, the built-in ones first.
func (s *Scenario) allPools() []CustomPool {
	return append([]CustomPool{{Name: masterPool, Pool: s.Masters}, {Name: workerPool, Pool: s.Workers}}, s.CustomPools...)
}

func (i *installation) pools(ctx context.Context) error {
	i.view = newView()
	i.view.scenario, i.view.version = i.scenario, i.version
	for _, p := range i.scenario.allPools() {
		pool := machineConfigPool(p)
		config := renderedName(p.Name, i.scenario.Version, i.scenario.imageOf(i.scenario.Version))
		pool.Spec.Configuration = configurationReference(config, p.Name)
		if err := i.client.Create(ctx, pool); err != nil {
			return fmt.Errorf("create MachineConfigPool %s: %w", p.Name, err)
		}
		rendered := renderedConfig(pool, config, i.scenario.Version)
		if err := i.client.Create(ctx, rendered); err != nil {
			return fmt.Errorf("create MachineConfig %s: %w", config, err)
		}
		i.view.put(pool)
		i.view.put(rendered)
	}
	return nil
}

// machineConfigPool is a pool as the MCO's manifests and administrators write it.
func machineConfigPool(p CustomPool) *mcfgv1.MachineConfigPool {
	pool := &mcfgv1.MachineConfigPool{
		ObjectMeta: metav1.ObjectMeta{
			Name:   p.Name,
			Labels: map[string]string{mcfgv1.KubeletConfigRoleLabelPrefix + p.Name: ""},
		},
		Spec: mcfgv1.MachineConfigPoolSpec{
			Paused:         p.Paused,
			MaxUnavailable: p.MaxUnavailable,
			NodeSelector:   &metav1.LabelSelector{MatchLabels: map[string]string{roleLabel(p.Name): ""}},
			MachineConfigSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{mcfgv1.MachineConfigRoleLabelKey: p.Name},
			},
		},
	}
	maps.Copy(pool.Labels, p.Labels)
	switch p.Name {
	case masterPool:
		pool.Labels["machineconfiguration.openshift.io/mco-built-in"] = ""
		pool.Labels[requiredLabel] = ""
	case workerPool:
		pool.Labels["machineconfiguration.openshift.io/mco-built-in"] = ""
	default:
		pool.Spec.MachineConfigSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: mcfgv1.MachineConfigRoleLabelKey, Operator: metav1.LabelSelectorOpIn, Values: []string{workerPool, p.Name},
		}}}
	}
	return pool
}

func (i *installation) nodes(ctx context.Context) error {
	i.owners = i.scenario.machineOwners()
	var group errgroup.Group
	group.SetLimit(parallelWrites)
	created := make(chan *corev1.Node, parallelWrites)
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		for node := range created {
			i.view.put(node)
		}
	}()
	for _, p := range i.scenario.allPools() {
		for n := range p.Size {
			group.Go(func() error {
				node, err := i.node(ctx, p.Name, n)
				if err == nil {
					created <- node
				}
				return err
			})
		}
	}
	err := group.Wait()
	close(created)
	<-collected
	return err
}

// node creates the nth node of a pool. The API server taints new nodes as not
// ready and leaves it to the node lifecycle controller to take that back, which
// is done here.
func (i *installation) node(ctx context.Context, pool string, n int) (*corev1.Node, error) {
	node := i.newNode(pool, n)
	taints := node.Spec.Taints
	if err := i.client.Create(ctx, node); err != nil {
		return nil, fmt.Errorf("create Node %s: %w", node.Name, err)
	}
	before := node.DeepCopy()
	node.Spec.Taints = taints
	if err := i.client.Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return nil, fmt.Errorf("patch taints of Node %s: %w", node.Name, err)
	}
	return node, nil
}

// newNode is a node that runs the installed release.
func (i *installation) newNode(pool string, n int) *corev1.Node {
	node := bornNode(birth{
		name: fmt.Sprintf("%s-%d", pool, n), pool: pool, zone: n, version: i.scenario.Version, at: i.now.Add(-installEnded),
		config: renderedName(pool, i.scenario.Version, i.scenario.imageOf(i.scenario.Version)),
	})
	if set, owned := i.owners[node.Name]; owned {
		name := installedMachine(set, node.Name)
		node.Annotations[annotationMachine] = machineNamespace + "/" + name
		node.Spec.ProviderID = providerID(name)
	}
	setReady(node, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status", i.now.Add(-installEnded))
	return node
}

// birth is what makes a new node what it is.
type birth struct {
	name, pool string
	// config is its rendered configuration, version the release of that.
	config, version string
	zone            int
	at              time.Time
}

// bornNode is a node that runs its configuration, but has not said yet how it is.
func bornNode(b birth) *corev1.Node {
	name, drain := b.name, uncordonPrefix+hashOf(b.config)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				nodeLabel: "", corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
				corev1.LabelTopologyZone: fmt.Sprintf("zone-%c", 'a'+b.zone%3), "node.openshift.io/os_id": "rhcos",
				roleLabel(b.pool): "",
			},
			Annotations: map[string]string{
				annotationCurrentConfig: b.config, annotationDesiredConfig: b.config,
				annotationState: stateDone, annotationReason: "",
				annotationDesiredDrain: drain, annotationLastAppliedDrain: drain,
				annotationTopology: "HighlyAvailable",
			},
		},
		Status: corev1.NodeStatus{
			NodeInfo: nodeInfo(name, b.config, b.version),
			Capacity: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("250"),
			},
		},
	}
	node.Status.Allocatable = node.Status.Capacity
	for _, t := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: t, Status: corev1.ConditionFalse, Reason: "KubeletHasNoPressure",
			LastHeartbeatTime: metav1.NewTime(b.at), LastTransitionTime: metav1.NewTime(b.at),
		})
	}
	switch b.pool {
	case masterPool:
		node.Labels[roleLabel("control-plane")] = ""
		node.Spec.Taints = []corev1.Taint{{Key: masterLabel, Effect: corev1.TaintEffectNoSchedule}}
	case workerPool:
	default:
		node.Labels[roleLabel(workerPool)] = ""
	}
	return node
}

// poolStatuses counts the nodes of each pool as the MCO will do.
func (i *installation) poolStatuses(ctx context.Context) error {
	watch := newStopwatch()
	watch.begin(i.now.Add(-installEnded))
	members := i.view.members()
	for _, name := range sortedKeys(i.view.pools) {
		p := &poolController{view: i.view, watch: watch, pool: i.view.pools[name], nodes: members[name]}
		if counted := p.count(); counted != nil {
			// As a whole, because a patch would leave the counts out that are zero.
			if err := i.client.Status().Update(ctx, counted.after); err != nil {
				return fmt.Errorf("update status of MachineConfigPool %s: %w", name, err)
			}
		}
	}
	return nil
}
