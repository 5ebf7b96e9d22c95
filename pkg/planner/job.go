// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/names"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// hashLength is how many hex digits of the hash stand in a job's name.
const hashLength = 7

// NewJob describes the job of a config for a start; update is the release that it pins, or nil. It has its finalizer from birth, so that
// nothing need be written between the moment of the start and the upgrade. Its name depends on config and start alone.
func NewJob(config *v1beta1.UpgradeConfig, start time.Time, update *openshift.Release) *v1beta1.UpgradeJob {
	startBefore := start.Add(config.Spec.MaxUpgradeStartDelay.Or(v1beta1.DefaultMaxUpgradeStartDelay))
	job := &v1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{
			Name:            jobName(config, start),
			Namespace:       config.Namespace,
			Labels:          maps.Clone(config.Spec.JobTemplate.Metadata.Labels),
			Annotations:     maps.Clone(config.Spec.JobTemplate.Metadata.Annotations),
			Finalizers:      []string{v1beta1.UpgradeJobFinalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(config, v1beta1.GroupVersion.WithKind("UpgradeConfig"))},
		},
		Spec: v1beta1.UpgradeJobSpec{
			StartAfter:                      metav1.NewTime(start),
			StartBefore:                     metav1.NewTime(startBefore),
			DesiredVersionCheckAvailability: ptr.To(true),
			Config:                          *config.Spec.JobTemplate.Spec.Config.DeepCopy(),
		},
	}
	if update != nil {
		job.Spec.DesiredVersion = &v1beta1.DesiredVersion{Version: update.Version, Image: update.Image}
	}
	return job
}

// jobName is the same for the same config and start, so that a process that ends before it has recorded a job cannot
// create a second one. The config's name is part of the hash: of two long names that are cut alike each has its own.
// It fits into a label.
func jobName(config *v1beta1.UpgradeConfig, start time.Time) string {
	hash := sha256.New()
	// Encoding cannot fail for a spec that was decoded, nor can the hash.
	_ = json.NewEncoder(hash).Encode([]any{config.Name, config.Spec})
	suffix := fmt.Sprintf("-%d-%s", start.Unix(), hex.EncodeToString(hash.Sum(nil))[:hashLength])
	return names.WithSuffix(config.Name, suffix, validation.LabelValueMaxLength)
}
