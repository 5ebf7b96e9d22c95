// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"sigs.k8s.io/yaml"

	"github.com/appuio/managed-upgrade-operator/test/certificates"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/monitoring"
)

const (
	// scrapeJob is the label that the scrapes of the operator have.
	scrapeJob = "managed-upgrade-operator"
	// scrapeInterval is short, so that what is true for a moment only is seen; a scrape has to be through in it on a busy machine.
	scrapeInterval = 500 * time.Millisecond
)

// shippedMonitor is what the ServiceMonitor of deploy/monitoring says of its only endpoint, as far as a Prometheus without an operator needs it.
type shippedMonitor struct {
	Port, Scheme, Path string
	HonorLabels        bool
	BearerTokenFile    string
	TLSConfig          struct{ CAFile, ServerName string }
}

// scraper is the cluster's Prometheus in front of the operator: what the two of them need to trust each other.
type scraper struct {
	*cluster
	monitor                    shippedMonitor
	authority                  *certificates.Authority
	certDir, caFile, tokenFile string
}

// newScraper prepares certificates, as OpenShift's service CA does, and the token of the cluster's Prometheus. Nothing is scraped any more when the
// test ends.
func (c *cluster) newScraper() *scraper {
	c.t.Helper()
	authority, err := certificates.NewAuthority("service-ca")
	if err != nil {
		c.t.Fatal(err)
	}
	dir := c.t.TempDir()
	s := &scraper{c, c.readMonitor(), authority, filepath.Join(dir, "serving-cert"), filepath.Join(dir, "service-ca.crt"), filepath.Join(dir, "token")}
	if err := os.Mkdir(s.certDir, 0o700); err != nil {
		c.t.Fatal(err)
	}
	s.newCertificate()
	c.write(s.caFile, authority.Bundle())
	c.write(s.tokenFile, []byte(c.tokenOf("openshift-monitoring", "prometheus-k8s")))
	c.atEnd = append(c.atEnd, func() {
		if err := env.Monitoring.Prometheus.SetScrapes(c.ctx); err != nil {
			c.t.Error(err)
		}
	})
	return s
}

// readMonitor reads the ServiceMonitor that is shipped.
func (c *cluster) readMonitor() shippedMonitor {
	c.t.Helper()
	content, err := os.ReadFile(filepath.Join(environment.Root(), "deploy", "monitoring", "service_monitor.yaml"))
	if err != nil {
		c.t.Fatal(err)
	}
	var shipped struct {
		Spec struct{ Endpoints []shippedMonitor }
	}
	if err := yaml.Unmarshal(content, &shipped); err != nil {
		c.t.Fatal(err)
	}
	if len(shipped.Spec.Endpoints) != 1 {
		c.t.Fatalf("the ServiceMonitor has %d endpoints, want one", len(shipped.Spec.Endpoints))
	}
	monitor := shipped.Spec.Endpoints[0]
	if monitor.Scheme != "https" || monitor.BearerTokenFile == "" || monitor.TLSConfig.CAFile == "" {
		c.t.Fatalf("the ServiceMonitor does not use HTTPS, a token and an authority: %+v", monitor)
	}
	return monitor
}

func (c *cluster) tokenOf(namespace, name string) string {
	c.t.Helper()
	token, err := env.ServiceAccountToken(c.ctx, namespace, name)
	if err != nil {
		c.t.Fatal(err)
	}
	return token
}

