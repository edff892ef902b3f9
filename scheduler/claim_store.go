package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// claimRequest asks for due runs.
type claimRequest struct {
	knows  func(job string) bool // whether this replica can run it
	not    []string              // jobs that it cannot run, as far as they were seen; not nil, which would be JSON's null
	limit  int                   // free slots, at least 1
	labels map[string]string     // of this replica: a run's only_on must be among them
	ttl    time.Duration
	grace  time.Duration
	who    identity
	boot   func() time.Duration
}

// claimed is a run that this replica holds: its row says running, and the lock of its resource is ours.
type claimed struct {
	run      jobs.Run
	job      *jobs.Job // as it was defined when the run was claimed; the scheduler's to fill in
	lock     locking.Record
	takeover bool
	// sentAt is the boot clock before the grant was asked for: what the lock's deadline is counted from.
	sentAt time.Duration
}

// claim takes up to limit due runs in one transaction: the run rows first, skipping those that another replica looks
// at, then the locks of their resources in ascending order, then the marks. A run whose lock was not to be had stays
// pending. Names of jobs that this replica does not know come back as unknown: the statement takes the short list of
// what to leave out rather than the long one of what we have. On a *commitError the result is what may have been claimed.
func (s *store) claim(ctx context.Context, r claimRequest) (won []claimed, unknown []string, err error) {
	err = s.tx(ctx, func(tx bun.Tx) error {
		if err := s.holdPauses(ctx, tx); err != nil {
			return err
		}
		candidates, err := jobs.ScanRuns(ctx, tx.NewRaw(s.q.candidates, encode(r.not), labelsText(r.labels), r.limit))
		if err != nil {
			return fmt.Errorf("selecting due runs: %w", err)
		}
		candidates, unknown = split(candidates, r.knows)
		if candidates, err = s.withinLimits(ctx, tx, firstPerResource(candidates)); err != nil {
			return err
		}
		if won, err = s.acquire(ctx, tx, r, candidates); err != nil {
			return err
		}
		if won, err = s.withoutDone(ctx, tx, won); err != nil {
			return err
		}
		return s.mark(ctx, tx, r, won)
	})
	if err != nil {
		return won, unknown, fmt.Errorf("claiming: %w", err)
	}
	return won, unknown, nil
}

// split sorts out the runs of jobs that this replica does not know.
func split(runs []jobs.Run, knows func(string) bool) (known []jobs.Run, unknown []string) {
	known = runs[:0]
	for _, r := range runs {
		if knows(r.Job) {
			known = append(known, r)
		} else if !slices.Contains(unknown, r.Job) {
			unknown = append(unknown, r.Job)
		}
	}
	return known, unknown
}

// firstPerResource keeps the first candidate of each resource: the others would find it held.
func firstPerResource(runs []jobs.Run) []jobs.Run {
	seen := make(map[string]bool, len(runs))
	first := runs[:0]
	for _, r := range runs {
		if !seen[r.Resource] {
			seen[r.Resource] = true
			first = append(first, r)
		}
	}
	return first
}

func (s *store) acquire(ctx context.Context, tx bun.Tx, r claimRequest, runs []jobs.Run) ([]claimed, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	locks, err := locking.NewStore(tx)
	if err != nil {
		return nil, err
	}
	reqs := make([]locking.AcquireRequest, len(runs))
	for i := range runs {
		reqs[i] = locking.AcquireRequest{
			Resource: runs[i].Resource, Owner: r.who.owner(&runs[i]), TTL: r.ttl, Grace: r.grace, Metadata: r.who.metadata(&runs[i]),
		}
	}
	sentAt := r.boot()
	results, err := locks.Acquire(ctx, reqs)
	if err != nil {
		return nil, fmt.Errorf("acquiring the locks of due runs: %w", err)
	}
	var won []claimed
	for i, res := range results {
		if res.Acquired {
			won = append(won, claimed{run: runs[i], lock: res.Record, takeover: res.Takeover, sentAt: sentAt})
		}
	}
	return won, nil
}

type mark struct {
	ID           int64  `json:"id"`
	Replica      string `json:"replica"`
	Owner        string `json:"owner"`
	FencingToken int64  `json:"fencing_token"`
}

// mark writes the claims into the ledger. Every claimed run must be marked: a lock without a run is never left behind.
func (s *store) mark(ctx context.Context, tx bun.Tx, r claimRequest, won []claimed) error {
	if len(won) == 0 {
		return nil
	}
	marks := make([]mark, len(won))
	index := make(map[int64]*claimed, len(won))
	for i := range won {
		c := &won[i]
		marks[i] = mark{ID: c.run.ID, Replica: r.who.Replica, Owner: c.lock.Owner, FencingToken: c.lock.FencingToken}
		index[c.run.ID] = c
	}
	rows, err := jobs.ScanRuns(ctx, tx.NewRaw(s.q.markRunning, encode(marks)))
	if err != nil {
		return fmt.Errorf("marking claimed runs: %w", err)
	}
	if len(rows) != len(won) {
		return fmt.Errorf("marking claimed runs: %d of %d rows", len(rows), len(won))
	}
	for _, row := range rows {
		index[row.ID].run = row
	}
	return s.audit(ctx, tx, takeovers(won))
}

func takeovers(won []claimed) []auditRow {
	var rows []auditRow
	for _, c := range won {
		if c.takeover {
			rows = append(rows, auditRow{
				Action: "lock.takeover", Outcome: "success", Job: c.run.Job, RunID: c.run.ID, Resource: c.run.Resource,
				Owner: c.run.Owner, FencingToken: c.run.FencingToken, Replica: c.run.Replica,
				Reason: "the previous owner's lock had expired",
			})
		}
	}
	return rows
}

// identity is who this replica is, in owners, metadata and rows.
type identity struct {
	Replica string
	Host    string
	PID     int
	Nonce   string // unique to this process: two daemons with one name never own the same lock
}

// owner is unique per grant: replica, process, run and attempt.
func (i identity) owner(r *jobs.Run) string {
	return fmt.Sprintf("%s/%s/%d/%d", i.Replica, i.Nonce, r.ID, r.Attempt)
}

func (i identity) metadata(r *jobs.Run) json.RawMessage {
	return detail(map[string]any{
		"replica": i.Replica, "host": i.Host, "pid": i.PID, "job": r.Job, "run_id": r.ID, "attempt": r.Attempt,
	})
}

// settleClaims reads what became of claims whose commit was not answered: those that are ours after all.
func (s *store) settleClaims(ctx context.Context, maybe []claimed) ([]claimed, error) {
	owners := make([]string, len(maybe))
	index := make(map[string]claimed, len(maybe))
	for i, c := range maybe {
		owners[i] = c.lock.Owner
		index[c.lock.Owner] = c
	}
	rows, err := jobs.ScanRuns(ctx, s.db.NewRaw(s.q.byOwner, encode(owners)))
	if err != nil {
		return nil, fmt.Errorf("settling claims: %w", err)
	}
	ours := make([]claimed, 0, len(rows))
	for _, row := range rows {
		if c := index[row.Owner]; c.lock.FencingToken == row.FencingToken {
			c.run = row
			ours = append(ours, c)
		}
	}
	return ours, nil
}
