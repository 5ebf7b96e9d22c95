// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"net/http"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
)

// Graph is how the update service answers, and when the CVO asks for the graph.
type Graph struct {
	// Status is an HTTP status of an error, like 503, with which the update service
	// answers everything. 0 answers with the graph. The CVO, which does not ask by
	// HTTP, does not mind: see Scenario.UpdatesUnknown.
	Status int `json:"status,omitempty"`
	// Slow passes before the update service answers.
	Slow Duration `json:"slow,omitempty"`
	// Multi makes the releases those for several architectures: the update service
	// has them for arch=multi alone, and the ClusterVersion's desired release says so
	// from the installation, or the next update, on.
	Multi bool `json:"multi,omitempty"`

	// Retrieval passes between a new channel or upstream in the ClusterVersion's spec
	// and the updates from there in its status. 0 means Timings.Graph.
	Retrieval Duration `json:"retrieval,omitempty"`
	// Between is what RetrievedUpdates says meanwhile: Unknown or False, for the reason
	// Retrieving. Empty lets it say what it said before, as a real CVO does. The
	// updates stay listed in any case.
	Between configv1.ConditionStatus `json:"between,omitempty"`
}

func (v *validator) graph(s *Scenario) {
	g := s.Graph
	if g.Status != 0 && (g.Status < http.StatusBadRequest || g.Status > 599) {
		v.add("graph.status", "%d is no HTTP status of an error", g.Status)
	}
	v.duration("graph.slow", g.Slow)
	v.duration("graph.retrieval", g.Retrieval)
	if !slices.Contains([]configv1.ConditionStatus{"", configv1.ConditionUnknown, configv1.ConditionFalse}, g.Between) {
		v.add("graph.between", "%q is none of Unknown, False", g.Between)
	}
}

// Values of the parameter arch.
const (
	archMulti   = "multi"
	archDefault = "amd64"
)

// updateGraph is what the update service answers, as JSON.
type updateGraph struct {
	Version          int                `json:"version"`
	Nodes            []graphNode        `json:"nodes"`
	Edges            [][2]int           `json:"edges"` // by the nodes' places
	ConditionalEdges []conditionalEdges `json:"conditionalEdges"`
}

type graphNode struct {
	Version  string            `json:"version"`
	Payload  string            `json:"payload"`
	Metadata map[string]string `json:"metadata"`
}

type conditionalEdges struct {
	Edges []conditionalEdge `json:"edges"`
	Risks []graphRisk       `json:"risks"`
}

type conditionalEdge struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type graphRisk struct {
	URL           string                      `json:"url"`
	Name          string                      `json:"name"`
	Message       string                      `json:"message"`
	MatchingRules []configv1.ClusterCondition `json:"matchingRules"`
}

// graphOf returns the graph of a channel for an architecture. The version is in it
// whatever the scenario says, as releases are never withdrawn but only updates to them.
func (s *Scenario) graphOf(channel, arch, version string) updateGraph {
	g := updateGraph{Version: 1, Nodes: []graphNode{}, Edges: [][2]int{}, ConditionalEdges: []conditionalEdges{}}
	served := archDefault
	if s.Graph.Multi {
		served = archMulti
	}
	if arch != served {
		return g
	}
	versions := s.releasesIn(channel, version)
	for _, v := range versions {
		g.Nodes = append(g.Nodes, s.graphNode(v))
	}
	for _, u := range s.Updates {
		to := slices.Index(versions, u.Version)
		if to < 0 {
			continue
		}
		var conditional []conditionalEdge
		for from, v := range versions {
			switch {
			case !u.offeredTo(v):
			case len(u.Risks) > 0:
				conditional = append(conditional, conditionalEdge{From: v, To: u.Version})
			default:
				g.Edges = append(g.Edges, [2]int{from, to})
			}
		}
		if len(conditional) > 0 {
			g.ConditionalEdges = append(g.ConditionalEdges, conditionalEdges{Edges: conditional, Risks: u.graphRisks()})
		}
	}
	return g
}

// releasesIn returns the versions of a channel in order.
func (s *Scenario) releasesIn(channel, version string) []string {
	versions := []string{s.Version}
	for _, u := range s.Updates {
		versions = append(append(versions, u.Version), u.From...)
	}
	if _, err := semver.Parse(version); err == nil {
		versions = append(versions, version)
	}
	versions = slices.DeleteFunc(versions, func(v string) bool { return !slices.Contains(s.channelsOf(v), channel) })
	slices.SortFunc(versions, func(a, b string) int {
		if order := compareVersions(a, b); order != 0 {
			return order
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(versions)
}

func (s *Scenario) graphNode(version string) graphNode {
	node := graphNode{Version: version, Payload: s.imageOf(version), Metadata: map[string]string{
		"url": errata(version),
		"io.openshift.upgrades.graph.release.channels":    strings.Join(s.channelsOf(version), ","),
		"io.openshift.upgrades.graph.release.manifestref": "sha256:" + digest("manifest", version),
	}}
	if s.Graph.Multi {
		node.Metadata["release.openshift.io/architecture"] = archMulti
	}
	return node
}

// graphRisks returns the risks as the graph shows them.
func (u OfferedUpdate) graphRisks() []graphRisk {
	var risks []graphRisk
	for _, risk := range u.riskList() {
		risks = append(risks, graphRisk{URL: risk.URL, Name: risk.Name, Message: risk.Message, MatchingRules: risk.MatchingRules})
	}
	return risks
}

// channelsOf returns the channels that a release is in.
func (s *Scenario) channelsOf(version string) []string {
	for _, u := range s.Updates {
		if u.Version == version && len(u.Channels) > 0 {
			return u.Channels
		}
	}
	return s.Channels
}
