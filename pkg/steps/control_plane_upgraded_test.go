// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"cmp"
	"errors"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

var (
	desired   = openshifttest.Desired(target)
	updating  = openshifttest.History(openshifttest.Partial(target), openshifttest.Completed("4.18.1"))
	completed = openshifttest.History(openshifttest.Completed(target), openshifttest.Completed("4.18.1"))
)

func TestControlPlaneUpgradedKnowsWhenItIsDone(t *testing.T) {
	isDone := verdict{outcome: steps.Completed, reason: "Completed", says: "has completed 4.18.2"}
	for _, tc := range []stepCase{
		{reason: "completed", version: []versionOption{desired, completed}, want: isDone},
		{reason: "desiredUpdate was cleared when it was over", version: []versionOption{completed}, want: isDone},
		{reason: "a job that names an image alone", job: []jobOption{byImage}, version: []versionOption{desired, completed}, want: verdict{outcome: steps.Completed, reason: "Completed", says: "has completed"}},
		{reason: "completed, which the cache has not seen yet", version: []versionOption{completed}, cached: openshifttest.ClusterVersion(), want: isDone},
		{
			reason: "an entry further down is no completion", job: []jobOption{begun(steps.ConditionControlPlaneUpgraded, 0)},
			version: []versionOption{desired, openshifttest.History(openshifttest.Partial("4.18.3"), openshifttest.Completed(target))},
			want: verdict{
				outcome: steps.Running, reason: v1beta1.ReasonControlPlaneUpdating, after: 30 * time.Minute,
				blockers: []string{"AwaitingAcceptance ClusterVersion/version"},
			},
		},
		{
			reason: "a completionTime is no completion", version: []versionOption{desired, openshifttest.History(openshifttest.Abandoned(target), openshifttest.Completed("4.18.1"))},
			want: verdict{
				outcome: steps.Running, reason: v1beta1.ReasonControlPlaneUpdating, after: openshift.NodesInterval, blockers: []string{"ClusterVersionUpdating ClusterVersion/version"},
			},
		},
		{
			reason: "a job without a version", job: []jobOption{withoutVersion},
			want: verdict{outcome: steps.Completed, reason: "Completed", says: "no version"},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) { tc.run(t, steps.ControlPlaneUpgraded()) })
	}
}

