package jobs

import (
	"strings"
	"time"
)

// Limits says in words what bounds the schedule beside its text: "until 2027-01-01T00:00:00Z, not on holidays moved to
// the next date"; empty when nothing does.
func (s *Schedule) Limits() string {
	var parts []string
	if s.from > firstInstant {
		parts = append(parts, "from "+s.moment(s.from))
	}
	if s.until <= lastInstant {
		parts = append(parts, "until "+s.moment(s.until))
	}
	if s.dates != nil {
		parts = append(parts, s.dates.words()...)
	}
	for _, b := range s.blackouts {
		parts = append(parts, "blackout "+b.String())
	}
	return strings.Join(parts, ", ")
}

func (s *Schedule) moment(at int64) string {
	return time.Unix(at, 0).In(s.location).Format(time.RFC3339)
}

func (r *dateRule) words() []string {
	var parts []string
	if len(r.include) > 0 {
		parts = append(parts, "only on "+enumerate(namesOf(r.include), "or"))
	}
	if len(r.exclude) > 0 {
		parts = append(parts, "not on "+enumerate(namesOf(r.exclude), "or"))
	}
	if r.shift != ShiftNone {
		parts = append(parts, "moved to the "+string(r.shift)+" date")
	}
	return parts
}

func namesOf(list []*Calendar) []string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.name
	}
	return names
}

// Moved says whether calendars brought an instant of the schedule to its date, which none of its texts has by itself.
func (s *Schedule) Moved(at time.Time) bool {
	if s.dates == nil || s.dates.shift == ShiftNone {
		return false
	}
	day := floorDiv(at.Unix()+offsetAt(s.location, at.Unix()), secondsPerDay)
	for i := range s.rules {
		if s.rules[i].pattern.hasDay(day) { // @every does not go with shift
			return false
		}
	}
	return true
}
