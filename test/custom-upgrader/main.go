// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Custom-upgrader is a manager with a step and an upgrader of one's own: see docs/custom-upgrader.md.
package main

import (
	"github.com/appuio/managed-upgrade-operator/pkg/command"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// version is set by the build.
var version = "devel"

func main() {
	command.Main(command.Options{
		Version:   version,
		Upgraders: append(upgrader.BuiltIn(), Approved()),
		Steps:     []upgrader.Entry{changeApprovedEntry()},
	})
}
