package demo

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// entry is a row of the ledger with what the past has added to it.
type entry struct {
	jobs.NewRun

	id                int64 // 0 until all are there
	created           time.Time
	started, finished time.Time
	by                lifetime // who ran it; zero when nobody did
	token             int64
	exitCode          *int
	cancel            jobs.Reason
	output            string
	facts             map[string]any
	blockedBy         *entry // the unfinished run behind the reason overlap
}

func (e *entry) ran() bool { return !e.started.IsZero() }

// owner is as the scheduler makes it: unique to replica, process, run and attempt.
func (e *entry) owner() string {
	if !e.ran() {
		return ""
	}
	return fmt.Sprintf("%s/%s/%d/%d", e.by.Name, e.by.Nonce, e.id, e.Attempt)
}

// end gives the run its outcome.
func (e *entry) end(outcome jobs.Outcome, reason jobs.Reason, at time.Time) {
	e.State, e.Outcome, e.Reason, e.finished = jobs.StateFinished, &outcome, reason, at
}

// exit ends a run as its command's exit code says.
func (e *entry) exit(code int, at time.Time) {
	e.exitCode = &code
	if code == 0 {
		e.end(jobs.OutcomeSucceeded, "", at)
		return
	}
	e.end(jobs.OutcomeFailed, jobs.ReasonExit, at)
}

// run is the row as the code that decides what follows sees it.
func (e *entry) run() *jobs.Run {
	r := &jobs.Run{
		Job: e.Job, Occurrence: e.Occurrence, Attempt: e.Attempt, Trigger: e.Trigger, RequestedBy: e.RequestedBy,
		ScheduledAt: e.ScheduledAt, DueAt: e.DueAt, Resource: e.Resource, Overlap: e.Overlap, OnLost: e.OnLost,
		MaxAttempts: e.MaxAttempts, Retry: e.Retry, OncePer: e.OncePer, Limits: e.Limits, OnlyOn: e.OnlyOn, Period: e.Period,
		Follow: e.Follow, Follows: e.Follows, Params: e.Params, Notify: e.Notify, CancelReason: e.cancel,
	}
	if !e.StartBy.IsZero() {
		r.StartBy = &e.StartBy
	}
	return r
}

// settle fills in what needs the ids of other rows.
func (e *entry) settle() error {
	if e.Job == jobIndex && e.ran() {
		e.output = indexOutput(e.token, e.Attempt, e.finished.Sub(e.started))
	}
	if e.blockedBy != nil {
		e.facts = map[string]any{"unfinished_run": e.blockedBy.id}
	}
	if e.facts == nil {
		return nil
	}
	doc, err := json.Marshal(e.facts)
	if err != nil {
		return fmt.Errorf("encoding the facts of a run: %w", err)
	}
	e.Detail = doc
	// Whoever looks for messages to send, or for runs that follow, has looked long ago.
	e.Follow, e.Notify = false, false
	return nil
}

// note is a row of audit_log.
type note struct {
	at                                        time.Time
	action, actorType, actor, replica, reason string
	job                                       string
	run                                       *entry // nil: none
	facts                                     map[string]any
}
