// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package names makes names of objects and values of labels that fit.
package names

import "strings"

// WithSuffix puts a suffix behind a name, which is cut so that both fit into limit bytes. What is left of the name ends
// in a letter or digit, as each part of an object's name has to; of a name without any, nothing is left. The name is ASCII.
func WithSuffix(name, suffix string, limit int) string {
	return strings.TrimRight(name[:max(min(len(name), limit-len(suffix)), 0)], "-._") + suffix
}
