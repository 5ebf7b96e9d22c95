// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package forcedrain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"time"

	"github.com/itchyny/gojq"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// jqTimeout is how long podJQSelector may take for a pod.
const jqTimeout = 250 * time.Millisecond

// maxJQError bounds what is told of a failure, in bytes: jq expressions can fail with any text.
const maxJQError = 256

// Problem is why a spec cannot be used.
type Problem struct {
	// Reason of the condition Ready.
	Reason string
	// Message names the field and says what is wrong with it.
	Message string
}

// Selection is what the selectors of a NodeForceDrain select.
type Selection struct {
	nodes, namespaces labels.Selector
	jq                *gojq.Code // nil for all pods
	ignored           []*regexp.Regexp
}

// NewSelection reads the selectors of the spec. Exactly one of its results is nil.
func NewSelection(spec *v1beta1.NodeForceDrainSpec) (*Selection, *Problem) {
	s := &Selection{nodes: labels.Everything(), namespaces: labels.Everything()}
	for _, field := range []struct {
		name     string
		given    *metav1.LabelSelector
		selector *labels.Selector
	}{{"nodeSelector", spec.NodeSelector, &s.nodes}, {"namespaceSelector", spec.NamespaceSelector, &s.namespaces}} {
		if field.given == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(field.given)
		if err != nil {
			return nil, &Problem{v1beta1.ReasonInvalidSelector, fmt.Sprintf("spec.%s cannot be parsed: %v", field.name, err)}
		}
		*field.selector = selector
	}
	if spec.PodJQSelector != "" {
		var err error
		if s.jq, err = compileJQ(spec.PodJQSelector); err != nil {
			return nil, &Problem{v1beta1.ReasonInvalidJQ, fmt.Sprintf("spec.podJQSelector cannot be used: %v", err)}
		}
	}
	for _, pattern := range spec.IgnoredNamespacePatterns {
		compiled, err := compilePattern(pattern)
		if err != nil {
			return nil, &Problem{v1beta1.ReasonInvalidPattern, fmt.Sprintf("spec.ignoredNamespacePatterns has %q, which cannot be used: %v", pattern, err)}
		}
		s.ignored = append(s.ignored, compiled)
	}
	return s, nil
}

// maxPatternSize bounds how large a pattern is compiled, in instructions, each of which may be looked at for every letter of a name. What has no
// counted repetitions is about as large as it is long, 253 at most.
const maxPatternSize = 1000

func compilePattern(pattern string) (*regexp.Regexp, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(program.Inst) > maxPatternSize {
		return nil, errors.New("its repetitions make it too large")
	}
	return regexp.Compile(pattern)
}

// compileJQ compiles an expression that sees neither the operator's environment nor its files: no loader is given.
func compileJQ(expression string) (*gojq.Code, error) {
	query, err := gojq.Parse(expression)
	if err != nil {
		return nil, err
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, err
	}
	return code, checkBounds(query)
}

// SelectsNode tells whether a node of those labels is selected.
func (s *Selection) SelectsNode(nodeLabels map[string]string) bool {
	return s.nodes.Matches(labels.Set(nodeLabels))
}

// AnyNamespace tells whether all namespaces are selected, so that their labels need not be known.
func (s *Selection) AnyNamespace() bool { return s.namespaces.Empty() }

// SelectsNamespace tells whether a namespace of those labels is selected.
func (s *Selection) SelectsNamespace(namespaceLabels map[string]string) bool {
	return s.namespaces.Matches(labels.Set(namespaceLabels))
}

// IgnoresNamespace tells whether the pods of a namespace are left alone, whatever selects them.
func (s *Selection) IgnoresNamespace(name string) bool {
	return slices.ContainsFunc(s.ignored, func(pattern *regexp.Regexp) bool { return pattern.MatchString(name) })
}

// Evaluation applies podJQSelector to the pods of one pass. It must not be used from several goroutines.
type Evaluation struct {
	selection *Selection
	tooSlow   int // pods for which it took too long
}

// maxTooSlow is how many pods podJQSelector may take too long for in a pass: after that nothing more is evaluated in it.
const maxTooSlow = 20

// Evaluate returns a new evaluation.
func (s *Selection) Evaluate() *Evaluation { return &Evaluation{selection: s} }

var (
	errTooSlow      = fmt.Errorf("it takes longer than %s", jqTimeout)
	errNotEvaluated = errors.New("not evaluated, because it takes too long for others")
	errNoBoolean    = errors.New("its output is neither true nor false")
)

// Selects tells whether podJQSelector selects the pod: whether one of its outputs is true. An error tells why it
// says neither yes nor no. After too many that took too long nothing is evaluated any more.
func (e *Evaluation) Selects(ctx context.Context, pod *corev1.Pod) (bool, error) {
	switch {
	case e.selection.jq == nil:
		return true, nil
	case e.tooSlow >= maxTooSlow:
		return false, errNotEvaluated
	}
	input, err := plain(pod)
	if err != nil {
		return false, err
	}
	limited, cancel := context.WithTimeout(ctx, jqTimeout)
	defer cancel()
	selected, err := run(limited, e.selection.jq, input)
	if err != nil && limited.Err() != nil {
		e.tooSlow++
		err = errTooSlow
	}
	return selected, err
}

// plain returns the pod as jq has it: as JSON. Numbers of other types than JSON has would make gojq panic.
func plain(pod *corev1.Pod) (any, error) {
	whole := *pod
	whole.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	data, err := json.Marshal(&whole)
	if err != nil {
		return nil, fmt.Errorf("encode the pod: %w", err)
	}
	var input any
	if err := json.Unmarshal(data, &input); err != nil {
		return nil, fmt.Errorf("decode the pod: %w", err)
	}
	return input, nil
}

// run returns whether an output is true. The expression is somebody else's program: a panic of its interpreter is a
// failure of the expression, not of the operator.
func run(ctx context.Context, code *gojq.Code, input any) (selected bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			selected, err = false, fmt.Errorf("the interpreter failed: %s", v1beta1.Truncate(fmt.Sprint(p), maxJQError))
		}
	}()
	outputs := code.RunWithContext(ctx, input)
	booleans := 0
	for {
		output, ok := outputs.Next()
		switch output := output.(type) {
		case error:
			return false, errors.New(v1beta1.Truncate(output.Error(), maxJQError))
		case bool:
			if output {
				return true, nil
			}
			booleans++
		}
		if ok {
			continue
		}
		if booleans == 0 {
			return false, errNoBoolean
		}
		return false, nil
	}
}
