// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package healthcheck judges whether the cluster is healthy enough to be
// upgraded, or healthy after it was.
//
// A Check answers with findings; none means healthy. RunAll asks every check and
// reports every finding: an administrator shall see all that is wrong at once. A
// check that cannot be answered is a finding itself, so that the cluster never
// counts as healthy because its health is unknown.
package healthcheck

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

//go:generate go tool -modfile=../../boilerplate/tools/go.mod mockgen -destination=mocks/mock_check.go -package=mocks -copyright_file=../../boilerplate/header.txt . Check

// Timeout is how long a single check may take before it counts as unanswered.
const Timeout = 30 * time.Second

// CodeUnanswered is the reason of the finding that stands for a check without an answer.
const CodeUnanswered = "HealthCheckUnanswered"

// Check is one aspect of the cluster's health.
type Check interface {
	// Name of the check, in CamelCase; it stands in findings.
	Name() string
	// Run returns what is wrong with the cluster; nothing if it is healthy, or if the request's configuration
	// turns the check off. It does not change anything, may be called at any time and from several goroutines,
	// and returns when ctx ends. An error means that the check could not be answered.
	Run(ctx context.Context, request Request) ([]Finding, error)
}

// Request is what a check may look at.
type Request struct {
	// Config selects checks and says what they leave out.
	Config v1beta1.HealthChecks
	// Cluster reads OpenShift's objects.
	Cluster *openshift.Cluster
	// Version is ClusterVersion/version as the caller has judged it. Not to be changed.
	Version *configv1.ClusterVersion
	// Now is the time of the caller's pass.
	Now time.Time
}

// Finding is one thing that is wrong with the cluster.
type Finding struct {
	// Check is the name of the check that found it.
	Check string
	// Object is what is sick, as Kind/name; empty if it is no one object.
	Object string
	// Reason is a stable word in CamelCase.
	Reason string
	// Message explains the finding to people.
	Message string
	// ClearsWhen says what has to happen for the finding to go.
	ClearsWhen string
	// Recheck is when to look again at the latest, where time alone clears the finding. Zero where it does not.
	Recheck time.Duration
}

// RunAll runs every check, in parallel, each with its own deadline, and returns the findings of all of them in an
// order that does not depend on which check was faster.
func RunAll(ctx context.Context, checks []Check, request Request) []Finding {
	found := make([][]Finding, len(checks))
	var wg sync.WaitGroup
	for i, check := range checks {
		wg.Go(func() { found[i] = run(ctx, check, request) })
	}
	wg.Wait()

	findings := slices.Concat(found...)
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Check, b.Check), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Reason, b.Reason))
	})
	return findings
}

func run(ctx context.Context, check Check, request Request) []Finding {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	findings, err := check.Run(ctx, request)
	if err != nil {
		return append(findings, Finding{
			Check:      check.Name(),
			Reason:     CodeUnanswered,
			Message:    fmt.Sprintf("%s cannot be answered: %v", check.Name(), err),
			ClearsWhen: "the check gets an answer",
		})
	}
	return findings
}
