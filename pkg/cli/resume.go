// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/pkg/suspension"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// resumeOptions are the flags of `resume`.
type resumeOptions struct {
	request string
	yes     bool
}

// maxRequestLength is how long spec.resumeRequest may be.
const maxRequestLength = 128

func (t *tool) resumeCommand() *cobra.Command {
	var o resumeOptions
	command := &cobra.Command{
		Use:   "resume JOB",
		Short: "Let a failed or skipped job go on from where the cluster stands",
		Long: `Set spec.resumeRequest of an UpgradeJob that has failed or was skipped: the operator reopens it with fresh timeouts. Its steps find out
where the cluster stands and go on from there; nothing runs twice. It starts at once, whatever the schedule says.

It is refused while another job holds the cluster, and, before the upgrade has commenced, in an UpgradeSuspensionWindow.`,
		Example: fmt.Sprintf("  %[1]s resume weekly-1795557600-0a1b2c3\n  %[1]s resume weekly-1795557600-0a1b2c3 --request TICKET-4711 --yes", t.program),
		Args:    exactly("the name of an UpgradeJob"),

		ValidArgsFunction: t.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(o.request) > maxRequestLength {
				return usagef("--request is %d bytes long: want at most %d", len(o.request), maxRequestLength)
			}
			return t.connected(func(c client.WithWatch) error { return t.resume(cmd.Context(), c, args[0], o) })
		},
	}
	command.Flags().StringVar(&o.request, "request", "", "The request, any text that was not used for the job before, e.g. the number of a ticket. The time where none is given.")
	command.Flags().BoolVarP(&o.yes, "yes", "y", false, "Do not ask.")
	return command
}

// resume asks the operator to reopen a job, if nothing speaks against it and the user wants it.
func (t *tool) resume(ctx context.Context, c client.Client, name string, o resumeOptions) error {
	s, err := t.read(ctx, c)
	if err != nil {
		return err
	}
	job, err := named[v1beta1.UpgradeJob]("UpgradeJob", s.Jobs, name)
	if err != nil {
		return err
	}
	request := o.request
	if request == "" {
		request = utc(s.Now)
	}
	reopened := job.DeepCopy()
	reopened.Spec.ResumeRequest = request
	if err := t.refuseResume(ctx, c, s, job, reopened); err != nil {
		return err
	}
	variant, err := findUpgrader(ctx, c, &job.Spec.Config)
	if err != nil {
		return fmt.Errorf("the job is not resumed: %w", err)
	}
	lifecycle.Resume(reopened, s.Now)
	if err := columns(t.Out, t.resumeSummary(s, job, reopened, variant)); err != nil {
		return err
	}
	t.warnOfGitOps(job, "UpgradeJob", "spec.resumeRequest: "+request)
	if err := t.confirm(ctx, "Resume the job?", o.yes); err != nil {
		return err
	}
	base := job.DeepCopy()
	job.Spec.ResumeRequest = request
	if err := c.Patch(ctx, job, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}), fieldOwner); err != nil {
		return explainWrite("resume UpgradeJob "+job.LockKey(), err)
	}
	_, err = fmt.Fprintf(t.Out, "UpgradeJob %[1]s is asked to resume. Follow it by:\n  %[2]s status -w -n %[3]s %[4]s\n", job.LockKey(), t.program, job.Namespace, job.Name)
	return err
}

