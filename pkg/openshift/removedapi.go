// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
)

// apisPage is how many APIRequestCounts are read at once: one of a busy API has hundreds of kilobytes.
const apisPage = 100

// RemovedAPI is an API that is going to be removed, and who used it in the last 24 hours.
type RemovedAPI struct {
	// Name is that of the APIRequestCount: resource.version.group.
	Name string
	// RemovedIn is the first minor version of Kubernetes that does not serve it.
	RemovedIn string
	// Clients that are known, in order.
	Clients []APIClient
	// OtherClients is set if there were more: the API server names only those with the most requests to each of its
	// instances.
	OtherClients bool
}

// APIClient is who sent requests.
type APIClient struct{ User, Agent string }

func (c APIClient) compare(d APIClient) int {
	return cmp.Or(cmp.Compare(c.User, d.User), cmp.Compare(c.Agent, d.Agent))
}

// RemovedAPIs returns the APIs that are going to be removed and were used in the last 24 hours, in order of name, as of
// at most maxAge ago. They are shared and must not be changed.
func (c *Cluster) RemovedAPIs(ctx context.Context, now time.Time, maxAge time.Duration) ([]RemovedAPI, error) {
	return c.removedAPIs.Get(ctx, now, maxAge, func(ctx context.Context) ([]RemovedAPI, error) {
		var all []RemovedAPI
		_, err := listPages(ctx, c.live, apisPage, func(page *apiserverv1.APIRequestCountList) bool {
			for i := range page.Items {
				if api, used := removedAPI(&page.Items[i]); used {
					all = append(all, api)
				}
			}
			return false
		})
		if err != nil {
			return nil, fmt.Errorf("list APIRequestCounts: %w", err)
		}
		slices.SortFunc(all, func(a, b RemovedAPI) int { return cmp.Compare(a.Name, b.Name) })
		return all, nil
	})
}

// removedAPI returns who used an API, and false if it stays or nobody did.
func removedAPI(count *apiserverv1.APIRequestCount) (RemovedAPI, bool) {
	api := RemovedAPI{Name: count.Name, RemovedIn: count.Status.RemovedInRelease}
	if api.RemovedIn == "" {
		return api, false
	}
	// The current hour is among the last 24, or will be in a moment. Who is counted twice is named once.
	api.add(&count.Status.CurrentHour)
	for i := range count.Status.Last24h {
		api.add(&count.Status.Last24h[i])
	}
	slices.SortFunc(api.Clients, APIClient.compare)
	api.Clients = slices.Compact(api.Clients)
	return api, len(api.Clients) > 0 || api.OtherClients
}

// add adds the clients of an hour.
func (a *RemovedAPI) add(hour *apiserverv1.PerResourceAPIRequestLog) {
	ofHour := hour.RequestCount
	for i := range hour.ByNode {
		node := &hour.ByNode[i]
		ofHour -= node.RequestCount
		ofNode := node.RequestCount
		for j := range node.ByUser {
			user := &node.ByUser[j]
			ofNode -= user.RequestCount
			if user.RequestCount > 0 {
				a.Clients = append(a.Clients, APIClient{user.UserName, user.UserAgent})
			}
		}
		a.OtherClients = a.OtherClients || ofNode > 0
	}
	a.OtherClients = a.OtherClients || ofHour > 0
}
