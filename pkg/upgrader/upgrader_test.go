// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package upgrader_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/golang/mock/gomock"

	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	stepmocks "github.com/appuio/managed-upgrade-operator/pkg/steps/mocks"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader/mocks"
)

// variant returns an upgrader with steps of these conditions.
func variant(t *testing.T, name string, conditions ...string) upgrader.Upgrader {
	ctrl := gomock.NewController(t)
	var list []steps.Step
	for _, condition := range conditions {
		step := stepmocks.NewMockStep(ctrl)
		step.EXPECT().Condition().Return(condition).AnyTimes()
		list = append(list, step)
	}
	u := mocks.NewMockUpgrader(ctrl)
	u.EXPECT().Name().Return(name).AnyTimes()
	u.EXPECT().Steps().Return(list).AnyTimes()
	u.EXPECT().Finally().AnyTimes()
	return u
}

func TestRegistry(t *testing.T) {
	var registry upgrader.Registry
	first, second := variant(t, "First", "A", "B"), variant(t, "Second", "A")
	for _, u := range []upgrader.Upgrader{first, second, upgrader.OpenShift()} {
		if err := registry.Register(u); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]upgrader.Upgrader{"First": first, "Second": second} {
		if got, err := registry.Get(name); got != want || err != nil {
			t.Errorf("Get(%s): got %v, %v", name, got, err)
		}
	}
}

func TestRegistryRefuses(t *testing.T) {
	for _, tc := range []struct {
		reason string
		second func(*testing.T) upgrader.Upgrader
		says   string
	}{
		{"a name that is taken", func(t *testing.T) upgrader.Upgrader { return variant(t, "First", "B") }, `register upgrader "First": the name is taken`},
		{"two steps with one condition", func(t *testing.T) upgrader.Upgrader { return variant(t, "Second", "B", "C", "B") }, `register upgrader "Second": two steps have condition B`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var registry upgrader.Registry
			first := variant(t, "First", "A")
			if err := registry.Register(first); err != nil {
				t.Fatal(err)
			}
			if err := registry.Register(tc.second(t)); err == nil || err.Error() != tc.says {
				t.Errorf("got %v, want %q", err, tc.says)
			}
			if got, err := registry.Get("First"); got != first || err != nil {
				t.Errorf("the one before is lost: got %v, %v", got, err)
			}
			if _, err := registry.Get("Second"); err == nil {
				t.Error("what was refused can be chosen")
			}
		})
	}
}

func TestRegistryNamesWhatThereIs(t *testing.T) {
	var registry upgrader.Registry
	if u, err := registry.Get("OpenShift"); u != nil || err == nil {
		t.Errorf("empty: got %v, %v", u, err)
	}
	for _, name := range []string{"OSD", "ARO", "OpenShift"} {
		if err := registry.Register(variant(t, name)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := registry.Get("Kubeadm")
	if err == nil || !strings.Contains(err.Error(), `"Kubeadm"; known: ARO, OSD, OpenShift`) {
		t.Errorf("got %v", err)
	}
}

func TestRegistryNamesTheSteps(t *testing.T) {
	var registry upgrader.Registry
	if got := registry.Conditions(); len(got) > 0 {
		t.Errorf("empty: got %v", got)
	}
	for _, u := range []upgrader.Upgrader{variant(t, "First", "C", "A"), variant(t, "Second", "B", "A"), variant(t, "Third")} {
		if err := registry.Register(u); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := registry.Conditions(), []string{"A", "B", "C"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
