// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/yaml"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/muo"
)

// node returns a node with an architecture and the labels.
func node(name, arch string, labels ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelArchStable: arch}}}
	for _, label := range labels {
		n.Labels[label] = ""
	}
	return n
}

// graphOf answers with a graph, and keeps the questions.
func graphOf(body string, asked *[]url.Values) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		*asked = append(*asked, r.URL.Query())
		status := http.StatusOK
		if body == "" {
			status = http.StatusServiceUnavailable
		}
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
	})
}

func TestMUOUpdateServiceIsAskedAboutOtherChannels(t *testing.T) {
	const (
		nodes   = `"nodes":[{"version":"4.18.1","payload":"image:1"},{"version":"4.18.5","payload":"image:5"}]`
		offered = `{` + nodes + `,"edges":[[0,1]]}`
		risky   = `{` + nodes + `,"edges":[],"conditionalEdges":[{"edges":[{"from":"4.18.1","to":"4.18.5"}],"risks":[{"name":"Fire"}]}]}`
	)
	other := func(c *v1alpha1.UpgradeConfig) {
		c.Spec.Desired = v1alpha1.Update{Channel: "fast-4.18", Version: "4.18.5"}
	}
	accepts := func(c *v1alpha1.UpgradeConfig) {
		c.Annotations = map[string]string{v1alpha1.AcceptRisksAnnotation: "Fire"}
	}
	multi := func(cv *configv1.ClusterVersion) {
		cv.Status.Desired.Architecture = configv1.ClusterVersionArchitectureMulti
	}
	masters := []client.Object{node("a", "s390x", "node-role.kubernetes.io/master"), node("b", "arm64")}
	for _, tc := range []struct {
		reason  string
		graph   string
		config  *v1alpha1.UpgradeConfig
		objects []client.Object
		arch    []string
		because string
		job     *v1beta1.DesiredVersion
		check   bool
	}{
		{"it has it", offered, newMUOConfig(other), append(masters, newClusterVersion()), []string{"s390x"}, muo.ReasonValid, &v1beta1.DesiredVersion{Version: "4.18.5"}, true},
		{"of a multi-architecture release", offered, newMUOConfig(other), append(masters, newClusterVersion(multi)), []string{"multi"}, muo.ReasonValid, &v1beta1.DesiredVersion{Version: "4.18.5"}, true},
		{"without masters", offered, newMUOConfig(other), []client.Object{node("a", "arm64"), newClusterVersion()}, []string{"arm64"}, muo.ReasonValid, &v1beta1.DesiredVersion{Version: "4.18.5"}, true},
		{"without nodes", offered, newMUOConfig(other), []client.Object{newClusterVersion()}, nil, muo.ReasonValid, &v1beta1.DesiredVersion{Version: "4.18.5"}, true},
		{"it has not", `{"nodes":[{"version":"4.18.1"}]}`, newMUOConfig(other), []client.Object{newClusterVersion()}, nil, muo.ReasonNotOffered, nil, false},
		{"it does not know the cluster", `{"nodes":[]}`, newMUOConfig(other), []client.Object{newClusterVersion()}, nil, muo.ReasonUnknownChannel, nil, false},
		{"it is away", "", newMUOConfig(other), []client.Object{newClusterVersion()}, nil, muo.ReasonGraphUnavailable, nil, false},
		{"with risks", risky, newMUOConfig(other), []client.Object{newClusterVersion()}, nil, muo.ReasonValid, &v1beta1.DesiredVersion{Version: "4.18.5"}, true},
		{"with risks that are accepted", risky, newMUOConfig(other, accepts), []client.Object{newClusterVersion()}, nil, muo.ReasonValid, &v1beta1.DesiredVersion{Version: "4.18.5", Image: "image:5"}, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newMUOWorld(t, append(tc.objects, tc.config, muoSettings("validation: {cincinnati: true}"))...)
			var asked []url.Values
			w.upstream = graphOf(tc.graph, &asked)
			result := w.pass()
			want := url.Values{"channel": {"fast-4.18"}, "id": {"cluster"}, "version": {"4.18.1"}}
			if tc.arch != nil {
				want["arch"] = tc.arch
			}
			if diff := cmp.Diff([]url.Values{want}, asked); diff != "" {
				t.Errorf("questions (-want +got):\n%s", diff)
			}
			if c := muo.FindCondition(&w.config().Status.History[0], v1alpha1.ConditionValid); c == nil || c.Reason != tc.because {
				t.Errorf("got %+v, want %s", c, tc.because)
			}
			if tc.job == nil {
				w.expectNoJob()
				if result.RequeueAfter != time.Minute { // which is how long it sleeps at most
					t.Errorf("looks again after %s", result.RequeueAfter)
				}
				return
			}
			spec := w.job().Spec
			if diff := cmp.Diff(tc.job, spec.DesiredVersion); diff != "" || *spec.DesiredVersionCheckAvailability != tc.check || spec.Config.Channel != "fast-4.18" {
				t.Errorf("availability is checked: %t, channel %s; version (-want +got):\n%s", *spec.DesiredVersionCheckAvailability, spec.Config.Channel, diff)
			}
		})
	}
}

