// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package upgrader

import (
	"fmt"
	"slices"
	"strings"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// Names of the parameters of steps that are built in.
const (
	parameterChecks    = "checks"
	parameterTellStage = "tellStage"
)

// allChecks are the health checks that a list can name.
func allChecks() []healthcheck.Check { return append(stateOfCluster(), obstacles()...) }

// checksParameter names health checks; by default these.
func checksParameter(checks ...healthcheck.Check) Parameter {
	return Parameter{
		Name:    parameterChecks,
		Meaning: "health checks to make, by name, separated by commas: some of " + strings.Join(namesOf(allChecks()), ", "),
		Default: strings.Join(namesOf(checks), ","),
		Validate: func(value string) error {
			_, err := parseChecks(value)
			return err
		},
	}
}

func namesOf(checks []healthcheck.Check) []string {
	var names []string
	for _, check := range checks {
		names = append(names, check.Name())
	}
	return names
}

func parseChecks(value string) ([]healthcheck.Check, error) {
	var checks []healthcheck.Check
	all := allChecks()
	names := namesOf(all)
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		i := slices.Index(names, name)
		if i < 0 {
			return nil, fmt.Errorf("there is no health check %q; known: %s", name, strings.Join(names, ", "))
		}
		if slices.Contains(namesOf(checks), name) {
			return nil, fmt.Errorf("health check %s is there twice", name)
		}
		checks = append(checks, all[i])
	}
	return checks, nil
}

// withChecks makes a step of the health checks that its parameter names, in the combinator.
func withChecks(combinator func(steps.Step) steps.Step, step func(...healthcheck.Check) steps.Step) func(Parameters) (steps.Step, error) {
	return func(p Parameters) (steps.Step, error) {
		checks, err := parseChecks(p[parameterChecks])
		if err != nil {
			return nil, err
		}
		return combinator(step(checks...)), nil
	}
}

// tellStage is the parameter of steps that tell of a stage.
func tellStage(stage v1beta1.UpgradeStage, when string) Parameter {
	return Parameter{
		Name:    parameterTellStage,
		Meaning: fmt.Sprintf("true or false: whether %s is told of %s, as config.stageNotifications allows", stage.Notification(), when),
		Default: "true",
		Validate: func(value string) error {
			if value != "true" && value != "false" {
				return fmt.Errorf("%q is neither true nor false", value)
			}
			return nil
		},
	}
}

// telling makes a step that tells of a stage by the combinator tell, if its parameter says so, in the combinator around.
func telling(around, tell func(steps.Step) steps.Step, step steps.Step) func(Parameters) (steps.Step, error) {
	return func(p Parameters) (steps.Step, error) {
		if p[parameterTellStage] == "false" {
			return around(step), nil
		}
		return around(tell(step)), nil
	}
}

// asItIs is the combinator that does nothing.
func asItIs(step steps.Step) steps.Step { return step }

// always makes a step that has no parameters.
func always(step steps.Step) func(Parameters) (steps.Step, error) {
	return func(Parameters) (steps.Step, error) { return step, nil }
}

// preflight is the combinator of what is over once the upgrade has commenced.
func preflight(step steps.Step) func(Parameters) (steps.Step, error) {
	return always(steps.UntilCommenced(step))
}

// once is the combinator of what is about one moment.
func once(step steps.Step) func(Parameters) (steps.Step, error) { return always(steps.Once(step)) }
