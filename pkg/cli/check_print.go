// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"strings"
)

// printCheck prints a report for people.
func (t *tool) printCheck(r checkReport) error {
	of := cmp.Or(r.Of, "the defaults")
	if r.Target != "" {
		of += " for an upgrade to " + r.Target
	}
	looked := fmt.Sprintf("%d checks", len(r.Checks))
	switch len(r.Checks) {
	case 0:
		looked = "no check"
	case 1:
		looked = "1 check"
	}
	switch {
	case r.Healthy:
		t.say("healthy: %s of %s found nothing.", looked, of)
	case len(r.Findings) == 0:
		t.say("not known to be healthy: %s of %s looked at the cluster.", looked, of)
	default:
		t.say("not healthy: %s of %s, findings: %d.", looked, of, len(r.Findings))
		rows := [][]string{{"CHECK", "OBJECT", "REASON", "MESSAGE", "CLEARS WHEN"}}
		for _, f := range r.Findings {
			rows = append(rows, []string{f.Check, orDash(f.Object), f.Reason, f.Message, orDash(f.ClearsWhen)})
		}
		if err := columns(t.Out, rows); err != nil {
			return err
		}
	}
	if len(r.Skipped) > 0 {
		skipped := make([]string, 0, len(r.Skipped))
		for _, s := range r.Skipped {
			skipped = append(skipped, fmt.Sprintf("%s (%s)", s.Check, s.Why))
		}
		t.say("note: did not look: %s", strings.Join(skipped, ", "))
	}
	for _, note := range r.Notes {
		t.say("note: %s", note)
	}
	return nil
}
