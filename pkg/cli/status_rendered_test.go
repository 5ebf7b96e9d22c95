// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	o "github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// notRendered is a cluster on its way to 4.18.2 whose machine-config operator has rendered nothing for it: night is paused by a job which is at it, left by
// one that is gone, and worker cannot be rendered. All of their machines have the configuration of 4.18.1, which is theirs still.
func notRendered(objects ...client.Object) []client.Object {
	return append([]client.Object{
		updating("Working towards 4.18.2: 503 of 842 done (59% complete)"), upgradeJob(started(time.Minute, preflightSteps...)),
		o.Pool("night", o.PoolPausedBy("upgrades/weekly-1795554000-abc1234")), o.Pool("left", o.PoolPausedBy("upgrades/gone")),
		o.Pool("worker", o.PoolCondition(mcfgv1.MachineConfigPoolRenderDegraded, "no such kernel type")),
		o.Node("night-0", "night"), o.Node("left-0", "left"), o.Node("worker-0", "worker"),
	}, objects...)
}

func TestMachinesOfTheOldReleaseAreNotUpdated(t *testing.T) {
	of := func(version string) []client.Object {
		return []client.Object{o.MachineConfig("night", version), o.MachineConfig("left", version), o.MachineConfig("worker", version)}
	}
	for _, tc := range []struct {
		reason         string
		objects        []client.Object
		onRelease, not string
		states         []string
	}{
		{"configurations of the old release", of("4.18.1"), "0 of 3", "3 of 3", []string{
			"left-0 paused: pool left is paused by upgrades/gone, and has no configuration of 4.18.2 yet",
			"night-0 paused: pool night is paused by upgrades/weekly-1795554000-abc1234, and has no configuration of 4.18.2 yet",
			"worker-0 pending: pool worker has no configuration of 4.18.2 yet",
		}},
		{"it is not known which release they are of", []client.Object{
			unsigned(o.MachineConfig("night", "4.18.1")), unsigned(o.MachineConfig("left", "4.18.1")), unsigned(o.MachineConfig("worker", "4.18.1")),
		}, "3 of 3", "0 of 3", []string{"left-0 done", "night-0 done", "worker-0 done"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			c := world(notRendered(tc.objects...)...).Build()
			ask := func(line string) string {
				out, errOut, status := runTool(t, c, window.Add(45*time.Minute), strings.Fields(line)...)
				if status != ExitOK {
					t.Fatalf("%s: exit status %d, %s", line, status, errOut)
				}
				return out
			}
			nodes, r := nodesReport{}, statusReport{}
			for line, into := range map[string]any{"nodes -o json": &nodes, "status -o json": &r} {
				if err := json.Unmarshal([]byte(ask(line)), into); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
			}
			var states []string
			for _, h := range nodes.Nodes {
				states = append(states, strings.TrimSuffix(h.Name+" "+h.State+": "+h.Reason, ": "))
			}
			if diff := cmp.Diff(tc.states, states); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
			for _, p := range r.Pools {
				if p.Updated != 3 || fmt.Sprintf("%d of 3", p.OnRelease) != tc.onRelease {
					t.Errorf("of pool %s the machine-config operator counts %d machines, and %d run the release", p.Name, p.Updated, p.OnRelease)
				}
			}
			for _, f := range factsOf(&r) {
				if strings.HasPrefix(f.about, "pool ") && !strings.Contains(f.text, tc.onRelease+" machines updated") {
					t.Errorf("of %s it tells %q, want %s", f.about, f.text, tc.onRelease)
				}
			}
			for line, want := range map[string]string{"status": " machines are updated", "status -o html": " updated"} {
				text := ask(line)
				if !strings.Contains(text, tc.onRelease+want) || strings.Contains(text, tc.not) {
					t.Errorf("%s: want %q alone:\n%s", line, tc.onRelease+want, strings.Join(linesWith(text, "of 3"), ""))
				}
			}
		})
	}
}

// unsigned is a configuration that does not say which release rendered it.
func unsigned(config *mcfgv1.MachineConfig) *mcfgv1.MachineConfig {
	config.Annotations = nil
	return config
}

// TestDescribedPoolsOfTheOldRelease: what a job recorded of a pool tells the same as status does.
func TestDescribedPoolsOfTheOldRelease(t *testing.T) {
	old, next := o.RenderedConfig("worker", "4.18.1"), o.RenderedConfig("worker", "4.18.2")
	for _, tc := range []struct {
		reason string
		pool   v1beta1.MachineConfigPoolStatus
		want   string
	}{
		{"not rendered", v1beta1.MachineConfigPoolStatus{State: v1beta1.PoolStateNotRendered, Updated: 3}, "0 of 3"},
		{"paused, and not rendered", v1beta1.MachineConfigPoolStatus{State: v1beta1.PoolStatePaused, Updated: 3, CurrentConfig: old, TargetConfig: old}, "0 of 3"},
		{"it cannot be rendered", v1beta1.MachineConfigPoolStatus{State: v1beta1.PoolStateDegraded, Updated: 3, CurrentConfig: old, TargetConfig: old}, "0 of 3"},
		{"paused on the way", v1beta1.MachineConfigPoolStatus{State: v1beta1.PoolStatePaused, Updated: 1, CurrentConfig: old, TargetConfig: next}, "1 of 3"},
		{"paused, with a machine away", v1beta1.MachineConfigPoolStatus{State: v1beta1.PoolStatePaused, Updated: 3, Unavailable: 1, CurrentConfig: next, TargetConfig: next}, "3 of 3"},
		{"the last machine comes back", v1beta1.MachineConfigPoolStatus{State: v1beta1.PoolStateUpdating, Updated: 3, CurrentConfig: next, TargetConfig: next}, "3 of 3"},
		{"updated", v1beta1.MachineConfigPoolStatus{State: v1beta1.PoolStateUpdated, Updated: 3, CurrentConfig: next, TargetConfig: next}, "3 of 3"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			v := &view{now: window, width: 120}
			tc.pool.Name, tc.pool.Machines = "worker", 3
			v.printPoolStates([]v1beta1.MachineConfigPoolStatus{tc.pool})
			if got := v.String(); !strings.Contains(got, tc.want) {
				t.Errorf("want %s: %s", tc.want, got)
			}
		})
	}
}

// linesWith are the lines of a text that contain a word.
func linesWith(text, word string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			lines = append(lines, line)
		}
	}
	return lines
}
