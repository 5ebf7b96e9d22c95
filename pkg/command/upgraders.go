// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// printUpgraders prints the upgraders with their steps, and the steps of the catalogue that none of them has.
func printUpgraders(w io.Writer, variants []upgrader.Upgrader, catalogue *upgrader.Catalogue) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(place int, condition string) {
		entry, _ := catalogue.Entry(condition)
		fmt.Fprintf(table, "%4d\t%s\t%s\n", place, condition, entry.Summary)
	}
	var used []string
	for _, variant := range variants {
		fmt.Fprintln(table, variant.Name())
		for i, step := range variant.Steps() {
			row(i+1, step.Condition())
		}
		used = append(used, conditions(variant.Steps())...)
	}
	unused := slices.DeleteFunc(catalogue.Entries(), func(e upgrader.Entry) bool { return slices.Contains(used, e.Condition) })
	if len(unused) > 0 {
		fmt.Fprintln(table, "Further steps, for objects of kind Upgrader")
	}
	for i, entry := range unused {
		row(i+1, entry.Condition)
	}
	fmt.Fprintln(table, "Upgraders of the cluster are listed by: oc get upgraders.managedupgrade.appuio.io")
	return table.Flush()
}

func conditions(list []steps.Step) []string {
	var all []string
	for _, step := range list {
		all = append(all, step.Condition())
	}
	return all
}
