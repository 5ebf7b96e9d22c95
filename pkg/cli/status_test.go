// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
)

func TestScenes(t *testing.T) {
	for _, sc := range scenes() {
		t.Run(sc.name, func(t *testing.T) {
			c := world(sc.objects...).Build()
			for _, line := range []string{"status", "status -o wide", "status -o yaml", "history -o wide", "versions -o wide", "nodes"} {
				out, errOut, status := runTool(t, c, sc.now, strings.Fields(line)...)
				if status != ExitOK || errOut != "" {
					t.Errorf("%s: exit status %d, %s", line, status, errOut)
				}
				golden(t, "look/"+sc.name+"/"+strings.NewReplacer(" -o ", ".", " ", "").Replace(line)+".txt", out)
			}
		})
	}
}
