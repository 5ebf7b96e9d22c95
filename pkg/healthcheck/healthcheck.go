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
	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
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
	Run(ctx context.Context, request Request) (Report, error)
}

// Request is what a check may look at.
type Request struct {
	// Config selects checks and says what they leave out.
	Config v1beta1.HealthChecks
	// Cluster reads OpenShift's objects.
	Cluster *openshift.Cluster
	// Monitoring asks Prometheus and Alertmanager.
	Monitoring *monitoring.Client
	// Version is ClusterVersion/version as the caller has judged it. Not to be changed.
	Version *configv1.ClusterVersion
	// Target is the release that the cluster is to be upgraded to; nil if to none.
	Target *openshift.Release
	// Now is the time of the caller's pass.
	Now time.Time
	// MaxAge is how old an answer of what cannot be watched may be.
	MaxAge time.Duration
}

// Report is the answer of a check.
type Report struct {
	// Findings are what is wrong with the cluster; none means healthy.
	Findings []Finding
	// Notes say what was left out, and why, in the words of half a sentence.
	Notes []string
	// Skipped says in the words of half a sentence why the check did not look at the cluster; empty if it did. That is no finding, but no health either:
	// for whoever tells people what was looked at. RunAll leaves it out.
	Skipped string
	// Recheck is when to look again at the latest, if the report has findings. Zero leaves that to the watches.
	Recheck time.Duration
}

// Finding is one thing that is wrong with the cluster.
type Finding struct {
	// Check is the name of the check that found it. RunAll fills it in.
	Check string
	// Object is what is sick, as Kind/name or Kind/namespace/name; empty if it is no one object.
	Object string
	// Reason is a stable word in CamelCase.
	Reason string
	// Message explains the finding to people. It does not change from pass to pass while its subject does not.
	Message string
	// ClearsWhen says what has to happen for the finding to go.
	ClearsWhen string
	// Fresh is set while the finding is so young that it may be gone in a moment. It holds an upgrade up all the same,
	// but does not end one; the report's Recheck is when it will have ripened.
	Fresh bool
}

// RunAll runs every check, in parallel, each with its own deadline, and returns the findings of all of them in an
// order that does not depend on which check was faster. Its Recheck is the shortest one of a check with findings.
func RunAll(ctx context.Context, checks []Check, request Request) Report {
	reports := make([]Report, len(checks))
	var wg sync.WaitGroup
	for i, check := range checks {
		wg.Go(func() { reports[i] = run(ctx, check, request) })
	}
	wg.Wait()

	var all Report
	for _, r := range reports {
		all.Findings = append(all.Findings, r.Findings...)
		all.Notes = append(all.Notes, r.Notes...)
		if len(r.Findings) > 0 && r.Recheck > 0 && (all.Recheck == 0 || r.Recheck < all.Recheck) {
			all.Recheck = r.Recheck
		}
	}
	slices.SortStableFunc(all.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Check, b.Check), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Reason, b.Reason))
	})
	slices.Sort(all.Notes)
	return all
}

func run(ctx context.Context, check Check, request Request) Report {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	report, err := runRecovered(ctx, check, request)
	if err != nil {
		report.Findings = append(report.Findings, Finding{
			Reason:     CodeUnanswered,
			Message:    fmt.Sprintf("%s cannot be answered: %s", check.Name(), openshift.Describe(err)),
			ClearsWhen: "the check gets an answer",
		})
		if report.Recheck == 0 {
			report.Recheck = request.MaxAge
		}
	}
	for i := range report.Findings {
		report.Findings[i].Check = check.Name()
	}
	return report
}

// runRecovered turns a panic into an error: a check that breaks must not end the operator, which would begin again and
// break again.
func runRecovered(ctx context.Context, check Check, request Request) (report Report, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			report, err = Report{}, fmt.Errorf("the check panicked: %v", broken)
		}
	}()
	return check.Run(ctx, request)
}
