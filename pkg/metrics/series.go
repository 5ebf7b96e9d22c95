// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxLabelRunes bounds the value of a label: names are shorter, and of a text that people wrote the beginning is enough.
const maxLabelRunes = 128

// series gathers the series of a scrape. The first of those with the same labels wins: a second one would fail the whole scrape.
type series struct {
	seen    map[string]bool
	metrics []prometheus.Metric
}

func newSeries() *series { return &series{seen: map[string]bool{}} }

// add adds a series, with the values of the labels in the order of the descriptor.
func (s *series) add(d *Descriptor, value float64, labels ...string) {
	for i, label := range labels {
		labels[i] = bounded(label)
	}
	key := d.Name + "\xff" + strings.Join(labels, "\xff")
	if s.seen[key] {
		return
	}
	kind := prometheus.GaugeValue
	if d.Type == Counter {
		kind = prometheus.CounterValue
	}
	s.seen[key] = true
	s.metrics = append(s.metrics, prometheus.MustNewConstMetric(d.desc, kind, value, labels...))
}

// addTime adds a time in seconds since 1970, if there is one.
func (s *series) addTime(d *Descriptor, t *metav1.Time, labels ...string) {
	if !t.IsZero() {
		s.add(d, seconds(t.Time), labels...)
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// bounded makes a text fit to be the value of a label.
func bounded(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if len(text) <= maxLabelRunes {
		return text
	}
	count := 0
	for i := range text {
		if count++; count > maxLabelRunes {
			return text[:i]
		}
	}
	return text
}
