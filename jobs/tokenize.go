package jobs

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// fieldRule says what one field may contain.
type fieldRule struct {
	name     string
	min, max int
	names    []string // names[i] is the value min+i
	long     []string // the same names in full
	day      bool     // a day field: knows "?" and the either-matches rule
	clock    bool     // second, minute or hour: decides whether the schedule is fixed
}

// size is the number of different values.
func (r fieldRule) size() int { return r.max - r.min + 1 }

// The order of the fields, with the second in front.
const (
	fieldSecond = iota
	fieldMinute
	fieldHour
	fieldDayOfMonth
	fieldMonth
	fieldDayOfWeek
	fieldCount
)

func fieldRules() [fieldCount]fieldRule {
	return [fieldCount]fieldRule{
		fieldSecond:     {name: "second", max: 59, clock: true},
		fieldMinute:     {name: "minute", max: 59, clock: true},
		fieldHour:       {name: "hour", max: 23, clock: true},
		fieldDayOfMonth: {name: "day of month", min: 1, max: 31, day: true},
		fieldMonth:      {name: "month", min: 1, max: 12, names: monthNames(), long: longMonthNames()},
		fieldDayOfWeek:  {name: "day of week", max: 6, names: dayNames(), long: longDayNames(), day: true},
	}
}

func monthNames() []string {
	return []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}
}

func dayNames() []string { return []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"} }

func longMonthNames() []string {
	names := make([]string, 0, 12)
	for m := time.January; m <= time.December; m++ {
		names = append(names, m.String())
	}
	return names
}

func longDayNames() []string {
	names := make([]string, 0, 7)
	for d := time.Sunday; d <= time.Saturday; d++ {
		names = append(names, d.String())
	}
	return names
}

// span is a part of the text, in bytes.
type span struct{ offset, length int }

// token is a part of the text with its place.
type token struct {
	text   string
	offset int
}

func (t token) span() span { return span{t.offset, len(t.text)} }

// cut splits a token at the first separator; found is false, and after empty, when there is none.
func (t token) cut(sep string) (before, after token, found bool) {
	head, tail, found := strings.Cut(t.text, sep)
	return token{head, t.offset}, token{tail, t.offset + len(head) + len(sep)}, found
}

// source is the text of a schedule while it is read.
type source struct {
	text    string
	seconds bool
	job     string // whose schedule it is; "" when that is not known
	tokens  []token
}

func newSource(text string, seconds bool) *source {
	s := &source{text: text, seconds: seconds}
	start := -1
	for i := 0; i <= len(text); i++ {
		blank := i == len(text) || strings.IndexByte(" \t\r\n", text[i]) >= 0
		switch {
		case blank && start >= 0:
			s.tokens = append(s.tokens, token{text[start:i], start})
			start = -1
		case !blank && start < 0:
			start = i
		}
	}
	return s
}

// fault is an error in the text at a place; wayOut, when there is one, says what to write instead.
func (s *source) fault(at span, problem, wayOut string) *ScheduleError {
	msg := problem + " in " + quote(s.text)
	if wayOut != "" {
		msg += "; " + wayOut
	}
	return &ScheduleError{Code: CodeSchedule, Message: msg, Offset: at.offset, Length: at.length}
}

// quote is for text in a message; see brief.
func quote(text string) string { return strconv.Quote(brief(text)) }

// brief keeps messages readable when somebody pastes a whole file.
func brief(text string) string {
	const longest = 80
	if len(text) > longest {
		return strings.ToValidUTF8(text[:longest], "") + "..."
	}
	return text
}

func plural(count int, noun string) string {
	if count == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(count) + " " + noun + "s"
}

// normalized is a schedule that robfig's parser understands: numbers only, ranges that do not wrap.
type normalized struct {
	fields         [fieldCount]string
	fixed          bool
	domAny, dowAny bool // the day field says "any day" and so leaves the decision to the other one
	monthly        monthly
	domNone        bool // the day field has nothing but monthly days, and a star stands in for it
	dowNone        bool
}

// normalize checks every field and rewrites it.
func (s *source) normalize() (normalized, *ScheduleError) {
	n := normalized{fixed: true}
	if err := s.check(); err != nil {
		return n, err
	}
	first := fieldMinute
	n.fields[fieldSecond] = "0"
	if s.seconds {
		first = fieldSecond
	}
	rules := fieldRules()
	for i, t := range s.tokens {
		f, err := s.field(rules[first+i], t)
		if err != nil {
			return n, err
		}
		n.fields[first+i] = f.text
		n.monthly = n.monthly.or(f.monthly)
		n.domNone = n.domNone || f.none && first+i == fieldDayOfMonth
		n.dowNone = n.dowNone || f.none && first+i == fieldDayOfWeek
		n.fixed = n.fixed && (f.plain || !rules[first+i].clock)
		n.domAny = n.domAny || f.any && first+i == fieldDayOfMonth
		n.dowAny = n.dowAny || f.any && first+i == fieldDayOfWeek
	}
	return n, nil
}

// check finds what is wrong with the text as a whole, before any field is read.
func (s *source) check() *ScheduleError {
	if len(s.tokens) == 0 {
		return s.fault(span{0, len(s.text)}, "there is no schedule", s.expected())
	}
	if err := s.checkZonePrefix(); err != nil {
		return err
	}
	for _, t := range s.tokens { // before counting: "1, 2 * * * *" is no confusion about seconds
		if err := s.checkList(t); err != nil {
			return err
		}
	}
	return s.checkCount()
}

func (s *source) checkZonePrefix() *ScheduleError {
	name, zone, found := s.tokens[0].cut("=")
	if !found || name.text != "TZ" && name.text != "CRON_TZ" {
		return nil
	}
	rest := strings.TrimSpace(s.text[zone.offset+len(zone.text):])
	wayOut := "write the zone in the job's key timezone"
	if zone.text != "" && rest != "" {
		wayOut = fmt.Sprintf("write timezone: %s and schedule: %s", brief(zone.text), quote(rest))
	}
	return s.fault(s.tokens[0].span(), "a zone does not belong in the schedule: "+name.text+"=", wayOut)
}

func (s *source) checkList(t token) *ScheduleError {
	const wayOut = "write a value on both sides of each comma, without blanks"
	for rest := t; ; {
		item, after, found := rest.cut(",")
		if item.text == "" {
			return s.fault(span{item.offset, min(1, len(t.text))}, "empty list item", wayOut)
		}
		if !found {
			return nil
		}
		rest = after
		if rest.text == "" { // the comma itself is the place to look at
			return s.fault(span{rest.offset - 1, 1}, "empty list item", wayOut)
		}
	}
}

func (s *source) checkCount() *ScheduleError {
	count, whole := len(s.tokens), span{s.tokens[0].offset, len(strings.TrimSpace(s.text))}
	switch {
	case count == 5 && !s.seconds, count == 6 && s.seconds:
		return nil
	case count == 6:
		return s.fault(whole, "six fields where five are expected",
			"for a schedule with seconds say seconds: true; otherwise "+s.expected())
	case count == 5:
		return s.fault(whole, "five fields where seconds: true expects six",
			"leave seconds out, or "+s.expected())
	case count == 7:
		return s.fault(whole, "seven fields", "a year cannot be given; "+s.expected())
	default:
		return s.fault(whole, plural(count, "field"), s.expected())
	}
}

func (s *source) expected() string {
	if s.seconds {
		return `write six: second, minute, hour, day of month, month, day of week, like "30 0 2 * * *"`
	}
	return `write five: minute, hour, day of month, month, day of week, like "0 2 * * *"`
}
