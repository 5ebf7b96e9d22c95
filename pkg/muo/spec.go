// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package muo

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/blang/semver/v4"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
)

// Bounds of what an UpgradeJob takes.
const (
	maxVersion = 128
	maxImage   = 1024
	maxChannel = 253
)

// byDigest is a pull spec with registry, at least one part of a path, name and digest.
var byDigest = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9.-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*){2,}@sha256:[0-9a-f]{64}$`)

// checkSpec tells what is wrong with the spec itself, whatever the cluster is like.
func checkSpec(spec v1alpha1.UpgradeConfigSpec) (reason string, err error) {
	if _, err := upgradeAt(spec); err != nil {
		return ReasonInvalidUpgradeAt, err
	}
	if err := checkDesired(spec.Desired); err != nil {
		return ReasonInvalidDesired, err
	}
	if spec.PDBForceDrainTimeout < 0 || spec.PDBForceDrainTimeout > maxMinutes {
		return ReasonInvalidTimeout, fmt.Errorf("spec.PDBForceDrainTimeout must be at least 0 and at most %d minutes, not %d", maxMinutes, spec.PDBForceDrainTimeout)
	}
	return "", nil
}

func upgradeAt(spec v1alpha1.UpgradeConfigSpec) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, spec.UpgradeAt)
	if err != nil || at.Unix() <= 0 {
		return time.Time{}, fmt.Errorf("spec.upgradeAt %q is no time such as 2026-11-24T22:00:00Z", spec.UpgradeAt)
	}
	return at.UTC().Truncate(time.Second), nil
}

func checkDesired(desired v1alpha1.Update) error {
	switch {
	case desired.Image == "" && (desired.Channel == "" || desired.Version == ""):
		return errors.New("spec.desired must have an image, or a channel and a version")
	case desired.Image != "" && (len(desired.Image) > maxImage || !byDigest.MatchString(desired.Image)):
		return fmt.Errorf("spec.desired.image %q is no pull spec by digest, such as registry/namespace/name@sha256:<64 hexadecimal digits>", desired.Image)
	case len(desired.Channel) > maxChannel:
		return fmt.Errorf("spec.desired.channel is longer than %d characters", maxChannel)
	}
	if desired.Version != "" {
		if _, err := semver.Parse(desired.Version); err != nil || len(desired.Version) > maxVersion {
			return fmt.Errorf("spec.desired.version %q is no version such as 4.18.2", desired.Version)
		}
	}
	return nil
}
