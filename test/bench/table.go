// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// row is a measured figure.
type row struct {
	what, unit string
	// target is what the figure must not exceed; negative where there is none.
	target   float64
	measured float64
}

// noTarget is the target of a row that is there to be known.
const noTarget = -1.0

// met says whether the target is met; nothing where there is none.
func (r row) met() string {
	switch {
	case r.target < 0:
		return ""
	case r.measured <= r.target:
		return "yes"
	}
	return "**no**"
}

// print writes the table.
func (b *bench) print(w io.Writer) error {
	var text strings.Builder
	text.WriteString("| measure | unit | target | measured | met |\n|---|---|---:|---:|---|\n")
	for _, r := range b.rows {
		target := ""
		if r.target >= 0 {
			target = "≤ " + strconv.FormatFloat(r.target, 'f', -1, 64)
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s |\n", r.what, r.unit, target, figure(r.measured), r.met())
	}
	fmt.Fprintf(&text, "\n%s\n", b.machine)
	_, err := io.WriteString(w, text.String())
	return err
}

// figure shows a number with three significant digits, as far as they lie behind the point.
func figure(f float64) string {
	switch {
	case f == float64(int64(f)) || f >= 100:
		return strconv.FormatFloat(f, 'f', 0, 64)
	case f >= 10:
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}

// describeMachine says what the figures were measured on.
func describeMachine() string {
	parts := []string{fmt.Sprintf("%d cores", runtime.NumCPU())}
	if model := lineOf("/proc/cpuinfo", "model name"); model != "" {
		parts = append(parts, model)
	}
	parts = append(parts, runtime.GOOS+"/"+runtime.GOARCH, runtime.Version())
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		parts = append(parts, "load average "+strings.Join(strings.Fields(string(load))[:3], " ")+" at the start")
	}
	return "Machine: " + strings.Join(parts, ", ") + "."
}

// lineOf returns the value of the first line "key: value" in a file; empty if there is none.
func lineOf(path, key string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(content)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// percentile returns the smallest value that p percent of the values do not exceed. There must be values.
func percentile[T time.Duration | int](values []T, p int) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
