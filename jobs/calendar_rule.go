package jobs

import (
	"fmt"
	"slices"
	"strings"
)

// Shift decides what becomes of an instant on a date that the calendars exclude.
type Shift string

// The policies for excluded dates. The local time stays; two instants that fall together are one.
const (
	ShiftNone     Shift = "none"     // it is dropped. The default
	ShiftNext     Shift = "next"     // it moves to the next date that is not excluded
	ShiftPrevious Shift = "previous" // it moves to the last date before it that is not excluded
)

// longestShift is how many days an instant may move; what would move farther is dropped. It bounds the search where a
// calendar excludes everything from some date on.
const longestShift = 366

// Calendars is what a schedule does with calendars. The zero value is nothing.
type Calendars struct {
	Include  []*Calendar // when there are any, only dates in one of them count
	Exclude  []*Calendar // dates in one of them do not count, even when included
	Shift    Shift       // "" is ShiftNone
	Blackout []Blackout  // instants inside are dropped; it looks at where an instant was shifted to
}

// dateRule is the dates that a schedule may have. nil allows all of them.
type dateRule struct {
	include, exclude []*Calendar
	shift            Shift
	last             int64 // no date behind it is allowed
}

func (s *Schedule) setCalendars(c Calendars) error {
	s.blackouts = slices.Clone(c.Blackout)
	if c.Shift == "" {
		c.Shift = ShiftNone
	}
	if !slices.Contains([]Shift{ShiftNone, ShiftNext, ShiftPrevious}, c.Shift) {
		return calendarsFault(-1, fmt.Sprintf("shift %q is not one of none, next, previous", c.Shift))
	}
	if len(c.Include)+len(c.Exclude) == 0 {
		if c.Shift != ShiftNone {
			return calendarsFault(-1, fmt.Sprintf("shift: %s moves nothing without a calendar to include or exclude", c.Shift))
		}
		return nil
	}
	s.dates = &dateRule{slices.Clone(c.Include), slices.Clone(c.Exclude), c.Shift, lastOf(c.Include)}
	for i := range s.rules {
		if s.rules[i].every > 0 && c.Shift != ShiftNone {
			return calendarsFault(i, fmt.Sprintf("shift: %s moves a time of day to another date, and @every has none; write shift: none, or a time like %q", c.Shift, "0 6 * * *"))
		}
		s.rules[i].pattern.dates = s.dates
	}
	return nil
}

func calendarsFault(item int, message string) error {
	return &ScheduleError{Code: CodeCalendar, Message: message, Item: item}
}

// lastOf is the last date that any of the calendars has; the end of all dates when none ends, or there are none.
func lastOf(list []*Calendar) int64 {
	const end = lastInstant / secondsPerDay
	if len(list) == 0 {
		return end
	}
	var last int64 = firstInstant / secondsPerDay
	for _, c := range list {
		if c.weekdays != 0 || len(c.yearly) > 0 {
			return end
		}
		last = max(last, c.dates[len(c.dates)-1]) // a calendar is never empty
	}
	return last
}

// allows says whether a date counts.
func (r *dateRule) allows(day int64) bool {
	has := func(c *Calendar) bool { return c.has(day) }
	return (len(r.include) == 0 || slices.ContainsFunc(r.include, has)) && !slices.ContainsFunc(r.exclude, has)
}

// dayAtOrAfter is the first date, from day to stop, that the pattern has once its dates were dropped or shifted.
func (r *dateRule) dayAtOrAfter(c *pattern, day, stop int64) (int64, bool) {
	for stop = min(stop, r.last); day <= stop; day++ {
		if r.allows(day) && (c.hasDay(day) || r.receives(c, day)) {
			return day, true
		}
	}
	return 0, false
}

// receives says whether an excluded date next to this one gives its instants to it.
func (r *dateRule) receives(c *pattern, day int64) bool {
	step := int64(1)
	switch r.shift {
	case ShiftNone:
		return false
	case ShiftNext:
		step = -1
	case ShiftPrevious:
	}
	for i := int64(1); i <= longestShift; i++ {
		from := day + i*step
		if r.allows(from) {
			return false
		}
		if c.hasDay(from) {
			return true
		}
	}
	return false
}

// text is canonical; empty for no rule.
func (r *dateRule) text() string {
	if r == nil {
		return ""
	}
	return calendarsText("include", r.include) + calendarsText("exclude", r.exclude) + fmt.Sprintf("shift %s\n", r.shift)
}

func calendarsText(what string, list []*Calendar) string {
	texts := make([]string, len(list))
	for i, c := range list {
		texts[i] = what + " " + c.text() + "\n"
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), "")
}
