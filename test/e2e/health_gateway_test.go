// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/monitoring"
)

// The tokens that the gateway lets through, before they are renewed and after.
const (
	firstToken  = "sha256~first-token-of-the-tests"
	secondToken = "sha256~second-token-of-the-tests"
)

// gateway stands in front of Prometheus, as kube-rbac-proxy does in OpenShift.
type gateway struct {
	*monitoring.Gateway
	tokenFile, caFile string
}

// startGateway starts a gateway that lets the first token through.
func (c *cluster) startGateway() *gateway {
	c.t.Helper()
	started, err := monitoring.StartGateway(c.ctx, env.Monitoring.Prometheus.URL())
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = started.Close() })
	dir := c.t.TempDir()
	g := &gateway{started, filepath.Join(dir, "token"), filepath.Join(dir, "ca.crt")}
	g.SetToken(firstToken)
	c.write(g.tokenFile, []byte(firstToken))
	c.write(g.caFile, g.CA())
	return g
}

func (c *cluster) write(path string, content []byte) {
	c.t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// startOperatorBehind starts the operator with the flags for a gateway.
func (c *cluster) startOperatorBehind(g *gateway) *environment.Operator {
	c.t.Helper()
	return c.startOperator("--prometheus-url="+g.URL(), "--monitoring-token-file="+g.tokenFile, "--monitoring-ca-file="+g.caFile)
}

func TestTokenIsRenewedWhileTheOperatorRuns(t *testing.T) {
	c := newCluster(t)
	g := c.startGateway()
	running := c.startOperatorBehind(g)
	job := c.wait(create(c, aJob(attentive())), succeeded())
	c.upgradedOnce(job)
	if g.Requests("/api/v1/query") == 0 {
		t.Error("Prometheus was not asked through the gateway")
	}

	c.thenOffers(job, "4.18.3")
	g.SetToken(secondToken)
	job = create(c, aJob(named("with-the-old-token"), to("4.18.3"), attentive(ignoringUnavailable)))
	c.wait(job, unhealthy(), blockers(1), blockedBy("HealthCheckUnanswered", "", "Prometheus answers 401 Unauthorized"))
	refused := g.Requests("/api/v1/query")
	c.eventually("the operator is refused twice more", func() error {
		if got := g.Requests("/api/v1/query"); got < refused+2 {
			return fmt.Errorf("it has asked %d times since", got-refused)
		}
		return nil
	})
	c.notUpgraded(job)
	c.write(g.tokenFile, []byte(secondToken))
	c.goesOn(job, time.Now())
	c.nothingTells(running, firstToken, secondToken)
}

// nothingTells expects that none of the secrets stands in the operator's log, in an Event, or in a job.
func (c *cluster) nothingTells(running *environment.Operator, secrets ...string) {
	c.t.Helper()
	told := &eventsv1.EventList{}
	if err := env.Client.List(c.ctx, told, client.InNamespace(environment.Namespace)); err != nil {
		c.t.Fatal(err)
	}
	text, err := json.Marshal([]any{running.Log(), told, c.allJobs()})
	if err != nil {
		c.t.Fatal(err)
	}
	if len(told.Items) == 0 || !bytes.Contains(text, []byte("401 Unauthorized")) {
		c.t.Error("there is nothing in which a secret could stand")
	}
	for _, secret := range secrets {
		if bytes.Contains(text, []byte(secret)) {
			c.t.Errorf("the secret %s is told", secret)
		}
	}
}

// That monitoring may be ignored when it is not there does not mean that anything may pass for its answer.
func TestAnswerThatCannotBeTrustedIsNoAnswer(t *testing.T) {
	c := newCluster(t)
	before := c.version()
	g := c.startGateway()
	c.startOperatorBehind(g)
	tests := []struct {
		name    string
		prepare func() error
		words   string
	}{
		{"other-ca", func() error { return g.SetCertificate(c.ctx, monitoring.CertificateOfAnotherCA) }, "certificate signed by unknown authority"},
		{"internal-error", func() error {
			g.SetAnswer(monitoring.AnswerStatus(http.StatusInternalServerError))
			return g.SetCertificate(c.ctx, monitoring.CertificateValid)
		}, "Prometheus answers 500"},
		{"login-page", func() error {
			g.SetAnswer(monitoring.AnswerBody(http.StatusOK, "text/html", []byte("<html><body>Log in with OpenShift</body></html>")))
			return nil
		}, "Prometheus cannot be asked"},
	}
	for _, tt := range tests {
		if err := tt.prepare(); err != nil {
			t.Fatal(err)
		}
		job := create(c, aJob(named(tt.name), attentive(ignoringUnavailable, givingUpAfter(lookInterval))))
		c.wait(job, skippedFor(v1beta1.ReasonPreHealthCheckFailed), withoutFinalizers(), blockers(1),
			saying(v1beta1.ConditionSkipped, "CriticalAlerts cannot be answered", tt.words))
		c.untouched(before)
	}

	// That is what Thanos answers when every Prometheus is gone.
	g.SetAnswer(monitoring.AnswerBody(http.StatusOK, "application/json", []byte(`{"status":"success","data":{"resultType":"vector","result":[]}}`)))
	job := create(c, aJob(named("no-data"), attentive(givingUpAfter(lookInterval))))
	c.wait(job, skippedFor(v1beta1.ReasonPreHealthCheckFailed), saying(v1beta1.ConditionSkipped, "Prometheus answers, but has no data"))
	c.untouched(before)
}

func TestPrometheusThatHangsHoldsTheUpgradeAndDelaysDeadlinesBySecondsOnly(t *testing.T) {
	const timeout, answerTimeout = 2 * time.Second, 10 * time.Second
	c := newCluster(t)
	g := c.startGateway()
	g.SetAnswer(monitoring.Hang())
	c.startOperatorBehind(g)
	start := soon(time.Second)
	other := create(c, aJob(named("other"), startingAt(start), attentive(withoutAlerts)))
	c.wait(other, notStarted(v1beta1.ReasonWaitingForStart))
	job := create(c, aJob(attentive(givingUpAfter(timeout))))
	c.wait(job, skippedFor(v1beta1.ReasonPreHealthCheckFailed), saying(v1beta1.ConditionSkipped, "Prometheus does not answer in time"))
	ended := c.when(job, inPhase(v1beta1.PhaseSkipped))
	c.notLaterThan("the end of the job", ended, job.Status.StartTime.Add(timeout), answerTimeout+3*promptness)
	if g.Requests("/api/v1/query") == 0 {
		t.Error("Prometheus was not asked")
	}

	// Where the first job still has the cluster, the other one waits for that.
	lookedAt := func(job *v1beta1.UpgradeJob) error {
		if check(job, started()) == nil || check(job, notStarted(v1beta1.ReasonClusterLocked)) == nil {
			return nil
		}
		return errors.New("it still waits for its start")
	}
	c.notLaterThan("the start of the other job", c.when(other, lookedAt), start, timeout+2*promptness)
	c.wait(other, succeeded())
	if writes := c.desiredUpdateWrites(); len(writes) != 1 || writes[0].seen.Before(ended) {
		t.Errorf("the cluster was changed %d times, want once, after the end of the first job: %+v", len(writes), writes)
	}
}

func TestResponseOf50000AlertsIsSurvived(t *testing.T) {
	c := newCluster(t)
	g := c.startGateway()
	answer := monitoring.AnswerBody(http.StatusOK, "application/json", manyAlerts(50_000))
	g.SetAnswer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.SetAnswer(nil) // from the next look on nothing fires
		answer.ServeHTTP(w, r)
	}))
	running := c.startOperatorBehind(g)
	job := c.wait(create(c, aJob(attentive())), succeeded())
	held := c.when(job, unhealthy(), bounded(), blockers(32), blockedBy("CriticalAlertFiring", "Alert/Alert00000"),
		saying(steps.ConditionClusterHealthyBeforeUpgrade, "critical alert Alert00000 is firing", "and 49995 more"))
	if writes := c.desiredUpdateWrites(); len(writes) > 0 && writes[0].seen.Before(held) {
		t.Error("a sick cluster is upgraded")
	}
	c.upgradedOnce(job)
	usage, err := running.Usage()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("peak RSS of the operator: %d MiB", usage.PeakRSS>>20)
}

