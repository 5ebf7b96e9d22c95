// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// freezeOptions are the flags of `freeze`.
type freezeOptions struct {
	from, to, location string
	reason, name       string
	configs, jobs      string
	all, dryRun        bool
}

func (t *tool) freezeCommand() *cobra.Command {
	var o freezeOptions
	command := &cobra.Command{
		Use:   "freeze --from TIME --to TIME --reason TEXT (--all | --configs SELECTOR | --jobs SELECTOR)",
		Short: "Create an UpgradeSuspensionWindow: a time in which no upgrade starts",
		Long: `Create an UpgradeSuspensionWindow in the namespace: UpgradeConfigs that it selects create no jobs in it, UpgradeJobs that it selects do not
start in it. Jobs that run go on. The command says which starts the window takes out, and which jobs start in it all the same.

Times are RFC 3339, or "2026-12-20 18:00" or "2026-12-20" in --location, by default the time zone of this computer.`,
		Example: fmt.Sprintf(`  %[1]s freeze -n upgrades --from "2026-12-20 18:00" --to 2027-01-04 --location Europe/Zurich --reason "Christmas" --all
  %[1]s freeze --from 2026-11-27 --to 2026-11-30 --reason "Black Friday" --configs tier=prod --dry-run -o yaml`, t.program),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("want no arguments, got %q", args)
			}
			return nil
		},
	}
	out := addOutput(command)
	command.RunE = func(cmd *cobra.Command, _ []string) error {
		window, err := t.newWindow(o)
		if err != nil {
			return err
		}
		return t.connected(func(c client.WithWatch) error { return t.freeze(cmd.Context(), c, window, o.dryRun, out) })
	}
	flags := command.Flags()
	flags.StringVar(&o.from, "from", "", "Start of the window. Now where none is given.")
	flags.StringVar(&o.to, "to", "", "End of the window. Required.")
	flags.StringVar(&o.location, "location", "", "IANA time zone of --from and --to, e.g. Europe/Zurich.")
	flags.StringVar(&o.reason, "reason", "", "Why; it is shown wherever the window has an effect. Required.")
	flags.StringVar(&o.configs, "configs", "", "Label selector of the UpgradeConfigs that create no jobs, e.g. tier=prod.")
	flags.StringVar(&o.jobs, "jobs", "", "Label selector of the UpgradeJobs that do not start.")
	flags.BoolVar(&o.all, "all", false, "All UpgradeConfigs and UpgradeJobs of the namespace, but for what --configs or --jobs narrows.")
	flags.StringVar(&o.name, "name", "", "Name of the window. One that is made of the start where none is given.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Say what the window would do, and have the cluster check it, but create nothing.")
	return command
}

// newWindow is the window that the flags describe.
func (t *tool) newWindow(o freezeOptions) (*v1beta1.UpgradeSuspensionWindow, error) {
	zone, now := t.location(), t.clock.Now()
	if o.location != "" {
		var err error
		if zone, err = time.LoadLocation(o.location); err != nil {
			return nil, usagef("--location %q is no IANA time zone such as Europe/Zurich", o.location)
		}
	}
	start, end := now.Truncate(time.Second), time.Time{}
	var err error
	if o.from != "" {
		if start, err = parseMoment("--from", o.from, zone); err != nil {
			return nil, err
		}
	}
	switch {
	case o.to == "":
		return nil, usagef("--to is missing: when does the freeze end?")
	case o.reason == "":
		return nil, usagef("--reason is missing: whoever wonders why nothing is upgraded will read it")
	case !o.all && o.configs == "" && o.jobs == "":
		return nil, usagef("say what is frozen: --all, or --configs and --jobs")
	}
	if end, err = parseMoment("--to", o.to, zone); err != nil {
		return nil, err
	}
	switch {
	case !end.After(start):
		return nil, usagef("--to (%s) is not after --from (%s)", moment(end, zone), moment(start, zone))
	case !end.After(now):
		return nil, usagef("--to (%s) is over already", moment(end, zone))
	}
	namespace, err := t.namespace()
	if err != nil {
		return nil, err
	}
	window := &v1beta1.UpgradeSuspensionWindow{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "UpgradeSuspensionWindow"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cmp.Or(o.name, "freeze-"+start.UTC().Format("20060102-1504"))},
		Spec:       v1beta1.UpgradeSuspensionWindowSpec{Start: metav1.NewTime(start.UTC()), End: metav1.NewTime(end.UTC()), Reason: o.reason},
	}
	if window.Spec.ConfigSelector, err = parseSelector("--configs", o.configs, o.all); err != nil {
		return nil, err
	}
	window.Spec.JobSelector, err = parseSelector("--jobs", o.jobs, o.all)
	return window, err
}

