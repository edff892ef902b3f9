package scheduler

import (
	"context"
	"fmt"

	"github.com/uptrace/bun/dialect"

	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/jobs"
)

// waitQueries is the SQL of one database; the texts are in postgres_waits.go and sqlite_waits.go.
type waitQueries struct {
	waiting string // due runs that no pause and no running run of their job keeps, with what may: since when in milliseconds, how many
	add     string // a JSON array of waits
	read    string // of the runs of a JSON array of ids
}

func (s *store) waits() *waitQueries {
	if s.d == dialect.SQLite {
		return &sqliteWaits
	}
	return &postgresWaits
}

// waitingRuns are those that may be in the way of others.
const waitingRuns = `SELECT ` + jobs.RunColumns + ` FROM job_runs AS r WHERE r.state = 'running' ORDER BY r.id LIMIT 200`

// waitingRow is a due run that nobody took, with what may be in its way.
type waitingRow struct {
	ID           int64       `bun:"id"`
	Job          string      `bun:"job"`
	OnlyOn       rawText     `bun:"only_on"`
	Limits       rawText     `bun:"limits"`
	Earlier      *int64      `bun:"earlier"` // the first unfinished earlier run of the job; it does not run
	EarlierState *string     `bun:"earlier_state"`
	HeldToken    *int64      `bun:"held_token"`
	HeldSince    dbtime.Time `bun:"held_since"`
	HeldUntil    dbtime.Time `bun:"held_until"`
	HeldMetadata rawText     `bun:"held_metadata"`
	FullTag      *string     `bun:"full_tag"`
	Noted        *string     `bun:"noted"` // the keys of what was taken down, a line for each
}

// noteWaits is one look. It writes only what nobody has taken down yet.
func (s *store) noteWaits(ctx context.Context, l *lookout) error {
	var rows []waitingRow
	if err := s.db.NewRaw(s.waits().waiting, l.after.Milliseconds(), waitsLook).Scan(ctx, &rows); err != nil {
		return fmt.Errorf("looking at what due runs wait for: %w", err)
	}
	if err := s.lookAround(ctx, l, rows); err != nil {
		return err
	}
	var fresh []wait
	named := false
	for i := range rows {
		w, ok, err := l.wait(&rows[i])
		if err != nil {
			return err
		}
		if ok {
			fresh, named = append(fresh, w), named || w.names != nil
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if named {
		var err error
		if l.running, err = jobs.ScanRuns(ctx, s.db.NewRaw(waitingRuns)); err != nil {
			return fmt.Errorf("looking at what runs: %w", err)
		}
	}
	for i := range fresh {
		fresh[i].seal(l.running)
	}
	if _, err := s.db.NewRaw(s.waits().add, encode(fresh)).Exec(ctx); err != nil {
		return fmt.Errorf("taking down what due runs wait for: %w", err)
	}
	return nil
}

// lookAround reads which replicas are there, when that matters.
func (s *store) lookAround(ctx context.Context, l *lookout, rows []waitingRow) (err error) {
	for i := range rows {
		if string(rows[i].OnlyOn) != "{}" {
			l.there, err = Replicas(ctx, s.db, s.silence)
			return err
		}
	}
	return nil
}
