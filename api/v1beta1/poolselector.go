// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// PoolSelector selects machine config pools by their labels: a plain map of labels, or a label selector object. Both are
// in use under the same name, so both are read, and both at once mean both.
//
// +kubebuilder:pruning:PreserveUnknownFields
type PoolSelector struct {
	// matchLabels of a label selector.
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`

	// matchExpressions of a label selector.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`

	// Labels of the plain map.
	Labels map[string]string `json:"-"`

	// Malformed are entries of the plain map that are no labels, as JSON: the API server cannot tell.
	Malformed map[string]string `json:"-"`
}

const (
	fieldMatchLabels      = "matchLabels"
	fieldMatchExpressions = "matchExpressions"
)

// UnmarshalJSON reads both spellings. It fails only where the schema of the CRD does: an object that cannot be read
// would hide all the others of its kind.
func (s *PoolSelector) UnmarshalJSON(b []byte) error {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &fields); err != nil {
		return fmt.Errorf("read the selector of pools: %w", err)
	}
	*s = PoolSelector{}
	for key, value := range fields {
		var err error
		switch key {
		case fieldMatchLabels:
			err = json.Unmarshal(value, &s.MatchLabels)
		case fieldMatchExpressions:
			err = json.Unmarshal(value, &s.MatchExpressions)
		default:
			s.readLabel(key, value)
		}
		if err != nil {
			return fmt.Errorf("read %s of the selector of pools: %w", key, err)
		}
	}
	return nil
}

func (s *PoolSelector) readLabel(key string, value json.RawMessage) {
	var text string
	if string(value) == "null" || json.Unmarshal(value, &text) != nil {
		if s.Malformed == nil {
			s.Malformed = map[string]string{}
		}
		s.Malformed[key] = string(value)
		return
	}
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	s.Labels[key] = text
}

// MarshalJSON writes the selector as it was read.
func (s PoolSelector) MarshalJSON() ([]byte, error) {
	fields := map[string]any{}
	for key, value := range s.Labels {
		fields[key] = value
	}
	for key, value := range s.Malformed {
		fields[key] = json.RawMessage(value)
	}
	if s.MatchLabels != nil {
		fields[fieldMatchLabels] = s.MatchLabels
	}
	if s.MatchExpressions != nil {
		fields[fieldMatchExpressions] = s.MatchExpressions
	}
	return json.Marshal(fields)
}

// Selector returns the selector. A nil one selects nothing, an empty one everything. The error says which part of it is
// no selector of labels.
func (s *PoolSelector) Selector() (labels.Selector, error) {
	if s == nil {
		return labels.Nothing(), nil
	}
	if len(s.Malformed) > 0 {
		key := slices.Min(slices.Collect(maps.Keys(s.Malformed)))
		return nil, fmt.Errorf("the value of label %s is not a string but %s; put it in quotes", key, Truncate(s.Malformed[key], 64))
	}
	merged := map[string]string{}
	maps.Copy(merged, s.MatchLabels)
	for key, value := range s.Labels {
		if other, ok := merged[key]; ok && other != value {
			return nil, fmt.Errorf("label %s is to be both %q and %q", key, other, value)
		}
		merged[key] = value
	}
	selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: merged, MatchExpressions: s.MatchExpressions})
	if err != nil {
		return nil, errors.New(strings.TrimSuffix(err.Error(), "."))
	}
	return selector, nil
}
