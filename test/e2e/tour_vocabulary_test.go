// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/appuio/managed-upgrade-operator/test/controlplane"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/monitoring"
)

// access is what somebody asks the authorization of the cluster for.
type access struct {
	verb, group, resource, subresource, namespace, name string
}

func (a access) String() string {
	resource := strings.Trim(a.resource+"/"+a.subresource, "/")
	if a.group != "" {
		resource += "." + a.group
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", a.verb, resource, strings.Trim(a.namespace+"/"+a.name, "/")))
}

// accessOf returns what a request was judged by. When something is created its name is not.
func accessOf(request controlplane.AuditEvent) access {
	o := request.ObjectRef
	a := access{request.Verb, o.APIGroup, o.Resource, o.Subresource, o.Namespace, o.Name}
	if a.verb == "create" && a.subresource == "" {
		a.name = ""
	}
	return a
}

// subject is somebody whom the cluster knows.
type subject struct {
	name   string
	groups []string
}

// serviceAccount is the subject that has the token of a service account.
func serviceAccount(namespace, name string) subject {
	return subject{
		"system:serviceaccount:" + namespace + ":" + name,
		[]string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
}

var operatorItself = serviceAccount(environment.Namespace, "managed-upgrade-operator")

// may asks the cluster's authorization whether somebody may do something.
func (c *cluster) may(who subject, a access) bool {
	c.t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.name, Groups: who.groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: a.verb, Group: a.group, Resource: a.resource, Subresource: a.subresource, Namespace: a.namespace, Name: a.name,
		},
	}}
	if err := env.Client.Create(c.ctx, review); err != nil {
		c.t.Fatal(err)
	}
	return review.Status.Allowed
}

// monitoringProxies stand in front of Prometheus and Alertmanager, as kube-rbac-proxy does in OpenShift's monitoring: they ask the cluster
// who has a token, and whether that one may.
type monitoringProxies struct {
	tokenFile, caFile        string
	prometheus, alertmanager *monitoring.Gateway

	mutex sync.Mutex
	asked []access
}

// startMonitoringProxies starts the two, and puts down the operator's token, until the test ends.
func (c *cluster) startMonitoringProxies() *monitoringProxies {
	c.t.Helper()
	dir := c.t.TempDir()
	p := &monitoringProxies{tokenFile: filepath.Join(dir, "token"), caFile: filepath.Join(dir, "ca.crt")}
	// What kube-rbac-proxy is configured with there; the verb is that of the HTTP method.
	p.prometheus = c.startReviewed(env.Monitoring.Prometheus.URL(), p,
		access{group: "monitoring.coreos.com", resource: "prometheuses", subresource: "api", namespace: "openshift-monitoring", name: "k8s"})
	p.alertmanager = c.startReviewed(env.Monitoring.Alertmanager.URL(), p,
		access{group: "monitoring.coreos.com", resource: "alertmanagers", subresource: "api", namespace: "openshift-monitoring", name: "main"})
	token, err := env.ServiceAccountToken(c.ctx, environment.Namespace, "managed-upgrade-operator")
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(p.tokenFile, []byte(token))
	c.write(p.caFile, slices.Concat(p.prometheus.CA(), p.alertmanager.CA()))
	return p
}

func (c *cluster) startReviewed(backend string, p *monitoringProxies, wanted access) *monitoring.Gateway {
	c.t.Helper()
	started, err := monitoring.StartGateway(c.ctx, backend)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = started.Close() })
	verbs := map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodDelete: "delete"}
	started.SetReview(func(token string, r *http.Request) int {
		a := wanted
		a.verb = verbs[r.Method]
		return p.review(c, token, a)
	})
	return started
}

// review is called by a server of its own, also after the test has failed: it must not fail the test itself.
func (p *monitoringProxies) review(c *cluster, token string, a access) int {
	who := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := env.Client.Create(c.ctx, who); err != nil {
		return http.StatusInternalServerError
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.Status.User.Username, Groups: who.Status.User.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: a.verb, Group: a.group, Resource: a.resource, Subresource: a.subresource, Namespace: a.namespace, Name: a.name,
		},
	}}
	if err := env.Client.Create(c.ctx, review); err != nil {
		return http.StatusInternalServerError
	}
	if !review.Status.Allowed {
		return http.StatusForbidden
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if who.Status.User.Username == environment.OperatorUser && !slices.Contains(p.asked, a) {
		p.asked = append(p.asked, a)
	}
	return http.StatusOK
}

// accesses are those that the operator was granted, each once.
func (p *monitoringProxies) accesses() []access {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return slices.Clone(p.asked)
}

// flags lead the operator through the proxies.
func (p *monitoringProxies) flags() []string {
	return []string{
		"--prometheus-url=" + p.prometheus.URL(), "--alertmanager-url=" + p.alertmanager.URL(),
		"--monitoring-token-file=" + p.tokenFile, "--monitoring-ca-file=" + p.caFile,
	}
}
