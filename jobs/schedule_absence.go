package jobs

import (
	"slices"
	"time"
)

// Absence is why an instant is none of a schedule.
type Absence string

// The reasons for an absence, from the one that lies deepest. AbsentNot says that the instant is there.
const (
	AbsentNot      Absence = ""
	AbsentFields   Absence = "fields"   // the fields of the schedule do not match
	AbsentDST      Absence = "dst"      // it is the second time of a local time that comes twice, and dst takes the first
	AbsentCalendar Absence = "calendar" // the calendars drop its date, or move it to another one
	AbsentFrom     Absence = "from"
	AbsentUntil    Absence = "until"
	AbsentBlackout Absence = "blackout"
)

// Absent says why the schedule does not have an instant, and what is behind it as a text: the window, the bound, or the
// names of the calendars.
func (s *Schedule) Absent(at time.Time) (why Absence, what string) {
	if s.hasInstant(at) {
		return AbsentNot, ""
	}
	bare := s.without()
	bare.dst = DSTBoth
	if !bare.hasInstant(at) {
		return AbsentFields, s.String()
	}
	if bare.dst = s.dst; !bare.hasInstant(at) {
		return AbsentDST, string(s.dst)
	}
	dated := s.without()
	dated.dates, dated.rules = s.dates, s.rules
	switch {
	case !dated.hasInstant(at):
		return AbsentCalendar, s.dates.names()
	case at.Unix() < s.from:
		return AbsentFrom, time.Unix(s.from, 0).UTC().Format(time.RFC3339)
	case at.Unix() >= s.until:
		return AbsentUntil, time.Unix(s.until, 0).UTC().Format(time.RFC3339)
	}
	i := slices.IndexFunc(s.blackouts, func(b Blackout) bool { return b.end(s.location, at.Unix()) > at.Unix() })
	if i < 0 {
		return AbsentBlackout, ""
	}
	return AbsentBlackout, s.blackouts[i].String()
}

func (s *Schedule) hasInstant(at time.Time) bool {
	return at.Equal(s.Next(at.Add(-time.Second))) // instants are whole seconds
}

// without is the schedule with neither bounds nor calendars nor blackouts.
func (s *Schedule) without() *Schedule {
	bare := *s
	bare.from, bare.until, bare.blackouts, bare.dates = firstInstant, lastInstant+1, nil, nil
	bare.rules = slices.Clone(s.rules)
	for i := range bare.rules {
		bare.rules[i].pattern.dates = nil
	}
	return &bare
}

// names are the calendars of the rule as a schedule tells them.
func (r *dateRule) names() string {
	text := ""
	for _, list := range []struct {
		word      string
		calendars []*Calendar
	}{{"include", r.include}, {"exclude", r.exclude}} {
		for i, c := range list.calendars {
			switch {
			case i > 0:
				text += ", "
			case text != "":
				text += "; " + list.word + " "
			default:
				text += list.word + " "
			}
			text += c.name
		}
	}
	if r.shift != ShiftNone {
		text += "; shift " + string(r.shift)
	}
	return text
}

// Last is the last instant at or before the given one, in the schedule's zone; the zero time when there is none in the
// hundred years before.
func (s *Schedule) Last(at time.Time) time.Time {
	low, found := at.Unix(), false
	for span := int64(60); span < 2*horizon && !found; span *= 4 {
		low = max(at.Unix()-min(span, horizon), firstInstant+1)
		next := s.Next(time.Unix(low-1, 0))
		found = !next.IsZero() && !next.After(at)
	}
	if !found {
		return time.Time{}
	}
	// The next instant behind a moment never comes earlier when the moment comes later.
	low--
	for high := at.Unix(); high-low > 1; {
		middle := low + (high-low)/2
		if next := s.Next(time.Unix(middle, 0)); !next.IsZero() && !next.After(at) {
			low = middle
		} else {
			high = middle
		}
	}
	return s.Next(time.Unix(low, 0))
}

// LocalTime is what a date and a time of day mean in a zone.
type LocalTime struct {
	At  []time.Time // none when the clocks skip it, two when they go back over it
	Gap time.Time   // the instant at which they skip it; zero when there is one
}

// LocalTimeIn reads the date and the time of wall, whose own zone does not count, as the zone has them.
func LocalTimeIn(loc *time.Location, wall time.Time) (l LocalTime) {
	year, month, day := wall.Date()
	local := time.Date(year, month, day, wall.Hour(), wall.Minute(), wall.Second(), 0, time.UTC).Unix()
	for from, stop := local-farthestOffsets, local+farthestOffsets; from < stop; {
		p := periodAt(loc, from)
		if at := local - p.offset; at >= p.start && at < p.end {
			l.At = append(l.At, time.Unix(at, 0).In(loc))
		}
		if local >= p.start+p.before && local < p.start+p.offset {
			l.Gap = time.Unix(p.start, 0).In(loc)
		}
		from = p.end
	}
	if len(l.At) > 0 {
		l.Gap = time.Time{}
	}
	return l
}

// MadeUp says whether an instant of the schedule stands in for a local time that a change of the clocks left out.
func (s *Schedule) MadeUp(at time.Time) bool {
	p := periodAt(s.location, at.Unix())
	if p.start != at.Unix() {
		return false
	}
	return slices.ContainsFunc(s.rules, func(r rule) bool { return r.every == 0 && s.makesUp(&r, p) })
}
