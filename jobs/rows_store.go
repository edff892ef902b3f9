package jobs

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/cronlatch/cronlatch/internal/dbtime"
)

// RunColumns are the columns that ScanRuns reads, of the table or alias r.
const RunColumns = `r.id, r.job, r.occurrence, r.attempt, r.trigger, r.requested_by, r.scheduled_at, r.due_at, r.start_by,
	r.resource, r.overlap, r.on_lost, r.max_attempts, r.state, r.outcome, r.reason, r.detail, r.replica, r.owner,
	r.fencing_token, r.created_at, r.started_at, r.finished_at, r.exit_code, r.signal, r.late_outcome,
	r.retry, r.earlier, r.once_per, r.limits, r.cancel_reason, r.cancel_detail,
	r.follow, r.period, r.follows, r.only_on, r.params, r.notify`

// document scans a JSON column, which one driver gives as text and the other as bytes.
type document json.RawMessage

func (d *document) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*d = nil
	case string:
		*d = document(v)
	case []byte:
		*d = append(document(nil), v...)
	default:
		return fmt.Errorf("jobs: scanning a JSON column from a %T", src)
	}
	return nil
}

type runRow struct {
	ID           int64       `bun:"id"`
	Job          string      `bun:"job"`
	Occurrence   string      `bun:"occurrence"`
	Attempt      int         `bun:"attempt"`
	Trigger      string      `bun:"trigger"`
	RequestedBy  string      `bun:"requested_by"`
	ScheduledAt  dbtime.Time `bun:"scheduled_at"`
	DueAt        dbtime.Time `bun:"due_at"`
	StartBy      dbtime.Time `bun:"start_by"`
	Resource     string      `bun:"resource"`
	Overlap      string      `bun:"overlap"`
	OnLost       string      `bun:"on_lost"`
	MaxAttempts  int         `bun:"max_attempts"`
	State        string      `bun:"state"`
	Outcome      *string     `bun:"outcome"`
	Reason       string      `bun:"reason"`
	Detail       document    `bun:"detail"`
	Replica      string      `bun:"replica"`
	Owner        string      `bun:"owner"`
	FencingToken *int64      `bun:"fencing_token"`
	CreatedAt    dbtime.Time `bun:"created_at"`
	StartedAt    dbtime.Time `bun:"started_at"`
	FinishedAt   dbtime.Time `bun:"finished_at"`
	ExitCode     *int        `bun:"exit_code"`
	Signal       string      `bun:"signal"`
	LateOutcome  document    `bun:"late_outcome"`
	Retry        document    `bun:"retry"`
	Earlier      string      `bun:"earlier"`
	OncePer      string      `bun:"once_per"`
	Limits       document    `bun:"limits"`
	CancelReason string      `bun:"cancel_reason"`
	CancelDetail document    `bun:"cancel_detail"`
	Follow       bool        `bun:"follow"`
	Period       string      `bun:"period"`
	Follows      document    `bun:"follows"`
	OnlyOn       document    `bun:"only_on"`
	Params       document    `bun:"params"`
	Notify       bool        `bun:"notify"`
}

// ScanRuns runs a query that selects (or returns) RunColumns.
func ScanRuns(ctx context.Context, q *bun.RawQuery) ([]Run, error) {
	var rows []runRow
	if err := q.Scan(ctx, &rows); err != nil {
		return nil, err
	}
	runs := make([]Run, len(rows))
	for i := range rows {
		runs[i] = rows[i].run()
		if err := rows[i].policies(&runs[i]); err != nil {
			return nil, fmt.Errorf("run %d: %w", rows[i].ID, err)
		}
	}
	return runs, nil
}

