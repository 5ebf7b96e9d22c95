// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// problem is why something cannot be used.
type problem struct {
	// Reason is the one that the operator would give in the condition Ready, where it would.
	Reason string `json:"reason"`
	// Message explains it to people.
	Message string `json:"message"`
}

// Reasons that are not the operator's.
const (
	reasonNotDecoded = "NotDecoded"
	reasonRefused    = "Refused"
)

// previewFile is what a file has for a preview.
type previewFile struct {
	name      string
	configs   []v1beta1.UpgradeConfig
	windows   []v1beta1.UpgradeSuspensionWindow
	hooks     []v1beta1.UpgradeJobHook
	upgraders []v1beta1.Upgrader
	problems  []problem
	notes     []string
}

// maxFileBytes bounds what is read of a file.
const maxFileBytes = 16 << 20

// readPreviewFile reads a file, or stdin for "-". What cannot be decoded is among its problems.
func (t *tool) readPreviewFile(name string) (*previewFile, error) {
	reader := t.In
	if name != "-" {
		file, err := os.Open(name) //nolint:gosec // the user names the file
		if err != nil {
			return nil, fmt.Errorf("read the file: %w", err)
		}
		defer file.Close()
		reader = file
	}
	content, err := io.ReadAll(io.LimitReader(reader, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(content) > maxFileBytes {
		return nil, fmt.Errorf("read %s: it is longer than %d MiB", name, maxFileBytes>>20)
	}
	namespace, err := t.namespace()
	if err != nil {
		namespace = "default"
	}
	return decodePreviewFile(name, namespace, content)
}

// decodePreviewFile reads the documents of a file. Objects without a namespace are in the given one.
func decodePreviewFile(name, namespace string, content []byte) (*previewFile, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	file := &previewFile{name: name}
	decoder := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme, jsonserializer.SerializerOptions{Yaml: true, Strict: true})
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		file.add(decoder, fmt.Sprintf("document %d", number), namespace, document)
	}
	if len(file.configs)+len(file.problems)+len(file.notes) == 0 {
		return nil, fmt.Errorf("%s has no UpgradeConfig in it", name)
	}
	return file, nil
}

// add takes up one document, or the items of a list.
func (f *previewFile) add(decoder runtime.Decoder, place, namespace string, document []byte) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if err := yaml.Unmarshal(document, &head); err != nil {
		f.notDecoded("%s is no YAML of an object: %v", place, err)
		return
	}
	group, _, _ := strings.Cut(head.APIVersion, "/")
	if head.Metadata.Name != "" {
		place += fmt.Sprintf(" (%s %s)", head.Kind, head.Metadata.Name)
	}
	switch {
	case head.Kind == "" && head.APIVersion == "": // comments between documents
	case head.Kind == "List":
		for i, item := range head.Items {
			f.add(decoder, fmt.Sprintf("%s, item %d", place, i+1), namespace, item)
		}
	case group == v1alpha1.GroupVersion.Group && head.Kind == "UpgradeConfig":
		f.addManaged(decoder, place, document)
	case group == v1beta1.GroupVersion.Group:
		f.addOurs(decoder, place, namespace, document)
	default:
		f.notes = append(f.notes, fmt.Sprintf("%s is a %s of %s, which is not looked at", place, head.Kind, head.APIVersion))
	}
}

// notDecoded notes what cannot be read.
func (f *previewFile) notDecoded(format string, values ...any) {
	f.problems = append(f.problems, problem{reasonNotDecoded, fmt.Sprintf(format, values...)})
}

// addOurs takes up an object of ours. What is unknown in it is a problem, and does not keep the rest from being judged.
func (f *previewFile) addOurs(decoder runtime.Decoder, place, namespace string, document []byte) {
	object, _, err := decoder.Decode(document, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		f.notDecoded("%s: the operator does not know that version or kind: want %s", place, v1beta1.GroupVersion)
		return
	}
	if err != nil {
		f.notDecoded("%s: %s", place, strings.TrimPrefix(err.Error(), "strict decoding error: "))
	}
	if object == nil || (err != nil && !runtime.IsStrictDecodingError(err)) {
		return
	}
	if namespaced, ok := object.(client.Object); ok && namespaced.GetNamespace() == "" {
		namespaced.SetNamespace(namespace)
	}
	switch o := object.(type) {
	case *v1beta1.UpgradeConfig:
		f.configs = append(f.configs, *o)
	case *v1beta1.UpgradeSuspensionWindow:
		f.windows = append(f.windows, *o)
	case *v1beta1.UpgradeJobHook:
		f.hooks = append(f.hooks, *o)
	case *v1beta1.Upgrader:
		f.upgraders = append(f.upgraders, *o)
	default:
		f.notes = append(f.notes, fmt.Sprintf("%s is a %T, which is not looked at", place, object))
	}
}

// addManaged tells of an object of the Managed Upgrade Operator: it has no schedule.
func (f *previewFile) addManaged(decoder runtime.Decoder, place string, document []byte) {
	object, _, err := decoder.Decode(document, nil, nil)
	managed, ok := object.(*v1alpha1.UpgradeConfig)
	if err != nil || !ok {
		f.notDecoded("%s: %s", place, strings.TrimPrefix(fmt.Sprint(err), "strict decoding error: "))
		return
	}
	to := managed.Spec.Desired.Version
	if to == "" {
		to = managed.Spec.Desired.Image
	}
	note := fmt.Sprintf("%s is an UpgradeConfig of the Managed Upgrade Operator (%s): it asks for one upgrade, to %s at %s by upgrader %s, and has no schedule to preview. "+
		"The operator carries it out as it is", place, managed.APIVersion, to, managed.Spec.UpgradeAt, managed.Spec.Type)
	if managed.Name != v1alpha1.UpgradeConfigName {
		note += fmt.Sprintf(", but only under the name %s", v1alpha1.UpgradeConfigName)
	}
	f.notes = append(f.notes, note)
}

// dryRun has the API server validate a config as if it were new, and creates nothing. It says why that could not be done.
func dryRun(ctx context.Context, c client.Client, config *v1beta1.UpgradeConfig) (problems []problem, leftOut string) {
	const rules = "the rules of the CRD and of admission"
	trial := config.DeepCopy()
	trial.Name, trial.GenerateName, trial.ResourceVersion, trial.UID = "", "preview-", "", "" // there may be one of the name
	err := c.Create(ctx, trial, client.DryRunAll, fieldOwner)
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil, ""
	case meta.IsNoMatchError(err):
		return nil, rules + ": the cluster does not have the CRDs of the operator"
	case apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "denied"):
		return nil, fmt.Sprintf("%s: you may not create UpgradeConfigs in namespace %s, not even in a dry run", rules, config.Namespace)
	case apierrors.IsNotFound(err):
		return nil, fmt.Sprintf("%s: %v", rules, err)
	case apierrors.IsInvalid(err) && errors.As(err, &status) && status.Status().Details != nil && len(status.Status().Details.Causes) > 0:
		for _, cause := range status.Status().Details.Causes {
			problems = append(problems, problem{reasonRefused, strings.TrimPrefix(cause.Field+": ", ": ") + cause.Message})
		}
		return problems, ""
	case errors.As(err, &status):
		return []problem{{reasonRefused, err.Error()}}, ""
	}
	return nil, fmt.Sprintf("%s: %v", rules, err)
}
