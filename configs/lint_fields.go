package configs

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The fields of a cron text, in their order.
const (
	cronSecond = iota
	cronMinute
	cronHour
	cronDay
	cronMonth
	cronWeekday
	cronFields
)

// cronText is a text that was read as a schedule before: its fields with their places.
type cronText struct {
	node    *node
	text    string
	seconds bool
	fields  [cronFields]string // empty for @daily and its kin
	offsets [cronFields]int
}

func readCron(n *node, text string, seconds bool) cronText {
	t := cronText{node: n, text: text, seconds: seconds}
	at, offset := cronMinute, 0
	if seconds {
		at = cronSecond
	}
	for field := range strings.FieldsSeq(text) {
		if strings.HasPrefix(field, "@") || at == cronFields {
			return cronText{node: n, text: text, seconds: seconds}
		}
		offset += strings.Index(text[offset:], field)
		t.fields[at], t.offsets[at] = field, offset
		offset += len(field)
		at++
	}
	return t
}

func (t cronText) none() bool { return t.fields[cronMinute] == "" }

func (t cronText) part(field int) part { return part{t.offsets[field], len(t.fields[field])} }

var (
	plainValues = regexp.MustCompile(`^[0-9]+(,[0-9]+)*$`)
	fullStep    = regexp.MustCompile(`^(\*|[0-9]+|[0-9]+-[0-9]+)/([0-9]+)$`)
	spreadStep  = regexp.MustCompile(`^[Hh]/([0-9]+)$`)
)

func anyValue(field string) bool { return field == "*" || field == "?" || field == "*/1" }

// goesOn reports whether a field has values that follow each other, so that the next lower one comes round again.
func (t cronText) goesOn(field int) bool {
	text := t.fields[field]
	return anyValue(text) || strings.Contains(text, "-") && !strings.Contains(text, "/")
}

// fieldCount warns of schedules that look as if their author counted one field more or less.
func (l *linter) fieldCount(d *jobDraft) {
	unused := d.when.seconds // no text of the list needs its seconds
	texts := make([]cronText, len(d.when.texts))
	for i, text := range d.when.texts {
		texts[i] = readCron(d.when.nodes[i], text, d.when.seconds)
		second := texts[i].fields[cronSecond]
		unused = unused && (second == "0" || second == "00")
	}
	for _, t := range texts {
		switch {
		case t.none():
		case unused:
			l.warn(t.node, part{0, len(t.text)}, codeFieldCount, "the second is 0, so that five fields say the same: %q without seconds: true%s",
				strings.Join(t.fields[cronMinute:], " "), t.oneMore())
		case t.seconds && anyValue(t.fields[cronSecond]) && plainValues.MatchString(t.fields[cronMinute]):
			l.warn(t.node, t.part(cronSecond), codeFieldCount, "fires in each of the 60 seconds of minute %s; for once in that minute write 0 in place of %s",
				t.fields[cronMinute], t.fields[cronSecond])
		case anyValue(t.fields[cronMinute]) && plainValues.MatchString(t.fields[cronHour]):
			l.warn(t.node, t.part(cronMinute), codeFieldCount, "fires in each of the 60 minutes of hour %s; for once in that hour write 0 in place of %s",
				t.fields[cronHour], t.fields[cronMinute])
		case anyValue(t.fields[cronMinute]) && anyValue(t.fields[cronHour]) && plainValues.MatchString(t.fields[cronDay]):
			l.warn(t.node, t.part(cronDay), codeFieldCount, "fires in each minute of day %s of the month; the third field is the day, and the first one is the minute: "+
				"for hour %s of every day write %q",
				t.fields[cronDay], t.fields[cronDay], "0 "+t.fields[cronDay]+" * * *")
		}
	}
}

// oneMore is for "0 2 * * * *", which may be "0 2 * * *" with a star too many.
func (t cronText) oneMore() string {
	minute, hour := t.fields[cronSecond], t.fields[cronMinute]
	if !plainValues.MatchString(hour) || !anyValue(t.fields[cronHour]) {
		return ""
	}
	return fmt.Sprintf("; it fires at minute %s of every hour, and if minute %s of hour %s is meant, write %q",
		hour, minute, hour, strings.Join(t.fields[:cronWeekday], " "))
}

