// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"sync"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cluster is the newest that is known of the API server's objects. It is fed by
// watches and by the answers to our own writes, so that a controller never
// decides on what it has itself already changed.
type cluster struct {
	mu   sync.Mutex
	view *view
	// buried are the objects, other than pods, that are gone for good: the answer to a
	// write of ours may come later than the news of its object's end.
	buried    map[types.UID]bool
	listeners []listener
}

// listener is told that something changed; a full channel has been told.
type listener struct {
	changed chan struct{}
	// wants says whether an object is of interest; nil stands for the scenario.
	wants func(*view, client.Object) bool
}

func newCluster() *cluster { return &cluster{view: newView(), buried: map[types.UID]bool{}} }

// listen returns a channel that receives after changes of the objects that it
// wants. It must be called before the cluster is fed.
func (c *cluster) listen(wants func(*view, client.Object) bool) <-chan struct{} {
	l := listener{changed: make(chan struct{}, 1), wants: wants}
	c.listeners = append(c.listeners, l)
	return l.changed
}

// tell wakes the listeners; obj is what changed, nil for the scenario.
func (c *cluster) tell(obj client.Object) {
	for _, l := range c.listeners {
		if !l.wants(c.view, obj) {
			continue
		}
		select {
		case l.changed <- struct{}{}:
		default: // It has been told and has not looked yet.
		}
	}
}

// read calls f with the view, which f must not keep.
func (c *cluster) read(f func(*view)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.view)
}

// setScenario replaces the scenario.
func (c *cluster) setScenario(s Scenario) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.view.scenario = &s
	c.tell(nil)
}

// observe takes obj over, unless a newer revision of it is known.
func (c *cluster) observe(obj client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.buried[obj.GetUID()] {
		return
	}
	if have := c.view.get(obj); have != nil && have.GetUID() == obj.GetUID() && !newer(obj, have) {
		return
	}
	c.view.put(obj)
	c.tell(obj)
}

// newer reports whether a is a later revision than b.
func newer(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err != nil || order > 0
}

// bury removes obj for good.
func (c *cluster) bury(obj client.Object) {
	if !isPod(obj) {
		c.mu.Lock()
		c.buried[obj.GetUID()] = true
		c.mu.Unlock()
	}
	c.forget(obj)
}

// forget removes obj, which may turn up again.
func (c *cluster) forget(obj client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if have := c.view.get(obj); have != nil && have.GetUID() == obj.GetUID() {
		c.view.remove(obj)
		c.tell(obj)
	}
}

// doom writes down that obj, which its finalizers keep, is being deleted. The watch
// brings its next revision.
func (c *cluster) doom(obj client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	have := c.view.get(obj)
	if have == nil || have.GetUID() != obj.GetUID() || have.GetResourceVersion() != obj.GetResourceVersion() {
		return
	}
	obj.SetDeletionTimestamp(new(metav1.Now()))
	c.view.put(obj)
	c.tell(obj)
}

// replace takes a complete list over: objects of the kind that are not in it are gone.
func (c *cluster) replace(kind client.Object, list []client.Object) {
	listed := make(map[client.ObjectKey]bool, len(list))
	for _, obj := range list {
		listed[client.ObjectKeyFromObject(obj)] = true
		c.observe(obj)
	}
	var gone []client.Object
	c.read(func(v *view) {
		for _, have := range v.all(kind) {
			if !listed[client.ObjectKeyFromObject(have)] {
				gone = append(gone, have)
			}
		}
	})
	for _, obj := range gone {
		c.bury(obj)
	}
}

// all returns the objects of a kind.
func (v *view) all(kind client.Object) []client.Object {
	var objects []client.Object
	switch kind.(type) {
	case *configv1.ClusterVersion:
		if v.version != nil {
			objects = append(objects, v.version)
		}
	case *configv1.ClusterOperator:
		objects = listed(v.operators)
	case *mcfgv1.MachineConfigPool:
		objects = listed(v.pools)
	case *mcfgv1.MachineConfig:
		objects = listed(v.configs)
	case *corev1.Node:
		objects = listed(v.nodes)
	case *mcfgv1.MachineConfigNode:
		objects = listed(v.reports)
	case *corev1.Pod:
		objects = listed(v.pods.all)
	case *machinev1beta1.MachineSet:
		objects = listed(v.machineSets)
	case *machinev1beta1.Machine:
		objects = listed(v.machines)
	case *metav1.PartialObjectMetadata:
		objects = listed(v.integrities)
	}
	return objects
}

func listed[K comparable, T client.Object](objects map[K]T) []client.Object {
	list := make([]client.Object, 0, len(objects))
	for _, obj := range objects {
		list = append(list, obj)
	}
	return list
}

// feed is the store that a reflector fills; it passes the objects of one kind on.
type feed struct {
	kind client.Object
	// keep returns what is to be known of an object, nil when it is nothing; a nil
	// function is for all of every object.
	keep    func(client.Object) client.Object
	observe func(client.Object)
	forget  func(client.Object) // what does not matter any more
	bury    func(client.Object) // what is gone
	replace func(kind client.Object, list []client.Object)
	// synced is closed after the first complete list.
	synced chan struct{}
	once   sync.Once
}

var _ cache.ReflectorStore = &feed{}

// Add implements cache.ReflectorStore.
func (f *feed) Add(obj any) error { return f.take(obj, f.observe) }

// Update implements cache.ReflectorStore.
func (f *feed) Update(obj any) error { return f.take(obj, f.observe) }

// Delete implements cache.ReflectorStore.
func (f *feed) Delete(obj any) error { return f.take(obj, f.bury) }

func (f *feed) take(obj any, to func(client.Object)) error {
	o, ok := obj.(client.Object)
	if !ok {
		return fmt.Errorf("watch answered with a %T", obj)
	}
	o.SetManagedFields(nil)
	if f.keep == nil {
		to(o)
	} else if kept := f.keep(o); kept != nil {
		to(kept)
	} else {
		f.forget(o) // It may have been of interest before.
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (f *feed) Replace(list []any, _ string) error {
	objects := make([]client.Object, 0, len(list))
	for _, obj := range list {
		if err := f.take(obj, func(o client.Object) { objects = append(objects, o) }); err != nil {
			return err
		}
	}
	f.replace(f.kind, objects)
	f.once.Do(func() { close(f.synced) })
	return nil
}

// Resync implements cache.ReflectorStore. There is no second store to bring in line.
func (f *feed) Resync() error { return nil }
