package check

import (
	"strconv"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// longest is how far Instants looks.
const longest = 31 * 24 * time.Hour

// Instants are all instants of a six-field schedule in UTC from the first to the last second, both included, found by
// looking at every second. It knows lists of numbers, stars and stars with a step, and panics on anything else: it is
// kept apart from the product's schedules on purpose. A span of more than a month is a mistake of the caller.
func Instants(schedule string, from, until time.Time) []time.Time {
	fields := strings.Fields(schedule)
	if len(fields) != 6 {
		panic("check: not a schedule with seconds: " + schedule)
	}
	if until.Sub(from) > longest {
		panic("check: a calendar from " + from.String() + " to " + until.String())
	}
	var all []time.Time
	for at := from.UTC().Truncate(time.Second); !at.After(until); at = at.Add(time.Second) {
		values := []int{at.Second(), at.Minute(), at.Hour(), at.Day(), int(at.Month()), int(at.Weekday())}
		fits := !at.Before(from)
		for i, field := range fields {
			fits = fits && fieldFits(field, values[i])
		}
		if fits {
			all = append(all, at)
		}
	}
	return all
}

func fieldFits(field string, value int) bool {
	for item := range strings.SplitSeq(field, ",") {
		step, stepped := strings.CutPrefix(item, "*/")
		switch {
		case item == "*", stepped && value%number(step) == 0, !stepped && number(item) == value:
			return true
		}
	}
	return false
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic("check: not a number in a schedule: " + text)
	}
	return n
}

// Window is a span of the database's clock in which a schedule was certainly watched; the zero value is from the first
// row to the last.
type Window struct{ From, Until time.Time }

// Calendar checks that the ledger is the calendar: of each job that has a schedule, every instant of the window has a
// row, every row is an instant, and between the first and the last row none is missing. Retries are further attempts at
// an occurrence, not further occurrences; manual runs do not count.
func Calendar(runs []jobs.Run, schedules map[string]string, w Window) error {
	var p problems
	planned := map[string]map[time.Time]int{}
	for i := range runs {
		r := &runs[i]
		if r.Attempt != 1 || strings.HasPrefix(r.Occurrence, "m:") {
			continue
		}
		if _, known := schedules[r.Job]; !known {
			p.add("run %d is of the job %q, which has no schedule", r.ID, r.Job)
			continue
		}
		if r.Occurrence != "s:"+r.ScheduledAt.UTC().Format("2006-01-02T15:04:05Z") {
			p.add("run %d (%s): occurrence %q was scheduled at %s", r.ID, r.Job, r.Occurrence, r.ScheduledAt)
		}
		if planned[r.Job] == nil {
			planned[r.Job] = map[time.Time]int{}
		}
		planned[r.Job][r.ScheduledAt.UTC()]++
	}
	for job, schedule := range schedules {
		compare(&p, job, schedule, planned[job], w)
	}
	return p.err()
}

func compare(p *problems, job, schedule string, rows map[time.Time]int, w Window) {
	for at := range rows {
		if w.From.IsZero() || at.Before(w.From) {
			w.From = at
		}
		if at.After(w.Until) {
			w.Until = at
		}
	}
	if len(rows) == 0 && w.From.IsZero() {
		p.add("%s has no rows", job)
		return
	}
	for _, at := range Instants(schedule, w.From, w.Until) {
		if n := rows[at]; n != 1 {
			p.add("%s has %d rows for %s", job, n, at.Format(time.RFC3339Nano))
		}
		delete(rows, at)
	}
	for at := range rows {
		p.add("%s has a row for %s, which is not in its calendar", job, at.Format(time.RFC3339Nano))
	}
}

// Share counts the runs that succeeded, and all.
func Share(runs []jobs.Run) (succeeded, all int) {
	for i := range runs {
		if runs[i].Outcome == jobs.OutcomeSucceeded {
			succeeded++
		}
	}
	return succeeded, len(runs)
}

// PerReplica counts the runs that each replica has claimed.
func PerReplica(runs []jobs.Run) map[string]int {
	n := map[string]int{}
	for i := range runs {
		if runs[i].Replica != "" {
			n[runs[i].Replica]++
		}
	}
	return n
}
