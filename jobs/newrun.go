package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/cronlatch/cronlatch/internal/resource"
)

// NewRun is a row to be inserted into the ledger, in the form of the JSON document that the statement takes.
type NewRun struct {
	Job         string            `json:"job"`
	Occurrence  string            `json:"occurrence"`
	Attempt     int               `json:"attempt"`
	Trigger     Trigger           `json:"trigger"`
	RequestedBy string            `json:"requested_by"`
	PlannedBy   string            `json:"planned_by"` // the replica that makes the row; "" where a person does
	Resource    string            `json:"resource"`
	Overlap     OverlapRule       `json:"overlap"`
	OnLost      OnLost            `json:"on_lost"`
	MaxAttempts int               `json:"max_attempts"`
	Retry       Retry             `json:"retry"`
	OncePer     OncePer           `json:"once_per"`
	Limits      map[string]int    `json:"limits"`
	OnlyOn      Labels            `json:"only_on"`
	Period      string            `json:"period"`
	Follow      bool              `json:"follow"`
	Follows     Follows           `json:"follows"`
	Params      map[string]string `json:"params"`
	Notify      bool              `json:"notify"`
	State       State             `json:"state"`
	Outcome     *Outcome          `json:"outcome"`
	Reason      Reason            `json:"reason"`
	Detail      json.RawMessage   `json:"detail"`

	// The instants go in as the database wants them.
	ScheduledAt time.Time `json:"-"`
	DueAt       time.Time `json:"-"`
	StartBy     time.Time `json:"-"` // zero: it never becomes missed by waiting

	EncodedScheduledAt any `json:"scheduled_at"`
	EncodedDueAt       any `json:"due_at"`
	EncodedStartBy     any `json:"start_by"`
	// EncodedEarlier is Overlap when it is a rule that the column overlap does not know.
	EncodedEarlier OverlapRule `json:"earlier"`
}

// pending is the part that all runs of a job share.
func (j *Job) pending(occurrence string, scheduled, due time.Time) NewRun {
	n := NewRun{
		Job: j.Name, Occurrence: occurrence, Attempt: 1, Resource: j.Resource.At(scheduled), Overlap: OverlapRule(j.Overlap),
		OnLost: j.OnLost, MaxAttempts: j.MaxAttempts(), Retry: j.Retry, Limits: j.Limits, State: StatePending,
		ScheduledAt: scheduled, DueAt: due,
	}
	n.OnlyOn, n.Follow, n.Notify = j.OnlyOn, j.Followed, j.Listened()
	n.Period, _ = j.Resource.Period(scheduled)
	if j.OncePer == OncePerResource {
		n.OncePer = OncePerResource
	}
	if j.Overlap == OverlapAllow {
		n.Resource = ownResource(n.Resource, occurrence)
	}
	if j.StartDeadline > 0 {
		n.StartBy = due.Add(j.StartDeadline)
	}
	return n
}

// ownResource is a name that only one occurrence locks: name@occurrence, or a hash in place of an occurrence with which it
// would be no valid name.
func ownResource(name, occurrence string) string {
	own := name + "@" + occurrence
	if resource.Validate(own) == nil {
		return own
	}
	sum := sha256.Sum256([]byte(own))
	suffix := "@" + hex.EncodeToString(sum[:16])
	for len(name)+len(suffix) > resource.MaxBytes {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return name + suffix
}

// ScheduledRun is the row of an occurrence that was planned in time.
func (j *Job) ScheduledRun(at time.Time) NewRun {
	n := j.pending(ScheduledOccurrence(at), at, j.DueAt(at))
	n.Trigger = TriggerSchedule
	return n
}

// CatchUpRun is the row of an occurrence that fell due while nobody planned and still runs: from now on, though not before
// it would have become due.
func (j *Job) CatchUpRun(at, now time.Time) NewRun {
	due := j.DueAt(at)
	if due.Before(now) {
		due = now
	}
	n := j.pending(ScheduledOccurrence(at), at, due)
	n.Trigger, n.Overlap = TriggerCatchUp, RuleWait
	return n
}

// EndedRun is the row of an occurrence that does not run: it is finished when it is planned.
func (j *Job) EndedRun(at time.Time, outcome Outcome, reason Reason, detail json.RawMessage) NewRun {
	n := j.pending(ScheduledOccurrence(at), at, at)
	n.Trigger, n.State = TriggerSchedule, StateFinished
	n.Outcome, n.Reason, n.Detail = &outcome, reason, detail
	return n
}

// ManualRun is the row of a manual trigger, due at once.
func ManualRun(r TriggerRequest, now time.Time) NewRun {
	n := r.Job.pending(ManualOccurrence(r.RequestID), now, now)
	n.Trigger, n.RequestedBy, n.Params = TriggerManual, r.RequestedBy, r.Params
	return n
}

// NextAttempt is the row that follows a run that was lost or drained: pending, or held for a person. ok is false when
// the policy or the number of attempts says that nothing follows.
func (r *Run) NextAttempt(now time.Time) (n NewRun, ok bool) {
	if r.CancelReason != "" || r.OnLost == OnLostFail || (r.OnLost == OnLostRetry && r.Attempt >= r.MaxAttempts) {
		return NewRun{}, false
	}
	n = r.another(TriggerRecovery, now)
	if r.OnLost == OnLostHold {
		n.State, n.StartBy = StateHeld, time.Time{}
	}
	return n, true
}

// RetryAttempt is the row that follows a run that failed or timed out, due when its policy says. ok is false when nothing
// follows.
func (r *Run) RetryAttempt(now time.Time) (n NewRun, ok bool) {
	if r.CancelReason != "" || r.Attempt >= r.Retry.Attempts {
		return NewRun{}, false
	}
	return r.another(TriggerRetry, now.Add(r.Retry.after(r.Job, r.Occurrence, r.Attempt))), true
}

// another is the next attempt at r's occurrence. An occurrence that has begun is not skipped any more, and replaces nobody:
// its further attempts wait for their turn.
func (r *Run) another(why Trigger, due time.Time) NewRun {
	n := NewRun{
		Job: r.Job, Occurrence: r.Occurrence, Attempt: r.Attempt + 1, Trigger: why, RequestedBy: r.RequestedBy,
		Resource: r.Resource, Overlap: RuleWait, OnLost: r.OnLost, MaxAttempts: r.MaxAttempts, Retry: r.Retry,
		OncePer: r.OncePer, Limits: r.Limits, OnlyOn: r.OnlyOn, Period: r.Period, Follow: r.Follow, Follows: r.Follows,
		Params: r.Params, Notify: r.Notify,
		State: StatePending, ScheduledAt: r.ScheduledAt, DueAt: due,
	}
	if r.Overlap == RuleAllow {
		n.Overlap = RuleAllow
	}
	if r.StartBy != nil {
		n.StartBy = due.Add(r.StartBy.Sub(r.DueAt))
	}
	return n
}
