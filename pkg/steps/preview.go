// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// PreviewInterval is how old an answer of what cannot be watched may be in a preview, and how often a preview looks again
// at a cluster that is not healthy.
const PreviewInterval = 5 * time.Minute

// previewInterval is how often a preview looks again at a healthy cluster that long before the start: a job that starts
// next month need not be looked at every few minutes.
func previewInterval(before time.Duration) time.Duration {
	return max(PreviewInterval, before/100)
}

// Preview is what a step would find if the job started now.
type Preview struct {
	// Condition that tells it.
	Condition metav1.Condition
	// Blockers that would hold the job up.
	Blockers []v1beta1.Blocker
	// After is when to look again at the latest.
	After time.Duration
}

// Previewer is a step that can tell before the job starts what it would find.
type Previewer interface {
	// Preview looks, and changes nothing. Answers of what cannot be watched may be as old as maxAge.
	Preview(ctx context.Context, upgrade *Upgrade, maxAge time.Duration) Preview
}

// LookAhead returns the preview of the first step that has one; false if none has, or if the upgrade has commenced.
// Blockers that stood before keep the time since when they stand.
func LookAhead(ctx context.Context, list []Step, u *Upgrade, before []v1beta1.Blocker) (Preview, bool) {
	if u.Commenced() {
		return Preview{}, false
	}
	for _, step := range list {
		previewer, ok := unwrapped(step).(Previewer)
		if !ok {
			continue
		}
		preview := previewer.Preview(ctx, u, PreviewInterval)
		preview.Blockers = Bounded(preview.Blockers, before, u.Now)
		if preview.After == 0 {
			preview.After = previewInterval(u.Job.Spec.StartAfter.Sub(u.Now))
		}
		return preview, true
	}
	return Preview{}, false
}

// unwrapped returns the step without the combinators around it.
func unwrapped(step Step) Step {
	for {
		wrapper, ok := step.(interface{ Unwrap() Step })
		if !ok {
			return step
		}
		step = wrapper.Unwrap()
	}
}
