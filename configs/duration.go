package configs

import (
	"fmt"
	"math"
	"strings"
	"time"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// ParseDuration reads Go's durations with two more units, d (24 hours) and w (7 days): "90s", "1h30m", "2d", "1w2d".
func ParseDuration(text string) (time.Duration, error) {
	rest, total := strings.TrimPrefix(text, "-"), time.Duration(0)
	if rest == "" || rest[0] == '-' || rest[0] == '+' {
		return 0, errNotDuration
	}
	if rest == "0" {
		return 0, nil
	}
	for rest != "" {
		number := strings.IndexFunc(rest, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
		if number <= 0 {
			return 0, errNotDuration
		}
		end := number
		for end < len(rest) && rest[end] != '.' && (rest[end] < '0' || rest[end] > '9') {
			end++
		}
		part, err := parsePart(rest[:number], rest[number:end])
		if err != nil {
			return 0, err
		}
		if total > math.MaxInt64-part {
			return 0, errTooLong
		}
		total, rest = total+part, rest[end:]
	}
	if text[0] == '-' {
		total = -total
	}
	return total, nil
}

const (
	errNotDuration = durationError("is not a duration; write for example 30s, 5m, 1h30m or 2d")
	errTooLong     = durationError("is longer than 292 years")
)

type durationError string

func (e durationError) Error() string { return string(e) }

func parsePart(number, unit string) (time.Duration, error) {
	scale := time.Duration(1)
	switch unit {
	case "d":
		scale, unit = 24, "h"
	case "w":
		scale, unit = 7*24, "h"
	case "mo", "y", "M", "Y":
		return 0, durationError(fmt.Sprintf("has the unit %q, whose length differs; the longest unit of a duration is w", unit))
	}
	part, err := time.ParseDuration(number + unit)
	if err != nil || part < 0 {
		return 0, errNotDuration
	}
	if part > math.MaxInt64/scale {
		return 0, errTooLong
	}
	return part * scale, nil
}

// formatDuration is the shortest text that ParseDuration reads as d, with whole days and weeks as such.
func formatDuration(d time.Duration) string {
	switch {
	case d != 0 && d%week == 0:
		return fmt.Sprintf("%dw", d/week)
	case d != 0 && d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
