// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/poll"
)

// NodeField is the field by which the API server selects the nodes that are watched: those that are cordoned.
const NodeField = "spec.unschedulable"

// NodesInterval is how often the nodes in work are looked at while they are waited for, if nothing else happens.
const NodesInterval = 10 * time.Second

// Cluster reads and writes OpenShift's objects. Objects that it returns belong to the cache: they must not be changed.
// It may be used from several goroutines.
type Cluster struct {
	client client.Client
	live   client.Reader

	clock   nodeClock
	written writtenPools

	// What cannot be watched, or costs too much to be.
	nodes              poll.Question[[]NodeFacts]
	budgets            poll.Question[[]*NamespaceBudgets]
	removedAPIs        poll.Question[[]RemovedAPI]
	drainBudgets       poll.Question[*DrainBudgets]
	drainedPods        nodeAnswers[[]*corev1.Pod]
	machineConfigNodes machineConfigNodes
}

// NewCluster returns a Cluster that reads through the client's cache, and through live where a stale answer would do
// harm.
func NewCluster(c client.Client, live client.Reader) *Cluster {
	return &Cluster{client: c, live: live}
}

// Version returns ClusterVersion/version as the cache has it.
func (c *Cluster) Version(ctx context.Context) (*configv1.ClusterVersion, error) {
	return getVersion(ctx, c.client)
}

// LiveVersion returns ClusterVersion/version as the API server has it now. It costs a request.
func (c *Cluster) LiveVersion(ctx context.Context) (*configv1.ClusterVersion, error) {
	return getVersion(ctx, c.live)
}

func getVersion(ctx context.Context, r client.Reader) (*configv1.ClusterVersion, error) {
	cv := &configv1.ClusterVersion{}
	if err := r.Get(ctx, client.ObjectKey{Name: v1beta1.ClusterVersionName}, cv); err != nil {
		return nil, fmt.Errorf("get ClusterVersion/%s: %w", v1beta1.ClusterVersionName, err)
	}
	return cv, nil
}

// Operators returns every ClusterOperator, in no particular order.
func (c *Cluster) Operators(ctx context.Context) ([]configv1.ClusterOperator, error) {
	list := &configv1.ClusterOperatorList{}
	if err := c.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ClusterOperators: %w", err)
	}
	return list.Items, nil
}

// Pools returns every MachineConfigPool, in order of name.
// What this process has written of them counts, also if the cache has not seen it yet.
func (c *Cluster) Pools(ctx context.Context) ([]mcfgv1.MachineConfigPool, error) {
	pools, err := listPools(ctx, c.client, client.UnsafeDisableDeepCopy)
	c.written.overlay(pools)
	return pools, err
}

// LivePools returns every MachineConfigPool as the API server has it now, in order of name. It costs a request.
func (c *Cluster) LivePools(ctx context.Context) ([]mcfgv1.MachineConfigPool, error) {
	return listPools(ctx, c.live)
}

func listPools(ctx context.Context, r client.Reader, options ...client.ListOption) ([]mcfgv1.MachineConfigPool, error) {
	list := &mcfgv1.MachineConfigPoolList{}
	if err := r.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("list MachineConfigPools: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b mcfgv1.MachineConfigPool) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// RenderedBy returns the version of the release that rendered a MachineConfig; empty if that is not recorded.
func (c *Cluster) RenderedBy(ctx context.Context, machineConfig string) (string, error) {
	mc := MachineConfigMetadata()
	err := c.client.Get(ctx, client.ObjectKey{Name: machineConfig}, mc)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("get MachineConfig/%s: %w", machineConfig, err)
	}
	return mc.Annotations[ReleaseImageVersionAnnotation], nil
}

// NodesInWork returns the nodes that the machine-config operator works on, in order of name. The cache has the cordoned
// ones only, and of them the metadata: the machine-config operator cordons a node for as long as it works on it, and a
// watch of all nodes would deliver the heartbeats of every kubelet, day and night.
func (c *Cluster) NodesInWork(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(nodeKind)
	if err := c.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Nodes: %w", err)
	}
	inWork := make([]metav1.PartialObjectMetadata, 0, len(list.Items))
	for i := range list.Items {
		if _, ok := NodeInWork(&list.Items[i]); ok {
			inWork = append(inWork, list.Items[i])
		}
	}
	slices.SortFunc(inWork, func(a, b metav1.PartialObjectMetadata) int { return cmp.Compare(a.Name, b.Name) })
	return inWork, nil
}

