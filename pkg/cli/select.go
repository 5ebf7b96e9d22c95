// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// named returns the one of objects that has the name, which may be given as namespace/name. The kind is for messages: "UpgradeJob". A name that nothing
// has, and one that several namespaces have, are errors that say what there is.
func named[T any, P interface {
	*T
	client.Object
}](kind string, objects []T, name string) (P, error) {
	var found []P
	known := make([]string, 0, len(objects))
	for i := range objects {
		object := P(&objects[i])
		full := object.GetNamespace() + "/" + object.GetName()
		known = append(known, full)
		if name == object.GetName() || name == full {
			found = append(found, object)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("several namespaces have an %s %q: give --namespace", kind, name)
	case len(known) == 0:
		return nil, fmt.Errorf("there is no %s %q, nor any other: look at the namespace (--namespace)", kind, name)
	}
	return nil, fmt.Errorf("there is no %s %q: there are %s", kind, name, listKnown(known))
}

// knownPool returns an error for a pool that the cluster does not have.
func knownPool(pools []mcfgv1.MachineConfigPool, name string) error {
	known := make([]string, 0, len(pools))
	for i := range pools {
		known = append(known, pools[i].Name)
	}
	if slices.Contains(known, name) {
		return nil
	}
	return fmt.Errorf("there is no MachineConfigPool %q: there are %s", name, cmp.Or(listKnown(known), "none"))
}

// listKnown names the first of them, and counts the others.
func listKnown(names []string) string {
	if more := len(names) - maxKnown; more > 0 {
		return fmt.Sprintf("%s, and %d more", strings.Join(names[:maxKnown], ", "), more)
	}
	return strings.Join(names, ", ")
}

// maxKnown is how many names an error lists.
const maxKnown = 10

// complete completes an argument by the names of objects that list returns. What goes wrong is nobody's business while a command line is typed.
func (t *tool) complete(list func(context.Context, client.Client) (map[string]string, error)) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := t.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, err := list(command.Context(), c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var completions []cobra.Completion
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if strings.HasPrefix(name, begun) {
				completions = append(completions, cobra.CompletionWithDesc(name, names[name]))
			}
		}
		return completions, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeJobs completes the name of an UpgradeJob.
func (t *tool) completeJobs(command *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return t.complete(func(ctx context.Context, c client.Client) (map[string]string, error) {
		jobs := &v1beta1.UpgradeJobList{}
		_, err := t.listOurs(ctx, c, "list UpgradeJobs", jobs)
		names := make(map[string]string, len(jobs.Items))
		for i := range jobs.Items {
			names[jobs.Items[i].Name] = strings.TrimSpace(fmt.Sprintf("%s %s", jobs.Items[i].Status.Phase, target(&jobs.Items[i])))
		}
		return names, err
	})(command, args, begun)
}

// completeConfigs completes the name of an UpgradeConfig.
func (t *tool) completeConfigs(command *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return t.complete(func(ctx context.Context, c client.Client) (map[string]string, error) {
		configs := &v1beta1.UpgradeConfigList{}
		_, err := t.listOurs(ctx, c, "list UpgradeConfigs", configs)
		names := make(map[string]string, len(configs.Items))
		for i := range configs.Items {
			names[configs.Items[i].Name] = configs.Items[i].Spec.Schedule.Cron
		}
		return names, err
	})(command, args, begun)
}
