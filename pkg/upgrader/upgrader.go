// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package upgrader holds the variants of an upgrade. A variant is an ordered,
// literal list of steps; a job chooses it by name (spec.config.upgrader).
package upgrader

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

//go:generate go tool -modfile=../../boilerplate/tools/go.mod mockgen -destination=mocks/mock_upgrader.go -package=mocks -copyright_file=../../boilerplate/header.txt . Upgrader

// Upgrader is a variant of an upgrade.
type Upgrader interface {
	// Name by which a job chooses the variant.
	Name() string
	// Steps in the order in which they run. Each pass over a job begins with the first.
	Steps() []steps.Step
	// Finally is cleanup, in order. All of it runs when a job ends, whatever the outcome, and when a running job is
	// deleted; it is repeated until each step of it is done.
	Finally() []steps.Step
}

// Windowed is an upgrader whose upgrades have to commence within config.upgradeWindow.timeOut.
type Windowed interface {
	Upgrader
	// CommencesInWindow tells whether a job fails that has not commenced by then.
	CommencesInWindow() bool
}

// CommencesInWindow tells whether a job of the upgrader fails that has not commenced within config.upgradeWindow.timeOut. Nil does not.
func CommencesInWindow(u Upgrader) bool {
	windowed, ok := u.(Windowed)
	return ok && windowed.CommencesInWindow()
}

// BuiltIn returns the upgraders that every manager has, the default first.
func BuiltIn() []Upgrader { return []Upgrader{OpenShift(), OSD(), ARO()} }

// Registry finds upgraders by name. The zero value is empty and ready for use; it is filled before the manager starts
// and only read from then on.
type Registry struct {
	upgraders map[string]Upgrader
}

// Register adds an upgrader. It is an error to use a name twice, or to use one condition for two steps of a variant.
func (r *Registry) Register(u Upgrader) error {
	name := u.Name()
	if _, taken := r.upgraders[name]; taken {
		return fmt.Errorf("register upgrader %q: the name is taken", name)
	}
	seen := map[string]bool{}
	for _, step := range u.Steps() {
		if seen[step.Condition()] {
			return fmt.Errorf("register upgrader %q: two steps have condition %s", name, step.Condition())
		}
		seen[step.Condition()] = true
	}
	if r.upgraders == nil {
		r.upgraders = map[string]Upgrader{}
	}
	r.upgraders[name] = u
	return nil
}

// Get returns the upgrader of that name. The error names those that exist.
func (r *Registry) Get(name string) (Upgrader, error) {
	if u, ok := r.upgraders[name]; ok {
		return u, nil
	}
	return nil, fmt.Errorf("there is no upgrader %q; known: %s", name, strings.Join(slices.Sorted(maps.Keys(r.upgraders)), ", "))
}

// All returns all upgraders, by name.
func (r *Registry) All() []Upgrader {
	var all []Upgrader
	for _, name := range slices.Sorted(maps.Keys(r.upgraders)) {
		all = append(all, r.upgraders[name])
	}
	return all
}

// Conditions returns the conditions of the steps of every upgrader, sorted, each once.
func (r *Registry) Conditions() []string {
	var all []string
	for _, u := range r.upgraders {
		for _, step := range u.Steps() {
			all = append(all, step.Condition())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
