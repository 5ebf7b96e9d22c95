// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/planner"
)

func (t *tool) suspendCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "suspend CONFIG",
		Short: "Keep an UpgradeConfig from creating jobs",
		Long: `Set spec.schedule.suspend of an UpgradeConfig: it creates no jobs until it is unsuspended.
Jobs that exist go on: those that run, and those that wait for their start.
Where the object is kept by GitOps the change should be a commit; the command says so.`,
		Example: "  " + t.program + " suspend weekly",
		Args:    exactly("the name of an UpgradeConfig"),

		ValidArgsFunction: t.completeConfigs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.connected(func(c client.WithWatch) error { return t.setSuspend(cmd.Context(), c, args[0], true) })
		},
	}
}

func (t *tool) unsuspendCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "unsuspend CONFIG",
		Short: "Let an UpgradeConfig create jobs again",
		Long: `Unset spec.schedule.suspend of an UpgradeConfig: it creates jobs again.
A start that has passed is not made up for. A start that is still ahead, and whose job should have been created already (spec.pinVersionWindow), gets it
at once if that is no longer ago than spec.maxSchedulingDelay, and else none. The command says which start is the next that comes to something.`,
		Example: "  " + t.program + " unsuspend weekly",
		Args:    exactly("the name of an UpgradeConfig"),

		ValidArgsFunction: t.completeConfigs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.connected(func(c client.WithWatch) error { return t.setSuspend(cmd.Context(), c, args[0], false) })
		},
	}
}

// connected calls act with a client of the cluster.
func (t *tool) connected(act func(client.WithWatch) error) error {
	c, err := t.connect()
	if err != nil {
		return err
	}
	return act(c)
}

// setSuspend sets or unsets spec.schedule.suspend, and says what that means.
func (t *tool) setSuspend(ctx context.Context, c client.Client, name string, suspend bool) error {
	configs, jobs := &v1beta1.UpgradeConfigList{}, &v1beta1.UpgradeJobList{}
	if _, err := t.listOurs(ctx, c, "list UpgradeConfigs", configs); err != nil {
		return err
	}
	config, err := named[v1beta1.UpgradeConfig]("UpgradeConfig", configs.Items, name)
	if err != nil {
		return err
	}
	if err := c.List(ctx, jobs, client.InNamespace(config.Namespace)); err != nil {
		return explain("list UpgradeJobs", err)
	}
	windows := &v1beta1.UpgradeSuspensionWindowList{}
	if !suspend { // suspending has to go without them
		if err := c.List(ctx, windows, client.InNamespace(config.Namespace)); err != nil {
			return explain("list UpgradeSuspensionWindows", err)
		}
	}
	full := config.Namespace + "/" + config.Name
	act, done := "unsuspend", "creates jobs again"
	if suspend {
		act, done = "suspend", "is suspended"
	}
	if config.Spec.Schedule.Suspend == suspend {
		t.say("UpgradeConfig %s %s: nothing to change.", full, already[suspend])
		return nil
	}
	t.warnOfGitOps(config, "UpgradeConfig", fmt.Sprintf("spec.schedule.suspend: %t", suspend))
	base := config.DeepCopy()
	config.Spec.Schedule.Suspend = suspend
	if err := c.Patch(ctx, config, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}), fieldOwner); err != nil {
		return explainWrite(fmt.Sprintf("%s UpgradeConfig %s", act, full), err)
	}
	t.say("UpgradeConfig %s %s.", full, done)
	effect := unsuspendEffect
	if suspend {
		effect = suspendEffect
	}
	for _, line := range effect(config, planned(config, jobs.Items, windows.Items), t.clock.Now(), t.location()) {
		t.say("%s", line)
	}
	return nil
}

var already = map[bool]string{true: "is suspended already", false: "is not suspended"}

// startsToExpect is how many starts of a config are looked at for the next upgrade: as many as its status lists.
const startsToExpect = 10

