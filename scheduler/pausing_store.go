package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/dbtime"
)

// Pauses says which jobs are paused, and changes that. It works on a migrated database, beside any number of replicas.
type Pauses struct{ s *store }

// OpenPauses returns the pauses of a migrated database.
func OpenPauses(db *DB) (*Pauses, error) {
	s, err := openStore(db)
	if err != nil {
		return nil, err
	}
	return &Pauses{s}, nil
}

// ErrPast says that a pause was to end at an instant that has passed on the database's clock. Nothing was changed.
var ErrPast = errors.New("scheduler: the end of the pause has passed")

// PauseRequest asks for pauses.
type PauseRequest struct {
	Jobs   []string // "" is all jobs; whether there are such jobs is not checked, see Known
	Tag    string   // by which the jobs were chosen, for the audit; "" is by their names
	Reason string
	By     string        // who asks, for the audit
	Until  time.Time     // zero: until it is resumed
	For    time.Duration // in place of Until; 0 is none
}

// Paused is a pause as a request has left it.
type Paused struct {
	Pause

	Before bool // it was there already: its reason, its end and who asked are now those of the request
}

// Pause pauses the jobs, all or none, and returns a pause for each of the request. When it returns, no run of them is claimed
// any more but manual ones; what runs goes on.
func (p *Pauses) Pause(ctx context.Context, r PauseRequest) ([]Paused, error) {
	paused := make([]Paused, 0, len(r.Jobs))
	err := p.change(ctx, func(tx bun.Tx, now time.Time, open map[string]pauseRow) error {
		until := r.Until
		if r.For > 0 {
			until = now.Add(r.For)
		}
		if !until.IsZero() && !until.After(now) {
			return ErrPast
		}
		for _, job := range r.Jobs {
			one := Paused{Pause: Pause{Job: job, Reason: r.Reason, By: r.By, From: now, Until: until}}
			if err := p.pause(ctx, tx, &one, open, r.Tag); err != nil {
				return err
			}
			paused = append(paused, one)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("pausing: %w", err)
	}
	return paused, nil
}

// pause writes one pause: into the open one of the job, or beside it when that has ended by itself.
func (p *Pauses) pause(ctx context.Context, tx bun.Tx, one *Paused, open map[string]pauseRow, tag string) error {
	s, until := p.s, dbtime.Arg(p.s.d, one.Until)
	row, isOpen := open[one.Job]
	if isOpen && !row.over(one.From) {
		one.From, one.Before = row.From.Time, true
		if err := s.execute(ctx, tx, s.q.changePause, one.Reason, one.By, until, row.ID); err != nil {
			return err
		}
		return p.audit(ctx, tx, audit.JobPause, &one.Pause, tag)
	}
	if isOpen {
		if err := s.execute(ctx, tx, s.q.closePause, "", dbtime.Arg(s.d, row.Until.Time), row.ID); err != nil {
			return err
		}
	}
	if err := s.execute(ctx, tx, s.q.addPause, one.Job, one.Reason, one.By, dbtime.Arg(s.d, one.From), until); err != nil {
		return err
	}
	return p.audit(ctx, tx, audit.JobPause, &one.Pause, tag)
}

// Resume ends the pauses of the jobs, and returns those that were paused, in the order of the request. A job whose own pause
// was ended stays paused while all are.
func (p *Pauses) Resume(ctx context.Context, names []string, by string) (resumed []string, err error) {
	return p.ResumeTagged(ctx, names, by, "")
}

// ResumeTagged is Resume for jobs that were chosen by a tag, which the audit keeps.
func (p *Pauses) ResumeTagged(ctx context.Context, names []string, by, tag string) (resumed []string, err error) {
	err = p.change(ctx, func(tx bun.Tx, now time.Time, open map[string]pauseRow) error {
		for _, job := range names {
			row, isOpen := open[job]
			if !isOpen || row.over(now) || slices.Contains(resumed, job) {
				continue
			}
			if err := p.s.execute(ctx, tx, p.s.q.closePause, by, dbtime.Arg(p.s.d, now), row.ID); err != nil {
				return err
			}
			if err := p.audit(ctx, tx, audit.JobResume, &Pause{Job: job, Reason: row.Reason, By: by, From: row.From.Time}, tag); err != nil {
				return err
			}
			resumed = append(resumed, job)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("resuming: %w", err)
	}
	return resumed, nil
}

// Active are the pauses that hold now, by job.
func (p *Pauses) Active(ctx context.Context) ([]Pause, error) {
	now, err := p.s.now(ctx, p.s.db)
	if err != nil {
		return nil, err
	}
	rows, err := p.s.openPauses(ctx, p.s.db)
	if err != nil {
		return nil, err
	}
	var active []Pause
	for i := range rows {
		if !rows[i].over(now) {
			active = append(active, rows[i].pause())
		}
	}
	return active, nil
}

// Known reports whether any replica has ever planned or run a job with this name.
func (p *Pauses) Known(ctx context.Context, job string) (known bool, err error) {
	if err := p.s.db.NewRaw(p.s.q.isJob, job, job).Scan(ctx, &known); err != nil {
		return false, fmt.Errorf("looking for a job: %w", err)
	}
	return known, nil
}

// Planned are the names of jobs that replicas have planned, for suggestions: at most 1000 of them.
func (p *Pauses) Planned(ctx context.Context) (names []string, err error) {
	if err := p.s.db.NewRaw(p.s.q.jobNames).Scan(ctx, &names); err != nil {
		return nil, fmt.Errorf("reading the names of jobs: %w", err)
	}
	return names, nil
}

// change is a transaction that has the pauses alone: every claim and plan is over before it, or comes after it and sees what
// it did. The clock is read when that is so.
func (p *Pauses) change(ctx context.Context, f func(tx bun.Tx, now time.Time, open map[string]pauseRow) error) error {
	return p.s.tx(ctx, func(tx bun.Tx) error {
		if err := p.s.lock(ctx, tx, p.s.q.lockPauses); err != nil {
			return err
		}
		now, err := p.s.now(ctx, tx)
		if err != nil {
			return err
		}
		rows, err := p.s.openPauses(ctx, tx)
		if err != nil {
			return err
		}
		open := make(map[string]pauseRow, len(rows))
		for _, row := range rows {
			open[row.Job] = row
		}
		return f(tx, now, open)
	})
}

// audit keeps who did it, and by which tag.
func (p *Pauses) audit(ctx context.Context, tx bun.Tx, a audit.Action, pause *Pause, tag string) error {
	facts := pause.fact()
	if tag != "" {
		facts["tag"] = tag
	}
	return p.s.execute(ctx, tx, p.s.q.auditPause, string(a), pause.By, pause.Job, pause.Reason, encode(facts))
}

func (s *store) execute(ctx context.Context, tx bun.Tx, query string, args ...any) error {
	if _, err := tx.NewRaw(query, args...).Exec(ctx); err != nil {
		return fmt.Errorf("writing the pauses: %w", err)
	}
	return nil
}
