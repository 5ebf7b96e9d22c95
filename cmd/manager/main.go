// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// The manager runs the managed upgrade operator: see --help.
package main

import (
	"github.com/appuio/managed-upgrade-operator/pkg/command"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// version is set by the build.
var version = "devel"

func main() {
	command.Main(command.Options{Version: version, Upgraders: upgrader.BuiltIn()})
}
