// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
)

// UntilCommenced makes a preflight of a step: it is judged anew on each pass until the upgrade has commenced, and is
// over for good from then on.
func UntilCommenced(step Step) Step {
	return untilCommenced{step}
}

type untilCommenced struct{ Step }

func (s untilCommenced) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	if u.Commenced() {
		return Done(""), nil
	}
	return s.Step.Run(ctx, u)
}

// Unwrap returns the step itself.
func (s untilCommenced) Unwrap() Step { return s.Step }

// Once makes a step done for good, until the job is resumed: what it has to say, or do, is about one moment. It is run
// again when a step before it was done again.
func Once(step Step) Step {
	return once{step}
}

type once struct{ Step }

func (s once) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	if u.doneForGood(s.Condition()) {
		return Done(""), nil
	}
	return s.Step.Run(ctx, u)
}

// Unwrap returns the step itself.
func (s once) Unwrap() Step { return s.Step }
