// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package upgrader_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// Whoever copies from docs/custom-upgrader.md copies what is tested: each block below the name of a file stands in that file.
func TestTheBlocksOfTheGuideStandInTheirFiles(t *testing.T) {
	guide, err := os.ReadFile("../../docs/custom-upgrader.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)<!-- ([a-z./-]+) -->\n```[a-z]+\n(.*?)```").FindAllStringSubmatch(string(guide), -1)
	if len(blocks) != 5 {
		t.Errorf("found %d blocks, want 5", len(blocks))
	}
	for _, block := range blocks {
		file, err := os.ReadFile(filepath.Join("../..", block[1]))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(file), block[2]) {
			t.Errorf("%s does not have this block of the guide:\n%s", block[1], block[2])
		}
	}
}

// The sample uses what every manager has.
func TestSampleOfAnUpgrader(t *testing.T) {
	data, err := os.ReadFile("../../deploy/samples/upgrader.yaml")
	if err != nil {
		t.Fatal(err)
	}
	sample := &v1beta1.Upgrader{}
	if err := yaml.UnmarshalStrict(data, sample); err != nil {
		t.Fatal(err)
	}
	if _, err := upgrader.NewCatalogue().Declared(sample); err != nil {
		t.Error(err)
	}
}
