// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

const module = "github.com/appuio/managed-upgrade-operator/"

func readFile(t *testing.T, parts ...string) string {
	t.Helper()
	data, err := os.ReadFile(root(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// first is the first group of the pattern in the text.
func first(t *testing.T, text, pattern string) string {
	t.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if match == nil {
		t.Fatalf("there is no %s", pattern)
	}
	return match[1]
}

// Where there is no network the image cannot be built, but what it is made of can be looked at: the compiler is that of go.mod, everything that the program is
// made of is copied, and what the Deployment calls is there.
func TestImageIsMadeOfWhatItNeeds(t *testing.T) {
	recipe := readFile(t, "Dockerfile")
	if got, want := first(t, recipe, `golang:([0-9]+\.[0-9]+)\.[0-9]+ AS`), first(t, readFile(t, "go.mod"), `(?m)^go ([0-9]+\.[0-9]+)`); got != want {
		t.Errorf("the image is built with Go %s, go.mod wants %s", got, want)
	}
	program := first(t, recipe, `(?m)^ENTRYPOINT \["([^"]+)"\]$`)
	if got := podOf(t).Spec.Containers[0].Command; !slices.Equal(got, []string{program}) {
		t.Errorf("the Deployment calls %q, the image has %q", got, program)
	}
	if user := first(t, recipe, `(?m)^USER (.*)$`); !regexp.MustCompile(`^[1-9][0-9]*:[1-9][0-9]*$`).MatchString(user) {
		t.Errorf("the user is %q: want numbers, so that runAsNonRoot can be verified, and not 0", user)
	}

	copied := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^COPY ([a-z]+) ([a-z]+)$`).FindAllStringSubmatch(recipe, -1) {
		copied[match[1]] = match[1] == match[2] && strings.Contains(readFile(t, ".dockerignore"), "\n!"+match[1]+"\n")
	}
	needed := run(t, "cd "+root()+" && go list -deps -f '{{.ImportPath}} {{.EmbedFiles}}' ./cmd/manager")
	own := 0
	for _, line := range lines(needed) {
		path, embedded, _ := strings.Cut(line, " ")
		folder, isOwn := strings.CutPrefix(path, module)
		if !isOwn {
			continue
		}
		own++
		if folder, _, _ := strings.Cut(folder, "/"); !copied[folder] {
			t.Errorf("%s is not copied", path)
		}
		if strings.Contains(embedded, "testdata/") {
			t.Errorf("%s has files of testdata in it, which are not copied: %s", path, embedded)
		}
	}
	if own < 10 {
		t.Errorf("the program has %d packages of ours, the test is blind", own)
	}
}

// The pages name the version that the manifests have.
func TestPagesNameTheVersion(t *testing.T) {
	image := read[appsv1.Deployment](t, name).Spec.Template.Spec.Containers[0].Image
	repository, version, _ := strings.Cut(image, ":")
	if got := first(t, readFile(t, "boilerplate", "make", "image.mk"), `(?m)^IMAGE \?= (.*)$`); got != repository {
		t.Errorf("make builds %q, the Deployment takes %q", got, repository)
	}
	pages, err := filepath.Glob(root("docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		text := readFile(t, "docs", filepath.Base(page))
		for _, pattern := range []string{`managed-upgrade-operator//deploy[a-z/-]*\?ref=(v[0-9][0-9.]*)`, fmt.Sprintf(`%s-must-gather:(v[0-9][0-9.]*)`, regexp.QuoteMeta(repository))} {
			for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
				found++
				if match[1] != version {
					t.Errorf("%s names %s in %q, the manifests have %s", filepath.Base(page), match[1], match[0], version)
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("found %d, the test is blind", found)
	}
}
