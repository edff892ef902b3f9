package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/jobs"
)

const (
	// maxMissedRows is how many missed instants of one outage get a row each; the rest share one row that counts them.
	maxMissedRows = 1000
	// maxInstants bounds the work of one plan, here a fraction of a second: a longer outage is planned piece by piece.
	maxInstants = 500_000
)

// planned is a job as the planner sees it: the schedule's identity and how far it was planned when we last looked.
type planned struct {
	job      *jobs.Job
	hash     string
	position time.Time // by the database's clock
	next     time.Time // the first instant after position; zero when there is none
}

func (p *planned) moveTo(position time.Time) {
	p.position, p.next = position, p.job.Schedule.Next(position)
}

type positionKey struct {
	Job      string `json:"job" bun:"job"`
	Hash     string `json:"schedule_hash" bun:"schedule_hash"`
	Position any    `json:"position,omitempty" bun:"-"`
}

type positionRow struct {
	Job      string      `bun:"job"`
	Hash     string      `bun:"schedule_hash"`
	Position dbtime.Time `bun:"position"`
}

func keysOf(plans []*planned) []positionKey {
	keys := make([]positionKey, len(plans))
	for i, p := range plans {
		keys[i] = positionKey{Job: p.job.Name, Hash: p.hash}
	}
	return keys
}

func byKey(plans []*planned) map[positionKey]*planned {
	m := make(map[positionKey]*planned, len(plans))
	for _, p := range plans {
		m[positionKey{Job: p.job.Name, Hash: p.hash}] = p
	}
	return m
}

// loadPositions reads how far each schedule was planned; one seen for the first time starts at the database's now.
func (s *store) loadPositions(ctx context.Context, plans []*planned) error {
	if len(plans) == 0 {
		return nil
	}
	keys := encode(keysOf(plans))
	if _, err := s.db.NewRaw(s.q.addPositions, keys).Exec(ctx); err != nil {
		return fmt.Errorf("adding plan positions: %w", err)
	}
	var rows []positionRow
	if err := s.db.NewRaw(s.q.readPositions, keys).Scan(ctx, &rows); err != nil {
		return fmt.Errorf("reading plan positions: %w", err)
	}
	index := byKey(plans)
	for _, r := range rows {
		if p := index[positionKey{Job: r.Job, Hash: r.Hash}]; p != nil {
			p.moveTo(r.Position.Time)
		}
	}
	return nil
}

// plan inserts the runs of everything that fell due since the stored positions, and moves the positions, in one
// transaction: a crash in between loses nothing. Schedules that another replica is planning right now are left to it.
func (s *store) plan(ctx context.Context, due []*planned, rules planRules) (inserted []jobs.Run, err error) {
	var moved []positionRow
	err = s.tx(ctx, func(tx bun.Tx) error {
		if err := s.holdPauses(ctx, tx); err != nil {
			return err
		}
		// The rows first, the clock after: what another replica planned while we waited is never in our future.
		var rows []positionRow
		if err := tx.NewRaw(s.q.lockPositions, encode(keysOf(due))).Scan(ctx, &rows); err != nil {
			return fmt.Errorf("locking plan positions: %w", err)
		}
		now, err := s.now(ctx, tx)
		if err != nil {
			return err
		}
		runs, positions, err := s.due(ctx, tx, pending{rows, byKey(due), now, rules})
		if err != nil {
			return err
		}
		moved = positions
		if inserted, err = s.insertRuns(ctx, tx, runs); err != nil {
			return err
		}
		return s.movePositions(ctx, tx, positions)
	})
	if err != nil {
		return nil, fmt.Errorf("planning: %w", err)
	}
	index := byKey(due)
	for _, m := range moved {
		index[positionKey{Job: m.Job, Hash: m.Hash}].moveTo(m.Position.Time)
	}
	return inserted, nil
}

// pending is what one plan has to work through.
type pending struct {
	rows  []positionRow
	index map[positionKey]*planned
	now   time.Time
	rules planRules
}

// oldest is the position that is furthest back.
func (p *pending) oldest() time.Time {
	oldest := p.now
	for _, row := range p.rows {
		if row.Position.Before(oldest) {
			oldest = row.Position.Time
		}
	}
	return oldest
}

// due computes the rows to insert and the positions to store.
func (s *store) due(ctx context.Context, db bun.IDB, p pending) (runs []jobs.NewRun, moved []positionRow, err error) {
	pauses, err := s.pausesBetween(ctx, db, p.oldest(), p.now)
	if err != nil {
		return nil, nil, err
	}
	for _, row := range p.rows {
		job := p.index[positionKey{Job: row.Job, Hash: row.Hash}].job
		instants, more := job.Schedule.Between(row.Position.Time, p.now, maxInstants)
		position := p.now
		if more {
			instants = instants[:len(instants)-kept(job)]
			position = instants[len(instants)-1]
		}
		if position.After(row.Position.Time) {
			row.Position.Time = position
		}
		moved = append(moved, row)
		if len(instants) == 0 {
			continue
		}
		o := outage{job: job, instants: instants, now: p.now, rules: p.rules, pauses: pauses, more: more}
		if o.real() && job.Enabled {
			if o.alive, err = s.lifetimes(ctx, db, instants[0], p.now); err != nil {
				return nil, nil, err
			}
		}
		runs = append(runs, o.runs()...)
	}
	return runs, moved, nil
}

// kept is how many instants at the end of a piece are left to the next one. So the last piece has all those that get a row
// each or are caught up, and what is before it becomes summaries alone.
func kept(j *jobs.Job) int { return min(maxMissedRows+j.CatchUp.Max, maxInstants/2) }

func (s *store) movePositions(ctx context.Context, db bun.IDB, moved []positionRow) error {
	if len(moved) == 0 {
		return nil
	}
	keys := make([]positionKey, len(moved))
	for i, m := range moved {
		keys[i] = positionKey{Job: m.Job, Hash: m.Hash, Position: dbtime.Arg(s.d, m.Position.Time)}
	}
	if _, err := db.NewRaw(s.q.movePositions, encode(keys)).Exec(ctx); err != nil {
		return fmt.Errorf("moving plan positions: %w", err)
	}
	return nil
}

// lifetime is a span in which one replica reached the database.
type lifetime struct {
	From  dbtime.Time `bun:"joined_at"`
	Until dbtime.Time `bun:"until"`
}

func (s *store) lifetimes(ctx context.Context, db bun.IDB, from, until time.Time) ([]lifetime, error) {
	var spans []lifetime
	err := db.NewRaw(s.q.lifetimes, dbtime.Arg(s.d, until), dbtime.Arg(s.d, from)).Scan(ctx, &spans)
	if err != nil {
		return nil, fmt.Errorf("reading the replicas' lifetimes: %w", err)
	}
	return spans, nil
}

// detail is the facts of a row; no facts are an empty object.
func detail(fields map[string]any) json.RawMessage {
	if fields == nil {
		return json.RawMessage("{}")
	}
	return json.RawMessage(encode(fields))
}
