// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"fmt"
	"time"

	"github.com/appuio/managed-upgrade-operator/pkg/schedule"
)

// Tuesdays at 22:00 in odd weeks. The year 2026 ends with week 53, and 2027 begins
// with week 1: two odd weeks in a row.
func ExampleSchedule_NextN() {
	s, err := schedule.Parse("0 22 * * 2", "@odd", "Europe/Zurich")
	if err != nil {
		fmt.Println(err)
		return
	}
	starts, err := s.NextN(time.Date(2026, time.December, 10, 0, 0, 0, 0, time.UTC), 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, start := range starts {
		fmt.Println(start)
	}
	// Output:
	// 2026-12-15 22:00:00 +0100 CET
	// 2026-12-29 22:00:00 +0100 CET
	// 2027-01-05 22:00:00 +0100 CET
}

func ExampleParse_invalid() {
	for _, input := range [][3]string{
		{"60 22 * * 2", "", "UTC"},
		{"@every 168h", "", "UTC"},
		{"0 22 * * 2", "54", "UTC"},
		{"0 22 * * 2", "", "CEST"},
	} {
		_, err := schedule.Parse(input[0], input[1], input[2])
		fmt.Println(err)
	}
	// Output:
	// invalid cron "60 22 * * 2": field minute: end of range (60) above maximum (59): 60; allowed are 0-59, lists, ranges and steps
	// invalid cron "@every 168h": an interval is not tied to the wall clock; write five fields such as "0 22 * * 2" for Tuesdays at 22:00, or @hourly, @daily, @weekly, @monthly or @yearly
	// invalid ISO week "54": write a week from 1 to 53, @odd or @even, or leave it empty for every week
	// invalid location "CEST": unknown time zone; write an IANA time zone such as "Europe/Zurich", "UTC", or "Local" for that of the operator
}