// suspendEffect says in sentences what becomes of the starts and the jobs of a config that was suspended.
func suspendEffect(config *v1beta1.UpgradeConfig, facts planner.Facts, now time.Time, zone *time.Location) []string {
	lines := []string{}
	if starts, err := startsOf(config, now); err != nil {
		lines = append(lines, noStarts(err))
	} else {
		lines = append(lines, fmt.Sprintf("No job is created for its starts, the next of which is %s.", moment(starts[0], zone)))
	}
	for i := range facts.Jobs {
		job := &facts.Jobs[i]
		switch {
		case job.Status.Phase.Finished():
		case job.Status.StartTime == nil:
			lines = append(lines, fmt.Sprintf("UpgradeJob %s exists already and starts at %s all the same: delete it, or freeze jobs too.",
				job.Name, moment(job.Spec.StartAfter.Time, zone)))
		default:
			lines = append(lines, fmt.Sprintf("UpgradeJob %s runs, and goes on.", job.Name))
		}
	}
	return lines
}

// unsuspendEffect says in sentences when a config that was unsuspended upgrades next, and why not before.
func unsuspendEffect(config *v1beta1.UpgradeConfig, facts planner.Facts, now time.Time, zone *time.Location) []string {
	starts, err := startsOf(config, now)
	if err != nil {
		return []string{noStarts(err)}
	}
	next, passed := firstFree(config, facts, starts, now)
	line := fmt.Sprintf("Its next start is %s.", moment(next, zone))
	switch {
	case passed == 0:
		return []string{line}
	case next.IsZero():
		line = fmt.Sprintf("Nothing is to be expected of its starts until %s.", moment(starts[passed-1], zone))
	}
	stamp := func(at time.Time) string { return moment(at, zone) }
	outlook := planner.Foresee(config, starts[0], following(starts, 0), facts, now)
	why := fmt.Sprintf("The start at %s %s.", stamp(starts[0]), whyNothing(config, facts, starts[0], outlook, now, stamp))
	switch passed {
	case 1:
	case 2:
		why += " Nor is anything to be expected of the one after it."
	default:
		why += fmt.Sprintf(" Nor is anything to be expected of the %d after it.", passed-1)
	}
	return []string{line, why}
}

// startsOf are the next starts of the config.
func startsOf(config *v1beta1.UpgradeConfig, now time.Time) ([]time.Time, error) {
	s, err := parseSchedule(config.Spec.Schedule)
	if err != nil {
		return nil, err
	}
	return s.NextN(now, startsToExpect)
}

func noStarts(err error) string { return fmt.Sprintf("Its schedule has no next start: %v.", err) }

// warnOfGitOps says on stderr that somebody else keeps the object as it was.
func (t *tool) warnOfGitOps(object client.Object, kind, change string) {
	if owner := keptBy(object); owner != "" {
		t.warn("warning: %s %s/%s is kept by %s, which may take the change back: make it a commit (%s)",
			kind, object.GetNamespace(), object.GetName(), owner, change)
	}
}

// keptBy names the tool that keeps the object as a repository has it, and by what that is seen; empty if there is none.
func keptBy(object client.Object) string {
	for _, mark := range []struct{ in, key, who string }{
		{"annotation", "argocd.argoproj.io/tracking-id", "Argo CD"},
		{"label", "argocd.argoproj.io/instance", "Argo CD"},
		{"label", "kustomize.toolkit.fluxcd.io/name", "Flux"},
		{"label", "helm.toolkit.fluxcd.io/name", "Flux"},
		{"label", "app.kubernetes.io/instance", "a tool like Argo CD or Helm"},
	} {
		values := object.GetLabels()
		if mark.in == "annotation" {
			values = object.GetAnnotations()
		}
		if values[mark.key] != "" {
			return fmt.Sprintf("%s (%s %s)", mark.who, mark.in, mark.key)
		}
	}
	tools := []string{"argocd", "flux", "kustomize-controller", "helm-controller"}
	for _, entry := range object.GetManagedFields() {
		if slices.ContainsFunc(tools, func(name string) bool { return strings.Contains(strings.ToLower(entry.Manager), name) }) {
			return "field manager " + entry.Manager
		}
	}
	return ""
}
