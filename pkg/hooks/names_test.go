// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package hooks_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
)

func jobOfUID(uid string) *v1beta1.UpgradeJob {
	return &v1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Name: "weekly", UID: types.UID(uid)}}
}

// expectJobName fails unless the name can be that of a Job whose pods have an index of as many digits as there are.
func expectJobName(t interface{ Errorf(string, ...any) }, name string) {
	if problems := validation.IsDNS1123Label(name + "-2147483647"); len(problems) > 0 {
		t.Errorf("the pods of %q (%d characters) cannot have a hostname: %v", name, len(name), problems)
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 || len(name) > 52 {
		t.Errorf("%q (%d characters) is no name for a Job: %v", name, len(name), problems)
	}
}

func TestJobName(t *testing.T) {
	const hash = `-[0-9a-f]{10}$`
	for _, tc := range []struct {
		reason, hook string
		event        v1beta1.HookEvent
		key          string
		want         string
	}{
		{"a short name stands whole", "notify", v1beta1.HookEventCreate, "", `^notify-create` + hash},
		{"the event of a step", "backup", v1beta1.HookEventStepStarted("UpgradeCommenced"), "", `^backup-stepstarted-upgradecommenced` + hash},
		{"the key is in the hash only", "drain", v1beta1.HookEventMachineConfigPoolUnpause, "worker", `^drain-machineconfigpoolunpause` + hash},
		{"dots", "a.b.example.com", v1beta1.HookEventStart, "", `^a-b-example-com-start` + hash},
		{"a digit first", "0day", v1beta1.HookEventStart, "", `^0day-start` + hash},
		{"the longest that fits", strings.Repeat("a", 35), v1beta1.HookEventStart, "", `^a{35}-start` + hash},
		{"one more is cut", strings.Repeat("a", 36), v1beta1.HookEventStart, "", `^a{36}-star` + hash},
		{"a cut after a dash", strings.Repeat("a", 40), v1beta1.HookEventStart, "", `^a{40}` + hash},
		{"the longest name of an object", strings.Repeat("a", 253), v1beta1.HookEventStart, "", `^a{41}` + hash},
		{"dots all over", strings.Repeat("a.", 126) + "a", v1beta1.HookEventStart, "", `^(a-){20}a` + hash},
		{"a key in other letters", "notify", v1beta1.HookEventFinish, "größe/日本\x00\xff", `^notify-finish` + hash},
		{"what no API server takes", "!?", "/", "", `^hook` + hash},
		{"nothing", "", "", "", `^hook` + hash},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			name := hooks.JobName(jobOfUID("uid"), tc.hook, tc.event, tc.key)
			expectJobName(t, name)
			if !regexp.MustCompile(tc.want).MatchString(name) {
				t.Errorf("got %q, want it to match %s", name, tc.want)
			}
			if again := hooks.JobName(jobOfUID("uid"), tc.hook, tc.event, tc.key); again != name {
				t.Errorf("got %q, then %q", name, again)
			}
		})
	}
}

func TestJobNameIsValidForEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[-a-z0-9.]{0,253}`))
		name := hooks.JobName(jobOfUID(text.Draw(t, "uid")), text.Draw(t, "hook"), v1beta1.HookEvent(text.Draw(t, "event")), text.Draw(t, "key"))
		expectJobName(t, name)
	})
}

func TestJobNameIsUnique(t *testing.T) {
	// Texts that run into each other unless something keeps them apart, and names that are cut alike.
	texts := []string{"", "a", "ab", "b", "aa", "a-a", "a.a", "a/a", "a\x00a", "1:a", "A", strings.Repeat("a", 60), strings.Repeat("a", 61)}
	seen := map[string]string{}
	for _, uid := range texts {
		for _, hook := range texts {
			for _, event := range texts {
				for _, key := range texts {
					run := fmt.Sprintf("%q", []string{uid, hook, event, key})
					name := hooks.JobName(jobOfUID(uid), hook, v1beta1.HookEvent(event), key)
					if other, taken := seen[name]; taken {
						t.Fatalf("%s and %s are both called %s", run, other, name)
					}
					seen[name] = run
				}
			}
		}
	}
}

func TestLabelValue(t *testing.T) {
	const hash = `-[0-9a-f]{10}$`
	for _, tc := range []struct{ reason, text, want string }{
		{"a value stands as it is", "Weekly_1.2-x", `^Weekly_1\.2-x$`},
		{"the longest too", strings.Repeat("a", 63), `^a{63}$`},
		{"none", "", `^$`},
		{"one more is cut", strings.Repeat("a", 64), `^a{52}` + hash},
		{"the longest name of an object", strings.Repeat("a.", 126) + "a", `^(a\.){25}a` + hash},
		{"the event of a step", "StepStarted/ControlPlaneUpgraded", `^StepStarted-ControlPlaneUpgraded` + hash},
		{"a bad begin and end", "-a_", `^a` + hash},
		{"other letters", "größe", `^gr--e` + hash},
		{"nothing that can stay", "日本/", `^[0-9a-f]{10}$`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := hooks.LabelValue(tc.text)
			if problems := validation.IsValidLabelValue(got); len(problems) > 0 {
				t.Errorf("%q is no value for a label: %v", got, problems)
			}
			if !regexp.MustCompile(tc.want).MatchString(got) {
				t.Errorf("got %q, want it to match %s", got, tc.want)
			}
		})
	}
}

func TestLabelValueIsValidAndUnique(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[-A-Za-z0-9._/]{0,253}`))
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		for _, s := range []string{a, b} {
			value := hooks.LabelValue(s)
			if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
				t.Errorf("%q became %q, which is no value for a label: %v", s, value, problems)
			}
			if len(validation.IsValidLabelValue(s)) == 0 && value != s {
				t.Errorf("%q became %q though it is a value", s, value)
			}
		}
		if a != b && hooks.LabelValue(a) == hooks.LabelValue(b) {
			t.Errorf("%q and %q are both %q", a, b, hooks.LabelValue(a))
		}
	})
}
