package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// report is how a run ended on this replica.
type report struct {
	run      jobs.Run
	outcome  jobs.Outcome
	reason   jobs.Reason
	facts    map[string]any
	exitCode *int
	signal   string
	output   jobs.Output
	chunks   bool // there may be chunks of the output, which the output replaces
	// again says that on_lost decides what follows: the run was lost or drained.
	again     bool
	renewals  *int          // of the lock; nil is not known
	leastLeft *int64        // in milliseconds, to its deadline when a renewal was confirmed; nil when there was none
	took      time.Duration // from the start to the death of the process tree; 0 when nothing was started
}

// finished is what became of a report.
type finished struct {
	late bool      // the run was already given away: the outcome was kept aside
	next *jobs.Run // the next attempt, if one follows
}

// finish records the outcome, the next attempt where one is due, and the output, and then releases the lock, all in one
// transaction: another replica sees either nothing or everything. It may be repeated after an unknown commit: the
// second time finds the row as the first one left it.
func (s *store) finish(ctx context.Context, r *report) (done finished, err error) {
	err = s.tx(ctx, func(tx bun.Tx) error {
		done = finished{}
		rows, err := s.end(ctx, tx, []ending{{
			ID: r.run.ID, FromState: jobs.StateRunning, FencingToken: r.run.FencingToken, Outcome: r.outcome,
			Reason: r.reason, Detail: detail(r.facts), ExitCode: r.exitCode, Signal: r.signal,
			Renewals: r.renewals, LeastLeft: r.leastLeft,
		}})
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			done.late, err = s.keepAside(ctx, tx, r)
			return err
		}
		if done.next, err = s.follow(ctx, tx, r, &rows[0]); err != nil {
			return err
		}
		if err := s.addMarker(ctx, tx, &rows[0]); err != nil {
			return err
		}
		if err := s.storeOutput(ctx, tx, r); err != nil {
			return err
		}
		return release(ctx, tx, &r.run)
	})
	if err != nil {
		return finished{}, fmt.Errorf("finishing run %d: %w", r.run.ID, err)
	}
	return done, nil
}

// keepAside stores an outcome that came too late beside the one that was recorded meanwhile. It is not late when the
// row already says what we report: an earlier try was committed, only its answer was lost.
func (s *store) keepAside(ctx context.Context, tx bun.Tx, r *report) (late bool, err error) {
	rows, err := jobs.ScanRuns(ctx, tx.NewRaw(s.q.byID, r.run.ID))
	if err != nil {
		return false, fmt.Errorf("reading a run that was given away: %w", err)
	}
	if len(rows) == 1 && rows[0].FencingToken == r.run.FencingToken && rows[0].Outcome == r.outcome && rows[0].Reason == r.reason {
		return false, nil
	}
	aside := detail(map[string]any{
		"outcome": r.outcome, "reason": r.reason, "fencing_token": r.run.FencingToken, "exit_code": r.exitCode,
		"signal": r.signal, "replica": r.run.Replica,
	})
	if _, err := tx.NewRaw(s.q.lateOutcome, string(aside), r.run.ID).Exec(ctx); err != nil {
		return false, fmt.Errorf("keeping a late outcome aside: %w", err)
	}
	return true, s.audit(ctx, tx, []auditRow{{
		Action: "run.finish", Outcome: "failure", Job: r.run.Job, RunID: r.run.ID, Resource: r.run.Resource,
		Owner: r.run.Owner, FencingToken: r.run.FencingToken, Replica: r.run.Replica, Detail: aside,
		Reason: "late outcome refused: the run was already given away",
	}})
}

// follow inserts the attempt that comes after a finished one. What decides is the row as it is now: somebody may have asked
// for the run's end since it was claimed.
func (s *store) follow(ctx context.Context, tx bun.Tx, r *report, row *jobs.Run) (*jobs.Run, error) {
	switch {
	case r.again:
		return s.insertNext(ctx, tx, row.NextAttempt)
	case r.outcome == jobs.OutcomeFailed || r.outcome == jobs.OutcomeTimedOut:
		return s.insertNext(ctx, tx, row.RetryAttempt)
	default:
		return nil, nil //nolint:nilnil // nothing follows, and that is no error
	}
}

