// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"
)

// Formats of the flag --output.
const (
	formatText = ""
	formatWide = "wide"
	formatJSON = "json"
	formatYAML = "yaml"
	formatHTML = "html"
)

// output is the flag --output of a command.
type output struct{ format string }

// addOutput gives a command the flag --output with json, yaml, and the formats named.
func addOutput(command *cobra.Command, more ...string) *output {
	o := &output{}
	formats := append([]string{formatJSON, formatYAML}, more...)
	command.Flags().StringVarP(&o.format, "output", "o", "", "Output format: "+strings.Join(formats, ", ")+". For people where none is given.")
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	check := command.PreRunE
	command.PreRunE = func(cmd *cobra.Command, args []string) error {
		if o.format != formatText && !slices.Contains(formats, o.format) {
			return usagef("--output is %q: want one of %s", o.format, strings.Join(formats, ", "))
		}
		if check != nil {
			return check(cmd, args)
		}
		return nil
	}
	return o
}

// machine says that the output is for programs.
func (o *output) machine() bool { return o.format == formatJSON || o.format == formatYAML }

// printMachine prints value as JSON or YAML.
func (t *tool) printMachine(o *output, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err == nil && o.format == formatYAML {
		content, err = yaml.JSONToYAML(content)
	}
	if err != nil {
		return fmt.Errorf("encode the output: %w", err)
	}
	_, err = fmt.Fprintln(t.Out, strings.TrimSuffix(string(content), "\n"))
	return err
}

// colours says whether to print in colours: on a terminal, unless --no-color or NO_COLOR says no.
func (t *tool) colours() bool {
	return !t.noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && t.terminal(t.Out)
}

// isTerminal says whether a stream is one.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
