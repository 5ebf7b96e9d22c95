// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// inChannel has the job look for its version in a channel.
func inChannel(channel string) jobOption {
	return func(job *v1beta1.UpgradeJob) { job.Spec.Config.Channel = channel }
}

func channelIs(channel string) versionOption {
	return func(cv *configv1.ClusterVersion) { cv.Spec.Channel = channel }
}

// offering are the steps that see to it that the version is offered: by themselves, or before another one.
func offering(t *testing.T, allowed bool) map[string]steps.Step {
	inner := never(t, "Step")
	if allowed {
		inner = answering(t, "Step", isDone)
	}
	return map[string]steps.Step{"UpdateAvailable": steps.UpdateAvailable(), "IfOffered": steps.IfOffered(inner)}
}

func TestOffered(t *testing.T) {
	const updates = "UpdatesNotRetrieved ClusterVersion/version"
	minute := time.Minute
	notRetrieved := openshifttest.VersionCondition(configv1.RetrievedUpdates, configv1.ConditionFalse, "VersionNotFound", "not in the channel")
	begins := []jobOption{begun("Step", 10*minute), begun(steps.ConditionUpdateAvailable, 10*minute)}
	changing := func(after time.Duration, says string) verdict {
		return verdict{outcome: steps.Running, reason: v1beta1.ReasonChannelChanging, after: after, blockers: []string{updates}, says: says}
	}
	offered := verdict{outcome: steps.Completed, reason: "Completed"}
	for _, tc := range []struct {
		stepCase
		channel string
		locked  bool
	}{
		{stepCase{reason: "no channel is asked for", want: offered}, "stable-4.18", false},
		{stepCase{reason: "it has the channel, which offers it", job: []jobOption{inChannel("stable-4.18")}, want: offered}, "stable-4.18", false},
		{stepCase{reason: "another channel is set first, whatever is offered in that of today", job: []jobOption{inChannel("eus-4.18")},
			want: changing(5*minute, "ClusterVersion/version is set to channel eus-4.18, and does not know its updates yet.")}, "eus-4.18", true},
		{stepCase{reason: "not after the window", job: []jobOption{inChannel("eus-4.18")}, after: time.Hour + 1,
			want: verdict{outcome: steps.Skipped, reason: v1beta1.ReasonExpired, blockers: []string{updates}}}, "stable-4.18", false},
		{stepCase{reason: "in the new channel it is not offered yet", job: append(begins, inChannel("eus-4.18")), version: []versionOption{channelIs("eus-4.18"), openshifttest.Available("4.18.3")}, after: 12 * minute,
			want: changing(3*minute, "4.18.2 is not offered in channel eus-4.18 yet.")}, "eus-4.18", false},
		{stepCase{reason: "which is waited for exactly so long", job: append(begins, inChannel("eus-4.18")), version: []versionOption{channelIs("eus-4.18"), openshifttest.Available()}, after: 15*minute - 1,
			want: changing(1, "")}, "eus-4.18", false},
		{stepCase{reason: "and then given up", job: append(begins, inChannel("eus-4.18")), version: []versionOption{channelIs("eus-4.18"), openshifttest.Available()}, after: 15 * minute,
			want: verdict{outcome: steps.Skipped, reason: v1beta1.ReasonUpgradeWithdrawn, says: "4.18.2 is not an available update any more"}}, "eus-4.18", false},
		{stepCase{reason: "the cluster does not know the updates of the channel", job: append(begins, inChannel("eus-4.18")), version: []versionOption{channelIs("eus-4.18"), notRetrieved, openshifttest.Available()}, after: 20 * minute,
			want: verdict{outcome: steps.Running, reason: v1beta1.ReasonUpdatesUnknown, after: 40 * minute, blockers: []string{updates}, says: "VersionNotFound: not in the channel"}}, "eus-4.18", false},
		{stepCase{reason: "withdrawn, without a channel", version: []versionOption{openshifttest.Available("4.18.3")},
			want: verdict{outcome: steps.Skipped, reason: v1beta1.ReasonUpgradeWithdrawn}}, "stable-4.18", false},
		{stepCase{reason: "the channel is set even if nobody wants to know what it offers", job: []jobOption{inChannel("eus-4.18"), unchecked},
			want: changing(5*minute, "")}, "eus-4.18", true},
		{stepCase{reason: "and then that is not asked", job: []jobOption{inChannel("eus-4.18"), unchecked}, version: []versionOption{channelIs("eus-4.18"), openshifttest.Available()},
			want: offered}, "eus-4.18", false},
		{stepCase{reason: "a job without a version sets no channel", job: []jobOption{withoutVersion, inChannel("eus-4.18")}, want: offered}, "stable-4.18", false},
		{stepCase{reason: "nor does one whose version runs", job: []jobOption{inChannel("eus-4.18")}, version: []versionOption{upgraded()}, want: offered}, "stable-4.18", false},
	} {
		for name, step := range offering(t, tc.want.outcome == steps.Completed) {
			t.Run(name+" "+tc.reason, func(t *testing.T) {
				w := tc.run(t, step)
				cv := w.version()
				if _, locked := cv.Annotations[v1beta1.UpgradeJobAnnotation]; cv.Spec.Channel != tc.channel || locked != tc.locked || cv.Spec.DesiredUpdate != nil {
					t.Errorf("channel %q, locked %t, desired %v, want %q and %t", cv.Spec.Channel, locked, cv.Spec.DesiredUpdate, tc.channel, tc.locked)
				}
			})
		}
	}
}

