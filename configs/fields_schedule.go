package configs

import (
	"errors"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// scheduleDraft is when a job runs, as it is read.
type scheduleDraft struct {
	texts    []string
	nodes    []*node // of the texts
	timezone string
	dst      jobs.DST
	dayMatch jobs.DayMatch
	dayNode  *node // of day_match; nil when nothing says it
	seconds  bool
	jitter   time.Duration

	from, until string
	calendars   calendarsDraft
}

func scheduleFields() []field[jobDraft] {
	return append([]field[jobDraft]{
		{
			key: "description", doc: "What the job is for, in a sentence.",
			bind: func(d *jobDraft) sink { return text{into: &d.description} },
		},
		{
			key: "tags", doc: "Words to find jobs by.",
			bind: func(d *jobDraft) sink { return list{into: &d.tags} },
		},
		{
			key: "enabled", initial: "true", doc: "false keeps the definition and runs nothing by schedule.",
			bind: func(d *jobDraft) sink { return boolean{&d.enabled} },
		},
		{
			key: "schedule", doc: "Five-field cron, @hourly and its kin, @every 15m, or a list of them. A job without it runs after others (`after`), or by hand only.",
			bind: func(d *jobDraft) sink { return scheduleTexts{&d.when} },
		},
		{
			key: "seconds", initial: "false", doc: "true makes the schedule six fields, the first of which is the second.",
			bind: func(d *jobDraft) sink { return boolean{&d.when.seconds} },
		},
		{
			key: "timezone", initial: "UTC", shared: true, doc: "The IANA zone of the schedule and of dates in the resource.",
			bind: func(d *jobDraft) sink { return text{into: &d.when.timezone, check: checkZone} },
		},
		{
			key: "dst", initial: string(jobs.DSTOnce), shared: true, doc: "What a fixed time does when a change of the zone's offset skips or repeats it.",
			bind: func(d *jobDraft) sink {
				return choice[jobs.DST]{into: &d.when.dst, words: []jobs.DST{jobs.DSTOnce, jobs.DSTSkip, jobs.DSTBoth}}
			},
		},
		{
			key: "day_match", initial: string(jobs.DayMatchAny), shared: true, doc: "Whether a day must match any or all of two restricted day fields.",
			bind: func(d *jobDraft) sink {
				return remembered{choice[jobs.DayMatch]{into: &d.when.dayMatch, words: []jobs.DayMatch{jobs.DayMatchAny, jobs.DayMatchAll}}, &d.when.dayNode}
			},
		},
	}, boundsFields()...)
}

func boundsFields() []field[jobDraft] {
	return []field[jobDraft]{
		{
			key: "jitter", initial: "0s", shared: true, doc: "A run becomes due up to this much after its instant, always the same for the same job and instant.",
			bind: func(d *jobDraft) sink { return duration{&d.when.jitter, 0, day} },
		},
		{
			key: "from", doc: "The first date (in the job's zone) or instant at which the schedule may fire.",
			bind: func(d *jobDraft) sink { return text{into: &d.when.from} },
		},
		{
			key: "until", doc: "The date or instant from which it fires no longer.",
			bind: func(d *jobDraft) sink { return text{into: &d.when.until} },
		},
		{
			key: "calendars", shared: true, doc: "The calendars and windows that drop or move instants.",
			bind: func(d *jobDraft) sink {
				return group[calendarsDraft]{calendarsFields(), &d.when.calendars, "{exclude: [holidays], shift: next}"}
			},
		},
	}
}

// scheduleTexts is a sink for a schedule, or a list of them.
type scheduleTexts struct{ into *scheduleDraft }

func (s scheduleTexts) read(r *reader, n *node, name string) {
	switch n.kind {
	case kindList:
		list{into: &s.into.texts, nodes: &s.into.nodes}.read(r, n, name)
		return
	case kindMap:
		r.refuse(n, codeType, `%s must be a text such as "0 6 * * *", or a list of them, not a map`, name)
		return
	case kindNull, kindBool, kindInteger, kindFloat, kindText: // the sink for texts explains the rest
	}
	var one string
	text{into: &one}.read(r, n, name)
	if one != "" {
		s.into.texts, s.into.nodes = []string{one}, []*node{r.asRead(n, one)}
	}
}

func checkZone(name string) error {
	_, err := jobs.LoadZone(name)
	var fault *jobs.ScheduleError
	if errors.As(err, &fault) {
		return &partError{part{fault.Offset, fault.Length}, fault.Code, fault.Message}
	}
	return err
}

// schedule makes the schedule of a job; nil when it has none, or a fault, which is reported.
func (r *reader) schedule(d *jobDraft) *jobs.Schedule {
	w := &d.when
	if len(w.texts) == 0 {
		r.refuseWithoutSchedule(d)
		return nil
	}
	o := jobs.ScheduleOptions{Timezone: w.timezone, DST: w.dst, DayMatch: w.dayMatch, Seconds: w.seconds, Job: d.name}
	good := true
	for i, one := range w.texts { // each for itself, so that every fault is reported
		if _, err := jobs.ParseSchedule(one, o); err != nil {
			r.refuseSchedule(w.nodes[i], err)
			good = false
		}
	}
	zone := zoneOf(w.timezone)
	good = r.setWindow(d, zone, &o) && good
	good = r.setCalendars(w.calendars, zone, &o.Calendars) && good
	if !good {
		return nil
	}
	s, err := jobs.ParseSchedules(w.texts, o)
	if err != nil {
		r.refuseSchedule(d.faultyKey(err), err)
		return nil
	}
	r.checkJitter(d, s)
	return s
}

// checkJitter refuses a jitter by which a run could become due after the one behind it.
func (r *reader) checkJitter(d *jobDraft, s *jobs.Schedule) {
	if d.when.jitter == 0 {
		return
	}
	shortest := s.ShortestInterval()
	if shortest == 0 || d.when.jitter <= shortest {
		return
	}
	n, from := d.at["jitter"], ""
	if n == nil {
		n, from = d.at["schedule"], " (from defaults)"
	}
	r.refuse(n, codeRange, "jitter %s%s is longer than %s, the shortest time between two instants of the schedule, so that a run could overtake the one before it; say jitter: %s or less",
		formatDuration(d.when.jitter), from, formatDuration(shortest), formatDuration(shortest))
}

// refuseSchedule reports a fault in a schedule. Zone and policies were checked where they stand, so that a fault in
// defaults is reported once.
func (r *reader) refuseSchedule(n *node, err error) {
	var fault *jobs.ScheduleError
	if !errors.As(err, &fault) {
		r.refuse(n, jobs.CodeSchedule, "%s", err.Error())
		return
	}
	r.refusePart(n, part{fault.Offset, fault.Length}, fault.Code, fault.Message)
}

// faultyKey is the key to look at when a schedule and its options do not go together.
func (d *jobDraft) faultyKey(err error) *node {
	var fault *jobs.ScheduleError
	if !errors.As(err, &fault) {
		return d.key
	}
	switch {
	case fault.Code == jobs.CodeWindow && d.at["until"] != nil:
		return d.at["until"]
	case fault.Code == jobs.CodeCalendar && d.when.calendars.shiftNode != nil:
		return d.when.calendars.shiftNode
	case d.at["schedule"] != nil && d.at["schedule"].kind == kindText:
		return d.when.nodes[0]
	case d.at["schedule"] != nil:
		return d.at["schedule"]
	default:
		return d.key
	}
}

// refuseWithoutSchedule reports keys that say something about a schedule that is not there.
func (r *reader) refuseWithoutSchedule(d *jobDraft) {
	if d.at.has("schedule") {
		return // it was faulty
	}
	for _, key := range []string{"day_match", "jitter", "from", "until", "calendars"} {
		n := d.at[key]
		switch {
		case n == nil:
		case d.at.has("after"):
			r.refuse(n, codeConflict, "%s says when a schedule fires, and job %q comes after another one; remove %s", key, abbreviate(d.name), key)
		default:
			r.refuse(n, codeConflict, "%s says when a schedule fires, and job %q has none; add schedule, or remove %s", key, abbreviate(d.name), key)
		}
	}
}

// setWindow reads from and until.
func (r *reader) setWindow(d *jobDraft, zone *time.Location, o *jobs.ScheduleOptions) bool {
	good := true
	for _, bound := range []struct {
		key, text string
		into      *time.Time
	}{{"from", d.when.from, &o.From}, {"until", d.when.until, &o.Until}} {
		if bound.text == "" {
			continue
		}
		at, err := jobs.ParseMoment(bound.text, zone)
		if err != nil {
			r.refuse(d.at[bound.key], jobs.CodeWindow, "%s: %s", bound.key, err.Error())
			good = false
		}
		*bound.into = at
	}
	return good
}

func zoneOf(name string) *time.Location {
	zone, err := jobs.LoadZone(name)
	if err != nil {
		return time.UTC // reported when it was read
	}
	return zone
}
