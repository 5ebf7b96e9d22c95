// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

func TestPhaseSince(t *testing.T) {
	type look struct {
		at    time.Duration // in seconds, as the next
		node  string
		phase v1beta1.NodePhase
		want  time.Duration
	}
	const a, b = "worker-a", "worker-b"
	const draining, updating = v1beta1.NodePhaseDraining, v1beta1.NodePhaseUpdating
	for _, tc := range []struct {
		reason string
		looks  []look
	}{
		{"a phase counts from when it was seen first", []look{{0, a, draining, 0}, {10, a, draining, 0}, {70, a, draining, 0}, {130, a, draining, 0}}},
		{"another phase counts from when that was", []look{{0, a, draining, 0}, {10, a, updating, 10}, {20, a, updating, 10}}},
		{"two views of a node do not disturb each other", []look{{0, a, draining, 0}, {0, a, updating, 0}, {10, a, draining, 0}, {10, a, updating, 0}}},
		{"a phase that comes back after more than a minute begins anew", []look{{0, a, draining, 0}, {30, a, updating, 30}, {61, a, draining, 61}}},
		{"each node has its own clock", []look{{0, a, draining, 0}, {10, b, draining, 10}, {20, a, draining, 0}, {20, b, draining, 10}}},
		{"a node that was not asked for in a minute begins anew", []look{{0, a, draining, 0}, {61, a, draining, 61}}},
		{"also if it is remembered still", []look{{0, b, draining, 0}, {10, a, draining, 10}, {61, b, draining, 61}, {80, a, draining, 80}}},
		{"one that was asked for within it does not", []look{{0, a, draining, 0}, {60, a, draining, 0}}},
		{"no phase began after now: somebody set the clock back", []look{{0, a, draining, 0}, {-30, a, draining, -30}, {0, a, draining, -30}}},
		{"those that are asked for outlive those that are not", []look{{0, a, draining, 0}, {0, b, draining, 0}, {50, a, draining, 0}, {100, a, draining, 0}, {101, b, draining, 101}}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			now := time.Date(2026, time.November, 24, 22, 0, 0, 0, time.UTC)
			c := openshift.NewCluster(nil, nil)
			for i, l := range tc.looks {
				if got := c.PhaseSince(l.node, l.phase, now.Add(l.at*time.Second)).Sub(now); got != l.want*time.Second {
					t.Errorf("look %d, %s at %s: since %s, want %s", i, l.node, l.at*time.Second, got, l.want*time.Second)
				}
			}
		})
	}
}

// Several jobs may look at the same nodes at once.
func TestPhaseSinceOfManyAtOnce(t *testing.T) {
	now := time.Date(2026, time.November, 24, 22, 0, 0, 0, time.UTC)
	c := openshift.NewCluster(nil, nil)
	c.PhaseSince("worker-0", v1beta1.NodePhaseDraining, now)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 100 {
				c.PhaseSince(fmt.Sprintf("worker-%d", j%10), v1beta1.NodePhaseDraining, now.Add(time.Duration(i)*time.Second))
			}
		})
	}
	all.Wait()
	if got := c.PhaseSince("worker-0", v1beta1.NodePhaseDraining, now.Add(time.Minute)); !got.Equal(now) {
		t.Errorf("since %s, want %s", got, now)
	}
}
