// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// defaultRequestTimeout bounds each request, so that nothing hangs at a server that does not answer. --request-timeout sets another.
const defaultRequestTimeout = "30s"

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
	// terminal says whether a stream is a terminal. Tests set it.
	terminal func(stream any) bool
	// dial returns the client where it is not that of the kubeconfig. Nil for that; tests set it.
	dial func() (client.WithWatch, error)
}

// errFindings says that the command has printed what is wrong, and that nothing has to be added to it.
var errFindings = errors.New("findings")

// usageError is a command line that cannot be understood.
type usageError struct{ error }

// usagef returns a usageError.
func usagef(format string, values ...any) error { return usageError{fmt.Errorf(format, values...)} }

// Run runs a command line, without the name of the program, and returns its exit status. Errors go to ErrOut, as one line.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams, o Options) int {
	return newTool(streams, o).run(ctx, args, cmp.Or(o.Version, "devel"))
}

func (t *tool) run(ctx context.Context, args []string, version string) int {
	root := t.rootCommand(version)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, errFindings):
		return ExitFailed
	case errors.As(err, &usage):
		fmt.Fprintf(t.ErrOut, "error: %s (see '%s --help')\n", printable(err.Error()), root.CommandPath())
		return ExitUsage
	}
	fmt.Fprintf(t.ErrOut, "error: %s\n", printable(err.Error()))
	return ExitFailed
}

func newTool(streams genericiooptions.IOStreams, o Options) *tool {
	flags := genericclioptions.NewConfigFlags(true)
	flags.CacheDir = nil // nothing is cached
	flags.Timeout = ptr.To(defaultRequestTimeout)
	return &tool{IOStreams: streams, clock: o.Clock, flags: flags, program: programName(o.Program), terminal: isTerminal}
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
		Use:         strings.ReplaceAll(strings.ReplaceAll(t.program, "-", "_"), " ", "-"), // the file's name, which a shell completes
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: t.program},
		Short:       "See and steer the unattended upgrades of an OpenShift cluster",
		Long: `See and steer the unattended upgrades of an OpenShift cluster, with the rights that you have.

Exit status: 0 if all went well, 1 if the command failed or has findings, 2 if the command line cannot be understood.`,
		Version:       version,
		Args:          cobra.ArbitraryArgs,
		RunE:          runRoot,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SuggestionsMinimumDistance = 2
	root.SetIn(t.In)
	root.SetOut(t.Out)
	root.SetErr(t.ErrOut)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), globalFlags,
		"{{if .HasAvailableInheritedFlags}}\n\nUse \"{{.Root.CommandPath}} options\" for the flags that all commands have.{{end}}", 1))
	t.flags.AddFlags(root.PersistentFlags())
	root.PersistentFlags().BoolVar(&t.noColor, "no-color", false, "No colours, also on a terminal. The environment variable NO_COLOR does the same.")
	root.AddGroup(&cobra.Group{ID: groupLook, Title: "Look:"}, &cobra.Group{ID: groupAct, Title: "Act:"})
	for _, command := range []*cobra.Command{
		t.statusCommand(),
		t.historyCommand(),
		t.describeCommand(),
		t.versionsCommand(),
		t.nodesCommand(),
		t.previewCommand(),
		t.checkCommand(),
	} {
		command.GroupID = groupLook
		root.AddCommand(command)
	}
	for _, command := range []*cobra.Command{
		t.startCommand(),
		t.resumeCommand(),
		t.suspendCommand(),
		t.unsuspendCommand(),
		t.freezeCommand(),
		t.releasePoolsCommand(),
	} {
		command.GroupID = groupAct
		root.AddCommand(command)
	}
	root.AddCommand(optionsCommand())
	t.addCompletion(root)
	return root
}

// globalFlags is the part of cobra's help that lists the flags of all commands: there are many, and they are the same everywhere.
const globalFlags = `{{if .HasAvailableInheritedFlags}}

Global Flags:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}`

// optionsCommand lists the flags of all commands.
func optionsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags that all commands have",
		Args:  noArguments(),
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(command.OutOrStdout(), "These flags can be given to any command:\n\n"+command.Root().PersistentFlags().FlagUsages())
			return err
		},
	}
}

// Root returns the command line of the program, for its documentation.
func Root(o Options) *cobra.Command {
	return newTool(genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}, o).rootCommand(cmp.Or(o.Version, "devel"))
}

// runRoot helps where no command is given, and where there is none of the name.
func runRoot(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return command.Help()
	}
	if similar := command.SuggestionsFor(args[0]); len(similar) > 0 {
		return usagef("there is no command %q: is it %s?", args[0], strings.Join(similar, ", "))
	}
	return usagef("there is no command %q", args[0])
}

// exactly wants one argument, atMost one or none, noArguments none. Anything else is an error of usage, which says what the argument is.
func exactly(what string) cobra.PositionalArgs { return between(1, 1, "one argument, "+what) }

func atMost(what string) cobra.PositionalArgs {
	return between(0, 1, "one argument at most, "+what)
}

func noArguments() cobra.PositionalArgs { return between(0, 0, "no argument") }

func between(least, most int, wanted string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usagef("want %s; got %d", wanted, len(args))
		}
		return nil
	}
}

// argument is the first argument, or empty.
func argument(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// examples are pairs of the rest of a command line and what it is for.
func (t *tool) examples(pairs ...string) string {
	var text strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(&text, "  # %s\n  %s %s\n", pairs[i+1], t.program, pairs[i])
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// Groups of commands in the help.
const (
	groupLook = "look"
	groupAct  = "act"
)
