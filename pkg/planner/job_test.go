// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package planner_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/planner"
)

func TestCreatedJob(t *testing.T) {
	config := newConfig(withPin(4*time.Hour), withStartDelay(30*time.Minute), func(c *v1beta1.UpgradeConfig) {
		c.Spec.JobTemplate = v1beta1.UpgradeJobTemplate{
			Metadata: v1beta1.TemplateMetadata{Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "b"}},
			Spec: v1beta1.UpgradeJobTemplateSpec{Config: v1beta1.UpgradeJobConfig{
				Upgrader:               "Custom",
				PreUpgradeHealthChecks: v1beta1.HealthChecks{ExcludeOperators: []string{"insights"}},
			}},
		}
	})
	for _, tc := range []struct {
		reason string
		update *openshift.Release
		want   *v1beta1.DesiredVersion
	}{
		{"with the update that is available now", update, &v1beta1.DesiredVersion{Version: update.Version, Image: update.Image}},
		{"without one", nil, nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			config.Spec.NoUpdatePolicy = v1beta1.NoUpdatePolicyCreateJob
			got := plan(t, config, planner.Facts{Update: tc.update}, tuesday.Add(-4*time.Hour)).Create
			want := &v1beta1.UpgradeJob{
				ObjectMeta: metav1.ObjectMeta{
					Name: got.Name, Namespace: "upgrades",
					Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "b"},
					Finalizers: []string{v1beta1.UpgradeJobFinalizer},
					OwnerReferences: []metav1.OwnerReference{{
						APIVersion: "managedupgrade.appuio.io/v1beta1", Kind: "UpgradeConfig", Name: "weekly", UID: "config-uid",
						Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
					}},
				},
				Spec: v1beta1.UpgradeJobSpec{
					StartAfter:                      metav1.NewTime(tuesday),
					StartBefore:                     metav1.NewTime(tuesday.Add(30 * time.Minute)),
					DesiredVersion:                  tc.want,
					DesiredVersionCheckAvailability: ptr.To(true),
					Config:                          config.Spec.JobTemplate.Spec.Config,
				},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("created job (-want +got):\n%s", diff)
			}
			got.Labels["team"], got.Spec.Config.PreUpgradeHealthChecks.ExcludeOperators[0] = "changed", "changed"
			if template := config.Spec.JobTemplate; template.Metadata.Labels["team"] != "a" || template.Spec.Config.PreUpgradeHealthChecks.ExcludeOperators[0] != "insights" {
				t.Error("the job shares memory with the template")
			}
		})
	}
}

// nameOfJob is the name of the job that the config creates for a start.
func nameOfJob(t testing.TB, config *v1beta1.UpgradeConfig, start time.Time) string {
	t.Helper()
	job := plan(t, config, planner.Facts{Update: update}, start).Create
	if job == nil {
		t.Fatalf("no job is created at %s", start)
	}
	return job.Name
}

func TestJobNameIsValid(t *testing.T) {
	for _, tc := range []struct{ reason, config, want string }{
		{"a short name stands whole", "weekly", `^weekly-1795557600-[0-9a-f]{7}$`},
		{"one with a dot too", "a.b", `^a\.b-1795557600-[0-9a-f]{7}$`},
		{"the longest that fits", strings.Repeat("a", 44), `^a{44}-1795557600-[0-9a-f]{7}$`},
		{"one more is cut", strings.Repeat("a", 45), `^a{44}-1795557600-[0-9a-f]{7}$`},
		{"the longest name of an object", strings.Repeat("a", 253), `^a{44}-1795557600-[0-9a-f]{7}$`},
		{"a cut after a dot", strings.Repeat("a", 43) + ".b", `^a{43}-+1795557600-[0-9a-f]{7}$`},
		{"a cut after a dash", strings.Repeat("a", 43) + "-b", `^a{43}-+1795557600-[0-9a-f]{7}$`},
		{"a cut after a run of dashes", strings.Repeat("a", 40) + "----b", `^a{40}-+1795557600-[0-9a-f]{7}$`},
		{"dots all over", strings.Repeat("a.", 126) + "a", `^(a\.){21}a[.a]?-+1795557600-[0-9a-f]{7}$`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			name := nameOfJob(t, newConfig(withName(tc.config)), tuesday)
			expectValidName(t, name)
			if !regexp.MustCompile(tc.want).MatchString(name) {
				t.Errorf("got %q, want it to match %s", name, tc.want)
			}
		})
	}
}

func TestJobNameIsValidForEveryConfig(t *testing.T) {
	label := `[a-z0-9]([-a-z0-9]{0,12}[a-z0-9])?`
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(label+`(\.`+label+`){0,15}`).Filter(func(s string) bool { return len(s) <= 253 }).Draw(t, "name")
		config := newConfig(withName(name))
		job, err := planner.Make(config, parseRapid(t, config), planner.Facts{Update: update}, tuesday)
		if err != nil || job.Create == nil {
			t.Fatalf("no job is created (%v)", err)
		}
		expectValidName(t, job.Create.Name)
	})
}

func expectValidName(t interface {
	Helper()
	Errorf(format string, args ...any)
}, name string) {
	t.Helper()
	for what, problems := range map[string][]string{
		"an object's name": validation.IsDNS1123Subdomain(name),
		"a label's value":  validation.IsValidLabelValue(name),
	} {
		if len(problems) > 0 {
			t.Errorf("%q (%d characters) cannot be %s: %v", name, len(name), what, problems)
		}
	}
}

func TestJobNameIsDeterministic(t *testing.T) {
	long := strings.Repeat("a", 60)
	base := nameOfJob(t, newConfig(), tuesday)
	for _, tc := range []struct {
		reason string
		config *v1beta1.UpgradeConfig
		start  time.Time
		same   bool
	}{
		{"the same config and start", newConfig(), tuesday, true},
		{"labels and status do not count", newConfig(func(c *v1beta1.UpgradeConfig) {
			c.Labels, c.Generation, c.UID = map[string]string{"other": "label"}, 7, "other"
			c.Status.NextPossibleSchedules = []metav1.Time{metav1.NewTime(tuesday)}
		}), tuesday, true},
		{"another start", newConfig(), tuesday.Add(week), false},
		{"another config of the same spec", newConfig(withName("other")), tuesday, false},
		{"another spec", newConfig(withStartDelay(time.Minute)), tuesday, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := nameOfJob(t, tc.config, tc.start); (got == base) != tc.same {
				t.Errorf("got %q, base is %q, want the same: %t", got, base, tc.same)
			}
		})
	}
	if a, b := nameOfJob(t, newConfig(withName(long+"a")), tuesday), nameOfJob(t, newConfig(withName(long+"b")), tuesday); a == b {
		t.Errorf("two long names that are cut alike have one job name, %q", a)
	}
}
