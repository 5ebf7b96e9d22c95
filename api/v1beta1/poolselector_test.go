// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// poolsOf returns the selector of pools that stands in JSON, as an entry of machineConfigPools has it.
func poolsOf(t *testing.T, text string) *v1beta1.PoolSelector {
	t.Helper()
	entry := &v1beta1.MachineConfigPoolConfig{}
	if err := json.Unmarshal([]byte(text), entry); err != nil {
		t.Fatal(err)
	}
	return entry.MatchLabels
}

func TestPoolSelectorSelects(t *testing.T) {
	pools := map[string]labels.Set{
		"worker": {"role": "worker", "size": "big"}, "infra": {"role": "infra"}, "gpu": {"role": "worker", "gpu": "true"}, "bare": nil,
	}
	for _, tc := range []struct {
		reason string
		entry  string
		want   []string
	}{
		{"a plain map", `{"matchLabels": {"role": "worker"}}`, []string{"gpu", "worker"}},
		{"several labels of it, all of which count", `{"matchLabels": {"role": "worker", "size": "big"}}`, []string{"worker"}},
		{"a label selector", `{"matchLabels": {"matchLabels": {"role": "worker"}}}`, []string{"gpu", "worker"}},
		{"its expressions", `{"matchLabels": {"matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}, {"key": "role", "operator": "In", "values": ["worker", "infra"]}]}}`,
			[]string{"infra", "worker"}},
		{"its labels and expressions", `{"matchLabels": {"matchLabels": {"role": "worker"}, "matchExpressions": [{"key": "gpu", "operator": "Exists"}]}}`, []string{"gpu"}},
		{"both spellings at once mean both", `{"matchLabels": {"role": "worker", "matchLabels": {"size": "big"}}}`, []string{"worker"}},
		{"both at once, which say the same", `{"matchLabels": {"role": "infra", "matchLabels": {"role": "infra"}}}`, []string{"infra"}},
		{"both at once, which exclude each other", `{"matchLabels": {"role": "infra", "matchExpressions": [{"key": "role", "operator": "DoesNotExist"}]}}`, nil},
		{"an empty plain map", `{"matchLabels": {}}`, []string{"bare", "gpu", "infra", "worker"}},
		{"an empty label selector", `{"matchLabels": {"matchLabels": {}, "matchExpressions": []}}`, []string{"bare", "gpu", "infra", "worker"}},
		{"an empty value is one", `{"matchLabels": {"role": ""}}`, nil},
		{"none at all", `{}`, nil},
		{"null", `{"matchLabels": null}`, nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			selector, err := poolsOf(t, tc.entry).Selector()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, name := range []string{"bare", "gpu", "infra", "worker"} {
				if selector.Matches(pools[name]) {
					got = append(got, name)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("pools (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPoolSelectorThatIsNone(t *testing.T) {
	for _, tc := range []struct {
		reason string
		entry  string
		want   string
	}{
		{"a number", `{"matchLabels": {"size": 5}}`, "the value of label size is not a string but 5; put it in quotes"},
		{"true", `{"matchLabels": {"gpu": true}}`, "the value of label gpu is not a string but true; put it in quotes"},
		{"null", `{"matchLabels": {"gpu": null}}`, "the value of label gpu is not a string but null; put it in quotes"},
		{"an object", `{"matchLabels": {"gpu": {"a":"b"}}}`, `the value of label gpu is not a string but {"a":"b"}; put it in quotes`},
		{"the first by name, whatever the others are", `{"matchLabels": {"d": "x", "c": 3, "b": 2, "a": "x"}}`, "the value of label b is not a string but 2; put it in quotes"},
		{"what is too long to read", `{"matchLabels": {"a": ["` + strings.Repeat("x", 500) + `"]}}`,
			`the value of label a is not a string but ["` + strings.Repeat("x", 59) + `...; put it in quotes`},
		{"two spellings that contradict each other", `{"matchLabels": {"role": "worker", "matchLabels": {"role": "infra"}}}`, `label role is to be both "infra" and "worker"`},
		{"a value that no label has", `{"matchLabels": {"role": "not a label"}}`, `values[0][role]: Invalid value: "not a label"`},
		{"a key that no label has", `{"matchLabels": {"a b": "x"}}`, `Invalid value: "a b"`},
		{"an operator that there is not", `{"matchLabels": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}`, `"Like" is not a valid label selector operator`},
		{"an operator without its values", `{"matchLabels": {"matchExpressions": [{"key": "a", "operator": "In"}]}}`, "values set can't be empty"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			selector, err := poolsOf(t, tc.entry).Selector()
			if err == nil {
				t.Fatalf("got the selector %q, want an error", selector)
			}
			if !strings.Contains(err.Error(), tc.want) || strings.HasSuffix(err.Error(), ".") {
				t.Errorf("got the error %q, want %q in it, without a full stop", err, tc.want)
			}
		})
	}
}

// One object of which a label is no text must not hide the others from whoever lists them.
func TestPoolSelectorNeverFailsAList(t *testing.T) {
	const list = `{"items": [
		{"metadata": {"name": "odd"}, "spec": {"config": {"machineConfigPools": [{"matchLabels": {"a": 5, "b": null, "c": {"d": [true]}, "e": "text"}}]}}},
		{"metadata": {"name": "plain"}, "spec": {"config": {"machineConfigPools": [{"matchLabels": {"a": "b"}}]}}}
	]}`
	jobs := &v1beta1.UpgradeJobList{}
	if err := json.Unmarshal([]byte(list), jobs); err != nil {
		t.Fatal(err)
	}
	if len(jobs.Items) != 2 || jobs.Items[1].Name != "plain" {
		t.Fatalf("got %d jobs, want both", len(jobs.Items))
	}
	got := jobs.Items[0].Spec.Config.MachineConfigPools[0].MatchLabels
	want := &v1beta1.PoolSelector{Labels: map[string]string{"e": "text"}, Malformed: map[string]string{"a": "5", "b": "null", "c": `{"d": [true]}`}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
}

// What the schema of the CRD refuses is an error here too.
func TestPoolSelectorFailsWhereTheSchemaDoes(t *testing.T) {
	for _, tc := range []struct{ entry, want string }{
		{`{"matchLabels": "role=worker"}`, "read the selector of pools: "},
		{`{"matchLabels": ["role"]}`, "read the selector of pools: "},
		{`{"matchLabels": {"matchLabels": "role=worker"}}`, "read matchLabels of the selector of pools: "},
		{`{"matchLabels": {"matchLabels": {"size": 5}}}`, "read matchLabels of the selector of pools: "},
		{`{"matchLabels": {"matchExpressions": {"key": "role"}}}`, "read matchExpressions of the selector of pools: "},
	} {
		err := json.Unmarshal([]byte(tc.entry), &v1beta1.MachineConfigPoolConfig{})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got the error %v, want %q", tc.entry, err, tc.want)
		}
	}
}

func TestPoolSelectorIsWrittenAsItWasRead(t *testing.T) {
	for _, text := range []string{
		`{}`,
		`{"role":"worker"}`,
		`{"matchLabels":{"role":"worker"}}`,
		`{"matchLabels":{}}`,
		`{"matchExpressions":[{"key":"gpu","operator":"Exists"}]}`,
		`{"matchExpressions":[]}`,
		`{"gpu":{"a":[1,null]},"matchLabels":{"role":"worker"},"role":"worker","size":5,"zone":null}`,
	} {
		t.Run(text, func(t *testing.T) {
			read := poolsOf(t, `{"matchLabels":`+text+`}`)
			written, err := json.Marshal(v1beta1.MachineConfigPoolConfig{MatchLabels: read.DeepCopy()})
			if err != nil {
				t.Fatal(err)
			}
			if want := `{"matchLabels":` + text + `}`; string(written) != want {
				t.Errorf("got %s, want %s", written, want)
			}
			again := poolsOf(t, string(written))
			if diff := cmp.Diff(read, again); diff != "" {
				t.Errorf("read again (-before +after):\n%s", diff)
			}
		})
	}
}

// An object is decoded into one that was used before: nothing of that may stay.
func TestPoolSelectorForgetsWhatItWas(t *testing.T) {
	s := &v1beta1.PoolSelector{}
	for _, text := range []string{`{"role": "worker", "size": 5, "matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}`, `{"d": "e"}`} {
		if err := json.Unmarshal([]byte(text), s); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(&v1beta1.PoolSelector{Labels: map[string]string{"d": "e"}}, s); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
}

func TestPoolSelectorCopiesShareNothing(t *testing.T) {
	read := poolsOf(t, `{"matchLabels": {"role": "worker", "size": 5, "matchLabels": {"a": "b"}}}`)
	kept := read.DeepCopy()
	changed := read.DeepCopy()
	changed.Labels["role"], changed.Malformed["size"], changed.MatchLabels["a"] = "infra", "6", "c"
	if diff := cmp.Diff(kept, read); diff != "" {
		t.Errorf("a change of the copy changed the original (-want +got):\n%s", diff)
	}
}