func TestMUOUpdateServiceIsNotAskedForNothing(t *testing.T) {
	w := newMUOWorld(t, newClusterVersion(), newMUOConfig(func(c *v1alpha1.UpgradeConfig) { c.Spec.Desired.Channel = "fast-4.18" }), muoSettings(""))
	w.upstream = roundTripper(func(*http.Request) (*http.Response, error) {
		t.Error("the update service is asked though validation.cincinnati is off")
		return nil, io.EOF
	})
	w.pass()
	w.job()
}

func TestMUOWatches(t *testing.T) {
	cv := func(overrides ...func(*configv1.ClusterVersion)) *configv1.ClusterVersion {
		return newClusterVersion(overrides...)
	}
	versionPasses := func(override func(*configv1.ClusterVersion)) bool {
		return muoVersionChanged.Update(event.UpdateEvent{ObjectOld: cv(), ObjectNew: cv(override)})
	}
	for reason, tc := range map[string]struct {
		change func(*configv1.ClusterVersion)
		want   bool
	}{
		"a lock":                      {lockedBy("a/b"), false},
		"progress":                    {func(cv *configv1.ClusterVersion) { cv.Status.ObservedGeneration++ }, false},
		"the channel":                 {func(cv *configv1.ClusterVersion) { cv.Generation++ }, true},
		"an offer":                    {offering("4.18.3"), true},
		"a risk":                      {func(cv *configv1.ClusterVersion) { cv.Status.ConditionalUpdates = []configv1.ConditionalUpdate{{}} }, true},
		"an update":                   {func(cv *configv1.ClusterVersion) { cv.Status.History[0].State = configv1.PartialUpdate }, true},
		"the channels of the release": {func(cv *configv1.ClusterVersion) { cv.Status.Desired.Channels = []string{"a"} }, true},
		"knowing nothing":             {func(cv *configv1.ClusterVersion) { cv.Status.Conditions[0].Status = configv1.ConditionFalse }, true},
	} {
		if got := versionPasses(tc.change); got != tc.want {
			t.Errorf("ClusterVersion, %s: passes: %t", reason, got)
		}
	}
	for reason, tc := range map[string]struct {
		change func(*v1beta1.UpgradeJob)
		want   bool
	}{
		"a notification": {func(j *v1beta1.UpgradeJob) { j.Status.Notifications = &v1beta1.NotificationsStatus{} }, false},
		"a pool":         {func(j *v1beta1.UpgradeJob) { j.Status.Pools = []v1beta1.MachineConfigPoolStatus{{}} }, false},
		"a phase":        {withPhase(v1beta1.PhaseActive), true},
		"a condition":    {func(j *v1beta1.UpgradeJob) { j.Status.Conditions = []metav1.Condition{{}} }, true},
		"a step":         {func(j *v1beta1.UpgradeJob) { j.Status.Steps = []v1beta1.StepStatus{{}} }, true},
		"its start":      {func(j *v1beta1.UpgradeJob) { j.Status.StartTime = &metav1.Time{Time: startAfter} }, true},
		"its deletion":   {func(j *v1beta1.UpgradeJob) { j.DeletionTimestamp = &metav1.Time{Time: startAfter} }, true},
	} {
		if got := muoJobChanged.Update(event.UpdateEvent{ObjectOld: newJob("x"), ObjectNew: newJob("x", tc.change)}); got != tc.want {
			t.Errorf("UpgradeJob, %s: passes: %t", reason, got)
		}
	}
}

// The sample that is shipped is an object of this kind, and is carried out by a cluster that is offered what it wants.
func TestMUOSample(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "samples", "muo-upgradeconfig.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config := &v1alpha1.UpgradeConfig{}
	if err := yaml.UnmarshalStrict(data, config); err != nil {
		t.Fatal(err)
	}
	config.Namespace, config.UID = namespace, "muo-uid"
	config.CreationTimestamp = metav1.NewTime(startAfter.AddDate(0, -1, 0))
	w := newMUOWorld(t, config, newClusterVersion(offering("4.4.6"), func(cv *configv1.ClusterVersion) {
		cv.Spec.Channel = "fast-4.4"
		cv.Status.History[0].Version = "4.4.5"
	}))
	w.pass()
	spec := w.job().Spec
	if spec.DesiredVersion.Version != "4.4.6" || !spec.StartAfter.Time.Equal(w.clock.Now()) || spec.Config.PDBForceDrainTimeout.Duration != 2*time.Hour ||
		!spec.Config.CapacityReservation.Enabled || spec.Config.Upgrader != "OSD" {
		t.Errorf("got a job of %+v", spec)
	}
}