func TestControlPlaneUpgradedAwaitsAcceptance(t *testing.T) {
	awaited, refusal := []string{"AwaitingAcceptance ClusterVersion/version"}, []string{"ReleaseNotAccepted ClusterVersion/version"}
	begunAtOnce := begun(steps.ConditionControlPlaneUpgraded, 0)
	refused := openshifttest.VersionCondition("ReleaseAccepted", configv1.ConditionFalse, "RetrievePayload", "The update cannot be verified.")
	acceptWithin := func(d time.Duration) jobOption {
		return func(job *v1beta1.UpgradeJob) { job.Spec.Config.ReleaseAcceptTimeout = &v1beta1.Duration{Duration: d} }
	}
	waits := func(reason string, left time.Duration, says string) verdict {
		blockers := awaited
		if reason == v1beta1.ReasonReleaseNotAccepted {
			blockers = refusal
		}
		return verdict{outcome: steps.Running, reason: reason, after: left, blockers: blockers, says: says}
	}

	for _, tc := range []stepCase{
		{
			reason: "the status has not changed at all: the payload is being retrieved", version: []versionOption{desired},
			want: waits(v1beta1.ReasonControlPlaneUpdating, 30*time.Minute, "has not accepted 4.18.2 yet"),
		},
		{
			reason: "the time counts from the beginning of the step", job: []jobOption{begunAtOnce}, version: []versionOption{desired}, after: 10 * time.Minute,
			want: waits(v1beta1.ReasonControlPlaneUpdating, 20*time.Minute, "has not accepted 4.18.2 yet"),
		},
		{
			reason: "or from the first pass after a resume", job: []jobOption{begunAtOnce, resumed(5 * time.Hour)}, version: []versionOption{desired}, after: 5*time.Hour + time.Minute,
			want: waits(v1beta1.ReasonControlPlaneUpdating, 30*time.Minute, "has not accepted 4.18.2 yet"),
		},
		{
			reason: "it is configured", job: []jobOption{begunAtOnce, acceptWithin(2 * time.Hour)}, version: []versionOption{desired}, after: time.Hour,
			want: waits(v1beta1.ReasonControlPlaneUpdating, time.Hour, "has not accepted 4.18.2 yet"),
		},
		{
			reason: "refused: shown at once", version: []versionOption{desired, refused},
			want: waits(v1beta1.ReasonReleaseNotAccepted, 30*time.Minute, "does not accept 4.18.2 (RetrievePayload): The update cannot be verified."),
		},
		{
			reason:  "it does not know yet",
			version: []versionOption{desired, openshifttest.VersionCondition("ReleaseAccepted", configv1.ConditionUnknown, "RetrievePayload", "Retrieving and verifying payload")},
			want:    waits(v1beta1.ReasonControlPlaneUpdating, 30*time.Minute, "has not accepted 4.18.2 yet"),
		},
		{
			reason:  "the spec is invalid, though the release that runs is accepted",
			version: []versionOption{desired, openshifttest.VersionCondition("Invalid", configv1.ConditionTrue, "InvalidClusterVersion", "spec.desiredUpdate.version: 4.18.2 not found")},
			want:    waits(v1beta1.ReasonReleaseNotAccepted, 30*time.Minute, "invalid (InvalidClusterVersion): spec.desiredUpdate.version: 4.18.2 not found"),
		},
		{
			reason: "a release of the same version from another image was taken up", version: []versionOption{desired, openshifttest.History(configv1.UpdateHistory{
				State: configv1.PartialUpdate, Version: target, Image: "mirror.example.com/release@sha256:0",
			}, openshifttest.Completed("4.18.1"))},
			want: waits(v1beta1.ReasonControlPlaneUpdating, 30*time.Minute, "has not accepted 4.18.2 yet"),
		},
		{
			reason: "a moment before its time is over", job: []jobOption{begunAtOnce}, version: []versionOption{desired}, after: 30*time.Minute - time.Millisecond,
			want: waits(v1beta1.ReasonControlPlaneUpdating, time.Millisecond, ""),
		},
		{
			reason: "its time is over, and nobody knows why", job: []jobOption{begunAtOnce}, version: []versionOption{desired}, after: 30 * time.Minute,
			want: verdict{outcome: steps.Failed, reason: v1beta1.ReasonReleaseNotAccepted, blockers: awaited, says: "Not accepted within 30m0s. "},
		},
		{
			reason: "its time is over, and why is said", job: []jobOption{begunAtOnce}, version: []versionOption{desired, refused}, after: 31 * time.Minute,
			want: verdict{outcome: steps.Failed, reason: v1beta1.ReasonReleaseNotAccepted, blockers: refusal, says: "The update cannot be verified."},
		},
		{
			reason: "accepted: the time does not count any more", job: []jobOption{begunAtOnce}, version: []versionOption{desired, updating, refused}, after: 5 * time.Hour,
			want: verdict{outcome: steps.Running, reason: v1beta1.ReasonControlPlaneUpdating, after: openshift.NodesInterval, blockers: []string{"ClusterVersionUpdating ClusterVersion/version"}},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) { tc.run(t, steps.ControlPlaneUpgraded()) })
	}
}

func TestControlPlaneUpgradedNoticesThatItIsSuperseded(t *testing.T) {
	superseded := func(says string) verdict {
		return verdict{outcome: steps.Failed, reason: v1beta1.ReasonUpgradeSuperseded, says: says}
	}
	goesOn := verdict{outcome: steps.Running, reason: v1beta1.ReasonControlPlaneUpdating, after: openshift.NodesInterval, blockers: []string{"ClusterVersionUpdating ClusterVersion/version"}}

	for _, tc := range []stepCase{
		{
			reason: "another version is desired", version: []versionOption{openshifttest.Desired("4.18.3")},
			want: superseded("changed the desired update from 4.18.2 to 4.18.3"),
		},
		{
			reason: "also while this one was on its way", version: []versionOption{openshifttest.Desired("4.18.3"), updating},
			want: superseded("changed the desired update from 4.18.2 to 4.18.3"),
		},
		{
			reason: "the same version from another image is desired", version: []versionOption{openshifttest.DesiredUpdate(configv1.Update{Version: target, Image: "mirror.example.com/other"})},
			want: superseded("changed the desired update"),
		},
		{reason: "cleared before it was taken up", want: superseded("cleared the desired update to 4.18.2")},
		{reason: "cleared after it was taken up: it goes on", version: []versionOption{updating}, want: goesOn},
		{
			reason: "the cache has not seen this job's own write yet", version: []versionOption{desired}, cached: openshifttest.ClusterVersion(),
			want: verdict{
				outcome: steps.Running, reason: v1beta1.ReasonControlPlaneUpdating, after: 30 * time.Minute, blockers: []string{"AwaitingAcceptance ClusterVersion/version"},
			},
		},
		{
			reason: "the cache still has the desired update of an earlier job", version: []versionOption{desired, updating},
			cached: openshifttest.ClusterVersion(openshifttest.Desired("4.18.1")), want: goesOn,
		},
		{
			reason: "another update runs since this one was completed", version: []versionOption{
				openshifttest.Desired("4.18.3"), openshifttest.History(openshifttest.Partial("4.18.3"), openshifttest.Completed(target)),
			},
			want: superseded("changed the desired update from 4.18.2 to 4.18.3"),
		},
	} {
		t.Run(tc.reason, func(t *testing.T) { tc.run(t, steps.ControlPlaneUpgraded()) })
	}
}