// policies reads the documents among the columns.
func (r *runRow) policies(into *Run) error {
	if string(r.Retry) != emptyDocument {
		if err := json.Unmarshal(r.Retry, &into.Retry); err != nil {
			return err //nolint:wrapcheck // our own UnmarshalJSON says what it read
		}
	}
	if string(r.Limits) != emptyDocument { // else nil, as in a job without limits
		if err := json.Unmarshal(r.Limits, &into.Limits); err != nil {
			return fmt.Errorf("reading limits: %w", err)
		}
	}
	if string(r.OnlyOn) != emptyDocument {
		if err := json.Unmarshal(r.OnlyOn, &into.OnlyOn); err != nil {
			return fmt.Errorf("reading only_on: %w", err)
		}
	}
	if string(r.Params) != emptyDocument {
		if err := json.Unmarshal(r.Params, &into.Params); err != nil {
			return fmt.Errorf("reading params: %w", err)
		}
	}
	if string(r.Follows) != emptyDocument {
		if err := json.Unmarshal(r.Follows, &into.Follows); err != nil {
			return fmt.Errorf("reading follows: %w", err)
		}
		if into.Trigger == TriggerSchedule {
			into.Trigger = into.Follows.Kind
		}
	}
	return nil
}

const emptyDocument = "{}"

func (r *runRow) run() Run {
	run := Run{
		ID: r.ID, Job: r.Job, Occurrence: r.Occurrence, Attempt: r.Attempt, Trigger: Trigger(r.Trigger),
		RequestedBy: r.RequestedBy, ScheduledAt: r.ScheduledAt.Time, DueAt: r.DueAt.Time, StartBy: r.StartBy.Ptr(),
		Resource: r.Resource, Overlap: OverlapRule(r.Overlap), OnLost: OnLost(r.OnLost), MaxAttempts: r.MaxAttempts,
		State: State(r.State), Reason: Reason(r.Reason), Detail: json.RawMessage(r.Detail), Replica: r.Replica,
		Owner: r.Owner, CreatedAt: r.CreatedAt.Time, StartedAt: r.StartedAt.Ptr(), FinishedAt: r.FinishedAt.Ptr(),
		ExitCode: r.ExitCode, Signal: r.Signal, LateOutcome: json.RawMessage(r.LateOutcome), OncePer: OncePer(r.OncePer),
		CancelReason: Reason(r.CancelReason), CancelDetail: json.RawMessage(r.CancelDetail),
		Follow: r.Follow, Notify: r.Notify, Period: r.Period,
	}
	if r.Earlier != "" {
		run.Overlap = OverlapRule(r.Earlier)
	}
	if r.Outcome != nil {
		run.Outcome = Outcome(*r.Outcome)
	}
	if r.FencingToken != nil {
		run.FencingToken = *r.FencingToken
	}
	return run
}

func (n NewRun) encode(d dialect.Name) NewRun {
	n.EncodedScheduledAt = dbtime.Arg(d, n.ScheduledAt)
	n.EncodedDueAt = dbtime.Arg(d, n.DueAt)
	n.EncodedStartBy = dbtime.Arg(d, n.StartBy)
	if n.Detail == nil {
		n.Detail = json.RawMessage(emptyDocument)
	}
	if n.Limits == nil {
		n.Limits = map[string]int{}
	}
	if n.Params == nil {
		n.Params = map[string]string{}
	}
	if n.OnlyOn == nil {
		n.OnlyOn = Labels{}
	}
	if n.Trigger == n.Follows.Kind {
		// Replicas of the version before know only their own triggers.
		n.Trigger = TriggerSchedule
	}
	if n.Overlap == RuleReplace || n.Overlap == RuleAllow {
		// Replicas of the version before know the column overlap, and let such a run wait.
		n.Overlap, n.EncodedEarlier = RuleWait, n.Overlap
	}
	return n
}

// EncodeRuns is the JSON array of new rows for a statement of the given database.
func EncodeRuns(d dialect.Name, rows []NewRun) (string, error) {
	encoded := make([]NewRun, len(rows))
	for i, r := range rows {
		encoded[i] = r.encode(d)
	}
	doc, err := json.Marshal(encoded)
	return string(doc), err
}
