// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// The alerts that fire when the demo begins. The sample excludes the second one.
const (
	troublingAlert = "etcdMembersDown"
	excludedAlert  = "KubePodCrashLooping"
)

const (
	// healthInterval is how often the operator asks for alerts in the demo: nobody wants to watch it wait.
	healthInterval = 5 * time.Second
	// troubleLasts is how long the alert holds the upgrade up.
	troubleLasts = 8 * time.Second
)

// trouble is what is wrong with the cluster at the beginning, and gets mended in the window.
type trouble struct {
	// mendAt is zero until the upgrade is held up.
	mendAt time.Time
	mended bool
}

// cause makes critical alerts fire, in the real Prometheus.
func (d *demo) cause(ctx context.Context) error {
	m := d.env.Monitoring
	for name, namespace := range map[string]string{troublingAlert: "openshift-etcd", excludedAlert: "openshift-console"} {
		if err := m.Fire(ctx, name, map[string]string{"severity": "critical", "namespace": namespace}); err != nil {
			return err
		}
		if err := m.Prometheus.AwaitFiring(ctx, name); err != nil {
			return err
		}
	}
	d.say("demo", plain, fmt.Sprintf("a real Prometheus says that critical alerts fire: %s, and %s, which the config excludes", troublingAlert, excludedAlert))
	return nil
}

// mend ends the trouble when it has held the upgrade up for long enough.
func (d *demo) mend(s sight, now time.Time) {
	if s.job == nil || d.trouble.mended {
		return
	}
	c := meta.FindStatusCondition(s.job.Status.Conditions, steps.ConditionClusterHealthyBeforeUpgrade)
	switch {
	case c == nil || c.Reason != v1beta1.ReasonUnhealthy:
	case d.trouble.mendAt.IsZero():
		d.trouble.mendAt = now.Add(troubleLasts)
	case !now.Before(d.trouble.mendAt):
		d.trouble.mended = true
		d.env.Monitoring.Resolve(troublingAlert, nil)
		d.say("demo", plain, fmt.Sprintf("mended: %s stops firing; the operator asks every %s", troublingAlert, healthInterval))
	}
}
