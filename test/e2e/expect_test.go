// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// poll calls check until it returns nil. If ctx ends first, it returns the last error that is not due to that.
func poll(ctx context.Context, check func() error) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	last := ctx.Err()
	for ctx.Err() == nil {
		err := check()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return last
}

// eventually waits until check returns nil; its last error fails the test.
func (c *cluster) eventually(what string, check func() error) {
	c.t.Helper()
	if err := poll(c.ctx, check); err != nil {
		c.t.Fatalf("%s: not yet: %v", what, err)
	}
}

// until waits for a point in time.
func (c *cluster) until(moment time.Time) {
	c.t.Helper()
	select {
	case <-time.After(time.Until(moment)):
	case <-c.ctx.Done():
		c.t.Fatal("the test takes too long")
	}
}

// get reads an object by its name and namespace.
func (c *cluster) get(object client.Object) {
	c.t.Helper()
	if err := env.Client.Get(c.ctx, client.ObjectKeyFromObject(object), object); err != nil {
		c.t.Fatal(err)
	}
}

// create creates an object and returns it.
func create[T client.Object](c *cluster, object T) T {
	c.t.Helper()
	if err := env.Client.Create(c.ctx, object); err != nil {
		c.t.Fatal(err)
	}
	return object
}

// remove deletes an object.
func (c *cluster) remove(object client.Object) {
	c.t.Helper()
	if err := env.Client.Delete(c.ctx, object); err != nil {
		c.t.Fatal(err)
	}
}

// edit changes an object, whatever others change meanwhile, and returns it.
func edit[T client.Object](c *cluster, object T, change func(T)) T {
	c.t.Helper()
	c.get(object)
	base := object.DeepCopyObject().(client.Object)
	change(object)
	if err := env.Client.Patch(c.ctx, object, client.MergeFrom(base)); err != nil {
		c.t.Fatal(err)
	}
	return object
}

// refused makes a change that must be refused, with all of the words.
func refused[T client.Object](c *cluster, object T, change func(T), words ...string) {
	c.t.Helper()
	c.get(object)
	base := object.DeepCopyObject().(client.Object)
	change(object)
	expectRefusal(c.t, env.Client.Patch(c.ctx, object, client.MergeFrom(base)), words...)
}

// expectRefusal expects an error that says all of the words.
func expectRefusal(t testing.TB, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("accepted, want a refusal that says %q", words)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the refusal does not say %q: %v", word, err)
		}
	}
}

// gone waits until an object does not exist any more.
func (c *cluster) gone(object client.Object) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("%T %s is gone", object, object.GetName()), func() error {
		err := env.Client.Get(c.ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			return errors.New("it exists")
		}
		return client.IgnoreNotFound(err)
	})
}

// objectsOf returns the items of a list.
func objectsOf(list client.ObjectList) []client.Object {
	var objects []client.Object
	_ = meta.EachListItem(list, func(o runtime.Object) error { // fails only for what is no list
		objects = append(objects, o.(client.Object))
		return nil
	})
	return objects
}

// expectation is something that a test wants of a job.
type expectation func(*v1beta1.UpgradeJob) error

// wait waits until the job is as expected, in every respect at once, and returns it.
func (c *cluster) wait(job *v1beta1.UpgradeJob, expected ...expectation) *v1beta1.UpgradeJob {
	c.t.Helper()
	c.eventually("UpgradeJob "+job.Name, func() error {
		if err := env.Client.Get(c.ctx, client.ObjectKeyFromObject(job), job); err != nil {
			return err
		}
		return check(job, expected...)
	})
	return job
}

func check(job *v1beta1.UpgradeJob, expected ...expectation) error {
	var errs []error
	for _, e := range expected {
		errs = append(errs, e(job))
	}
	return errors.Join(errs...)
}

