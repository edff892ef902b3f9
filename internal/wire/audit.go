package wire

import (
	"encoding/json"
	"time"

	"github.com/cronlatch/cronlatch/scheduler"
)

// AuditEntry is a row of the audit: what a person did, or something exceptional.
type AuditEntry struct {
	ID           int64           `json:"id"`
	At           time.Time       `json:"at"`
	Action       string          `json:"action"`
	Outcome      string          `json:"outcome"` // success, failure or unknown
	ActorType    string          `json:"actor_type"`
	ActorID      string          `json:"actor_id"`
	Job          *string         `json:"job"`
	RunID        *int64          `json:"run_id"`
	Resource     *string         `json:"resource"`
	Owner        *string         `json:"owner"`
	FencingToken *int64          `json:"fencing_token"`
	Replica      *string         `json:"replica"`
	Reason       *string         `json:"reason"`
	Detail       json.RawMessage `json:"detail"` // an object
}

// AuditPage is a page of the audit.
type AuditPage struct {
	Entries    []AuditEntry `json:"entries"`
	Now        time.Time    `json:"now"` // the database's clock before the page was read
	NextCursor string       `json:"next_cursor,omitempty"`
}

// AuditEntryOf is a row as the API shows it.
func AuditEntryOf(e *scheduler.AuditEntry) AuditEntry {
	v := AuditEntry{
		ID: e.ID, At: e.At.UTC(), Action: e.Action, Outcome: e.Outcome, ActorType: e.ActorType, ActorID: e.ActorID, Job: OrNull(e.Job),
		RunID: OrNull(e.RunID), Resource: OrNull(e.Resource), Owner: OrNull(e.Owner), FencingToken: OrNull(e.FencingToken),
		Replica: OrNull(e.Replica), Reason: OrNull(e.Reason), Detail: e.Detail,
	}
	if len(v.Detail) == 0 {
		v.Detail = json.RawMessage("{}")
	}
	return v
}
