// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

func TestHistoryLimits(t *testing.T) {
	c := newCluster(t)
	config := create(c, aConfig(func(config *v1beta1.UpgradeConfig) {
		config.Spec.SuccessfulJobsHistoryLimit = ptr.To(int32(2))
		config.Spec.FailedJobsHistoryLimit = ptr.To(int32(1))
	}))
	keepsAll := create(c, aConfig(func(config *v1beta1.UpgradeConfig) {
		config.Name = "keeps-all"
		config.Spec.SuccessfulJobsHistoryLimit = ptr.To(int32(0))
		config.Spec.FailedJobsHistoryLimit = ptr.To(int32(-1))
	}))
	for _, owner := range []*v1beta1.UpgradeConfig{config, keepsAll} {
		for i, phase := range []v1beta1.Phase{
			v1beta1.PhaseSucceeded, v1beta1.PhaseFailed, v1beta1.PhaseSucceeded, v1beta1.PhaseSkipped, v1beta1.PhaseSucceeded, v1beta1.PhaseFailed,
		} {
			c.createFinished(owner, i, phase)
		}
	}
	c.startOperator()
	c.eventually("the oldest jobs are gone", func() error {
		var names []string
		for _, job := range c.jobsOf(config) {
			names = append(names, job.Name)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != "cluster-upgrade-2 cluster-upgrade-4 cluster-upgrade-5" {
			return errors.New("there are " + got)
		}
		return nil
	})
	c.waitConfig(keepsAll, v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonValid)
	if got := len(c.jobsOf(keepsAll)); got != 6 {
		t.Errorf("of the config that keeps all jobs there are %d, want 6", got)
	}
}

// createFinished creates a job of a config that ended some hours ago; the greater number is the newer.
func (c *cluster) createFinished(config *v1beta1.UpgradeConfig, number int, phase v1beta1.Phase) {
	c.t.Helper()
	start := time.Now().Add(time.Duration(number-100) * time.Hour).Truncate(time.Second)
	job := create(c, aJob(named(fmt.Sprintf("%s-%d", config.Name, number)), startingAt(start), startingBefore(start.Add(time.Hour)), func(job *v1beta1.UpgradeJob) {
		job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(config, v1beta1.GroupVersion.WithKind("UpgradeConfig"))}
	}))
	outcome := map[v1beta1.Phase]metav1.Condition{
		v1beta1.PhaseSucceeded: v1beta1.Succeeded(v1beta1.ReasonUpgraded, "The cluster runs the desired version."),
		v1beta1.PhaseFailed:    v1beta1.Failed(v1beta1.ReasonTimedOut, "The job did not end in time."),
		v1beta1.PhaseSkipped:   v1beta1.Skipped(v1beta1.ReasonExpired, "The job could not start in time."),
	}[phase]
	outcome.LastTransitionTime = metav1.NewTime(start)
	job.Status = v1beta1.UpgradeJobStatus{Phase: phase, CompletionTime: ptr.To(metav1.NewTime(start)), Conditions: []metav1.Condition{outcome}}
	if err := env.Client.Status().Update(c.ctx, job); err != nil {
		c.t.Fatal(err)
	}
}
