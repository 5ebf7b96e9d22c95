// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"embed"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestScenarioSurvivesYAML(t *testing.T) {
	want := Default()
	limit := intstr.FromString("25%")
	want.Workers.MaxUnavailable = &limit
	want.CustomPools = []CustomPool{{Name: "infra", Labels: map[string]string{"a": "b"}, Pool: Pool{Size: 2}}}
	want.MachineConfigNodes = true
	want.MachineAPI = &MachineAPI{
		MachineSets: []InstalledMachineSet{{Name: "worker", Labels: map[string]string{"a": "b"}, Replicas: new(0)}},
		Ready:       Duration(time.Second), Faults: []MachineSetFault{{Name: "*", Refused: "no", Slow: 2}},
	}
	want.FileIntegrity = &FileIntegrity{Missing: true, Reinit: Duration(time.Second)}
	want.Upstream = "http://127.0.0.1/graph"
	want.Graph = Graph{Status: 503, Slow: Duration(time.Second), Multi: true, Retrieval: Duration(time.Second), Between: "Unknown"}
	want.Updates[0].Channels = []string{"stable-4.18"}
	want.Timings.Operators = map[string]Duration{"etcd": Duration(1500 * time.Millisecond)}
	want.Nodes = []NodeFault{{Name: "worker-1", Slow: 2.5, AbandonsDrain: Duration(time.Second)}}
	text, err := want.YAML()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse([]byte(text), Scenario{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scenario after YAML (-want +got):\n%s", diff)
	}
}

func TestParseKeepsTheBase(t *testing.T) {
	got, err := Parse([]byte("workers: {size: 1}\ntimings: {reboot: 3s}"), Default())
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Workers.Size = 1
	want.Timings.Reboot = Duration(3 * time.Second)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scenario (-want +got):\n%s", diff)
	}
}

func TestParseReplacesLists(t *testing.T) {
	base := Default()
	base.CustomPools = []CustomPool{{Name: "night", Labels: map[string]string{"a": "b"}, Pool: Pool{Size: 2}}}
	got, err := Parse([]byte("customPools: [{name: infra}]"), base)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]CustomPool{{Name: "infra"}}, got.CustomPools); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
	if base.CustomPools[0].Name != "night" || len(base.CustomPools[0].Labels) != 1 {
		t.Errorf("the base became %+v", base.CustomPools)
	}
}

func TestParseReplacesListsOfTheMachineAPI(t *testing.T) {
	base := Default()
	base.MachineAPI = &MachineAPI{
		Ready: Duration(time.Second), MachineSets: []InstalledMachineSet{{Name: "a", Replicas: new(1)}}, Faults: []MachineSetFault{{Name: "a", Slow: 2}},
	}
	got, err := Parse([]byte("machineAPI: {faults: [{name: b}], joining: 2s}"), base)
	if err != nil {
		t.Fatal(err)
	}
	want := &MachineAPI{
		Ready: Duration(time.Second), Joining: Duration(2 * time.Second),
		MachineSets: []InstalledMachineSet{{Name: "a", Replicas: new(1)}}, Faults: []MachineSetFault{{Name: "b"}},
	}
	if diff := cmp.Diff(want, got.MachineAPI); diff != "" {
		t.Errorf("Machine API (-want +got):\n%s", diff)
	}
	if base.MachineAPI.Faults[0].Name != "a" || base.MachineAPI.Joining != 0 {
		t.Errorf("the base became %+v", base.MachineAPI)
	}
}