// bounded expects that every message can be read.
func bounded() expectation {
	return func(job *v1beta1.UpgradeJob) error {
		for _, condition := range job.Status.Conditions {
			if n := len(condition.Message); n > v1beta1.MaxMessageLength {
				return fmt.Errorf("the message of %s has %d bytes", condition.Type, n)
			}
		}
		return nil
	}
}

// manyAlerts is Prometheus' answer with a proof of life and so many alerts, each of its own name, with the labels that they
// have in OpenShift.
func manyAlerts(n int) []byte {
	var text strings.Builder
	text.WriteString(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1700000000.123,"1"]}`)
	for i := range n {
		fmt.Fprintf(&text, `,{"metric":{"__name__":"ALERTS","alertname":"Alert%05d","alertstate":"firing","severity":"critical",`+
			`"namespace":"openshift-etcd","container":"etcd-metrics","endpoint":"etcd-metrics","job":"etcd","service":"etcd",`+
			`"pod":"etcd-master-%d.example.com","instance":"10.0.%d.%d:9979","openshift_io_alert_source":"platform",`+
			`"prometheus":"openshift-monitoring/k8s","summary":"A member of the etcd cluster does not answer any more."},"value":[1700000000.123,"1"]}`,
			i, i%3, i/256%256, i%256)
	}
	text.WriteString(`]}}`)
	return []byte(text.String())
}
