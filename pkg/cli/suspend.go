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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
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
		Long: `Unset spec.schedule.suspend of an UpgradeConfig: it creates jobs again, from its next start on.
Starts that were suspended are not made up for, but for one that is less than spec.maxSchedulingDelay late.`,
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

// exactly wants one argument, and says which where there is another number of them.
func exactly(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usagef("want one argument, %s; got %d", what, len(args))
		}
		return nil
	}
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
	full := config.Namespace + "/" + config.Name
	act, done := "unsuspend", "creates jobs again"
	if suspend {
		act, done = "suspend", "is suspended"
	}
	if config.Spec.Schedule.Suspend == suspend {
		fmt.Fprintf(t.Out, "UpgradeConfig %s %s: nothing to change.\n", full, already[suspend])
		return nil
	}
	t.warnOfGitOps(config, "UpgradeConfig", fmt.Sprintf("spec.schedule.suspend: %t", suspend))
	base := config.DeepCopy()
	config.Spec.Schedule.Suspend = suspend
	if err := c.Patch(ctx, config, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}), fieldOwner); err != nil {
		return explainWrite(fmt.Sprintf("%s UpgradeConfig %s", act, full), err)
	}
	fmt.Fprintf(t.Out, "UpgradeConfig %s %s.\n", full, done)
	for _, line := range suspendEffect(config, jobs.Items, t.clock.Now(), t.location()) {
		fmt.Fprintln(t.Out, line)
	}
	return nil
}

var already = map[bool]string{true: "is suspended already", false: "is not suspended"}

// suspendEffect says in sentences what becomes of the starts and the jobs of a config that was suspended, or unsuspended.
func suspendEffect(config *v1beta1.UpgradeConfig, jobs []v1beta1.UpgradeJob, now time.Time, zone *time.Location) []string {
	var lines []string
	next := "it has no next start"
	s, err := parseSchedule(config.Spec.Schedule)
	if err == nil {
		var start time.Time
		if start, err = s.Next(now); err == nil {
			next = moment(start, zone)
		}
	}
	switch {
	case err != nil:
		lines = append(lines, fmt.Sprintf("Its schedule has no next start: %v.", err))
	case config.Spec.Schedule.Suspend:
		lines = append(lines, fmt.Sprintf("No job is created for its starts, the next of which is %s.", next))
	default:
		lines = append(lines, fmt.Sprintf("Its next start is %s.", next))
	}
	if !config.Spec.Schedule.Suspend {
		return lines
	}
	for i := range jobs {
		job := &jobs[i]
		switch {
		case !metav1.IsControlledBy(job, config) || job.Status.Phase.Finished():
		case job.Status.StartTime == nil:
			lines = append(lines, fmt.Sprintf("UpgradeJob %s exists already and starts at %s all the same: delete it, or freeze jobs too.",
				job.Name, moment(job.Spec.StartAfter.Time, zone)))
		default:
			lines = append(lines, fmt.Sprintf("UpgradeJob %s runs, and goes on.", job.Name))
		}
	}
	return lines
}

// warnOfGitOps says on stderr that somebody else keeps the object as it was.
func (t *tool) warnOfGitOps(object client.Object, kind, change string) {
	if owner := keptBy(object); owner != "" {
		fmt.Fprintf(t.ErrOut, "warning: %s %s/%s is kept by %s, which may take the change back: make it a commit (%s)\n",
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
