// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// RemovedAPIs finds the APIs that were used in the last 24 hours and that the Kubernetes version of the target does not
// serve any more. It matters for an update to another minor version only.
func RemovedAPIs() Check { return removedAPIs{} }

type removedAPIs struct{}

// ignoredClients use whatever API there is, and get along without it. A client is one of them if it is the user, or its
// agent begins so.
var ignoredClients = []struct{ user, agent, why string }{
	{user: "system:serviceaccount:kube-system:generic-garbage-collector", why: "the garbage collector lists every API"},
	{user: "system:serviceaccount:kube-system:namespace-controller", why: "the namespace controller lists every API"},
	{user: "system:kube-controller-manager", why: "the kube-controller-manager lists every API for quotas"},
	{user: "system:cluster-policy-controller", why: "the cluster-policy-controller lists every API for quotas"},
	{agent: "cluster-policy-controller/", why: "the cluster-policy-controller lists every API for quotas"},
	{agent: "velero/", why: "Velero backs up every API"},
	{agent: "velero-server/", why: "Velero backs up every API"},
	{agent: "insights-operator/", why: "the insights operator looks at every API"},
}

func (removedAPIs) Name() string { return "RemovedAPIs" }

func (r removedAPIs) Run(ctx context.Context, request Request) (Report, error) {
	target, minor := minorUpdate(request)
	switch {
	case !enabled(request.Config.CheckRemovedAPIs):
		return Report{Skipped: skippedOff}, nil
	case !minor:
		return Report{Skipped: skippedMinor}, nil
	}
	kubernetes, notes, err := kubernetesOf(target, request.Config.KubernetesVersion)
	if err != nil {
		return Report{}, err
	}
	apis, err := request.Cluster.RemovedAPIs(ctx, request.Now, request.MaxAge)
	if err != nil {
		return Report{}, err
	}
	report := Report{Notes: notes, Recheck: request.MaxAge}
	for i := range apis {
		api := &apis[i]
		removed, err := openshift.ParseKubernetesVersion(api.RemovedIn)
		if err != nil {
			return report, fmt.Errorf("removedInRelease of APIRequestCount/%s: %w", api.Name, err)
		}
		if removed.Compare(kubernetes) > 0 {
			continue
		}
		clients, why := withoutIgnored(api.Clients)
		if len(clients) == 0 && !api.OtherClients {
			report.Notes = append(report.Notes, fmt.Sprintf("requests for %s are ignored: %s", api.Name, strings.Join(why, ", ")))
			continue
		}
		report.Findings = append(report.Findings, Finding{
			Object: "APIRequestCount/" + api.Name,
			Reason: "RemovedAPIInUse",
			Message: fmt.Sprintf("API %s is removed in Kubernetes %s, %s has Kubernetes %s, and it was used in the last 24 hours by %s",
				api.Name, removed, target, kubernetes, describeClients(clients, api.OtherClients)),
			ClearsWhen: fmt.Sprintf("nobody but ignored clients has used API %s for 24 hours", api.Name),
		})
	}
	return report, nil
}

// kubernetesOf returns the Kubernetes version of the target. What is configured may be of an earlier target: where it
// differs from what follows from the version, the higher of both counts, and a note says so.
func kubernetesOf(target openshift.Release, configured string) (v openshift.KubernetesVersion, notes []string, err error) {
	follows, ok := target.Kubernetes()
	if configured == "" {
		if !ok {
			err = fmt.Errorf("the Kubernetes version of %s is not known: set preUpgradeHealthChecks.kubernetesVersion", target)
		}
		return follows, nil, err
	}
	v, err = openshift.ParseKubernetesVersion(configured)
	if err != nil || !ok || v == follows {
		return v, nil, err
	}
	notes = []string{fmt.Sprintf("kubernetesVersion is %s, but %s has Kubernetes %s: the higher one counts", v, target, follows)}
	if follows.Compare(v) > 0 {
		v = follows
	}
	return v, notes, nil
}

// withoutIgnored returns the clients that count, and why the others do not.
func withoutIgnored(all []openshift.APIClient) (clients []openshift.APIClient, why []string) {
	for _, c := range all {
		i := slices.IndexFunc(ignoredClients, func(ignored struct{ user, agent, why string }) bool {
			return (ignored.user != "" && c.User == ignored.user) || (ignored.agent != "" && strings.HasPrefix(c.Agent, ignored.agent))
		})
		switch {
		case i < 0:
			clients = append(clients, c)
		case !slices.Contains(why, ignoredClients[i].why):
			why = append(why, ignoredClients[i].why)
		}
	}
	return clients, why
}

// describeClients names the first clients. It does not count the others: their number changes from hour to hour.
func describeClients(clients []openshift.APIClient, others bool) string {
	const named, agentLength = 5, 80
	var names []string
	for _, c := range clients {
		names = append(names, fmt.Sprintf("%s (%s)", c.User, v1beta1.Truncate(c.Agent, agentLength)))
	}
	names = slices.Compact(names)
	if len(names) == 0 {
		return "clients that the API server does not name"
	}
	if others || len(names) > named {
		names = append(names[:min(named, len(names))], "other clients")
	}
	return strings.Join(names, ", ")
}