// when returns the moment in which the journal first saw the job as expected.
func (c *cluster) when(job *v1beta1.UpgradeJob, expected ...expectation) time.Time {
	c.t.Helper()
	var moment time.Time
	c.eventually("the journal of UpgradeJob "+job.Name, func() error {
		for _, r := range past.jobsSince(c.began) {
			if r.object.UID == job.UID && check(r.object, expected...) == nil {
				moment = r.seen
				return nil
			}
		}
		return errors.New("the job was never as expected")
	})
	return moment
}

// promptly expects that something happened at its time, or within a second of it.
func (c *cluster) promptly(what string, got, want time.Time) {
	c.t.Helper()
	late := got.Sub(want)
	c.t.Logf("%s: %s after its time", what, late.Round(time.Millisecond))
	if late < 0 || late > promptness {
		c.t.Errorf("%s happened %s after its time, want within %s", what, late, promptness)
	}
}

// inPhase expects a phase.
func inPhase(phase v1beta1.Phase) expectation {
	return func(job *v1beta1.UpgradeJob) error {
		if job.Status.Phase != phase {
			return fmt.Errorf("the phase is %q, want %q; conditions: %s", job.Status.Phase, phase, summary(job.Status.Conditions))
		}
		return nil
	}
}

// succeeded expects that the job upgraded the cluster.
func succeeded() expectation {
	return outcome(v1beta1.PhaseSucceeded, v1beta1.ConditionSucceeded, v1beta1.ReasonUpgraded)
}

// succeededFor expects that outcome.
func succeededFor(reason string) expectation {
	return outcome(v1beta1.PhaseSucceeded, v1beta1.ConditionSucceeded, reason)
}

// failedFor expects that outcome.
func failedFor(reason string) expectation {
	return outcome(v1beta1.PhaseFailed, v1beta1.ConditionFailed, reason)
}

// skippedFor expects that outcome.
func skippedFor(reason string) expectation {
	return outcome(v1beta1.PhaseSkipped, v1beta1.ConditionSkipped, reason)
}

func outcome(phase v1beta1.Phase, condition, reason string) expectation {
	return func(job *v1beta1.UpgradeJob) error {
		return check(job, inPhase(phase), turned(condition, metav1.ConditionTrue, reason))
	}
}

// done expects that a step is done.
func done(step string) expectation {
	return turned(step, metav1.ConditionTrue, v1beta1.ReasonCompleted)
}

// waitingIn expects that a step waits for that reason.
func waitingIn(step, reason string) expectation { return turned(step, metav1.ConditionFalse, reason) }

// notStarted expects that the job waits for its start for that reason.
func notStarted(reason string) expectation {
	return turned(v1beta1.ConditionStarted, metav1.ConditionFalse, reason)
}

// started expects that the job runs or ran.
func started() expectation {
	return turned(v1beta1.ConditionStarted, metav1.ConditionTrue, v1beta1.ReasonStarted)
}

func turned(condition string, status metav1.ConditionStatus, reason string) expectation {
	return func(job *v1beta1.UpgradeJob) error {
		return conditionIs(job.Status.Conditions, condition, status, reason)
	}
}

func conditionIs(conditions []metav1.Condition, condition string, status metav1.ConditionStatus, reason string, words ...string) error {
	found := meta.FindStatusCondition(conditions, condition)
	if found == nil || found.Status != status || found.Reason != reason {
		return fmt.Errorf("want %s=%s (%s), conditions are: %s", condition, status, reason, summary(conditions))
	}
	for _, word := range words {
		if !strings.Contains(found.Message, word) {
			return fmt.Errorf("the message of %s does not say %q: %s", condition, word, found.Message)
		}
	}
	return nil
}

