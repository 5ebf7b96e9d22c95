// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Stepsdoc writes what the step catalogue says to where people and the API server read it: the page docs/steps.md, and the rules in the CRD of kind
// Upgrader.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

func main() {
	page := flag.String("page", "", "`file` to write the page to")
	crd := flag.String("crd", "", "`file` with the CRD of kind Upgrader, whose rules are replaced by those of the catalogue")
	flag.Parse()
	if err := run(*page, *crd); err != nil {
		fmt.Fprintln(os.Stderr, "stepsdoc: "+err.Error())
		os.Exit(1)
	}
}

func run(page, crd string) error {
	if page == "" && crd == "" {
		return errors.New("want -page, -crd or both")
	}
	catalogue := upgrader.NewCatalogue()
	if page != "" {
		var text bytes.Buffer
		writePage(&text, catalogue, upgrader.BuiltIn())
		if err := os.WriteFile(page, text.Bytes(), 0o644); err != nil { //nolint:gosec // a file of the source tree
			return err
		}
	}
	if crd == "" {
		return nil
	}
	if err := setRules(crd, catalogue.AdmissionRules()); err != nil {
		return fmt.Errorf("%s: %w", crd, err)
	}
	return nil
}

// setRules replaces the rules of spec.steps in the CRD.
func setRules(file string, rules []upgrader.AdmissionRule) error {
	data, err := os.ReadFile(file) //nolint:gosec // a file of the source tree
	if err != nil {
		return err
	}
	var crd map[string]any
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return err
	}
	versions, _ := field(crd, "spec", "versions").([]any)
	for _, version := range versions {
		list, ok := field(version, "schema", "openAPIV3Schema", "properties", "spec", "properties", "steps").(map[string]any)
		if !ok {
			return errors.New("it has no field spec.steps")
		}
		list["x-kubernetes-validations"] = rules
	}
	if len(versions) == 0 {
		return errors.New("it is no CRD: it has no spec.versions")
	}
	data, err = yaml.Marshal(crd)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte("---\n"), data...), 0o644) //nolint:gosec // a file of the source tree
}

// field returns what stands under these keys, or nil.
func field(node any, keys ...string) any {
	for _, key := range keys {
		object, _ := node.(map[string]any)
		node = object[key]
	}
	return node
}
