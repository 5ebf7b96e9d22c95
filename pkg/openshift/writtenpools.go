// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"sync"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// writtenPools are the pools that this process has written and the cache has not seen yet. To go by the cache would mean
// to take a pool that was paused a moment ago for one that is not.
type writtenPools struct {
	mutex  sync.Mutex
	byName map[string]*writtenPool
}

type writtenPool struct {
	pool *mcfgv1.MachineConfigPool
	used int
}

// maxWrittenUses is how often a pool is taken for newer than the cache. Versions of a cluster that was restored from a
// backup never come up to those that were written before.
const maxWrittenUses = 1000

func (w *writtenPools) wrote(pool *mcfgv1.MachineConfigPool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.byName == nil {
		w.byName = map[string]*writtenPool{}
	}
	w.byName[pool.Name] = &writtenPool{pool: pool}
}

// overlay replaces the pools that are older than what was written.
func (w *writtenPools) overlay(pools []mcfgv1.MachineConfigPool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if len(w.byName) == 0 {
		return
	}
	for i := range pools {
		written, ok := w.byName[pools[i].Name]
		if !ok {
			continue
		}
		order, err := resourceversion.CompareResourceVersion(pools[i].ResourceVersion, written.pool.ResourceVersion)
		if written.used++; err == nil && order < 0 && pools[i].UID == written.pool.UID && written.used <= maxWrittenUses {
			pools[i] = *written.pool
			continue
		}
		delete(w.byName, pools[i].Name) // seen, or given up
	}
}
