// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// Names of the variables that hold everything, and what the names of their fields begin with.
const (
	eventVariable = "EVENT"
	jobVariable   = "JOB"
	metaVariable  = "META"
)

// Meta tells a hook what neither the event nor the job does.
type Meta struct {
	// MatchesDisruptiveHooks tells whether a hook of the job, maybe another one, is disruptive.
	MatchesDisruptiveHooks bool `json:"matchesDisruptiveHooks"`
	// Truncated are the paths of what was too big for the environment, and is left out or shortened.
	Truncated []string `json:"truncated,omitempty"`
	// Ambiguous are the variables that more than one field would have, e.g. those of the labels a.b and a-b. They have
	// the field whose path sorts first. At most 16 are named.
	Ambiguous []string `json:"ambiguous,omitempty"`
}

const maxAmbiguous = 16

// eventFields is an Event as hooks read it.
type eventFields struct {
	Name    v1beta1.HookEvent `json:"name"`
	Reason  string            `json:"reason"`
	Time    string            `json:"time"`
	Message string            `json:"message"`
	Pool    string            `json:"pool,omitempty"`
	Step    string            `json:"step,omitempty"`
}

// Environment returns what the containers of a hook learn of the event and of the job: EVENT, JOB and META, which are
// JSON, and a variable for each field of these, which is JSON too. The variables are sorted by name, and never have a
// secret in them. A job that is too big for an environment is cut, and META says what is missing.
func Environment(event Event, job *v1beta1.UpgradeJob, meta Meta) ([]corev1.EnvVar, error) {
	fields, err := fieldsOfJob(job)
	if err != nil {
		return nil, err
	}
	meta.Truncated, meta.Ambiguous = slices.Clone(meta.Truncated), slices.Clone(meta.Ambiguous) // the caller's are not written to
	described := describe(event, &meta)
	for _, cut := range cuts {
		if variables, err := variablesOf(described, fields, meta); err != nil || fit(variables) {
			return variables, err
		}
		meta.Truncated = append(meta.Truncated, cut(fields)...)
	}
	return variablesOf(described, fields, meta)
}

// Inject gives the environment to every container of the template. The user's own variables come after: they may refer
// to ours, and win over them.
func Inject(template *batchv1.JobTemplateSpec, env []corev1.EnvVar) {
	pod := &template.Spec.Template.Spec
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			containers[i].Env = slices.Concat(env, containers[i].Env)
		}
	}
}

// describe returns the event as hooks read it. Each text of it stands in the environment three times.
func describe(event Event, meta *Meta) eventFields {
	bounded := func(field, text string, limit int) string {
		if len(text) > limit {
			meta.Truncated = append(meta.Truncated, eventVariable+"."+field)
		}
		return v1beta1.Truncate(text, limit)
	}
	return eventFields{
		Name:    v1beta1.HookEvent(bounded("name", string(event.Name), maxWord)),
		Reason:  bounded("reason", event.Reason, maxWord),
		Time:    event.Time.UTC().Format(time.RFC3339),
		Message: bounded("message", event.Message, maxMessage),
		Pool:    bounded("pool", event.Pool, maxWord),
		Step:    bounded("step", event.Name.Step(), maxWord),
	}
}

// variablesOf lists the variables with everything that is left of the job.
func variablesOf(event eventFields, job map[string]any, meta Meta) ([]corev1.EnvVar, error) {
	values := map[string]string{}
	if err := add(values, eventVariable, event, nil); err != nil {
		return nil, err
	}
	for _, name := range []string{"name", "reason", "time", "message"} {
		values[eventVariable+"_"+strings.ToUpper(name)] = values[eventVariable+"_"+name]
	}
	if err := add(values, jobVariable, job, &meta); err != nil {
		return nil, err
	}
	if err := add(values, metaVariable, meta, nil); err != nil {
		return nil, err
	}
	variables := make([]corev1.EnvVar, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		variables = append(variables, corev1.EnvVar{Name: name, Value: verbatim(values[name])})
	}
	return variables, nil
}

// verbatim writes a text so that the container gets just that. The kubelet expands $(NAME) in the value of a variable, and
// takes $$ for one dollar sign wherever it stands.
func verbatim(text string) string { return strings.ReplaceAll(text, "$", "$$") }

// add sets the variable of that name to the JSON of v, and one for each field of it. What is ambiguous it notes in meta.
func add(values map[string]string, name string, v any, meta *Meta) error {
	text, err := encode(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	values[name] = text
	tree, ok := v.(map[string]any)
	if !ok {
		if err := decode(text, &tree); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
	leaves := flatten(nil, []string{name}, tree)
	slices.SortFunc(leaves, func(a, b leaf) int { return slices.Compare(a.path, b.path) })
	for _, l := range leaves {
		variable := variableName(l.path)
		if _, taken := values[variable]; !taken {
			values[variable] = l.value
		} else if meta != nil && len(meta.Ambiguous) < maxAmbiguous && !slices.Contains(meta.Ambiguous, variable) {
			meta.Ambiguous = append(meta.Ambiguous, variable)
		}
	}
	return nil
}

// leaf is a field that has no fields.
type leaf struct {
	path  []string
	value string
}

// flatten appends the leaves of a JSON value, in no order. What is null is none.
func flatten(leaves []leaf, path []string, node any) []leaf {
	switch node := node.(type) {
	case nil:
	case map[string]any:
		for key, child := range node {
			leaves = flatten(leaves, append(slices.Clip(path), key), child)
		}
	case []any:
		for i, child := range node {
			leaves = flatten(leaves, append(slices.Clip(path), strconv.Itoa(i)), child)
		}
	default:
		text, _ := encode(node) // cannot fail for what was decoded
		leaves = append(leaves, leaf{path, text})
	}
	return leaves
}

// variableName is the name of a field's variable.
func variableName(path []string) string {
	return strings.Map(func(r rune) rune {
		if lower(r) || upper(r) || digit(r) {
			return r
		}
		return '_'
	}, strings.Join(path, "_"))
}

// encode returns the JSON of v in one line, in which <, > and & stay what they are.
func encode(v any) (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(text.String(), "\n"), nil
}

// decode reads JSON, and leaves numbers as they are written.
func decode(text string, v any) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(v)
}
