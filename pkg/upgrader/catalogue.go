// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package upgrader

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// Catalogue has the steps that an object of kind Upgrader can be made of. The zero value is empty and ready for use; it is filled
// before the manager starts and only read from then on.
type Catalogue struct {
	entries []Entry
	// cleanup of all entries, in the order in which it runs.
	cleanup []steps.Step
}

// Entry is a step of the catalogue.
type Entry struct {
	// Condition of the step, by which an Upgrader names it, in CamelCase.
	Condition string
	// Summary tells people in one sentence what the step does.
	Summary string
	// Parameters that the step has.
	Parameters []Parameter
	// Rules of where the step stands in a list.
	Rules []Rule
	// Finally gives back what the step may hold when the job ends, whatever its outcome. The jobs of all lists run the cleanup of all steps of the catalogue, each
	// once, in one order.
	Finally []steps.Step
	// New returns the step with the combinators around it that it needs. It is given a value for each of the parameters but those that are
	// required and missing, which are refused before. An error says what is wrong with the values.
	New func(Parameters) (steps.Step, error)
}

// Parameter of a step.
type Parameter struct {
	// Name in camelCase.
	Name string
	// Meaning tells people in a part of a sentence what the parameter is for, and which values it takes.
	Meaning string
	// Default is the value of a parameter that is not given.
	Default string
	// Required refuses a list that does not give the parameter.
	Required bool
	// Validate says what is wrong with a value. Nil: any value will do, or New judges it.
	Validate func(value string) error
}

// Parameters are the values of a step's parameters by their names.
type Parameters map[string]string

// conditionPattern is what a condition of a step looks like. It is no longer than config and CRD take.
var conditionPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// ofJob are the conditions of a job that are not those of its steps.
var ofJob = []string{
	v1beta1.ConditionReady, v1beta1.ConditionCreateHooksCompleted, v1beta1.ConditionStarted, v1beta1.ConditionPreflightHealthy,
	v1beta1.ConditionSucceeded, v1beta1.ConditionFailed, v1beta1.ConditionSkipped,
}

// NewCatalogue returns a catalogue with the steps of the upgraders that are built in, in the order in which an upgrade comes by them.
func NewCatalogue() *Catalogue {
	c := &Catalogue{cleanup: managedCleanup()}
	for _, e := range slices.Concat(preparations(), upgrades(), completions()) {
		if err := c.Add(e); err != nil {
			panic(err) // a test adds all of them
		}
	}
	return c
}

// Add adds a step. It is an error to use a condition twice, or one of the job's own, and to leave out what people or lists need of the entry.
func (c *Catalogue) Add(e Entry) error {
	if err := c.validate(e); err != nil {
		return fmt.Errorf("add step %q to the catalogue: %w", e.Condition, err)
	}
	e.Rules = slices.Clone(e.Rules)
	for i := range e.Rules {
		e.Rules[i].step = e.Condition
	}
	c.entries = append(c.entries, e)
	for _, step := range e.Finally {
		if !contains(c.cleanup, step) {
			c.cleanup = append(c.cleanup, step)
		}
	}
	return nil
}

func (c *Catalogue) validate(e Entry) error {
	_, taken := c.Entry(e.Condition)
	switch {
	case !conditionPattern.MatchString(e.Condition):
		return fmt.Errorf("want a condition that matches %s", conditionPattern)
	case taken:
		return errors.New("the condition is taken")
	case slices.Contains(ofJob, e.Condition):
		return errors.New("it is a condition of the job itself")
	case e.Summary == "" || e.New == nil:
		return errors.New("want a summary and a function that makes the step")
	}
	required := false
	names := map[string]bool{}
	for _, p := range e.Parameters {
		if p.Name == "" || p.Meaning == "" || names[p.Name] {
			return fmt.Errorf("parameter %q has no name or meaning, or its name is taken", p.Name)
		}
		names[p.Name] = true
		required = required || p.Required
	}
	if required {
		return nil // the values come with the Upgrader
	}
	step, err := e.step(nil)
	if err == nil && step.Condition() != e.Condition {
		err = fmt.Errorf("the step has condition %s", step.Condition())
	}
	return err
}

// Entry returns the step of that condition, and false if there is none.
func (c *Catalogue) Entry(condition string) (Entry, bool) {
	i := slices.IndexFunc(c.Entries(), func(e Entry) bool { return e.Condition == condition })
	if i < 0 {
		return Entry{}, false
	}
	return c.entries[i], true
}

// Entries returns all steps, in the order in which they were added. A nil catalogue has none.
func (c *Catalogue) Entries() []Entry {
	if c == nil {
		return nil
	}
	return slices.Clone(c.entries)
}

// Conditions returns the conditions of all steps, sorted.
func (c *Catalogue) Conditions() []string {
	var all []string
	for _, e := range c.Entries() {
		all = append(all, e.Condition)
	}
	slices.Sort(all)
	return all
}

// Finally returns the cleanup of all steps, for jobs of any list: nobody knows any more which list a job had whose Upgrader was deleted, or made anew with other steps.
// It gives back only what is the job's.
func (c *Catalogue) Finally() []steps.Step {
	if c == nil {
		return nil
	}
	return slices.Clone(c.cleanup)
}

func contains(list []steps.Step, step steps.Step) bool {
	return slices.ContainsFunc(list, func(s steps.Step) bool { return s.Condition() == step.Condition() })
}

// step makes the step with the given parameters, and the defaults of the others.
func (e Entry) step(given Parameters) (steps.Step, error) {
	values := Parameters{}
	var errs []error
	for _, p := range e.Parameters {
		value, ok := given[p.Name]
		if !ok && p.Required {
			errs = append(errs, fmt.Errorf("parameter %s is required", p.Name))
			continue
		}
		if !ok {
			value = p.Default
		}
		if p.Validate != nil {
			if err := p.Validate(value); err != nil {
				errs = append(errs, fmt.Errorf("parameter %s: %w", p.Name, err))
			}
		}
		values[p.Name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, known := values[name]; !known && !e.has(name) {
			errs = append(errs, fmt.Errorf("there is no parameter %q; known: %s", name, e.parameterNames()))
		}
	}
	if err := joined(errs); err != nil {
		return nil, err
	}
	return e.New(values)
}

func (e Entry) has(parameter string) bool {
	return slices.ContainsFunc(e.Parameters, func(p Parameter) bool { return p.Name == parameter })
}

func (e Entry) parameterNames() string {
	var names []string
	for _, p := range e.Parameters {
		names = append(names, p.Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// joined joins errors in one line.
func joined(errs []error) error {
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	if len(texts) == 0 {
		return nil
	}
	return errors.New(strings.Join(texts, "; "))
}
