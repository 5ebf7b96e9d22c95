// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/golang/mock/gomock"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/pkg/steps/mocks"
)

var errConflict = apierrors.NewConflict(schema.GroupResource{Resource: "clusterversions"}, "version", errors.New("the object has been modified"))

// answering returns a step that is run once for each answer.
func answering(t *testing.T, condition string, answers ...steps.Verdict) steps.Step {
	step := mocks.NewMockStep(gomock.NewController(t))
	step.EXPECT().Condition().Return(condition).AnyTimes()
	var calls []*gomock.Call
	for _, answer := range answers {
		calls = append(calls, step.EXPECT().Run(gomock.Any(), gomock.Any()).Return(answer, nil))
	}
	gomock.InOrder(calls...)
	return step
}

// failing returns a step that is run once and meets an error.
func failing(t *testing.T, condition string, err error) steps.Step {
	step := mocks.NewMockStep(gomock.NewController(t))
	step.EXPECT().Condition().Return(condition).AnyTimes()
	step.EXPECT().Run(gomock.Any(), gomock.Any()).Return(steps.Verdict{}, err)
	return step
}

// never returns a step that must not be run.
func never(t *testing.T, condition string) steps.Step { return answering(t, condition) }

func blocker(code, object string) v1beta1.Blocker {
	return v1beta1.Blocker{Code: code, Object: object, Message: "It holds up.", ClearsWhen: "it goes"}
}

