// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"context"
	_ "embed" // for the manifests
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sccManifests stand for the SecurityContextConstraints admission.
//
//go:embed scc.yaml
var sccManifests []byte

// annotationSCC names the constraints that a pod was admitted by.
const annotationSCC = "openshift.io/scc"

// securityContextConstraints installs what fills in the security contexts of
// pods, and returns once it does. An API server that serves no
// MutatingAdmissionPolicies goes without.
func (i *installation) securityContextConstraints(ctx context.Context) error {
	err := i.replaceAll(ctx, sccManifests)
	switch {
	case meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return fmt.Errorf("install the security context constraints: %w", err)
	}
	return i.awaitConstraints(ctx)
}

// replaceAll creates the objects of manifests, or makes those that exist the same.
func (i *installation) replaceAll(ctx context.Context, manifests []byte) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(obj); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a manifest: %w", err)
		}
		// Whichever version is served: they do not differ.
		mapping, err := i.client.RESTMapper().RESTMapping(obj.GroupVersionKind().GroupKind())
		if err != nil {
			return fmt.Errorf("look up %s: %w", obj.GetKind(), err)
		}
		obj.SetGroupVersionKind(mapping.GroupVersionKind)
		if err := i.replace(ctx, obj); err != nil {
			return err
		}
	}
}

// replace creates obj, or makes the one that exists the same.
func (i *installation) replace(ctx context.Context, obj *unstructured.Unstructured) error {
	err := i.client.Create(ctx, obj.DeepCopy())
	if !apierrors.IsAlreadyExists(err) {
		return wrap(err, "create", obj)
	}
	have := &unstructured.Unstructured{}
	have.SetGroupVersionKind(obj.GroupVersionKind())
	if err := i.client.Get(ctx, client.ObjectKeyFromObject(obj), have); err != nil {
		return wrap(err, "read", obj)
	}
	next := have.DeepCopy()
	next.Object["spec"] = obj.DeepCopy().Object["spec"]
	if equality.Semantic.DeepEqual(have, next) {
		return nil
	}
	return wrap(i.client.Update(ctx, next), "update", obj)
}

func wrap(err error, act string, obj *unstructured.Unstructured) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s %s: %w", act, obj.GetKind(), obj.GetName(), err)
}

// awaitConstraints waits until the API server has taken notice of the policy: it
// is asked what it would make of a pod.
func (i *installation) awaitConstraints(ctx context.Context) error {
	// Without an account of its own it would depend on a controller.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "probe"}}
	if err := i.client.Create(ctx, account); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create ServiceAccount %s/%s: %w", Namespace, account.Name, err)
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		probe := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "probe"},
			Spec: corev1.PodSpec{
				ServiceAccountName: account.Name,
				Containers:         []corev1.Container{{Name: "probe", Image: "probe"}},
			},
		}
		last = i.client.Create(ctx, probe, client.DryRunAll)
		return last == nil && probe.Annotations[annotationSCC] != "", nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("wait for the security context constraints: %w", err), last)
	}
	return nil
}
