package jobs

import (
	"encoding/json"
	"time"
)

// NewRun is a row to be inserted into the ledger, in the form of the JSON document that the statement takes.
type NewRun struct {
	Job         string          `json:"job"`
	Occurrence  string          `json:"occurrence"`
	Attempt     int             `json:"attempt"`
	Trigger     Trigger         `json:"trigger"`
	RequestedBy string          `json:"requested_by"`
	Resource    string          `json:"resource"`
	Overlap     OverlapRule     `json:"overlap"`
	OnLost      OnLost          `json:"on_lost"`
	MaxAttempts int             `json:"max_attempts"`
	State       State           `json:"state"`
	Outcome     *Outcome        `json:"outcome"`
	Reason      Reason          `json:"reason"`
	Detail      json.RawMessage `json:"detail"`

	// The instants go in as the database wants them.
	ScheduledAt time.Time `json:"-"`
	DueAt       time.Time `json:"-"`
	StartBy     time.Time `json:"-"` // zero: it never becomes missed by waiting

	EncodedScheduledAt any `json:"scheduled_at"`
	EncodedDueAt       any `json:"due_at"`
	EncodedStartBy     any `json:"start_by"`
}

// pending is the part that all runs of a job share.
func (j *Job) pending(scheduled, due time.Time) NewRun {
	n := NewRun{
		Job: j.Name, Attempt: 1, Resource: j.Resource.At(scheduled), Overlap: OverlapRule(j.Overlap),
		OnLost: j.OnLost, MaxAttempts: j.MaxAttempts(), State: StatePending,
		ScheduledAt: scheduled, DueAt: due,
	}
	if j.StartDeadline > 0 {
		n.StartBy = due.Add(j.StartDeadline)
	}
	return n
}

// ScheduledRun is the row of an occurrence that was planned in time.
func (j *Job) ScheduledRun(at time.Time) NewRun {
	n := j.pending(at, at)
	n.Occurrence, n.Trigger = ScheduledOccurrence(at), TriggerSchedule
	return n
}

// CatchUpRun is the row of an occurrence that fell due while nobody planned and still runs, from now on.
func (j *Job) CatchUpRun(at, now time.Time) NewRun {
	n := j.pending(at, now)
	n.Occurrence, n.Trigger, n.Overlap = ScheduledOccurrence(at), TriggerCatchUp, RuleWait
	return n
}

// EndedRun is the row of an occurrence that does not run: it is finished when it is planned.
func (j *Job) EndedRun(at time.Time, outcome Outcome, reason Reason, detail json.RawMessage) NewRun {
	n := j.pending(at, at)
	n.Occurrence, n.Trigger, n.State = ScheduledOccurrence(at), TriggerSchedule, StateFinished
	n.Outcome, n.Reason, n.Detail = &outcome, reason, detail
	return n
}

// ManualRun is the row of a manual trigger, due at once.
func ManualRun(r TriggerRequest, now time.Time) NewRun {
	n := r.Job.pending(now, now)
	n.Occurrence, n.Trigger, n.RequestedBy = ManualOccurrence(r.RequestID), TriggerManual, r.RequestedBy
	return n
}

// NextAttempt is the row that follows a run that was lost or drained: pending, or held for a person. ok is false when
// the policy or the number of attempts says that nothing follows.
func (r *Run) NextAttempt(now time.Time) (n NewRun, ok bool) {
	if r.OnLost == OnLostFail || (r.OnLost == OnLostRetry && r.Attempt >= r.MaxAttempts) {
		return NewRun{}, false
	}
	n = NewRun{
		Job: r.Job, Occurrence: r.Occurrence, Attempt: r.Attempt + 1, Trigger: TriggerRecovery,
		RequestedBy: r.RequestedBy, Resource: r.Resource, Overlap: r.Overlap, OnLost: r.OnLost,
		MaxAttempts: r.MaxAttempts, State: StatePending, ScheduledAt: r.ScheduledAt, DueAt: now,
	}
	if r.OnLost == OnLostHold {
		n.State = StateHeld
		return n, true
	}
	if r.StartBy != nil {
		n.StartBy = now.Add(r.StartBy.Sub(r.DueAt))
	}
	return n, true
}
