// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

func TestDurationDecodes(t *testing.T) {
	for _, tc := range []struct {
		document string
		want     time.Duration
		encoded  string
	}{
		{`"90s"`, 90 * time.Second, `"1m30s"`},
		{`"30m"`, 30 * time.Minute, `"30m0s"`},
		{`"1h30m"`, 90 * time.Minute, `"1h30m0s"`},
		{`"1.5h"`, 90 * time.Minute, `"1h30m0s"`},
		{`"0"`, 0, `"0s"`},
		{`"8760h"`, 8760 * time.Hour, `"8760h0m0s"`},
	} {
		t.Run(tc.document, func(t *testing.T) {
			var d v1beta1.Duration
			if err := json.Unmarshal([]byte(tc.document), &d); err != nil {
				t.Fatal(err)
			}
			if d.Duration != tc.want {
				t.Errorf("got %s, want %s", d.Duration, tc.want)
			}
			encoded, err := json.Marshal(d)
			if err != nil || string(encoded) != tc.encoded {
				t.Errorf("encoded as %s (%v), want %s", encoded, err, tc.encoded)
			}
		})
	}
}

func TestDurationRefuses(t *testing.T) {
	for _, document := range []string{`""`, `"30"`, `"a while"`, `"1d"`, `30`, `30.5`, `true`, `{}`, `[]`, `"99999999999h"`} {
		t.Run(document, func(t *testing.T) {
			d := v1beta1.Duration{Duration: time.Minute}
			if err := json.Unmarshal([]byte(document), &d); err == nil {
				t.Errorf("decoded as %s, want an error", d)
			}
			if d.Duration != time.Minute {
				t.Errorf("the refused document changed the value to %s", d)
			}
		})
	}
}

func TestDurationRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := v1beta1.Duration{Duration: time.Duration(rapid.Int64Range(math.MinInt64+1, math.MaxInt64).Draw(t, "d"))}
		document, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var back v1beta1.Duration
		if err := json.Unmarshal(document, &back); err != nil || back != d {
			t.Fatalf("%s came back as %s (%v)", d, back, err)
		}
	})
}

func TestDurationOr(t *testing.T) {
	var none *v1beta1.Duration
	for _, tc := range []struct {
		reason string
		d      *v1beta1.Duration
		want   time.Duration
	}{
		{"none is given", none, time.Hour},
		{"one is given", &v1beta1.Duration{Duration: time.Minute}, time.Minute},
		{"zero is given", &v1beta1.Duration{}, 0},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := tc.d.Or(time.Hour); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestPhaseFinished(t *testing.T) {
	for phase, want := range map[v1beta1.Phase]bool{
		"": false, v1beta1.PhasePending: false, v1beta1.PhaseActive: false, v1beta1.PhasePaused: false,
		v1beta1.PhaseSucceeded: true, v1beta1.PhaseFailed: true, v1beta1.PhaseSkipped: true,
	} {
		if got := phase.Finished(); got != want {
			t.Errorf("%q: got %t, want %t", phase, got, want)
		}
	}
}
