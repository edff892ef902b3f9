package jobs

import "time"

// ClockChange is what one change of a zone's offset does to the local times of one text of a schedule.
type ClockChange struct {
	At    time.Time // the first instant with the new offset, in the schedule's zone
	Item  int       // which text of the list
	Twice bool      // a local time comes twice and fires twice; otherwise it is left out, and nothing fires in its place
	Local string    // the first such local time: "02:30"
	Fixed bool      // the text is fixed: it is dst that decided so
}

const everyHour = 1<<24 - 1

// ClockChanges lists the changes of the zone in (after, until] at which a text fires twice, or not at all. A text that
// fires in every hour, and @every, follow elapsed time and are what they should be: they are not in it.
func (s *Schedule) ClockChanges(after, until time.Time) []ClockChange {
	var list []ClockChange
	for p := periodAt(s.location, after.Unix()); p.end <= until.Unix(); {
		p = periodAt(s.location, p.end)
		for i := range s.rules {
			r := &s.rules[i]
			if r.every > 0 || r.pattern.hour == everyHour || p.offset == p.before {
				continue
			}
			if c, ok := s.clockChange(r, p); ok {
				c.Item = i
				list = append(list, c)
			}
		}
	}
	return list
}

// clockChange is what the start of a period does to a rule; false when that is nothing.
func (s *Schedule) clockChange(r *rule, p period) (ClockChange, bool) {
	c := ClockChange{At: time.Unix(p.start, 0).In(s.location), Twice: p.before > p.offset, Fixed: r.fixed}
	from, stop := p.start+min(p.before, p.offset), p.start+max(p.before, p.offset)
	local, ok := r.pattern.atOrAfter(from, stop)
	if !ok || local >= stop {
		return c, false
	}
	c.Local = time.Unix(local, 0).UTC().Format("15:04")
	if c.Twice {
		both := s.has(local-p.before) && s.has(local-p.offset)
		return c, both && (!r.fixed || s.dst == DSTBoth)
	}
	return c, s.has(p.start) && !s.makesUp(r, p)
}

// has says whether the bounds and blackouts leave an instant.
func (s *Schedule) has(at int64) bool {
	return at >= s.from && at < s.until && s.behindBlackouts(at) == at
}
