// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/rules"
)

// metricsPrefix is that of all metrics of the operator's own.
const metricsPrefix = "managedupgrade_"

// Prometheus reads the metrics as the manifests that are shipped say, of an operator that upgrades a cluster: all that are documented are there when
// it is their time, they go with their objects, and a job that fails has its alert fire.
func TestPrometheusScrapesTheOperator(t *testing.T) {
	record := takeTour(t)
	c := newClusterFor(t, 2*patience, withFewNodes, withPool("night", 1), stuck("network"))
	s := c.newScraper()
	s.needsItsRole()
	s.demandsModernTLS()
	operator := s.start(environment.OperatorOptions{})
	s.scraped(true)
	s.isGuarded(operator)
	s.followsItsCertificate(operator)

	file, err := rules.File(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c.withRules(file)
	job := create(c, aJob(timingOutAfter(5*time.Second), delaying("night", 4*time.Second, time.Hour), configured(pausingOnFailure(nil))))
	s.tells("machine_config_pool_unpause_before_timestamp_seconds")
	c.wait(job, failedFor(v1beta1.ReasonTimedOut), withoutFinalizers())
	c.firesFor("ManagedUpgradeJobFailed", job)
	s.everythingWasTold(record.began)
}

// documentedMetrics are the names in the tables of docs/metrics.md.
func documentedMetrics(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(environment.Root(), "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, match := range regexp.MustCompile("(?m)^\\| `("+metricsPrefix+"[a-z0-9_]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		names = append(names, match[1])
	}
	if len(names) < 40 {
		t.Fatalf("docs/metrics.md has %d metrics, the test is blind", len(names))
	}
	return names
}

// ofAccidents are the documented metrics that are there only when something went wrong in the operator itself.
var ofAccidents = []string{metricsPrefix + "collect_errors_total"}

// everythingWasTold waits until Prometheus had each documented metric, and expects no other one of ours, nor one of an accident.
func (s *scraper) everythingWasTold(since time.Time) {
	s.t.Helper()
	documented := documentedMetrics(s.t)
	var told []string
	s.eventually("the documented metrics", func() error {
		var err error
		if told, err = env.Monitoring.Prometheus.Names(s.ctx, metricsPrefix, since); err != nil {
			return err
		}
		for i := range told { // a histogram has three names
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				told[i] = strings.TrimSuffix(told[i], part)
			}
		}
		missing := slices.DeleteFunc(slices.Clone(documented), func(name string) bool {
			return slices.Contains(told, name) || slices.Contains(ofAccidents, name)
		})
		if len(missing) > 0 {
			return fmt.Errorf("Prometheus never had %v", missing)
		}
		return nil
	})
	for _, name := range slices.Compact(told) {
		if !slices.Contains(documented, name) {
			s.t.Errorf("docs/metrics.md does not have %s", name)
		}
		if slices.Contains(ofAccidents, name) {
			s.t.Errorf("the operator tells of accidents: %s", name)
		}
	}
}

// needsItsRole expects that Prometheus is turned away without the role that is shipped.
func (s *scraper) needsItsRole() {
	s.t.Helper()
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "managed-upgrade-operator-metrics-reader"}}
	s.get(binding)
	s.remove(binding)
	restore := binding.DeepCopy()
	restore.ResourceVersion, restore.UID = "", ""
	operator := s.start(environment.OperatorOptions{})
	s.scraped(false, "403")
	create(s.cluster, restore)
	if err := operator.Stop(); err != nil { // it remembers whom it has turned away
		s.t.Error(err)
	}
}

// demandsModernTLS has the cluster allow TLS 1.3 alone, until the test ends.
func (s *scraper) demandsModernTLS() {
	s.t.Helper()
	settings := create(s.cluster, &configv1.APIServer{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
		Spec:       configv1.APIServerSpec{TLSSecurityProfile: &configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType, Modern: &configv1.ModernTLSProfile{}}},
	})
	s.atEnd = append(s.atEnd, func() { s.remove(settings) })
}

// isGuarded expects that nobody else reads the metrics.
func (s *scraper) isGuarded(operator *environment.Operator) {
	s.t.Helper()
	s.answers(operator.Metrics(), "", http.StatusUnauthorized)
	s.answers(operator.Metrics(), "made-up", http.StatusInternalServerError) // the library takes every refusal of the API server for an accident
	s.answers(operator.Metrics(), s.tokenOf("openshift-monitoring", "default"), http.StatusForbidden)
	if _, err := s.served(operator, tls.VersionTLS12); err == nil {
		s.t.Error("TLS 1.2 is served, which the cluster does not allow")
	}
	s.answers(strings.Replace(operator.Metrics(), "https://", "http://", 1), s.tokenOf("openshift-monitoring", "prometheus-k8s"), http.StatusBadRequest)
}

// followsItsCertificate expects that the operator shows a certificate that has replaced the one before.
func (s *scraper) followsItsCertificate(operator *environment.Operator) {
	s.t.Helper()
	next := s.newCertificate()
	s.eventually("the new certificate", func() error {
		got, err := s.served(operator, tls.VersionTLS13)
		if err == nil && !got.Equal(next) {
			err = errors.New("the operator shows another one")
		}
		return err
	})
	s.scraped(true)
}

// withRules has Prometheus evaluate a file with rules until the test ends.
func (c *cluster) withRules(file string) {
	c.t.Helper()
	c.atEnd = append(c.atEnd, func() {
		if err := env.Monitoring.Prometheus.SetRuleFiles(c.ctx); err != nil {
			c.t.Error(err)
		}
	})
	if err := env.Monitoring.Prometheus.SetRuleFiles(c.ctx, file); err != nil {
		c.t.Fatal(err)
	}
}

// firesFor waits until an alert about a job fires, and reaches Alertmanager.
func (c *cluster) firesFor(alert string, job *v1beta1.UpgradeJob) {
	c.t.Helper()
	c.eventually("the alert "+alert, func() error {
		firing, err := env.Monitoring.Prometheus.Firing(c.ctx, alert)
		if err != nil {
			return err
		}
		for _, labels := range firing {
			if string(labels["upgradejob"]) == job.Name && string(labels["namespace"]) == job.Namespace {
				return nil
			}
		}
		return fmt.Errorf("these fire: %v", firing)
	})
}