// blockedBy expects a blocker about an object, given as Kind/name, whose message says the words.
func blockedBy(code, object string, words ...string) expectation {
	return func(job *v1beta1.UpgradeJob) error {
		for _, b := range job.Status.Blockers {
			if b.Code == code && b.Object == object {
				for _, word := range words {
					if !strings.Contains(b.Message, word) {
						return fmt.Errorf("the blocker does not say %q: %s", word, b.Message)
					}
				}
				if b.Message == "" || b.ClearsWhen == "" || b.Since.IsZero() {
					return fmt.Errorf("the blocker is not complete: %+v", b)
				}
				return nil
			}
		}
		return fmt.Errorf("no blocker %s about %s in %v", code, object, job.Status.Blockers)
	}
}

// saying expects words in the message of a condition.
func saying(condition string, words ...string) expectation {
	return func(job *v1beta1.UpgradeJob) error {
		found := meta.FindStatusCondition(job.Status.Conditions, condition)
		if found == nil {
			return fmt.Errorf("there is no condition %s", condition)
		}
		return conditionIs(job.Status.Conditions, condition, found.Status, found.Reason, words...)
	}
}

// withoutFinalizers expects that the job holds nothing any more.
func withoutFinalizers() expectation {
	return func(job *v1beta1.UpgradeJob) error {
		if len(job.Finalizers) > 0 {
			return fmt.Errorf("the job has finalizers %v", job.Finalizers)
		}
		return nil
	}
}

func summary(conditions []metav1.Condition) string {
	var parts []string
	for _, c := range conditions {
		parts = append(parts, fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(parts, "; ")
}

// waitConfig waits until the condition of a config is as expected, and its message says the words.
func (c *cluster) waitConfig(config *v1beta1.UpgradeConfig, condition string, status metav1.ConditionStatus, reason string, words ...string) {
	c.t.Helper()
	c.eventually("UpgradeConfig "+config.Name, func() error {
		if err := env.Client.Get(c.ctx, client.ObjectKeyFromObject(config), config); err != nil {
			return err
		}
		return conditionIs(config.Status.Conditions, condition, status, reason, words...)
	})
}

// jobOf waits for the one job of a config.
func (c *cluster) jobOf(config *v1beta1.UpgradeConfig) *v1beta1.UpgradeJob {
	c.t.Helper()
	var found []v1beta1.UpgradeJob
	c.eventually("a job of UpgradeConfig "+config.Name, func() error {
		if found = c.jobsOf(config); len(found) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	if len(found) > 1 {
		c.t.Fatalf("UpgradeConfig %s has %d jobs", config.Name, len(found))
	}
	return &found[0]
}

// jobsOf lists the jobs of a config.
func (c *cluster) jobsOf(config *v1beta1.UpgradeConfig) []v1beta1.UpgradeJob {
	c.t.Helper()
	list := &v1beta1.UpgradeJobList{}
	if err := env.Client.List(c.ctx, list, client.InNamespace(config.Namespace)); err != nil {
		c.t.Fatal(err)
	}
	var jobs []v1beta1.UpgradeJob
	for _, job := range list.Items {
		if metav1.IsControlledBy(&job, config) {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// waitVersion waits until OpenShift's ClusterVersion is as expected.
func (c *cluster) waitVersion(what string, check func(*configv1.ClusterVersion) error) *configv1.ClusterVersion {
	c.t.Helper()
	cv := &configv1.ClusterVersion{}
	c.eventually(what, func() error {
		if err := env.Client.Get(c.ctx, client.ObjectKey{Name: v1beta1.ClusterVersionName}, cv); err != nil {
			return err
		}
		return check(cv)
	})
	return cv
}

// offers waits until the cluster offers exactly these updates.
func (c *cluster) offers(versions ...string) {
	c.t.Helper()
	c.waitVersion("the available updates", func(cv *configv1.ClusterVersion) error {
		var got []string
		for _, u := range cv.Status.AvailableUpdates {
			got = append(got, u.Version)
		}
		if strings.Join(got, " ") != strings.Join(versions, " ") {
			return fmt.Errorf("they are %q, want %q", got, versions)
		}
		return nil
	})
}