func TestControlPlaneUpgradedNamesWhatHoldsItUp(t *testing.T) {
	operator := openshifttest.ClusterOperator
	condition := openshifttest.OperatorCondition
	node := func(name, role string, annotations map[string]string) client.Object {
		return openshifttest.Node(name, role, openshifttest.NodeAnnotations(annotations))
	}
	rendered := []client.Object{openshifttest.MachineConfig("master", target), openshifttest.MachineConfig("worker", target)}
	working := openshifttest.VersionCondition(configv1.OperatorProgressing, configv1.ConditionTrue, "ClusterOperatorsUpdating", "Working towards 4.18.2: 7 of 28 done (25% complete)")

	for _, tc := range []stepCase{
		{
			reason: "nothing that can be named: the progress of the whole", version: []versionOption{working},
			want: verdict{blockers: []string{"ClusterVersionUpdating ClusterVersion/version"}, says: "Working towards 4.18.2: 7 of 28 done (25% complete)"},
		},
		{
			reason: "no progress is reported yet", version: []versionOption{openshifttest.NoVersionCondition(configv1.OperatorProgressing)},
			want: verdict{blockers: []string{"ClusterVersionUpdating ClusterVersion/version"}, says: "works towards 4.18.2"},
		},
		{
			reason: "operators that are broken or at work, by name; those whose turn has not come and those that are done are left out", version: []versionOption{working},
			objects: []client.Object{
				operator("network", condition(configv1.OperatorProgressing, configv1.ConditionTrue, "Deploying", "1 of 9 nodes")),
				operator("etcd", condition(configv1.OperatorDegraded, configv1.ConditionTrue, "NodeInstaller", "pod crashed")),
				operator("dns", condition(configv1.OperatorAvailable, configv1.ConditionFalse, "NoPods", "no pods")),
				operator("waiting"),
				operator("config", openshifttest.OperatorAt(target), condition(configv1.OperatorProgressing, configv1.ConditionTrue, "Resync", "for its own reasons")),
			},
			want: verdict{
				blockers: []string{"ClusterOperatorNotAvailable ClusterOperator/dns", "ClusterOperatorDegraded ClusterOperator/etcd", "ClusterOperatorUpdating ClusterOperator/network"},
				says:     "ClusterOperator etcd is degraded (NodeInstaller): pod crashed",
			},
		},
		{
			reason: "an operator that is neither available nor healthy is named once, by the worse", version: []versionOption{working},
			objects: []client.Object{operator("dns",
				condition(configv1.OperatorAvailable, configv1.ConditionFalse, "NoPods", "no pods"),
				condition(configv1.OperatorDegraded, configv1.ConditionTrue, "NoPods", "no pods"))},
			want: verdict{blockers: []string{"ClusterOperatorNotAvailable ClusterOperator/dns"}},
		},
		{
			reason:  "an operator that has reached the release may be degraded all the same",
			objects: []client.Object{operator("dns", openshifttest.OperatorAt(target), condition(configv1.OperatorDegraded, configv1.ConditionTrue, "X", "x"))},
			want:    verdict{blockers: []string{"ClusterOperatorDegraded ClusterOperator/dns"}},
		},
		{
			reason:  "a ClusterVersion that is failing comes first, the operator behind it",
			version: []versionOption{openshifttest.VersionCondition("Failing", configv1.ConditionTrue, "ClusterOperatorDegraded", "network is degraded")},
			objects: []client.Object{operator("network", condition(configv1.OperatorDegraded, configv1.ConditionTrue, "X", "x"))},
			want: verdict{
				blockers: []string{"ClusterVersionFailing ClusterVersion/version", "ClusterOperatorDegraded ClusterOperator/network"},
				says:     "ClusterVersion is failing (ClusterOperatorDegraded): network is degraded",
			},
		},
		{
			reason:  "a slow operator makes Failing Unknown, which is not failing",
			version: []versionOption{working, openshifttest.VersionCondition("Failing", configv1.ConditionUnknown, "SlowClusterOperator", "waiting on network over 30 minutes")},
			want:    verdict{blockers: []string{"ClusterVersionUpdating ClusterVersion/version"}},
		},
		{
			reason: "the masters, which it waits for; not the workers, which it does not wait for",
			objects: append([]client.Object{
				openshifttest.Pool("master", openshifttest.PoolTowards(target, 1)), openshifttest.Pool("worker", openshifttest.PoolTowards(target, 0)),
				node("master-0", "master", nil),
				node("master-1", "master", map[string]string{"state": "Working", "desiredDrain": "drain-1"}),
				node("worker-0", "worker", map[string]string{"state": "Rebooting"}),
			}, rendered...),
			want: verdict{
				blockers: []string{"MachineConfigPoolUpdating MachineConfigPool/master", "NodeUpdating Node/master-1"},
				says:     "Node master-1 of pool master is draining", after: 2 * time.Second,
			},
		},
		{
			reason:  "masters of the old release are not what it waits for yet",
			objects: []client.Object{openshifttest.Pool("master"), openshifttest.MachineConfig("master", "4.18.1")},
			want:    verdict{blockers: []string{"ClusterVersionUpdating ClusterVersion/version"}},
		},
		{
			reason: "paused masters", objects: append([]client.Object{openshifttest.Pool("master", openshifttest.PoolTowards(target, 0), openshifttest.PoolPaused())}, rendered...),
			want: verdict{blockers: []string{"MachineConfigPoolPaused MachineConfigPool/master"}, says: "the pool is paused"},
		},
		{
			reason: "a master that is degraded",
			objects: append([]client.Object{
				openshifttest.Pool("master", openshifttest.PoolTowards(target, 1), openshifttest.PoolCondition(mcfgv1.MachineConfigPoolNodeDegraded, "disk full")),
				node("master-2", "master", map[string]string{"state": "Degraded", "reason": "disk full"}),
			}, rendered...),
			want: verdict{
				blockers: []string{"NodeDegraded Node/master-2", "MachineConfigPoolDegraded MachineConfigPool/master"},
				says:     "Node master-2 of pool master is degraded: disk full",
			},
		},
		{
			reason: "a job that names an image alone", job: []jobOption{byImage},
			objects: append([]client.Object{
				operator("network", openshifttest.OperatorAt(target), condition(configv1.OperatorProgressing, configv1.ConditionTrue, "Resync", "...")),
				openshifttest.Pool("master", openshifttest.PoolTowards(target, 1)),
			}, rendered...),
			want: verdict{blockers: []string{"MachineConfigPoolUpdating MachineConfigPool/master"}},
		},
	} {
		tc.version = append([]versionOption{desired, updating}, tc.version...)
		tc.want.outcome, tc.want.reason = steps.Running, v1beta1.ReasonControlPlaneUpdating
		tc.want.after = cmp.Or(tc.want.after, openshift.NodesInterval)
		tc.job = append(tc.job, begun(steps.ConditionControlPlaneUpgraded, 0))
		t.Run(tc.reason, func(t *testing.T) { tc.run(t, steps.ControlPlaneUpgraded()) })
	}
}

