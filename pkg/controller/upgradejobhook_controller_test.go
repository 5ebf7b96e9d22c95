// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
)

// newHook returns a hook of the events Start and Finish that can be used, changed by the overrides.
func newHook(name string, overrides ...func(*v1beta1.UpgradeJobHook)) *v1beta1.UpgradeJobHook {
	hook := &v1beta1.UpgradeJobHook{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Generation: 3},
		Spec: v1beta1.UpgradeJobHookSpec{
			Events: []v1beta1.HookEvent{v1beta1.HookEventStart, v1beta1.HookEventFinish}, Run: v1beta1.HookRunAll,
		},
	}
	hook.Spec.Template.Spec.Template.Spec.Containers = []corev1.Container{{Name: "notify", Image: "curl"}}
	for _, override := range overrides {
		override(hook)
	}
	return hook
}

// ready makes the hook one that was found to be usable before.
func ready(hook *v1beta1.UpgradeJobHook) {
	hook.Status.ObservedGeneration = hook.Generation
	hook.Status.Conditions = []metav1.Condition{v1beta1.Ready(v1beta1.ReasonValid, "The hook can be used.")}
	hook.Status.Conditions[0].ObservedGeneration = hook.Generation
}

func withEvents(events ...v1beta1.HookEvent) func(*v1beta1.UpgradeJobHook) {
	return func(hook *v1beta1.UpgradeJobHook) { hook.Spec.Events = events }
}

func (w *world) hookReconciler() *UpgradeJobHookReconciler {
	return setUp(w, &UpgradeJobHookReconciler{Client: w.client, Live: w.hooks.Live, Upgraders: w.finder(), Clock: w.clock})
}

// refusing makes the API server refuse Jobs, with a name that it makes up anew each time.
func (w *world) refusing(hook *v1beta1.UpgradeJobHook, refusal func(name string) error) {
	w.t.Helper()
	trial, err := hooks.Trial(w.client, hook)
	if err != nil {
		w.t.Fatal(err)
	}
	n := 0
	w.api.fault = func(_ int, call string) (error, error) {
		if call != "create Job" {
			return nil, nil
		}
		n++
		return refusal(trial.GenerateName + []string{"x7k2p", "b9d4z", "zzzzz"}[n%3]), nil
	}
}

