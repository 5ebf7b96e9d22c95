// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/muo"
)

func TestMUOObjectIsCarriedOut(t *testing.T) {
	w := newMUOWorld(t, newClusterVersion(), newMUOConfig())
	w.pass()
	job := w.job()
	if !job.Spec.StartAfter.Time.Equal(startAfter) || job.Spec.DesiredVersion.Version != "4.18.2" || job.Spec.Config.Upgrader != "OSD" ||
		job.Spec.Config.Channel != "stable-4.18" || !metav1.IsControlledBy(job, w.config()) || job.Name != muo.JobName(w.config()) {
		t.Errorf("got job %s, owners %v, spec %+v", job.Name, job.OwnerReferences, job.Spec)
	}
	if diff := cmp.Diff([]string{"create UpgradeJob", "patch UpgradeConfig/status"}, w.api.writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	w.expectEvents("at first", "Normal JobCreated Created UpgradeJob "+job.Name+", version 4.18.2, start at 2026-11-24T22:00:00Z")
	w.expectHistory("at first", "4.18.2 Pending")
	w.expectFirst("at first", "UpgradeScheduled", metav1.ConditionTrue, "JobCreated", job.Name)

	w.play(job, v1beta1.PhasePending)
	w.elapse(time.Minute)
	for range 3 {
		if result := w.pass(); result.RequeueAfter != 0 {
			t.Errorf("wakes after %s, want to be woken", result.RequeueAfter)
		}
	}
	if writes := w.api.writes(); len(writes) > 0 {
		t.Errorf("passes without news wrote %v", writes)
	}

	w.clock.SetTime(startAfter.Add(time.Minute))
	w.play(job, v1beta1.PhaseActive)
	change(w.world, job, func(j *v1beta1.UpgradeJob) {
		j.Status.Steps = []v1beta1.StepStatus{{Condition: "StartedNotificationSent", StartTime: metav1.NewTime(startAfter)}}
		setCondition(&j.Status.Conditions, v1beta1.StepNotDone("StartedNotificationSent", "NotificationPending", "Not yet."), 1, w.clock)
	})
	w.pass()
	w.expectHistory("while it runs", "4.18.2 Upgrading")
	w.expectFirst("while it runs", "StartedNotificationSent", metav1.ConditionFalse, "NotificationPending", "Not yet.")

	w.play(job, v1beta1.PhaseSucceeded)
	w.pass()
	w.expectHistory("at the end", "4.18.2 Upgraded")
	got := w.config().Status.History[0]
	if got.PrecedingVersion != "4.18.1" || !got.StartTime.Time.Equal(startAfter) || !got.CompleteTime.Time.Equal(w.clock.Now()) || got.UpgradeJob != job.Name {
		t.Errorf("got %+v", got)
	}

	// Its history tells that it ran: nothing is made again after the job is gone.
	w.remove(job)
	w.letGo(job)
	w.api.writes()
	w.restart()
	w.pass()
	w.expectNoJob()
	if writes := w.api.writes(); len(writes) > 0 {
		t.Errorf("a pass after the end wrote %v", writes)
	}
	w.expectEvents("at the end")
}

func TestMUOVerdictsAreShown(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		config  *v1alpha1.UpgradeConfig
		objects []client.Object
		status  metav1.ConditionStatus
		because string
		words   string
		events  []string
		phase   v1alpha1.UpgradePhase
	}{
		{"a version that is not offered", newMUOConfig(wanting("4.18.9")), nil, metav1.ConditionFalse, muo.ReasonNotOffered, "4.18.9", []string{"Warning NotOffered The cluster is not offered"}, "Pending"},
		{"an older one", newMUOConfig(wanting("4.17.9")), nil, metav1.ConditionFalse, muo.ReasonNotNewer, "4.17.9", []string{"Warning NotNewer "}, "Pending"},
		{"no time", newMUOConfig(upgradeAt("soon")), nil, metav1.ConditionFalse, muo.ReasonInvalidUpgradeAt, "soon", []string{"Warning InvalidUpgradeAt "}, "Pending"},
		{"the version that runs", newMUOConfig(wanting("4.18.1")), nil, metav1.ConditionTrue, muo.ReasonUpgraded, "already", []string{"Normal Upgraded "}, "Upgraded"},
		{"a ConfigMap that cannot be used", newMUOConfig(), []client.Object{muoSettings("scale:\n  timeOut: 0")}, metav1.ConditionFalse, muo.ReasonInvalidSettings,
			"config.yaml of ConfigMap managed-upgrade-operator-config cannot be used: scale.timeOut (line 2) must be at least 1", []string{"Warning InvalidSettings "}, "Pending"},
		{"another name", newMUOConfig(func(c *v1alpha1.UpgradeConfig) { c.Name = "mine" }), nil, metav1.ConditionFalse, muo.ReasonNotManaged,
			"named managed-upgrade-config", []string{"Warning NotManaged "}, "Pending"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newMUOWorld(t, append(tc.objects, newClusterVersion(), tc.config)...)
			for range 3 {
				w.elapse(time.Minute)
				if result := w.reconcile(w.r, tc.config); result.RequeueAfter != 0 {
					t.Errorf("wakes after %s", result.RequeueAfter)
				}
			}
			w.expectNoJob()
			history := get(w.world, tc.config).Status.History
			if len(history) != 1 || history[0].Phase != tc.phase || len(history[0].Conditions) != 1 {
				t.Fatalf("got history %+v, want one entry, %s, with one condition", history, tc.phase)
			}
			c := history[0].Conditions[0]
			expectCondition(t, []metav1.Condition{{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message}}, v1alpha1.ConditionValid, tc.status, tc.because, tc.words)
			w.expectEvents(tc.reason, tc.events...)
			if diff := cmp.Diff([]string{"patch UpgradeConfig/status"}, w.api.writes()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMUOObjectIsJudgedAnewWhenItMayBeOtherwise(t *testing.T) {
	w := newMUOWorld(t, newClusterVersion(offering()), newMUOConfig(), muoSettings("scale: 1"))
	w.pass()
	w.expectFirst("a ConfigMap that is none", "UpgradeConfigValid", metav1.ConditionFalse, muo.ReasonInvalidSettings)
	w.set(func(c *corev1.ConfigMap) { c.Data = map[string]string{"config.yml": ""} })
	w.pass()
	w.expectFirst("nothing is offered", "UpgradeConfigValid", metav1.ConditionFalse, muo.ReasonNotOffered, "Note: ConfigMap managed-upgrade-operator-config has no key config.yaml.")
	change(w.world, newClusterVersion(), offering("4.18.2"))
	w.pass()
	w.expectFirst("it is offered", "UpgradeScheduled", metav1.ConditionTrue, muo.ReasonJobCreated)

	// What was made of an offer that is withdrawn before the start is taken back.
	job := w.job()
	change(w.world, newClusterVersion(), offering())
	w.events()
	w.pass()
	w.expectFirst("withdrawn", "UpgradeConfigValid", metav1.ConditionFalse, muo.ReasonNotOffered)
	w.expectEvents("withdrawn", "Normal JobReplaced Deleted UpgradeJob "+job.Name+", which had not started: The cluster is not offered", "Warning NotOffered ")
	w.letAllGo()
	w.pass()
	w.expectNoJob()

	// Not to know is no reason to take anything back.
	change(w.world, newClusterVersion(), offering("4.18.2"))
	w.pass()
	change(w.world, newClusterVersion(), func(cv *configv1.ClusterVersion) {
		offering()(cv)
		cv.Status.Conditions = nil
	})
	w.pass()
	w.expectFirst("nobody knows", "UpgradeConfigValid", metav1.ConditionUnknown, muo.ReasonUpdatesUnknown)
	w.job()
}

func TestMUOJobOfAPastTimeStartsNow(t *testing.T) {
	w := newMUOWorld(t, newClusterVersion(), newMUOConfig(upgradeAt("2020-06-20T12:00:00Z")))
	w.pass()
	job := w.job()
	if !job.Spec.StartAfter.Time.Equal(w.clock.Now()) || !job.Spec.StartBefore.Time.Equal(w.clock.Now().Add(2*time.Hour)) {
		t.Errorf("the job starts from %s to %s, want from now on", job.Spec.StartAfter, job.Spec.StartBefore)
	}
	w.elapse(time.Hour)
	w.play(job, v1beta1.PhasePending)
	w.pass()
	if w.job().UID != job.UID {
		t.Error("the job was made again")
	}
}

// The history of an object that has been in use is kept, and nothing of it is done again.
func TestMUOHistoryOfBeforeIsKept(t *testing.T) {
	old := func(version string, phase v1alpha1.UpgradePhase) v1alpha1.UpgradeHistory {
		return v1alpha1.UpgradeHistory{Version: version, Phase: phase, StartTime: &metav1.Time{Time: startAfter.AddDate(0, -1, 0)}}
	}
	for _, tc := range []struct {
		reason  string
		history []v1alpha1.UpgradeHistory
		cv      *configv1.ClusterVersion
		want    []string
		job     bool
	}{
		{"it failed", []v1alpha1.UpgradeHistory{old("4.18.2", "Failed"), old("4.18.1", "Upgraded")}, newClusterVersion(), []string{"4.18.2 Failed", "4.18.1 Upgraded"}, false},
		{"it was done", []v1alpha1.UpgradeHistory{old("4.18.2", "Upgraded")}, newClusterVersion(), []string{"4.18.2 Upgraded"}, false},
		{"another was done", []v1alpha1.UpgradeHistory{old("4.18.1", "Upgraded")}, newClusterVersion(), []string{"4.18.2 Pending", "4.18.1 Upgraded"}, true},
		{"it is being done", []v1alpha1.UpgradeHistory{old("4.18.2", "Upgrading")}, newClusterVersion(offering(), func(cv *configv1.ClusterVersion) {
			cv.Status.History = append([]configv1.UpdateHistory{{State: configv1.PartialUpdate, Version: "4.18.2", Image: "image:4.18.2"}}, cv.Status.History...)
		}), []string{"4.18.2 Upgrading"}, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newMUOWorld(t, tc.cv, newMUOConfig(func(c *v1alpha1.UpgradeConfig) { c.Status.History = tc.history }))
			w.pass()
			w.pass()
			w.expectHistory(tc.reason, tc.want...)
			if got := len(jobsOf(w.world)); got != map[bool]int{true: 1}[tc.job] {
				t.Errorf("there are %d jobs, want one: %t", got, tc.job)
			}
		})
	}
}

func TestMUOObjectThatIsDeletedIsLeftAlone(t *testing.T) {
	w := newMUOWorld(t, newClusterVersion(), newMUOConfig(func(c *v1alpha1.UpgradeConfig) { c.Finalizers = []string{"foregroundDeletion"} }))
	w.remove(newMUOConfig())
	w.pass()
	w.expectNoJob()
	w.letGoOfConfig()
	if result := w.pass(); result.RequeueAfter != 0 || len(w.api.writes()) > 0 {
		t.Error("an object that is gone was worked on")
	}
}

func (w *muoWorld) letGoOfConfig() {
	w.t.Helper()
	config := w.config()
	config.Finalizers = nil
	if err := w.api.past(func() error { return w.client.Update(w.t.Context(), config) }); err != nil {
		w.t.Fatal(err)
	}
}
