package jobs

import (
	"math"
	"time"
)

// The bounds of a search. None is reached by a schedule that ParseSchedule let through; they make every loop end.
const (
	horizon      = 100 * 366 * secondsPerDay // how far ahead Next looks
	longestGap   = 3 * 60 * 60               // a longer one is a change of zone (Pacific/Apia, 2011-12-30): no make-up run
	lastInstant  = 253402300799              // 9999-12-31T23:59:59Z; RFC 3339 ends here
	firstInstant = -62135596800              // 0001-01-01T00:00:00Z; so does time.Time
)

// Next is the first instant of the schedule after the given one, in the schedule's zone; the zero time when there is
// none before the end of the year 9999. It is a pure function: no clock, no state, no data of the host.
func (s *Schedule) Next(after time.Time) time.Time {
	from := max(after.Unix(), firstInstant) + 1 // instants are whole seconds, and Unix rounds down
	if from > lastInstant {
		return time.Time{}
	}
	at, ok := s.atOrAfter(from)
	if !ok || at > lastInstant {
		return time.Time{}
	}
	return time.Unix(at, 0).In(s.location)
}

// Between lists the instants in (after, until], at most limit of them; more says that the limit cut the list.
func (s *Schedule) Between(after, until time.Time, limit int) (at []time.Time, more bool) {
	for next := s.Next(after); !next.IsZero() && !next.After(until); next = s.Next(next) {
		if len(at) >= limit {
			return at, true
		}
		at = append(at, next)
	}
	return at, false
}

// atOrAfter works in seconds since the Unix epoch.
func (s *Schedule) atOrAfter(from int64) (int64, bool) {
	if s.every > 0 {
		return floorDiv(from+s.every-1, s.every) * s.every, true
	}
	stop := from + horizon
	for p := periodAt(s.location, from); from < stop; p = periodAt(s.location, from) {
		if at, ok := s.within(p, from); ok {
			return at, true
		}
		if p.end == math.MaxInt64 {
			return 0, false
		}
		from = p.end
	}
	return 0, false
}

// within finds the first instant in [from, p.end). Within a period local time is elapsed time plus a constant, so that
// the calendar can be asked directly; what the change at its start left out or repeats is decided first.
func (s *Schedule) within(p period, from int64) (int64, bool) {
	if from == p.start && s.makesUp(p) {
		return from, true
	}
	local, ok := s.fields.atOrAfter(s.skipRepeated(p, from) + p.offset)
	return local - p.offset, ok && local < p.endLocal()
}

// makesUp says whether the start of the period stands in for a local time that the gap before it left out.
func (s *Schedule) makesUp(p period) bool {
	gap := p.offset - p.before
	if !s.fixed || s.dst == DSTSkip || gap <= 0 || gap > longestGap {
		return false
	}
	local, ok := s.fields.atOrAfter(p.start + p.before)
	return ok && local < p.start+p.offset
}

// skipRepeated moves behind the local times that the period before has had already, for schedules that want them once.
func (s *Schedule) skipRepeated(p period, from int64) int64 {
	if !s.fixed || s.dst == DSTBoth || p.before <= p.offset {
		return from
	}
	return max(from, p.start+p.before-p.offset)
}
