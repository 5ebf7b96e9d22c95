// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/monitoring"
)

// The kinds of silences, by the words with which the comments of the Managed Upgrade Operator begin.
const (
	ofControlPlane = "Silence for OSD control plane upgrade to version " + offered
	ofCriticals    = "Silence for critical alerts during OSD control plane upgrade to version " + offered
	ofWorkers      = "Silence for OSD worker node upgrade to version " + offered
)

// silencer is who the silences are of.
const silencer = "managed-upgrade-operator"

// lease is the shortest that a silence can have.
const lease = 10 * time.Second

// silencing has a job silence alerts by short leases, these critical ones too.
func silencing(criticals ...string) func(*v1beta1.UpgradeJob) {
	return configured(func(config *v1beta1.UpgradeJobConfig) {
		config.Maintenance = &v1beta1.Maintenance{
			SilenceLease: duration(lease), ControlPlaneTime: duration(time.Minute), ControlPlaneCriticals: criticals, Patience: duration(2 * time.Second),
		}
	})
}

// silencesOf returns the silences that were made for a job, by their beginning.
func (c *cluster) silencesOf(job *v1beta1.UpgradeJob) []monitoring.Silence {
	c.t.Helper()
	all, err := env.Monitoring.Alertmanager.Silences(c.ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(s monitoring.Silence) bool { return !strings.Contains(s.Comment, string(job.UID)) })
	slices.SortStableFunc(all, func(a, b monitoring.Silence) int { return a.StartsAt.Compare(b.StartsAt) })
	return all
}

func isActive(s monitoring.Silence) bool { return s.Status.State == monitoring.SilenceActive }

// recordSilences records the silences from now on, until the test ends.
func (c *cluster) recordSilences() *monitoring.SilenceRecorder {
	c.t.Helper()
	recorder, err := env.Monitoring.Alertmanager.RecordSilences(c.ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(recorder.Close)
	return recorder
}

// kindOf returns the kind of a silence.
func kindOf(s monitoring.Silence) string {
	for _, kind := range []string{ofControlPlane, ofCriticals, ofWorkers} {
		if strings.HasPrefix(s.Comment, kind) {
			return kind
		}
	}
	return s.Comment
}

// silenced expects that exactly these kinds of silences of a job are active.
func (c *cluster) silenced(job *v1beta1.UpgradeJob, kinds ...string) error {
	c.t.Helper()
	var got []string
	for _, s := range c.silencesOf(job) {
		if isActive(s) {
			got = append(got, kindOf(s))
		}
	}
	slices.Sort(got)
	if want := slices.Sorted(slices.Values(kinds)); !slices.Equal(got, want) {
		return fmt.Errorf("the active silences are %q, want %q", got, want)
	}
	return nil
}

// awaitSilences waits until exactly these kinds of silences of a job are active.
func (c *cluster) awaitSilences(job *v1beta1.UpgradeJob, kinds ...string) {
	c.t.Helper()
	c.eventually("the silences", func() error { return c.silenced(job, kinds...) })
}

// neverTwo expects that no kind of silence of a job was ever active twice at a time.
func (c *cluster) neverTwo(job *v1beta1.UpgradeJob, recorder *monitoring.SilenceRecorder) {
	c.t.Helper()
	for _, event := range recorder.Events() {
		if event.Kind != monitoring.SilenceCreated {
			continue
		}
		kinds := map[string]int{}
		for _, s := range recorder.ActiveAt(event.At) {
			if strings.Contains(s.Comment, string(job.UID)) {
				kinds[kindOf(s)]++
			}
		}
		for kind, n := range kinds {
			if n > 1 {
				c.t.Errorf("at %s there are %d silences %q", event.At.Format(time.StampMilli), n, kind)
			}
		}
	}
}

// matches writes the matchers of a silence in one line.
func matches(s monitoring.Silence) string {
	var parts []string
	for _, m := range s.Matchers {
		operator := map[[2]bool]string{{true, true}: "=~", {true, false}: "=", {false, true}: "!~", {false, false}: "!="}[[2]bool{m.IsEqual, m.IsRegex}]
		parts = append(parts, m.Name+operator+m.Value)
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// behindGateway starts the operator with a way to Alertmanager that can be cut.
func (c *cluster) behindGateway() *gateway {
	c.t.Helper()
	started, err := monitoring.StartGateway(c.ctx, env.Monitoring.Alertmanager.URL())
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = started.Close() })
	prometheus := c.startGateway()
	dir := filepath.Dir(prometheus.caFile)
	g := &gateway{started, prometheus.tokenFile, filepath.Join(dir, "both.crt")}
	g.SetToken(firstToken)
	c.write(g.caFile, append(prometheus.CA(), g.CA()...))
	c.start(environment.OperatorOptions{Args: []string{
		"--leader-elect=false", "--prometheus-url=" + prometheus.URL(), "--alertmanager-url=" + g.URL(),
		"--monitoring-token-file=" + g.tokenFile, "--monitoring-ca-file=" + g.caFile,
	}})
	return g
}

// cut cuts the way to Alertmanager, and returns how to have it back.
func (c *cluster) cut(g *gateway, how monitoring.Away) (back func()) {
	c.t.Helper()
	restore, err := g.GoAway(c.ctx, how)
	if err != nil {
		c.t.Fatal(err)
	}
	return func() {
		c.t.Helper()
		if err := restore(); err != nil {
			c.t.Fatal(err)
		}
	}
}
