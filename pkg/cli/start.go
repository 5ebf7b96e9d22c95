// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/planner"
	"github.com/appuio/managed-upgrade-operator/pkg/suspension"
)

// startOptions are the flags of `start`.
type startOptions struct {
	version     string
	in          time.Duration
	yes, dryRun bool
}

func (t *tool) startCommand() *cobra.Command {
	var o startOptions
	command := &cobra.Command{
		Use:   "start CONFIG",
		Short: "Create an upgrade job now, as an UpgradeConfig would at its next start",
		Long: `Create an UpgradeJob from an UpgradeConfig, to start now: with the settings of the config, the highest version that the cluster offers,
and the same health checks, hooks and timeouts as a scheduled one. It counts as a job of the config, and it is skipped if it cannot
start within spec.maxUpgradeStartDelay.

It is refused while a job of the config is unfinished, while the cluster is locked or being updated, and in an UpgradeSuspensionWindow: the
operator would not carry it out. --yes does not change that.`,
		Example: fmt.Sprintf("  %[1]s start weekly\n  %[1]s start weekly --version 4.18.2 --in 30m --yes", t.program),
		Args:    exactly("the name of an UpgradeConfig"),

		ValidArgsFunction: t.completeConfigs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.in < 0 {
				return usagef("--in is %s: want a time from now on", o.in)
			}
			return t.connected(func(c client.WithWatch) error { return t.start(cmd.Context(), c, args[0], o) })
		},
	}
	command.Flags().StringVar(&o.version, "version", "", "Version to upgrade to, of those that the cluster offers. The highest where none is given.")
	command.Flags().DurationVar(&o.in, "in", 0, "How long from now to start, e.g. 30m.")
	command.Flags().BoolVarP(&o.yes, "yes", "y", false, "Do not ask.")
	command.Flags().BoolVar(&o.dryRun, "dry-run", false, "Say what would be done, and have the cluster check it, but create nothing.")
	return command
}

// plannedStart is a job that would be created, and what it was planned by.
type plannedStart struct {
	s      *snapshot
	config *v1beta1.UpgradeConfig
	job    *v1beta1.UpgradeJob
}

// start creates a job, if nothing speaks against it and the user wants it.
func (t *tool) start(ctx context.Context, c client.Client, name string, o startOptions) error {
	p, err := t.planStart(ctx, c, name, o.version, t.clock.Now().Add(o.in))
	if err != nil {
		return err
	}
	list := &v1beta1.UpgradeJobHookList{}
	if err := c.List(ctx, list, client.InNamespace(p.config.Namespace)); err != nil {
		return explain("list UpgradeJobHooks", err)
	}
	if err := columns(t.Out, t.startSummary(p.s, p.config, p.job, list.Items)); err != nil {
		return err
	}
	if !o.dryRun {
		if err := t.confirm(ctx, "Create the job?", o.yes); err != nil {
			return err
		}
		if p, err = t.planAgain(ctx, c, p, o.version); err != nil {
			return err
		}
	}
	return t.createJob(ctx, c, p.job, o.dryRun)
}

// planStart plans the job of a config that starts at a time, or now where that has passed. It is refused if anything speaks against it.
func (t *tool) planStart(ctx context.Context, c client.Client, name, version string, start time.Time) (plannedStart, error) {
	s, err := t.read(ctx, c)
	if err != nil {
		return plannedStart{}, err
	}
	config, err := named[v1beta1.UpgradeConfig]("UpgradeConfig", s.Configs, name)
	if err != nil {
		return plannedStart{}, err
	}
	target, err := targetOf(s, config, version)
	if err != nil {
		return plannedStart{}, err
	}
	job := planner.NewJob(config, later(start, s.Now).UTC().Truncate(time.Second), target)
	for i := range job.OwnerReferences {
		// To block the deletion of the owner takes a right that users do not have, and does not need.
		job.OwnerReferences[i].BlockOwnerDeletion = nil
	}
	return plannedStart{s, config, job}, t.refuseStart(ctx, c, s, config, job)
}

// agreedFor is how long a plan holds that the user was shown. After that the cluster may have moved on, and the time to start may be over.
const agreedFor = time.Minute

