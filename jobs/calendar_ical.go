package jobs

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// An iCalendar file (RFC 5545) gives whole days: events with DTSTART;VALUE=DATE, DTEND;VALUE=DATE and at most
// RRULE:FREQ=YEARLY. What else would change its dates is refused with its line, because a holiday that is silently
// missing is noticed on the holiday. What only describes an event (SUMMARY, UID ...) is not looked at.

// icalLine is one content line: NAME;PARAM=value:VALUE, unfolded.
type icalLine struct {
	number int // of its first line in the file
	name   string
	params []string
	value  string
}

// icalEvent is a VEVENT while it is read.
type icalEvent struct {
	line       int // of BEGIN
	start, end int64
	hasStart   bool
	hasEnd     bool
	yearly     bool
}

// icalReader goes through the lines; open is the components around the current one.
type icalReader struct {
	calendar *Calendar
	open     []string
	event    icalEvent
}

func (c *Calendar) addICalendar(text string) error {
	text = strings.TrimPrefix(text, "\ufeff")
	// Nothing of another file is in a message: it may be a secret that was named by mistake.
	if first, _, _ := strings.Cut(text, "\n"); !strings.EqualFold(strings.TrimRight(first, "\r"), "BEGIN:VCALENDAR") {
		return icalFault(1, "this is not an iCalendar file, which begins with BEGIN:VCALENDAR")
	}
	lines, err := icalLines(text)
	if err != nil {
		return err
	}
	r := icalReader{calendar: c}
	for _, l := range lines {
		if err := r.line(l); err != nil {
			return err
		}
	}
	if len(r.open) > 0 {
		return icalFault(lines[len(lines)-1].number, "the file ends inside %s; END:%s is missing", r.open[0], r.open[len(r.open)-1])
	}
	return nil
}

func icalFault(line int, format string, args ...any) error {
	return &CalendarError{CalendarFile, line, fmt.Sprintf("line %d: ", line) + fmt.Sprintf(format, args...)}
}

// icalLines unfolds: a line that begins with a blank goes on where the one before it ended.
func icalLines(text string) ([]icalLine, error) {
	var lines []icalLine
	var raw []string
	number := 0
	for one := range strings.Lines(text) {
		number++
		one = strings.TrimRight(one, "\r\n")
		switch {
		case one == "":
		case one[0] != ' ' && one[0] != '\t':
			raw = append(raw, one)
			lines = append(lines, icalLine{number: number})
		default:
			raw[len(raw)-1] += one[1:]
		}
	}
	for i := range lines {
		if !lines[i].split(raw[i]) {
			return nil, icalFault(lines[i].number, "%s has no colon; a line is NAME:VALUE", quote(raw[i]))
		}
	}
	return lines, nil
}

// split finds the parts of a line; what stands in double quotes ends no part.
func (l *icalLine) split(raw string) bool {
	quoted, start := false, 0
	for i := range len(raw) {
		switch {
		case raw[i] == '"':
			quoted = !quoted
		case quoted || raw[i] != ';' && raw[i] != ':':
		default:
			part := strings.ToUpper(raw[start:i])
			start = i + 1
			if l.name == "" {
				l.name = part
			} else {
				l.params = append(l.params, part)
			}
			if raw[i] == ':' {
				l.value = raw[start:]
				return l.name != ""
			}
		}
	}
	return false
}

func (r *icalReader) line(l icalLine) error {
	switch {
	case l.name == "BEGIN":
		return r.begin(l)
	case len(r.open) == 0:
		return icalFault(l.number, "%s stands behind END:VCALENDAR", l.name)
	case l.name == "END":
		return r.end(l)
	case r.open[len(r.open)-1] == "VEVENT":
		return r.property(l)
	default:
		return nil // describes the calendar, or is inside of something without dates
	}
}

