package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Calendar is a named set of dates: holidays, weekends, days of a trade fair. It is immutable.
type Calendar struct {
	name     string
	dates    []int64 // days since 1970-01-01, sorted, each once
	weekdays uint8   // bit d: every such day of the week
	yearly   []yearly
}

// yearly is some days that return every year. One that begins on 29 February comes in leap years only.
type yearly struct {
	month    time.Month
	day      int
	length   int64 // days, at least 1
	earliest int64 // the first day of the first time; days since 1970-01-01
}

// CalendarOptions is what a calendar is made of; all of it counts.
type CalendarOptions struct {
	Dates    []string // "2026-12-25", or "12-25" for every year
	Weekdays []string // "sat", "Saturday"
	File     []byte   // an iCalendar file of whole days; nil is none
}

// The lists of CalendarOptions, as the Item of a CalendarError counts in them.
const (
	CalendarDates    = "dates"
	CalendarWeekdays = "weekdays"
	CalendarFile     = "file"
)

// CalendarError says what is wrong with a calendar.
type CalendarError struct {
	List    string // one of the constants above; "" is the calendar as a whole
	Item    int    // from 0 in the list; for a file its line, from 1
	Message string // a sentence without a position
}

func (e *CalendarError) Error() string { return e.Message }

// ParseCalendar makes a calendar. The error is a *CalendarError.
func ParseCalendar(name string, o CalendarOptions) (*Calendar, error) {
	c := &Calendar{name: name}
	for i, text := range o.Dates {
		if !c.addDate(text) {
			return nil, &CalendarError{CalendarDates, i, quote(text) + " is not a date; write it like 2026-12-25, or 12-25 for every year"}
		}
	}
	for i, text := range o.Weekdays {
		day, ok := parseWeekday(text)
		if !ok {
			return nil, &CalendarError{CalendarWeekdays, i, quote(text) + " is not a day of the week; write sat or saturday"}
		}
		c.weekdays |= 1 << day
	}
	if o.File != nil {
		if err := c.addICalendar(string(o.File)); err != nil {
			return nil, err
		}
	}
	if len(c.dates) == 0 && len(c.yearly) == 0 && c.weekdays == 0 {
		return nil, &CalendarError{Message: fmt.Sprintf("the calendar %s has no dates", quote(name))}
	}
	c.normalize()
	return c, nil
}

// normalize makes equal sets equal: sorted, each member once.
func (c *Calendar) normalize() {
	slices.Sort(c.dates)
	c.dates = slices.Compact(c.dates)
	slices.SortFunc(c.yearly, func(a, b yearly) int {
		return cmp.Or(cmp.Compare(a.month, b.month), cmp.Compare(a.day, b.day), cmp.Compare(a.length, b.length), cmp.Compare(a.earliest, b.earliest))
	})
	c.yearly = slices.Compact(c.yearly)
}

func (c *Calendar) addDate(text string) bool {
	if day, ok := parseDate(text); ok {
		c.dates = append(c.dates, day)
		return true
	}
	const leapYear = "2000-"
	t, err := time.Parse(time.DateOnly, leapYear+text)
	if err != nil || len(text) != len("12-25") {
		return false
	}
	c.yearly = append(c.yearly, yearly{t.Month(), t.Day(), 1, firstInstant / secondsPerDay})
	return true
}

func parseWeekday(text string) (time.Weekday, bool) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if strings.EqualFold(text, d.String()) || strings.EqualFold(text, d.String()[:3]) {
			return d, true
		}
	}
	return 0, false
}

// Name is what the calendar was called.
func (c *Calendar) Name() string { return c.name }

// Contains says whether the date of t, in t's own zone, is in the calendar.
func (c *Calendar) Contains(t time.Time) bool {
	year, month, day := t.Date()
	return c.has(floorDiv(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix(), secondsPerDay))
}

func (c *Calendar) has(day int64) bool {
	if c.weekdays>>floorMod(day+4, 7)&1 == 1 { // 1970-01-01 was a Thursday
		return true
	}
	if _, found := slices.BinarySearch(c.dates, day); found {
		return true
	}
	return slices.ContainsFunc(c.yearly, func(y yearly) bool { return y.has(day) })
}

func (y yearly) has(day int64) bool {
	for first := day; first > day-y.length && first >= y.earliest; first-- {
		if _, month, dom := time.Unix(first*secondsPerDay, 0).UTC().Date(); month == y.month && dom == y.day {
			return true
		}
	}
	return false
}

// text is canonical and does not have the name: two calendars with the same dates are the same.
func (c *Calendar) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "weekdays %s dates", setText(uint64(c.weekdays)))
	for _, day := range c.dates {
		b.WriteString(" " + dateText(day))
	}
	for _, y := range c.yearly {
		fmt.Fprintf(&b, " %02d-%02d+%d since %d", y.month, y.day, y.length, y.earliest)
	}
	return b.String()
}