func TestControlPlaneUpgradedHandsErrorsOn(t *testing.T) {
	broken := errors.New("on fire")
	for _, tc := range []struct {
		reason  string
		version []versionOption
		funcs   interceptor.Funcs
	}{
		{"operators", []versionOption{desired, updating}, failingList(broken, "ClusterOperatorList")},
		{"pools", []versionOption{desired, updating}, failingList(broken, "MachineConfigPoolList")},
		{"what may be superseded is not judged by the cache alone", nil, failingGet(broken, "ClusterVersion")},
		{"what rendered the configuration of a pool", []versionOption{desired, updating}, failingGet(broken, "MachineConfig")},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, newJob(begun(steps.ConditionControlPlaneUpgraded, 0)), openshifttest.ClusterVersion(tc.version...),
				openshifttest.Pool("master", openshifttest.PoolTowards(target, 1)), openshifttest.MachineConfig("master", target))
			w.now = w.now.Add(openshift.NodesInterval)
			u := w.upgrade()
			w.api = interceptor.NewClient(w.api, tc.funcs)
			u.Cluster = w.cluster()
			result := steps.Run(t.Context(), []steps.Step{steps.ControlPlaneUpgraded()}, u)
			if !errors.Is(result.Err, broken) || result.Outcome != steps.Running {
				t.Errorf("got %+v", result)
			}
		})
	}
}
