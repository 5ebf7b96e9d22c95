// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
)

// Width of a progress bar in columns, without its brackets.
const (
	minBar = 10
	maxBar = 30
)

// bar draws what is done of something: "[#####.....] 503 of 842". It is full only when all is done, and takes a quarter of the view's width.
func (v *view) bar(done, total int) string {
	width := min(max(v.width/4, minBar), maxBar)
	filled := 0
	if total > 0 {
		filled = width * min(max(done, 0), total) / total
	}
	return fmt.Sprintf("[%s%s] %d of %d", strings.Repeat("#", filled), strings.Repeat(".", width-filled), done, total)
}
