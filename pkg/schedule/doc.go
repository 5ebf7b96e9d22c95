// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package schedule calculates when upgrades start: the instants at which a
// cron expression, an ISO week rule and a time zone agree. It is pure: the
// reference time is always an argument, and nothing but the time zone database
// is read, and that only by Parse.
//
// # Wall clock and instants
//
// Cron and ISO week are judged on the wall clock of the schedule's location. A
// matching wall clock minute starts at the first instant at which the clock
// shows that minute or a later one. Three promises follow from this one rule:
//
//   - In a gap (clocks go forward) a start that falls into the gap happens at
//     the first valid moment after it. All starts of one gap, and a regular
//     start at that very moment, are one start.
//   - In an overlap (clocks go back) a start happens once, at the first of the
//     two instants.
//   - Where a whole day is left out, as 30 December 2011 in Pacific/Apia, the
//     starts of that day happen at the first moment of the next one.
//
// Day of month, month, day of week and ISO week are those of the wanted wall
// clock time, also if a gap moves the start past midnight: a start wanted on
// Sunday at 23:30 belongs to the week of that Sunday.
//
// # Range
//
// Starts are looked for in the years 1 to 9999 of the wall clock, those that RFC
// 3339 can write. Within them nothing is missed: whichever dates can occur at all
// occur in each 400 years, after which the Gregorian calendar repeats itself.
package schedule
