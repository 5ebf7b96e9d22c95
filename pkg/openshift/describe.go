// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"errors"
	"net/url"
)

// Describe returns the text of an error for a condition. What an unanswered request says changes each time (ports,
// numbers of streams) and would have the condition written again and again; the log has it in full.
func Describe(err error) string {
	var unanswered *url.Error
	if errors.As(err, &unanswered) {
		return "the API server did not answer; the operator's log has the details"
	}
	return err.Error()
}