func (r *icalReader) begin(l icalLine) error {
	name := strings.ToUpper(l.value)
	switch {
	case slices.Contains([]string{"VTODO", "VJOURNAL", "VFREEBUSY"}, name):
		return icalFault(l.number, "%s is not read; a calendar has whole days, as VEVENT", name)
	case name == "VEVENT" && !slices.Equal(r.open, []string{"VCALENDAR"}):
		return icalFault(l.number, "an event inside of another component")
	case name == "VCALENDAR" && len(r.open) > 0:
		return icalFault(l.number, "VCALENDAR inside of another component")
	case name == "VEVENT":
		r.event = icalEvent{line: l.number}
	}
	r.open = append(r.open, name)
	return nil
}

func (r *icalReader) end(l icalLine) error {
	last := len(r.open) - 1
	name := r.open[last]
	if !strings.EqualFold(l.value, name) {
		return icalFault(l.number, "END:%s ends what began as %s", brief(l.value), name)
	}
	r.open = r.open[:last]
	if name == "VEVENT" {
		return r.addEvent()
	}
	return nil
}

// property reads what decides an event's days.
func (r *icalReader) property(l icalLine) (err error) {
	e := &r.event
	switch l.name {
	case "DTSTART":
		if e.hasStart {
			return icalFault(l.number, "a second DTSTART in the event of line %d", e.line)
		}
		e.hasStart = true
		e.start, err = l.date()
	case "DTEND":
		if e.hasEnd {
			return icalFault(l.number, "a second DTEND in the event of line %d", e.line)
		}
		e.hasEnd = true
		e.end, err = l.date()
	case "RRULE":
		if !strings.EqualFold(l.value, "FREQ=YEARLY") || e.yearly {
			return icalFault(l.number, "RRULE:%s is not read; the only rule is one FREQ=YEARLY, so write an event for each date", brief(l.value))
		}
		e.yearly = true
	case "RDATE", "EXDATE", "EXRULE", "DURATION", "RECURRENCE-ID":
		return icalFault(l.number, "%s is not read; write an event with DTSTART and DTEND for each of its dates", l.name)
	case "STATUS":
		if strings.EqualFold(l.value, "CANCELLED") {
			return icalFault(l.number, "the event of line %d is cancelled; remove it from the file", e.line)
		}
	}
	return err
}

// date reads a whole day. With a time there would be the question in which zone it is that day.
func (l *icalLine) date() (int64, error) {
	if !slices.Contains(l.params, "VALUE=DATE") {
		return 0, icalFault(l.number, "%s:%s is not a whole day; write %s;VALUE=DATE:20261225", l.name, brief(l.value), l.name)
	}
	t, err := time.Parse("20060102", l.value)
	if err != nil || t.Year() < 1 {
		return 0, icalFault(l.number, "%s is not a date; write it like 20261225", quote(l.value))
	}
	return floorDiv(t.Unix(), secondsPerDay), nil
}

// longestEvent is how many days an event may have: more is a mistake in the year.
const longestEvent = 366

func (r *icalReader) addEvent() error {
	e := r.event
	switch {
	case !e.hasStart:
		return icalFault(e.line, "the event has no DTSTART;VALUE=DATE")
	case !e.hasEnd:
		e.end = e.start + 1 // RFC 5545, 3.6.1: one day
	case e.end <= e.start:
		return icalFault(e.line, "the event ends (%s) before it begins; DTEND is the day after its last", dateText(e.end))
	case e.end-e.start > longestEvent:
		return icalFault(e.line, "the event has %d days, more than a year", e.end-e.start)
	}
	if e.yearly {
		_, month, day := time.Unix(e.start*secondsPerDay, 0).UTC().Date()
		r.calendar.yearly = append(r.calendar.yearly, yearly{month, day, e.end - e.start, e.start})
		return nil
	}
	for day := e.start; day < e.end; day++ {
		r.calendar.dates = append(r.calendar.dates, day)
	}
	return nil
}
