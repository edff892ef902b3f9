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
	pauses   []Pause    // of any job
	alive    []lifetime // when any replica reached the database
	more     bool       // the outage is longer than one plan takes: newer instants follow in the next one
}

func (o *outage) real() bool { return o.now.Sub(o.instants[0]) > o.rules.late }

// why is the reason of a row that is finished when it is planned, and the facts that belong to it.
type why func(at time.Time) (jobs.Reason, map[string]any)

// runs decides what becomes of each instant: one row each, except for the summary of a very long outage.
func (o *outage) runs() []jobs.NewRun {
	if !o.job.Enabled {
		return o.ended(o.instants, jobs.OutcomeSkipped, func(time.Time) (jobs.Reason, map[string]any) {
			return jobs.ReasonDisabled, map[string]any{}
		})
	}
	rows, instants := o.paused()
	if !o.real() {
		for _, at := range instants {
			rows = append(rows, o.job.ScheduledRun(at))
		}
		return rows
	}
	missed, chosen := o.choose(instants)
	rows = append(rows, o.ended(missed, jobs.OutcomeMissed, o.whyMissed)...)
	for _, at := range chosen {
		rows = append(rows, o.job.CatchUpRun(at, o.now))
	}
	return rows
}

// paused are the rows of the instants that fell due in a pause, and the other instants. What was paused is never caught up.
func (o *outage) paused() (rows []jobs.NewRun, others []time.Time) {
	if len(o.pauses) == 0 {
		return nil, o.instants
	}
	in := map[*Pause][]time.Time{}
	for _, at := range o.instants {
		if p := covering(o.pauses, o.job.Name, at); p != nil {
			in[p] = append(in[p], at)
		} else {
			others = append(others, at)
		}
	}
	for i := range o.pauses {
		p := &o.pauses[i]
		rows = append(rows, o.ended(in[p], jobs.OutcomeMissed, func(time.Time) (jobs.Reason, map[string]any) {
			return jobs.ReasonPaused, map[string]any{"pause": p.fact()}
		})...)
	}
	return rows, others
}

// choose splits instants by the job's catch_up policy: the chosen ones are the newest that lie inside the window.
func (o *outage) choose(instants []time.Time) (missed, chosen []time.Time) {
	limit := 0
	if o.more {
		return instants, nil
	}
	switch o.job.CatchUp.Policy {
	case jobs.CatchUpLatest:
		limit = 1
	case jobs.CatchUpAll:
		limit = o.job.CatchUp.Max
	case jobs.CatchUpNone:
	}
	first := len(instants)
	for first > 0 && limit > 0 && o.now.Sub(instants[first-1]) <= o.job.CatchUp.Window {
		first--
		limit--
	}
	return instants[:first], instants[first:]
}

// whyMissed tells an instant at which nobody was there, and the span around it, from one that the policy did not choose.
func (o *outage) whyMissed(at time.Time) (jobs.Reason, map[string]any) {
	facts := map[string]any{
		"planned_at": o.now, "catch_up": o.job.CatchUp.Policy, "window": o.job.CatchUp.Window.String(),
		"unplanned_from": o.instants[0], "unplanned_until": o.instants[len(o.instants)-1],
	}
	var from time.Time
	until := o.now // whoever plans is there
	for _, span := range o.alive {
		switch {
		case span.Until.Before(at):
			if span.Until.After(from) {
				from = span.Until.Time
			}
		case !span.From.After(at):
			return jobs.ReasonCatchUp, facts
		case span.From.Before(until):
			until = span.From.Time
		}
	}
	if facts["nobody_until"] = until; !from.IsZero() { // else there was nobody before
		facts["nobody_from"] = from
	}
	return jobs.ReasonNoReplica, facts
}

// ended is one finished row for each instant; of a very long list the oldest share one row that counts them.
func (o *outage) ended(at []time.Time, outcome jobs.Outcome, why why) []jobs.NewRun {
	var rows []jobs.NewRun
	single := maxMissedRows
	if o.more {
		single = 0 // the newest are in a later piece
	}
	if extra := len(at) - single; extra > 0 {
		reason, facts := why(at[0])
		facts["missed_from"], facts["missed_until"], facts["missed_count"] = at[0], at[extra-1], extra
		rows = append(rows, o.job.EndedRun(at[0], outcome, reason, detail(facts)))
		at = at[extra:]
	}
	for _, t := range at {
		reason, facts := why(t)
		rows = append(rows, o.job.EndedRun(t, outcome, reason, detail(facts)))
	}
	return rows
}
