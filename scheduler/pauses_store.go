package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/internal/dbtime"
)

// Pause is a span in which what the calendar makes of a job does not start. Manual runs do.
type Pause struct {
	Job    string // "" is all jobs
	Reason string
	By     string    // who asked for it
	From   time.Time // of the database's clock
	Until  time.Time // the first instant that is not paused any more; zero is until it is resumed
}

func (p *Pause) covers(job string, at time.Time) bool {
	return (p.Job == "" || p.Job == job) && !at.Before(p.From) && (p.Until.IsZero() || at.Before(p.Until))
}

// fact is the pause as a run tells it.
func (p *Pause) fact() map[string]any {
	fact := map[string]any{"job": p.Job, "by": p.By, "reason": p.Reason, "from": p.From, "until": nil}
	if !p.Until.IsZero() {
		fact["until"] = p.Until
	}
	return fact
}

// covering is the first pause that covers an instant of a job, nil when there is none.
func covering(pauses []Pause, job string, at time.Time) *Pause {
	for i := range pauses {
		if pauses[i].covers(job, at) {
			return &pauses[i]
		}
	}
	return nil
}

// pauseRow is a Pause as it is stored.
type pauseRow struct {
	ID     int64       `bun:"id"`
	Job    string      `bun:"job"`
	Reason string      `bun:"reason"`
	By     string      `bun:"paused_by"`
	From   dbtime.Time `bun:"paused_at"`
	Until  dbtime.Time `bun:"until"`
}

func (r *pauseRow) pause() Pause { return Pause{r.Job, r.Reason, r.By, r.From.Time, r.Until.Time} }

// over reports whether the pause has ended by itself.
func (r *pauseRow) over(now time.Time) bool { return !r.Until.IsZero() && !r.Until.After(now) }

// holdPauses keeps the pauses as they are until the transaction ends. What reads the clock and the pauses after it sees
// every pause that begins or ends before that instant; and a claim is over before a pause begins, or sees it.
func (s *store) holdPauses(ctx context.Context, tx bun.Tx) error {
	return s.lock(ctx, tx, s.q.holdPauses)
}

func (s *store) lock(ctx context.Context, tx bun.Tx, query string) error {
	if query == "" {
		return nil
	}
	if _, err := tx.NewRaw(query).Exec(ctx); err != nil {
		return fmt.Errorf("waiting for other transactions: %w", err)
	}
	return nil
}

// pausesBetween are the pauses that cover an instant between the two, both included.
func (s *store) pausesBetween(ctx context.Context, db bun.IDB, from, until time.Time) ([]Pause, error) {
	var rows []pauseRow
	err := db.NewRaw(s.q.pausesBetween, dbtime.Arg(s.d, until), dbtime.Arg(s.d, from)).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("reading the pauses: %w", err)
	}
	pauses := make([]Pause, len(rows))
	for i := range rows {
		pauses[i] = rows[i].pause()
	}
	return pauses, nil
}

// openPauses are the pauses that nobody has ended, by job. Some of them may be over.
func (s *store) openPauses(ctx context.Context, db bun.IDB) ([]pauseRow, error) {
	var rows []pauseRow
	if err := db.NewRaw(s.q.openPauses).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("reading the pauses: %w", err)
	}
	return rows, nil
}
