package jobs

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/uptrace/bun/dialect"
)

// JobState is what the ledger says of it, whichever replicas know it.
type JobState struct {
	Last        *Run  // the newest run that has ended, by its scheduled instant; nil is none
	LastSuccess *Run  // the newest that has succeeded
	Unfinished  []Run // pending, running and held ones, the oldest first: at most MaxUnfinished
	Waiting     int   // how many of those there are in all
}

// MaxUnfinished bounds what a JobState lists.
const MaxUnfinished = 20

// stateQueries is the SQL of one database.
type stateQueries struct {
	runs  string // a JSON array of names, how many unfinished ones
	count string // a JSON array of names
}

// States returns what the ledger says of jobs; a job without runs is not in the map.
func (l *Ledger) States(ctx context.Context, names []string) (map[string]*JobState, error) {
	q := &postgresStates
	if l.db.Dialect().Name() == dialect.SQLite {
		q = &sqliteStates
	}
	doc, err := json.Marshal(orEmpty(names))
	if err != nil {
		return nil, fmt.Errorf("encoding the names of jobs: %w", err)
	}
	runs, err := ScanRuns(ctx, l.db.NewRaw(q.runs, string(doc), MaxUnfinished))
	if err != nil {
		return nil, fmt.Errorf("reading what jobs did last: %w", err)
	}
	states := map[string]*JobState{}
	for i := range runs { // the oldest first: the last one of a kind is the newest
		r := &runs[i]
		s := states[r.Job]
		if s == nil {
			s = &JobState{}
			states[r.Job] = s
		}
		s.add(r)
	}
	var counts []struct {
		Job string `bun:"job"`
		N   int    `bun:"n"`
	}
	if err := l.db.NewRaw(q.count, string(doc)).Scan(ctx, &counts); err != nil {
		return nil, fmt.Errorf("counting the unfinished runs of jobs: %w", err)
	}
	for _, c := range counts {
		if s := states[c.Job]; s != nil {
			s.Waiting = c.N
		}
	}
	return states, nil
}

func (s *JobState) add(r *Run) {
	switch {
	case r.State != StateFinished:
		s.Unfinished = append(s.Unfinished, *r)
	case r.Outcome == OutcomeSucceeded:
		s.Last, s.LastSuccess = r, r
	default:
		s.Last = r
	}
}

// UnfinishedStates are the states of the unfinished runs of each job that has any.
func (l *Ledger) UnfinishedStates(ctx context.Context) (map[string][]State, error) {
	var rows []struct {
		Job   string `bun:"job"`
		State State  `bun:"state"`
	}
	const query = `SELECT DISTINCT job, state FROM job_runs WHERE state <> 'finished' ORDER BY job, state`
	if err := l.db.NewRaw(query).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("reading the states of unfinished runs: %w", err)
	}
	states := map[string][]State{}
	for _, r := range rows {
		states[r.Job] = append(states[r.Job], r.State)
	}
	return states, nil
}

// maxNames bounds a list that is read into memory.
const maxNames = 10_000

// Names are all jobs that were ever planned or have runs, whichever replicas know them, by name.
func (l *Ledger) Names(ctx context.Context) (names []string, err error) {
	if err := l.db.NewRaw(ledgerNames, maxNames).Scan(ctx, &names); err != nil {
		return nil, fmt.Errorf("reading the names of jobs: %w", err)
	}
	return names, nil
}

// ledgerNames skips from name to name in the index of the history.
const ledgerNames = `
WITH RECURSIVE n (job) AS (
	SELECT min(job) FROM job_runs
	UNION ALL
	SELECT (SELECT min(r.job) FROM job_runs AS r WHERE r.job > n.job) FROM n WHERE n.job IS NOT NULL)
SELECT job FROM n WHERE job IS NOT NULL UNION SELECT job FROM plan_positions ORDER BY job LIMIT ?`

// stateRuns are the newest ended run, the newest success and the oldest unfinished runs of each job, the oldest first; names
// gives the jobs.
func stateRuns(names string) string {
	return `
WITH n AS MATERIALIZED (` + names + `), ids AS (
	SELECT (SELECT f.id FROM job_runs AS f WHERE f.job = n.job AND f.state = 'finished'
		ORDER BY f.scheduled_at DESC, f.id DESC LIMIT 1) AS id FROM n
	UNION SELECT (SELECT f.id FROM job_runs AS f WHERE f.job = n.job AND f.outcome = 'succeeded'
		ORDER BY f.scheduled_at DESC, f.id DESC LIMIT 1) FROM n
	UNION SELECT id FROM (SELECT u.id, row_number() OVER (PARTITION BY u.job ORDER BY u.scheduled_at, u.id) AS place
		FROM job_runs AS u WHERE u.state <> 'finished' AND u.job IN (SELECT job FROM n)) AS w WHERE place <= ?1)
SELECT ` + RunColumns + ` FROM job_runs AS r WHERE r.id IN (SELECT id FROM ids) ORDER BY r.job, r.scheduled_at, r.id`
}

func stateCount(names string) string {
	return `SELECT r.job, count(*) AS n FROM job_runs AS r WHERE r.state <> 'finished' AND r.job IN (` + names + `) GROUP BY r.job`
}

const (
	postgresNames = `SELECT t.job COLLATE "C" AS job FROM jsonb_array_elements_text(?0::jsonb) AS t (job)`
	sqliteNames   = `SELECT value AS job FROM json_each(?0)`
)

//nolint:gochecknoglobals // two tables of statements
var (
	postgresStates = stateQueries{stateRuns(postgresNames), stateCount(postgresNames)}
	sqliteStates   = stateQueries{stateRuns(sqliteNames), stateCount(sqliteNames)}
)
