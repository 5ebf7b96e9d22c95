// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/environment"
)

const wantDuration = "must be a duration such as 90s, 30m or 1h30m, not negative and at most 8760h"

func TestBadManifestsAreRefusedWithTheWordsThatMendThem(t *testing.T) {
	const (
		config = `{apiVersion: managedupgrade.appuio.io/v1beta1, kind: UpgradeConfig, metadata: {name: bad}, spec: {schedule: {cron: "0 22 * * 2"}}}`
		job    = `{apiVersion: managedupgrade.appuio.io/v1beta1, kind: UpgradeJob, metadata: {name: bad}, spec: {
			startAfter: "2026-01-06T21:00:00Z", startBefore: "2026-01-06T22:00:00Z", desiredVersion: {version: 4.18.2}}}`
		window  = `{apiVersion: managedupgrade.appuio.io/v1beta1, kind: UpgradeSuspensionWindow, metadata: {name: bad}, spec: {start: "2026-12-20T08:00:00Z", end: "2027-01-06T08:00:00Z"}}`
		version = `{apiVersion: managedupgrade.appuio.io/v1beta1, kind: ClusterVersion, metadata: {name: version}, spec: {template: {spec: {channel: stable-4.18}}}}`
	)
	tests := []struct {
		name     string
		manifest string
		path     string // of the field that is set
		value    any
		words    []string
	}{
		{"cron of six fields", config, "spec.schedule.cron", "0 0 22 * * 2", []string{"spec.schedule.cron", "five fields"}},
		{"cron of one word", config, "spec.schedule.cron", "tuesdays", []string{"spec.schedule.cron", "five fields", "@weekly"}},
		{"cron that is empty", config, "spec.schedule.cron", "", []string{"spec.schedule.cron"}},
		{"cron with a time zone", config, "spec.schedule.cron", "TZ=Europe/Zurich 0 22 * * 2", []string{"the time zone belongs into location"}},
		{"no cron", config, "spec.schedule", map[string]any{"isoWeek": "@odd"}, []string{"spec.schedule.cron", "Required"}},
		{"ISO week 54", config, "spec.schedule.isoWeek", "54", []string{"spec.schedule.isoWeek", "@odd, @even, a week from 1 to 53"}},
		{"ISO week 0", config, "spec.schedule.isoWeek", "0", []string{"spec.schedule.isoWeek", "a week from 1 to 53"}},
		{"negative pinVersionWindow", config, "spec.pinVersionWindow", "-4h", []string{"spec.pinVersionWindow", wantDuration}},
		{"negative maxSchedulingDelay", config, "spec.maxSchedulingDelay", "-1s", []string{"spec.maxSchedulingDelay", wantDuration}},
		{"duration of a year in words", config, "spec.maxUpgradeStartDelay", "1y", []string{"spec.maxUpgradeStartDelay", wantDuration}},
		{"duration beyond a year", config, "spec.pinVersionWindow", "8761h", []string{"spec.pinVersionWindow", wantDuration}},
		{"duration that is a number", config, "spec.pinVersionWindow", 30, []string{"spec.pinVersionWindow", "string"}},
		{"no time at all to create a job", config, "spec.maxSchedulingDelay", "0s", []string{"spec.maxSchedulingDelay", "must be longer than 0s"}},
		{"start window without any length", config, "spec.maxUpgradeStartDelay", "0s", []string{"spec.maxUpgradeStartDelay", "must be longer than 0s"}},
		{"unknown noUpdatePolicy", config, "spec.noUpdatePolicy", "Panic", []string{"spec.noUpdatePolicy", `"Skip"`, `"CreateJob"`}},
		{"negative timeout of a health check", config, "spec.jobTemplate.spec.config.preUpgradeHealthChecks.timeout", "-1m", []string{"preUpgradeHealthChecks.timeout", wantDuration}},
		{"unknown field", config, "spec.pinVersionWidow", "4h", []string{"spec.pinVersionWidow"}},

		{"startBefore before startAfter", job, "spec.startBefore", "2026-01-06T20:00:00Z", []string{"startBefore must be after startAfter"}},
		{"startBefore at startAfter", job, "spec.startBefore", "2026-01-06T21:00:00Z", []string{"startBefore must be after startAfter"}},
		{"no startBefore", job, "spec.startBefore", nil, []string{"spec.startBefore", "Required"}},
		{"version of words", job, "spec.desiredVersion.version", "latest", []string{"must be a version such as 4.18.2"}},
		{"neither version nor image", job, "spec.desiredVersion", map[string]any{}, []string{"version or image must be set"}},
		{"negative upgradeTimeout", job, "spec.config.upgradeTimeout", "-12h", []string{"spec.config.upgradeTimeout", wantDuration}},

		{"window that ends before it starts", window, "spec.end", "2026-12-19T08:00:00Z", []string{"end must be after start"}},
		{"window without any length", window, "spec.end", "2026-12-20T08:00:00Z", []string{"end must be after start"}},

		{"second ClusterVersion", version, "metadata.name", "another", []string{"there is one ClusterVersion per cluster: its name must be version"}},
		{"ClusterVersion without a template", version, "spec.template", nil, []string{"spec.template", "Required"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := submit(t, tt.manifest, "", nil); err != nil {
				t.Fatalf("the manifest is bad before it is changed: %v", err)
			}
			expectRefusal(t, submit(t, tt.manifest, tt.path, tt.value), tt.words...)
		})
	}
}