// PausePool pauses a pool on behalf of a job, which it names in an annotation. It fails with a conflict if the pool is
// not the one that was judged any more.
func (c *Cluster) PausePool(ctx context.Context, pool *mcfgv1.MachineConfigPool, holder string) (*mcfgv1.MachineConfigPool, error) {
	return c.patchPool(ctx, pool, true, holder)
}

// ReleasePool unpauses a pool and takes back the annotation that names who paused it. It fails with a conflict if the pool is
// not the one that was judged any more.
func (c *Cluster) ReleasePool(ctx context.Context, pool *mcfgv1.MachineConfigPool) (*mcfgv1.MachineConfigPool, error) {
	return c.patchPool(ctx, pool, false, nil)
}

func (c *Cluster) patchPool(ctx context.Context, pool *mcfgv1.MachineConfigPool, paused bool, holder any) (*mcfgv1.MachineConfigPool, error) {
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"resourceVersion": pool.ResourceVersion,
			"annotations":     map[string]any{v1beta1.UpgradeJobAnnotation: holder},
		},
		"spec": map[string]any{"paused": paused},
	})
	if err != nil {
		return nil, fmt.Errorf("encode patch of MachineConfigPool/%s: %w", pool.Name, err)
	}
	written := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: pool.Name}}
	if err := c.client.Patch(ctx, written, client.RawPatch(types.MergePatchType, data)); err != nil {
		return nil, fmt.Errorf("patch MachineConfigPool/%s: %w", pool.Name, err)
	}
	c.written.wrote(written)
	return written, nil
}

// SetDesiredUpdate asks the cluster-version operator for the release, on behalf of the holder of the lock, which it
// sets by the way, and returns the object as written.
// What an earlier update left in desiredUpdate and would change the meaning of this one is reset: force, architecture,
// mode. Accepted risks stay, they are the administrator's. It fails with a conflict if the object is not the one that was judged any more.
func (c *Cluster) SetDesiredUpdate(ctx context.Context, cv *configv1.ClusterVersion, r Release, holder string) (*configv1.ClusterVersion, error) {
	update := map[string]any{"version": nil, "image": nil, "force": nil, "architecture": nil, "mode": nil}
	if r.Version != "" {
		update["version"] = r.Version
	}
	if r.Image != "" {
		update["image"] = r.Image
	}
	return c.patchVersion(ctx, cv, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{v1beta1.UpgradeJobAnnotation: holder}},
		"spec":     map[string]any{"desiredUpdate": update},
	})
}

// ClearDesiredUpdate takes a desired update back. It fails with a conflict if the object is not the one that was
// judged any more.
func (c *Cluster) ClearDesiredUpdate(ctx context.Context, cv *configv1.ClusterVersion) (*configv1.ClusterVersion, error) {
	return c.patchVersion(ctx, cv, map[string]any{"spec": map[string]any{"desiredUpdate": nil}})
}

// SetChannel has the cluster look for updates in the channel. It fails with a conflict if the object is not the one that was judged
// any more.
func (c *Cluster) SetChannel(ctx context.Context, cv *configv1.ClusterVersion, channel string) (*configv1.ClusterVersion, error) {
	return c.patchVersion(ctx, cv, map[string]any{"spec": map[string]any{"channel": channel}})
}

// SetLock records the holder of the cluster on ClusterVersion/version; an empty holder releases it. It fails with a
// conflict if the object is not the one that was judged any more.
func (c *Cluster) SetLock(ctx context.Context, cv *configv1.ClusterVersion, holder string) (*configv1.ClusterVersion, error) {
	annotations := map[string]any{v1beta1.UpgradeJobAnnotation: nil}
	if holder != "" {
		annotations[v1beta1.UpgradeJobAnnotation] = holder
	}
	return c.patchVersion(ctx, cv, map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

func (c *Cluster) patchVersion(ctx context.Context, cv *configv1.ClusterVersion, patch map[string]any) (*configv1.ClusterVersion, error) {
	metadata, ok := patch["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		patch["metadata"] = metadata
	}
	metadata["resourceVersion"] = cv.ResourceVersion
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode patch of ClusterVersion/%s: %w", cv.Name, err)
	}
	written := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: cv.Name}}
	if err := c.client.Patch(ctx, written, client.RawPatch(types.MergePatchType, data)); err != nil {
		return nil, fmt.Errorf("patch ClusterVersion/%s: %w", cv.Name, err)
	}
	return written, nil
}
