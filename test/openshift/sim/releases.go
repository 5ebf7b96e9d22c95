// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"github.com/blang/semver/v4"
)

// Image returns the pull spec that the simulator derives for a release whose
// scenario does not name one.
func Image(version string) string {
	return "quay.io/openshift-release-dev/ocp-release@sha256:" + digest("release", version)
}

// imageOf returns the pull spec of a release in this scenario.
func (s *Scenario) imageOf(version string) string {
	for _, u := range s.Updates {
		if u.Version == version && u.Image != "" {
			return u.Image
		}
	}
	return Image(version)
}

// digest returns 64 hex digits that depend on all parts.
func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// versionHash is what the CVO reports as status.versionHash.
func versionHash(version string) string {
	sum := sha256.Sum256([]byte("manifests of " + version))
	return base64.URLEncoding.EncodeToString(sum[:8])
}

// errata is the URL of a release's announcement.
func errata(version string) string {
	return "https://access.redhat.com/errata/RHBA-2025:" + version
}

// kubernetesVersion returns the Kubernetes version in an OpenShift 4 release:
// 4.x ships 1.(x+13).
func kubernetesVersion(version string) string {
	v, err := semver.Parse(version)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("1.%d.%d", v.Minor+13, v.Patch)
}

// compareVersions orders versions; one that is not a version comes first.
func compareVersions(a, b string) int {
	va, errA := semver.Parse(a)
	vb, errB := semver.Parse(b)
	switch {
	case errA != nil && errB != nil:
		return 0
	case errA != nil:
		return -1
	case errB != nil:
		return 1
	}
	return va.Compare(vb)
}

// minorsApart returns how many minor versions lie between from and to, and
// false when they are not versions of one major version.
func minorsApart(from, to string) (int, bool) {
	f, errF := semver.Parse(from)
	t, errT := semver.Parse(to)
	if errF != nil || errT != nil || f.Major != t.Major {
		return 0, false
	}
	return int(t.Minor) - int(f.Minor), true
}
