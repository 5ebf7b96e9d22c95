// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package forcedrain

import (
	"cmp"
	"slices"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

const (
	// LookInterval is how often a node is looked at again whose drain is past its grace period, and when a deletion that
	// was refused is tried again.
	LookInterval = time.Minute
	// minLookInterval bounds how often the pods of a node are read, however short podForceDeleteGracePeriod is.
	minLookInterval = time.Second
	// resolution of the times that are recorded.
	resolution = time.Microsecond
)

// Graces are the grace periods of a NodeForceDrain. Zero stands for: never.
type Graces struct {
	// Node is how long a node may drain before its pods are deleted that no PodDisruptionBudget protects.
	Node time.Duration
	// Protected is how long it may drain before those are that one does. It may be shorter than Node, too.
	Protected time.Duration
	// Pod is how long a pod may take to end before it is deleted with a grace period of a second.
	Pod time.Duration
}

// GracesOf returns the grace periods of the spec.
func GracesOf(spec *v1beta1.NodeForceDrainSpec) Graces {
	node := spec.NodeDrainGracePeriod.Or(0)
	return Graces{Node: node, Protected: spec.ProtectedPodGracePeriod.Or(node), Pod: spec.PodForceDeleteGracePeriod.Or(0)}
}

// Node is a node that drains, and that the NodeForceDrain selects.
type Node struct {
	Name string
	// DrainID is the value of the annotation that asks for the drain.
	DrainID string
	// Began is when the drain was seen to begin; the zero time if it was under way when this process looked first. The same
	// id may be asked for again after a drain was given up: what was recorded before Began is of such an earlier drain.
	Began time.Time
}

// Drain is a drain that is followed.
type Drain struct {
	Node, ID string
	// Observed is when it was seen first. Its grace period counts from here.
	Observed time.Time
	// Next is when the pods of the node have to be read next; the zero time if they have not been read yet.
	Next time.Time
}

// View is what the API server told in this pass of a node.
type View struct {
	// Pods that a drain of the node waits for.
	Pods []Pod
	// Confirmed is set once the Node was read as well, of which the rest tells.
	Confirmed bool
	// DrainID of the drain that the Node asks for and that is not done; empty if there is none.
	DrainID string
	// Cordoned is when the Node got its taint for being unschedulable, in whole seconds, cut off; the zero time if that is not
	// known.
	Cordoned time.Time
}

// Facts are what a decision rests on.
type Facts struct {
	Graces
	// Recorded are drains as they were followed so far. Of several that fit a node the first counts.
	Recorded []Drain
	// Nodes that drain and are selected, in any order.
	Nodes []Node
	// Views are what was read in this pass, by node.
	Views map[string]View
	Now   time.Time
}

// Deletion is a pod that is to be deleted.
type Deletion struct {
	Pod
	// Drain that the pod holds up.
	Drain Drain
	// Forced is set if it is to be deleted with a grace period of one second. It is never deleted with none: that would
	// remove it from the API while its containers may run on.
	Forced bool
}

// Decision says what is to be done. What it asks to be read belongs into the views; then it is to be decided again.
type Decision struct {
	// Drains that are followed, in order of node: at most v1beta1.MaxObservedDrains.
	Drains []Drain
	// Crowded is set if there are more, which wait for their turn.
	Crowded bool
	// Read are the nodes whose pods have to be read.
	Read []string
	// Judge are the nodes of whose pods it has to be known which are protected.
	Judge []string
	// Confirm are the nodes that have to be read themselves before a pod of theirs may be deleted.
	Confirm []string
	// Delete are the pods to be deleted, in order of node, namespace and name.
	Delete []Deletion
	// Next is when to decide again if nothing happens before; the zero time if never.
	Next time.Time
}

// Decide says what is to be observed, read and deleted, and when to look again.
func Decide(f *Facts) Decision {
	d := Decision{}
	d.Drains, d.Crowded = f.follow()
	for i := range d.Drains {
		f.look(&d.Drains[i], &d)
	}
	return d
}

// follow returns the drains that are followed: those that were already, and then the oldest.
func (f *Facts) follow() (drains []Drain, crowded bool) {
	recorded := map[string][]Drain{}
	for _, r := range f.Recorded {
		recorded[r.Node] = append(recorded[r.Node], r)
	}
	nodes := slices.SortedFunc(slices.Values(f.Nodes), func(a, b Node) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Name, b.Name))
	})
	var waiting []Node
	for _, node := range nodes {
		if i := slices.IndexFunc(recorded[node.Name], node.isIn); i >= 0 {
			drains = append(drains, recorded[node.Name][i])
		} else {
			waiting = append(waiting, node)
		}
	}
	for _, node := range waiting {
		drains = append(drains, Drain{Node: node.Name, ID: node.DrainID, Observed: roundUp(latest(f.Now, node.Began))})
	}
	if crowded = len(drains) > v1beta1.MaxObservedDrains; crowded {
		drains = drains[:v1beta1.MaxObservedDrains]
	}
	slices.SortFunc(drains, func(a, b Drain) int { return cmp.Compare(a.Node, b.Node) })
	return drains, crowded
}

