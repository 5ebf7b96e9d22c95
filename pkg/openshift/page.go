// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listPages lists objects in pages of that size and hands each page to see, until there is none left or see says that
// it has seen enough. Neither side has to hold all objects at once. It tells whether pages were left.
func listPages[T any, L interface {
	*T
	client.ObjectList
}](ctx context.Context, r client.Reader, size int64, see func(L) (enough bool), options ...client.ListOption) (left bool, err error) {
	next := ""
	for {
		page := L(new(T)) // a new one each time: what is decoded into an old one keeps what the new one does not have
		if err := r.List(ctx, page, append(options, client.Limit(size), client.Continue(next))...); err != nil {
			return false, err
		}
		next = page.GetContinue()
		if enough := see(page); enough || next == "" {
			return next != "", nil
		}
	}
}