func TestHookReady(t *testing.T) {
	jobs := batchv1.Resource("jobs")
	invalid := func(name string) error {
		path := field.NewPath("spec", "template", "spec")
		return apierrors.NewInvalid(batchv1.SchemeGroupVersion.WithKind("Job").GroupKind(), name, field.ErrorList{
			field.Required(path.Child("containers").Index(0).Child("image"), ""),
			field.Invalid(path.Child("restartPolicy"), "Always", "must be OnFailure or Never"),
		})
	}
	byPolicy := func(name string) error {
		err := apierrors.NewForbidden(jobs, name, errors.New("denied request: no privileged pods"))
		err.ErrStatus.Reason, err.ErrStatus.Details.Causes = metav1.StatusReasonInvalid, []metav1.StatusCause{{Message: "no privileged pods"}}
		return err
	}
	for _, tc := range []struct {
		reason  string
		hook    *v1beta1.UpgradeJobHook
		refusal func(name string) error
		because string
		words   []string
	}{
		{"nothing is wrong", newHook("notify"), nil, v1beta1.ReasonValid, []string{"can be used"}},
		{"steps that there are", newHook("notify", withEvents("StepStarted/Upgraded", "StepCompleted/UpgradeCommenced")), nil, v1beta1.ReasonValid, nil},
		{"a selector that cannot be parsed", newHook("notify", func(hook *v1beta1.UpgradeJobHook) {
			hook.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Likes"}}
		}), nil, v1beta1.ReasonInvalidSelector, []string{"spec.selector", `"Likes"`}},
		{"a step that there is not", newHook("notify", withEvents("Start", "StepStarted/Upgrade")), nil, v1beta1.ReasonUnknownStep,
			[]string{"spec.events[1]: no upgrader has a step Upgrade; known: Healthy, UpgradeCommenced, Upgraded."}},
		{"a step that there is not, done", newHook("notify", withEvents("StepCompleted/Upgrade")), nil, v1beta1.ReasonUnknownStep, []string{"spec.events[0]"}},
		{"an invalid template", newHook("notify"), invalid, v1beta1.ReasonInvalidTemplate, []string{
			"The API server refuses the Job: spec.template.spec.template.spec.containers[0].image: Required value; " +
				`spec.template.spec.template.spec.restartPolicy: Invalid value: "Always": must be OnFailure or Never`,
		}},
		{"a quota", newHook("notify"), func(name string) error {
			return apierrors.NewForbidden(jobs, name, errors.New("exceeded quota: 3 Jobs"))
		},
			v1beta1.ReasonInvalidTemplate, []string{`jobs.batch "notify" is forbidden: exceeded quota: 3 Jobs`}},
		{"a selector", newHook("notify"), func(name string) error {
			selector := map[string]string{"batch.kubernetes.io/controller-uid": string(uuid.NewUUID())}
			return apierrors.NewInvalid(batchv1.SchemeGroupVersion.WithKind("Job").GroupKind(), name, field.ErrorList{
				field.Invalid(field.NewPath("spec", "selector"), selector, "`selector` not auto-generated"),
			})
		}, v1beta1.ReasonInvalidTemplate, []string{`spec.template.spec.selector: Invalid value: {"batch.kubernetes.io/controller-uid":"..."}: ` + "`selector` not auto-generated"}},
		{"a policy", newHook("notify"), byPolicy, v1beta1.ReasonInvalidTemplate, []string{`jobs.batch "notify" is forbidden: denied request: no privileged pods`}},
		{"what is no Job", newHook("notify"), func(string) error { return apierrors.NewBadRequest("cannot be handled as a Job") },
			v1beta1.ReasonInvalidTemplate, []string{"The API server refuses the Job: cannot be handled as a Job"}},
		{"a Job that is too big", newHook("notify"), func(string) error { return apierrors.NewRequestEntityTooLargeError("limit is 3145728") },
			v1beta1.ReasonInvalidTemplate, []string{"limit is 3145728"}},
		{"many words", newHook("notify"), func(string) error { return apierrors.NewBadRequest(strings.Repeat("no ", 10000)) },
			v1beta1.ReasonInvalidTemplate, []string{"no no..."}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, tc.hook).register(plain())
			if tc.refusal != nil {
				w.refusing(tc.hook, tc.refusal)
			}
			r := w.hookReconciler()
			if result := w.reconcile(r, tc.hook); result.RequeueAfter != 0 {
				t.Errorf("looks again after %s, want only by a watch", result.RequeueAfter)
			}
			status := metav1.ConditionFalse
			if tc.because == v1beta1.ReasonValid {
				status = metav1.ConditionTrue
			}
			got := get(w, tc.hook).Status
			expectCondition(t, got.Conditions, v1beta1.ConditionReady, status, tc.because, tc.words...)
			if got.ObservedGeneration != 3 || len(got.Conditions[0].Message) > v1beta1.MaxMessageLength {
				t.Errorf("got observed generation %d and a message of %d bytes, want 3 and not more than people read", got.ObservedGeneration, len(got.Conditions[0].Message))
			}
			created := &batchv1.JobList{}
			if err := w.client.List(t.Context(), created); err != nil || len(created.Items) > 0 {
				t.Errorf("there are Jobs: %v (error %v)", created.Items, err)
			}
			w.api.writes()
			w.elapse(time.Hour)
			w.reconcile(r, tc.hook)
			if writes := w.api.writes(); slices.Contains(writes, "patch UpgradeJobHook/status") {
				t.Errorf("a pass without news wrote %v: %s", writes, cmp.Diff(got, get(w, tc.hook).Status))
			} else if asked := len(writes) > 0; asked != (tc.because == v1beta1.ReasonInvalidTemplate) {
				t.Errorf("a pass without news called %v; the API server is asked again only after a refusal", writes)
			}
		})
	}
}