func TestParseNamesTheMistake(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"unknown field", "wrokers: {size: 1}", "wrokers"},
		{"duration without a unit", "timings: {drain: 5}", `5 is not a duration: write it as a string with a unit`},
		{"no duration", "timings: {drain: soon}", `"soon" is not a duration`},
		{"negative duration", "timings: {drain: -1s}", "timings.drain: must not be negative"},
		{"version", "version: 4.18", `version: "4.18" is not a version like 4.18.1`},
		{"no masters", "masters: {size: 0}", "masters.size: must be at least 1"},
		{"no channel", "channels: []", "channels: must list at least one channel"},
		{"percentage", "workers: {maxUnavailable: half}", "workers.maxUnavailable"},
		{"pool twice", "customPools: [{name: worker, size: 1}]", `customPools[0].name: "worker" exists already`},
		{"pool's name", "customPools: [{name: 'a b', size: 1}]", `customPools[0].name: "a b" is not a name`},
		{"update twice", "updates: [{version: 4.18.2}, {version: 4.18.2}]", `updates[1].version: "4.18.2" is listed twice`},
		{"risk", "updates: [{version: 4.18.2, risks: [{name: X, message: x, applies: Maybe}]}]", `updates[0].risks[0].applies: "Maybe" is none of Yes, No, Unknown`},
		{"operator", "operators: [{name: networking}]", `operators[0].name: there is no cluster operator "networking"`},
		{"operator's time", "timings: {operators: {networking: 1s}}", `there is no cluster operator "networking"`},
		{"refusal", "releases: [{version: 4.18.2, reason: Bad}]", `releases[0].reason: "Bad" is none of`},
		{"unknown updates", "updatesUnknown: {message: x}", "updatesUnknown.reason: must be set"},
		{"drain", "timings: {drainRetry: -1s, drainFails: -2s}", "timings.drainRetry: must not be negative, is -1s\ntimings.drainFails: must not be negative, is -2s"},
		{"drain that is given up", "nodes: [{name: a, abandonsDrain: -1s}]", "nodes[0].abandonsDrain: must not be negative"},
		{"label's key", "customPools: [{name: a, labels: {'no good': x}}]", `customPools[0].labels: "no good": "x" is not a label`},
		{"label's value", "customPools: [{name: a, labels: {good: 'no good'}}]", `customPools[0].labels: "good": "no good" is not a label`},
		{"empty channel", "updates: [{version: 4.18.2, channels: ['']}]", "updates[0].channels: must not list an empty channel"},
		{"no error", "graph: {status: 200, slow: -1s, retrieval: -1s, between: Maybe}", "graph.status: 200 is no HTTP status of an error\ngraph.slow: must not be negative, is -1s\ngraph.retrieval: must not be negative, is -1s\ngraph.between: \"Maybe\" is none of Unknown, False"},
		{"re-init", "fileIntegrity: {reinit: -1s}", "fileIntegrity.reinit: must not be negative"},
		{"machine times", "machineAPI: {provisioning: -1s, deleting: -2s}", "machineAPI.provisioning: must not be negative, is -1s\nmachineAPI.deleting: must not be negative, is -2s"},
		{"no sets but some", "machineAPI: {noMachineSets: true, machineSets: [{name: a}]}", "machineAPI.noMachineSets: must not be set when machineSets are listed"},
		{"set's name", "machineAPI: {machineSets: [{name: 'a b'}]}", `machineAPI.machineSets[0].name: "a b" is not a name`},
		{"set twice", "machineAPI: {machineSets: [{name: a, replicas: 1}, {name: a}]}", `machineAPI.machineSets[1].name: "a" exists already`},
		{"set's label", "machineAPI: {machineSets: [{name: a, labels: {'no good': x}}]}", `machineAPI.machineSets[0].labels: "no good": "x" is not a label`},
		{"set's pool", "machineAPI: {machineSets: [{name: a, pool: master}]}", `machineAPI.machineSets[0].pool: there is no pool of workers "master"`},
		{"too many replicas", "machineAPI: {machineSets: [{name: a, replicas: 6}, {name: b, replicas: 1}]}", "machineAPI.machineSets[1].replicas: pool worker has 6 nodes"},
		{"machine fault", "machineAPI: {faults: [{slow: -1}]}", "machineAPI.faults[0].name: must be set\nmachineAPI.faults[0].slow: must not be negative"},
		{"node", "nodes: [{slow: -1}]", "nodes[0].name: must be set\nnodes[0].slow: must not be negative"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse([]byte(tc.text), Default())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestClusterOperatorsAreInOrder(t *testing.T) {
	if !slices.IsSortedFunc(clusterOperators, func(a, b clusterOperator) int {
		if a.level != b.level {
			return a.level - b.level
		}
		return strings.Compare(a.name, b.name)
	}) {
		t.Error("clusterOperators is not sorted by level and name")
	}
	if last := clusterOperators[len(clusterOperators)-1].name; last != machineConfigOperator {
		t.Errorf("the last operator is %s, want %s", last, machineConfigOperator)
	}
}

// TestCRDsAreThoseOfTheModule compares the embedded manifests with those of
// github.com/openshift/api in the version of go.mod. After an update of that
// module, copy them again.
func TestCRDsAreThoseOfTheModule(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	if err != nil {
		t.Fatalf("find github.com/openshift/api: %v", err)
	}
	module := strings.TrimSpace(string(out))
	checkManifests(t, module, crdFiles, "crds", 5)
	checkManifests(t, module, optionalCRDFiles, reportCRDs, 1)
	checkManifests(t, module, optionalCRDFiles, machineCRDs, 2)
}

func checkManifests(t *testing.T, module string, source embed.FS, folder string, count int) {
	t.Helper()
	files, err := source.ReadDir(folder)
	if err != nil || len(files) != count {
		t.Fatalf("embedded manifests: %d, %v", len(files), err)
	}
	for _, file := range files {
		origins, err := filepath.Glob(filepath.Join(module, "*", "v1*", "zz_generated.crd-manifests", file.Name()))
		if err != nil || len(origins) != 1 {
			t.Errorf("%s is %d times in %s", file.Name(), len(origins), module)
			continue
		}
		want, err := os.ReadFile(origins[0])
		if err != nil {
			t.Fatal(err)
		}
		if got, err := source.ReadFile(folder + "/" + file.Name()); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs from %s (%v)", file.Name(), origins[0], err)
		}
	}
}
