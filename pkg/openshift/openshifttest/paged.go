// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshifttest

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Paged returns a client that lists at most so many objects at a time, as the API server may do whatever the limit is,
// and in the reverse order of their names, because the API server promises none. A fake client knows no limits. It
// refuses a list without a limit.
func Paged(c client.WithWatch, size int) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			o := client.ListOptions{}
			o.ApplyOptions(opts)
			if o.Limit == 0 {
				return fmt.Errorf("%T is listed without a limit", list)
			}
			if err := c.List(ctx, list, opts...); err != nil {
				return err
			}
			return cut(list, o.Continue, min(size, int(o.Limit)))
		},
	})
}

// cut leaves of a list the page that the token is for.
func cut(list client.ObjectList, token string, size int) error {
	all, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	slices.Reverse(all)
	from := 0
	if token != "" {
		if from, err = strconv.Atoi(token); err != nil {
			return fmt.Errorf("continue with %q: %w", token, err)
		}
	}
	to := min(from+size, len(all))
	if to < len(all) {
		list.SetContinue(strconv.Itoa(to))
	}
	return meta.SetList(list, all[from:to])
}