func unchecked(job *v1beta1.UpgradeJob) { job.Spec.DesiredVersionCheckAvailability = ptr.To(false) }

// What has commenced is not stopped by what is offered, nor is its channel changed under it.
func TestIfOfferedOfAnUpgradeThatHasCommenced(t *testing.T) {
	w := newWorld(t, newJob(commenced, inChannel("eus-4.18")), openshifttest.ClusterVersion(openshifttest.Available(), openshifttest.Desired(target)))
	step := steps.IfOffered(answering(t, "Step", waiting))
	if got := step.Condition(); got != "Step" {
		t.Errorf("its condition is %s", got)
	}
	if result := w.pass(step); result.Reason != "Busy" {
		t.Errorf("got %+v, want the verdict of the step", result)
	}
	if channel := w.version().Spec.Channel; channel != "stable-4.18" {
		t.Errorf("the channel is %s", channel)
	}
}

func TestIfOfferedHandsVerdictsOn(t *testing.T) {
	broken := errors.New("on fire")
	for reason, tc := range map[string]struct {
		step steps.Step
		want steps.Outcome
	}{
		"wait": {answering(t, "Step", waiting), steps.Running}, "fail": {answering(t, "Step", steps.Fail("No", "It is broken.")), steps.Failed}, "error": {failing(t, "Step", broken), steps.Running},
	} {
		w := newWorld(t, newJob(), openshifttest.ClusterVersion())
		if result := w.pass(steps.IfOffered(tc.step)); result.Outcome != tc.want || (reason == "error") != errors.Is(result.Err, broken) {
			t.Errorf("%s: got %+v", reason, result)
		}
	}
}

// A channel that cannot be set, or must not be, is tried again.
func TestOfferedHandsErrorsOn(t *testing.T) {
	broken := errors.New("on fire")
	for reason, tc := range map[string]struct {
		fault    interceptor.Funcs
		lockedBy string
		says     string
	}{
		"the lock": {lockedBy: "UpgradeJob ns/other", says: "lock the cluster: it is locked by UpgradeJob ns/other"},
		"the write": {fault: interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return broken
		}}, says: "on fire"},
	} {
		for name, step := range offering(t, false) {
			t.Run(name+" "+reason, func(t *testing.T) {
				w := newWorld(t, newJob(inChannel("eus-4.18")), openshifttest.ClusterVersion())
				w.lockedBy = tc.lockedBy
				u := w.upgrade()
				w.api = interceptor.NewClient(w.api, tc.fault)
				u.Cluster = w.cluster()
				result := steps.Run(t.Context(), []steps.Step{step}, u)
				if result.Err == nil || result.Outcome != steps.Running || result.Reason != v1beta1.ReasonError || !strings.Contains(result.Message, tc.says) {
					t.Errorf("got %+v, want an error that says %q", result, tc.says)
				}
				if channel := w.version().Spec.Channel; channel != "stable-4.18" {
					t.Errorf("the channel is %s", channel)
				}
			})
		}
	}
}

// From one channel to the other: the job waits until its version is offered, and commences then.
func TestIfOfferedThroughAChangeOfChannel(t *testing.T) {
	w := newStageWorld(t, newJob(inChannel("eus-4.18")), openshifttest.ClusterVersion(openshifttest.Available()))
	step := steps.IfOffered(steps.UpgradeCommenced())
	w.expect(0, step, verdict{outcome: steps.Running, reason: v1beta1.ReasonChannelChanging, after: 5 * time.Minute, blockers: []string{"UpdatesNotRetrieved ClusterVersion/version"}})
	w.expect(time.Minute, step, verdict{outcome: steps.Running, reason: v1beta1.ReasonChannelChanging, after: 4 * time.Minute, blockers: []string{"UpdatesNotRetrieved ClusterVersion/version"}})
	w.update(openshifttest.Available(target))
	w.expect(2*time.Minute, step, verdict{outcome: steps.Completed, reason: "Completed", says: "asked to update to 4.18.2"})
	if desired := w.version().Spec.DesiredUpdate; desired == nil || desired.Version != target {
		t.Errorf("desired is %v", desired)
	}
	w.update(openshifttest.Available(), channelIs("stable-4.18"))
	w.expect(3*time.Minute, step, verdict{outcome: steps.Completed, reason: "Completed"}) // done already
	if channel := w.version().Spec.Channel; channel != "stable-4.18" {
		t.Errorf("the channel is set to %s again", channel)
	}
}

// A job that waits for its channel has not commenced, whatever somebody else asks the cluster for meanwhile.
func TestWhoWaitsForAChannelHasNotCommenced(t *testing.T) {
	w := newStageWorld(t, newJob(inChannel("eus-4.18")), openshifttest.ClusterVersion(openshifttest.Available()))
	step := steps.IfOffered(steps.UpgradeCommenced())
	w.pass(0, steps.UntilCommenced(answering(t, "Preflight", isDone)), step) // sets the channel, and waits
	w.update(openshifttest.Desired(target))                                  // by hand
	result := w.pass(time.Minute, steps.UntilCommenced(answering(t, "Preflight", waiting)), step)
	if result.Outcome != steps.Running || result.Reason != "Busy" {
		t.Errorf("got %+v, want the preflight to be judged", result)
	}
}
