// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a Go duration string such as "90s", "30m" or "1h30m": not
// negative, at most one year (8760h).
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^(0|([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+)$') && duration(self) <= duration('8760h')",message="must be a duration such as 90s, 30m or 1h30m, not negative and at most 8760h"
type Duration struct {
	time.Duration `json:"-"`
}

// MarshalJSON writes the duration as Go prints it.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(d.String())
}

// UnmarshalJSON reads a Go duration string.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("a duration must be a string such as \"30m\": %w", err)
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("parse duration: %w", err)
	}
	d.Duration = parsed
	return nil
}

// Or returns the duration, or the default where none is given.
func (d *Duration) Or(def time.Duration) time.Duration {
	if d == nil {
		return def
	}
	return d.Duration
}
