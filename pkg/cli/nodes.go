// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// States of a node, in the order in which it goes through them; beside it are those that do not go on by themselves.
const (
	hostPending      = "pending"
	hostPaused       = "paused"
	hostDraining     = "draining"
	hostDrainBlocked = "drain-blocked"
	hostUpdating     = "updating"
	hostRebooting    = "rebooting"
	hostUncordoning  = "uncordoning"
	hostDone         = "done"
	hostDegraded     = "degraded"
	hostNotReady     = "not-ready"
	hostCordoned     = "cordoned"
	hostUnmanaged    = "unmanaged"
)

// nodesReport is what `nodes` tells. It is the output of -o json and yaml: its field names stay.
type nodesReport struct {
	// Release that the cluster runs, or is on its way to.
	Release string `json:"release"`
	// Nodes, by name.
	Nodes    []hostReport `json:"nodes"`
	NotShown []string     `json:"notShown,omitempty"`
}

// hostReport is how far a node is.
type hostReport struct {
	Name  string   `json:"name"`
	Roles []string `json:"roles,omitempty"`
	Pool  string   `json:"pool,omitempty"`
	// TargetConfig and TargetVersion are the configuration that the pool of the node has come to, and the release that rendered it.
	TargetConfig  string `json:"targetConfig,omitempty"`
	TargetVersion string `json:"targetVersion,omitempty"`
	// CurrentConfig and CurrentVersion are what the node runs.
	CurrentConfig  string `json:"currentConfig,omitempty"`
	CurrentVersion string `json:"currentVersion,omitempty"`
	// ControlPlane is the version of Kubernetes that the control plane has come to, on nodes that are of it.
	ControlPlane string `json:"controlPlaneVersion,omitempty"`
	Kubelet      string `json:"kubeletVersion"`
	State        string `json:"state"`
	Reason       string `json:"reason,omitempty"`
	// HeldBy are the pods that the drain of the node waits for in vain.
	HeldBy []heldPodReport `json:"heldBy,omitempty"`
	Since  *metav1.Time    `json:"since,omitempty"`
}

// hosts is what the command nodes knows beside a snapshot.
type hosts struct {
	nodes []corev1.Node
	// versions of releases by the rendered configuration of theirs.
	versions map[string]string
}

// nodesCommand lists how far the nodes are.
func (t *tool) nodesCommand() *cobra.Command {
	pool := ""
	command := &cobra.Command{
		Use:   "nodes",
		Short: "List the nodes: what they run, what they are to run, and what holds them up",
		Long: `List the nodes: the release whose configuration they run and are to run, the version of their kubelet, and their state.

States: pending (its turn has not come), paused (its pool is), draining, drain-blocked (a PodDisruptionBudget or a pod
that does not end holds it up: the reason names them), updating, rebooting, uncordoning, done, degraded, not-ready,
cordoned (by hand), unmanaged (no machine config pool has it).`,
		Example: t.examples("nodes", "Which node is it, and why does it take so long?", "nodes --pool worker -o wide", "One pool, with configurations"),
		Args:    noArguments(),
	}
	o := addOutput(command, formatWide)
	command.Flags().StringVar(&pool, "pool", "", "Only the nodes of this machine config pool.")
	command.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		s, found, err := t.readHosts(cmd.Context(), c, pool)
		if err != nil {
			return err
		}
		if pool != "" {
			if len(s.Pools) == 0 && len(s.Unread) > 0 {
				return fmt.Errorf("the nodes of a pool cannot be told: %s", strings.Join(s.Unread, "; "))
			}
			if err := knownPool(s.Pools, pool); err != nil {
				return err
			}
		}
		r := hostsOf(s, found, pool)
		if o.machine() {
			return t.printMachine(o, r)
		}
		v := t.newView(s.Now)
		v.printHosts(&r, o.format == formatWide)
		return t.show(v)
	}
	_ = command.RegisterFlagCompletionFunc("pool", t.completePools) // the flag is there
	return command
}

