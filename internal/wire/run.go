package wire

import (
	"encoding/json"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// Run is one attempt: a row of the ledger.
type Run struct {
	ID           int64             `json:"id"`
	Job          string            `json:"job"`
	Occurrence   string            `json:"occurrence"`
	ScheduledAt  time.Time         `json:"scheduled_at"`
	Attempt      int               `json:"attempt"`
	State        string            `json:"state"`
	Outcome      *string           `json:"outcome"`
	Reason       *string           `json:"reason"`
	Detail       json.RawMessage   `json:"detail"` // the facts behind the reason: an object
	Trigger      string            `json:"trigger"`
	Replica      *string           `json:"replica"`
	Resource     string            `json:"resource"`
	FencingToken *int64            `json:"fencing_token"`
	DueAt        time.Time         `json:"due_at"`
	StartedAt    *time.Time        `json:"started_at"`
	FinishedAt   *time.Time        `json:"finished_at"`
	ExitCode     *int              `json:"exit_code"`
	Signal       *string           `json:"signal"`
	RequestedBy  *string           `json:"requested_by"`
	Params       map[string]string `json:"params"` // never null
}

// RunOf is the run as the API shows it.
func RunOf(r *jobs.Run) Run {
	v := Run{
		ID: r.ID, Job: r.Job, Occurrence: r.Occurrence, ScheduledAt: r.ScheduledAt.UTC(), Attempt: r.Attempt,
		State: string(r.State), Outcome: OrNull(string(r.Outcome)), Reason: OrNull(string(r.Reason)), Detail: r.Detail,
		Trigger: string(r.Trigger), Replica: OrNull(r.Replica), Resource: r.Resource, FencingToken: OrNull(r.FencingToken),
		DueAt: r.DueAt.UTC(), StartedAt: UTCOrNull(r.StartedAt), FinishedAt: UTCOrNull(r.FinishedAt), ExitCode: r.ExitCode,
		Signal: OrNull(r.Signal), RequestedBy: OrNull(r.RequestedBy), Params: r.Params,
	}
	if v.Params == nil {
		v.Params = map[string]string{}
	}
	if len(v.Detail) == 0 {
		v.Detail = json.RawMessage("{}")
	}
	return v
}

// OrNull is nil for the zero value.
func OrNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// UTCOrNull is the instant in UTC.
func UTCOrNull(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}
