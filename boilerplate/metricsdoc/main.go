// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Metricsdoc writes the page docs/metrics.md from the table of metrics in pkg/metrics.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	page := flag.String("page", "", "`file` to write the page to")
	flag.Parse()
	if err := run(*page); err != nil {
		fmt.Fprintln(os.Stderr, "metricsdoc: "+err.Error())
		os.Exit(1)
	}
}

func run(page string) error {
	if page == "" {
		return errors.New("want -page")
	}
	var text bytes.Buffer
	if err := writePage(&text); err != nil {
		return err
	}
	return os.WriteFile(page, text.Bytes(), 0o644) //nolint:gosec // a file of the source tree
}
