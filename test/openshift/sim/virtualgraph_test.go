// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// channelled is a cluster on 4.18.1, which is in stable-4.18 and stable-4.19. Of its
// updates 4.18.2 is in both, and 4.19.0 in stable-4.19 alone.
func channelled() Scenario {
	s := Default()
	s.Masters.Size, s.Workers.Size = 1, 1
	s.Channels = []string{"stable-4.18", "stable-4.19"}
	s.Updates = []OfferedUpdate{
		{Version: "4.18.2"}, {Version: "4.19.0", Channels: []string{"stable-4.19"}},
	}
	s.Graph.Retrieval = Duration(time.Minute)
	return s
}

// follow writes spec.channel.
func (v *virtual) follow(channel string) {
	cv := v.view.version.DeepCopy()
	cv.Spec.Channel = channel
	cv.Generation++
	v.view.put(cv)
}

// offered returns the versions of the available updates.
func (v *virtual) offered() string {
	var versions []string
	for _, release := range v.view.version.Status.AvailableUpdates {
		versions = append(versions, release.Version)
	}
	return strings.Join(versions, " ")
}

func (v *virtual) retrieved() configv1.ClusterOperatorStatusCondition {
	return *findCondition(v.view.version.Status.Conditions, configv1.RetrievedUpdates)
}

func TestUpdatesFollowTheChannel(t *testing.T) {
	for _, between := range []configv1.ConditionStatus{"", configv1.ConditionUnknown, configv1.ConditionFalse} {
		t.Run("between "+string(between), func(t *testing.T) {
			s := channelled()
			s.Graph.Between = between
			v := newVirtual(t, s)
			v.pass(time.Second)
			if got := v.offered(); got != "4.18.2" {
				t.Fatalf("offered in stable-4.18: %s", got)
			}
			v.follow("stable-4.19")
			v.pass(59 * time.Second)
			want := configv1.ConditionTrue
			if between != "" {
				want = between
			}
			if got := v.retrieved(); v.offered() != "4.18.2" || got.Status != want || (got.Reason == "Retrieving") != (between != "") {
				t.Errorf("between: %s offered, %+v", v.offered(), got)
			}
			v.pass(2 * time.Second)
			if got := v.retrieved(); v.offered() != "4.19.0 4.18.2" || got.Status != configv1.ConditionTrue || got.Reason != "" {
				t.Errorf("afterwards: %s offered, %+v", v.offered(), got)
			}
			if got := v.view.version.Status.AvailableUpdates[0].Channels; !slices.Equal(got, []string{"stable-4.19"}) {
				t.Errorf("channels of 4.19.0: %v", got)
			}
		})
	}
}

func TestChannelWithoutTheCurrentVersion(t *testing.T) {
	v := newVirtual(t, channelled())
	v.follow("stable-4.19")
	v.pass(2 * time.Minute)
	v.upgrade("4.19.0")
	v.pass(time.Minute)
	if got := v.view.version.Status.Desired.Channels; !slices.Equal(got, []string{"stable-4.19"}) {
		t.Errorf("channels of 4.19.0: %v", got)
	}
	v.follow("stable-4.18")
	v.pass(2 * time.Minute)
	st := v.view.version.Status
	c := v.retrieved()
	if c.Status != configv1.ConditionFalse || c.Reason != "VersionNotFound" ||
		c.Message != `Unable to retrieve available updates: currently reconciling cluster version 4.19.0 not found in the "stable-4.18" channel` {
		t.Errorf("RetrievedUpdates: %+v", c)
	}
	if st.AvailableUpdates != nil || len(st.Desired.Channels) != 0 {
		t.Errorf("offered %v, channels %v", st.AvailableUpdates, st.Desired.Channels)
	}
}

func TestUpdateOfAChannelThatWasNotAskedYet(t *testing.T) {
	v := newVirtual(t, channelled())
	v.pass(time.Second)
	v.follow("stable-4.19")
	v.desire(&configv1.Update{Version: "4.19.0"})
	v.until("it is invalid", v.is(conditionInvalid, configv1.ConditionTrue, reasonInvalid))
	v.until("it is taken", func() bool { return v.view.version.Status.Desired.Version == "4.19.0" })
	if findCondition(v.view.version.Status.Conditions, conditionInvalid) != nil {
		t.Error("it is still invalid")
	}
}

