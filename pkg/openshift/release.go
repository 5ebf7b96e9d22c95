// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
)

// Release names a release payload by version, image, or both.
type Release struct {
	Version string
	Image   string
}

// String is the version, or the image where the version is not known.
func (r Release) String() string {
	if r.Version != "" {
		return r.Version
	}
	return r.Image
}

// Matches tells whether a release with this version and image is the one that r names.
// What r leaves open matches anything; so does an image that the other side does not give,
// because ClusterVersion may be asked for a version alone.
func (r Release) Matches(version, image string) bool {
	switch {
	case r.Version != "" && version != "" && r.Version != version:
		return false
	case r.Image != "" && image != "" && r.Image != image:
		return false
	}
	return (r.Version != "" && r.Version == version) || (r.Image != "" && r.Image == image)
}

// Offered returns the available update that want names, with version and image filled in.
// Conditional updates are not offered unless the cluster found that none of their risks applies;
// then it lists them among the available ones itself.
func Offered(cv *configv1.ClusterVersion, want Release) (Release, bool) {
	for i := range cv.Status.AvailableUpdates {
		u := &cv.Status.AvailableUpdates[i]
		if want.Matches(u.Version, u.Image) {
			return Release{Version: u.Version, Image: u.Image}, true
		}
	}
	return Release{}, false
}

// HighestAvailable returns the available update with the highest semantic version above the running one.
// Versions that cannot be parsed are left out: what cannot be compared cannot be the highest.
func HighestAvailable(cv *configv1.ClusterVersion) (Release, bool) {
	best, _ := semver.Parse(RunningVersion(cv))
	found := Release{}
	for i := range cv.Status.AvailableUpdates {
		u := &cv.Status.AvailableUpdates[i]
		v, err := semver.Parse(u.Version)
		if err == nil && v.GT(best) {
			best, found = v, Release{Version: u.Version, Image: u.Image}
		}
	}
	return found, found != Release{}
}
