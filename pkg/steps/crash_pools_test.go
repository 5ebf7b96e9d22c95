// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"errors"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// poolsOfStories are the pools of the cluster of the stories, the masters first.
var poolsOfStories = []string{"master", "worker", "infra", "gpu"}

// Times of the delayed pools, counted from the start.
var (
	delayMin  = map[string]time.Duration{"infra": 5 * time.Minute, "gpu": 7 * time.Minute}
	twoDelays = []jobOption{delays("infra", delayMin["infra"], 10*time.Minute), delays("gpu", delayMin["gpu"], 10*time.Minute)}
)

// roll lets the machine-config operator move a pool one step on, unless it is paused.
func (p *process) roll(name string) {
	p.t.Helper()
	rolled := &mcfgv1.MachineConfigPool{}
	if err := p.raw.Get(p.t.Context(), client.ObjectKey{Name: name}, rolled); err != nil {
		p.t.Fatal(err)
	}
	switch {
	case rolled.Spec.Paused:
	case rolled.Spec.Configuration.Name != openshifttest.RenderedConfig(name, target):
		if len(p.story.job) > 0 && p.now.Before(start.Add(delayMin[name])) {
			p.t.Errorf("the machines of pool %s reboot at %s, before their time", name, p.now)
		}
		p.editPool(name, openshifttest.PoolTowards(target, 1))
	case rolled.Status.Configuration.Name != rolled.Spec.Configuration.Name:
		p.editPool(name, openshifttest.PoolAt(target))
	}
}

// finishHooks lets the Jobs of hooks succeed.
func (p *process) finishHooks() {
	p.t.Helper()
	jobs := &batchv1.JobList{}
	if err := p.raw.List(p.t.Context(), jobs); err != nil {
		p.t.Fatal(err)
	}
	for i := range jobs.Items {
		if job := &jobs.Items[i]; len(job.Status.Conditions) == 0 {
			job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(p.now)}}
			if err := p.raw.Status().Update(p.t.Context(), job); err != nil {
				p.t.Fatal(err)
			}
		}
	}
}

// cleanUp gives back what the job holds, and tells whether that is done.
func (p *process) cleanUp(u *steps.Upgrade) bool {
	p.t.Helper()
	before := u.Job.DeepCopy()
	u.Over, u.Hooks = nil, nil
	wait, err := steps.CleanUp(p.t.Context(), []steps.Step{steps.UnacceptedUpdateWithdrawn(), steps.MachineConfigPoolsGivenBack()}, u)
	if err == nil && !apiequality.Semantic.DeepEqual(before.Status, u.Job.Status) {
		if err = u.Persist(p.t.Context()); err != nil && !errors.Is(err, errFault) && !apierrors.IsConflict(err) {
			p.t.Fatal(err)
		}
	}
	return wait == 0 && err == nil
}
