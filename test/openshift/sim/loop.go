// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"golang.org/x/sync/errgroup"
)

const (
	// parallelWrites is the number of writes that a loop has under way.
	parallelWrites = 24
	// roundSize limits the writes between two plans, so that a thousand workers
	// do not keep the control plane waiting.
	roundSize = 4 * parallelWrites
	// coalesce is how long a loop that found nothing to do lets events gather.
	coalesce = 5 * time.Millisecond
	// writeTimeout ends a write that the API server does not answer.
	writeTimeout = 10 * time.Second
)

// plan decides what to write next. It does not write, and remembers nothing
// but the times in the stopwatch.
type plan func(*view, *stopwatch) []change

// loop plans and writes, again and again.
type loop struct {
	*runner
	name    string
	plans   []plan
	changed <-chan struct{}
	watch   *stopwatch
}

// loop builds a loop; wants says which objects its plans look at.
func (r *runner) loop(name string, wants func(*view, client.Object) bool, plans ...plan) *loop {
	return &loop{runner: r, name: name, plans: plans, changed: r.cluster.listen(wants), watch: newStopwatch()}
}

// run works until ctx ends. It sleeps until an object changes or a time has passed.
func (l *loop) run(ctx context.Context) error {
	for ctx.Err() == nil {
		changes := l.next(time.Now())
		if len(changes) > 0 {
			if failed := l.write(ctx, changes); failed != nil {
				l.say(fmt.Sprintf("simulator: %s tries again: %v", l.name, failed))
				_ = pause(ctx, retryAfter)
			}
			continue
		}
		if pause(ctx, coalesce) != nil {
			break
		}
		var due <-chan time.Time
		if !l.watch.wake.IsZero() {
			due = time.After(time.Until(l.watch.wake))
		}
		select {
		case <-ctx.Done():
		case <-l.changed:
		case <-due:
		}
	}
	return nil
}

// next plans one round of writes.
func (l *loop) next(now time.Time) []change {
	var changes []change
	l.watch.begin(now)
	l.cluster.read(func(v *view) {
		if !v.complete() {
			return // An installation under way brings the ClusterVersion, and wakes us.
		}
		for _, p := range l.plans {
			changes = append(changes, p(v, l.watch)...)
		}
	})
	return firstRound(changes)
}

// firstRound returns as many changes as make one round, those of workers last.
func firstRound(changes []change) []change {
	if len(changes) <= roundSize {
		return changes
	}
	var first, last []change
	for _, c := range changes {
		if isWorker(c.after) {
			last = append(last, c)
		} else {
			first = append(first, c)
		}
	}
	return append(first, last[:min(len(last), max(0, roundSize-len(first)))]...)
}

// write does one round of writes and returns the first failure that matters.
func (l *loop) write(ctx context.Context, changes []change) error {
	var group errgroup.Group
	group.SetLimit(parallelWrites)
	for _, c := range changes {
		group.Go(func() error {
			err := l.apply(ctx, c)
			switch {
			case err == nil:
				l.say(c.note)
			case ctx.Err() != nil:
				return nil
			case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err):
				// The object is not what it was: the watch brings the news in a moment.
				_ = pause(ctx, coalesce)
				return nil
			}
			return err
		})
	}
	return group.Wait()
}

// apply writes one change and takes the answer over.
func (l *loop) apply(ctx context.Context, c change) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var err error
	switch {
	case c.part == created:
		err = l.client.Create(ctx, c.after)
	case c.part == evicted:
		return l.evict(ctx, c.after)
	case c.part == bound:
		err = l.bind(ctx, c.after)
	case c.part == deleted:
		err = l.client.Delete(ctx, c.after, client.GracePeriodSeconds(0), client.Preconditions{UID: new(c.after.GetUID())})
	case c.part == spec && isIntegrity(c.after):
		err = l.client.Patch(ctx, c.after, client.MergeFromWithOptions(c.before, client.MergeFromWithOptimisticLock{}))
	case c.part == status && whole(c.after):
		err = l.client.Status().Update(ctx, c.after)
	case c.part == status:
		err = l.client.Status().Patch(ctx, c.after, client.MergeFrom(c.before))
	case whole(c.after):
		err = l.client.Update(ctx, c.after)
	default:
		err = l.client.Patch(ctx, c.after, client.MergeFrom(c.before))
	}
	if err != nil {
		return fmt.Errorf("write %T %s: %w", c.after, c.after.GetName(), err)
	}
	l.take(c)
	return nil
}

// take takes the outcome of a write over.
func (l *loop) take(c change) {
	switch {
	case c.part == deleted && isMachine(c.after) && len(c.after.GetFinalizers()) > 0:
		l.cluster.doom(c.after) // It still counts.
	case c.part == deleted:
		l.cluster.forget(c.after) // The watch brings it again if its finalizers keep it.
	default:
		c.after.SetManagedFields(nil)
		l.cluster.observe(c.after)
	}
}

// bind binds a pod to the node in its spec, and reads what became of it.
func (l *loop) bind(ctx context.Context, obj client.Object) error {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("bind a %T: only pods can be bound", obj)
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: pod.Spec.NodeName},
	}
	if err := l.client.SubResource("binding").Create(ctx, pod, binding); err != nil {
		return err
	}
	return l.client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
}

// printer keeps lines apart.
type printer struct{ mu sync.Mutex }

func (p *printer) print(tell func(string), line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	tell(line)
}

// whole reports whether an object is written as a whole, on condition that it
// has not changed meanwhile. Those of package config have fields that are null,
// which a merge patch would remove, and nodes are many: for the API server a
// patch is more work. Machines lose their finalizer only if they are as they were.
// Pools are patched, as other people write them too.
func whole(obj client.Object) bool {
	switch obj.(type) {
	case *configv1.ClusterVersion, *configv1.ClusterOperator, *corev1.Node, *machinev1beta1.MachineSet, *machinev1beta1.Machine:
		return true
	}
	return false
}
