// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"errors"
	"fmt"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/dependency"
)

// ConditionExternalDependenciesAvailable is the condition of ExternalDependenciesAvailable.
const ConditionExternalDependenciesAvailable = "ExternalDependenciesAvailable"

const (
	// maxDependencyLength bounds what is told of a URL, in bytes.
	maxDependencyLength = 256

	blockerDependencyUnavailable = "ExternalDependencyUnavailable"
)

// ExternalDependenciesAvailable waits until all of externalDependencies answer. They are asked once in preUpgradeHealthChecks.interval. It is a preflight.
func ExternalDependenciesAvailable() Step { return externalDependenciesAvailable{} }

type externalDependenciesAvailable struct{}

func (externalDependenciesAvailable) Condition() string {
	return ConditionExternalDependenciesAvailable
}

func (externalDependenciesAvailable) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	config := u.Job.Spec.Config.ExternalDependencies
	switch {
	case config == nil || config.HTTP == nil || len(config.HTTP.URLs) == 0:
		return Done("The upgrade depends on nothing outside of the cluster: externalDependencies is empty."), nil
	case !u.Needed():
		return Done(nothingToUpgrade(u)), nil
	case u.Dependencies == nil:
		return Verdict{}, errors.New("ask the external dependencies: nobody is there to do so")
	}
	request := dependency.Request{URLs: config.HTTP.URLs, Timeout: config.HTTP.Timeout.Or(v1beta1.DefaultDependencyTimeout)}
	if left := u.CommenceBefore().Sub(u.Now); left > 0 { // the end of the job's window must not wait for who does not answer
		request.Within = left
	}
	interval := u.Job.Spec.Config.PreUpgradeHealthChecks.Interval.Or(v1beta1.DefaultHealthCheckInterval)
	failures, err := u.Dependencies.Probe(ctx, request, u.Now, min(interval, decisiveAge))
	if err != nil {
		return Verdict{}, fmt.Errorf("ask the external dependencies: %w", err)
	}
	if len(failures) == 0 {
		return Done(fmt.Sprintf("External dependencies answer: %d.", len(request.URLs))), nil
	}
	blockers := make([]v1beta1.Blocker, 0, len(failures))
	for _, f := range failures {
		object := v1beta1.Truncate(f.URL, maxDependencyLength)
		blockers = append(blockers, v1beta1.Blocker{
			Code: blockerDependencyUnavailable, Object: object, Message: object + " " + f.Message, ClearsWhen: "it answers with a status below 400",
		})
	}
	message := fmt.Sprintf("External dependencies that are not available: %d of %d.", len(failures), len(request.URLs))
	return u.awaitBeforeCommencing(interval, v1beta1.ReasonDependenciesUnavailable, message, blockers), nil
}
