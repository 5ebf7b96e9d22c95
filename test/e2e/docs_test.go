// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/appuio/managed-upgrade-operator/test/environment"
)

// Whoever copies a manifest out of the documentation must not be told that it is wrong.
func TestManifestsInTheDocumentationApply(t *testing.T) {
	c := newCluster(t)
	pages, err := filepath.Glob(filepath.Join(environment.Root(), "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, filepath.Join(environment.Root(), "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range strings.Split(string(text), "```yaml\n")[1:] {
			manifest, _, _ := strings.Cut(block, "```")
			if !strings.HasPrefix(manifest, "apiVersion:") {
				continue // a part of one
			}
			found++
			file := filepath.Join(t.TempDir(), fmt.Sprintf("%s-%d.yaml", filepath.Base(page), i))
			if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
				t.Fatal(err)
			}
			c.kubectl("apply", "--validate=strict", "--dry-run=server", "-f", file)
		}
	}
	if found < 4 {
		t.Errorf("found %d manifests, the test is blind", found)
	}
}
