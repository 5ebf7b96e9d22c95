// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/monitoring"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// lookInterval is how often an attentive job looks again at what cannot be watched. An answer is shared for as long.
const lookInterval = time.Second

// attentive makes a job look as often as it may, before the upgrade and after it. Changes are made to both.
func attentive(changes ...func(*v1beta1.HealthChecks)) func(*v1beta1.UpgradeJob) {
	return configured(attention(changes...))
}

// ofAttentiveJobs makes the jobs of a config attentive.
func ofAttentiveJobs(changes ...func(*v1beta1.HealthChecks)) func(*v1beta1.UpgradeConfig) {
	return func(config *v1beta1.UpgradeConfig) { attention(changes...)(&config.Spec.JobTemplate.Spec.Config) }
}

func attention(changes ...func(*v1beta1.HealthChecks)) func(*v1beta1.UpgradeJobConfig) {
	return func(config *v1beta1.UpgradeJobConfig) {
		for _, checks := range []*v1beta1.HealthChecks{&config.PreUpgradeHealthChecks, &config.PostUpgradeHealthChecks} {
			checks.Interval = duration(lookInterval)
			for _, change := range changes {
				change(checks)
			}
		}
	}
}

// givingUpAfter waits no longer than that for a healthy cluster.
func givingUpAfter(timeout time.Duration) func(*v1beta1.HealthChecks) {
	return func(checks *v1beta1.HealthChecks) { checks.Timeout = duration(timeout) }
}

// excludingNamespace leaves out what is of a namespace.
func excludingNamespace(name string) func(*v1beta1.HealthChecks) {
	return func(checks *v1beta1.HealthChecks) { checks.ExcludeNamespaces = append(checks.ExcludeNamespaces, name) }
}

// asking adds custom queries.
func asking(queries ...string) func(*v1beta1.HealthChecks) {
	return func(checks *v1beta1.HealthChecks) {
		for _, query := range queries {
			checks.CustomQueries = append(checks.CustomQueries, v1beta1.CustomQuery{Query: query})
		}
	}
}

// withoutAlerts asks for no alerts.
func withoutAlerts(checks *v1beta1.HealthChecks) { checks.CheckCriticalAlerts = new(false) }

// ignoringUnavailable goes on where Prometheus is not there.
func ignoringUnavailable(checks *v1beta1.HealthChecks) {
	checks.WhenUnavailable = v1beta1.UnavailableIgnore
}

// pairs makes a map of texts like "severity=critical".
func pairs(texts []string) map[string]string {
	all := map[string]string{}
	for _, text := range texts {
		name, value, _ := strings.Cut(text, "=")
		all[name] = value
	}
	return all
}

// fire makes an alert fire, a critical one unless its labels, such as "severity=warning", say otherwise, and waits until
// Prometheus tells. It ends with the test.
func (c *cluster) fire(alert string, labels ...string) {
	c.t.Helper()
	c.atEnd = append(c.atEnd, func() { c.resolve(alert) })
	if err := env.Monitoring.Fire(c.ctx, alert, pairs(append([]string{"severity=critical"}, labels...))); err != nil {
		c.t.Fatal(err)
	}
	if err := env.Monitoring.Prometheus.AwaitFiring(c.ctx, alert); err != nil {
		c.t.Fatal(err)
	}
}

// resolve ends an alert, and returns the moment at which Prometheus tells.
func (c *cluster) resolve(alert string) time.Time {
	c.t.Helper()
	env.Monitoring.Resolve(alert, nil)
	if err := env.Monitoring.Prometheus.AwaitResolved(c.ctx, alert); err != nil {
		c.t.Error(err)
	}
	return time.Now()
}

// silence silences an alert by labels, and returns when Alertmanager has done so, with a way to end it. That happens
// with the test at the latest.
func (c *cluster) silence(alert string, labels ...string) (expire func()) {
	c.t.Helper()
	id, err := env.Monitoring.Alertmanager.Silence(c.ctx, pairs(labels), time.Now().Add(time.Hour))
	if err != nil {
		c.t.Fatal(err)
	}
	expired := false
	expire = func() {
		c.t.Helper()
		if expired {
			return
		}
		expired = true
		if err := env.Monitoring.Alertmanager.Expire(c.ctx, id); err != nil {
			c.t.Error(err)
		}
	}
	c.atEnd = append(c.atEnd, expire)
	c.alertIs(alert, monitoring.AlertSuppressed)
	return expire
}

// alertIs waits until Alertmanager has an alert in a state.
func (c *cluster) alertIs(alert, state string) {
	c.t.Helper()
	if err := env.Monitoring.Alertmanager.AwaitState(c.ctx, alert, state); err != nil {
		c.t.Fatal(err)
	}
}

// expose serves a sample to Prometheus until the test ends or withdraw, and waits until a query returns it.
func (c *cluster) expose(name string, value float64, labels ...string) {
	c.t.Helper()
	c.atEnd = append(c.atEnd, func() { c.withdraw(name) })
	if err := env.Monitoring.Exporter.Set(name, pairs(labels), value); err != nil {
		c.t.Fatal(err)
	}
	c.eventually("the sample "+name, func() error {
		if n, err := c.samples(name); n == 0 {
			return errors.Join(errors.New("Prometheus has none"), err)
		}
		return nil
	})
}

