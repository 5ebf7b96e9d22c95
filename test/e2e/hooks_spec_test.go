// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/environment"
)

func TestBadHooksAndReceiversAreRefusedWithTheWordsThatMendThem(t *testing.T) {
	const (
		hook = `{apiVersion: managedupgrade.appuio.io/v1beta1, kind: UpgradeJobHook, metadata: {name: bad}, spec: {events: [Start],
			template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "a:1"}]}}}}}}`
		job = `{apiVersion: managedupgrade.appuio.io/v1beta1, kind: UpgradeJob, metadata: {name: bad}, spec: {
			startAfter: "2026-01-06T21:00:00Z", startBefore: "2026-01-06T22:00:00Z", config: {notifications: [{url: "https://example.com/hook"}]}}}`
		receivers = "spec.config.notifications"
	)
	receiver := func(fields map[string]any) []any { return []any{fields} }
	knownEvents := []string{"spec.events[0]", "must be Create, Start, UpgradeComplete", "StepCompleted/<Condition>"}
	const goodURL = "must be an http or https URL without user and password"
	tests := []struct {
		name     string
		manifest string
		path     string // of the field that is set
		value    any
		words    []string
	}{
		{"unknown event", hook, "spec.events", []any{"Begin"}, knownEvents},
		{"event in small letters", hook, "spec.events", []any{"start"}, knownEvents},
		{"step event without a step", hook, "spec.events", []any{"StepStarted/"}, knownEvents},
		{"step event with a slash too many", hook, "spec.events", []any{"StepCompleted/ControlPlane/Upgraded"}, knownEvents},
		{"no event", hook, "spec.events", []any{}, []string{"spec.events", "at least 1"}},
		{"the same event twice", hook, "spec.events", []any{"Start", "Start"}, []string{"spec.events[1]", "Duplicate"}},
		{"unknown run", hook, "spec.run", "Once", []string{"spec.run", `"Next"`, `"All"`}},
		{"unknown failurePolicy", hook, "spec.failurePolicy", "Retry", []string{"spec.failurePolicy", `"Ignore"`, `"Abort"`}},
		{"no template", hook, "spec.template", nil, []string{"spec.template", "Required"}},
		{"no containers", hook, "spec.template.spec.template.spec.containers", nil, []string{"containers", "Required"}},
		{"unknown field", hook, "spec.disruptiv", true, []string{"spec.disruptiv"}},

		{"receiver without an address", job, receivers, receiver(map[string]any{"name": "chat"}), []string{"exactly one of url and urlFrom must be set"}},
		{"receiver with two addresses", job, receivers, receiver(map[string]any{"url": "https://example.com", "urlFrom": map[string]any{"name": "a", "key": "b"}}),
			[]string{"exactly one of url and urlFrom must be set"}},
		{"URL with a password", job, receivers, receiver(map[string]any{"url": "https://me:secret@example.com"}), []string{goodURL}},
		{"URL of another kind", job, receivers, receiver(map[string]any{"url": "ftp://example.com"}), []string{goodURL}},
		{"no URL at all", job, receivers, receiver(map[string]any{"url": "example.com"}), []string{goodURL}},
		{"unknown filter", job, receivers, receiver(map[string]any{"url": "https://example.com", "events": []any{"job.ended"}}), []string{"events[0]", `"job.*"`, `"job.succeeded"`}},
		{"two receivers of one name", job, receivers, []any{
			map[string]any{"name": "a", "url": "https://example.com/1"}, map[string]any{"name": "a", "url": "https://example.com/2"},
		}, []string{"two receivers have the same name"}},
		{"name that is none", job, receivers, receiver(map[string]any{"url": "https://example.com", "name": "The Chat"}), []string{"name", "DNS label"}},
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

func TestHookThatCannotBeUsedSaysHowToMendIt(t *testing.T) {
	c := newCluster(t)
	c.startOperator()
	hook := create(c, aHook())
	c.waitHook(hook, metav1.ConditionTrue, v1beta1.ReasonValid)
	tests := []struct {
		name   string
		change func(*v1beta1.UpgradeJobHookSpec)
		reason string
		words  []string
	}{
		{"Job that would restart for ever", func(s *v1beta1.UpgradeJobHookSpec) {
			s.Template.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
		},
			v1beta1.ReasonInvalidTemplate, []string{"restartPolicy", `"OnFailure"`, `"Never"`}},
		{"container without an image", func(s *v1beta1.UpgradeJobHookSpec) { s.Template.Spec.Template.Spec.Containers[0].Image = "" },
			v1beta1.ReasonInvalidTemplate, []string{"containers[0].image", "Required"}},
		{"step that no upgrader has", func(s *v1beta1.UpgradeJobHookSpec) { s.Events = append(s.Events, "StepStarted/ControlPlaneUpgrade") },
			v1beta1.ReasonUnknownStep, []string{"ControlPlaneUpgrade", steps.ConditionControlPlaneUpgraded}},
		{"operator of a selector that there is not", func(s *v1beta1.UpgradeJobHookSpec) {
			s.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Near", Values: []string{"a"}}}
		}, v1beta1.ReasonInvalidSelector, []string{"Near"}},
	}
	for _, tt := range tests {
		edit(c, hook, func(hook *v1beta1.UpgradeJobHook) {
			hook.Spec = aHook().Spec
			tt.change(&hook.Spec)
		})
		c.waitHook(hook, metav1.ConditionFalse, tt.reason, tt.words...)
	}
	// It keeps nobody from upgrading: its selector selects nobody.
	job := c.wait(create(c, aJob(named("without"))), succeeded(), withoutFinalizers())
	if n := len(job.Status.HookTracker); n > 0 {
		t.Errorf("a hook that selects nobody ran %d times", n)
	}
	edit(c, hook, func(hook *v1beta1.UpgradeJobHook) { hook.Spec = aHook().Spec })
	c.waitHook(hook, metav1.ConditionTrue, v1beta1.ReasonValid)
	if jobs := c.liveHookJobs(); len(jobs) > 0 {
		t.Errorf("to look at the template left %d Jobs", len(jobs))
	}
}

// A hook whose Job the API server refuses has failed: the upgrade does not wait for what never comes.
func TestHookWhoseJobIsRefusedHasFailed(t *testing.T) {
	c := newCluster(t)
	before := c.version()
	hook := create(c, aHook(aborting, func(hook *v1beta1.UpgradeJobHook) {
		hook.Spec.Template.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
	}))
	c.startOperator()
	c.wait(create(c, aJob()), failedFor(v1beta1.ReasonHookFailed), withoutFinalizers(),
		saying(v1beta1.ConditionFailed, hook.Name, "could not be created", "restartPolicy"), ran(hook.Name, v1beta1.HookEventStart, v1beta1.HookRunFailed))
	c.untouched(before)
}

// waitHook waits until the condition Ready of a hook, of its present spec, is as expected, and its message says the words.
func (c *cluster) waitHook(hook *v1beta1.UpgradeJobHook, status metav1.ConditionStatus, reason string, words ...string) {
	c.t.Helper()
	c.eventually("UpgradeJobHook "+hook.Name, func() error {
		if err := env.Client.Get(c.ctx, client.ObjectKeyFromObject(hook), hook); err != nil {
			return err
		}
		if hook.Status.ObservedGeneration != hook.Generation {
			return errors.New("its status is not of its present spec")
		}
		return conditionIs(hook.Status.Conditions, v1beta1.ConditionReady, status, reason, words...)
	})
}

// kubectl apply keeps the whole manifest in an annotation, and annotations have a limit.
func TestCRDOfHooksFitsIntoTheAnnotationOfKubectlApply(t *testing.T) {
	const limit = 262144
	files, err := filepath.Glob(filepath.Join(environment.Root(), "deploy", "crds", "*_*.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("there are %d CRDs: %v", len(files), err)
	}
	hooks := false
	for _, file := range files {
		manifest, err := os.ReadFile(file)
		if err == nil {
			manifest, err = yaml.YAMLToJSON(manifest)
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(manifest) >= limit {
			t.Errorf("%s takes %d bytes, the limit is %d", filepath.Base(file), len(manifest), limit)
		}
		hooks = hooks || strings.Contains(file, "upgradejobhooks")
	}
	if !hooks {
		t.Errorf("there is no CRD of hooks among %v", files)
	}
}
