// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	// Container images without an operating system have no time zone database.
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

var (
	// ErrInvalidCron is wrapped by the errors of Parse that concern the cron expression.
	ErrInvalidCron = errors.New("invalid cron")
	// ErrInvalidLocation is wrapped by the errors of Parse that concern the location.
	ErrInvalidLocation = errors.New("invalid location")
)

const (
	// maxCronLength leaves room for lists of many values in each field, and keeps
	// errors and the work of parsing small.
	maxCronLength = 256
	// maxLocationLength is about twice the longest name in the time zone database.
	maxLocationLength = 64
)

// Parse returns the schedule of a cron expression, an ISO week rule and a location.
//
//   - cron has the five fields minute, hour, day of month, month and day of week
//     (0-6, Sunday is 0), with names, lists, ranges and steps, or is a descriptor:
//     @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually. If both day
//     fields are restricted, a date needs to match one of them only, as in any cron.
//   - isoWeek is empty for every week, "@odd", "@even", or a week from "1" to "53".
//   - location is an IANA name; "Local" or empty is the time zone of the process.
//
// The error says how to mend the first input that is invalid, and wraps
// ErrInvalidCron, ErrInvalidISOWeek or ErrInvalidLocation. A schedule of which no
// date ever occurs is not invalid: its methods return ErrNoNextSchedule.
func Parse(cron, isoWeek, location string) (*Schedule, error) {
	wanted, err := parseCron(cron)
	if err != nil {
		return nil, err
	}
	if wanted.days.week, err = parseISOWeek(isoWeek); err != nil {
		return nil, err
	}
	loc, err := parseLocation(location)
	if err != nil {
		return nil, err
	}
	return &Schedule{wanted: wanted, location: loc, never: whyNever(&wanted.days)}, nil
}

// cronField describes a field of a cron expression to people.
type cronField struct{ name, values string }

var cronFields = [...]cronField{
	{"minute", "0-59"},
	{"hour", "0-23"},
	{"day of month", "1-31"},
	{"month", "1-12 or jan-dec"},
	{"day of week", "0-6 with 0 for Sunday, or sun-sat"},
}

const (
	cronExample     = `"0 22 * * 2" for Tuesdays at 22:00`
	cronDescriptors = "@hourly, @daily, @weekly, @monthly or @yearly"
)

// parseCron reads a cron expression; the ISO week rule of the result is everyWeek.
func parseCron(spec string) (recurrence, error) {
	spec = strings.TrimSpace(spec)
	if err := rejectUnsuitable(spec); err != nil {
		return recurrence{}, err
	}
	parsed, err := cron.ParseStandard(spec)
	if err != nil {
		return recurrence{}, explainCronError(spec, err)
	}
	fields, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		// What remains is "@every <duration>".
		return recurrence{}, fmt.Errorf("%w %q: an interval is not tied to the wall clock; write five fields such as %s, or %s",
			ErrInvalidCron, spec, cronExample, cronDescriptors)
	}
	return recurrenceOf(spec, fields)
}

// rejectUnsuitable refuses what the parser of cron expressions would accept, or
// stumble over, but what has no place in a schedule.
func rejectUnsuitable(spec string) error {
	switch {
	case spec == "":
		return fmt.Errorf("%w: it is empty; write five fields such as %s, or %s", ErrInvalidCron, cronExample, cronDescriptors)
	case len(spec) > maxCronLength:
		return fmt.Errorf("%w: it is %d characters long, at most %d are allowed", ErrInvalidCron, len(spec), maxCronLength)
	case strings.HasPrefix(spec, "TZ="), strings.HasPrefix(spec, "CRON_TZ="):
		return fmt.Errorf("%w %q: a time zone does not belong here; remove it and set schedule.location", ErrInvalidCron, spec)
	case strings.Contains(spec, "*-"), strings.Contains(spec, "?-"):
		// The parser ignores the end of such a range and takes all values.
		return fmt.Errorf("%w %q: a range cannot begin with a star; write its first value", ErrInvalidCron, spec)
	}
	return nil
}