func TestHookIsCorrected(t *testing.T) {
	hook := newHook("notify", withEvents("StepStarted/Upgrade"))
	w := newWorld(t, hook).register(plain())
	r := w.hookReconciler()
	w.reconcile(r, hook)
	expectCondition(t, get(w, hook).Status.Conditions, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonUnknownStep)

	w.refusing(hook, func(string) error { return apierrors.NewBadRequest("no such field") })
	change(w, hook, func(h *v1beta1.UpgradeJobHook) {
		h.Spec.Events, h.Generation = []v1beta1.HookEvent{"StepStarted/Upgraded"}, 4
	})
	w.reconcile(r, hook)
	got := get(w, hook).Status
	expectCondition(t, got.Conditions, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonInvalidTemplate, "no such field")
	if got.ObservedGeneration != 4 {
		t.Errorf("observed generation is %d, want 4", got.ObservedGeneration)
	}

	w.api.fault = nil // a policy that is no more
	w.reconcile(r, hook)
	expectCondition(t, get(w, hook).Status.Conditions, v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonValid)

	w.refusing(hook, func(string) error { return apierrors.NewBadRequest("no such field") })
	change(w, hook, func(h *v1beta1.UpgradeJobHook) { h.Generation = 5 })
	w.reconcile(r, hook)
	expectCondition(t, get(w, hook).Status.Conditions, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonInvalidTemplate)
}

func TestHookIsJudgedByTheStepsOfThisProcess(t *testing.T) {
	hook := newHook("notify", withEvents("StepStarted/Gone"), ready)
	w := newWorld(t, hook).register(plain())
	w.reconcile(w.hookReconciler(), hook)
	expectCondition(t, get(w, hook).Status.Conditions, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonUnknownStep, "Gone")
}

func TestHookTriesAgain(t *testing.T) {
	for _, call := range []string{"create Job", "list UpgradeJobList", "patch UpgradeJobHook/status"} {
		for _, broken := range []error{errBroken, apierrors.NewTooManyRequests("slow down", 1), apierrors.NewServiceUnavailable("no endpoints")} {
			t.Run(call+" "+broken.Error(), func(t *testing.T) {
				hook, job := newHook("notify"), newJob("weekly", withRuns(run("notify", v1beta1.HookEventStart, v1beta1.HookRunSucceeded, 1)))
				w := newWorld(t, hook, job).register(plain())
				r := w.hookReconciler()
				w.api.fault = failing(call, 1, broken)
				if result := w.reconcile(r, hook); result.RequeueAfter != minBackoff {
					t.Errorf("tries again after %s, want %s", result.RequeueAfter, minBackoff)
				}
				if got := get(w, hook).Status; call == "create Job" && (got.ObservedGeneration != 0 || len(got.Conditions) > 0 || len(got.LastResults) != 1) {
					t.Errorf("got %+v, want no judgement of the spec, and the result", got)
				}
				w.reconcile(r, hook)
				got := get(w, hook).Status
				expectCondition(t, got.Conditions, v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonValid)
				if got.ObservedGeneration != 3 || len(got.LastResults) != 1 {
					t.Errorf("got %+v, want generation 3 and the result", got)
				}
				w.remove(hook)
				if result := w.reconcile(r, hook); result.RequeueAfter != 0 {
					t.Errorf("a hook that is gone is looked at again after %s", result.RequeueAfter)
				}
			})
		}
	}
}

func TestHookStaleCacheIsWaitedFor(t *testing.T) {
	hook := newHook("notify")
	w := newWorld(t, hook).register(plain())
	r := w.hookReconciler()
	old := get(w, hook)
	w.reconcile(r, hook)
	w.api.writes()
	w.api.stale = func(o client.Object) bool {
		stale, ok := o.(*v1beta1.UpgradeJobHook)
		if ok {
			old.DeepCopyInto(stale)
		}
		return ok
	}
	if result := w.reconcile(r, hook); result.RequeueAfter <= 0 || result.RequeueAfter > time.Second {
		t.Errorf("looks again after %s", result.RequeueAfter)
	}
	if got := w.api.writes(); len(got) > 0 {
		t.Errorf("a pass over a stale hook wrote %v", got)
	}
}

func TestHookThatIsDeletedIsLeftAlone(t *testing.T) {
	hook := newHook("notify", func(h *v1beta1.UpgradeJobHook) { h.Finalizers = []string{"foregroundDeletion"} })
	w := newWorld(t, hook).register(plain())
	w.remove(hook)
	if result := w.reconcile(w.hookReconciler(), hook); result.RequeueAfter != 0 || len(w.api.writes()) > 0 {
		t.Errorf("looks again after %s, want nothing", result.RequeueAfter)
	}
}
