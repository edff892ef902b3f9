package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/cronlatch/cronlatch/internal/dbtime"
)

// ErrRunNotFound says that the ledger has no run with this id.
var ErrRunNotFound = errors.New("jobs: no such run")

// Ledger reads the runs of a database and inserts manual ones. It works on a *bun.DB and inside a bun.Tx alike.
// What plans, claims and finishes runs is in package scheduler.
type Ledger struct {
	db bun.IDB
	q  *ledgerQueries
}

// ledgerQueries is the SQL of one database; the texts are in postgres.go and sqlite.go.
type ledgerQueries struct {
	list    string // filter as JSON
	get     string // id
	trigger string // the row as JSON
	byKey   string // job, occurrence
	output  string // run id
}

// OpenLedger returns the ledger of a migrated database.
func OpenLedger(db bun.IDB) (*Ledger, error) {
	switch name := db.Dialect().Name(); name {
	case dialect.PG:
		return &Ledger{db, &postgresLedger}, nil
	case dialect.SQLite:
		return &Ledger{db, &sqliteLedger}, nil
	default:
		return nil, fmt.Errorf("jobs: no ledger for dialect %v", name)
	}
}

// RunFilter selects runs; the zero value selects the newest 50.
type RunFilter struct {
	Job     string
	State   State
	Outcome Outcome
	Since   time.Time // runs scheduled at or after it; zero is all
	Limit   int       // 0 is 50; at most 10,000
}

const (
	defaultRunLimit = 50
	maxRunLimit     = 10_000
)

// List returns runs, the newest scheduled instant first.
func (l *Ledger) List(ctx context.Context, f RunFilter) ([]Run, error) {
	limit := f.Limit
	if limit <= 0 {
		limit = defaultRunLimit
	}
	filter, err := json.Marshal(map[string]any{
		"job": f.Job, "state": f.State, "outcome": f.Outcome,
		"since": dbtime.Arg(l.db.Dialect().Name(), f.Since),
	})
	if err != nil {
		return nil, fmt.Errorf("encoding a run filter: %w", err)
	}
	runs, err := ScanRuns(ctx, l.db.NewRaw(l.q.list, string(filter), min(limit, maxRunLimit)))
	if err != nil {
		return nil, fmt.Errorf("listing runs: %w", err)
	}
	return runs, nil
}

// Get returns one run, else ErrRunNotFound.
func (l *Ledger) Get(ctx context.Context, id int64) (Run, error) {
	return l.one(ctx, "reading a run", l.db.NewRaw(l.q.get, id))
}

func (l *Ledger) one(ctx context.Context, what string, q *bun.RawQuery) (Run, error) {
	runs, err := ScanRuns(ctx, q)
	switch {
	case err != nil:
		return Run{}, fmt.Errorf("%s: %w", what, err)
	case len(runs) == 0:
		return Run{}, ErrRunNotFound
	default:
		return runs[0], nil
	}
}

// TriggerRequest asks for a manual run.
type TriggerRequest struct {
	Job         *Job
	RequestID   string // the caller's idempotency key: asking again with it returns the first run
	RequestedBy string // who asks, for the ledger and the audit
}

// Trigger inserts a pending manual run that is due at once, and returns it. Any replica that knows the job and has
// room claims it.
func (l *Ledger) Trigger(ctx context.Context, r TriggerRequest) (Run, error) {
	now, err := l.now(ctx)
	if err != nil {
		return Run{}, err
	}
	row, err := json.Marshal([]NewRun{ManualRun(r, now).encode(l.db.Dialect().Name())})
	if err != nil {
		return Run{}, fmt.Errorf("encoding a manual run: %w", err)
	}
	if _, err := l.db.NewRaw(l.q.trigger, string(row)).Exec(ctx); err != nil {
		return Run{}, fmt.Errorf("inserting a manual run: %w", err)
	}
	return l.one(ctx, "reading the manual run", l.db.NewRaw(l.q.byKey, r.Job.Name, ManualOccurrence(r.RequestID)))
}

func (l *Ledger) now(ctx context.Context) (time.Time, error) {
	var now dbtime.Time
	query := postgresNow
	if l.db.Dialect().Name() == dialect.SQLite {
		query = sqliteNow
	}
	if err := l.db.NewRaw("SELECT "+query).Scan(ctx, &now); err != nil {
		return time.Time{}, fmt.Errorf("reading the database's clock: %w", err)
	}
	return now.Time, nil
}

// Output is what a run printed: the first and the last bytes of it. Total > len(Head)+len(Tail) says that the middle
// was dropped.
type Output struct {
	Head  []byte `bun:"head"`
	Tail  []byte `bun:"tail"`
	Total int64  `bun:"total_bytes"`
}

// Output returns the stored output of a run; the zero Output when nothing was stored.
func (l *Ledger) Output(ctx context.Context, runID int64) (Output, error) {
	var out []Output
	if err := l.db.NewRaw(l.q.output, runID).Scan(ctx, &out); err != nil {
		return Output{}, fmt.Errorf("reading a run's output: %w", err)
	}
	if len(out) == 0 {
		return Output{}, nil
	}
	return out[0], nil
}
