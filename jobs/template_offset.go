package jobs

import (
	"strconv"
	"strings"
	"time"
)

// dateOffset moves a calendar date. The zero value moves nothing.
type dateOffset struct {
	years, months, days int
}

// offsetMax keeps every date of a run within the years that time.Time can print.
const offsetMax = 1000

// parseOffset reads a sign, a number and one of d, w, mo, y.
func parseOffset(text string) (dateOffset, error) {
	rest := strings.TrimLeft(text, "+-")
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	unit := rest[digits:]
	n, err := strconv.Atoi(rest[:digits])
	switch {
	case len(text)-len(rest) > 1 || digits == 0 || unit == "":
		return dateOffset{}, offsetFault(text, "offset "+quote(text)+" is not a number with a unit; write one like -1mo, -2d, +1w or -1y")
	case err != nil || n > offsetMax:
		return dateOffset{}, offsetFault(text, "offset "+quote(text)+" is larger than "+strconv.Itoa(offsetMax))
	case text[0] == '-':
		n = -n
	}
	switch unit {
	case "d":
		return dateOffset{days: n}, nil
	case "w":
		return dateOffset{days: 7 * n}, nil
	case "mo":
		return dateOffset{months: n}, nil
	case "y":
		return dateOffset{years: n}, nil
	}
	fault := offsetFault(text, "offset "+quote(text)+" has an unknown unit; units are d, w, mo and y")
	if unit == "m" || unit == "M" {
		fault.Message = "offset " + quote(text) + " has the unit " + unit + "; a month is mo"
	}
	fault.Offset, fault.Length = len(text)-len(unit), len(unit)
	return dateOffset{}, fault
}

func offsetFault(text, message string) *TemplateError {
	return &TemplateError{Code: CodeResourceOffset, Message: message, Length: len(text)}
}

// move steps in the calendar of the local date. The result stands in UTC, which has every date and time: only what it
// prints as matters. Months step from the first of the month (a month before 31 March is February, not 3 March), years
// keep the day as far as the month has it.
func (o dateOffset) move(local time.Time) time.Time {
	year, month, day := local.Date()
	switch {
	case o.months != 0:
		month, day = month+time.Month(o.months), 1
	case o.years != 0:
		year += o.years
		day = min(day, monthLength(year, month))
	default:
		day += o.days
	}
	return time.Date(year, month, day, local.Hour(), local.Minute(), local.Second(), 0, time.UTC)
}
