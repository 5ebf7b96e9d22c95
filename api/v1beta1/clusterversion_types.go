// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterVersionName is the only name that a ClusterVersion may have, ours and OpenShift's.
const ClusterVersionName = "version"

// ClusterVersionSpec says what the spec of OpenShift's ClusterVersion/version shall look like.
type ClusterVersionSpec struct {
	// template is what holds whenever no overlay does.
	// +required
	Template ClusterVersionTemplate `json:"template"`

	// overlays change the template from a point in time on. The one with the latest time that is past applies; overlays do not add up.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=from
	// +optional
	Overlays []ClusterVersionOverlay `json:"overlays,omitempty"`
}

// ClusterVersionTemplate wraps a spec of OpenShift's ClusterVersion.
type ClusterVersionTemplate struct {
	// spec is synced to OpenShift's ClusterVersion/version. Fields that are left empty are not touched.
	// +optional
	Spec DesiredClusterVersionSpec `json:"spec,omitzero"`
}

// ClusterVersionOverlay changes the template from a point in time on.
type ClusterVersionOverlay struct {
	// from is when the overlay begins to apply.
	// +required
	From metav1.Time `json:"from"`

	// overlay is put over the template: a field that it sets wins, lists are replaced.
	// +optional
	Overlay ClusterVersionTemplate `json:"overlay,omitzero"`
}

// DesiredClusterVersionSpec is the spec of a config.openshift.io/v1 ClusterVersion in which every field may be left empty.
type DesiredClusterVersionSpec struct {
	// clusterID of this cluster.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// desiredUpdate is accepted so that a whole ClusterVersionSpec can be given, and ignored: the UpgradeJob owns that field.
	// +optional
	DesiredUpdate *IgnoredUpdate `json:"desiredUpdate,omitempty"`

	// upstream is the update server.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Upstream string `json:"upstream,omitempty"`

	// channel of the update graph, e.g. stable-4.18.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Channel string `json:"channel,omitempty"`

	// capabilities selects the optional components of the cluster.
	// +optional
	Capabilities *configv1.ClusterVersionCapabilitiesSpec `json:"capabilities,omitempty"`

	// signatureStores are where release signatures are looked up. Needs a cluster that knows the field.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=url
	// +optional
	SignatureStores []configv1.SignatureStore `json:"signatureStores,omitempty"`

	// overrides make components unmanaged.
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=group
	// +listMapKey=namespace
	// +listMapKey=name
	// +optional
	Overrides []configv1.ComponentOverride `json:"overrides,omitempty"`
}

// IgnoredUpdate has the fields of a config.openshift.io/v1 Update and no effect.
type IgnoredUpdate struct {
	// architecture is ignored.
	// +optional
	Architecture string `json:"architecture,omitempty"`

	// version is ignored.
	// +optional
	Version string `json:"version,omitempty"`

	// image is ignored.
	// +optional
	Image string `json:"image,omitempty"`

	// force is ignored.
	// +optional
	Force bool `json:"force,omitempty"`
}

// ClusterVersionStatus tells what is synced at present and what will be.
type ClusterVersionStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// current is what was synced last: the template with the overlay that applies.
	// +optional
	Current *DesiredClusterVersionSpec `json:"current,omitempty"`

	// overlayApplied is the overlay that applies at present.
	// +optional
	OverlayApplied *AppliedOverlay `json:"overlayApplied,omitempty"`

	// overlays shows what each overlay makes of the template, in order of time.
	// +listType=map
	// +listMapKey=from
	// +optional
	Overlays []OverlayPreview `json:"overlays,omitempty"`

	// conditions: Ready tells whether OpenShift's ClusterVersion is in sync.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AppliedOverlay names the overlay that applies.
type AppliedOverlay struct {
	// from is when the overlay began to apply.
	// +required
	From metav1.Time `json:"from"`
}

// OverlayPreview shows what an overlay makes of the template.
type OverlayPreview struct {
	// from is when the overlay begins to apply.
	// +required
	From metav1.Time `json:"from"`

	// preview is the template with the overlay.
	// +optional
	Preview DesiredClusterVersionSpec `json:"preview,omitzero"`
}

// ClusterVersion keeps the spec of OpenShift's own ClusterVersion/version as described, all but desiredUpdate.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={managedclusterversion,upcv},categories=managedupgrade
// +kubebuilder:printcolumn:name="Channel",type=string,JSONPath=`.status.current.channel`
// +kubebuilder:printcolumn:name="Upstream",type=string,JSONPath=`.status.current.upstream`,priority=1
// +kubebuilder:printcolumn:name="Overlay From",type=string,JSONPath=`.status.overlayApplied.from`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'version'",message="there is one ClusterVersion per cluster: its name must be version"
type ClusterVersion struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says what OpenShift's ClusterVersion shall look like.
	// +required
	Spec ClusterVersionSpec `json:"spec"`

	// status tells what is synced.
	// +optional
	Status ClusterVersionStatus `json:"status,omitzero"`
}

// ClusterVersionList is a list of ClusterVersions.
//
// +kubebuilder:object:root=true
type ClusterVersionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []ClusterVersion `json:"items"`
}
