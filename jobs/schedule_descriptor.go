package jobs

import (
	"fmt"
	"strings"
	"time"
)

// The bounds of @every.
const (
	shortestEvery = time.Second
	longestEvery  = 100 * 365 * 24 * time.Hour
)

func (s *source) isDescriptor() bool {
	return len(s.tokens) > 0 && strings.HasPrefix(s.tokens[0].text, "@")
}

// descriptor reads @daily and its kin, which stand for five fields, or @every, which has a number of seconds.
func (s *source) descriptor() (fields string, every int64, err *ScheduleError) {
	name := s.tokens[0]
	if name.text == "@every" {
		every, err = s.every()
		return "", every, err
	}
	fields, known := descriptorFields(name.text)
	switch {
	case name.text == "@reboot":
		return "", 0, s.fault(name.span(), "@reboot is the start of one replica, not an instant that all of them know,",
			"leave the schedule out and run the job by hand, or write @every")
	case !known:
		return "", 0, s.fault(name.span(), "unknown schedule "+quote(name.text), s.descriptorHint())
	case len(s.tokens) > 1:
		return "", 0, s.fault(s.tokens[1].span(), quote(s.tokens[1].text)+" behind "+name.text, "write "+name.text+" alone")
	}
	return fields, 0, nil
}

func descriptorFields(name string) (string, bool) {
	switch name {
	case "@hourly":
		return "0 * * * *", true
	case "@daily", "@midnight":
		return "0 0 * * *", true
	case "@weekly":
		return "0 0 * * 0", true
	case "@monthly":
		return "0 0 1 * *", true
	case "@yearly", "@annually":
		return "0 0 1 1 *", true
	default:
		return "", false
	}
}

func (s *source) descriptorHint() string {
	known := []string{"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually", "@every"}
	if near := nearest(s.tokens[0].text, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "known are " + enumerate(known, "and")
}

// every reads the duration of @every: Go's units plus d (24 hours) and w (7 days), whole seconds.
func (s *source) every() (int64, *ScheduleError) {
	if len(s.tokens) == 1 {
		end := s.tokens[0].offset + len(s.tokens[0].text)
		return 0, s.fault(span{end, 0}, "no duration behind @every", "write one, like @every 15m")
	}
	if len(s.tokens) > 2 {
		return 0, s.fault(s.tokens[2].span(), quote(s.tokens[2].text)+" behind the duration", "write the duration without blanks, like 1h30m")
	}
	t := s.tokens[1]
	d, err := parseDuration(t.text)
	switch {
	case strings.HasPrefix(t.text, "-"):
		return 0, s.fault(t.span(), "negative duration "+brief(t.text), "write a positive one, like @every 15m")
	case err != nil:
		return 0, s.fault(t.span(), err.Error(), "write one like 90s, 15m, 1h30m, 2d or 1w")
	case d < shortestEvery:
		return 0, s.fault(t.span(), "duration "+brief(t.text)+" is shorter than a second", "")
	case d%time.Second != 0:
		return 0, s.fault(t.span(), "duration "+brief(t.text)+" is not a whole number of seconds", "")
	}
	return int64(d / time.Second), nil
}

// parseDuration reads a positive duration: numbers with units, like 1d12h. Days and weeks are elapsed time.
func parseDuration(text string) (time.Duration, error) {
	var total time.Duration
	for rest := text; rest != ""; {
		var value, unit string
		value, rest = leading(rest, "0123456789.")
		unit, rest = leading(rest, "abcdefghijklmnopqrstuvwxyzµμ")
		factor := time.Duration(1)
		switch unit {
		case "d":
			unit, factor = "h", 24
		case "w":
			unit, factor = "h", 7*24
		}
		_, unknown := time.ParseDuration("1" + unit)
		if unknown != nil || strings.Trim(value, ".") == "" || strings.Count(value, ".") > 1 {
			return 0, fmt.Errorf("%s is not a duration", quote(text))
		}
		part, err := time.ParseDuration(value + unit) // now only too large a value is left to fail
		if err != nil || part > (longestEvery-total)/factor {
			return 0, fmt.Errorf("duration %s is longer than 100 years", brief(text))
		}
		total += part * factor
	}
	return total, nil
}

// leading splits off the characters of a set that the text begins with.
func leading(text, set string) (head, rest string) {
	rest = strings.TrimLeft(text, set)
	return text[:len(text)-len(rest)], rest
}
