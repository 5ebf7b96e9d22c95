// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

func TestFiftyHooksOfOneEvent(t *testing.T) {
	const many = 50
	c := newClusterFor(t, 2*patience)
	for i := range many {
		create(c, aHook(hookNamed(fmt.Sprintf("hook-%02d", i)), aborting))
	}
	c.startOperator()
	job := c.wait(create(c, aJob()), succeeded(), withoutFinalizers())
	for i := range many {
		if err := check(job, ran(fmt.Sprintf("hook-%02d", i), v1beta1.HookEventStart, v1beta1.HookRunSucceeded)); err != nil {
			t.Error(err)
		}
	}
	jobs := c.hookJobsOf(job)
	if len(jobs) != many {
		t.Errorf("there were %d Jobs, want %d", len(jobs), many)
	}
	through := c.orderWhen(job, started())
	for _, j := range jobs {
		if j.created < through {
			t.Errorf("hook %s ran before the job had started", j.hook)
		}
	}
	c.upgradedOnce(job)
}

// Names as long as Kubernetes takes them, which differ at their ends only.
func TestHooksWithTheLongestNames(t *testing.T) {
	c := newCluster(t)
	long := strings.Repeat("long.name-", 25) + "ab" // and a letter more: 253
	hooks := []string{long + "x", long + "y", strings.Repeat("h", validation.DNS1123SubdomainMaxLength)}
	for _, name := range hooks {
		create(c, aHook(hookNamed(name), at(v1beta1.HookEventStepCompleted(steps.ConditionClusterHealthyBeforeUpgrade))))
	}
	c.startOperator()
	config := create(c, aConfig(creatingAJobNow(), func(config *v1beta1.UpgradeConfig) {
		config.Name = strings.Repeat("c", validation.DNS1123LabelMaxLength)
	}))
	jobs := []*v1beta1.UpgradeJob{
		create(c, aJob(named(long+"x"), startingAt(soon(time.Hour)), startingBefore(soon(2*time.Hour)))),
		create(c, aJob(named(long+"y"), startingAt(soon(time.Hour)), startingBefore(soon(2*time.Hour)))),
		c.jobOf(config),
	}
	for _, job := range jobs {
		c.startNow(job)
		c.wait(job, inPhase(v1beta1.PhaseSucceeded), withoutFinalizers())
		got := c.hookJobsOf(job)
		if want := len(hooks); len(got) != want {
			t.Errorf("job %s had %d Jobs of hooks, want %d", job.Name, len(got), want)
		}
		for _, name := range hooks {
			if err := check(job, ran(name, v1beta1.HookEventStepCompleted(steps.ConditionClusterHealthyBeforeUpgrade), v1beta1.HookRunSucceeded)); err != nil {
				t.Error(err)
			}
		}
		for _, j := range got {
			if a := j.object.Annotations[v1beta1.HookUpgradeJobLabel]; a != job.Name || len(j.object.Name) > validation.DNS1123LabelMaxLength {
				t.Errorf("Job %s says that it is of %s, want %s", j.object.Name, a, job.Name)
			}
			for _, label := range []string{v1beta1.HookLabel, v1beta1.HookEventLabel, v1beta1.HookUpgradeJobLabel, v1beta1.HookKeyLabel} {
				if value, ok := j.object.Labels[label]; !ok || (value == "") != (label == v1beta1.HookKeyLabel) {
					t.Errorf("Job %s has the label %s=%q", j.object.Name, label, value)
				}
			}
		}
	}
}

// An UpgradeJob may be far larger than an environment, and a hook may have many containers.
func TestHookOfAHugeJobRuns(t *testing.T) {
	c := newCluster(t)
	create(c, aHook(at(v1beta1.HookEventCreate), aborting, func(hook *v1beta1.UpgradeJobHook) {
		pod := &hook.Spec.Template.Spec.Template.Spec
		for i := range 4 {
			pod.InitContainers = append(pod.InitContainers, corev1.Container{Name: fmt.Sprintf("init-%d", i), Image: pod.Containers[0].Image})
		}
	}))
	c.startOperator()
	job := c.wait(create(c, aJob(startingAt(soon(time.Hour)), startingBefore(soon(2*time.Hour)), func(job *v1beta1.UpgradeJob) {
		job.Annotations = map[string]string{"example.com/history": strings.Repeat("x", 250<<10)}
	})), ran("backup", v1beta1.HookEventCreate, v1beta1.HookRunSucceeded))
	ran := c.hookJobsOf(job)[0].object
	for _, v := range ran.Spec.Template.Spec.Containers[0].Env {
		switch v.Name {
		case "META_truncated_0":
			if !strings.Contains(v.Value, "example.com/history") {
				t.Errorf("META tells that %s was left out", v.Value)
			}
			return
		}
	}
	t.Error("META does not tell what was left out")
}
