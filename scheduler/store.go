package scheduler

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/internal/failpoint"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// queries is the SQL of one database; the texts are in postgres.go and sqlite.go.
type queries struct {
	now, look                                                 string
	addPositions, readPositions, lockPositions, movePositions string
	insertRuns                                                string
	ended, candidates, markRunning, endRuns, lost             string
	addTags, lockTags, countTags                              string // addTags and lockTags are empty where a transaction is the only writer
	done, addMarker                                           string
	followed, repeated, upstream, unmarkFollow                string
	replaced, askToEnd, cancelling                            string
	lateOutcome, byID, byOwner, storeOutput                   string
	join, beat, leave, lifetimes                              string
	replicas, askDrain, drainOf                               string
	holdPauses, lockPauses                                    string // empty where a transaction is the only writer
	pausesBetween, openPauses                                 string
	addPause, changePause, closePause, auditPause             string
	isJob, jobNames                                           string
	lockOverdue, overdue                                      string
	audit                                                     string
	addChunks, dropChunks, clearChunks                        string // dropChunks is empty where addChunks does it
}

// DB is an opened, migrated database (internal/database).
type DB = bun.DB

// store runs the transactions of the scheduler on one database.
type store struct {
	db *bun.DB
	q  *queries
	d  dialect.Name

	silence time.Duration // after which a replica that says nothing counts as gone
	nonce   string        // of the process that this is; "" is none of the replicas
	replica string        // its name
}

func openStore(db *bun.DB) (*store, error) {
	switch d := db.Dialect().Name(); d {
	case dialect.PG:
		failpoint.Statements(&postgresQueries, &postgresActions, &postgresNotify, &postgresOutbox, &postgresRetention, &postgresAudit, &postgresWaits)
		return &store{db: db, q: &postgresQueries, d: d, silence: locking.DefaultTTL}, nil
	case dialect.SQLite:
		failpoint.Statements(&sqliteQueries, &sqliteActions, &sqliteNotify, &sqliteOutbox, &sqliteRetention, &sqliteAudit, &sqliteWaits)
		return &store{db: db, q: &sqliteQueries, d: d, silence: locking.DefaultTTL}, nil
	default:
		return nil, fmt.Errorf("scheduler: no store for dialect %v", d)
	}
}

// tx runs f in one transaction; an error of f rolls it back.
func (s *store) tx(ctx context.Context, f func(tx bun.Tx) error) error {
	tx, err := s.db.BeginTx(failpoint.Step(ctx), nil)
	if err != nil {
		return fmt.Errorf("beginning a transaction: %w", err)
	}
	if err := f(tx); err != nil {
		if rerr := tx.Rollback(); rerr != nil && !errors.Is(rerr, sql.ErrTxDone) {
			return errors.Join(err, fmt.Errorf("rolling back: %w", rerr))
		}
		return err
	}
	if err := tx.Commit(); err != nil {
		return &commitError{err}
	}
	return nil
}

// commitError says that the answer to COMMIT did not come, or was an error: what became of the transaction is settled
// by reading, never assumed.
type commitError struct{ err error }

func (e *commitError) Error() string { return "committing: " + e.err.Error() }
func (e *commitError) Unwrap() error { return e.err }

// encode is a JSON document as an argument.
func encode(v any) string {
	doc, err := json.Marshal(v)
	if err != nil {
		// Only our own structs come here; they have no field that JSON cannot say.
		panic("scheduler: encoding an argument: " + err.Error())
	}
	return string(doc)
}

func (s *store) now(ctx context.Context, db bun.IDB) (time.Time, error) {
	var now dbtime.Time
	if err := db.NewRaw(s.q.now).Scan(ctx, &now); err != nil {
		return time.Time{}, fmt.Errorf("reading the database's clock: %w", err)
	}
	return now.Time, nil
}

