package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/uptrace/bun/dialect"

	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/scheduler"
)

const (
	factsAge     = 5 * time.Second // how old an answer may be when it is given again
	factsTimeout = 2 * time.Second // well inside the 10 s that Prometheus waits
)

// Fleet is where the facts of the whole fleet come from.
type Fleet struct {
	DB *scheduler.DB // migrated
	// Check is asked before the database; an error counts as a database that does not answer. Optional.
	Check func(ctx context.Context) error
	TTL   time.Duration    // of locks: after such a silence a replica counts as gone
	Clock func() time.Time // this host's; nil is time.Now
}

// fleetFacts are one look at the database.
type fleetFacts struct {
	Now           dbtime.Time
	Replicas      int64
	Definitions   int64
	Waiting       int64 // of all jobs
	OutboxPending int64
	OutboxGivenUp int64

	jobs   []jobFacts
	offset time.Duration // of the database's clock
}

// jobFacts are what the ledger says of one job.
type jobFacts struct {
	Job          string
	LastSuccess  dbtime.Time // zero is never
	FirstPlanned dbtime.Time
	LastOutcome  string // "" when nothing has come to anything yet
	Waiting      int64
	Paused       bool
	NextDue      dbtime.Time
}

// factsRow is one line of the answer: the totals, and a job where there is one.
type factsRow struct {
	Now           dbtime.Time `bun:"now"`
	Replicas      int64       `bun:"replicas"`
	Definitions   int64       `bun:"definitions"`
	WaitingAll    int64       `bun:"waiting_all"`
	OutboxPending int64       `bun:"outbox_pending"`
	OutboxGivenUp int64       `bun:"outbox_given_up"`
	Job           *string     `bun:"job"`
	LastSuccess   dbtime.Time `bun:"last_success"`
	FirstPlanned  dbtime.Time `bun:"first_planned"`
	LastOutcome   *string     `bun:"last_outcome"`
	Waiting       *int64      `bun:"waiting"`
	Paused        bool        `bun:"paused"`
	NextDue       dbtime.Time `bun:"next_due"`
}

// facts reads the facts, for everybody who asks within factsAge once.
type facts struct {
	fleet Fleet
	timed func(scheduler.Op, time.Duration)

	mu   sync.Mutex // held while the database is asked: who comes meanwhile gets the same answer
	at   time.Time  // when the database was asked; zero is never
	last fleetFacts
	err  error
}

func newFacts(f Fleet, timed func(scheduler.Op, time.Duration)) *facts {
	if f.Clock == nil {
		f.Clock = time.Now
	}
	return &facts{fleet: f, timed: timed}
}

// now are the facts about the jobs with these names. An answer may be of a moment ago, and about the jobs of that moment.
func (f *facts) now(names []string) (fleetFacts, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.fleet.Clock(); f.at.IsZero() || now.Sub(f.at) >= factsAge || now.Before(f.at) {
		f.at = now
		f.last, f.err = f.ask(names)
	}
	return f.last, f.err
}

// ask does not end with the request of whoever asks first: others wait for the same answer.
func (f *facts) ask(names []string) (fleetFacts, error) {
	ctx, cancel := context.WithTimeout(context.Background(), factsTimeout)
	defer cancel()
	if f.fleet.Check != nil {
		if err := f.fleet.Check(ctx); err != nil {
			return fleetFacts{}, err
		}
	}
	sent := f.fleet.Clock()
	rows, err := f.rows(ctx, names)
	took := f.fleet.Clock().Sub(sent)
	f.timed(opMetrics, took)
	if err != nil {
		return fleetFacts{}, err
	}
	return factsOf(rows, sent.Add(took/2)), nil
}

func (f *facts) rows(ctx context.Context, names []string) ([]factsRow, error) {
	var query string
	switch d := f.fleet.DB.Dialect().Name(); d {
	case dialect.PG:
		query = postgresFacts
	case dialect.SQLite:
		query = sqliteFacts
	default:
		return nil, fmt.Errorf("metrics: no facts for dialect %v", d)
	}
	if names == nil {
		names = []string{} // not JSON's null
	}
	doc, err := json.Marshal(names)
	if err != nil {
		return nil, fmt.Errorf("encoding the names of the jobs: %w", err)
	}
	var rows []factsRow
	if err := f.fleet.DB.NewRaw(query, dbtime.Millis(f.fleet.TTL), string(doc)).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("reading the facts of the fleet: %w", err)
	}
	if len(rows) == 0 {
		return nil, errors.New("reading the facts of the fleet: no rows")
	}
	return rows, nil
}

// factsOf turns the rows around; middle is this host's clock at about the time that the database has read its own.
func factsOf(rows []factsRow, middle time.Time) fleetFacts {
	r := &rows[0]
	all := fleetFacts{
		Now: r.Now, Replicas: r.Replicas, Definitions: r.Definitions, Waiting: r.WaitingAll, OutboxPending: r.OutboxPending,
		OutboxGivenUp: r.OutboxGivenUp, offset: r.Now.Sub(middle),
	}
	for i := range rows {
		r := &rows[i]
		if r.Job == nil {
			continue // there are no jobs
		}
		j := jobFacts{Job: *r.Job, LastSuccess: r.LastSuccess, FirstPlanned: r.FirstPlanned, Paused: r.Paused, NextDue: r.NextDue}
		if r.LastOutcome != nil {
			j.LastOutcome = *r.LastOutcome
		}
		if r.Waiting != nil {
			j.Waiting = *r.Waiting
		}
		all.jobs = append(all.jobs, j)
	}
	return all
}

// What reads the same on both databases, about the job x.job: each is one look at an index.
const (
	// factsLastSuccess is what overdue goes by, too.
	factsLastSuccess = `(SELECT s.finished_at FROM job_runs AS s WHERE s.job = x.job AND s.outcome = 'succeeded'
		ORDER BY s.scheduled_at DESC, s.id DESC LIMIT 1) AS last_success`
	factsFirstPlanned = `(SELECT f.created_at FROM job_runs AS f WHERE f.job = x.job ORDER BY f.scheduled_at, f.id LIMIT 1) AS first_planned`
	// factsLastOutcome leaves out attempts that another one follows or follows already, unless that waits for a person.
	factsLastOutcome = `(SELECT l.outcome FROM job_runs AS l
		WHERE l.job = x.job AND l.outcome IN ('succeeded', 'failed', 'timed_out', 'lost', 'missed') AND l.reason <> 'paused'
			AND NOT EXISTS (SELECT 1 FROM job_runs AS n WHERE n.job = l.job AND n.occurrence = l.occurrence
				AND n.attempt > l.attempt AND n.state <> 'held')
		ORDER BY l.scheduled_at DESC, l.id DESC LIMIT 1) AS last_outcome`
	factsWaiting = `(SELECT w.n FROM w WHERE w.job = x.job) AS waiting`
)