// asked is the service's answer to a request.
func (s *Scenario) asked(query, accept string) graphAnswer {
	r := httptest.NewRequest(http.MethodGet, "/graph?"+query, http.NoBody)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	return s.answerGraph(r)
}

func TestUpdateServiceRefuses(t *testing.T) {
	s := channelled()
	for name, tt := range map[string]struct {
		query, accept string
		status        int
		body          string
	}{
		"a type that it has not": {"channel=stable-4.18", "text/html", 406, `{"kind":"invalid_content_type","value":"invalid Content-Type requested"}`},
		"a list of types":        {"channel=stable-4.18", "text/html, application/json", 406, `{"kind":"invalid_content_type","value":"invalid Content-Type requested"}`},
		"no channel":             {"arch=amd64", jsonType, 400, `{"kind":"missing_params","value":"mandatory client parameters missing: channel"}`},
		"an empty channel":       {"channel=", jsonType, 400, `{"kind":"invalid_params","value":"invalid client parameters: channel '' does not match regex '^[0-9a-z\\-.]+$'"}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.asked(tt.query, tt.accept); got.status != tt.status || string(got.body) != tt.body || got.contentType != jsonType {
				t.Errorf("got %d %s %s", got.status, got.contentType, got.body)
			}
		})
	}
	for _, accept := range []string{"", "*", "*/*", "application/*", jsonType, cincinnatiType} {
		got := s.asked("channel=stable-4.18", accept)
		if want := map[bool]string{true: cincinnatiType, false: jsonType}[accept == cincinnatiType]; got.status != 200 || got.contentType != want {
			t.Errorf("%s: got %d, %s", accept, got.status, got.contentType)
		}
	}
	s.Graph.Status = 503
	if got := s.asked("channel=stable-4.18", jsonType); got.status != 503 {
		t.Errorf("got %d, want 503", got.status)
	}
}

func TestGraphOfAChannel(t *testing.T) {
	s := channelled()
	s.Updates[1].From = []string{"4.18.2"}
	s.Updates = append(s.Updates, OfferedUpdate{Version: "4.18.3", Risks: []Risk{{Name: "Bad", Message: "It is bad.", Applies: AppliesYes}}})
	versions := func(g updateGraph) string {
		var all []string
		for _, node := range g.Nodes {
			all = append(all, node.Version)
		}
		return strings.Join(all, " ")
	}
	edges := func(g updateGraph) string {
		var all []string
		for _, edge := range g.Edges {
			all = append(all, g.Nodes[edge[0]].Version+">"+g.Nodes[edge[1]].Version)
		}
		for _, c := range g.ConditionalEdges {
			for _, edge := range c.Edges {
				all = append(all, edge.From+"?"+edge.To)
			}
		}
		return strings.Join(all, " ")
	}
	for name, tt := range map[string]struct {
		channel, arch, version string
		nodes, edges           string
	}{
		"the old channel": {"stable-4.18", "amd64", "4.18.1", "4.18.1 4.18.2 4.18.3", "4.18.1>4.18.2 4.18.1?4.18.3 4.18.2?4.18.3"},
		"the new channel": {"stable-4.19", "amd64", "4.18.1", "4.18.1 4.18.2 4.18.3 4.19.0", "4.18.1>4.18.2 4.18.2>4.19.0 4.18.1?4.18.3 4.18.2?4.18.3"},
		"no such channel": {"candidate-4.20", "amd64", "4.18.1", "", ""},
		"other machines":  {"stable-4.18", "arm64", "4.18.1", "", ""},
		"all machines":    {"stable-4.18", "multi", "4.18.1", "", ""},
		"a release of before": {"stable-4.18", "amd64", "4.18.0", "4.18.0 4.18.1 4.18.2 4.18.3",
			"4.18.0>4.18.2 4.18.1>4.18.2 4.18.0?4.18.3 4.18.1?4.18.3 4.18.2?4.18.3"},
	} {
		t.Run(name, func(t *testing.T) {
			g := s.graphOf(tt.channel, tt.arch, tt.version)
			if versions(g) != tt.nodes || edges(g) != tt.edges {
				t.Errorf("nodes %s, edges %s; want %s and %s", versions(g), edges(g), tt.nodes, tt.edges)
			}
		})
	}
	g := s.graphOf("stable-4.18", "amd64", "")
	want := []graphRisk{{
		URL: "https://issues.example.com/Bad", Name: "Bad", Message: "It is bad.", MatchingRules: []configv1.ClusterCondition{{Type: "Always"}},
	}}
	if diff := cmp.Diff(want, g.ConditionalEdges[0].Risks); diff != "" {
		t.Errorf("risks (-want +got):\n%s", diff)
	}
	if n := g.Nodes[1]; n.Payload != Image("4.18.2") || n.Metadata["io.openshift.upgrades.graph.release.channels"] != "stable-4.18,stable-4.19" ||
		n.Metadata["url"] == "" || n.Metadata["release.openshift.io/architecture"] != "" {
		t.Errorf("node: %+v", n)
	}
}

func TestReleasesForSeveralArchitectures(t *testing.T) {
	s := channelled()
	s.Graph.Multi = true
	if g := s.graphOf("stable-4.18", "amd64", ""); len(g.Nodes) != 0 {
		t.Errorf("for one architecture: %+v", g.Nodes)
	}
	g := s.graphOf("stable-4.18", "multi", "")
	if len(g.Nodes) != 2 || g.Nodes[0].Metadata["release.openshift.io/architecture"] != "multi" {
		t.Errorf("for several: %+v", g.Nodes)
	}
	v := newVirtual(t, s)
	if got := v.view.version.Status.Desired.Architecture; got != configv1.ClusterVersionArchitectureMulti {
		t.Errorf("architecture of the installed release: %q", got)
	}
}

// TestGraphAndStatusAgree asks the graph what the CVO tells.
func TestGraphAndStatusAgree(t *testing.T) {
	s := channelled()
	for _, channel := range s.Channels {
		g := s.graphOf(channel, "amd64", s.Version)
		var fromGraph, fromStatus []string
		for _, edge := range g.Edges {
			if g.Nodes[edge[0]].Version == s.Version {
				fromGraph = append(fromGraph, g.Nodes[edge[1]].Payload)
			}
		}
		for _, release := range s.offerFor(s.Version, channel, time.Time{}).available {
			fromStatus = append(fromStatus, release.Image)
		}
		slices.Sort(fromGraph)
		slices.Sort(fromStatus)
		if len(fromGraph) == 0 || !slices.Equal(fromGraph, fromStatus) {
			t.Errorf("%s: the graph has %v, the status %v", channel, fromGraph, fromStatus)
		}
	}
}

func TestFileIntegrityIsBuiltAnew(t *testing.T) {
	s := Default()
	s.Masters.Size, s.Workers.Size = 1, 1
	s.FileIntegrity = &FileIntegrity{Reinit: Duration(time.Minute)}
	v := newVirtual(t, s)
	integrity := integrityMetadata()
	integrity.Namespace, integrity.Name = integrityNamespace, integrityName
	v.view.put(integrity)
	get := func() *metav1.PartialObjectMetadata { return v.view.get(integrity).(*metav1.PartialObjectMetadata) }
	for round := 1; round <= 2; round++ {
		next := get().DeepCopy()
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, annotationReinit, "")
		v.view.put(next)
		v.pass(59 * time.Second)
		if _, asked := get().Annotations[annotationReinit]; !asked || Reinits(get()) != round-1 {
			t.Errorf("after 59s: %v", get().Annotations)
		}
		v.pass(2 * time.Second)
		if _, asked := get().Annotations[annotationReinit]; asked || Reinits(get()) != round {
			t.Errorf("after 61s: %v", get().Annotations)
		}
	}
}
