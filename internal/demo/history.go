package demo

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/jobs"
)

// person is who did by hand what was done by hand.
const person = "anna@laptop"

// history is what has happened before the demo begins, and the row of what is to happen first.
type history struct {
	*timeline

	config  *configs.Config
	entries []*entry
	notes   []note
}

// newHistory makes up the past up to now.
func newHistory(c *configs.Config, seed uint64, now time.Time) (*history, error) {
	backups, err := instants(c, jobBackup, now)
	if err != nil {
		return nil, err
	}
	h := &history{timeline: newTimeline(seed, now, backups), config: c}
	for _, s := range []struct {
		job  string
		tell func(j *jobs.Job, at []time.Time)
	}{
		{jobBackup, h.backups},
		{jobReport, h.plain},
		{jobSync, h.syncs},
		{jobCleanup, h.cleanups},
		{jobPartner, h.partners},
		{jobIndex, h.indexes},
	} {
		at, err := instants(c, s.job, now)
		if err != nil {
			return nil, err
		}
		job, err := c.Job(s.job)
		if err != nil {
			return nil, fmt.Errorf("the demo's configuration: %w", err)
		}
		s.tell(job, at)
	}
	return h, h.number()
}

// instants are those of a job's schedule in the history, as far back as the job's runs are kept.
func instants(c *configs.Config, name string, now time.Time) ([]time.Time, error) {
	job, err := c.Job(name)
	if err != nil {
		return nil, fmt.Errorf("the demo's configuration: %w", err)
	}
	length := historyLength
	if kept := job.History.KeepFor; kept != 0 {
		length = min(length, kept)
	}
	const most = 100_000
	at, _ := job.Schedule.Between(now.Add(-length), now, most)
	return at, nil
}

// number gives the rows their ids in the order in which they were made, and tokens in the order of the grants.
func (h *history) number() error {
	slices.SortStableFunc(h.entries, func(a, b *entry) int { return a.created.Compare(b.created) })
	var granted []*entry
	for i, e := range h.entries {
		e.id = int64(i + 1)
		if e.ran() {
			granted = append(granted, e)
		}
	}
	slices.SortStableFunc(granted, func(a, b *entry) int {
		return cmp.Or(a.started.Compare(b.started), cmp.Compare(a.id, b.id))
	})
	for i, e := range granted {
		e.token = int64(i + 1)
	}
	for _, e := range h.entries {
		if err := e.settle(); err != nil {
			return err
		}
	}
	return nil
}

// usual is a run that begins soon after its instant and succeeds, or at least ends before now.
func (h *history) usual(n jobs.NewRun, took time.Duration) *entry {
	created := later(n.DueAt, n.ScheduledAt).Add(h.between(2*time.Millisecond, 40*time.Millisecond))
	e := &entry{NewRun: n, created: h.atMost(created)}
	e.started = h.atMost(e.created.Add(h.between(5*time.Millisecond, 800*time.Millisecond)))
	end := h.atMost(e.started.Add(took))
	e.by = h.anybody(span{e.started, end})
	e.exit(0, end)
	h.entries = append(h.entries, e)
	return e
}

// again is the attempt that follows a run.
func (h *history) again(n jobs.NewRun, created time.Time, took time.Duration) *entry {
	e := h.usual(n, took)
	e.created = created
	return e
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (h *history) atMost(at time.Time) time.Time {
	at = at.Truncate(time.Millisecond)
	if at.After(h.now) {
		return h.now
	}
	return at
}

// outages gives the rows of what fell due while nobody planned, and returns the other instants.
func (h *history) outages(j *jobs.Job, at []time.Time) (rest []time.Time) {
	var due []time.Time
	for _, t := range at {
		if h.outage.has(t) {
			due = append(due, t)
		} else {
			rest = append(rest, t)
		}
	}
	planned := h.outage.Until.Add(h.between(300*time.Millisecond, 900*time.Millisecond))
	for i, t := range due {
		if i == len(due)-1 && j.CatchUp.Policy != jobs.CatchUpNone && planned.Sub(t) <= j.CatchUp.Window {
			h.usual(j.CatchUpRun(t, planned), h.between(time.Second, 3*time.Second)).output = "caught up\n"
			continue
		}
		e := &entry{NewRun: j.EndedRun(t, jobs.OutcomeMissed, jobs.ReasonNoReplica, nil), created: planned, finished: planned}
		e.facts = map[string]any{
			"planned_at": planned, "catch_up": j.CatchUp.Policy, "window": j.CatchUp.Window.String(),
			"unplanned_from": due[0], "unplanned_until": due[len(due)-1],
			"nobody_from": h.outage.From, "nobody_until": h.outage.Until,
		}
		h.entries = append(h.entries, e)
	}
	return rest
}

// plain is a job of which nothing special can be told.
func (h *history) plain(j *jobs.Job, at []time.Time) {
	for _, t := range h.outages(j, at) {
		period, _ := j.Resource.Period(t)
		h.usual(j.ScheduledRun(t), h.between(20*time.Second, 90*time.Second)).output = "report for " + period + " is written\n"
	}
}