// dayFields warns of two restricted day fields, of which most people expect that both must match.
func (l *linter) dayFields(d *jobDraft, t cronText) {
	day, weekday := t.fields[cronDay], t.fields[cronWeekday]
	if t.none() || d.when.dayNode != nil || anyDay(day) || anyDay(weekday) {
		return
	}
	from := t.offsets[cronDay]
	l.warn(t.node, part{from, t.offsets[cronWeekday] + len(weekday) - from}, codeDayFields,
		"fires on days of the month that match %q, and also on days of the week that match %q; say day_match: any if that is meant, "+
			"and day_match: all for days that match both", day, weekday)
}

// anyDay is what the schedule takes for a day field that leaves the decision to the other one; */1 is none.
func anyDay(field string) bool {
	items := strings.Split(field, ",")
	return slices.Contains(items, "*") || slices.Contains(items, "?")
}

// stepUnit is a field whose steps start again.
type stepUnit struct {
	field, first, last int
	unit, short        string // minutes, m
	show               func(value int) string
	above              int // the field that must go on for the step to start again; 0 is none
}

func stepUnits() []stepUnit {
	return []stepUnit{
		{cronSecond, 0, 59, "second", "s", func(v int) string { return fmt.Sprintf("second %d", v) }, cronMinute},
		{cronMinute, 0, 59, "minute", "m", func(v int) string { return fmt.Sprintf(":%02d", v) }, cronHour},
		{cronHour, 0, 23, "hour", "h", func(v int) string { return fmt.Sprintf("%02d:00", v) }, cronDay},
		{cronDay, 1, 31, "day", "d", func(v int) string { return fmt.Sprintf("day %d", v) }, cronMonth},
		{cronMonth, 1, 12, "month", "", func(v int) string { return time.Month(v).String() }, 0},
		{cronWeekday, 0, 6, "day", "", func(v int) string { return time.Weekday(v).String() }, 0},
	}
}

// uneven warns of steps that do not divide their range: they start again before a whole step has passed.
func (l *linter) uneven(t cronText) {
	for _, u := range stepUnits() {
		if u.above != 0 && !t.goesOn(u.above) {
			continue
		}
		if found := spreadStep.FindStringSubmatch(t.fields[u.field]); found != nil {
			l.unevenSpread(t, u, found[1])
			continue
		}
		found := fullStep.FindStringSubmatch(t.fields[u.field])
		if found == nil {
			continue
		}
		start, whole := u.start(found[1])
		step, err := strconv.Atoi(found[2])
		if !whole || err != nil || step < 2 {
			continue
		}
		final := start + (u.last-start)/step*step
		gap := u.last - u.first + 1 - final + start
		if gap == step || final == start {
			continue
		}
		where := ""
		if u.field == cronDay {
			where = " in a month of 31"
		}
		l.warn(t.node, t.part(u.field), codeUneven, "not every %s: the step starts again, and between %s and %s there %s%s; %s",
			count(step, u.unit), u.show(final), u.show(start), isOrAre(gap, u.unit), where, u.wayOut(step))
	}
}

// unevenSpread warns of H/7. Where it starts is for the job's name to say, and that it starts again is true for all names.
func (l *linter) unevenSpread(t cronText, u stepUnit, text string) {
	size := u.last - u.first + 1
	if step, err := strconv.Atoi(text); err == nil && step >= 2 && step <= size/2 && size%step != 0 {
		l.warn(t.node, t.part(u.field), codeUneven, "not every %s: %d does not divide %d, so that one gap in each round is another one; %s",
			count(step, u.unit), step, size, u.wayOut(step))
	}
}

// start is the first value of a step; false for a range that ends early, whose gap is meant.
func (u stepUnit) start(text string) (first int, whole bool) {
	if text == "*" {
		return u.first, true
	}
	from, to, isRange := strings.Cut(text, "-")
	first, err := strconv.Atoi(from)
	return first, err == nil && (!isRange || to == strconv.Itoa(u.last))
}

func isOrAre(n int, unit string) string {
	if n == 1 {
		return "is 1 " + unit
	}
	return "are " + count(n, unit)
}

func (u stepUnit) wayOut(step int) string {
	var ways []string
	if size := u.last - u.first + 1; u.field != cronDay && u.field != cronWeekday {
		below, above := step-1, step+1
		for size%below != 0 {
			below--
		}
		for above < size && size%above != 0 {
			above++
		}
		ways = append(ways, fmt.Sprintf("a step of %d or %d is even", below, above))
	}
	if u.short != "" {
		ways = append(ways, fmt.Sprintf("%q has equal gaps", "@every "+strconv.Itoa(step)+u.short))
	}
	if len(ways) == 0 {
		return "name the days if that is meant"
	}
	return strings.Join(ways, ", ")
}
