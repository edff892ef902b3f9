package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/cronlatch/cronlatch/internal/dbtime"
)

// AuditEntry is a row of audit_log: what a person did, or something exceptional.
type AuditEntry struct {
	ID           int64
	At           time.Time // the database's clock when the row was written; its transaction may have ended later
	Action       string
	Outcome      string
	ActorType    string
	ActorID      string
	Job          string
	RunID        int64 // 0 is none, like every zero value below
	Resource     string
	Owner        string
	FencingToken int64
	Replica      string
	Reason       string
	Detail       json.RawMessage
}

// AuditCursor is a place in the list.
type AuditCursor struct {
	At time.Time
	ID int64
}

const (
	defaultAuditLimit = 50
	maxAuditLimit     = 1001 // a page and the row that tells that there is another one
)

// AuditLog reads audit_log, and adds to it what no other transaction writes.
type AuditLog struct {
	db *bun.DB
	q  *auditQueries
	d  dialect.Name
}

// auditQueries is the SQL of one database; the texts are in postgres_audit.go and sqlite_audit.go.
type auditQueries struct {
	now  string
	list string // ?0 from, ?1 to, ?2 and ?3 the cursor, ?4 limit, and for %s the conditions with their arguments
	add  string // the columns but id and at, in their order

	texts string // the table t (value) of a JSON array of texts
	place string // the function that finds a text in another one, 0 for not at all
}

// OpenAuditLog returns the audit log of a migrated database.
func OpenAuditLog(db *DB) (*AuditLog, error) {
	q, err := auditQueriesOf(db)
	if err != nil {
		return nil, err
	}
	return &AuditLog{db, q, db.Dialect().Name()}, nil
}

func auditQueriesOf(db bun.IDB) (*auditQueries, error) {
	switch name := db.Dialect().Name(); name {
	case dialect.PG:
		return &postgresAudit, nil
	case dialect.SQLite:
		return &sqliteAudit, nil
	default:
		return nil, fmt.Errorf("scheduler: no audit log for dialect %v", name)
	}
}

type auditLine struct {
	ID           int64       `bun:"id"`
	At           dbtime.Time `bun:"at"`
	Action       string      `bun:"action"`
	Outcome      string      `bun:"outcome"`
	ActorType    string      `bun:"actor_type"`
	ActorID      string      `bun:"actor_id"`
	Job          string      `bun:"job"`
	RunID        *int64      `bun:"run_id"`
	Resource     string      `bun:"resource"`
	Owner        string      `bun:"owner"`
	FencingToken *int64      `bun:"fencing_token"`
	Replica      string      `bun:"replica"`
	Reason       string      `bun:"reason"`
	Detail       rawText     `bun:"detail"`
}

func (r *auditLine) entry() AuditEntry {
	e := AuditEntry{
		ID: r.ID, At: r.At.Time, Action: r.Action, Outcome: r.Outcome, ActorType: r.ActorType, ActorID: r.ActorID, Job: r.Job,
		Resource: r.Resource, Owner: r.Owner, Replica: r.Replica, Reason: r.Reason, Detail: json.RawMessage(r.Detail),
	}
	if r.RunID != nil {
		e.RunID = *r.RunID
	}
	if r.FencingToken != nil {
		e.FencingToken = *r.FencingToken
	}
	return e
}

// List returns rows, the newest first, of one instant the highest id, and the database's clock from before they were read.
func (l *AuditLog) List(ctx context.Context, f AuditFilter) (entries []AuditEntry, now time.Time, err error) {
	var clock dbtime.Time
	if err := l.db.NewRaw(l.q.now).Scan(ctx, &clock); err != nil {
		return nil, time.Time{}, fmt.Errorf("reading the database's clock: %w", err)
	}
	where, args, err := l.where(&f, l.span(&f, clock.Time))
	if err != nil {
		return nil, time.Time{}, err
	}
	var rows []auditLine
	err = l.db.NewRaw(fmt.Sprintf(l.q.list, where), args...).Scan(ctx, &rows)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("reading the audit log: %w", err)
	}
	for i := range rows {
		entries = append(entries, rows[i].entry())
	}
	return entries, clock.Time, nil
}

// Add writes a row about something that the database did not do itself; ID and At are the database's.
func (l *AuditLog) Add(ctx context.Context, e *AuditEntry) error { return addAudit(ctx, l.db, e) }

func addAudit(ctx context.Context, db bun.IDB, e *AuditEntry) error {
	q, err := auditQueriesOf(db)
	if err != nil {
		return err
	}
	facts := string(e.Detail)
	if facts == "" {
		facts = "{}"
	}
	_, err = db.NewRaw(q.add, e.Action, e.Outcome, e.ActorType, e.ActorID, e.Job, orNull(e.RunID), e.Resource, e.Owner,
		orNull(e.FencingToken), e.Replica, e.Reason, facts).Exec(ctx)
	if err != nil {
		return fmt.Errorf("writing an audit row: %w", err)
	}
	return nil
}

func orNull(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}
