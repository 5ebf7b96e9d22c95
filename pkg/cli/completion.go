// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// addCompletion adds the command that completes words. Cobra's own serve whoever calls the program by the name of its file; who calls it through
// kubectl is served by kubectl, which asks a program that it finds by its name.
func (t *tool) addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	command, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic(err) // it has just been added
	}
	client, _, _ := strings.Cut(t.program, " ")
	file := client + "_complete-managed_upgrade"
	command.Short = "Complete commands, names and flags in your shell"
	command.Long = fmt.Sprintf(`Complete commands, names and flags in your shell.

The commands of shells print what completes %[1]q, as the program is called without %[2]s. To have %[3]q completed,
put what "%[3]s completion plugin" prints on the PATH. Kubectl asks such a program from version 1.26 on; whether oc does depends on its version.`,
		root.Name(), client, t.program)
	command.AddCommand(&cobra.Command{
		Use:   "plugin",
		Short: "Print the program that " + client + " asks what completes a word",
		Long: fmt.Sprintf(`Print the program that %[1]s asks what completes a word of "%[2]s". It has to be on the PATH, by the name %[3]s. The completion of %[1]s itself
has to be on: see "%[1]s completion --help".`, client, t.program, file),
		Example: fmt.Sprintf("  %[1]s completion plugin > ~/bin/%[2]s && chmod +x ~/bin/%[2]s", t.program, file),
		Args:    noArguments(),
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(command.OutOrStdout(), "#!/bin/sh\nexec %s %s \"$@\"\n", t.program, cobra.ShellCompRequestCmd)
			return err
		},
	})
}
