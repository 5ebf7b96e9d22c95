// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"maps"
	"sync"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// nodeClock remembers since when nodes are in their phases. It may be lost with the process: then a phase begins anew.
type nodeClock struct {
	mutex sync.Mutex
	seen  map[nodeInPhase]sighting
	swept time.Time
}

type nodeInPhase struct {
	node  string
	phase v1beta1.NodePhase
}

type sighting struct{ first, last time.Time }

// nodeClockMemory is how long it may take until a node is asked for again in the same phase: after that the phase has begun
// anew. Nodes that are waited for are asked for every NodesInterval.
const nodeClockMemory = time.Minute

// PhaseSince returns since when the node has been seen in that phase.
func (c *Cluster) PhaseSince(node string, phase v1beta1.NodePhase, now time.Time) time.Time {
	k := &c.clock
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.seen == nil {
		k.seen = map[nodeInPhase]sighting{}
	}
	if now.Sub(k.swept).Abs() > nodeClockMemory {
		maps.DeleteFunc(k.seen, func(_ nodeInPhase, s sighting) bool { return now.Sub(s.last).Abs() > nodeClockMemory })
		k.swept = now
	}
	key := nodeInPhase{node, phase}
	s, ok := k.seen[key]
	if !ok || s.first.After(now) || now.Sub(s.last) > nodeClockMemory {
		s.first = now
	}
	s.last = now
	k.seen[key] = s
	return s.first
}
