package jobs

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// DST decides what a fixed schedule does with local times that a change of the zone's offset leaves out or repeats.
// A schedule is fixed when neither its minute nor its hour (nor its second) has a '*', a range or a step; all others
// follow elapsed time, whatever DST says.
type DST string

// The policies for missing and doubled local times.
const (
	DSTOnce DST = "once" // missing: the first instant after the gap; doubled: the first time only. The default
	DSTSkip DST = "skip" // missing: not at all; doubled: the first time only
	DSTBoth DST = "both" // missing: the first instant after the gap; doubled: both times
)

// DayMatch decides which days match when the day of the month and the day of the week are both restricted.
type DayMatch string

// The rules for two restricted day fields.
const (
	DayMatchAny DayMatch = "any" // a day that matches either of them. The default
	DayMatchAll DayMatch = "all" // a day that matches both
)

// The codes of a ScheduleError.
const (
	CodeSchedule      = "schedule"       // the text is not a schedule
	CodeScheduleNever = "schedule-never" // it is one, and no instant matches it
	CodeTimezone      = "timezone"
	CodeDST           = "dst"
	CodeDayMatch      = "day-match"
	CodeCalendar      = "calendar" // a calendar, or what a schedule does with calendars
	CodeWindow        = "window"   // from, until or a blackout
)

// ScheduleOptions is what a job says beside the text of its schedule. The zero value is UTC, DSTOnce, five fields, either
// day field matches, and no bounds.
type ScheduleOptions struct {
	Timezone string   // an IANA name; "" is UTC
	DST      DST      // "" is DSTOnce
	DayMatch DayMatch // "" is DayMatchAny
	Seconds  bool     // six fields, the first of which is the second
	Job      string   // the name that H is spread by; "" refuses H

	From  time.Time // the first instant there may be; zero is no bound
	Until time.Time // the first instant there may no longer be; zero is no bound

	Calendars Calendars
}

// ScheduleError says what is wrong with a schedule, its zone or one of its options, and the way out.
type ScheduleError struct {
	Code    string // what is at fault, and how: one of the Code constants
	Message string // a sentence without a position
	Offset  int    // where the fault begins: bytes into the text that Code names
	Length  int    // how long it is, in bytes; 0 is a place where something is missing
	Item    int    // which text of a list, from 0; -1 when the list as a whole is at fault
}

func (e *ScheduleError) Error() string { return e.Message }

// Schedule is a set of instants, computed from its texts, its zone and its options and from nothing else: every
// replica finds the same ones. It is immutable and safe for concurrent use.
type Schedule struct {
	texts    []string
	location *time.Location
	dst      DST
	seconds  bool

	rules       []rule // one for each text
	from, until int64  // [from, until), in seconds since the epoch; the extremes of what there is when not bounded
	dates       *dateRule
	blackouts   []Blackout
}

// rule is what one text stands for.
type rule struct {
	every   int64   // @every: seconds between two instants; 0 for a pattern
	pattern pattern // otherwise
	fixed   bool    // the class of the pattern, see DST
}

// ParseSchedule reads five-field cron (six with Seconds), @hourly and its kin, or @every. Its error is always a
// *ScheduleError; a fault in the text comes before one in the zone, and that before one in another option.
func ParseSchedule(text string, o ScheduleOptions) (*Schedule, error) {
	return ParseSchedules([]string{text}, o)
}

// ParseSchedules reads a list of schedules that stands for the instants of all of them, each once. Its errors are
// those of ParseSchedule.
func ParseSchedules(texts []string, o ScheduleOptions) (*Schedule, error) {
	s := &Schedule{texts: slices.Clone(texts), dst: o.DST, seconds: o.Seconds}
	if len(texts) == 0 {
		return nil, &ScheduleError{Code: CodeSchedule, Message: "the list of schedules is empty", Item: -1}
	}
	for i, text := range texts {
		r, err := parseRule(text, o)
		if err != nil {
			err.Item = i
			return nil, err
		}
		s.rules = append(s.rules, r)
	}
	loc, err := LoadZone(o.zone())
	if err != nil {
		return nil, err
	}
	s.location = loc
	if err := s.setOptions(o); err != nil {
		return nil, err
	}
	return s, nil
}

func (o ScheduleOptions) zone() string {
	if o.Timezone == "" {
		return "UTC"
	}
	return o.Timezone
}

func (s *Schedule) setOptions(o ScheduleOptions) error {
	if err := s.checkWords(o); err != nil {
		return err
	}
	if err := s.setWindow(o.From, o.Until); err != nil {
		return err
	}
	if err := s.setCalendars(o.Calendars); err != nil {
		return err
	}
	return s.checkEver()
}

// checkWords looks at the policies that are words.
func (s *Schedule) checkWords(o ScheduleOptions) error {
	switch s.dst {
	case "":
		s.dst = DSTOnce
	case DSTOnce, DSTSkip, DSTBoth:
	default:
		return &ScheduleError{
			Code:    CodeDST,
			Message: fmt.Sprintf("dst %q is not one of once, skip, both", s.dst),
			Length:  len(s.dst),
		}
	}
	switch o.DayMatch {
	case "", DayMatchAny, DayMatchAll:
		return nil
	default:
		return &ScheduleError{
			Code:    CodeDayMatch,
			Message: fmt.Sprintf("day_match %q is not one of any, all", o.DayMatch),
			Length:  len(o.DayMatch),
		}
	}
}

// parseRule reads everything that one text decides.
func parseRule(text string, o ScheduleOptions) (rule, *ScheduleError) {
	var r rule
	src := newSource(text, o.Seconds)
	src.job = o.Job
	if src.isDescriptor() {
		expanded, every, err := src.descriptor()
		if err != nil || every > 0 {
			r.every = every
			return r, err
		}
		src = newSource(expanded, false)
	}
	n, err := src.normalize()
	if err != nil {
		return r, err
	}
	r.fixed = n.fixed
	p, parseErr := n.pattern()
	if parseErr != nil {
		return r, src.fault(span{0, len(text)}, parseErr.Error(), "")
	}
	p.all = o.DayMatch == DayMatchAll
	r.pattern = p
	if why := p.neverBecause(); why != "" {
		return r, &ScheduleError{
			Code:    CodeScheduleNever,
			Message: fmt.Sprintf("%s never fires: %s", quote(text), why),
			Length:  len(text),
		}
	}
	return r, nil
}

// Location is the zone of the schedule, from the embedded database.
func (s *Schedule) Location() *time.Location { return s.location }

// Texts are the schedules of the list as they were written.
func (s *Schedule) Texts() []string { return slices.Clone(s.texts) }

// String is the text as it was written; those of a list stand with "; " between them.
func (s *Schedule) String() string { return strings.Join(s.texts, "; ") }
