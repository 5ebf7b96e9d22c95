// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// Bounds of an environment. Linux takes 128 KiB for a variable and some 2 MiB for all, arguments included; the API server
// takes 1.5 MiB for a Job, which may have ten containers with an environment each.
const (
	maxVariable    = 64 << 10
	maxEnvironment = 128 << 10
)

// Bounds of texts, in bytes.
const (
	// maxMessage is for the message of an event; conditions have less.
	maxMessage = 2 * v1beta1.MaxMessageLength
	// maxWord is for names and reasons, and for every text of a job that is cut to the last.
	maxWord = 256
	// bigAnnotation is what no hook reads from its environment.
	bigAnnotation = 4 << 10
	// maxBigAnnotations is how many annotations are left out each by itself.
	maxBigAnnotations = 8
)

// copies are annotations in which tools keep the manifest of an object, or what they applied of it: with everything that
// is left out here.
var copies = []string{
	corev1.LastAppliedConfigAnnotation,
	"kapp.k14s.io/original",
	"objectset.rio.cattle.io/applied",
}

// fieldsOfJob returns the fields of a job that hooks may read. URLs and Secrets of receivers are none of their business.
func fieldsOfJob(job *v1beta1.UpgradeJob) (map[string]any, error) {
	text, err := encode(job)
	if err != nil {
		return nil, fmt.Errorf("encode UpgradeJob %s: %w", job.Name, err)
	}
	fields := map[string]any{}
	if err := decode(text, &fields); err != nil {
		return nil, fmt.Errorf("read UpgradeJob %s: %w", job.Name, err)
	}
	fields["apiVersion"], fields["kind"] = v1beta1.GroupVersion.String(), "UpgradeJob" // the cache leaves them out
	for _, path := range [][]string{
		{"metadata", "managedFields"},
		{"spec", "config", "notifications"},
		{"status", "notifications"},
	} {
		remove(fields, path...)
	}
	for _, annotation := range copies {
		remove(fields, "metadata", "annotations", annotation)
	}
	return fields, nil
}

// fit tells whether an environment keeps within its bounds.
func fit(variables []corev1.EnvVar) bool {
	total := 0
	for _, v := range variables {
		size := len(v.Name) + len(v.Value) + 2 // the equals sign and the end
		if size > maxVariable {
			return false
		}
		total += size
	}
	return total <= maxEnvironment
}

// cuts make a job smaller, one after the other until its environment fits. Each returns the paths of what it took.
// First goes what hooks can do without.
var cuts = []func(job map[string]any) []string{
	removeBigAnnotations,
	removal("status", "hookTracker"),
	removal("status", "steps"),
	removal("status", "resumedRequests"),
	shortening("status", "conditions", "message"),
	shortening("status", "blockers", "message"),
	shortening("status", "blockers", "clearsWhen"),
	removal("metadata", "annotations"),
	removal("metadata", "ownerReferences"),
	removal("metadata", "finalizers"),
	removal("status", "blockers"),
	removal("spec", "config"),
	removal("metadata", "labels"),
	removal("status", "conditions"),
	keepEssentials,
}

func removal(path ...string) func(map[string]any) []string {
	return func(job map[string]any) []string {
		if !remove(job, path...) {
			return nil
		}
		return []string{pathOf(path...)}
	}
}

// remove takes a field out, and tells whether there was one. Objects that it leaves empty go too.
func remove(fields map[string]any, path ...string) bool {
	if len(path) == 0 {
		return false
	}
	name, rest := path[0], path[1:]
	if len(rest) == 0 {
		_, ok := fields[name]
		delete(fields, name)
		return ok
	}
	child, _ := fields[name].(map[string]any)
	removed := remove(child, rest...)
	if removed && len(child) == 0 {
		delete(fields, name)
	}
	return removed
}

// removeBigAnnotations leaves out whole annotations: half of one would only mislead.
func removeBigAnnotations(job map[string]any) []string {
	metadata, _ := job["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	var big []string
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if text, _ := annotations[key].(string); len(text) > bigAnnotation {
			big = append(big, key)
		}
	}
	if len(big) > maxBigAnnotations {
		return removal("metadata", "annotations")(job)
	}
	var paths []string
	for _, key := range big {
		remove(job, "metadata", "annotations", key)
		paths = append(paths, pathOf("metadata", "annotations", key))
	}
	return paths
}

// shortening shortens a text in each element of a list.
func shortening(parent, list, field string) func(map[string]any) []string {
	return func(job map[string]any) []string {
		object, _ := job[parent].(map[string]any)
		elements, _ := object[list].([]any)
		var paths []string
		for _, element := range elements {
			entry, _ := element.(map[string]any)
			if text, _ := entry[field].(string); len(text) > maxWord {
				entry[field] = v1beta1.Truncate(text, maxWord)
				paths = []string{pathOf(parent, list, "*", field)}
			}
		}
		return paths
	}
}

// essentials is what tells a job, and what it is about.
var essentials = map[string][]string{
	"metadata": {"name", "namespace", "uid"},
	"spec":     {"startAfter", "startBefore", "desiredVersion"},
	"status":   {"phase", "fromVersion"},
}

// keepEssentials leaves so little of a job that it fits for certain. None that the API server takes comes this far today.
func keepEssentials(job map[string]any) []string {
	for part, names := range essentials {
		object, _ := job[part].(map[string]any)
		maps.DeleteFunc(object, func(name string, _ any) bool { return !slices.Contains(names, name) })
	}
	shortenTexts(job)
	return []string{jobVariable}
}

func shortenTexts(fields map[string]any) {
	for key, value := range fields {
		switch value := value.(type) {
		case string:
			fields[key] = v1beta1.Truncate(value, maxWord)
		case map[string]any:
			shortenTexts(value)
		}
	}
}

func pathOf(path ...string) string {
	return v1beta1.Truncate(jobVariable+"."+strings.Join(path, "."), 2*maxWord) // the key of an annotation may be longer than a word
}
