// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package names_test

import (
	"strings"
	"testing"

	"github.com/appuio/managed-upgrade-operator/pkg/names"
)

func TestWithSuffix(t *testing.T) {
	for _, tc := range []struct {
		reason, name, suffix string
		limit                int
		want                 string
	}{
		{"a short name stands whole", "weekly", "-1234", 20, "weekly-1234"},
		{"the longest that fits", strings.Repeat("a", 15), "-1234", 20, strings.Repeat("a", 15) + "-1234"},
		{"one more is cut", strings.Repeat("a", 16), "-1234", 20, strings.Repeat("a", 15) + "-1234"},
		{"a cut after a dash, a dot and a low line", "abc-._defgh", "-1234", 11, "abc-1234"},
		{"a name that ends in a dot", "abc.", "-1234", 20, "abc-1234"},
		{"no name", "", "-1234", 20, "-1234"},
		{"nothing but dashes", "---", "-1234", 20, "-1234"},
		{"no room for the name", "abc", "-1234", 3, "-1234"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := names.WithSuffix(tc.name, tc.suffix, tc.limit); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
