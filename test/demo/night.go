// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// drainSample is the NodeForceDrain of the demo, as an administrator would write it.
//
//go:embed testdata/nodeforcedrain.yaml
var drainSample []byte

const (
	drainSamplePath = "test/demo/testdata/nodeforcedrain.yaml"
	shopPath        = "test/demo/testdata/shop.yaml"
	// forceDrainFolder has the permission that NodeForceDrains take.
	forceDrainFolder = "deploy/rbac/force-drain"
)

const (
	// nightPool is the pool whose machines follow later.
	nightPool = "night"
	// drainGrace is how long a node of it may drain in the demo: time to see what holds it up.
	drainGrace = 8 * time.Second
	// podGrace is how long a pod of it may take to end in the demo, longer than the pod itself asks for.
	podGrace = 3 * time.Second
)

// fillNight puts a pod on a machine of the pool that nothing may evict, and applies what deletes it all the same. A
// scenario of the user that has no such pool goes without.
func (d *demo) fillNight(ctx context.Context, s sim.Scenario) error {
	if !slices.ContainsFunc(s.CustomPools, func(p sim.CustomPool) bool { return p.Name == nightPool && p.Size > 0 }) {
		return nil
	}
	if err := d.env.ApplyFile(ctx, filepath.Join(environment.Root(), shopPath)); err != nil {
		return err
	}
	d.say("demo", plain, fmt.Sprintf("applied %s: pod shop/cart-0 runs on night-0, and its PodDisruptionBudget never lets it go", shopPath))
	if err := d.env.ApplyFile(ctx, filepath.Join(environment.Root(), forceDrainFolder, "cluster_role.yaml")); err != nil {
		return err
	}
	drain, changes, err := forceDrain()
	if err != nil {
		return err
	}
	drain.Namespace = environment.Namespace
	if err := d.env.Client.Create(ctx, drain); err != nil {
		return fmt.Errorf("create NodeForceDrain %s: %w", drain.Name, err)
	}
	d.say("demo", plain, fmt.Sprintf("applied NodeForceDrain %s of %s, and the permission of %s; changed:\n%s",
		drain.Name, drainSamplePath, forceDrainFolder, strings.Join(changes, "\n")))
	return nil
}

// forceDrain returns the sample with grace periods that nobody minds to wait for, and what differs from the sample.
func forceDrain() (*v1beta1.NodeForceDrain, []string, error) {
	drain := &v1beta1.NodeForceDrain{}
	if err := yaml.UnmarshalStrict(drainSample, drain); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", drainSamplePath, err)
	}
	return drain, []string{
		hasten("nodeDrainGracePeriod", drain.Spec.NodeDrainGracePeriod, drainGrace),
		hasten("podForceDeleteGracePeriod", drain.Spec.PodForceDeleteGracePeriod, podGrace),
	}, nil
}
