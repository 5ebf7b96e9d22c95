// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"

	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
)

func TestSilencedAlerts(t *testing.T) {
	const silenced = `{"labels":{"alertname":"A","pod":"x"},"status":{"state":"suppressed","silencedBy":["1"],"inhibitedBy":[]}}`
	for _, tc := range []struct {
		reason      string
		answer      http.HandlerFunc
		want        []model.LabelSet
		err         string
		unavailable bool
	}{
		{reason: "none", answer: reply(200, `[]`)},
		{reason: "one", answer: reply(200, `[`+silenced+`]`), want: []model.LabelSet{{"alertname": "A", "pod": "x"}}},
		{reason: "one that is inhibited only", answer: reply(200, `[{"labels":{"alertname":"A"},"status":{"state":"suppressed","silencedBy":[],"inhibitedBy":["2"]}}]`)},
		{reason: "one without a status", answer: reply(200, `[{"labels":{"alertname":"A"}}]`)},
		{reason: "a page for people", answer: reply(200, `<html>`), err: "Alertmanager cannot be asked: "},
		{reason: "an object", answer: reply(200, `{"status":"success","data":[]}`), err: "the answer of Alertmanager cannot be read: "},
		{reason: "half of it", answer: reply(200, `[`+silenced), err: "the answer of Alertmanager cannot be read: "},
		{reason: "a bad request", answer: reply(400, `"bad matcher"`), err: "Alertmanager answers 400 Bad Request"},
		{reason: "no permission", answer: reply(403, ``), err: "Alertmanager answers 403 Forbidden: the operator's service account may not ask it"},
		{reason: "it is away", answer: reply(503, ``), err: "Alertmanager answers 503 Service Unavailable", unavailable: true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := serve(t, tc.answer)
			c := newClient(t, monitoring.Options{AlertmanagerURL: s.URL})
			for range 3 {
				got, err := c.SilencedAlerts(t.Context(), noon, time.Minute)
				expect(t, err, tc.err, tc.unavailable)
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			if n := len(s.seen()); n != 1 {
				t.Errorf("%d requests within the time that an answer stands, want 1", n)
			}
		})
	}
	without := newClient(t, monitoring.Options{})
	if without.HasAlertmanager() {
		t.Error("a client without Alertmanager says that it has one")
	}
	_, err := without.SilencedAlerts(t.Context(), noon, time.Minute)
	expect(t, err, "no Alertmanager is configured (--alertmanager-url)", true)
}