// explainCronError adds to an error of the parser which field it is about and what
// may stand there.
func explainCronError(spec string, err error) error {
	if strings.HasPrefix(spec, "@") {
		return fmt.Errorf("%w %q: unknown descriptor; write %s, or five fields such as %s", ErrInvalidCron, spec, cronDescriptors, cronExample)
	}
	values := strings.Fields(spec)
	if len(values) != len(cronFields) {
		return fmt.Errorf("%w %q: it has %d fields instead of five (minute, hour, day of month, month, day of week); write for example %s",
			ErrInvalidCron, spec, len(values), cronExample)
	}
	for i, field := range cronFields {
		alone := [len(cronFields)]string{"*", "*", "*", "*", "*"}
		alone[i] = values[i]
		if _, err := cron.ParseStandard(strings.Join(alone[:], " ")); err != nil {
			return fmt.Errorf("%w %q: field %s: %w; allowed are %s, lists, ranges and steps",
				ErrInvalidCron, spec, field.name, err, field.values)
		}
	}
	return fmt.Errorf("%w %q: %w", ErrInvalidCron, spec, err)
}

// recurrenceOf takes over the sets of the parser, less the mark that it puts into
// those which were written with a star.
func recurrenceOf(spec string, parsed *cron.SpecSchedule) (recurrence, error) {
	const star = 1 << 63
	sets := [len(cronFields)]uint64{parsed.Minute, parsed.Hour, parsed.Dom, parsed.Month, parsed.Dow}
	for i, field := range cronFields {
		// The parser reads a lone comma as a list without members.
		if sets[i] &^= star; sets[i] == 0 {
			return recurrence{}, fmt.Errorf("%w %q: field %s names no value; allowed are %s, lists, ranges and steps",
				ErrInvalidCron, spec, field.name, field.values)
		}
	}
	return recurrence{
		minutes: sets[0],
		hours:   sets[1],
		days: dayRule{
			daysOfMonth: sets[2],
			months:      sets[3],
			daysOfWeek:  sets[4],
			eitherDay:   parsed.Dom&star == 0 && parsed.Dow&star == 0,
		},
	}, nil
}

func parseLocation(name string) (*time.Location, error) {
	const hint = `write an IANA time zone such as "Europe/Zurich", "UTC", or "Local" for that of the operator`
	if name == "" {
		return time.Local, nil
	}
	if len(name) > maxLocationLength {
		return nil, fmt.Errorf("%w: it is %d characters long, at most %d are allowed; %s",
			ErrInvalidLocation, len(name), maxLocationLength, hint)
	}
	// What went wrong inside is about files and of no use to whoever wrote the name.
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%w %q: unknown time zone; %s", ErrInvalidLocation, name, hint)
	}
	return location, nil
}

// whyNever returns the error of a schedule whose dates never occur, and nil for any
// other.
func whyNever(rule *dayRule) error {
	if rule.everOccurs() {
		return nil
	}
	inAnyWeek := *rule
	inAnyWeek.week = everyWeek
	if inAnyWeek.everOccurs() {
		return fmt.Errorf("%w: none of the dates that cron names ever lies in %s; change cron or isoWeek",
			ErrNoNextSchedule, rule.week)
	}
	// Every month has all weekdays, so that the days of the month are too many.
	if bits.OnesCount64(rule.daysOfMonth) == 1 && bits.OnesCount64(rule.months) == 1 {
		return fmt.Errorf("%w: %d %s never occurs; change the day or the month of cron",
			ErrNoNextSchedule, lowest(rule.daysOfMonth), time.Month(lowest(rule.months)))
	}
	return fmt.Errorf("%w: day %s never occurs in %s; change the days or the months of cron", ErrNoNextSchedule,
		listOf(rule.daysOfMonth, strconv.Itoa),
		listOf(rule.months, func(month int) string { return time.Month(month).String() }))
}

// listOf writes the numbers of a set in words.
func listOf(set uint64, word func(int) string) string {
	var words []string
	for ; set != 0; set &= set - 1 {
		words = append(words, word(lowest(set)))
	}
	return strings.Join(words, " or ")
}