func (s *store) insertNext(ctx context.Context, tx bun.Tx, next func(now time.Time) (jobs.NewRun, bool)) (*jobs.Run, error) {
	now, err := s.now(ctx, tx)
	if err != nil {
		return nil, err
	}
	n, ok := next(now)
	if !ok {
		return nil, nil //nolint:nilnil // nothing follows, and that is no error
	}
	rows, err := s.insertRuns(ctx, tx, []jobs.NewRun{n})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// storeOutput stores nothing when there is nothing: then the chunks of a run whose output was lost are all that is left of it.
func (s *store) storeOutput(ctx context.Context, tx bun.Tx, r *report) error {
	if r.output.Total == 0 {
		return nil
	}
	_, err := tx.NewRaw(s.q.storeOutput, r.run.ID, bytesOrEmpty(r.output.Head), bytesOrEmpty(r.output.Tail), r.output.Total).Exec(ctx)
	if err != nil {
		return fmt.Errorf("storing the output: %w", err)
	}
	if !r.chunks {
		return nil
	}
	return s.clearChunks(ctx, tx, r.run.ID)
}

// bytesOrEmpty: a nil slice would be NULL.
func bytesOrEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// release gives the lock back. That it was lost before is no error here: the run was still ours to finish.
func release(ctx context.Context, tx bun.Tx, run *jobs.Run) error {
	locks, err := locking.NewStore(tx)
	if err != nil {
		return err
	}
	_, err = locks.Release(ctx, []locking.Claim{{Resource: run.Resource, Owner: run.Owner, FencingToken: run.FencingToken}})
	if err != nil {
		return fmt.Errorf("releasing the lock: %w", err)
	}
	return nil
}

// lostRun is a run that recovery found, with what follows it.
type lostRun struct {
	run  jobs.Run
	next *jobs.Run
}

// recoverLost finishes every running run that has no live lock with its own token, and applies on_lost. That the
// resource is meanwhile held by somebody else does not matter: the token tells.
func (s *store) recoverLost(ctx context.Context, who identity) (lost []lostRun, err error) {
	err = s.tx(ctx, func(tx bun.Tx) error {
		lost = nil
		running, err := jobs.ScanRuns(ctx, tx.NewRaw(s.q.lost))
		if err != nil {
			return fmt.Errorf("selecting lost runs: %w", err)
		}
		endings := make([]ending, len(running))
		for i, r := range running {
			endings[i] = ending{
				ID: r.ID, FromState: jobs.StateRunning, FencingToken: r.FencingToken, Outcome: jobs.OutcomeLost,
				Reason: jobs.ReasonReplicaLost, Detail: detail(map[string]any{"replica": r.Replica, "recovered_by": who.Replica}),
			}
		}
		ended, err := s.end(ctx, tx, endings)
		if err != nil {
			return err
		}
		var rows []auditRow
		for i := range ended {
			next, err := s.insertNext(ctx, tx, ended[i].NextAttempt)
			if err != nil {
				return err
			}
			lost = append(lost, lostRun{ended[i], next})
			rows = append(rows, lostAudit(&ended[i], who))
		}
		return s.audit(ctx, tx, rows)
	})
	if err != nil {
		return nil, fmt.Errorf("recovering lost runs: %w", err)
	}
	return lost, nil
}

func lostAudit(r *jobs.Run, who identity) auditRow {
	return auditRow{
		Action: "run.lose", Outcome: "success", Job: r.Job, RunID: r.ID, Resource: r.Resource, Owner: r.Owner,
		FencingToken: r.FencingToken, Replica: who.Replica, Reason: string(r.Reason), Detail: r.Detail,
	}
}
