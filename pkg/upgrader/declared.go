// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package upgrader

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// declared is a variant that an object of kind Upgrader describes.
type declared struct {
	name              string
	steps, finally    []steps.Step
	commencesInWindow bool
}

func (d declared) Name() string          { return d.name }
func (d declared) Steps() []steps.Step   { return d.steps }
func (d declared) Finally() []steps.Step { return d.finally }

// CommencesInWindow makes a job fail that does not commence within config.upgradeWindow.timeOut.
func (d declared) CommencesInWindow() bool { return d.commencesInWindow }

// Declared returns the variant that the object describes. The error names all that is wrong with its list: steps that the catalogue does not have,
// values of parameters, and rules that are broken.
func (c *Catalogue) Declared(u *v1beta1.Upgrader) (Upgrader, error) {
	variant := declared{name: u.Name, commencesInWindow: u.Spec.FailUnlessCommenced}
	var names []string
	var errs []error
	for i, s := range u.Spec.Steps {
		if slices.Contains(names, s.Step) {
			errs = append(errs, fmt.Errorf("spec.steps[%d]: %s is there twice", i, s.Step))
			continue
		}
		names = append(names, s.Step)
		entry, ok := c.Entry(s.Step)
		if !ok {
			errs = append(errs, fmt.Errorf("spec.steps[%d]: the catalogue has no step %s; known: %s", i, s.Step, strings.Join(c.Conditions(), ", ")))
			continue
		}
		step, err := entry.step(s.Parameters)
		if err != nil {
			errs = append(errs, fmt.Errorf("spec.steps[%d] (%s): %w", i, s.Step, err))
			continue
		}
		variant.steps = append(variant.steps, step)
	}
	for _, rule := range c.Broken(names) {
		errs = append(errs, errors.New(rule.String()))
	}
	if err := joined(errs); err != nil {
		return nil, err
	}
	variant.finally = c.Finally()
	return variant, nil
}
