// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Command dashboards writes the dashboard of the OpenShift console anew as one that a present-day Grafana imports. The console knows the schema of
// Grafana 5 only (rows, graph, singlestat, and tables by styles), which Grafana itself has dropped.
//
//	dashboards CONSOLE.json GRAFANA.json
package main

//go:generate go run . ../../deploy/monitoring/dashboards/managed-upgrades.json ../../deploy/monitoring/dashboards/managed-upgrades-grafana.json

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: dashboards CONSOLE.json GRAFANA.json")
	}
	content, err := os.ReadFile(args[0]) //nolint:gosec // whoever calls it names the file
	if err != nil {
		return fmt.Errorf("read the dashboard: %w", err)
	}
	var source board
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields() // it would be lost
	if err := decoder.Decode(&source); err != nil {
		return fmt.Errorf("parse %s: %w", args[0], err)
	}
	converted, err := convert(source)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // queries have < and >
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(converted); err != nil {
		return fmt.Errorf("write the dashboard: %w", err)
	}
	if err := os.WriteFile(args[1], out.Bytes(), 0o644); err != nil { //nolint:gosec // it is no secret
		return fmt.Errorf("write the dashboard: %w", err)
	}
	return nil
}
