package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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

// The codes of a ScheduleError.
const (
	CodeSchedule      = "schedule"       // the text is not a schedule
	CodeScheduleNever = "schedule-never" // it is one, and no instant matches it
	CodeTimezone      = "timezone"
	CodeDST           = "dst"
)

// ScheduleOptions is what a job says beside the text of its schedule. The zero value is UTC, DSTOnce, five fields.
type ScheduleOptions struct {
	Timezone string // an IANA name; "" is UTC
	DST      DST    // "" is DSTOnce
	Seconds  bool   // six fields, the first of which is the second
}

// ScheduleError says what is wrong with a schedule, its zone or its dst policy, and the way out.
type ScheduleError struct {
	Code    string // which of the three is at fault, and how: one of the Code constants
	Message string // a sentence without a position
	Offset  int    // where the fault begins: bytes into the text that Code names
	Length  int    // how long it is, in bytes; 0 is a place where something is missing
}

func (e *ScheduleError) Error() string { return e.Message }

// Schedule is a set of instants, computed from its text, its zone and its dst policy and from nothing else: every
// replica finds the same ones. It is immutable and safe for concurrent use.
type Schedule struct {
	text     string
	location *time.Location
	dst      DST
	seconds  bool

	every  int64    // @every: seconds between two instants; 0 for a calendar
	fields calendar // otherwise
	fixed  bool     // the class of the calendar, see DST
}

// ParseSchedule reads five-field cron (six with Seconds), @hourly and its kin, or @every. Its error is always a
// *ScheduleError; a fault in the text comes before one in the zone, and that before one in the policy.
func ParseSchedule(text string, o ScheduleOptions) (*Schedule, error) {
	s := &Schedule{text: text, dst: o.DST, seconds: o.Seconds}
	if err := s.read(); err != nil {
		return nil, err
	}
	loc, err := LoadZone(o.zone())
	if err != nil {
		return nil, err
	}
	s.location = loc
	if err := s.checkDST(); err != nil {
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

func (s *Schedule) checkDST() error {
	switch s.dst {
	case "":
		s.dst = DSTOnce
		return nil
	case DSTOnce, DSTSkip, DSTBoth:
		return nil
	default:
		return &ScheduleError{
			Code:    CodeDST,
			Message: fmt.Sprintf("dst %q is not one of once, skip, both", s.dst),
			Length:  len(s.dst),
		}
	}
}

// read fills in everything that the text decides.
func (s *Schedule) read() error {
	src := newSource(s.text, s.seconds)
	if src.isDescriptor() {
		expanded, every, err := src.descriptor()
		if err != nil || every > 0 {
			s.every = every
			return err
		}
		src = newSource(expanded, false)
	}
	n, err := src.normalize()
	if err != nil {
		return err
	}
	s.fixed = n.fixed
	if s.fields, err = n.calendar(); err != nil {
		return src.fault(span{0, len(s.text)}, err.Error(), "")
	}
	if why := s.fields.neverBecause(); why != "" {
		return &ScheduleError{
			Code:    CodeScheduleNever,
			Message: fmt.Sprintf("%s never fires: %s", quote(s.text), why),
			Length:  len(s.text),
		}
	}
	return nil
}

// Location is the zone of the schedule, from the embedded database.
func (s *Schedule) Location() *time.Location { return s.location }

// String is the text as it was written.
func (s *Schedule) String() string { return s.text }

// Hash names everything that decides the instants: 32 hexadecimal digits. It is stable across processes, platforms and
// ways of writing the same fields ("@daily" and "0  0 * * *"), and changes with the zone, the policy and ZoneVersion.
func (s *Schedule) Hash() string {
	what := fmt.Sprintf("every %ds", s.every)
	if s.every == 0 {
		what = fmt.Sprintf("fields %s fixed %t", &s.fields, s.fixed)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "schedule 1\n%s\nzone %s\ndst %s\nseconds %t\ntzdata %s\n",
		what, s.location, s.dst, s.seconds, ZoneVersion))
	return hex.EncodeToString(sum[:16])
}