// newCertificate puts another certificate for the name of the Service down, as the service CA does, and returns it. The files are replaced, not
// written: the kubelet does so too.
func (s *scraper) newCertificate() *x509.Certificate {
	s.t.Helper()
	pair, err := s.authority.Sign(&x509.Certificate{
		DNSNames: []string{s.monitor.TLSConfig.ServerName}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	for name, content := range map[string][]byte{"tls.key": pair.Key, "tls.crt": pair.Certificate} {
		path := filepath.Join(s.certDir, name)
		s.write(path+".new", content)
		if err := os.Rename(path+".new", path); err != nil {
			s.t.Fatal(err)
		}
	}
	both, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		s.t.Fatal(err)
	}
	return both.Leaf
}

// start starts the operator with its metrics, and has Prometheus scrape it from now on.
func (s *scraper) start(o environment.OperatorOptions) *environment.Operator {
	s.t.Helper()
	o.Metrics = true
	o.Args = append(o.Args, "--metrics-cert-dir="+s.certDir)
	operator := s.cluster.start(o)
	address := strings.TrimSuffix(strings.TrimPrefix(operator.Metrics(), "https://"), s.monitor.Path)
	err := env.Monitoring.Prometheus.SetScrapes(s.ctx, monitoring.Scrape{
		Job: scrapeJob, Address: address, Path: s.monitor.Path, HonorLabels: s.monitor.HonorLabels, Interval: scrapeInterval,
		ServerName: s.monitor.TLSConfig.ServerName, CAFile: s.caFile, TokenFile: s.tokenFile,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return operator
}

// scraped waits until the last scrape was as expected: successful, or with a problem that says the words.
func (s *scraper) scraped(healthy bool, words ...string) {
	s.t.Helper()
	s.eventually("the scrape of the operator", func() error {
		got, problem, err := env.Monitoring.Prometheus.TargetHealth(s.ctx, scrapeJob)
		if err == nil && got != healthy {
			err = fmt.Errorf("healthy is %t, want %t: %s", got, healthy, problem)
		}
		return errors.Join(err, mentions(problem, words...))
	})
}

// tells waits until Prometheus has had these metrics since the cluster is there. It is for what is over in a moment.
func (s *scraper) tells(names ...string) {
	s.t.Helper()
	s.eventually("the metrics in Prometheus", func() error {
		told, err := env.Monitoring.Prometheus.Names(s.ctx, metricsPrefix, s.born)
		if err != nil {
			return err
		}
		for _, name := range names {
			if !slices.Contains(told, metricsPrefix+name) {
				return fmt.Errorf("it never had %s", name)
			}
		}
		return nil
	})
}

// client trusts the authority, and opens a connection for each request.
func (s *scraper) client() *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.authority.Bundle())
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots, ServerName: s.monitor.TLSConfig.ServerName, MinVersion: tls.VersionTLS12},
	}}
}

// ask asks for the metrics with a token, if it is not empty. The caller closes the answer.
func (s *scraper) ask(url, token string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return s.client().Do(request)
}

// answers expects that a request for the metrics is answered with a status.
func (s *scraper) answers(url, token string, want int) {
	s.t.Helper()
	response, err := s.ask(url, token)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != want {
		s.t.Errorf("%s is answered with %s, want %d", url, response.Status, want)
	}
}

// families are all metrics of an operator at this moment, by name.
func (s *scraper) families(operator *environment.Operator) (map[string]*dto.MetricFamily, error) {
	token, err := os.ReadFile(s.tokenFile)
	if err != nil {
		return nil, err
	}
	response, err := s.ask(operator.Metrics(), string(token))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the metrics are answered with %s", response.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(response.Body)
}

// tellsOfNothing waits until the metrics of an operator name no object of ours any more.
func (s *scraper) tellsOfNothing(operator *environment.Operator) {
	s.t.Helper()
	ours := []string{"upgradejob", "upgradeconfig", "upgradejobhook", "upgradesuspensionwindow", "nodeforcedrain", "clusterversion", "name"}
	s.eventually("the metrics of what is gone", func() error {
		families, err := s.families(operator)
		left := []error{err}
		for name, family := range families {
			if !strings.HasPrefix(name, metricsPrefix) {
				continue
			}
			for _, metric := range family.GetMetric() {
				if labels := labelsOf(metric); labels.hasAny(ours) {
					left = append(left, fmt.Errorf("there is still %s%v", name, labels))
				}
			}
		}
		return errors.Join(left...)
	})
}

type labelsOfMetric map[string]string

func labelsOf(metric *dto.Metric) labelsOfMetric {
	labels := labelsOfMetric{}
	for _, pair := range metric.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}

// hasAny tells whether one of the labels is not empty.
func (l labelsOfMetric) hasAny(names []string) bool {
	for _, name := range names {
		if l[name] != "" {
			return true
		}
	}
	return false
}

// served returns the certificate that the operator shows in a handshake of at most that version of TLS.
func (s *scraper) served(operator *environment.Operator, version uint16) (*x509.Certificate, error) {
	config := s.client().Transport.(*http.Transport).TLSClientConfig
	config.MaxVersion = version
	address := strings.TrimSuffix(strings.TrimPrefix(operator.Metrics(), "https://"), s.monitor.Path)
	connection, err := (&tls.Dialer{Config: config}).DialContext(s.ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}
