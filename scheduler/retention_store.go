package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/cronlatch/cronlatch/internal/dbtime"
)

// retentionQueries is the SQL of one database; the texts are in postgres_retention.go and sqlite_retention.go.
type retentionQueries struct {
	oldest     string // of each job that has runs: its name and its oldest instant
	old        string // the ids of a job's runs that are not kept any more, the oldest first
	deleteRuns string // by their ids, what is still as old found it
	needed     string // the oldest instant that planning may still ask about
	replicas   string // lifetimes that ended before an instant
	outbox     string // messages that were done with before an instant
	chunks     string // of runs whose output is stored, that ended before an instant
	pauses     string // that ended before an instant
}

// What is kept of other tables, and for how long. audit_log is kept for ever.
const (
	keepReplicas = 90 * 24 * time.Hour
	keepOutbox   = 30 * 24 * time.Hour
	keepPauses   = 90 * 24 * time.Hour
	// keepAtMost bounds what a schedule that nobody plans any more keeps of lifetimes and pauses.
	keepAtMost = 2 * 365 * 24 * time.Hour
	// keepMeeting is how long a run waits for the others of its period that a fan-in comes after.
	keepMeeting = 800 * 24 * time.Hour
	// retentionBatch is how many rows one statement deletes: what it locks is soon free again.
	retentionBatch = 500
	// outputBatch is the same for runs, each of which may have 256 KiB of output.
	outputBatch = 100
)

// Retention deletes what is older than the history that is kept. Every replica may do it, at any time: what one deletes, the
// others pass over.
//
// A run is deleted when it has ended, is older than KeepFor and is not among the newest Keep of its job. These stay all the
// same: the last success and the last failure of a job; the first run of a job that never succeeded, from which max_age
// counts; runs that nobody has looked at yet (follow, notify); a run whose occurrence has an unfinished attempt; and what a
// fan-in still waits for.
type Retention struct {
	s *store
	q *retentionQueries
}

// OpenRetention returns the retention of a migrated database.
func OpenRetention(db *DB) (*Retention, error) {
	s, err := openStore(db)
	if err != nil {
		return nil, err
	}
	q := &sqliteRetention
	if s.q == &postgresQueries {
		q = &postgresRetention
	}
	return &Retention{s, q}, nil
}

// Pruned counts the rows that were deleted.
type Pruned struct {
	Runs, Replicas, Messages, Chunks, Pauses int
}

// Total is the sum.
func (p *Pruned) Total() int { return p.Runs + p.Replicas + p.Messages + p.Chunks + p.Pauses }

// Prune deletes everything that is not kept any more, in many small transactions, until ctx ends. What it counts is gone,
// also when it returns an error.
func (r *Retention) Prune(ctx context.Context, k *Keeping) (done Pruned, err error) {
	now, err := r.s.now(ctx, r.s.db)
	if err != nil {
		return done, err
	}
	if err := r.pruneRuns(ctx, k, now, &done.Runs); err != nil {
		return done, err
	}
	planned, err := r.planned(ctx, now)
	if err != nil {
		return done, err
	}
	for _, table := range []struct {
		query  string
		before time.Time
		n      *int
	}{
		{r.q.replicas, earlier(planned, now.Add(-keepReplicas)), &done.Replicas},
		{r.q.pauses, earlier(planned, now.Add(-keepPauses)), &done.Pauses},
		{r.q.outbox, now.Add(-keepOutbox), &done.Messages},
		{r.q.chunks, now, &done.Chunks},
	} {
		if err := r.pruneTable(ctx, table.query, table.before, table.n); err != nil {
			return done, err
		}
	}
	return done, nil
}

// planned is the instant up to which everything is planned and was decided. Why an occurrence did not run depends on the
// lifetimes of replicas and the pauses around it, so that those from there on are needed. A schedule that was removed stays
// where it was: it counts for keepAtMost.
func (r *Retention) planned(ctx context.Context, now time.Time) (time.Time, error) {
	var needed dbtime.Time
	if err := r.s.db.NewRaw(r.q.needed).Scan(ctx, &needed); err != nil {
		return time.Time{}, fmt.Errorf("looking how far is planned: %w", err)
	}
	return latest(needed.Time, now.Add(-keepAtMost)), nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// pruneTable repeats a statement until it deletes less than it may.
func (r *Retention) pruneTable(ctx context.Context, query string, before time.Time, total *int) error {
	for {
		n, err := r.delete(ctx, query, dbtime.Arg(r.s.d, before), retentionBatch)
		*total += n
		if err != nil || n < retentionBatch {
			return err
		}
	}
}

func (r *Retention) delete(ctx context.Context, query string, args ...any) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	res, err := r.s.db.NewRaw(query, args...).Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("deleting old rows: %w", err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("counting deleted rows: %w", err)
	}
	return int(n), nil
}

// jobAge is the oldest run of a job.
type jobAge struct {
	Job    string      `bun:"job"`
	Oldest dbtime.Time `bun:"oldest"`
}

func (r *Retention) pruneRuns(ctx context.Context, k *Keeping, now time.Time, total *int) error {
	var ages []jobAge
	if err := r.s.db.NewRaw(r.q.oldest).Scan(ctx, &ages); err != nil {
		return fmt.Errorf("looking for old runs: %w", err)
	}
	known, fans := k.byName(), fanInsOf(k.Jobs)
	for _, a := range ages {
		o := oldRuns{job: a.Job, before: now.Add(-k.of(known[a.Job]).KeepFor), keep: k.of(known[a.Job]).Keep, fans: fans[a.Job]}
		if a.Oldest.After(o.before) {
			continue
		}
		if err := r.pruneJob(ctx, &o, total); err != nil {
			return err
		}
	}
	return nil
}

// retentionRest lets others write between two deletions: SQLite has one writer at a time, and who waits for it looks now and then.
const retentionRest = 20 * time.Millisecond

func rest(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(retentionRest):
	}
}

// oldRuns asks for the runs of one job that are not kept.
type oldRuns struct {
	job    string
	before time.Time
	keep   int
	fans   []fanIn
}

// pruneJob finds with one statement, which locks nothing, and deletes with another: on SQLite the search would else keep
// everybody from writing. What is found cannot become worth keeping meanwhile, except by a further attempt, for which the
// second statement looks again.
func (r *Retention) pruneJob(ctx context.Context, o *oldRuns, total *int) error {
	for {
		ids, err := r.find(ctx, o)
		if err != nil || len(ids) == 0 {
			return err
		}
		for len(ids) > 0 {
			n := min(len(ids), outputBatch)
			deleted, err := r.delete(ctx, r.q.deleteRuns, encode(ids[:n]))
			*total += deleted
			if err != nil {
				return err
			}
			if deleted == 0 { // another replica is at it
				return nil
			}
			ids = ids[n:]
			rest(ctx)
		}
	}
}

func (r *Retention) find(ctx context.Context, o *oldRuns) (ids []int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	if o.fans == nil {
		o.fans = []fanIn{}
	}
	before, waiting := dbtime.Arg(r.s.d, o.before), dbtime.Arg(r.s.d, o.before.Add(-keepMeeting))
	err = r.s.db.NewRaw(r.q.old, o.job, before, o.keep, encode(o.fans), waiting, retentionBatch).Scan(ctx, &ids)
	if err != nil {
		return nil, fmt.Errorf("looking for old runs of %s: %w", o.job, err)
	}
	return ids, nil
}
