// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"sync"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// nodeClock remembers since when nodes are in their phases. It may be lost with the process: then a phase begins anew.
type nodeClock struct {
	mutex sync.Mutex
	seen  map[string]seenPhase
	swept time.Time
}

type seenPhase struct {
	phase       v1beta1.NodePhase
	since, last time.Time
}

// nodeClockMemory is how long a node is remembered that nobody asks for any more.
const nodeClockMemory = time.Hour

// PhaseSince returns since when the node has been seen in that phase, without another one in between.
func (c *Cluster) PhaseSince(node string, phase v1beta1.NodePhase, now time.Time) time.Time {
	k := &c.clock
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if now.Sub(k.swept).Abs() > nodeClockMemory {
		for name, s := range k.seen {
			if now.Sub(s.last).Abs() > nodeClockMemory {
				delete(k.seen, name)
			}
		}
		k.swept = now
	}
	s, ok := k.seen[node]
	if !ok || s.phase != phase || s.since.After(now) || now.Sub(s.last) > nodeClockMemory {
		s = seenPhase{phase: phase, since: now}
	}
	s.last = now
	if k.seen == nil {
		k.seen = map[string]seenPhase{}
	}
	k.seen[node] = s
	return s.since
}
