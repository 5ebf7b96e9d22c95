// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiserverv1 "github.com/openshift/api/apiserver/v1"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

func TestRemovedAPIs(t *testing.T) {
	const name, removedIn = "flowschemas.v1beta3.flowcontrol.apiserver.k8s.io", "1.32"
	eve, bob := openshift.APIClient{User: "eve", Agent: "kubectl/v1.28.2"}, openshift.APIClient{User: "bob", Agent: "oc/4.14.0"}
	at := func(hour int, node string, c openshift.APIClient) func(*apiserverv1.APIRequestCount) {
		return openshifttest.RequestsAt(hour, node, c.User, c.Agent, 7)
	}
	used := func(others bool, clients ...openshift.APIClient) []openshift.RemovedAPI {
		return []openshift.RemovedAPI{{Name: name, RemovedIn: removedIn, Clients: clients, OtherClients: others}}
	}
	type options = []func(*apiserverv1.APIRequestCount)
	for _, tc := range []struct {
		reason string
		count  options
		want   []openshift.RemovedAPI
	}{
		{reason: "nobody uses it"},
		{reason: "an API that stays", count: options{at(3, "master-0", eve), func(c *apiserverv1.APIRequestCount) { c.Status.RemovedInRelease = "" }}},
		{reason: "a client", count: options{at(3, "master-0", eve)}, want: used(false, eve)},
		{
			reason: "each client once, in order, whatever the hour and the instance",
			count:  options{at(23, "master-1", eve), at(0, "master-0", eve), at(3, "master-0", bob)}, want: used(false, bob, eve),
		},
		{
			reason: "one user with two agents is two clients",
			count:  options{at(3, "master-0", eve), openshifttest.RequestsAt(3, "master-0", "eve", "curl/8.6.0", 1)},
			want:   used(false, openshift.APIClient{User: "eve", Agent: "curl/8.6.0"}, eve),
		},
		{reason: "the current hour, before it is copied to the day", count: options{openshifttest.RequestsNow("master-0", eve.User, eve.Agent, 1)}, want: used(false, eve)},
		{reason: "who asked for nothing is no client", count: options{openshifttest.RequestsAt(3, "master-0", "eve", "kubectl/v1.28.2", 0)}},
		{reason: "requests of nobody who is named", count: options{openshifttest.UnnamedRequestsAt(3, "master-0", 1)}, want: used(true)},
		{reason: "beside others", count: options{at(3, "master-0", eve), openshifttest.UnnamedRequestsAt(3, "master-0", 1)}, want: used(true, eve)},
		{
			reason: "an instance that counts more does not make up for another", want: used(true, eve),
			count: options{openshifttest.UnnamedRequestsAt(3, "master-0", 1), at(3, "master-1", eve), func(c *apiserverv1.APIRequestCount) {
				c.Status.Last24h[3].ByNode[1].RequestCount-- // the list of users is imprecise after a restart
			}},
		},
		{
			reason: "requests to instances that are not listed", want: used(true),
			count: options{func(c *apiserverv1.APIRequestCount) { c.Status.Last24h[3].RequestCount = 1 }},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			api := newAPI(openshifttest.APIRequestCount(name, removedIn, tc.count...))
			got, err := openshift.NewCluster(api, api).RemovedAPIs(t.Context(), now, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRemovedAPIsAreReadInPages(t *testing.T) {
	use := openshifttest.RequestsAt(3, "master-0", "eve", "kubectl/v1.28.2", 1)
	api := newAPI(openshifttest.APIRequestCount("c", "1.32", use), openshifttest.APIRequestCount("a", "1.32", use), openshifttest.APIRequestCount("b", "", use))
	got, err := openshift.NewCluster(api, openshifttest.Paged(api, 1)).RemovedAPIs(t.Context(), now, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range got {
		names = append(names, a.Name)
	}
	if diff := cmp.Diff([]string{"a", "c"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
