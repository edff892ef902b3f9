package jobs

import (
	"math/bits"
	"time"
)

// monthShape is what decides the days of a month: the day of the week of its first, and how many it has.
type monthShape struct{ weekday, length int }

// weekdayOf is the day of the week of a day of the month.
func (m monthShape) weekdayOf(day int) time.Weekday { return time.Weekday((m.weekday + day - 1) % 7) }

// byDate is the days that L and W mean in a month, as a set. A day that the month does not have has no nearest weekday.
func (m monthly) byDate(s monthShape) (set uint64) {
	for rest := m.last; rest != 0; rest &= rest - 1 {
		set |= bit(s.length - bits.TrailingZeros64(rest))
	}
	for rest := m.near; rest != 0; rest &= rest - 1 {
		set |= s.nearestWeekday(bits.TrailingZeros64(rest))
	}
	for rest := m.nearLast; rest != 0; rest &= rest - 1 {
		set |= s.nearestWeekday(s.length - bits.TrailingZeros64(rest))
	}
	return set
}

// nearestWeekday is Monday to Friday, in the same month: what would leave it goes the longer way.
func (m monthShape) nearestWeekday(day int) uint64 {
	if day < 1 || day > m.length {
		return 0
	}
	switch weekday := m.weekdayOf(day); {
	case weekday == time.Saturday && day > 1:
		return bit(day - 1)
	case weekday == time.Saturday:
		return bit(day + 2)
	case weekday == time.Sunday && day < m.length:
		return bit(day + 1)
	case weekday == time.Sunday:
		return bit(day - 2)
	default:
		return bit(day)
	}
}

// byWeekday is the days that # and L mean among the days of the week, as a set. There may be no fifth one.
func (m monthly) byWeekday(s monthShape) (set uint64) {
	for rest := m.nth; rest != 0; rest &= rest - 1 {
		n := bits.TrailingZeros64(rest)
		set |= bit(s.first(n%7) + n/7*7)
	}
	for rest := m.lastWeek; rest != 0; rest &= rest - 1 {
		first := s.first(bits.TrailingZeros64(rest))
		set |= bit(first + (s.length-first)/7*7)
	}
	return set
}

// first is the first day of the month that is this day of the week.
func (m monthShape) first(weekday int) int { return (weekday-m.weekday+7)%7 + 1 }

// bit is a set of one day; what lies before the month is none.
func bit(day int) uint64 {
	if day < 1 {
		return 0
	}
	return 1 << day
}