// planAgain plans the job anew if the user has taken their time to agree. What they agreed to stays: a job for another version is refused.
func (t *tool) planAgain(ctx context.Context, c client.Client, p plannedStart, version string) (plannedStart, error) {
	if t.clock.Since(p.s.Now) <= agreedFor {
		return p, nil
	}
	again, err := t.planStart(ctx, c, p.config.Namespace+"/"+p.config.Name, version, p.job.Spec.StartAfter.Time)
	if err != nil {
		return plannedStart{}, err
	}
	if before, now := p.job.Spec.DesiredVersion, again.job.Spec.DesiredVersion; !equality.Semantic.DeepEqual(before, now) {
		return plannedStart{}, fmt.Errorf("no job is created: the version was %s when you were asked, and would be %s now: look again, and repeat",
			orDash(target(p.job)), orDash(target(again.job)))
	}
	return again, nil
}

func (t *tool) createJob(ctx context.Context, c client.Client, job *v1beta1.UpgradeJob, dryRun bool) error {
	act := "create UpgradeJob " + job.LockKey()
	if dryRun {
		if err := c.Create(ctx, job, client.DryRunAll, fieldOwner); err != nil {
			return explainWrite(act, err)
		}
		_, err := fmt.Fprintf(t.Out, "UpgradeJob %s would be created (dry run).\n", job.LockKey())
		return err
	}
	if err := c.Create(ctx, job, fieldOwner); err != nil {
		return explainWrite(act, err)
	}
	_, err := fmt.Fprintf(t.Out, "UpgradeJob %[1]s is created. Follow it by:\n  %[2]s status -w -n %[3]s %[4]s\n", job.LockKey(), t.program, job.Namespace, job.Name)
	return err
}

// targetOf returns the release that a job of the config gets: the one of that version, or the highest that the cluster offers. Nil if it offers none and the config
// wants a job all the same.
func targetOf(s *snapshot, config *v1beta1.UpgradeConfig, version string) (*openshift.Release, error) {
	if version != "" {
		release, offered := openshift.Offered(s.Version, openshift.Release{Version: version})
		if !offered {
			return nil, fmt.Errorf("the cluster does not offer version %s: %s", version, offers(s, version))
		}
		return &release, nil
	}
	if release, ok := openshift.HighestAvailable(s.Version); ok {
		return &release, nil
	}
	if config.Spec.NoUpdatePolicy == v1beta1.NoUpdatePolicyCreateJob {
		return nil, nil
	}
	return nil, fmt.Errorf("the cluster offers no update of %s, and spec.noUpdatePolicy of UpgradeConfig %s/%s creates no job without one",
		openshift.RunningVersion(s.Version), config.Namespace, config.Name)
}

// offers says what the cluster offers, and why not the version.
func offers(s *snapshot, version string) string {
	for _, conditional := range s.Version.Status.ConditionalUpdates {
		if conditional.Release.Version != version {
			continue
		}
		var risks []string
		for _, risk := range conditional.Risks {
			risks = append(risks, risk.Name)
		}
		return fmt.Sprintf("it is offered conditionally only (risks: %s), and no such update is made unattended", strings.Join(risks, ", "))
	}
	var versions []string
	for _, update := range s.Version.Status.AvailableUpdates {
		versions = append(versions, update.Version)
	}
	if len(versions) == 0 {
		return "it offers none"
	}
	return "it offers " + strings.Join(versions, ", ")
}

// refuseStart returns an error that says why the operator would not carry the job out, or should not; nil if nothing speaks against it.
func (t *tool) refuseStart(ctx context.Context, c client.Reader, s *snapshot, config *v1beta1.UpgradeConfig, job *v1beta1.UpgradeJob) error {
	refused := func(format string, values ...any) error {
		return fmt.Errorf("no job is created: "+format, values...)
	}
	if why := notReady(config); why != "" {
		return refused("UpgradeConfig %s/%s cannot be used: %s", config.Namespace, config.Name, why)
	}
	if _, err := findUpgrader(ctx, c, &job.Spec.Config); err != nil {
		return refused("%w", err)
	}
	for i := range s.Jobs {
		if other := &s.Jobs[i]; metav1.IsControlledBy(other, config) && !other.Status.Phase.Finished() {
			return refused("UpgradeJob %s of the config is not finished (%s)", other.LockKey(), phaseOf(other))
		}
	}
	if w := suspension.Active(s.Windows, suspension.ForConfigs, config, job.Spec.StartAfter.Time); w != nil {
		return refused("%s", t.inWindow(w))
	}
	if w := suspension.Active(s.Windows, suspension.ForJobs, job, job.Spec.StartAfter.Time); w != nil {
		return refused("%s", t.inWindow(w))
	}
	why, err := occupied(ctx, c, s.Version, job.LockKey())
	if err != nil {
		return err
	}
	if why == "" {
		why = beingUpdated(s.Version)
	}
	if why != "" {
		return refused("%s", why)
	}
	return nil
}

