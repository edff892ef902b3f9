package wire

import "time"

// RunPage is a page of the list of runs.
type RunPage struct {
	Runs       []Run  `json:"runs"`                  // never null
	NextCursor string `json:"next_cursor,omitempty"` // "" on the last page
}

// Start is the request for a manual run.
type Start struct {
	Params    map[string]string `json:"params,omitempty"`
	RequestID string            `json:"request_id,omitempty"`
	Reason    string            `json:"reason,omitempty"`
}

// Cancel is the request to cancel a run.
type Cancel struct {
	Reason string `json:"reason,omitempty"`
}

// Retry is the request for another attempt.
type Retry struct {
	Reason string `json:"reason,omitempty"`
	Force  bool   `json:"force,omitempty"`
}

// Backfill is the request for the occurrences of a span.
type Backfill struct {
	From        time.Time         `json:"from"`
	Until       time.Time         `json:"until"`
	Params      map[string]string `json:"params,omitempty"`
	Concurrency int               `json:"concurrency,omitempty"`
	Force       bool              `json:"force,omitempty"`
	Preview     bool              `json:"preview,omitempty"`
	Reason      string            `json:"reason,omitempty"`
}

// What a backfill does with an instant.
const (
	BackfillRun  = "run"
	BackfillSkip = "skip"
)

// Backfilled is what a backfill does, or with a preview would do.
type Backfilled struct {
	Job      string         `json:"job"`
	Preview  bool           `json:"preview"`
	Runs     int            `json:"runs"`
	Skipped  int            `json:"skipped"`
	Instants []BackfillItem `json:"instants"` // never null
}

// BackfillItem is one instant of a backfill.
type BackfillItem struct {
	ScheduledAt time.Time `json:"scheduled_at"`
	Resource    string    `json:"resource"`
	Action      string    `json:"action"` // run or skip
	Why         *string   `json:"why"`    // it is left out: already_succeeded, unfinished, once_per
	RunID       *int64    `json:"run_id"` // the new run, or the one that is the reason
}
