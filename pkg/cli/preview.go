// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// previewOptions are the flags of `preview`.
type previewOptions struct {
	file    string
	count   int
	offline bool
}

// maxPreviewCount bounds --count: a schedule of every minute is looked at start by start.
const maxPreviewCount = 1000

func (t *tool) previewCommand() *cobra.Command {
	var o previewOptions
	command := &cobra.Command{
		Use:   "preview [CONFIG | -f FILE]",
		Short: "Show the next starts of UpgradeConfigs, and what would be done",
		Long: `Show the next starts of an UpgradeConfig, or of all: when each job is created and its version pinned, by when it has to start, what moves or suspends
it; and which version would be pinned now, with which upgrader and hooks.

A file is validated too, before it is applied: unknown fields, schedule, queries, selectors, and by a dry run of the cluster the rules of the CRD. It may
hold UpgradeSuspensionWindows, UpgradeJobHooks and Upgraders as well, which count as if they were applied. Without a cluster the command
does what it can, and says what it left out.

The status is 1 if a config cannot be used.`,
		Example: fmt.Sprintf("  %[1]s preview\n  %[1]s preview weekly --count 10\n  %[1]s preview -f upgradeconfig.yaml --offline", t.program),

		ValidArgsFunction: t.completeConfigs,
	}
	out := addOutput(command, formatWide)
	command.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > 1 || (len(args) == 1 && o.file != ""):
			return usagef("want the name of one UpgradeConfig, or a file (-f), or neither")
		case o.count < 1 || o.count > maxPreviewCount:
			return usagef("--count is %d: want 1 to %d", o.count, maxPreviewCount)
		case o.offline && o.file == "":
			return usagef("--offline needs a file (-f): without a cluster there is nothing else to look at")
		}
		return t.preview(cmd.Context(), strings.Join(args, ""), o, out)
	}
	command.Flags().StringVarP(&o.file, "filename", "f", "", "File with UpgradeConfigs, - for stdin.")
	command.Flags().IntVar(&o.count, "count", 5, "How many starts to show.")
	command.Flags().BoolVar(&o.offline, "offline", false, "Do not look at a cluster.")
	return command
}

// preview shows the configs of the file, the one of the name, or all.
func (t *tool) preview(ctx context.Context, name string, o previewOptions, out *output) error {
	var file *previewFile
	if o.file != "" {
		var err error
		if file, err = t.readPreviewFile(o.file); err != nil {
			return err
		}
	}
	var c client.Client
	if !o.offline && (file == nil || t.hasCluster()) {
		var err error
		if c, err = t.connect(); err != nil {
			return err
		}
	}
	return t.previewWith(ctx, c, file, name, o, out)
}

// hasCluster tells whether the user has said where the cluster is.
func (t *tool) hasCluster() bool {
	raw, err := t.flags.ToRawKubeConfigLoader().RawConfig()
	return err != nil || len(raw.Contexts) > 0 || (t.flags.APIServer != nil && *t.flags.APIServer != "")
}

// previewWith shows what it was asked for. Without a client, or without a file, it does without what they have.
func (t *tool) previewWith(ctx context.Context, c client.Client, file *previewFile, name string, o previewOptions, out *output) error {
	facts, err := t.gatherPreview(ctx, c, file)
	if err != nil {
		if file != nil {
			err = fmt.Errorf("%w (--offline does without the cluster)", err)
		}
		return err
	}
	result := previewResult{Configs: []previewReport{}, LeftOut: facts.leftOut}
	configs := facts.configs
	if name != "" {
		found, err := named[v1beta1.UpgradeConfig]("UpgradeConfig", configs, name)
		if err != nil {
			return err
		}
		configs = []v1beta1.UpgradeConfig{*found}
	}
	if file != nil {
		configs, result.Problems, result.Notes = file.configs, file.problems, file.notes
	}
	for i := range configs {
		report, err := t.previewConfig(ctx, c, facts, &configs[i], file, o.count)
		if err != nil {
			return err
		}
		result.Configs = append(result.Configs, report)
	}
	result.LeftOut = facts.leftOut
	return t.tellPreview(result, out)
}

// previewConfig looks at one config. One of a file is shown to the API server too.
func (t *tool) previewConfig(ctx context.Context, c client.Client, facts *previewFacts, config *v1beta1.UpgradeConfig, file *previewFile, count int) (previewReport, error) {
	if file != nil {
		config.UID = facts.uidOf(config)
	}
	variant, variantErr, err := facts.upgrader(ctx, c, config)
	if err != nil {
		return previewReport{}, err
	}
	report := previewOf(config, facts, variant, variantErr, count)
	if file == nil || c == nil {
		return report, nil
	}
	refused, leftOut := dryRun(ctx, c, config)
	report.Problems = append(report.Problems, refused...)
	facts.leaveOut(leftOut)
	return report, nil
}

// tellPreview prints the result. Configs that cannot be used make for a failure.
func (t *tool) tellPreview(result previewResult, out *output) error {
	var err error
	if out.machine() {
		err = t.printMachine(out, result)
	} else {
		err = t.printPreview(result, out.format == formatWide)
	}
	if err == nil && result.broken() {
		err = errFindings
	}
	return err
}

// previewResult is the answer of `preview`.
type previewResult struct {
	Configs []previewReport `json:"configs"`
	// Problems of the file as a whole.
	Problems []problem `json:"problems,omitempty"`
	// Notes say what the file has beside UpgradeConfigs.
	Notes []string `json:"notes,omitempty"`
	// LeftOut says what could not be looked at.
	LeftOut []string `json:"leftOut,omitempty"`
}

// broken tells whether anything cannot be used.
func (r *previewResult) broken() bool {
	for i := range r.Configs {
		if len(r.Configs[i].Problems) > 0 {
			return true
		}
	}
	return len(r.Problems) > 0
}
