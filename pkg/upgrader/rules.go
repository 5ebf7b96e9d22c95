// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package upgrader

import (
	"fmt"
	"slices"
	"strings"
)

// Rule says where a step stands in a list, or what it stands there with. Use StandsBefore, StandsAfter, Needs, Excludes, IsLast or IsInEveryList to make one.
type Rule struct {
	step   string // that has the rule; Catalogue.Add fills it in
	kind   ruleKind
	others []string
	why    string
}

type ruleKind int

const (
	ruleBefore ruleKind = iota
	ruleAfter
	ruleNeeds
	ruleExcludes
	ruleLast
	ruleEverywhere
)

// StandsBefore wants the step to stand before another, where both are in a list. why is a part of a sentence, as in all rules.
func StandsBefore(other, why string) Rule {
	return Rule{kind: ruleBefore, others: []string{other}, why: why}
}

// StandsAfter wants the step to stand after another, where both are in a list.
func StandsAfter(other, why string) Rule {
	return Rule{kind: ruleAfter, others: []string{other}, why: why}
}

// Needs wants one of the others to be in each list that has the step.
func Needs(why string, others ...string) Rule { return Rule{kind: ruleNeeds, others: others, why: why} }

// Excludes wants no list to have both the step and another.
func Excludes(other, why string) Rule {
	return Rule{kind: ruleExcludes, others: []string{other}, why: why}
}

// IsLast wants the step to be the last one of each list that has it.
func IsLast(why string) Rule { return Rule{kind: ruleLast, why: why} }

// IsInEveryList wants each list to have the step.
func IsInEveryList(why string) Rule { return Rule{kind: ruleEverywhere, why: why} }

// Name of the rule: what it wants.
func (r Rule) Name() string {
	others := strings.Join(r.others, " or ")
	switch r.kind {
	case ruleBefore:
		return fmt.Sprintf("%s stands before %s", r.step, others)
	case ruleAfter:
		return fmt.Sprintf("%s stands after %s", r.step, others)
	case ruleNeeds:
		return fmt.Sprintf("%s needs %s", r.step, others)
	case ruleExcludes:
		return fmt.Sprintf("%s does not go with %s", r.step, others)
	case ruleLast:
		return fmt.Sprintf("%s is the last step", r.step)
	case ruleEverywhere:
		return fmt.Sprintf("%s is in every list", r.step)
	}
	return ""
}

// Why tells people in a part of a sentence what the rule is good for.
func (r Rule) Why() string { return r.why }

// String is the name of the rule, and why.
func (r Rule) String() string { return r.Name() + ": " + r.why }

// broken tells whether a list of conditions breaks the rule.
func (r Rule) broken(list []string) bool {
	at := slices.Index(list, r.step)
	if at < 0 {
		return r.kind == ruleEverywhere
	}
	position := func(other string) int { return slices.Index(list, other) }
	has := func(other string) bool { return position(other) >= 0 }
	switch r.kind {
	case ruleBefore:
		return has(r.others[0]) && position(r.others[0]) < at
	case ruleAfter:
		return position(r.others[0]) > at
	case ruleNeeds:
		return !slices.ContainsFunc(r.others, has)
	case ruleExcludes:
		return has(r.others[0])
	case ruleLast:
		return at != len(list)-1
	case ruleEverywhere:
	}
	return false
}

// cel is the rule as an expression about spec.steps of an Upgrader.
func (r Rule) cel() string {
	has := func(names ...string) string {
		var alternatives []string
		for _, name := range names {
			alternatives = append(alternatives, fmt.Sprintf("s.step == '%s'", name))
		}
		return fmt.Sprintf("self.exists(s, %s)", strings.Join(alternatives, " || "))
	}
	// Not by indexOf: the API server takes the cost of that for too high, because it does not know how long the names in a list that map makes are.
	inOrder := func(first, second string) string {
		return fmt.Sprintf("self.map(s, s.step in ['%s', '%s'], s.step) != ['%s', '%s']", first, second, second, first)
	}
	switch r.kind {
	case ruleBefore:
		return inOrder(r.step, r.others[0])
	case ruleAfter:
		return inOrder(r.others[0], r.step)
	case ruleNeeds:
		return fmt.Sprintf("!%s || %s", has(r.step), has(r.others...))
	case ruleExcludes:
		return fmt.Sprintf("!%s || !%s", has(r.step), has(r.others[0]))
	case ruleLast:
		return fmt.Sprintf("!%s || self[size(self) - 1].step == '%s'", has(r.step), r.step)
	case ruleEverywhere:
		return has(r.step)
	}
	return ""
}

// Rules returns all rules of the catalogue, by step, in the order of the catalogue.
func (c *Catalogue) Rules() []Rule {
	var rules []Rule
	for _, e := range c.Entries() {
		rules = append(rules, e.Rules...)
	}
	return rules
}

// Broken returns the rules that a list of conditions breaks. Conditions that the catalogue does not have break none.
func (c *Catalogue) Broken(list []string) []Rule {
	return slices.DeleteFunc(c.Rules(), func(r Rule) bool { return !r.broken(list) })
}

// AdmissionRule is a rule for the API server, about spec.steps of an Upgrader.
type AdmissionRule struct {
	// Rule in CEL.
	Rule string `json:"rule"`
	// Message to who breaks it.
	Message string `json:"message"`
}

// AdmissionRules returns the rules of the catalogue for the API server. `make manifests` puts those of the catalogue that is built in into the CRD.
func (c *Catalogue) AdmissionRules() []AdmissionRule {
	var rules []AdmissionRule
	for _, r := range c.Rules() {
		rules = append(rules, AdmissionRule{Rule: r.cel(), Message: r.String()})
	}
	return rules
}
