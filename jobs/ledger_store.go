package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/cronlatch/cronlatch/internal/dbtime"
)

// ErrRunNotFound says that the ledger has no run with this id.
var ErrRunNotFound = errors.New("jobs: no such run")

// Ledger reads the runs of a database. It works on a *bun.DB and inside a bun.Tx alike. What writes runs is in package
// scheduler.
type Ledger struct {
	db bun.IDB
	q  *ledgerQueries
}

// ledgerQueries is the SQL of one database; the texts are in postgres.go and sqlite.go.
type ledgerQueries struct {
	list   string // ?0 filter as JSON, ?1 the only job or "", ?2 from, ?3 to, ?4 and ?5 the cursor, ?6 limit
	get    string // id
	output string // run id
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

const (
	defaultRunLimit = 50
	maxRunLimit     = 10_000
)

// List returns runs, the newest scheduled instant first, of one instant the newest id.
func (l *Ledger) List(ctx context.Context, f RunFilter) ([]Run, error) {
	limit := f.Limit
	if limit <= 0 {
		limit = defaultRunLimit
	}
	b, err := l.bounds(ctx, &f)
	if err != nil {
		return nil, err
	}
	filter, job := f.document()
	doc, err := json.Marshal(filter)
	if err != nil {
		return nil, fmt.Errorf("encoding a run filter: %w", err)
	}
	runs, err := ScanRuns(ctx, l.db.NewRaw(l.q.list, string(doc), job, b.from, b.to, b.at, b.id, min(limit, maxRunLimit)))
	if err != nil {
		return nil, fmt.Errorf("listing runs: %w", err)
	}
	return runs, nil
}

// runBounds are the bounds of a list as arguments of its statement; each is always there, so that an index serves them.
type runBounds struct {
	from, to any
	at       any // of the cursor
	id       int64
}

func (l *Ledger) bounds(ctx context.Context, f *RunFilter) (b runBounds, err error) {
	since, until := f.Since, f.Until
	if f.SinceAgo > 0 || f.UntilAgo > 0 {
		now, err := l.now(ctx)
		if err != nil {
			return b, err
		}
		if from := now.Add(-f.SinceAgo); f.SinceAgo > 0 && from.After(since) {
			since = from
		}
		if to := now.Add(-f.UntilAgo); f.UntilAgo > 0 && (until.IsZero() || to.Before(until)) {
			until = to
		}
	}
	last := endOfTime()
	b.at, b.id = dbtime.Arg(l.db.Dialect().Name(), last), math.MaxInt64
	if after := f.After; !after.ScheduledAt.IsZero() {
		b.at, b.id = dbtime.Arg(l.db.Dialect().Name(), after.ScheduledAt), after.ID
		last = after.ScheduledAt
	}
	if since.IsZero() {
		since = time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC)
	}
	if until.IsZero() || until.After(last) {
		until = last
	}
	b.from, b.to = dbtime.Arg(l.db.Dialect().Name(), since), dbtime.Arg(l.db.Dialect().Name(), until)
	return b, nil
}

// endOfTime is later than every run.
func endOfTime() time.Time { return time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC) }

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
	RequestID   string            // the caller's idempotency key: asking again with it returns the first run
	RequestedBy string            // who asks, for the ledger and the audit
	Params      map[string]string // as Job.CheckParams returned them; nil is none
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
