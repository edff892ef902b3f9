package configs

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// calendarDraft is one named calendar as it is read.
type calendarDraft struct {
	dates, weekdays         []string
	dateNodes, weekdayNodes []*node
	file                    string
}

func calendarFields() []field[calendarDraft] {
	return []field[calendarDraft]{
		{
			key: "dates", doc: "Dates like 2026-12-25, or 12-25 for every year.",
			bind: func(c *calendarDraft) sink { return list{into: &c.dates, nodes: &c.dateNodes} },
		},
		{
			key: "weekdays", doc: "Days of the week like sat or sunday: every one of them.",
			bind: func(c *calendarDraft) sink { return list{into: &c.weekdays, nodes: &c.weekdayNodes} },
		},
		{
			key: "file", doc: "An iCalendar file of whole days, beside this file unless the path is absolute. It is read when this file is.",
			bind: func(c *calendarDraft) sink { return text{into: &c.file} },
		},
	}
}

// calendarsDraft is what a job does with calendars, as it is read.
type calendarsDraft struct {
	include, exclude           []string
	includeNodes, excludeNodes []*node
	shift                      jobs.Shift
	shiftNode                  *node
	blackout                   []blackoutDraft
}

func calendarsFields() []field[calendarsDraft] {
	return []field[calendarsDraft]{
		{
			key: "exclude", doc: "Names of calendars: the schedule has no instants on their dates.",
			bind: func(c *calendarsDraft) sink { return list{into: &c.exclude, nodes: &c.excludeNodes} },
		},
		{
			key: "include", doc: "Names of calendars: the schedule has instants on their dates only; exclude goes before it.",
			bind: func(c *calendarsDraft) sink { return list{into: &c.include, nodes: &c.includeNodes} },
		},
		{
			key: "shift", initial: string(jobs.ShiftNone), doc: "none drops the instants of an excluded date; next and previous move them to the nearest date that is not excluded, at the same local time.",
			bind: func(c *calendarsDraft) sink {
				return remembered{choice[jobs.Shift]{into: &c.shift, words: []jobs.Shift{jobs.ShiftNone, jobs.ShiftNext, jobs.ShiftPrevious}}, &c.shiftNode}
			},
		},
		{
			key: "blackout", doc: "Windows without instants: {from: \"22:00\", until: \"06:00\"} every day, or from one date or instant until another, which is no longer in it.",
			bind: func(c *calendarsDraft) sink { return blackoutList{&c.blackout} },
		},
	}
}

// blackoutDraft is a window as it is read.
type blackoutDraft struct {
	from, until string
	at          *node
	keys        present
}

func blackoutFields() []field[blackoutDraft] {
	return []field[blackoutDraft]{
		{
			key: "from", required: true, doc: "A local time like 22:00, a date in the job's zone, or an instant.",
			bind: func(b *blackoutDraft) sink { return text{into: &b.from} },
		},
		{
			key: "until", required: true, doc: "The same; the first moment that is no longer in the window.",
			bind: func(b *blackoutDraft) sink { return text{into: &b.until} },
		},
	}
}

// remembered is a sink that keeps the node, for what is found out later.
type remembered struct {
	sink

	into **node
}

func (s remembered) read(r *reader, n *node, name string) {
	if n.from == "" { // a default is not written anywhere
		*s.into = n
	}
	s.sink.read(r, n, name)
}

// blackoutList is a sink for a list of windows.
type blackoutList struct{ into *[]blackoutDraft }

func (s blackoutList) read(r *reader, n *node, name string) {
	const shape = `{from: "22:00", until: "06:00"}`
	if n.kind != kindList || len(n.items) == 0 {
		r.refuse(n, codeType, "%s must be a list of windows such as [%s], not %s", name, shape, n.describeEmpty())
		return
	}
	var all []blackoutDraft
	for _, item := range n.items {
		if !r.spend() {
			return
		}
		if item.kind != kindMap {
			r.refuse(item, codeType, "an item of %s must be a map such as %s, not %s", name, shape, item.describe())
			continue
		}
		b := blackoutDraft{at: item}
		b.keys = table[blackoutDraft]{fields: blackoutFields(), where: " in an item of " + name}.read(r, item, &b)
		all = append(all, b)
	}
	*s.into = all
}

func (n *node) describeEmpty() string {
	if n.kind == kindList && len(n.items) == 0 {
		return "an empty list"
	}
	return n.describe()
}

// readCalendars reads the map of calendars. A faulty one is there as nil, so that its users are not reported as well.
func (r *reader) readCalendars(n *node) {
	r.calendars = map[string]*jobs.Calendar{}
	if n == nil {
		return
	}
	for _, p := range n.pairs {
		if !r.spend() {
			return
		}
		if p.key.kind != kindText {
			continue // reported with the tree
		}
		r.calendars[p.key.text] = nil
		if p.value.kind != kindMap {
			r.refuse(p.value, codeType, "calendar %q must be a map such as {weekdays: [sat, sun]}, not %s", abbreviate(p.key.text), p.value.describe())
			continue
		}
		r.calendars[p.key.text] = r.calendar(p)
	}
}