// readHosts takes a snapshot with all nodes. Of those in work it has the ones of a pool, or all where none is named.
func (t *tool) readHosts(ctx context.Context, c client.Client, pool string) (*snapshot, *hosts, error) {
	s, err := t.read(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	cluster := openshift.NewCluster(c, c)
	if err := s.readRendered(ctx, cluster); err != nil {
		return nil, nil, err
	}
	found := &hosts{versions: map[string]string{}}
	if err := found.list(ctx, c); err != nil {
		return nil, nil, explain("list Nodes", err)
	}
	metadata := make([]metav1.PartialObjectMetadata, 0, len(found.nodes))
	for i := range found.nodes {
		metadata = append(metadata, metav1.PartialObjectMetadata{ObjectMeta: found.nodes[i].ObjectMeta})
	}
	if err := s.seeNodes(ctx, cluster, metadata, pool); err != nil {
		return nil, nil, err
	}
	return s, found, found.readVersions(ctx, s, cluster)
}

// list lists the nodes in pages: each has tens of kilobytes.
func (h *hosts) list(ctx context.Context, c client.Client) error {
	const page = 250
	next := ""
	for {
		nodes := &corev1.NodeList{}
		if err := c.List(ctx, nodes, client.Limit(page), client.Continue(next)); err != nil {
			return err
		}
		h.nodes = append(h.nodes, nodes.Items...)
		if next = nodes.Continue; next == "" {
			return nil
		}
	}
}

// readVersions reads which release rendered each configuration that a node has.
func (h *hosts) readVersions(ctx context.Context, s *snapshot, cluster *openshift.Cluster) error {
	for i := range s.Pools {
		h.versions[s.Pools[i].Spec.Configuration.Name] = s.RenderedBy[s.Pools[i].Name]
	}
	for i := range h.nodes {
		name := h.nodes[i].Annotations[currentConfigAnnotation]
		if _, known := h.versions[name]; known || name == "" {
			continue
		}
		version, err := cluster.RenderedBy(ctx, name)
		if err != nil {
			return s.doWithout("get MachineConfigs", err)
		}
		h.versions[name] = version
	}
	return nil
}

// What the machine-config operator keeps on a Node.
const currentConfigAnnotation = "machineconfiguration.openshift.io/currentConfig"

// completePools completes the name of a machine config pool.
func (t *tool) completePools(command *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return t.complete(func(ctx context.Context, c client.Client) (map[string]string, error) {
		pools := &mcfgv1.MachineConfigPoolList{}
		err := c.List(ctx, pools)
		names := make(map[string]string, len(pools.Items))
		for i := range pools.Items {
			names[pools.Items[i].Name] = fmt.Sprintf("%d machines", pools.Items[i].Status.MachineCount)
		}
		return names, err
	})(command, nil, begun)
}

var hostStyles = map[string]style{
	hostPending: grey, hostPaused: yellow, hostDraining: yellow, hostUpdating: yellow, hostRebooting: yellow, hostUncordoning: yellow, hostDone: green,
	hostDrainBlocked: red, hostDegraded: red, hostNotReady: red, hostCordoned: yellow, hostUnmanaged: grey,
}

func (v *view) printHosts(r *nodesReport, wide bool) {
	t := &table{header: []string{"NODE", "POOL", "TARGET", "CURRENT", "CONTROL PLANE", "KUBELET", "STATE", "SINCE", "REASON"}, wide: wide}
	if wide {
		t.header = []string{"NODE", "ROLES", "POOL", "TARGET", "TARGET CONFIG", "CURRENT", "CURRENT CONFIG", "CONTROL PLANE", "KUBELET", "STATE", "SINCE", "REASON"}
	}
	for i := range r.Nodes {
		h := &r.Nodes[i]
		cells := []cell{{h.Name, noStyle}, {h.Pool, noStyle}, {cmp.Or(h.TargetVersion, h.TargetConfig), noStyle}, {cmp.Or(h.CurrentVersion, h.CurrentConfig), noStyle}}
		if wide {
			cells = []cell{
				{h.Name, noStyle}, {strings.Join(h.Roles, ","), noStyle}, {h.Pool, noStyle}, {h.TargetVersion, noStyle}, {h.TargetConfig, noStyle},
				{h.CurrentVersion, noStyle}, {h.CurrentConfig, noStyle},
			}
		}
		t.addCells(append(cells, cell{h.ControlPlane, noStyle}, cell{h.Kubelet, noStyle}, cell{h.State, hostStyles[h.State]}, cell{v.age(h.Since), noStyle}, cell{h.Reason, noStyle})...)
	}
	v.printTable(t)
	for i := range r.Nodes {
		if h := &r.Nodes[i]; hostStyles[h.State] == red && !wide {
			v.WriteString("\n" + v.paint(red, clean(h.Name+" is "+h.State)) + "\n")
			v.wrap(2, h.Reason)
		}
	}
	for _, what := range r.NotShown {
		v.wrap(0, "Not shown: "+what)
	}
}
