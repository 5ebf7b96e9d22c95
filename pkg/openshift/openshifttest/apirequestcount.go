// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshifttest

import (
	apiserverv1 "github.com/openshift/api/apiserver/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// APIRequestCount returns the count of an API that nobody uses, by the name resource.version.group. It is removed in
// that minor version of Kubernetes, or in none if that is empty.
func APIRequestCount(name, removedIn string, options ...func(*apiserverv1.APIRequestCount)) *apiserverv1.APIRequestCount {
	count := &apiserverv1.APIRequestCount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	count.Spec.NumberOfUsersToReport = 10
	count.Status.RemovedInRelease = removedIn
	count.Status.Last24h = make([]apiserverv1.PerResourceAPIRequestLog, 24)
	for _, option := range options {
		option(count)
	}
	return count
}

// RequestsAt adds requests of a client to one of the last 24 hours, by the hour of the day.
func RequestsAt(hour int, node, user, agent string, requests int64) func(*apiserverv1.APIRequestCount) {
	return func(count *apiserverv1.APIRequestCount) {
		addRequests(&count.Status.Last24h[hour], node, user, agent, requests)
	}
}

// RequestsNow adds requests of a client to the current hour only.
func RequestsNow(node, user, agent string, requests int64) func(*apiserverv1.APIRequestCount) {
	return func(count *apiserverv1.APIRequestCount) {
		addRequests(&count.Status.CurrentHour, node, user, agent, requests)
	}
}

// UnnamedRequestsAt adds requests of clients that are not among those with the most requests.
func UnnamedRequestsAt(hour int, node string, requests int64) func(*apiserverv1.APIRequestCount) {
	return func(count *apiserverv1.APIRequestCount) { nodeRequests(&count.Status.Last24h[hour], node, requests) }
}

func addRequests(log *apiserverv1.PerResourceAPIRequestLog, node, user, agent string, requests int64) {
	of := nodeRequests(log, node, requests)
	of.ByUser = append(of.ByUser, apiserverv1.PerUserAPIRequestCount{
		UserName: user, UserAgent: agent, RequestCount: requests,
		ByVerb: []apiserverv1.PerVerbAPIRequestCount{{Verb: "list", RequestCount: requests}},
	})
}

func nodeRequests(log *apiserverv1.PerResourceAPIRequestLog, node string, requests int64) *apiserverv1.PerNodeAPIRequestLog {
	log.RequestCount += requests
	for i := range log.ByNode {
		if of := &log.ByNode[i]; of.NodeName == node {
			of.RequestCount += requests
			return of
		}
	}
	log.ByNode = append(log.ByNode, apiserverv1.PerNodeAPIRequestLog{NodeName: node, RequestCount: requests})
	return &log.ByNode[len(log.ByNode)-1]
}
