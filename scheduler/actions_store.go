package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/jobs"
)

// Actions are what people do with runs: start, cancel, retry, backfill. Each is one transaction, with a row of the audit in it
// that says who. It works on a migrated database, beside any number of replicas: whatever it leaves behind, they find at
// their next look.
type Actions struct {
	s       *store
	q       *actionQueries
	observe []Observer
}

// actionQueries is the SQL of one database; the texts are in postgres_actions.go and sqlite_actions.go.
type actionQueries struct {
	lockJob               string // job; empty where a transaction is the only writer
	lockRun               string // id
	first, last           string // job, occurrence
	inTheWay              string // job
	release               string // id
	lastAttempts, markers string // job, a JSON array
	audit                 string // action, who, job, run or NULL, resource, reason, detail
}

// OpenActions returns the actions on a migrated database. What they end is told to the observers, which are those of the
// scheduler of this process: so each run is counted where it ended, whatever has ended it.
func OpenActions(db *DB, observe ...Observer) (*Actions, error) {
	s, err := openStore(db)
	if err != nil {
		return nil, err
	}
	if s.d == dialect.SQLite {
		return &Actions{s, &sqliteActions, observe}, nil
	}
	return &Actions{s, &postgresActions, observe}, nil
}

// lock makes the actions on one job wait for each other, so that each sees what the one before it has left.
func (a *Actions) lock(ctx context.Context, tx bun.Tx, job string) error {
	if a.q.lockJob == "" {
		return nil
	}
	if _, err := tx.NewRaw(a.q.lockJob, job).Exec(ctx); err != nil {
		return fmt.Errorf("waiting for other actions on the job: %w", err)
	}
	return nil
}

// one reads at most one run; nil is none.
func (a *Actions) one(ctx context.Context, tx bun.Tx, query string, args ...any) (*jobs.Run, error) {
	runs, err := jobs.ScanRuns(ctx, tx.NewRaw(query, args...))
	if err != nil {
		return nil, fmt.Errorf("reading a run: %w", err)
	}
	if len(runs) == 0 {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	return &runs[0], nil
}

// lockRun is the run with the lock of its row, else jobs.ErrRunNotFound.
func (a *Actions) lockRun(ctx context.Context, tx bun.Tx, id int64) (*jobs.Run, error) {
	run, err := a.one(ctx, tx, a.q.lockRun, id)
	if err == nil && run == nil {
		return nil, jobs.ErrRunNotFound
	}
	return run, err
}

// insert adds one run; nil says that another transaction has added it.
func (a *Actions) insert(ctx context.Context, tx bun.Tx, n jobs.NewRun) (*jobs.Run, error) {
	rows, err := a.s.insertRuns(ctx, tx, []jobs.NewRun{n})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// deed is what somebody did, for the audit.
type deed struct {
	action   audit.Action
	by       string
	job      string
	run      int64 // 0 is none
	resource string
	reason   string
	facts    map[string]any
}

func (a *Actions) audit(ctx context.Context, tx bun.Tx, d deed) error {
	var run any
	if d.run != 0 {
		run = d.run
	}
	_, err := tx.NewRaw(a.q.audit, string(d.action), d.by, d.job, run, d.resource, d.reason, string(detail(d.facts))).Exec(ctx)
	if err != nil {
		return fmt.Errorf("writing an audit row: %w", err)
	}
	return nil
}

// lastAttempt is how far an occurrence has come.
type lastAttempt struct {
	Occurrence string        `bun:"occurrence"`
	ID         int64         `bun:"id"`
	Attempt    int           `bun:"attempt"`
	State      jobs.State    `bun:"state"`
	Outcome    *jobs.Outcome `bun:"outcome"`
}

// marker is a success that once_per counts.
type marker struct {
	Resource string `bun:"resource"`
	RunID    int64  `bun:"run_id"`
}

// attempted are the last attempts at occurrences of a job, and the markers of resources, by occurrence and resource.
func (a *Actions) attempted(ctx context.Context, tx bun.Tx, j *jobs.Job, at []time.Time) (map[string]lastAttempt, map[string]int64, error) {
	occurrences, resources := make([]string, len(at)), make([]string, len(at))
	for i := range at {
		occurrences[i], resources[i] = jobs.ScheduledOccurrence(at[i]), j.Resource.At(at[i])
	}
	var rows []lastAttempt
	if err := tx.NewRaw(a.q.lastAttempts, j.Name, encode(occurrences)).Scan(ctx, &rows); err != nil {
		return nil, nil, fmt.Errorf("reading what was attempted: %w", err)
	}
	last := make(map[string]lastAttempt, len(rows))
	for _, row := range rows {
		last[row.Occurrence] = row
	}
	done := map[string]int64{}
	if j.OncePer != jobs.OncePerResource {
		return last, done, nil
	}
	var found []marker
	if err := tx.NewRaw(a.q.markers, j.Name, encode(resources)).Scan(ctx, &found); err != nil {
		return nil, nil, fmt.Errorf("reading what is done: %w", err)
	}
	for _, m := range found {
		done[m.Resource] = m.RunID
	}
	return last, done, nil
}
