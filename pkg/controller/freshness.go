// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Bounds of the wait for a cache that has not seen this process's own last write. It doubles: usually the cache
// follows within milliseconds, but not while the API server is away.
// After maxStaleWaits, some ten seconds, it is given up: the versions of a cluster that was restored from a backup never
// come up to those that were written before.
const (
	minStaleDelay = 2 * time.Millisecond
	maxStaleDelay = time.Second
	maxStaleWaits = 20
)

// freshness knows the last version of each object that this process wrote. A pass over an older one would be in vain:
// its writes would end in a conflict. It spares requests; what is correct rests on the optimistic locks.
type freshness struct {
	mutex   sync.Mutex
	written map[types.UID]*writtenVersion
}

type writtenVersion struct {
	resourceVersion string
	delay           time.Duration
	waits           int
}

func newFreshness() *freshness { return &freshness{written: map[types.UID]*writtenVersion{}} }

// wrote notes an object as the API server returned it for a write.
func (f *freshness) wrote(o client.Object) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.written[o.GetUID()] = &writtenVersion{resourceVersion: o.GetResourceVersion(), delay: minStaleDelay}
}

// wait returns how long to wait for the cache if the object is older than what this process wrote, and zero if it is
// not.
func (f *freshness) wait(o client.Object) time.Duration {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	w, ok := f.written[o.GetUID()]
	if !ok {
		return 0
	}
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), w.resourceVersion)
	if w.waits++; err == nil && order < 0 && w.waits <= maxStaleWaits {
		delay := w.delay
		w.delay = min(2*delay, maxStaleDelay)
		return delay
	}
	delete(f.written, o.GetUID()) // seen, or given up; versions that cannot be compared tell nothing
	return 0
}