// conditionsOf returns the conditions of steps as lines, in order.
func conditionsOf(job *v1beta1.UpgradeJob) []string {
	var lines []string
	for _, c := range job.Status.Conditions {
		if c.Type != v1beta1.ConditionStarted {
			lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	return lines
}

func TestRunTurnsAVerdictIntoStatus(t *testing.T) {
	stuck := blocker("Stuck", "Node/a")
	wait := steps.Wait(5*time.Minute, "Waiting", "It takes time.", stuck)
	skip := steps.Skip("NotNow", "It is not the time.", stuck)

	for _, tc := range []struct {
		reason     string
		job        []jobOption
		version    []versionOption
		second     func(*testing.T) steps.Step
		want       steps.Result
		conditions []string
		blockers   []v1beta1.Blocker
	}{
		{
			reason:     "all done: the next step runs in the same pass, the last ends it",
			second:     func(t *testing.T) steps.Step { return answering(t, "Second", steps.Done("Second said.")) },
			want:       steps.Result{Outcome: steps.Completed},
			conditions: []string{"First=True Completed: First said.", "Second=True Completed: Second said."},
		},
		{
			reason:     "a step that waits holds up those behind it",
			second:     func(t *testing.T) steps.Step { return answering(t, "Second", wait) },
			want:       steps.Result{Outcome: steps.Running, Reason: "Waiting", Message: "It takes time.", After: 5 * time.Minute},
			conditions: []string{"First=True Completed: First said.", "Second=False Waiting: It takes time."},
			blockers:   []v1beta1.Blocker{stuck},
		},
		{
			reason: "a step may leave the next pass to the watches",
			second: func(t *testing.T) steps.Step {
				return answering(t, "Second", steps.Wait(0, "Waiting", "It takes time."))
			},
			want:       steps.Result{Outcome: steps.Running, Reason: "Waiting", Message: "It takes time."},
			conditions: []string{"First=True Completed: First said.", "Second=False Waiting: It takes time."},
		},
		{
			reason:     "a preflight skips the job",
			second:     func(t *testing.T) steps.Step { return answering(t, "Second", skip) },
			want:       steps.Result{Outcome: steps.Skipped, Reason: "NotNow", Message: "It is not the time."},
			conditions: []string{"First=True Completed: First said.", "Second=False NotNow: It is not the time."},
			blockers:   []v1beta1.Blocker{stuck},
		},
		{
			reason: "an upgrade that has commenced is not skipped but failed",
			job:    []jobOption{commenced},
			second: func(t *testing.T) steps.Step { return answering(t, "Second", skip) },
			want:   steps.Result{Outcome: steps.Failed, Reason: "NotNow", Message: "It is not the time."},
			conditions: []string{
				"UpgradeCommenced=True Completed: Done before.", "First=True Completed: First said.", "Second=False NotNow: It is not the time.",
			},
			blockers: []v1beta1.Blocker{stuck},
		},
		{
			reason:     "also if only the cluster knows that it has commenced",
			job:        []jobOption{begun(steps.ConditionUpgradeCommenced, 0)},
			version:    []versionOption{openshifttest.Desired(target)},
			second:     func(t *testing.T) steps.Step { return answering(t, "Second", skip) },
			want:       steps.Result{Outcome: steps.Failed, Reason: "NotNow", Message: "It is not the time."},
			conditions: []string{"First=True Completed: First said.", "Second=False NotNow: It is not the time."},
			blockers:   []v1beta1.Blocker{stuck},
		},
		{
			reason: "a step fails the job",
			second: func(t *testing.T) steps.Step {
				return answering(t, "Second", steps.Fail("Broken", "It is beyond repair.", stuck))
			},
			want:       steps.Result{Outcome: steps.Failed, Reason: "Broken", Message: "It is beyond repair."},
			conditions: []string{"First=True Completed: First said.", "Second=False Broken: It is beyond repair."},
			blockers:   []v1beta1.Blocker{stuck},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			third := never(t, "Third")
			list := []steps.Step{answering(t, "First", steps.Done("First said.")), tc.second(t), third}
			if tc.want.Outcome == steps.Completed {
				list = list[:2]
			}
			w := newWorld(t, newJob(tc.job...), openshifttest.ClusterVersion(tc.version...))
			result := w.pass(list...)

			if diff := cmp.Diff(tc.want, result); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.conditions, conditionsOf(w.job())); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			for i := range tc.blockers {
				tc.blockers[i].Since = metav1.NewTime(start)
			}
			if diff := cmp.Diff(tc.blockers, w.job().Status.Blockers); diff != "" {
				t.Errorf("blockers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnErrorIsShownAndTriedAgain(t *testing.T) {
	broken := errors.New("the server is on fire")
	w := newWorld(t, newJob(done("Second", 0)), openshifttest.ClusterVersion())
	w.now = start.Add(time.Minute)
	result := w.pass(answering(t, "First", steps.Done("First said.")), failing(t, "Second", fmt.Errorf("get Node/a: %w", broken)), never(t, "Third"))

	const message = "Second: get Node/a: the server is on fire"
	if result.Outcome != steps.Running || !errors.Is(result.Err, broken) || result.After != 0 {
		t.Errorf("got %+v, want an error to be retried with backoff", result)
	}
	if result.Reason != v1beta1.ReasonError || result.Message != message {
		t.Errorf("got %s: %s", result.Reason, result.Message)
	}
	want := []string{"Second=False Error: " + message, "First=True Completed: First said."}
	if diff := cmp.Diff(want, conditionsOf(w.job())); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	blockers := w.job().Status.Blockers
	if len(blockers) != 1 || blockers[0].Code != v1beta1.ReasonError || blockers[0].Message != message || blockers[0].ClearsWhen == "" {
		t.Errorf("blockers: got %+v", blockers)
	}
	if w.job().Status.Steps[0].CompletionTime != nil {
		t.Error("a step with an error is not complete")
	}
}

// A conflict means that the cache lags behind; it says nothing about the upgrade, so nothing about it is said.
func TestAConflictIsNoNews(t *testing.T) {
	for reason, err := range map[string]error{
		"plain":   errConflict,
		"wrapped": fmt.Errorf("patch ClusterVersion/version: %w", errConflict),
	} {
		t.Run(reason, func(t *testing.T) {
			waiting := steps.Wait(time.Minute, "Waiting", "It takes time.", blocker("Stuck", "Node/a"))
			w := newWorld(t, newJob(), openshifttest.ClusterVersion())
			w.pass(answering(t, "First", steps.Done("First said.")), answering(t, "Second", waiting))
			before := w.job()

			w.now = start.Add(time.Minute)
			result := w.pass(answering(t, "First", steps.Done("First said.")), failing(t, "Second", err), never(t, "Third"))
			if result.Outcome != steps.Running || !apierrors.IsConflict(result.Err) {
				t.Errorf("got %+v, want the conflict", result)
			}
			if len(w.turned) != 0 {
				t.Errorf("got the transitions %+v", w.turned)
			}
			if diff := cmp.Diff(before.Status, w.job().Status); diff != "" {
				t.Errorf("the status has changed:\n%s", diff)
			}
		})
	}
}

func TestWhatWasSaidWhenAStepBecameDoneStays(t *testing.T) {
	w := newWorld(t, newJob(), openshifttest.ClusterVersion())
	step := answering(t, "First", steps.Done("Done with 3 nodes."), steps.Done("Done with 4 nodes."), steps.Done(""))
	w.pass(step)
	before := w.job()
	for range 2 {
		w.now = w.now.Add(time.Hour)
		if w.pass(step); len(w.turned) != 0 {
			t.Errorf("got the transitions %+v", w.turned)
		}
	}
	if diff := cmp.Diff(before.Status, w.job().Status); diff != "" {
		t.Errorf("the status has changed:\n%s", diff)
	}
}

func TestAStepThatIsDoneWithoutAWordGetsOne(t *testing.T) {
	w := newWorld(t, newJob(), openshifttest.ClusterVersion())
	w.pass(answering(t, "First", steps.Done("")))
	if c := meta.FindStatusCondition(w.job().Status.Conditions, "First"); c == nil || c.Message == "" {
		t.Errorf("got %+v, want a message", c)
	}
}

func TestAStepMayBeUndone(t *testing.T) {
	w := newWorld(t, newJob(), openshifttest.ClusterVersion())
	step := answering(t, "First", steps.Done("Ready."), steps.Wait(0, "Lost", "It was lost."), steps.Done("Ready again."))

	for i, want := range []struct {
		condition string
		completed *metav1.Time
	}{
		{"First=True Completed: Ready.", ptr.To(metav1.NewTime(start))},
		{"First=False Lost: It was lost.", nil},
		{"First=True Completed: Ready again.", ptr.To(metav1.NewTime(start.Add(2 * time.Minute)))},
	} {
		w.now = start.Add(time.Duration(i) * time.Minute)
		w.pass(step)
		if diff := cmp.Diff([]string{want.condition}, conditionsOf(w.job())); diff != "" {
			t.Errorf("pass %d (-want +got):\n%s", i, diff)
		}
		if got := w.job().Status.Steps[0].CompletionTime; !got.Equal(want.completed) {
			t.Errorf("pass %d: completed %v, want %v", i, got, want.completed)
		}
		if c := w.job().Status.Conditions[1]; !c.LastTransitionTime.Time.Equal(w.now) || c.ObservedGeneration != 1 {
			t.Errorf("pass %d: got %+v, want a transition now, of this generation", i, c)
		}
	}
}

func TestTransitionsAreReportedOnce(t *testing.T) {
	w := newWorld(t, newJob(), openshifttest.ClusterVersion())
	transition := func(kind v1beta1.NotificationType, reason, message string) []steps.Transition {
		return []steps.Transition{{Step: "First", Kind: kind, Reason: reason, Message: message}}
	}
	for _, tc := range []struct {
		reason string
		answer steps.Verdict
		want   []steps.Transition
	}{
		{"it begins to wait", steps.Wait(0, "Waiting", "1 of 3."), transition(v1beta1.NotificationStepStarted, "Waiting", "1 of 3.")},
		{"mere progress", steps.Wait(0, "Waiting", "2 of 3."), nil},
		{"it waits for something else", steps.Wait(0, "Pausing", "2 of 3."), transition(v1beta1.NotificationStepWaiting, "Pausing", "2 of 3.")},
		{"it is done", steps.Done("3 of 3."), transition(v1beta1.NotificationStepCompleted, "Completed", "3 of 3.")},
		{"it is still done", steps.Done("4 of 4."), nil},
		{"it skips the job", steps.Skip("NotNow", "No."), transition(v1beta1.NotificationStepFailed, "NotNow", "No.")},
		{"it fails the job", steps.Fail("Broken", "No."), transition(v1beta1.NotificationStepFailed, "Broken", "No.")},
	} {
		w.pass(answering(t, "First", tc.answer))
		if diff := cmp.Diff(tc.want, w.turned); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
	for i, want := range [][]steps.Transition{transition(v1beta1.NotificationStepFailed, "Error", "First: no"), nil} {
		w.pass(failing(t, "First", errors.New("no")))
		if diff := cmp.Diff(want, w.turned); diff != "" {
			t.Errorf("error %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestTransitionsOfAPassAreInOrder(t *testing.T) {
	w := newWorld(t, newJob(), openshifttest.ClusterVersion())
	w.pass(
		answering(t, "First", steps.Done("a")), answering(t, "Second", steps.Done("b")), answering(t, "Third", steps.Wait(0, "Waiting", "c")))
	var got []string
	for _, transition := range w.turned {
		got = append(got, transition.Step)
	}
	if diff := cmp.Diff([]string{"First", "Second", "Third"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestABlockerKeepsTheTimeSinceWhenItStands(t *testing.T) {
	w := newWorld(t, newJob(), openshifttest.ClusterVersion())
	wait := func(blockers ...v1beta1.Blocker) steps.Verdict { return steps.Wait(0, "Waiting", "...", blockers...) }
	moved := blocker("Draining", "Node/a")
	moved.Message = "Another pod."

	for i, tc := range []struct {
		reason string
		answer steps.Verdict
		want   map[string]int // blocker to the minute since when it stands
	}{
		{"new", wait(blocker("Draining", "Node/a")), map[string]int{"Draining Node/a": 0}},
		{"the message does not matter, nor does the order", wait(blocker("Draining", "Node/b"), moved), map[string]int{"Draining Node/a": 0, "Draining Node/b": 1}},
		{"another code is another blocker", wait(blocker("Rebooting", "Node/a"), blocker("Draining", "Node/b")), map[string]int{"Rebooting Node/a": 2, "Draining Node/b": 1}},
		{"what has gone", steps.Done("..."), map[string]int{}},
		{"and comes back is new", wait(blocker("Draining", "Node/b")), map[string]int{"Draining Node/b": 4}},
	} {
		w.now = start.Add(time.Duration(i) * time.Minute)
		w.pass(answering(t, "First", tc.answer))
		got := map[string]int{}
		for _, b := range w.job().Status.Blockers {
			got[b.Code+" "+b.Object] = int(b.Since.Sub(start).Minutes())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

func TestWhatIsRecordedIsBounded(t *testing.T) {
	long := strings.Repeat("é", 2000) // of two bytes each
	var blockers []v1beta1.Blocker
	for i := range 100 {
		b := blocker("Draining", fmt.Sprintf("Node/%d", i))
		b.Message = "x" + long
		blockers = append(blockers, b)
	}
	w := newWorld(t, newJob(), openshifttest.ClusterVersion())
	w.pass(answering(t, "First", steps.Wait(0, "Waiting", "x"+long, blockers...)))

	status := w.job().Status
	if len(status.Blockers) != 32 || status.Blockers[0].Object != "Node/0" || status.Blockers[31].Object != "Node/31" {
		t.Errorf("got %d blockers, want the first 32", len(status.Blockers))
	}
	check := func(what, text string, limit int) {
		if len(text) > limit || len(text) < limit-5 {
			t.Errorf("%s: got %d bytes, want at most, and almost, %d", what, len(text), limit)
		}
		if !utf8.ValidString(text) || !strings.HasSuffix(text, "é...") {
			t.Errorf("%s: got %q, want it cut between two letters, and the cut marked", what, text[len(text)-10:])
		}
	}
	check("message of a blocker", status.Blockers[0].Message, 512)
	check("message of a condition", meta.FindStatusCondition(status.Conditions, "First").Message, v1beta1.MaxMessageLength)
}

func TestStepsRecordWhenTheyRan(t *testing.T) {
	at := func(minute int) metav1.Time { return metav1.NewTime(start.Add(time.Duration(minute) * time.Minute)) }
	completed := func(minute int) *metav1.Time { return ptr.To(at(minute)) }
	wait := steps.Wait(0, "Waiting", "...")
	w := newWorld(t, newJob(), openshifttest.ClusterVersion())

	for _, tc := range []struct {
		reason string
		minute int
		resume bool
		first  steps.Verdict
		second *steps.Verdict // nil if it is not reached
		want   []v1beta1.StepStatus
	}{
		{
			reason: "a step that is not reached is not recorded", minute: 0, first: wait,
			want: []v1beta1.StepStatus{{Condition: "First", StartTime: at(0), Attempts: 1}},
		},
		{
			reason: "each step begins when it is reached", minute: 1, first: steps.Done("..."), second: &wait,
			want: []v1beta1.StepStatus{
				{Condition: "First", StartTime: at(0), CompletionTime: completed(1), Attempts: 1},
				{Condition: "Second", StartTime: at(1), Attempts: 1},
			},
		},
		{
			reason: "a pass is no attempt", minute: 2, first: steps.Done("..."), second: &wait,
			want: []v1beta1.StepStatus{
				{Condition: "First", StartTime: at(0), CompletionTime: completed(1), Attempts: 1},
				{Condition: "Second", StartTime: at(1), Attempts: 1},
			},
		},
		{
			reason: "a resume starts the clock of the step that it goes on with", minute: 10, resume: true, first: steps.Done("..."), second: &wait,
			want: []v1beta1.StepStatus{
				{Condition: "First", StartTime: at(0), CompletionTime: completed(1), Attempts: 1},
				{Condition: "Second", StartTime: at(10), Attempts: 2},
			},
		},
		{
			reason: "once for each resume", minute: 11, first: steps.Done("..."), second: &wait,
			want: []v1beta1.StepStatus{
				{Condition: "First", StartTime: at(0), CompletionTime: completed(1), Attempts: 1},
				{Condition: "Second", StartTime: at(10), Attempts: 2},
			},
		},
		{
			reason: "all done", minute: 12, first: steps.Done("..."), second: ptr.To(steps.Done("...")),
			want: []v1beta1.StepStatus{
				{Condition: "First", StartTime: at(0), CompletionTime: completed(1), Attempts: 1},
				{Condition: "Second", StartTime: at(10), CompletionTime: completed(12), Attempts: 2},
			},
		},
	} {
		w.now = at(tc.minute).Time
		if tc.resume {
			job := w.job()
			resumed(w.now.Sub(start))(job)
			if err := w.api.Status().Update(t.Context(), job); err != nil {
				t.Fatal(err)
			}
		}
		second := never(t, "Second")
		if tc.second != nil {
			second = answering(t, "Second", *tc.second)
		}
		w.pass(answering(t, "First", tc.first), second)
		if diff := cmp.Diff(tc.want, w.job().Status.Steps); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

// A step may persist the status itself, before a write that cannot be undone. That it was begun has to be in there.
func TestAStepIsRecordedBeforeItRuns(t *testing.T) {
	w := newWorld(t, newJob(), openshifttest.ClusterVersion())
	u := w.upgrade()
	step := mocks.NewMockStep(gomock.NewController(t))
	step.EXPECT().Condition().Return("First").AnyTimes()
	step.EXPECT().Run(gomock.Any(), gomock.Any()).DoAndReturn(func(_ context.Context, u *steps.Upgrade) (steps.Verdict, error) {
		if err := u.Persist(t.Context()); err != nil {
			t.Error(err)
		}
		panic("the process ends here")
	})
	func() {
		defer func() {
			if recover() != "the process ends here" {
				t.Error("the step did not end the process")
			}
		}()
		steps.Run(t.Context(), []steps.Step{step}, u)
	}()
	if !w.upgrade().Attempted("First") {
		t.Error("the next process does not know that the step was begun")
	}
}

func TestCleanUp(t *testing.T) {
	broken, away := errors.New("on fire"), errors.New("away")
	for _, tc := range []struct {
		reason string
		list   func(*testing.T) []steps.Step
		wait   time.Duration
		errs   []error
		says   string
	}{
		{
			reason: "clean",
			list: func(t *testing.T) []steps.Step {
				return []steps.Step{answering(t, "A", steps.Done("")), answering(t, "B", steps.Done(""))}
			},
		},
		{
			reason: "nothing to clean",
			list:   func(*testing.T) []steps.Step { return nil },
		},
		{
			reason: "a step that waits does not hold up the others; the soonest wakes",
			list: func(t *testing.T) []steps.Step {
				return []steps.Step{
					answering(t, "A", steps.Wait(time.Minute, "X", "x")), answering(t, "B", steps.Wait(30*time.Second, "X", "x")),
					answering(t, "C", steps.Wait(time.Hour, "X", "x")), answering(t, "D", steps.Done("")),
				}
			},
			wait: 30 * time.Second,
		},
		{
			reason: "nobody watches for a cleanup, so that it is looked after in any case",
			list:   func(t *testing.T) []steps.Step { return []steps.Step{answering(t, "A", steps.Wait(0, "X", "x"))} },
			wait:   time.Second,
		},
		{
			reason: "the outcome stands, whatever a step of the cleanup says",
			list: func(t *testing.T) []steps.Step {
				return []steps.Step{answering(t, "A", steps.Fail("X", "x")), answering(t, "B", steps.Skip("X", "x"))}
			},
			wait: time.Second,
		},
		{
			reason: "errors do not hold up the others, and none is lost",
			list: func(t *testing.T) []steps.Step {
				return []steps.Step{failing(t, "A", broken), answering(t, "B", steps.Done("")), failing(t, "C", away)}
			},
			errs: []error{broken, away},
			says: "A: on fire\nC: away",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, newJob(), openshifttest.ClusterVersion())
			u := w.upgrade()
			before := u.Job.DeepCopy()
			wait, err := steps.CleanUp(t.Context(), tc.list(t), u)
			if wait != tc.wait {
				t.Errorf("got %s, want %s", wait, tc.wait)
			}
			for _, want := range tc.errs {
				if !errors.Is(err, want) {
					t.Errorf("got %v, want %v in it", err, want)
				}
			}
			if (err != nil) != (tc.errs != nil) || (err != nil && err.Error() != tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
			if diff := cmp.Diff(before, u.Job); diff != "" {
				t.Errorf("something was recorded:\n%s", diff)
			}
		})
	}
}
