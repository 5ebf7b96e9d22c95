// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Trimcrd takes the descriptions out of a part of a CRD: a pod template brings
// half a megabyte of them along, more than `kubectl apply` can keep in its
// annotation. controller-gen can do so for all kinds only.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	below := flag.String("below", "", "`path` of the field, e.g. spec.template, whose fields lose their descriptions")
	flag.Parse()
	if err := run(flag.Args(), *below); err != nil {
		fmt.Fprintln(os.Stderr, "trimcrd: "+err.Error())
		os.Exit(1)
	}
}

func run(files []string, below string) error {
	if below == "" || len(files) == 0 {
		return fmt.Errorf("want -below and the names of files")
	}
	for _, file := range files {
		if err := trimFile(file, strings.Split(below, ".")); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

func trimFile(file string, path []string) error {
	data, err := os.ReadFile(file) //nolint:gosec // a file of the source tree
	if err != nil {
		return err
	}
	var crd map[string]any
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return err
	}
	versions, _ := field(crd, "spec", "versions").([]any)
	if len(versions) == 0 {
		return fmt.Errorf("it is no CRD: it has no spec.versions")
	}
	for _, version := range versions {
		schema := field(version, "schema", "openAPIV3Schema")
		for _, name := range path {
			schema = field(schema, "properties", name)
		}
		properties := field(schema, "properties")
		if properties == nil {
			return fmt.Errorf("it has no fields below %s", strings.Join(path, "."))
		}
		trim(properties)
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

// trim removes every description below the node. A field of the name description is an object, and stays.
func trim(node any) {
	switch node := node.(type) {
	case map[string]any:
		if _, isText := node["description"].(string); isText {
			delete(node, "description")
		}
		for _, child := range node {
			trim(child)
		}
	case []any:
		for _, child := range node {
			trim(child)
		}
	}
}
