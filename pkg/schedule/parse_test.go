// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/pkg/schedule"
)

func TestParseAccepts(t *testing.T) {
	for _, tc := range []struct{ reason, cron, week, location string }{
		{"the usual", "0 22 * * 2", "@odd", "Europe/Zurich"},
		{"no week and no location are every week in the process's zone", "0 22 * * 2", "", ""},
		{"Local by name", "0 22 * * 2", "@even", "Local"},
		{"lists, ranges, steps, names and question marks", "0,30 8-18/2 ? JAN-jun,12 mon-FRI", "1", "UTC"},
		{"a week may have a leading zero", "@daily", "09", "UTC"},
		{"the last week", "@daily", "53", "UTC"},
		{"descriptors", "@weekly", "", "Asia/Kathmandu"},
		{"space around cron is harmless", "  @monthly\t", "", "UTC"},
		{"dates that never occur are no input error", "0 0 30 2 *", "", "UTC"},
		{"as long as is allowed", "0 22 * * 2" + strings.Repeat(",2", 123), "", "UTC"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			mustParse(t, tc.cron, tc.week, tc.location)
		})
	}
}

func TestParseRejects(t *testing.T) {
	sentinels := []error{schedule.ErrInvalidCron, schedule.ErrInvalidISOWeek, schedule.ErrInvalidLocation}
	const daily = "@daily"

	for _, tc := range []struct {
		reason               string
		cron, week, location string
		want                 error
		words                string
	}{
		{"empty", "", "", "UTC", schedule.ErrInvalidCron, "it is empty"},
		{"only space", " \t", "", "UTC", schedule.ErrInvalidCron, "it is empty"},
		{"absurdly long", strings.Repeat("1,", 1<<20), "", "UTC", schedule.ErrInvalidCron, "at most 256"},
		{"four fields", "0 22 * *", "", "UTC", schedule.ErrInvalidCron, "has 4 fields instead of five"},
		{"six fields, as with seconds", "0 0 22 * * 2", "", "UTC", schedule.ErrInvalidCron, "has 6 fields instead of five"},
		{"minute too large", "60 22 * * 2", "", "UTC", schedule.ErrInvalidCron, "field minute"},
		{"hour too large", "0 24 * * 2", "", "UTC", schedule.ErrInvalidCron, "field hour"},
		{"no day zero", "0 22 0 * *", "", "UTC", schedule.ErrInvalidCron, "field day of month"},
		{"no such month", "0 22 * foo *", "", "UTC", schedule.ErrInvalidCron, "allowed are 1-12 or jan-dec"},
		{"Sunday is not 7", "0 22 * * 7", "", "UTC", schedule.ErrInvalidCron, "0 for Sunday"},
		{"range backwards", "0 22-4 * * *", "", "UTC", schedule.ErrInvalidCron, "field hour"},
		{"range from a star", "0 22 *-7 * *", "", "UTC", schedule.ErrInvalidCron, "cannot begin with a star"},
		{"step of zero", "*/0 22 * * *", "", "UTC", schedule.ErrInvalidCron, "field minute"},
		{"two steps", "0/2/3 22 * * *", "", "UTC", schedule.ErrInvalidCron, "field minute"},
		{"a number beyond any integer", "99999999999999999999 22 * * *", "", "UTC", schedule.ErrInvalidCron, "field minute"},
		{"a list without members", "0 22 , * *", "", "UTC", schedule.ErrInvalidCron, "field day of month names no value"},
		{"zone in cron", "TZ=UTC 0 22 * * 2", "", "UTC", schedule.ErrInvalidCron, "set schedule.location"},
		{"zone in cron, long form", " CRON_TZ=UTC 0 22 * * 2", "", "UTC", schedule.ErrInvalidCron, "set schedule.location"},
		{"zone and nothing else", "TZ=UTC", "", "UTC", schedule.ErrInvalidCron, "set schedule.location"},
		{"zone in a later field", "0 TZ=UTC * * 2", "", "UTC", schedule.ErrInvalidCron, "field hour"},
		{"interval", "@every 168h", "", "UTC", schedule.ErrInvalidCron, "not tied to the wall clock"},
		{"interval without a duration", "@every", "", "UTC", schedule.ErrInvalidCron, "write @hourly"},
		{"unknown descriptor", "@fortnightly", "", "UTC", schedule.ErrInvalidCron, "write @hourly"},

		{"week zero", daily, "0", "UTC", schedule.ErrInvalidISOWeek, "from 1 to 53"},
		{"week zero with a leading zero", daily, "00", "UTC", schedule.ErrInvalidISOWeek, "from 1 to 53"},
		{"week 54", daily, "54", "UTC", schedule.ErrInvalidISOWeek, "from 1 to 53"},
		{"week 99", daily, "99", "UTC", schedule.ErrInvalidISOWeek, "from 1 to 53"},
		{"three digits", daily, "007", "UTC", schedule.ErrInvalidISOWeek, "from 1 to 53"},
		{"negative week", daily, "-1", "UTC", schedule.ErrInvalidISOWeek, "from 1 to 53"},
		{"signed week", daily, "+1", "UTC", schedule.ErrInvalidISOWeek, "from 1 to 53"},
		{"no list of weeks", daily, "1,3", "UTC", schedule.ErrInvalidISOWeek, "from 1 to 53"},
		{"parity without the @", daily, "odd", "UTC", schedule.ErrInvalidISOWeek, "@odd or @even"},
		{"only space for a week", daily, " ", "UTC", schedule.ErrInvalidISOWeek, "leave it empty"},

		{"unknown zone", daily, "", "Europe/Berne", schedule.ErrInvalidLocation, `"Europe/Berne": unknown time zone`},
		{"summer time is no zone", daily, "", "CEST", schedule.ErrInvalidLocation, `such as "Europe/Zurich"`},
		{"a folder of the database", daily, "", "Europe", schedule.ErrInvalidLocation, "unknown time zone"},
		{"a way out of the database", daily, "", "../../etc/localtime", schedule.ErrInvalidLocation, "unknown time zone"},
		{"absurdly long zone", daily, "", strings.Repeat("Europe/", 1<<20), schedule.ErrInvalidLocation, "at most 64"},

		{"the first of several problems", "", "54", "Mars", schedule.ErrInvalidCron, "it is empty"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s, err := schedule.Parse(tc.cron, tc.week, tc.location)
			if s != nil {
				t.Errorf("got a schedule next to the error")
			}
			for _, sentinel := range sentinels {
				if got, want := errors.Is(err, sentinel), errors.Is(tc.want, sentinel); got != want {
					t.Errorf("errors.Is(err, %q): got %t, want %t (err: %v)", sentinel, got, want, err)
				}
			}
			if err == nil {
				return
			}
			if !strings.Contains(err.Error(), tc.words) {
				t.Errorf("error %q lacks %q", err, tc.words)
			}
			if len(err.Error()) > 1024 {
				t.Errorf("error has %d bytes, too many for a condition", len(err.Error()))
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0 22 * * 2", "@odd", "Europe/Zurich")
	f.Add("@weekly", "53", "Local")
	f.Add("0 0 29 2 *", "", "America/New_York")
	f.Add("TZ=UTC", "54", "")
	f.Add("0 TZ= * * *", "00", "../zone")
	f.Add("@every 1h", "@even", "UTC")
	f.Add("*/9223372036854775807 ,,1 ?-? 1-/ \x00", "-", "\xff")

	around := time.Date(2026, time.March, 29, 1, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, cron, week, location string) {
		s, err := schedule.Parse(cron, week, location)
		if err != nil {
			return
		}
		next, err := s.Next(around)
		if errors.Is(err, schedule.ErrNoNextSchedule) {
			return
		}
		if err != nil || !next.After(around) {
			t.Fatalf("Next(%s): got %s, %v", around, next, err)
		}
		prev, err := s.Prev(next.Add(1))
		if err != nil || !prev.Equal(next) {
			t.Fatalf("Prev just after %s: got %s, %v", next, prev, err)
		}
	})
}
