// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// named returns the one of objects that has the name, which may be given as namespace/name. The kind is for messages: "UpgradeJob". A name that nothing
// has, and one that several namespaces have, are errors that say what there is.
func named[T any, P interface {
	*T
	client.Object
}](kind string, objects []T, name string) (P, error) {
	var found []P
	known := make([]string, 0, len(objects))
	for i := range objects {
		object := P(&objects[i])
		full := object.GetNamespace() + "/" + object.GetName()
		known = append(known, full)
		if name == object.GetName() || name == full {
			found = append(found, object)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("several namespaces have a %s %q: give --namespace", kind, name)
	case len(known) == 0:
		return nil, fmt.Errorf("there is no %s %q, nor any other: look at the namespace (--namespace)", kind, name)
	}
	return nil, fmt.Errorf("there is no %s %q: there are %s", kind, name, strings.Join(known[:min(len(known), maxKnown)], ", "))
}

// maxKnown is how many names an error lists.
const maxKnown = 10
