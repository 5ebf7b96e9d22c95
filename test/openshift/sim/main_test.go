// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/appuio/managed-upgrade-operator/test/controlplane"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// plane is the API server that the tests of this package share.
var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	crds, err := sim.CRDs()
	if err == nil {
		plane, err = controlplane.Start(ctx, controlplane.Options{CRDs: crds})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "start control plane:", err)
		return 1
	}
	code := m.Run()
	if err := plane.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop control plane:", err)
		return 1
	}
	return code
}
