// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

func duration(d time.Duration) *v1beta1.Duration { return &v1beta1.Duration{Duration: d} }

// attentive looks at the cluster's health every second, and lets budgets be at which a drain hangs.
func attentive() v1beta1.HealthChecks {
	return v1beta1.HealthChecks{Interval: duration(time.Second), CheckPodDisruptionBudgets: new(false)}
}

// weekly is a config of which the next start is at the beginning of a month, with changes.
func weekly(changes ...func(*v1beta1.UpgradeConfig)) *v1beta1.UpgradeConfig {
	config := &v1beta1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: "weekly", Labels: map[string]string{"tier": "test"}},
		Spec:       v1beta1.UpgradeConfigSpec{Schedule: v1beta1.UpgradeConfigSchedule{Cron: "0 0 1 * *", Location: "UTC"}},
	}
	config.Spec.JobTemplate.Spec.Config.PreUpgradeHealthChecks = attentive()
	config.Spec.JobTemplate.Spec.Config.PostUpgradeHealthChecks = attentive()
	for _, change := range changes {
		change(config)
	}
	return config
}

// pinnedNow has a config create the job of its next start as soon as it is seen. The job of the start after it, which in the first days of a month is due before
// the next start has come, may wait for that one: what is said of it does not depend on the day.
func pinnedNow(config *v1beta1.UpgradeConfig) {
	now := time.Now().UTC()
	next := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	config.Spec.PinVersionWindow = duration(next.Sub(now) + time.Second)
	config.Spec.MaxSchedulingDelay = duration(62 * 24 * time.Hour)
}

// aJob is a job to a release that may start now and for an hour.
func aJob(name, version string, changes ...func(*v1beta1.UpgradeJob)) *v1beta1.UpgradeJob {
	now := time.Now().Truncate(time.Second)
	job := &v1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: name},
		Spec: v1beta1.UpgradeJobSpec{
			StartAfter: metav1.NewTime(now), StartBefore: metav1.NewTime(now.Add(time.Hour)),
			DesiredVersion: &v1beta1.DesiredVersion{Version: version, Image: sim.Image(version)},
		},
	}
	job.Spec.Config.PreUpgradeHealthChecks, job.Spec.Config.PostUpgradeHealthChecks = attentive(), attentive()
	for _, change := range changes {
		change(job)
	}
	return job
}

// delayingInfra has a job release the pool infra an hour after its start.
func delayingInfra(job *v1beta1.UpgradeJob) {
	job.Spec.Config.MachineConfigPools = []v1beta1.MachineConfigPoolConfig{{
		MatchLabels:  &v1beta1.PoolSelector{Labels: map[string]string{mcfgv1.KubeletConfigRoleLabelPrefix + "infra": ""}},
		DelayUpgrade: &v1beta1.DelayUpgrade{DelayMin: duration(time.Hour), DelayMax: duration(2 * time.Hour)},
	}}
}

// aHook runs when a job starts; its pods end as the outcome says.
func aHook(outcome string, policy v1beta1.HookFailurePolicy) *v1beta1.UpgradeJobHook {
	return &v1beta1.UpgradeJobHook{
		ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: "backup"},
		Spec: v1beta1.UpgradeJobHookSpec{
			Events: []v1beta1.HookEvent{v1beta1.HookEventStart}, FailurePolicy: policy,
			Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				BackoffLimit: new(int32),
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{sim.AnnotationOutcome: outcome}},
					Spec: corev1.PodSpec{
						RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64),
						Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/backup:1"}},
					},
				},
			}},
		},
	}
}

// letHook tells the pod of a hook's run that hangs how to end.
func (c *cluster) letHook(job *v1beta1.UpgradeJob, outcome string) {
	c.t.Helper()
	c.eventually("the pod of the hook", func() error {
		c.get(job)
		if len(job.Status.HookTracker) == 0 || job.Status.HookTracker[0].Job == "" {
			return fmt.Errorf("the hook has not run: %+v", job.Status.HookTracker)
		}
		pods := &corev1.PodList{}
		if err := env.Client.List(c.ctx, pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Status.HookTracker[0].Job}); err != nil {
			return err
		}
		if len(pods.Items) == 0 {
			return fmt.Errorf("Job %s has no pod", job.Status.HookTracker[0].Job)
		}
		pod := &pods.Items[0]
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, sim.AnnotationOutcome, outcome)
		return env.Client.Update(c.ctx, pod)
	})
}

// holdDrain runs a pod on a node that a budget does not let go, and returns the budget.
func (c *cluster) holdDrain(node string) *policyv1.PodDisruptionBudget {
	c.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	ensure(c.t, namespace)
	labels := map[string]string{"app": "cart"}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart-0", Labels: labels, Annotations: map[string]string{sim.AnnotationRun: "true"}},
		Spec: corev1.PodSpec{
			NodeName: node, AutomountServiceAccountToken: new(false), Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/cart:1"}},
		},
	}
	c.eventually("the pod", func() error { return env.Client.Create(c.ctx, pod) }) // once there is the service account
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}
	c.create(budget)
	c.t.Cleanup(func() {
		for _, o := range []client.Object{budget, pod} {
			if err := client.IgnoreNotFound(env.Client.Delete(context.WithoutCancel(c.ctx), o, client.GracePeriodSeconds(0))); err != nil {
				c.t.Error(err)
			}
		}
	})
	c.eventually("the budget counts", func() error {
		c.get(budget)
		if budget.Status.ObservedGeneration == 0 || budget.Status.CurrentHealthy != 1 {
			return fmt.Errorf("it says %+v", budget.Status)
		}
		return nil
	})
	return budget
}
