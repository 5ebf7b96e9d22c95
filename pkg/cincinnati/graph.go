// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cincinnati

import "slices"

// Graph is the updates of a channel, as an update service tells them.
type Graph struct {
	// Nodes are the releases.
	Nodes []Release `json:"nodes"`
	// Edges are the recommended updates, as pairs of places in Nodes.
	Edges [][2]int `json:"edges"`
	// ConditionalEdges are the updates that are recommended to some clusters only.
	ConditionalEdges []ConditionalEdges `json:"conditionalEdges"`
}

// Release is a release in a channel.
type Release struct {
	Version string `json:"version"`
	// Payload is the pull spec.
	Payload string `json:"payload"`
}

// ConditionalEdges are updates that have the same risks.
type ConditionalEdges struct {
	Edges []struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"edges"`
	Risks []struct {
		Name string `json:"name"`
	} `json:"risks"`
}

// Update is an update from one release to another.
type Update struct {
	// Payload is the pull spec of the release to update to.
	Payload string
	// Risks, sorted, of an update that is recommended only to clusters that none of them applies to; empty for an update without conditions.
	Risks []string
}

// Has returns the release of that version, and false if the channel does not have it.
func (g *Graph) Has(version string) (Release, bool) {
	i := slices.IndexFunc(g.Nodes, func(r Release) bool { return r.Version == version })
	if i < 0 {
		return Release{}, false
	}
	return g.Nodes[i], true
}

// Update returns the update from one version to another, and false if there is none. Of an update that is there both with conditions and
// without, the conditions count, as they do for the cluster.
func (g *Graph) Update(from, to string) (Update, bool) {
	target, ok := g.Has(to)
	if !ok {
		return Update{}, false
	}
	update := Update{Payload: target.Payload}
	found := false
	for i := range g.ConditionalEdges {
		conditional := &g.ConditionalEdges[i]
		if len(conditional.Risks) == 0 {
			continue // the cluster drops it too
		}
		for _, e := range conditional.Edges {
			if e.From != from || e.To != to {
				continue
			}
			found = true
			for _, risk := range conditional.Risks {
				update.Risks = append(update.Risks, risk.Name)
			}
		}
	}
	slices.Sort(update.Risks)
	update.Risks = slices.Compact(update.Risks)
	return update, found || g.recommended(from, to)
}

func (g *Graph) recommended(from, to string) bool {
	is := func(place int, version string) bool {
		return place >= 0 && place < len(g.Nodes) && g.Nodes[place].Version == version
	}
	return slices.ContainsFunc(g.Edges, func(e [2]int) bool { return is(e[0], from) && is(e[1], to) })
}