// isIn tells whether what was recorded is this drain.
func (n *Node) isIn(r Drain) bool { return r.ID == n.DrainID && !r.Observed.Before(n.Began) }

// look decides about the pods of one node.
func (f *Facts) look(drain *Drain, d *Decision) {
	due := drain.Next
	if due.IsZero() {
		due = f.firstLook(drain)
	}
	if due.IsZero() {
		return // nothing is ever deleted; the drain is shown all the same
	}
	if f.Now.Before(due) {
		d.wake(due)
		return
	}
	view, read := f.Views[drain.Node]
	if !read {
		d.Read = append(d.Read, drain.Node)
		return
	}
	if view.Confirmed && view.DrainID != drain.ID {
		// The drain is over, or another one. The watch will tell; this is for the case that it does not.
		drain.Next = f.Now.Add(LookInterval)
		d.wake(drain.Next)
		return
	}
	if view.Confirmed {
		drain.Observed = f.sinceCordoned(drain, view.Cordoned)
	}
	if f.dependsOnBudgets(drain, view.Pods) {
		d.Judge = append(d.Judge, drain.Node)
		return
	}
	deletions := f.deletions(drain, view.Pods)
	if len(deletions) > 0 && !view.Confirmed {
		d.Confirm = append(d.Confirm, drain.Node)
		return
	}
	d.Delete = append(d.Delete, deletions...)
	drain.Next = f.nextLook(drain, view.Pods)
	d.wake(drain.Next)
}

// firstLook returns when the pods of the node matter for the first time; the zero time if never. Those that end since
// before the drain was seen count from there, too.
func (f *Facts) firstLook(drain *Drain) time.Time {
	var first time.Time
	for _, grace := range []time.Duration{f.Node, f.Protected, f.Pod} {
		if grace > 0 {
			first = soonest(first, drain.Observed.Add(grace))
		}
	}
	return first
}

// dependsOnBudgets tells whether it takes the PodDisruptionBudgets to say which pods are to be deleted now. They are not asked for
// before, nor where it makes no difference.
func (f *Facts) dependsOnBudgets(drain *Drain, pods []Pod) bool {
	if f.over(drain, f.Node) == f.over(drain, f.Protected) {
		return false
	}
	return slices.ContainsFunc(pods, func(pod Pod) bool {
		return pod.Selected && pod.Requested.IsZero() && pod.Protection == ProtectionUnknown
	})
}

// over tells whether the drain has taken that long.
func (f *Facts) over(drain *Drain, grace time.Duration) bool {
	return grace > 0 && !f.Now.Before(drain.Observed.Add(grace))
}

