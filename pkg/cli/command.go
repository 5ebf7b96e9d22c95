// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
)

// Exit statuses of the program.
const (
	// ExitOK is that of a command that did what it was asked for.
	ExitOK = 0
	// ExitFailed is that of a command that could not, and of `check` with findings.
	ExitFailed = 1
	// ExitUsage is that of a command line that cannot be understood.
	ExitUsage = 2
)

// Options of the program.
type Options struct {
	// Program is the path by which the program was called. A name like kubectl-managed_upgrade tells which program it is a plugin of; oc otherwise.
	Program string
	// Version that --version prints. Empty for "devel".
	Version string
	// Clock tells the time. Required.
	Clock clock.WithTicker
}

// tool is what all commands share.
type tool struct {
	genericiooptions.IOStreams
	clock clock.WithTicker
	flags *genericclioptions.ConfigFlags
	// program is how the user called the plugin, for the commands that messages suggest: "oc managed-upgrade" or "kubectl managed-upgrade".
	program string
	// noColor turns colours off on a terminal too.
	noColor bool
}

// errFindings says that the command has printed what is wrong, and that nothing has to be added to it.
var errFindings = errors.New("findings")

// usageError is a command line that cannot be understood.
type usageError struct{ error }

// usagef returns a usageError.
func usagef(format string, values ...any) error { return usageError{fmt.Errorf(format, values...)} }

// Run runs a command line, without the name of the program, and returns its exit status. Errors go to ErrOut, as one line.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams, o Options) int {
	t := newTool(streams, o)
	root := t.rootCommand(cmp.Or(o.Version, "devel"))
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, errFindings):
		return ExitFailed
	case errors.As(err, &usage):
		fmt.Fprintf(streams.ErrOut, "error: %v (see '%s --help')\n", err, root.CommandPath())
		return ExitUsage
	}
	fmt.Fprintf(streams.ErrOut, "error: %v\n", err)
	return ExitFailed
}

func newTool(streams genericiooptions.IOStreams, o Options) *tool {
	flags := genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag()
	return &tool{IOStreams: streams, clock: o.Clock, flags: flags, program: programName(o.Program)}
}

// programName is how the user calls the plugin: "kubectl managed-upgrade" for a path that ends in kubectl-managed_upgrade.
func programName(path string) string {
	if strings.HasPrefix(filepath.Base(path), "kubectl-") {
		return "kubectl managed-upgrade"
	}
	return "oc managed-upgrade"
}

// rootCommand lists the commands in the order of the help: first those that only look.
func (t *tool) rootCommand(version string) *cobra.Command {
	root := &cobra.Command{
		Use:           "managed-upgrade",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: t.program},
		Short:         "See and steer the unattended upgrades of an OpenShift cluster",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(t.In)
	root.SetOut(t.Out)
	root.SetErr(t.ErrOut)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	t.flags.AddFlags(root.PersistentFlags())
	root.PersistentFlags().BoolVar(&t.noColor, "no-color", false, "No colours, also on a terminal. The environment variable NO_COLOR does the same.")
	root.AddGroup(&cobra.Group{ID: groupLook, Title: "Look:"}, &cobra.Group{ID: groupAct, Title: "Act:"})
	for _, command := range []*cobra.Command{} {
		command.GroupID = groupLook
		root.AddCommand(command)
	}
	for _, command := range []*cobra.Command{} {
		command.GroupID = groupAct
		root.AddCommand(command)
	}
	return root
}

// Groups of commands in the help.
const (
	groupLook = "look"
	groupAct  = "act"
)
