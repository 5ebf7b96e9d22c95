// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package rules hands the alerts of deploy/monitoring/rules.yaml to a Prometheus without an operator of its own, as tests run it. The tests
// of the package are those of the alerts, their runbooks and the dashboards.
package rules

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// manifest is the PrometheusRule, from the root of the repository.
const manifest = "deploy/monitoring/rules.yaml"

// ErrOutsideRepository is why the manifest is not found.
var ErrOutsideRepository = errors.New("run this from within the repository")

// Rule is an alert.
type Rule struct {
	Alert         string            `json:"alert"`
	Expr          string            `json:"expr"`
	For           string            `json:"for,omitempty"`
	KeepFiringFor string            `json:"keep_firing_for,omitempty"`
	Labels        map[string]string `json:"labels"`
	Annotations   map[string]string `json:"annotations"`
}

// Group is a group of rules, which are evaluated together.
type Group struct {
	Name  string `json:"name"`
	Rules []Rule `json:"rules"`
}

// Load returns the alerts as they are shipped. The working directory has to lie within the repository; otherwise the error is
// ErrOutsideRepository.
func Load() ([]Group, error) {
	root, err := root()
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(filepath.Join(root, manifest))
	if err != nil {
		return nil, fmt.Errorf("read the PrometheusRule: %w", err)
	}
	var rule struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Spec       struct {
			Groups []Group `json:"groups"`
		} `json:"spec"`
	}
	if err := yaml.UnmarshalStrict(content, &rule); err != nil {
		return nil, fmt.Errorf("parse %s: %w", manifest, err)
	}
	return rule.Spec.Groups, nil
}

// File writes the alerts into dir as a file that Prometheus loads by rule_files, and returns its path. The same holds for the working
// directory as in Load.
func File(dir string) (string, error) {
	groups, err := Load()
	if err != nil {
		return "", err
	}
	content, err := yaml.Marshal(map[string]any{"groups": groups})
	if err != nil {
		return "", fmt.Errorf("write the rules: %w", err)
	}
	path := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return "", fmt.Errorf("write the rules: %w", err)
	}
	return path, nil
}

// root is the folder of the repository, above the working directory. (runtime.Caller has no path where the caller was built with -trimpath.)
func root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", manifest, err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		_, err := os.Stat(filepath.Join(dir, filepath.FromSlash(manifest)))
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("find %s: %w", manifest, err)
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find %s above %s: %w", manifest, start, ErrOutsideRepository)
		}
	}
}