// refuseResume returns an error that says why the operator would not reopen the job, or should not; nil if nothing speaks against it.
func (t *tool) refuseResume(ctx context.Context, c client.Reader, s *snapshot, job, reopened *v1beta1.UpgradeJob) error {
	refused := func(format string, values ...any) error {
		return fmt.Errorf("the job is not resumed: "+format, values...)
	}
	request := reopened.Spec.ResumeRequest
	switch {
	case !job.DeletionTimestamp.IsZero():
		return refused("it is being deleted")
	case job.Status.Phase == v1beta1.PhaseSucceeded:
		return refused("it has succeeded")
	case !job.Status.Phase.Finished():
		return refused("it has not ended (%s)", phaseOf(job))
	case lifecycle.ResumeRequested(job):
		return refused("it is asked to already, by request %q: the operator has not carried that out yet", job.Spec.ResumeRequest)
	case !lifecycle.ResumeRequested(reopened):
		return refused("request %q was used before: give another one by --request", request)
	}
	why, err := occupied(ctx, c, s.Version, job.LockKey())
	if err != nil {
		return err
	}
	if why != "" {
		return refused("%s", why)
	}
	for i := range s.Jobs {
		if other := &s.Jobs[i]; other.LockKey() != job.LockKey() && (other.Status.Phase == v1beta1.PhaseActive || other.Status.Phase == v1beta1.PhasePaused) {
			return refused("UpgradeJob %s runs (%s)", other.LockKey(), other.Status.Phase)
		}
	}
	if commenced(s, reopened) {
		return nil
	}
	if w := suspension.Active(s.Windows, suspension.ForJobs, job, s.Now); w != nil {
		return refused("%s", t.inWindow(w))
	}
	if why := beingUpdated(s.Version); why != "" {
		return refused("%s, and not by this job", why)
	}
	return nil
}

// commenced tells whether the upgrade of the job will count as commenced once the job is reopened.
func commenced(s *snapshot, job *v1beta1.UpgradeJob) bool {
	after := job.DeepCopy()
	lifecycle.Resume(after, s.Now)
	return (&steps.Upgrade{Job: after, Now: s.Now, Version: s.Version}).Commenced()
}

// findUpgrader returns the upgrader that the config of a job chooses.
func findUpgrader(ctx context.Context, reader client.Reader, config *v1beta1.UpgradeJobConfig) (upgrader.Upgrader, error) {
	registry := &upgrader.Registry{}
	for _, u := range upgrader.BuiltIn() {
		if err := registry.Register(u); err != nil {
			return nil, err
		}
	}
	finder := &upgrader.Finder{Registry: registry, Catalogue: upgrader.NewCatalogue(), Reader: reader}
	return finder.For(ctx, lifecycle.UpgraderOf(config), config)
}

// resumeSummary is what the user agrees to.
func (t *tool) resumeSummary(s *snapshot, job, reopened *v1beta1.UpgradeJob, variant upgrader.Upgrader) [][]string {
	outcome := string(job.Status.Phase)
	for _, kind := range []string{v1beta1.ConditionFailed, v1beta1.ConditionSkipped} {
		if c := meta.FindStatusCondition(job.Status.Conditions, kind); c != nil {
			outcome = strings.TrimSuffix(fmt.Sprintf("%s(%s): %s", kind, c.Reason, c.Message), ": ")
		}
	}
	from := "The upgrade has not commenced: its preflights are made again."
	if commenced(s, job) {
		from = "The upgrade has commenced: preflights are not made again, and nothing is skipped any more."
	}
	version := "none"
	if job.Spec.DesiredVersion != nil {
		version = job.Spec.DesiredVersion.Version
		if version == "" {
			version = job.Spec.DesiredVersion.Image
		}
	}
	return [][]string{
		{"Cluster:", strings.TrimSpace(string(s.Version.Spec.ClusterID) + " " + t.server())},
		{"Job:", job.LockKey()},
		{"Outcome:", outcome},
		{"Version:", version},
		{"Upgrader:", variant.Name()},
		{"Goes on with:", nextStep(reopened, variant.Steps())},
		{"Note:", from},
		{"Deadline:", moment(lifecycle.Deadline(reopened), t.location())},
		{"Request:", reopened.Spec.ResumeRequest},
	}
}

// nextStep names the first step that is not recorded as done.
func nextStep(job *v1beta1.UpgradeJob, list []steps.Step) string {
	for i, step := range list {
		done := slices.ContainsFunc(job.Status.Steps, func(s v1beta1.StepStatus) bool {
			return s.Condition == step.Condition() && s.CompletionTime != nil
		})
		if !done {
			return fmt.Sprintf("%s (step %d of %d)", step.Condition(), i+1, len(list))
		}
	}
	return "its end: all steps are done"
}
