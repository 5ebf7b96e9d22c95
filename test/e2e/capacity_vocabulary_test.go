// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/controlplane"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

const (
	// machineNamespace is where machines are.
	machineNamespace = "openshift-machine-api"
	// extraLabel marks the MachineSets and Machines that are there for the time of an upgrade only.
	extraLabel = "upgrade.managed.openshift.io"
	// machinePool is the label of a MachineSet that tells the pool of its Machines.
	machinePool = "hive.openshift.io/machine-pool"
)

// withMachines gives the cluster the Machine API, with one MachineSet of all workers.
func withMachines(s *sim.Scenario) { s.MachineAPI = &sim.MachineAPI{} }

// reserving has a job add machines, which may take so long to be ready, also in these pools.
func reserving(timeOut time.Duration, pools ...string) func(*v1beta1.UpgradeJob) {
	return configured(func(config *v1beta1.UpgradeJobConfig) {
		config.CapacityReservation = &v1beta1.CapacityReservation{Enabled: true, TimeOut: duration(timeOut), ExtraMachinePools: pools}
	})
}

// extraMachines returns the names of the MachineSets and Machines that are there for the time of an upgrade.
func (c *cluster) extraMachines() (sets, machines []string) {
	c.t.Helper()
	for kind, names := range map[string]*[]string{"MachineSet": &sets, "Machine": &machines} {
		for _, o := range c.machineObjects(kind, client.MatchingLabels{extraLabel: "true"}) {
			*names = append(*names, o.Name)
		}
		slices.Sort(*names)
	}
	return sets, machines
}

// machineObjects lists the objects of a kind of the Machine API; none where there is no such API.
func (c *cluster) machineObjects(kind string, options ...client.ListOption) []metav1.PartialObjectMetadata {
	c.t.Helper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(machinev1beta1.GroupVersion.WithKind(kind + "List"))
	err := env.Client.List(c.ctx, list, append(options, client.InNamespace(machineNamespace))...)
	if err != nil && !meta.IsNoMatchError(err) && client.IgnoreNotFound(err) != nil {
		c.t.Fatal(err)
	}
	return list.Items
}

// extraMachinesExist waits until there are so many MachineSets and Machines for the time of an upgrade.
func (c *cluster) extraMachinesExist(sets, machines int) {
	c.t.Helper()
	c.eventually("the extra machines", func() error {
		s, m := c.extraMachines()
		if len(s) != sets || len(m) != machines {
			return fmt.Errorf("there are the MachineSets %v and the Machines %v, want %d and %d", s, m, sets, machines)
		}
		return nil
	})
}

// setRequests returns the operator's successful requests of a verb about MachineSets.
func (c *cluster) setRequests(verb string) []controlplane.AuditEvent {
	c.t.Helper()
	return slices.DeleteFunc(c.operatorRequests(), func(r controlplane.AuditEvent) bool {
		return r.ObjectRef.Resource != "machinesets" || r.Verb != verb || r.ResponseStatus.Code >= http.StatusBadRequest
	})
}

// extraNode is what the journal has of a node that was there for the time of an upgrade.
type extraNode struct {
	name  string
	ready order // when it was ready first; 0 if it never was
	last  order // the last that is known of it
}

// extraNodes returns the nodes that came after the installation.
func (c *cluster) extraNodes(installed ...string) []*extraNode {
	var all []*extraNode
	byName := map[string]*extraNode{}
	for _, r := range past.nodesSince(c.began) {
		node := r.object
		if slices.Contains(installed, node.Name) || node.CreationTimestamp.Time.Before(c.began.Truncate(time.Second)) {
			continue
		}
		extra := byName[node.Name]
		if extra == nil {
			extra = &extraNode{name: node.Name}
			byName[node.Name] = extra
			all = append(all, extra)
		}
		if extra.last = orderOf(node); extra.ready == 0 && isReady(node) {
			extra.ready = orderOf(node)
		}
	}
	return all
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}

// nodeNames returns the names of all nodes, sorted.
func (c *cluster) nodeNames() []string {
	c.t.Helper()
	list := &corev1.NodeList{}
	if err := env.Client.List(c.ctx, list); err != nil {
		c.t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names
}

// reserved expects that one machine for each of the MachineSets was there, with a node that was ready, before the cluster was asked for the
// release, and that they went when the workers were upgraded. The nodes are those of before again.
func (c *cluster) reserved(job *v1beta1.UpgradeJob, before []string, sets ...string) {
	c.t.Helper()
	var made, deleted []string
	var removal time.Time
	for _, r := range c.setRequests("create") {
		made = append(made, r.ObjectRef.Name)
	}
	for _, r := range c.setRequests("delete") {
		deleted = append(deleted, r.ObjectRef.Name)
		if at := r.RequestReceivedTimestamp.Time; removal.IsZero() || at.Before(removal) {
			removal = at
		}
	}
	slices.Sort(made)
	slices.Sort(deleted)
	if !slices.Equal(made, slices.Compact(slices.Clone(made))) || !slices.Equal(made, slices.Compact(deleted)) || len(made) != len(sets) {
		c.t.Fatalf("the MachineSets %v were made and %v deleted, want one for each of %v", made, deleted, sets)
	}
	for i, name := range made {
		if !strings.HasPrefix(name, sets[i]+"-upgrade-") {
			c.t.Errorf("MachineSet %s is not called by %s", name, sets[i])
		}
	}
	if upgraded := c.when(job, done(workersUpgraded)); removal.Before(upgraded.Add(-inFlight)) {
		c.t.Errorf("the extra machines were removed %s before the workers were upgraded", upgraded.Sub(removal))
	}
	asked := orderOf(c.desiredUpdateWrites()[0].object)
	extra := c.extraNodes(before...)
	for _, node := range extra {
		if node.ready == 0 || node.ready > asked {
			c.t.Errorf("node %s was not ready when the cluster was asked for the release", node.name)
		}
	}
	if len(extra) != len(sets) {
		c.t.Errorf("there were %d extra nodes, want %d", len(extra), len(sets))
	}
	if after := c.nodeNames(); !slices.Equal(before, after) {
		c.t.Errorf("the nodes are %v, were %v", after, before)
	}
}

func sameNames(want, got []string) error {
	if !slices.Equal(want, got) {
		return fmt.Errorf("they are %v, want %v", got, want)
	}
	return nil
}

// sayingInBlockers expects a blocker whose message says all the words.
func sayingInBlockers(words ...string) expectation {
	return func(job *v1beta1.UpgradeJob) error {
		for _, b := range job.Status.Blockers {
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(b.Message, w) }) {
				return nil
			}
		}
		return fmt.Errorf("no blocker says %q: %+v", words, job.Status.Blockers)
	}
}
