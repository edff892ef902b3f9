package jobs

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// After is a job that another one comes after.
type After struct {
	Job string
	On  AfterOn // "" is AfterSuccess: Link writes it
}

// AfterOn is which end of a run lets another job follow.
type AfterOn string

// The ends of a run. A run that was skipped or missed has none of them.
const (
	AfterSuccess AfterOn = "success" // succeeded
	AfterFailure AfterOn = "failure" // failed, timed out or lost, after its last attempt
	AfterAlways  AfterOn = "always"  // any of these, and cancelled
	AfterAbort   AfterOn = "abort"   // cancelled; for hooks
)

// Met reports whether a run with this outcome is followed.
func (on AfterOn) Met(o Outcome) bool {
	switch o {
	case OutcomeSucceeded:
		return on == AfterSuccess || on == AfterAlways
	case OutcomeFailed, OutcomeTimedOut, OutcomeLost:
		return on == AfterFailure || on == AfterAlways
	case OutcomeCancelled:
		return on == AfterAbort || on == AfterAlways
	case OutcomeSkipped, OutcomeMissed:
	}
	return false
}

// Follows is what a run came after. The zero value is nothing.
type Follows struct {
	Kind Trigger    `json:"kind,omitempty"` // after, on_success, on_failure or on_abort
	Runs []Followed `json:"runs,omitempty"` // in the order of Job.After
}

// Followed is a run that another one came after.
type Followed struct {
	Job     string  `json:"job"`
	RunID   int64   `json:"run_id"`
	Outcome Outcome `json:"outcome"`
	Reason  Reason  `json:"reason,omitempty"`
}

// Successor is where a run that comes after others stands.
type Successor struct {
	Occurrence  string // of the runs before it, or of the period that they have in common
	ScheduledAt time.Time
	DueAt       time.Time  // when the last of them ended
	Runs        []Followed // in the order of Job.After
	// CaughtUp says that one of them was caught up: like those, what follows runs one after another.
	CaughtUp bool
}

// PeriodOccurrence is the identity of what follows several runs with the same period.
func PeriodOccurrence(period string) string { return "p:" + period }

// FollowingRun is the row of a run that comes after others.
func (j *Job) FollowingRun(s Successor) NewRun {
	n := j.pending(s.Occurrence, s.ScheduledAt, s.DueAt)
	n.Trigger = j.followKind()
	n.Follows = Follows{Kind: n.Trigger, Runs: s.Runs}
	if s.CaughtUp && n.Overlap != RuleAllow {
		n.Overlap = RuleWait
	}
	return n
}

// SkippedRun is the row of such a run that does not run: it is finished when it is inserted.
func (j *Job) SkippedRun(s Successor, reason Reason, detail json.RawMessage) NewRun {
	n, outcome := j.FollowingRun(s), OutcomeSkipped
	n.State, n.Outcome, n.Reason, n.Detail = StateFinished, &outcome, reason, detail
	return n
}

// followKind is why runs of a job that comes after others are there.
func (j *Job) followKind() Trigger {
	if j.HookOf == "" {
		return TriggerAfter
	}
	switch j.After[0].On {
	case AfterFailure:
		return TriggerOnFailure
	case AfterAbort:
		return TriggerOnAbort
	case AfterSuccess, AfterAlways:
	}
	return TriggerOnSuccess
}

// environ is what a command is told about the runs that it came after: lists with commas, in the order of Job.After.
func (f *Follows) environ(env map[string]string) {
	if len(f.Runs) == 0 {
		return
	}
	var names, ids, outcomes, reasons []string
	for _, r := range f.Runs {
		names, ids = append(names, r.Job), append(ids, strconv.FormatInt(r.RunID, 10))
		outcomes, reasons = append(outcomes, string(r.Outcome)), append(reasons, string(r.Reason))
	}
	env["CRONLATCH_AFTER_JOB"] = strings.Join(names, ",")
	env["CRONLATCH_AFTER_RUN_ID"] = strings.Join(ids, ",")
	env["CRONLATCH_AFTER_OUTCOME"] = strings.Join(outcomes, ",")
	env["CRONLATCH_AFTER_REASON"] = strings.Join(reasons, ",")
}