// glance is what one cheap statement says about the ledger.
type glance struct {
	Now  dbtime.Time `bun:"now"`
	Due  bool        `bun:"due"`  // a pending run is due
	Lost bool        `bun:"lost"` // a running run has no live lock

	Follow bool `bun:"follow"` // nobody has looked yet what follows a run that has ended
	Notify bool `bun:"notify"` // nobody has looked yet who wants to hear of a run that has ended
	Drain  bool `bun:"drain"`  // somebody asked this process to take no more runs
}

func (s *store) look(ctx context.Context) (glance, error) {
	var g []glance
	if err := s.db.NewRaw(s.q.look, s.nonce).Scan(ctx, &g); err != nil {
		return glance{}, fmt.Errorf("looking at the ledger: %w", err)
	}
	if len(g) != 1 {
		return glance{}, fmt.Errorf("looking at the ledger: %d rows", len(g))
	}
	return g[0], nil
}

func (s *store) insertRuns(ctx context.Context, db bun.IDB, rows []jobs.NewRun) ([]jobs.Run, error) {
	var inserted []jobs.Run
	for i := range rows {
		rows[i].PlannedBy = s.replica
	}
	for len(rows) > 0 {
		n := min(len(rows), 1000)
		doc, err := jobs.EncodeRuns(s.d, rows[:n])
		if err != nil {
			return nil, fmt.Errorf("encoding new runs: %w", err)
		}
		got, err := jobs.ScanRuns(ctx, db.NewRaw(s.q.insertRuns, doc))
		if err != nil {
			return nil, fmt.Errorf("inserting runs: %w", err)
		}
		inserted, rows = append(inserted, got...), rows[n:]
	}
	return inserted, nil
}

// ending is how one run ends, as the endRuns statement takes it.
type ending struct {
	ID        int64      `json:"id"`
	FromState jobs.State `json:"from_state"`
	// FencingToken must still be the run's; 0 for a run that never had one.
	FencingToken int64           `json:"fencing_token"`
	Outcome      jobs.Outcome    `json:"outcome"`
	Reason       jobs.Reason     `json:"reason"`
	Detail       json.RawMessage `json:"detail"`
	ExitCode     *int            `json:"exit_code"`
	Signal       string          `json:"signal"`
	// Renewals are those of the run's lock, and LeastLeft the least time in milliseconds that one left to spare; nil where
	// whoever ends the run did not hold it.
	Renewals  *int   `json:"renewals"`
	LeastLeft *int64 `json:"least_left_ms"`
}

// end finishes runs; those that are no longer as the ending expects are left out of the result.
func (s *store) end(ctx context.Context, db bun.IDB, endings []ending) ([]jobs.Run, error) {
	if len(endings) == 0 {
		return nil, nil
	}
	for i := range endings {
		if endings[i].Detail == nil {
			endings[i].Detail = json.RawMessage("{}")
		}
	}
	runs, err := jobs.ScanRuns(ctx, db.NewRaw(s.q.endRuns, encode(endings)))
	if err != nil {
		return nil, fmt.Errorf("finishing runs: %w", err)
	}
	return runs, nil
}

// auditRow is an exceptional event that the database keeps beside the audit's lines.
type auditRow struct {
	Action       string          `json:"action"`
	Outcome      string          `json:"outcome"`
	Job          string          `json:"job"`
	RunID        int64           `json:"run_id"`
	Resource     string          `json:"resource"`
	Owner        string          `json:"owner"`
	FencingToken int64           `json:"fencing_token"`
	Replica      string          `json:"replica"`
	Reason       string          `json:"reason"`
	Detail       json.RawMessage `json:"detail"`
}

func (s *store) audit(ctx context.Context, db bun.IDB, rows []auditRow) error {
	if len(rows) == 0 {
		return nil
	}
	for i := range rows {
		if rows[i].Detail == nil {
			rows[i].Detail = json.RawMessage("{}")
		}
	}
	if _, err := db.NewRaw(s.q.audit, encode(rows)).Exec(ctx); err != nil {
		return fmt.Errorf("writing audit rows: %w", err)
	}
	return nil
}
