// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cincinnati_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/appuio/managed-upgrade-operator/pkg/cincinnati"
)

// channel has 4.18.1 to 4.18.5: 1 -> 2 is recommended, 1 -> 3 with conditions alone, 1 -> 4 both, 1 -> 5 not at all.
const channel = `{
	"version": 1,
	"nodes": [
		{"version": "4.18.5", "payload": "image:5"}, {"version": "4.18.1", "payload": "image:1", "metadata": {"url": "x"}}, {"version": "4.18.2", "payload": "image:2"},
		{"version": "4.18.3", "payload": "image:3"}, {"version": "4.18.4", "payload": "image:4"}
	],
	"edges": [[1, 2], [1, 4], [2, 0], [1, 17], [-1, 0]],
	"conditionalEdges": [
		{"edges": [{"from": "4.18.1", "to": "4.18.3"}, {"from": "4.18.1", "to": "4.18.4"}], "risks": [{"name": "Water", "url": "x", "matchingRules": [{"type": "Always"}]}, {"name": "Fire"}]},
		{"edges": [{"from": "4.18.1", "to": "4.18.3"}], "risks": [{"name": "Fire"}, {"name": "Earth"}]},
		{"edges": [{"from": "4.18.2", "to": "4.18.3"}, {"from": "4.18.1", "to": "4.18.9"}], "risks": []}
	]
}`

func TestUpdatesOfAGraph(t *testing.T) {
	graph := &cincinnati.Graph{}
	if err := json.Unmarshal([]byte(channel), graph); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason, from, to string
		want             cincinnati.Update
		ok               bool
	}{
		{"recommended", "4.18.1", "4.18.2", cincinnati.Update{Payload: "image:2"}, true},
		{"with conditions, those of all entries", "4.18.1", "4.18.3", cincinnati.Update{Payload: "image:3", Risks: []string{"Earth", "Fire", "Water"}}, true},
		{"both: the conditions count", "4.18.1", "4.18.4", cincinnati.Update{Payload: "image:4", Risks: []string{"Fire", "Water"}}, true},
		{"no way", "4.18.1", "4.18.5", cincinnati.Update{Payload: "image:5"}, false},
		{"not that way round", "4.18.2", "4.18.1", cincinnati.Update{Payload: "image:1"}, false},
		{"conditions without a risk are dropped", "4.18.2", "4.18.3", cincinnati.Update{Payload: "image:3"}, false},
		{"not in the channel", "4.18.1", "4.18.9", cincinnati.Update{}, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, ok := graph.Update(tc.from, tc.to)
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.ok {
				t.Errorf("got %t, want %t (-want +got):\n%s", ok, tc.ok, diff)
			}
		})
	}
	if _, ok := graph.Has("4.18.9"); ok {
		t.Error("the channel has 4.18.9")
	}
}
