package scheduler

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/internal/explain"
	"github.com/cronlatch/cronlatch/jobs"
)

// ExplainRequest asks why something ran, did not run, or will.
type ExplainRequest struct {
	RunID int64  // a run; 0 is a job
	Job   string // its last occurrence that fell due, or the one that is unfinished now
	At    string // of the job: the occurrence at that instant, else the last one before it; see ParseAt. "" is now

	Known   []*jobs.Job   // as they are defined where the question is asked, after jobs.Link
	History jobs.History  // how long runs of jobs that say nothing are kept; zero is DefaultHistory
	Silence time.Duration // after which a replica that says nothing counts as gone; 0 is the default
}

// ErrNoJob says that a job is neither defined here nor has anybody ever planned it.
var ErrNoJob = errors.New("scheduler: no such job")

// Explain reads everything that belongs to the answer as it was at one moment, and tells it. It changes nothing. It answers
// jobs.ErrRunNotFound, ErrNoJob or a *AtError.
func Explain(ctx context.Context, db *DB, r ExplainRequest) (story *explain.Story, err error) {
	s, err := openStore(db)
	if err != nil {
		return nil, err
	}
	e := &explaining{store: s, q: &postgresExplain, r: &r}
	if s.d == dialect.SQLite {
		e.q = &sqliteExplain
	}
	if r.Silence > 0 {
		s.silence = r.Silence
	}
	err = db.RunInTx(ctx, readOnly(s.d), func(ctx context.Context, tx bun.Tx) error {
		e.tx = tx
		e.f = explain.Facts{Job: r.Job, Related: map[int64]jobs.Run{}, Kept: map[int64]explain.Kept{}, Used: map[string]int{}}
		return e.read(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("explaining: %w", err)
	}
	return explain.Tell(&e.f), nil
}

// readOnly is a transaction that sees one state of the database, and changes nothing.
func readOnly(d dialect.Name) *sql.TxOptions {
	if d == dialect.SQLite { // every transaction sees one state there
		return &sql.TxOptions{ReadOnly: true}
	}
	return &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead}
}

// explainQueries are the statements that differ between the databases.
type explainQueries struct {
	byIDs string // a JSON array
	audit string // from, a JSON array of ids
	kept  string // a JSON array of ids
}

// What reads the same on both databases.
const (
	explainRuns  = `SELECT ` + jobs.RunColumns + ` FROM job_runs AS r `
	explainAudit = `SELECT id, at, action, outcome, actor_type, actor_id, job, run_id, resource, owner, fencing_token, replica, reason,
		detail
FROM audit_log `

	explainKept = `SELECT id, planned_by, renewals, least_left_ms FROM job_runs `

	explainOccurrence = explainRuns + `WHERE r.job = ? AND r.occurrence = ? ORDER BY r.attempt DESC LIMIT 50`
	explainUnfinished = explainRuns + `WHERE r.job = ? AND r.state <> 'finished' ORDER BY r.scheduled_at, r.id LIMIT 20`
	explainBefore     = explainRuns + `WHERE r.job = ? AND r.scheduled_at <= ? ORDER BY r.scheduled_at DESC, r.id DESC LIMIT 1`
	explainOldest     = explainRuns + `WHERE r.job = ? ORDER BY r.scheduled_at, r.id LIMIT 1`
	explainBeside     = explainRuns + `WHERE r.job = ? AND r.scheduled_at BETWEEN ? AND ? AND r.started_at < ?
	AND (r.finished_at IS NULL OR r.finished_at > ?) ORDER BY r.started_at DESC, r.id DESC LIMIT 3`
	explainSummaries = explainRuns + `WHERE r.job = ? AND r.scheduled_at <= ? AND r.outcome IN ('missed', 'skipped')
	AND r.detail->>'missed_until' IS NOT NULL ORDER BY r.scheduled_at DESC, r.id DESC LIMIT 10`

	explainNewer     = `SELECT count(*) FROM job_runs WHERE job = ? AND scheduled_at > ?`
	explainPositions = `SELECT job, schedule_hash, position FROM plan_positions WHERE job = ? ORDER BY position DESC LIMIT 20`
	explainSeen      = `SELECT max(seen_at) AS seen_at FROM replicas`
	explainDone      = `SELECT run_id FROM resource_markers WHERE job = ? AND resource = ?`
)

// besideDays bounds how far back a run is looked for that another one waited for.
const besideDays = 7 * 24 * time.Hour

// explaining is one answer on its way.
type explaining struct {
	*store

	tx bun.Tx
	q  *explainQueries
	r  *ExplainRequest
	f  explain.Facts
}

func (e *explaining) read(ctx context.Context) (err error) {
	if e.f.Now, err = e.now(ctx, e.tx); err != nil {
		return err
	}
	e.f.Question.RunID = e.r.RunID
	if err := e.choose(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{
		e.occurrence, e.kept, e.waits, e.neighbours, e.related, e.streams, e.fleet, e.locks, e.plans, e.behind, e.deeds,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// define finds the job's definition among those that are known.
func (e *explaining) define() {
	i := slices.IndexFunc(e.r.Known, func(j *jobs.Job) bool { return j.Name == e.f.Job })
	if i >= 0 {
		e.f.Definition = e.r.Known[i]
	}
	e.f.History = (&Keeping{Default: e.r.History}).of(e.f.Definition)
}

// choose finds the run or the instant that is told of.
func (e *explaining) choose(ctx context.Context) (err error) {
	if e.r.RunID != 0 {
		if e.f.Run, err = e.one(ctx, e.store.q.byID, e.r.RunID); err != nil {
			return err
		}
		if e.f.Run == nil {
			return jobs.ErrRunNotFound
		}
		e.f.Job = e.f.Run.Job
	}
	e.define()
	if e.f.Unfinished, err = e.runs(ctx, explainUnfinished, e.f.Job); err != nil {
		return err
	}
	if e.f.Newest, err = e.one(ctx, explainBefore, e.f.Job, e.arg(e.f.Now)); err != nil {
		return err
	}
	switch {
	case e.r.RunID != 0:
		return nil
	case e.r.At != "":
		return e.chooseAt(ctx)
	}
	e.f.Run = e.f.Newest
	if u := e.pressing(); u != nil {
		e.f.Run = u
	}
	return nil
}

// pressing is the unfinished run that matters most: one that runs, then one that is due or held.
func (e *explaining) pressing() *jobs.Run {
	var found *jobs.Run
	for i := range e.f.Unfinished {
		u := &e.f.Unfinished[i]
		switch {
		case u.State == jobs.StateRunning:
			return u
		case found != nil:
			continue
		case u.State == jobs.StateHeld, !u.DueAt.After(e.f.Now), e.f.Newest != nil && u.Occurrence == e.f.Newest.Occurrence:
			found = u
		}
	}
	return found
}

// chooseAt finds what belongs to an instant that was asked for.
func (e *explaining) chooseAt(ctx context.Context) (err error) {
	zone := time.UTC
	j := e.f.Definition
	if j != nil && j.Schedule != nil {
		zone = j.Schedule.Location()
	}
	if e.f.Question, err = ParseAt(e.r.At, zone, e.f.Now); err != nil {
		return err
	}
	at := e.f.Question.At
	if j == nil || j.Schedule == nil {
		e.f.Run, err = e.one(ctx, explainBefore, e.f.Job, e.arg(at))
		return err
	}
	e.f.Instant = j.Schedule.Last(at)
	why, _ := j.Schedule.Absent(at)
	skipped := !e.f.Question.Gap.IsZero() && !j.Schedule.MadeUp(at)
	if why != jobs.AbsentNot && why != jobs.AbsentFields || skipped {
		e.f.Instant = time.Time{} // the answer is about that one, and no run belongs to it
		return e.ran(ctx, at)
	}
	if e.f.Instant.IsZero() {
		return nil
	}
	return e.ran(ctx, e.f.Instant)
}

// ran finds the run of an instant: its own, else one that stands for many.
func (e *explaining) ran(ctx context.Context, at time.Time) error {
	own, err := e.runs(ctx, explainOccurrence, e.f.Job, jobs.ScheduledOccurrence(at))
	if err != nil {
		return err
	}
	if len(own) > 0 {
		e.f.Run = &own[0]
		return nil
	}
	many, err := e.runs(ctx, explainSummaries, e.f.Job, e.arg(at))
	if err != nil {
		return err
	}
	for i := range many {
		if _, until, _, ok := explain.Summary(&many[i]); ok && !until.Before(at) {
			e.f.Run = &many[i]
			return nil
		}
	}
	return nil
}

func (e *explaining) runs(ctx context.Context, query string, args ...any) ([]jobs.Run, error) {
	runs, err := jobs.ScanRuns(ctx, e.tx.NewRaw(query, args...))
	if err != nil {
		return nil, fmt.Errorf("reading runs: %w", err)
	}
	return runs, nil
}

// one is the first of them; nil when there is none.
func (e *explaining) one(ctx context.Context, query string, args ...any) (*jobs.Run, error) {
	runs, err := e.runs(ctx, query, args...)
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	return &runs[0], nil
}

func (e *explaining) arg(at time.Time) any { return dbtime.Arg(e.d, at) }
