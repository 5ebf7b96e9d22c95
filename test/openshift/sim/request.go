// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
)

// requestKind says what spec.desiredUpdate asks for.
type requestKind int

const (
	// requestNothing: no update, or the one that the cluster runs or moves to already.
	requestNothing requestKind = iota
	// requestRelease: another release.
	requestRelease
	// requestInvalid: a release that the CVO cannot find.
	requestInvalid
)

// request is what spec.desiredUpdate asks for.
type request struct {
	kind           requestKind
	version, image string
	force          bool
	// problem is why an invalid request is invalid.
	problem string
}

// requested reads spec.desiredUpdate the way the CVO does: an image stands for
// itself, and a version alone must be an available update, as the status lists
// them. A version of the history that is not available any more is ignored without
// a word.
func requested(cv *configv1.ClusterVersion) request {
	desired := cv.Spec.DesiredUpdate
	current := cv.Status.Desired
	switch {
	case desired == nil, desired.Version == "" && desired.Image == "":
		return request{}
	case desired.Image != "":
		if desired.Image == current.Image {
			return request{}
		}
		return request{kind: requestRelease, version: desired.Version, image: desired.Image, force: desired.Force}
	case desired.Version == current.Version:
		return request{}
	}
	for _, release := range cv.Status.AvailableUpdates {
		if release.Version == desired.Version {
			return request{kind: requestRelease, version: release.Version, image: release.Image, force: desired.Force}
		}
	}
	for _, entry := range cv.Status.History {
		if entry.Version == desired.Version {
			return request{}
		}
	}
	return request{kind: requestInvalid, problem: fmt.Sprintf(
		"The cluster version is invalid: spec.desiredUpdate.version: Invalid value: %q: when image is empty the update must be an available update", desired.Version)}
}

// verdict is what the CVO makes of a requested release.
type verdict struct {
	// version is that of the release's image.
	version string
	// refusal is the ReleaseAccepted condition of a release that is not taken, nil when it is.
	refusal *configv1.ClusterOperatorStatusCondition
	// risks are the failed checks that did not stop it.
	risks string
}

// judge retrieves, verifies and checks a requested release.
func judge(cv *configv1.ClusterVersion, s *Scenario, r request) verdict {
	payload := fmt.Sprintf("version=%q image=%q", r.version, r.image)
	version := versionOfImage(cv, s, r)
	if version == "" {
		return refused(reasonRetrievePayload, fmt.Sprintf(
			"Retrieving payload failed %s failure=Unable to download and prepare the update: fetching update payload: reading manifest of %s: manifest unknown", payload, r.image))
	}
	fault, faulty := s.release(version)
	if faulty && !fault.Stuck && !(r.force && fault.Reason == reasonPreconditionChecks) {
		return refused(fault.Reason, fault.text(payload, r.image))
	}
	if r.version != "" && r.version != version {
		return refused(reasonVerifyPayloadVersion, fmt.Sprintf(
			"Verifying payload failed %s failure=release image version %s does not match the expected upstream version %s", payload, version, r.version))
	}
	blocking, warnings := preconditions(cv, version, r.image)
	if len(blocking) > 0 && !r.force {
		return refused(reasonPreconditionChecks, fmt.Sprintf(
			"Preconditions failed for payload loaded %s: %s", payload, summary(append(blocking, warnings...))))
	}
	v := verdict{version: version}
	switch {
	case len(blocking) > 0:
		v.risks = "Forced through blocking failures: " + summary(append(blocking, warnings...))
	case len(warnings) > 0:
		v.risks = summary(warnings)
	}
	return v
}

func refused(reason, message string) verdict {
	c := condition(conditionReleaseAccepted, configv1.ConditionFalse, reason, message)
	return verdict{refusal: &c}
}

// text is the message of a refusal by fault.
func (f ReleaseFault) text(payload, image string) string {
	message := f.Message
	switch f.Reason {
	case reasonPreconditionChecks:
		if message == "" {
			message = "Precondition \"EtcdRecentBackup\" failed because of \"ControllerStarted\": "
		}
		return fmt.Sprintf("Preconditions failed for payload loaded %s: %s", payload, message)
	case reasonVerifyPayloadVersion:
		if message == "" {
			message = "release image version does not match the expected upstream version " + f.Version
		}
		return fmt.Sprintf("Verifying payload failed %s failure=%s", payload, message)
	case reasonRetrievePayload:
		if message == "" {
			message = fmt.Sprintf("The update cannot be verified: unable to verify %s against keyrings: verifier-public-key-redhat", image)
		}
		return fmt.Sprintf("Retrieving payload failed %s failure=%s", payload, message)
	}
	if message == "" {
		message = "the update payload does not contain the expected files"
	}
	return fmt.Sprintf("Loading payload failed %s failure=%s", payload, message)
}

// versionOfImage returns the version of the release in an image. An image that
// neither the graph nor the history knows is one of the version that the
// request names; without such a version it does not exist.
func versionOfImage(cv *configv1.ClusterVersion, s *Scenario, r request) string {
	for _, u := range s.Updates {
		if s.imageOf(u.Version) == r.image {
			return u.Version
		}
	}
	for _, entry := range cv.Status.History {
		if entry.Image == r.image {
			return entry.Version
		}
	}
	return r.version
}