// sinceCordoned returns since when the drain counts, given when the node was cordoned: one that was cordoned after it was
// seen to drain drains anew, and this process was not there to see it. The second in which it was cordoned does not
// tell whether that was before or after; it counts as after where nobody saw the drain begin. Either way the answer is
// final, because it is not before the end of that second.
func (f *Facts) sinceCordoned(drain *Drain, cordoned time.Time) time.Time {
	if cordoned.IsZero() {
		return drain.Observed
	}
	end := cordoned.Add(time.Second)
	latestStart := cordoned
	if !f.witnessed(drain.Node) {
		latestStart = end
	}
	if latestStart.After(drain.Observed) {
		return end
	}
	return drain.Observed
}

func (f *Facts) witnessed(node string) bool {
	i := slices.IndexFunc(f.Nodes, func(n Node) bool { return n.Name == node })
	return i >= 0 && !f.Nodes[i].Began.IsZero()
}

// deletions returns the pods of the node whose time has come.
func (f *Facts) deletions(drain *Drain, pods []Pod) []Deletion {
	var due []Deletion
	for _, pod := range pods {
		at, forced := f.deadline(drain, &pod)
		if !at.IsZero() && !f.Now.Before(at) {
			due = append(due, Deletion{Pod: pod, Drain: *drain, Forced: forced})
		}
	}
	slices.SortFunc(due, func(a, b Deletion) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return due
}

// deadline returns when the pod is to be deleted as it is now, the zero time if it is not, and whether by force.
func (f *Facts) deadline(drain *Drain, pod *Pod) (at time.Time, forced bool) {
	switch {
	case !pod.Selected:
	case pod.Requested.IsZero():
		return f.turn(drain, pod.Protection), false
	case f.Pod > 0 && pod.GraceSeconds > 1: // else it was by force already, or asked for no more itself
		return latest(pod.Requested.Add(time.Second), drain.Observed).Add(f.Pod), true
	}
	return time.Time{}, false
}

// turn returns when a pod that runs is to be deleted, the zero time if never. It is not known whether it is protected only where it makes no
// difference: while neither time has come, or when both have.
func (f *Facts) turn(drain *Drain, protection Protection) time.Time {
	grace := f.Node
	if protection == Protected {
		grace = f.Protected
	}
	if grace == 0 {
		return time.Time{}
	}
	return drain.Observed.Add(grace)
}

// nextLook returns when the pods of the node have to be read again, after those that are due have been deleted.
func (f *Facts) nextLook(drain *Drain, pods []Pod) time.Time {
	var next time.Time
	for _, grace := range []time.Duration{f.Node, f.Protected} {
		switch {
		case f.over(drain, grace): // pods may still come, and become selected, or lose what protects them
			next = soonest(next, f.Now.Add(LookInterval))
		case grace > 0:
			next = soonest(next, drain.Observed.Add(grace))
		}
	}
	if f.Pod > 0 {
		// Nothing tells of a pod that is evicted from now on. The earliest of them is due a grace period from now, so that to
		// look then is early enough for all of them.
		next = soonest(next, f.Now.Add(max(f.Pod, minLookInterval)))
	}
	for i := range pods {
		if at, _ := f.deadline(drain, &pods[i]); at.After(f.Now) {
			next = soonest(next, at)
		}
	}
	return next
}

// LookAt has the pods of a node read again at that time, whatever was decided; the zero time stands for the next decision.
func (d *Decision) LookAt(node string, at time.Time) {
	for i := range d.Drains {
		if d.Drains[i].Node == node {
			d.Drains[i].Next = at
			d.wake(at)
		}
	}
}

func (d *Decision) wake(at time.Time) { d.Next = soonest(d.Next, at) }

// soonest returns the earlier of two times, of which the zero time means never.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// roundUp returns the time as it can be recorded.
func roundUp(t time.Time) time.Time {
	if cut := t.Truncate(resolution); cut.Before(t) {
		return cut.Add(resolution)
	}
	return t
}