// parseSelector reads a label selector. An empty one selects nothing, or all.
func parseSelector(flag, text string, all bool) (*metav1.LabelSelector, error) {
	if text == "" && !all {
		return nil, nil
	}
	selector, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		return nil, usagef("%s %q is no label selector such as tier=prod: %v", flag, text, err)
	}
	return selector, nil
}

// parseMoment reads a time in one of the ways in which people write it.
func parseMoment(flag, text string, zone *time.Location) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	for _, layout := range []string{"2006-01-02 15:04", "2006-01-02T15:04", time.DateTime, time.DateOnly} {
		at, err := time.ParseInLocation(layout, text, zone)
		if err != nil {
			continue
		}
		if wall, _ := time.Parse(layout, text); at.Format(time.DateTime) != wall.Format(time.DateTime) {
			return time.Time{}, usagef("%s %q does not exist in %s: clocks go forward then", flag, text, zone)
		}
		return at, nil
	}
	return time.Time{}, usagef(`%s %q is no time: write "2026-12-20 18:00" or 2026-12-20T18:00:00+01:00`, flag, text)
}

// freeze creates the window, and says what it does.
func (t *tool) freeze(ctx context.Context, c client.Client, window *v1beta1.UpgradeSuspensionWindow, dryRun bool, out *output) error {
	configs, jobs := &v1beta1.UpgradeConfigList{}, &v1beta1.UpgradeJobList{}
	if err := c.List(ctx, configs, client.InNamespace(window.Namespace)); err != nil {
		return explain("list UpgradeConfigs", err)
	}
	if err := c.List(ctx, jobs, client.InNamespace(window.Namespace)); err != nil {
		return explain("list UpgradeJobs", err)
	}
	managed := &v1alpha1.UpgradeConfigList{}
	if err := c.List(ctx, managed, client.InNamespace(window.Namespace)); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsForbidden(err) {
		return explain("list UpgradeConfigs of the Managed Upgrade Operator", err) // a cluster without the kind, or a user who has nothing to do with it, misses nothing
	}
	if len(configs.Items)+len(jobs.Items)+len(managed.Items) == 0 {
		return fmt.Errorf("namespace %s has neither UpgradeConfigs nor UpgradeJobs, so that a window there would freeze nothing: give --namespace", window.Namespace)
	}
	effect := effectOf(window, configs.Items, jobs.Items, t.clock.Now())
	effect.addManaged(window, managed.Items, jobs.Items)
	written := window.DeepCopy()
	options := []client.CreateOption{fieldOwner}
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	if err := c.Create(ctx, written, options...); err != nil {
		return explainWrite(fmt.Sprintf("create UpgradeSuspensionWindow %s/%s", window.Namespace, window.Name), err)
	}
	if out.machine() {
		return t.printMachine(out, manifest(window))
	}
	done := "is created"
	if dryRun {
		done = "would be created (dry run)"
	}
	t.say("UpgradeSuspensionWindow %s/%s %s: %s to %s.", window.Namespace, window.Name, done,
		moment(window.Spec.Start.Time, t.location()), moment(window.Spec.End.Time, t.location()))
	for _, line := range effect.lines(t.location()) {
		t.say("%s", line)
	}
	return nil
}

// manifest is the window as it would stand in a repository.
func manifest(window *v1beta1.UpgradeSuspensionWindow) map[string]any {
	return map[string]any{
		"apiVersion": window.APIVersion, "kind": window.Kind,
		"metadata": map[string]any{"namespace": window.Namespace, "name": window.Name},
		"spec":     window.Spec,
	}
}
