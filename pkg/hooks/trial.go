// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// Trial returns a Job as the hook would have it for the first of its events, but for the environment and the owner. It is for the
// API server to judge in a dry run, which gives it a name that is free.
func Trial(c client.Client, hook *v1beta1.UpgradeJobHook) (*batchv1.Job, error) {
	nobody := &v1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Namespace: hook.Namespace, Name: "trial", UID: "trial"}}
	run := &v1beta1.HookRun{UpgradeJobHook: hook.Name}
	if len(hook.Spec.Events) > 0 {
		run.HookEvent = hook.Spec.Events[0]
	}
	p := &Pass{Engine: &Engine{Client: c}, Job: nobody}
	job, err := p.build(hook, run, nil)
	if err != nil {
		return nil, err
	}
	job.OwnerReferences = nil // there is no such owner
	job.GenerateName = JobName(nobody, hook.Name, run.HookEvent, "") + "-"
	return job, nil
}
