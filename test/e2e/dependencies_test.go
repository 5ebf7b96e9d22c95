// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// dependency is a server that an upgrade depends on.
type dependency struct {
	*httptest.Server
	status   atomic.Int32
	requests atomic.Int32
}

// aDependency starts one that is well, until the test ends.
func (c *cluster) aDependency() *dependency {
	d := &dependency{}
	d.status.Store(http.StatusOK)
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		d.requests.Add(1)
		w.WriteHeader(int(d.status.Load()))
	}))
	c.t.Cleanup(d.Close)
	return d
}

// asked is how often the server was asked.
func (d *dependency) asked() int { return int(d.requests.Load()) }

// A server that the cluster depends on is down: the upgrade waits, and goes on when it comes up. Nobody reads what may be secret in its
// address.
func TestUpgradeWaitsForExternalDependencies(t *testing.T) {
	const secret = "marker-of-the-query"
	c := newCluster(t)
	well, sick := c.aDependency(), c.aDependency()
	sick.status.Store(http.StatusNotFound) // which is not asked again at once
	running := c.startOperator()
	job := create(c, aJob(upgradedBy("OSD"), depending(well.URL, sick.URL+"/image?token="+secret)))
	c.wait(job, waitingIn(dependenciesThere, v1beta1.ReasonDependenciesUnavailable), blockers(1),
		blockedBy("ExternalDependencyUnavailable", sick.URL+"/image", "404"))
	if writes := c.desiredUpdateWrites(); len(writes) > 0 {
		t.Fatal("the cluster is upgraded without what it depends on")
	}
	sick.status.Store(http.StatusOK)
	running.Kill()
	c.startOperator() // which does not wait for the next time to look
	c.wait(job, succeeded(), withoutFinalizers())
	c.upgradedOnce(job)
	c.keepsSecrets(secret)
}
