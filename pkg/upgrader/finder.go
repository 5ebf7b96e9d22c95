// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package upgrader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// ErrUnusable is wrapped by errors that are about the upgrader, and not about the way to it: there is none of the name, or its list cannot be used.
var ErrUnusable = errors.New("the upgrader cannot be used")

// Finder finds upgraders by name: those of the registry, and those that objects of kind Upgrader describe.
type Finder struct {
	// Registry has the upgraders that are built in. Required.
	Registry *Registry
	// Catalogue has the steps of those that are not. Nil: none can be used.
	Catalogue *Catalogue
	// Reader reads objects of kind Upgrader. Nil: there are none.
	Reader client.Reader
}

// Get returns the upgrader of that name; one that is built in wins. An error that wraps ErrUnusable says in its own words, which are for people, why there is none;
// any other is one of the reader.
func (f *Finder) Get(ctx context.Context, name string) (Upgrader, error) {
	builtIn, err := f.Registry.Get(name)
	if err == nil {
		return builtIn, nil
	}
	if f.Reader == nil {
		return nil, unusable{err}
	}
	if taken := f.taken(name); taken != "" {
		return nil, unusable{fmt.Errorf("%w: an object of kind Upgrader whose name differs from %s only by case does not count", err, taken)}
	}
	object := &v1beta1.Upgrader{}
	getErr := f.Reader.Get(ctx, client.ObjectKey{Name: name}, object)
	if apierrors.IsNotFound(getErr) {
		return nil, unusable{fmt.Errorf("%w, and no object of kind Upgrader has the name", err)}
	}
	if getErr != nil {
		return nil, fmt.Errorf("get Upgrader %s: %w", name, getErr)
	}
	variant, err := f.Catalogue.Declared(object)
	if err != nil {
		return nil, unusable{fmt.Errorf("Upgrader %s cannot be used: %w", name, err)}
	}
	return variant, nil
}

// For returns the upgrader of that name for a job with that config, as Get does. An upgrader that would not do what the config asks for cannot be used: one without
// MachineConfigPoolsPaused delays no pools.
func (f *Finder) For(ctx context.Context, name string, config *v1beta1.UpgradeJobConfig) (Upgrader, error) {
	variant, err := f.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	delays := slices.ContainsFunc(config.MachineConfigPools, func(p v1beta1.MachineConfigPoolConfig) bool { return p.DelayUpgrade != nil })
	pauses := slices.ContainsFunc(variant.Steps(), func(s steps.Step) bool { return s.Condition() == steps.ConditionMachineConfigPoolsPaused })
	if delays && !pauses {
		return nil, unusable{fmt.Errorf("upgrader %s has no step %s, so it cannot delay the pools that machineConfigPools delays", name, steps.ConditionMachineConfigPoolsPaused)}
	}
	return variant, nil
}

// Judge returns why no job can use the object, with the reason for its condition Ready; an empty one if jobs can.
func (f *Finder) Judge(object *v1beta1.Upgrader) (reason, message string) {
	if taken := f.taken(object.Name); taken != "" {
		return v1beta1.ReasonNameTaken, fmt.Sprintf("%s is built in; no job uses an Upgrader of that name, nor one whose name differs from it only by case.", taken)
	}
	if _, err := f.Catalogue.Declared(object); err != nil {
		return v1beta1.ReasonInvalidSteps, err.Error()
	}
	return "", ""
}

// taken returns the name of the upgrader that is built in which differs from name by case at most, so that nobody takes one for the other; empty if there is none.
func (f *Finder) taken(name string) string {
	for _, u := range f.Registry.All() {
		if strings.EqualFold(u.Name(), name) {
			return u.Name()
		}
	}
	return ""
}

// Finally returns the cleanup of the upgrader of that name. Where there is none any more it is that of the whole catalogue, so that nothing is left that
// its steps could hold; the error that says why, which wraps ErrUnusable, comes along. Any other error comes alone.
func (f *Finder) Finally(ctx context.Context, name string) ([]steps.Step, error) {
	variant, err := f.Get(ctx, name)
	switch {
	case err == nil:
		return variant.Finally(), nil
	case errors.Is(err, ErrUnusable):
		return f.Catalogue.Finally(), err
	}
	return nil, err
}

// Conditions returns the conditions of the steps of every upgrader that can be used, sorted, each once.
func (f *Finder) Conditions(ctx context.Context) ([]string, error) {
	all := f.Registry.Conditions()
	if f.Reader == nil {
		return all, nil
	}
	objects := &v1beta1.UpgraderList{}
	if err := f.Reader.List(ctx, objects); err != nil {
		return nil, fmt.Errorf("list Upgraders: %w", err)
	}
	for i := range objects.Items {
		if reason, _ := f.Judge(&objects.Items[i]); reason != "" {
			continue
		}
		for _, s := range objects.Items[i].Spec.Steps {
			all = append(all, s.Step)
		}
	}
	slices.SortFunc(all, strings.Compare)
	return slices.Compact(all), nil
}

// unusable is an error that wraps ErrUnusable without its words.
type unusable struct{ error }

func (u unusable) Unwrap() []error { return []error{u.error, ErrUnusable} }