// withdraw ends a sample, and returns the moment at which no query returns it any more.
func (c *cluster) withdraw(name string) time.Time {
	c.t.Helper()
	env.Monitoring.Exporter.Delete(name, nil)
	c.eventually("the end of the sample "+name, func() error {
		n, err := c.samples(name)
		if err == nil && n > 0 {
			err = fmt.Errorf("Prometheus has %d", n)
		}
		return err
	})
	return time.Now()
}

// samples is how many samples a query returns now. It asks by query_range, which queries does not count.
func (c *cluster) samples(query string) (int, error) {
	prometheus, err := api.NewClient(api.Config{Address: env.Monitoring.Prometheus.URL(), RoundTripper: &http.Transport{DisableKeepAlives: true}})
	if err != nil {
		return 0, err
	}
	now := time.Now()
	value, _, err := promv1.NewAPI(prometheus).QueryRange(c.ctx, query, promv1.Range{Start: now, End: now, Step: time.Second})
	if err != nil {
		return 0, err
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return 0, fmt.Errorf("the query returns a %s", value.Type())
	}
	return len(matrix), nil
}

// awayWithPrometheus ends Prometheus in one of its ways, until backWithPrometheus or the end of the test.
func (c *cluster) awayWithPrometheus(end func() error) {
	c.t.Helper()
	c.away = true
	c.atEnd = append(c.atEnd, func() { c.backWithPrometheus() })
	if err := end(); err != nil {
		c.t.Fatal(err)
	}
}

// backWithPrometheus starts Prometheus again, and returns the moment at which it has something to tell.
func (c *cluster) backWithPrometheus() time.Time {
	c.t.Helper()
	if c.away {
		c.away = false
		p := env.Monitoring.Prometheus
		if err := errors.Join(p.Start(c.ctx), p.AwaitData(c.ctx)); err != nil {
			c.t.Error(err)
		}
	}
	return time.Now()
}

// queries is how many queries Prometheus has answered, by its own count. Only the operator makes any.
func (c *cluster) queries() int {
	c.t.Helper()
	n, err := env.Monitoring.Prometheus.Requests(c.ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	return int(n)
}

// leftAlone expects that a job looks twice more, by Prometheus' own count, and that nothing happens to the cluster.
func (c *cluster) leftAlone(job *v1beta1.UpgradeJob) {
	c.t.Helper()
	perLook := 1 + len(job.Spec.Config.PreUpgradeHealthChecks.CustomQueries)
	want := c.queries() + 2*perLook
	c.eventually("the job looks twice more", func() error {
		if got := c.queries(); got < want {
			return fmt.Errorf("Prometheus has answered %d queries, want %d", got, want)
		}
		return nil
	})
	c.notUpgraded(job)
}

// notUpgraded expects that a job waits for a healthy cluster, and has not touched it.
func (c *cluster) notUpgraded(job *v1beta1.UpgradeJob) {
	c.t.Helper()
	c.get(job)
	if err := check(job, unhealthy()); err != nil {
		c.t.Error(err)
	}
	if writes := c.desiredUpdateWrites(); len(writes) > 0 {
		c.t.Fatal("a sick cluster is upgraded")
	}
}

// goesOn expects that a job upgrades the cluster, and that it began within an interval of the moment at which the
// cluster became healthy.
func (c *cluster) goesOn(job *v1beta1.UpgradeJob, healthy time.Time) {
	c.t.Helper()
	c.wait(job, succeeded(), withoutFinalizers())
	c.notLaterThan("the end of the wait", c.when(job, done(steps.ConditionClusterHealthyBeforeUpgrade)), healthy, lookInterval+2*promptness)
	c.upgradedOnce(job)
}

// notLaterThan expects that something happened within a time of its cause.
func (c *cluster) notLaterThan(what string, got, cause time.Time, limit time.Duration) {
	c.t.Helper()
	late := got.Sub(cause)
	c.t.Logf("%s: %s after its cause", what, late.Round(time.Millisecond))
	if late > limit {
		c.t.Errorf("%s happened %s after its cause, want within %s", what, late, limit)
	}
}

// thenOffers takes a job that is done away and offers another release, for the next one. With the job ended the answers
// that it got.
func (c *cluster) thenOffers(job *v1beta1.UpgradeJob, version string) {
	c.t.Helper()
	c.remove(job)
	c.gone(job)
	c.change(offering(version))
	c.offers(version)
	c.fromNowOn()
}

// unhealthy expects that a job waits for a healthy cluster before it upgrades it.
func unhealthy() expectation {
	return waitingIn(steps.ConditionClusterHealthyBeforeUpgrade, v1beta1.ReasonUnhealthy)
}

// blockers expects so many of them.
func blockers(n int) expectation {
	return func(job *v1beta1.UpgradeJob) error {
		if got := len(job.Status.Blockers); got != n {
			return fmt.Errorf("there are %d blockers, want %d: %+v", got, n, job.Status.Blockers)
		}
		return nil
	}
}

// recovered makes one ClusterOperator well.
func recovered(operator string) func(*sim.Scenario) {
	return func(s *sim.Scenario) {
		var others []sim.OperatorFault
		for _, fault := range s.Operators {
			if fault.Name != operator {
				others = append(others, fault)
			}
		}
		s.Operators = others
	}
}