// inWindow says which window suspends upgrades, until when, and why.
func (t *tool) inWindow(w *v1beta1.UpgradeSuspensionWindow) string {
	text := fmt.Sprintf("UpgradeSuspensionWindow %s/%s suspends upgrades until %s", w.Namespace, w.Name, moment(w.Spec.End.Time, t.location()))
	if w.Spec.Reason != "" {
		text += ": " + strings.TrimSuffix(w.Spec.Reason, ".")
	}
	return text
}

// notReady says why the operator cannot use the config; empty if it can, or has not looked at it yet.
func notReady(config *v1beta1.UpgradeConfig) string {
	for _, c := range config.Status.Conditions {
		if c.Type == v1beta1.ConditionReady && c.Status == metav1.ConditionFalse && c.ObservedGeneration == config.Generation {
			return c.Message
		}
	}
	return ""
}

// phaseOf is the phase of a job. One that the operator has not seen yet is pending.
func phaseOf(job *v1beta1.UpgradeJob) v1beta1.Phase {
	if job.Status.Phase == "" {
		return v1beta1.PhasePending
	}
	return job.Status.Phase
}

// startSummary is what the user agrees to.
func (t *tool) startSummary(s *snapshot, config *v1beta1.UpgradeConfig, job *v1beta1.UpgradeJob, all []v1beta1.UpgradeJobHook) [][]string {
	to := "none: nothing is upgraded, but the hooks run"
	if job.Spec.DesiredVersion != nil {
		to = openshift.RunningVersion(s.Version) + " -> " + job.Spec.DesiredVersion.Version
	}
	start := "now"
	if job.Spec.StartAfter.After(s.Now) {
		start = moment(job.Spec.StartAfter.Time, t.location())
	}
	matching := matchingHooks(job, all)
	disruptive := "no hook of the job is"
	for i := range matching {
		if matching[i].Spec.Disruptive {
			disruptive = "yes, by hook " + matching[i].Name
			break
		}
	}
	rows := [][]string{
		{"Cluster:", strings.TrimSpace(string(s.Version.Spec.ClusterID) + " " + t.server())},
		{"Config:", config.Namespace + "/" + config.Name},
		{"Job:", job.Name},
		{"Version:", to},
		{"Upgrader:", lifecycle.UpgraderOf(&job.Spec.Config)},
		{"Start:", fmt.Sprintf("%s, at the latest %s", start, moment(job.Spec.StartBefore.Time, t.location()))},
		{"Hooks:", orDash(describeHooks(matching))},
		{"Disruptive:", disruptive},
	}
	if config.Spec.Schedule.Suspend {
		rows = append(rows, []string{"Note:", "The config is suspended: this job runs all the same."})
	}
	return rows
}

// matchingHooks returns the hooks that will run for a new job.
func matchingHooks(job *v1beta1.UpgradeJob, all []v1beta1.UpgradeJobHook) []v1beta1.UpgradeJobHook {
	var matching []v1beta1.UpgradeJobHook
	for i := range all {
		if all[i].Namespace == job.Namespace && all[i].DeletionTimestamp.IsZero() && hooks.Selects(&all[i], job) {
			matching = append(matching, all[i])
		}
	}
	return matching
}

// describeHooks names hooks with their events.
func describeHooks(list []v1beta1.UpgradeJobHook) string {
	texts := make([]string, 0, len(list))
	for i := range list {
		texts = append(texts, fmt.Sprintf("%s (%s)", list[i].Name, eventsOf(&list[i])))
	}
	return strings.Join(texts, ", ")
}

func eventsOf(hook *v1beta1.UpgradeJobHook) string {
	events := make([]string, 0, len(hook.Spec.Events))
	for _, e := range hook.Spec.Events {
		events = append(events, string(e))
	}
	return strings.Join(events, ", ")
}
