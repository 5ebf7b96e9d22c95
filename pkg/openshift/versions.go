// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
)

// MinorUpdate tells whether the release is of another minor or major version than the running one. What cannot be told,
// such as of a release of which only the image is known, counts as such: more is asked of it.
func MinorUpdate(running string, target Release) bool {
	from, errFrom := semver.Parse(running)
	to, errTo := semver.Parse(target.Version)
	return errFrom != nil || errTo != nil || from.Major != to.Major || from.Minor != to.Minor
}

// KubernetesVersion is a minor version of Kubernetes.
type KubernetesVersion struct{ Major, Minor uint64 }

// ParseKubernetesVersion parses a version such as 1.33.
func ParseKubernetesVersion(text string) (KubernetesVersion, error) {
	majorText, minorText, ok := strings.Cut(text, ".")
	major, errMajor := strconv.ParseUint(majorText, 10, 32)
	minor, errMinor := strconv.ParseUint(minorText, 10, 32)
	if !ok || errMajor != nil || errMinor != nil {
		return KubernetesVersion{}, fmt.Errorf("%q is no minor version of Kubernetes such as 1.33", text)
	}
	return KubernetesVersion{major, minor}, nil
}

// String is the version as it is commonly written.
func (v KubernetesVersion) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Compare returns -1, 0 or +1 if v is older than, the same as, or newer than w.
func (v KubernetesVersion) Compare(w KubernetesVersion) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor))
}

// Kubernetes returns the version of Kubernetes that the release brings; false if that does not follow from the
// release's own version.
func (r Release) Kubernetes() (KubernetesVersion, bool) {
	v, err := semver.Parse(r.Version)
	if err != nil || v.Major != 4 {
		return KubernetesVersion{}, false
	}
	const ahead = 13 // 4.18 has Kubernetes 1.31
	return KubernetesVersion{1, v.Minor + ahead}, true
}
