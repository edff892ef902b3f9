package jobs

import (
	"math/bits"
	"time"
)

const secondsPerDay = 24 * 60 * 60

// Local times here are seconds since 1970-01-01T00:00:00 on the local clock; days are counted from that date.

// atOrAfter is the first local time that matches, as if local time had neither gaps nor repetitions. What lies days
// behind stop need not be found.
func (c *pattern) atOrAfter(local, stop int64) (int64, bool) {
	day := floorDiv(local, secondsPerDay)
	second, ok := c.secondOfDay(int(local - day*secondsPerDay))
	if !ok {
		day++ // nothing is left of this one
	}
	match, found := c.dayAtOrAfter(day, floorDiv(stop, secondsPerDay))
	if !found {
		return 0, false
	}
	if !ok || match != day {
		second, _ = c.secondOfDay(0)
	}
	return match*secondsPerDay + int64(second), true
}

// secondOfDay is the first matching time of day; false when the rest of the day has none.
func (c *pattern) secondOfDay(from int) (int, bool) {
	h, m, s := from/3600, from/60%60, from%60
	if nextBit(c.hour, h) == h {
		if s = nextBit(c.second, s); nextBit(c.minute, m) == m && s < 60 {
			return h*3600 + m*60 + s, true
		}
		if m = nextBit(c.minute, m+1); m < 60 {
			return h*3600 + m*60 + nextBit(c.second, 0), true
		}
	}
	if h = nextBit(c.hour, h+1); h < 24 {
		return h*3600 + nextBit(c.minute, 0)*60 + nextBit(c.second, 0), true
	}
	return 0, false
}

// dayAtOrAfter goes through the months. The longest wait is forty years (29 February on a given day of the week, over a
// century that is no leap year); the bound is there so that a mistake is an error and not a hang.
func (c *pattern) dayAtOrAfter(day, stop int64) (int64, bool) {
	if c.dates != nil {
		return c.dates.dayAtOrAfter(c, day, stop)
	}
	const bound = 12 * 50
	year, month, dom := time.Unix(day*secondsPerDay, 0).UTC().Date()
	first := day - int64(dom-1)
	for range bound {
		if c.month>>month&1 == 1 {
			if d := nextBit(c.days(year, month, first), dom); d < 64 {
				return first + int64(d-1), true
			}
		}
		first += int64(monthLength(year, month))
		dom = 1
		if month++; month > time.December {
			year, month = year+1, time.January
		}
	}
	return 0, false
}

// days is the set of matching days of a month; first is the day its first falls on.
func (c *pattern) days(year int, month time.Month, first int64) uint64 {
	whole := uint64(1)<<(monthLength(year, month)+1) - 2
	weekday := (first%7 + 7 + 4) % 7 // 1970-01-01 was a Thursday
	week := (c.dow>>weekday | c.dow<<(7-weekday)) & 0x7f
	dom, byWeekday := c.dom, week*(1|1<<7|1<<14|1<<21|1<<28)<<1
	if c.monthly != (monthly{}) {
		m := monthShape{int(weekday), monthLength(year, month)}
		dom |= c.monthly.byDate(m)
		byWeekday |= c.monthly.byWeekday(m)
	}
	switch {
	case c.all:
		return dom & byWeekday & whole // any day is a full set, too
	case c.domAny:
		return byWeekday & whole // any day of the week is a full set
	case c.dowAny:
		return dom & whole
	default:
		return (dom | byWeekday) & whole
	}
}

func monthLength(year int, month time.Month) int {
	switch month {
	case time.February:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case time.April, time.June, time.September, time.November:
		return 30
	default:
		return 31
	}
}

// nextBit is the smallest member of the set that is not below from; 64 when there is none.
func nextBit(set uint64, from int) int {
	return bits.TrailingZeros64(set >> from << from)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// hasDay says whether the fields match a date.
func (c *pattern) hasDay(day int64) bool {
	year, month, dom := time.Unix(day*secondsPerDay, 0).UTC().Date()
	return c.month>>month&1 == 1 && c.days(year, month, day-int64(dom-1))>>dom&1 == 1
}
