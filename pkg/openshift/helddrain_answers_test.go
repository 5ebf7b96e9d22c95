// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Nodes come and go for months: those that nobody asks for any more are forgotten, whichever way the clock goes.
func TestNodeAnswersForget(t *testing.T) {
	var answers nodeAnswers[string]
	at := time.Date(2026, time.November, 24, 22, 0, 0, 0, time.UTC)
	ask := func(node string) {
		t.Helper()
		got, err := answers.get(t.Context(), node, at, time.Second, func(context.Context) (string, error) { return "of " + node, nil })
		if err != nil || got != "of "+node {
			t.Errorf("got %q, %v, want the answer of %s", got, err, node)
		}
	}
	ask("first")
	for i := range 10_000 {
		at = at.Add(nodeAnswersMemory / 10)
		ask(fmt.Sprintf("worker-%d", i))
		ask("waited for")
		if got := len(answers.byNode); got > 11 {
			t.Fatalf("after %d nodes: %d are remembered", i, got)
		}
	}
	if answers.byNode["waited for"] == nil || answers.byNode["first"] != nil {
		t.Errorf("remembered is not what is asked for: %v", answers.byNode)
	}
	at = at.Add(-time.Hour)
	ask("after the clock was set back")
	if got := len(answers.byNode); got != 1 {
		t.Errorf("after the clock was set back: %d are remembered", got)
	}
}