func (r *reader) calendar(p pair) *jobs.Calendar {
	var d calendarDraft
	before := len(r.problems) + r.dropped
	at := table[calendarDraft]{fields: calendarFields(), where: fmt.Sprintf(" in calendar %q", abbreviate(p.key.text))}.read(r, p.value, &d)
	for i, text := range d.dates { // each for itself, so that every fault is reported
		r.checkCalendar(d.dateNodes[i], jobs.CalendarOptions{Dates: []string{text}})
	}
	for i, text := range d.weekdays {
		r.checkCalendar(d.weekdayNodes[i], jobs.CalendarOptions{Weekdays: []string{text}})
	}
	o := jobs.CalendarOptions{Dates: d.dates, Weekdays: d.weekdays}
	if d.file != "" {
		o.File = r.calendarFile(at["file"], d.file)
	}
	if len(r.problems)+r.dropped > before {
		return nil
	}
	c, err := jobs.ParseCalendar(p.key.text, o)
	var fault *jobs.CalendarError
	switch {
	case err == nil:
		return c
	case errors.As(err, &fault) && fault.List == jobs.CalendarFile:
		r.refuse(at["file"], jobs.CodeCalendar, "%s: %s", abbreviate(d.file), fault.Message)
	default:
		r.refuse(p.key, jobs.CodeCalendar, "%s; give it dates, weekdays or a file", err.Error())
	}
	return nil
}

// checkCalendar reports a fault in one item of a calendar.
func (r *reader) checkCalendar(n *node, o jobs.CalendarOptions) {
	if _, err := jobs.ParseCalendar("", o); err != nil {
		r.refuse(n, jobs.CodeCalendar, "%s", err.Error())
	}
}

// calendarFile reads an iCalendar file.
func (r *reader) calendarFile(n *node, path string) []byte {
	full := path
	if !filepath.IsAbs(full) {
		full = filepath.Join(r.vars.dir, full)
	}
	data, err := r.vars.read(full)
	switch {
	case err != nil:
		r.refuse(n, codeFile, "the file %q cannot be read: %s", abbreviate(path), reason(err))
	case len(data) > maxBytes:
		r.refuse(n, codeTooLarge, "the file %q has more than %d bytes (1 MiB), the most that is read", abbreviate(path), maxBytes)
	default:
		return append([]byte{}, data...) // an empty file is a file, too
	}
	return nil
}

// setCalendars finds the calendars that a job names, and reads its blackouts.
func (r *reader) setCalendars(d calendarsDraft, zone *time.Location, into *jobs.Calendars) bool {
	include, goodInclude := r.named(d.include, d.includeNodes)
	exclude, goodExclude := r.named(d.exclude, d.excludeNodes)
	blackout, goodBlackout := r.blackouts(d.blackout, zone)
	*into = jobs.Calendars{Include: include, Exclude: exclude, Shift: d.shift, Blackout: blackout}
	return goodInclude && goodExclude && goodBlackout
}

func (r *reader) named(names []string, nodes []*node) (list []*jobs.Calendar, good bool) {
	good = true
	for i, name := range names {
		c, known := r.calendars[name]
		switch {
		case !known:
			r.refuse(nodes[i], jobs.CodeCalendar, "there is no calendar %q%s", abbreviate(name), r.calendarHint(name))
			good = false
		case c == nil:
			good = false
		default:
			list = append(list, c)
		}
	}
	return list, good
}

func (r *reader) calendarHint(name string) string {
	if len(r.calendars) == 0 {
		return "; define it at the top of the file: calendars: {" + abbreviate(name) + ": {weekdays: [sat, sun]}}"
	}
	known := slices.Sorted(maps.Keys(r.calendars))
	if hint := didYouMean(name, known); hint != "" {
		return hint
	}
	return "; the file has " + series(known, "and")
}

func (r *reader) blackouts(drafts []blackoutDraft, zone *time.Location) (list []jobs.Blackout, good bool) {
	good = true
	for _, d := range drafts {
		if d.from == "" || d.until == "" {
			good = false // reported when it was read
			continue
		}
		b, err := jobs.ParseBlackout(d.from, d.until, zone)
		if err != nil {
			n := d.at
			var fault *jobs.ScheduleError
			if errors.As(err, &fault) && fault.Item >= 0 {
				n = d.keys[[]string{"from", "until"}[fault.Item]]
			}
			r.refuse(n, jobs.CodeWindow, "%s", err.Error())
			good = false
			continue
		}
		list = append(list, b)
	}
	return list, good
}
