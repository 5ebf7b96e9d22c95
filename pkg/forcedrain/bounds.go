// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package forcedrain

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// The interpreter looks at its deadline between two operations only, and one operation may take all memory there is:
// "x" * 1000000000. So an expression may look at a pod in any way, but not make much data out of it: no loops, no variables,
// no definitions, no multiplication, and of what makes data grow only a few uses.

// maxGrowth is how often an expression may use what makes data grow: each use doubles it at most, or adds a level.
const maxGrowth = 4

// allowedFunctions are the functions that an expression may use.
var allowedFunctions = strings.Fields(`
	select map any all has in inside contains test startswith endswith ltrimstr rtrimstr ascii_downcase ascii_upcase
	length utf8bytelength keys values to_entries from_entries with_entries type not empty error first last nth isempty
	index rindex indices IN tonumber tostring floor ceil round abs min max min_by max_by unique unique_by sort sort_by
	group_by reverse add objects arrays strings numbers booleans nulls scalars iterables true false null
	now fromdate fromdateiso8601 todate env`)

// checkBounds says why an expression is not evaluated though it is valid; nil if it may be.
func checkBounds(query *gojq.Query) error {
	b := &bounds{}
	b.walk(reflect.ValueOf(query))
	switch {
	case b.refused != "":
		return fmt.Errorf("it uses %s, by which an expression can take all of the operator's memory or time; see docs/force-drain.md for what can be used", b.refused)
	case b.growth > maxGrowth:
		return fmt.Errorf("it uses +, \"..\", interpolation of strings, and commas between what is not constant, %d times; at most %d are allowed in all", b.growth, maxGrowth)
	}
	return nil
}

// bounds is what is found in the syntax tree of an expression.
type bounds struct {
	refused string
	growth  int
}

// walk visits every node of the tree, whatever it hangs in.
func (b *bounds) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			b.see(v.Interface())
			b.walk(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			b.walk(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			b.walk(v.Index(i))
		}
	default: // a word
	}
}

func (b *bounds) see(node any) {
	switch node := node.(type) {
	case *gojq.Query:
		b.seeOperator(node)
	case *gojq.Term:
		if node.Type == gojq.TermTypeRecurse {
			b.growth++
		}
		if node.Type == gojq.TermTypeFormat {
			b.refuse(node.Format)
		}
	case *gojq.Func:
		if !slices.Contains(allowedFunctions, node.Name) {
			b.refuse(node.Name)
		}
	case *gojq.String:
		b.growth += len(node.Queries)
	case *gojq.FuncDef:
		b.refuse("def")
	case *gojq.Reduce:
		b.refuse("reduce")
	case *gojq.Foreach:
		b.refuse("foreach")
	case *gojq.Label:
		b.refuse("label")
	case *gojq.Import:
		b.refuse("import")
	case *gojq.Pattern:
		b.refuse("variables")
	}
}

// refusedOperators multiply, or change.
var refusedOperators = []gojq.Operator{
	gojq.OpMul, gojq.OpAssign, gojq.OpModify, gojq.OpUpdateAdd, gojq.OpUpdateSub, gojq.OpUpdateMul, gojq.OpUpdateDiv, gojq.OpUpdateMod, gojq.OpUpdateAlt,
}

func (b *bounds) seeOperator(query *gojq.Query) {
	switch grows := query.Op == gojq.OpAdd || (query.Op == gojq.OpComma && !constant(query.Left) && !constant(query.Right)); {
	case slices.Contains(refusedOperators, query.Op):
		b.refuse(query.Op.String())
	case grows:
		b.growth++
	}
}

// constantTypes are those of terms that are one number or word.
var constantTypes = []gojq.TermType{gojq.TermTypeNumber, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNull}

// constant tells whether the query is one number, text, or word.
func constant(query *gojq.Query) bool {
	t := query.Term
	if t == nil || len(t.SuffixList) > 0 {
		return false
	}
	return slices.Contains(constantTypes, t.Type) || (t.Type == gojq.TermTypeString && len(t.Str.Queries) == 0)
}

func (b *bounds) refuse(what string) {
	if b.refused == "" {
		b.refused = what
	}
}
