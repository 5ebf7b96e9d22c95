// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/names"
)

const (
	// maxJobName leaves room for the index of a pod of an Indexed Job, which is part of its hostname: '-' and 10 digits.
	maxJobName = validation.DNS1123LabelMaxLength - 11
	// hashDigits is how many hex digits of a hash stand in a name.
	hashDigits = 10
)

// JobName is the name of the one Job that the hook has for the event and the key. It is the same whenever it is asked
// for: that is what keeps a process that knows of no Job from creating a second one. People read in it the hook
// and the event, as far as they fit.
func JobName(job *v1beta1.UpgradeJob, hook string, event v1beta1.HookEvent, key string) string {
	suffix := "-" + hash(string(job.UID), hook, string(event), key)
	name := clean(strings.ToLower(hook+"-"+string(event)), func(r rune) bool { return lower(r) || digit(r) })
	if name == "" {
		name = "hook"
	}
	return names.WithSuffix(name, suffix, maxJobName)
}

// LabelValue returns s if that can be the value of a label, and else what is left of it that can, with a hash that
// keeps it apart from others.
func LabelValue(s string) string {
	if len(validation.IsValidLabelValue(s)) == 0 {
		return s
	}
	value := clean(s, func(r rune) bool { return lower(r) || upper(r) || digit(r) || r == '.' || r == '_' })
	if value == "" {
		return hash(s)
	}
	return names.WithSuffix(value, "-"+hash(s), validation.LabelValueMaxLength)
}

// clean puts a dash for each character that is not allowed, and has the text begin with a letter or digit.
func clean(s string, allowed func(rune) bool) string {
	dashed := strings.Map(func(r rune) rune {
		if allowed(r) {
			return r
		}
		return '-'
	}, s)
	return strings.Trim(dashed, "-._")
}

func lower(r rune) bool { return r >= 'a' && r <= 'z' }
func upper(r rune) bool { return r >= 'A' && r <= 'Z' }
func digit(r rune) bool { return r >= '0' && r <= '9' }

// hash tells lists of texts apart. The length before each keeps ("a", "bc") from being ("ab", "c").
func hash(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part) // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil))[:hashDigits]
}
