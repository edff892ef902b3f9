package jobs

import (
	"math"
	"time"
)

// The bounds of a search. None is reached by a schedule that ParseSchedule let through, unless its window or its
// calendars end it; they make every loop end.
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
	from = max(from, s.from)
	at, ok := s.firstFrom(from, min(from+horizon, s.until))
	if !ok {
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

// firstFrom works in seconds since the Unix epoch: the first instant in [from, stop) that no blackout drops.
func (s *Schedule) firstFrom(from, stop int64) (int64, bool) {
	for from < stop {
		at, ok := s.soon(from, stop)
		if !ok {
			return 0, false
		}
		free := s.behindBlackouts(at)
		if free == at {
			return at, true
		}
		from = free
	}
	return 0, false
}

// soon is earliest, for calendars in growing steps: a rule of which they leave nothing is searched only as far ahead as
// the others need, and not to the horizon for each of their instants.
func (s *Schedule) soon(from, stop int64) (int64, bool) {
	if s.dates == nil || len(s.rules) == 1 {
		return s.earliest(from, stop)
	}
	for span := int64(secondsPerDay); from+span < stop; span *= 16 {
		if at, ok := s.earliest(from, from+span); ok {
			return at, true
		}
	}
	return s.earliest(from, stop)
}

// earliest is the first instant of any rule in [from, stop).
func (s *Schedule) earliest(from, stop int64) (first int64, found bool) {
	for i := range s.rules {
		if at, ok := s.atOrAfter(&s.rules[i], from, stop); ok {
			first, stop, found = at, at, true // the others count only if they are earlier
		}
	}
	return first, found
}

// atOrAfter is the first instant of one rule in [from, stop).
func (s *Schedule) atOrAfter(r *rule, from, stop int64) (int64, bool) {
	if r.every > 0 {
		return s.everyFrom(r, from, stop)
	}
	for from < stop {
		p := periodAt(s.location, from)
		at, ok := s.within(r, p, from, stop)
		switch {
		case at == never:
			return 0, false
		case ok:
			return at, at < stop
		case p.end == math.MaxInt64:
			return 0, false
		}
		next := p.end
		if p.end-from > 2*farthestOffsets { // or what the next change repeats may lie before what was looked at
			next = max(next, at-farthestOffsets) // the periods before the next match have nothing to give
		}
		from = next
	}
	return 0, false
}

const (
	never           = math.MaxInt64     // no local time matches any more
	farthestOffsets = 2 * secondsPerDay // more than any two offsets are apart
)

// within finds the first instant in [from, p.end). Within a period local time is elapsed time plus a constant, so that
// the pattern can be asked directly; what the change at its start left out or repeats is decided first. When there is
// none it returns the instant at which the next match would be if the offset stayed, or never when that is behind stop.
func (s *Schedule) within(r *rule, p period, from, stop int64) (int64, bool) {
	if from == p.start && s.makesUp(r, p) {
		return from, true
	}
	local, ok := r.pattern.atOrAfter(s.skipRepeated(r, p, from)+p.offset, stop+farthestOffsets)
	if !ok {
		return never, false
	}
	return local - p.offset, local < p.endLocal()
}

// makesUp says whether the start of the period stands in for a local time that the gap before it left out.
func (s *Schedule) makesUp(r *rule, p period) bool {
	gap := p.offset - p.before
	if !r.fixed || s.dst == DSTSkip || gap <= 0 || gap > longestGap {
		return false
	}
	local, ok := r.pattern.atOrAfter(p.start+p.before, p.start+p.offset)
	return ok && local < p.start+p.offset
}

// skipRepeated moves behind the local times that the period before has had already, for schedules that want them once.
func (s *Schedule) skipRepeated(r *rule, p period, from int64) int64 {
	if !r.fixed || s.dst == DSTBoth || p.before <= p.offset {
		return from
	}
	return max(from, p.start+p.before-p.offset)
}

// everyFrom is for @every, which knows no dates: calendars only drop instants.
func (s *Schedule) everyFrom(r *rule, from, stop int64) (int64, bool) {
	for from < stop {
		at := floorDiv(from+r.every-1, r.every) * r.every
		if s.dates == nil {
			return at, at < stop
		}
		day := floorDiv(at+offsetAt(s.location, at), secondsPerDay)
		if s.dates.allows(day) {
			return at, at < stop
		}
		from = max(at+1, startOfDay(s.location, day+1))
	}
	return 0, false
}

// startOfDay is the first instant of a local date: midnight, or the end of the gap that it lies in.
func startOfDay(loc *time.Location, day int64) int64 {
	midnight := day * secondsPerDay
	for from := midnight - farthestOffsets; ; {
		p := periodAt(loc, from)
		if at := max(from, midnight-p.offset); at < p.end {
			return at
		}
		from = p.end
	}
}