// submit asks the API server whether it takes a manifest in which a field is set, or removed by nil.
func submit(t *testing.T, manifest, path string, value any) error {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetNamespace(environment.Namespace)
	if fields := strings.Split(path, "."); value != nil {
		data, err := yaml.Marshal(value)
		if err == nil {
			err = yaml.Unmarshal(data, &value) // into the types of JSON
		}
		if err == nil {
			err = unstructured.SetNestedField(object.Object, value, fields...)
		}
		if err != nil {
			t.Fatal(err)
		}
	} else if path != "" {
		unstructured.RemoveNestedField(object.Object, fields...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return env.Client.Create(ctx, object, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
}

func TestConfigThatCannotBeUsedSaysHowToMendIt(t *testing.T) {
	c := newCluster(t)
	c.startOperator()
	config := create(c, aConfig())
	c.waitConfig(config, v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonValid)
	tests := []struct {
		name   string
		change func(*v1beta1.UpgradeConfigSpec)
		reason string
		words  []string
	}{
		{"unknown time zone", func(s *v1beta1.UpgradeConfigSpec) { s.Schedule.Location = "Europe/Zuerich" },
			v1beta1.ReasonInvalidLocation, []string{`"Europe/Zuerich"`, "IANA"}},
		{"minute 99", func(s *v1beta1.UpgradeConfigSpec) { s.Schedule.Cron = "99 22 * * 2" },
			v1beta1.ReasonInvalidCron, []string{"99", "minute", "0-59"}},
		{"30 February", func(s *v1beta1.UpgradeConfigSpec) { s.Schedule.Cron = "0 22 30 2 *" },
			v1beta1.ReasonNoNextSchedule, []string{"30 February never occurs", "change the day or the month"}},
		{"unknown upgrader", func(s *v1beta1.UpgradeConfigSpec) { s.JobTemplate.Spec.Config.Upgrader = "kubeadm" },
			v1beta1.ReasonUnknownUpgrader, []string{`"kubeadm"`, "OpenShift"}},
	}
	for _, tt := range tests {
		edit(c, config, func(config *v1beta1.UpgradeConfig) {
			config.Spec = aConfig().Spec
			tt.change(&config.Spec)
		})
		c.waitConfig(config, v1beta1.ConditionReady, metav1.ConditionFalse, tt.reason, tt.words...)
		c.waitConfig(config, v1beta1.ConditionScheduling, metav1.ConditionFalse, v1beta1.ReasonInvalidConfig)
		if got := config.Status.NextPossibleSchedules; len(got) > 0 {
			t.Errorf("%s: there are next starts: %v", tt.name, got)
		}
	}
	edit(c, config, func(config *v1beta1.UpgradeConfig) { config.Spec = aConfig().Spec })
	c.waitConfig(config, v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonValid)
	c.waitConfig(config, v1beta1.ConditionScheduling, metav1.ConditionTrue, v1beta1.ReasonScheduled)
}

func TestSpecOfAJobIsImmutableButForItsWindow(t *testing.T) {
	c := newCluster(t, degraded("storage"))
	c.startOperator()
	job := create(c, aJob(startingAt(time.Now().Truncate(time.Second).Add(30*time.Minute))))
	c.wait(job, notStarted(v1beta1.ReasonWaitingForStart))
	for _, fixed := range []struct {
		change func(*v1beta1.UpgradeJob)
		words  string
	}{
		{to("4.18.3"), "desiredVersion is immutable"},
		{func(job *v1beta1.UpgradeJob) { job.Spec.DesiredVersion = nil }, "desiredVersion is immutable"},
		{func(job *v1beta1.UpgradeJob) { *job.Spec.DesiredVersionCheckAvailability = false }, "desiredVersionCheckAvailability is immutable"},
		{configured(func(config *v1beta1.UpgradeJobConfig) { config.UpgradeTimeout = duration(time.Hour) }), "config is immutable"},
	} {
		refused(c, job, fixed.change, fixed.words)
	}

	// The window can be moved until the job has started, and counts.
	edit(c, job, startingAt(soon(10*time.Minute)))
	start := soon(time.Second)
	edit(c, job, startingAt(start))
	c.wait(job, waitingIn(steps.ConditionClusterHealthyBeforeUpgrade, v1beta1.ReasonUnhealthy))
	c.promptly("the start", c.when(job, started()), start)
	refused(c, job, startingAt(start.Add(time.Minute)), "immutable once the job has started")
	refused(c, job, startingBefore(start.Add(2*time.Hour)), "immutable once the job has started")
	c.change(mended)
	c.wait(job, succeeded())
}

// kubectl runs the control plane's kubectl as an administrator.
func (c *cluster) kubectl(args ...string) string {
	c.t.Helper()
	return c.kubectlAnywhere(append([]string{"--namespace", environment.Namespace}, args...)...)
}

// kubectlAnywhere is kubectl for objects that say where they belong.
func (c *cluster) kubectlAnywhere(args ...string) string {
	c.t.Helper()
	cmd := exec.CommandContext(c.ctx, env.Kubectl(), append([]string{"--kubeconfig", env.Kubeconfig()}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Manifests that are in use apply as they are, and their objects work.
func TestSamplesApply(t *testing.T) {
	samples, err := filepath.Glob("testdata/samples/*.yaml")
	if err != nil || len(samples) == 0 {
		t.Fatalf("there are no samples: %v", err)
	}
	c := newCluster(t)
	c.startOperator()
	for _, sample := range samples {
		c.becomeClusterOf(sample)
		out := c.kubectl("apply", "--validate=strict", "-f", sample)
		if strings.Contains(out, "Warning") {
			t.Errorf("kubectl warns of %s: %s", sample, out)
		}
		for kind, condition := range map[string]string{
			"upgradeconfigs.managedupgrade.appuio.io": v1beta1.ConditionReady, "upgradesuspensionwindows": v1beta1.ConditionReady,
			"clusterversions.managedupgrade.appuio.io": v1beta1.ConditionReady, "upgradejobs": v1beta1.ConditionSkipped,
			"upgradejobhooks": v1beta1.ConditionReady, "nodeforcedrains": v1beta1.ConditionReady,
		} {
			if c.kubectl("get", kind, "-o", "name") != "" {
				c.kubectl("wait", kind, "--all", "--for=condition="+condition, "--timeout=20s")
			}
		}
		c.kubectl("delete", "--wait", "-f", sample)
	}
}

// becomeClusterOf gives the cluster the id that a sample names: the policy lets the operator make no other cluster of it.
func (c *cluster) becomeClusterOf(sample string) {
	c.t.Helper()
	text, err := os.ReadFile(sample)
	if err != nil {
		c.t.Fatal(err)
	}
	if id := regexp.MustCompile(`clusterID: *"?([0-9a-f-]{36})`).FindSubmatch(text); id != nil {
		c.kubectlAnywhere("patch", "clusterversions.config.openshift.io", "version", "--type=merge", "-p", fmt.Sprintf(`{"spec": {"clusterID": %q}}`, id[1]))
	}
}

// The documented samples of what is shipped apply all together, and what can be ready is.
func TestShippedSamplesApply(t *testing.T) {
	c := newCluster(t)
	c.startOperator()
	folder := filepath.Join(environment.Root(), "deploy", "samples")
	if out := c.kubectlAnywhere("apply", "--validate=strict", "-f", folder); strings.Contains(out, "Warning") {
		t.Errorf("kubectl warns of %s: %s", folder, out)
	}
	for _, kind := range []string{
		"upgradeconfigs.managedupgrade.appuio.io", "upgradesuspensionwindows", "upgradejobhooks", "clusterversions.managedupgrade.appuio.io", "nodeforcedrains", "upgraders",
	} {
		c.kubectl("wait", kind, "--all", "--for=condition="+v1beta1.ConditionReady, "--timeout=20s")
	}
	c.wait(&v1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: "to-4-18-2"}},
		notStarted(v1beta1.ReasonWaitingForStart))
}
