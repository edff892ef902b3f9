package scheduler

import (
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// planRules are the bounds of planning.
type planRules struct {
	// late is how old the oldest unplanned instant may be before the gap counts as an outage, in which nobody planned
	// and catch_up decides. It is the locks' TTL: the same time after which a silent replica counts as gone.
	late time.Duration
}

// outage is the instants of one schedule that fell due since it was last planned. Most often it is no outage at all
// but one instant that became due a moment ago.
type outage struct {
	job      *jobs.Job
	instants []time.Time // ascending, never empty
	now      time.Time   // the database's clock
	rules    planRules
	alive    []lifetime // when any replica reached the database
	more     bool       // the outage is longer than one plan takes: newer instants follow in the next one
}

func (o *outage) real() bool { return o.now.Sub(o.instants[0]) > o.rules.late }

// runs decides what becomes of each instant: one row each, except for the summary of a very long outage.
func (o *outage) runs() []jobs.NewRun {
	if !o.job.Enabled {
		return o.ended(o.instants, jobs.OutcomeSkipped, func(time.Time) jobs.Reason { return jobs.ReasonDisabled })
	}
	if !o.real() {
		rows := make([]jobs.NewRun, len(o.instants))
		for i, at := range o.instants {
			rows[i] = o.job.ScheduledRun(at)
		}
		return rows
	}
	missed, chosen := o.choose()
	rows := o.ended(missed, jobs.OutcomeMissed, o.whyMissed)
	for _, at := range chosen {
		rows = append(rows, o.job.CatchUpRun(at, o.now))
	}
	return rows
}

// choose splits the instants by the job's catch_up policy: the chosen ones are the newest that lie inside the window.
func (o *outage) choose() (missed, chosen []time.Time) {
	limit := 0
	if o.more {
		return o.instants, nil
	}
	switch o.job.CatchUp.Policy {
	case jobs.CatchUpLatest:
		limit = 1
	case jobs.CatchUpAll:
		limit = o.job.CatchUp.Max
	case jobs.CatchUpNone:
	}
	first := len(o.instants)
	for first > 0 && limit > 0 && o.now.Sub(o.instants[first-1]) <= o.job.CatchUp.Window {
		first--
		limit--
	}
	return o.instants[:first], o.instants[first:]
}

func (o *outage) whyMissed(at time.Time) jobs.Reason {
	for _, span := range o.alive {
		if !at.Before(span.From.Time) && !at.After(span.Until.Time) {
			return jobs.ReasonCatchUp
		}
	}
	return jobs.ReasonNoReplica
}

// ended is one finished row for each instant; of a very long list the oldest share one row that counts them.
func (o *outage) ended(at []time.Time, outcome jobs.Outcome, why func(time.Time) jobs.Reason) []jobs.NewRun {
	var rows []jobs.NewRun
	if extra := len(at) - maxMissedRows; extra > 0 {
		d := o.facts()
		d["missed_from"], d["missed_until"], d["missed_count"] = at[0], at[extra-1], extra
		rows = append(rows, o.job.EndedRun(at[0], outcome, why(at[0]), detail(d)))
		at = at[extra:]
	}
	for _, t := range at {
		rows = append(rows, o.job.EndedRun(t, outcome, why(t), detail(o.facts())))
	}
	return rows
}

func (o *outage) facts() map[string]any {
	if !o.job.Enabled {
		return map[string]any{}
	}
	return map[string]any{
		"planned_at": o.now, "catch_up": o.job.CatchUp.Policy, "window": o.job.CatchUp.Window.String(),
		"unplanned_from": o.instants[0], "unplanned_until": o.instants[len(o.instants)-1],
	}
}
