// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ranLimit keeps a pod's annotations, of which Kubernetes takes 256 KiB in all,
// within bounds.
const ranLimit = 200 << 10

// describeRun returns AnnotationRan for the containers of a pod.
func describeRun(spec *corev1.PodSpec) (string, error) {
	ran := map[string]Ran{}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for _, c := range containers {
			env := environmentOf(c.Env)
			ran[c.Name] = Ran{Command: expandAll(c.Command, env), Args: expandAll(c.Args, env), Env: env}
		}
	}
	text, err := json.Marshal(ran)
	if err != nil || len(text) <= ranLimit {
		return string(text), err
	}
	for name, r := range ran {
		r.Env, r.Omitted = nil, fmt.Sprintf("env: all of it would take %d bytes here", len(text))
		ran[name] = r
	}
	if text, err = json.Marshal(ran); err != nil || len(text) <= ranLimit {
		return string(text), err
	}
	for name := range ran {
		ran[name] = Ran{Omitted: fmt.Sprintf("command, args and env: without env they would take %d bytes here", len(text))}
	}
	text, err = json.Marshal(ran)
	return string(text), err
}

// environmentOf resolves a container's variables as the kubelet does: in order,
// each one with those before it.
func environmentOf(vars []corev1.EnvVar) map[string]string {
	env := map[string]string{}
	for _, v := range vars {
		if v.ValueFrom == nil {
			env[v.Name] = expand(v.Value, env)
		}
	}
	return env
}

// expandAll resolves the references in each of the texts.
func expandAll(texts []string, env map[string]string) []string {
	var expanded []string
	for _, text := range texts {
		expanded = append(expanded, expand(text, env))
	}
	return expanded
}

// expand replaces each reference $(VAR) by the variable's value. One that there
// is no variable for stays as it is, and $$ is a $ that begins no reference.
func expand(text string, env map[string]string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		name, rest, closed := strings.Cut(strings.TrimPrefix(after, "("), ")")
		switch value, known := env[name]; {
		case strings.HasPrefix(after, "$"):
			out.WriteString("$")
			text = after[1:]
		case !strings.HasPrefix(after, "(") || !closed:
			out.WriteString("$")
			text = after
		case !known:
			out.WriteString("$(" + name + ")")
			text = rest
		default:
			out.WriteString(value)
			text = rest
		}
	}
}
