package importer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// cronField is what Vixie cron knows of a field.
type cronField struct {
	word     string
	min, max int
	names    string // three letters each, from min
}

const cronDay, cronWeekday = 2, 4

func cronFields() [5]cronField {
	return [5]cronField{
		{word: "minute", max: 59},
		{word: "hour", max: 23},
		{word: "day of month", min: 1, max: 31},
		{word: "month", min: 1, max: 12, names: "janfebmaraprmayjunjulaugsepoctnovdec"},
		{word: "day of week", max: 6, names: "sunmontuewedthufrisat"},
	}
}

// cronSchedule is a schedule as cronlatch writes it.
type cronSchedule struct {
	text  string
	all   bool // a day must match both day fields
	notes []string
}

func (s *cronSchedule) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.notes, text) {
		s.notes = append(s.notes, text)
	}
}

// readCronSchedule rewrites what cronlatch reads in another way. What is wrong stays wrong: package jobs says so.
//
// Two restricted day fields: cron takes a day that matches either, unless one of them begins with "*" ("*/2"), and then
// one that matches both.
func readCronSchedule(fields []string) cronSchedule {
	if len(fields) == 1 {
		if fields[0] == "@every_minute" {
			return cronSchedule{text: "* * * * *"}
		}
		return cronSchedule{text: fields[0]}
	}
	var s cronSchedule
	rules := cronFields()
	texts := make([]string, len(fields))
	for i, field := range fields {
		texts[i] = s.field(rules[i], field)
	}
	days, weekdays := fields[cronDay], fields[cronWeekday]
	starred := strings.HasPrefix(days, "*") || strings.HasPrefix(weekdays, "*")
	restricted := !anyDay(days) && !anyDay(weekdays)
	switch {
	case starred && restricted:
		s.all = true
		s.note("a day must match both day fields, because one of them begins with *, as in cron")
	case !starred:
		// A star that is not in front does not free the field in cron: it stands for all days, and any of them will do.
		texts[cronDay], texts[cronWeekday] = spellStar(texts[cronDay], "1-31"), spellStar(texts[cronWeekday], "0-6")
		if restricted {
			s.note("a day that matches one of the two day fields is enough, as in cron; day_match: all wants both")
		}
	}
	s.text = strings.Join(texts, " ")
	return s
}

// anyDay is a field that leaves the decision to the other one: package jobs reads a bare star so.
func anyDay(field string) bool {
	for item := range strings.SplitSeq(field, ",") {
		if item == "*" || item == "?" {
			return true
		}
	}
	return false
}

func spellStar(field, all string) string {
	items := strings.Split(field, ",")
	for i, item := range items {
		if item == "*" {
			items[i] = all
		}
	}
	return strings.Join(items, ",")
}

func (s *cronSchedule) field(rule cronField, text string) string {
	items := strings.Split(text, ",")
	for i, item := range items {
		items[i] = s.item(rule, item)
	}
	return strings.Join(items, ",")
}

func (s *cronSchedule) item(rule cronField, text string) string {
	base, step, hasStep := strings.Cut(text, "/")
	if low, high, found := strings.Cut(base, "~"); found {
		return s.random(rule, low, high, text[len(base):])
	}
	every, err := strconv.Atoi(step)
	if !hasStep || err != nil || every < 1 {
		return text
	}
	low, high, isRange := rule.bounds(base)
	switch {
	case low < 0 || high < low:
		return text
	case !isRange:
		s.note("%s %s is %d-%d/%d here; some crons ignore the step behind a single number", rule.word, text, low, rule.max, every)
		high = rule.max
	}
	if every > high-low+1 {
		s.note("%s %s matches %d only: the step is larger than its range", rule.word, text, low)
		return strconv.Itoa(low)
	}
	return text
}

// random turns cronie's and OpenBSD's low~high into H, which the job's name decides.
func (s *cronSchedule) random(rule cronField, low, high, step string) string {
	if low == "" {
		low = strconv.Itoa(rule.min)
	}
	if high == "" {
		high = strconv.Itoa(rule.max)
	}
	text := fmt.Sprintf("H(%s-%s)%s", low, high, step)
	s.note("the %s is chosen by the job's name, once and for all replicas; cron chooses at random", rule.word)
	return text
}

// bounds of what stands before a step; low is -1 when it is not understood.
func (r cronField) bounds(text string) (low, high int, isRange bool) {
	if text == "*" {
		return r.min, r.max, true
	}
	first, last, isRange := strings.Cut(text, "-")
	low = r.value(first)
	if !isRange {
		return low, low, false
	}
	return low, r.value(last), true
}

// value of a number or a name; -1 when it is neither.
func (r cronField) value(text string) int {
	top := r.max
	if r.max == 6 {
		top = 7
	}
	if n, err := strconv.Atoi(text); err == nil {
		if n < r.min || n > top {
			return -1
		}
		return n
	}
	if at := strings.Index(r.names, strings.ToLower(text)); len(text) == 3 && at >= 0 && at%3 == 0 {
		return r.min + at/3
	}
	return -1
}
