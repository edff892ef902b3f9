package scheduler

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun/dialect"

	"github.com/cronlatch/cronlatch/jobs"
)

func TestSeveralJobsMeetByOccurrence(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		one, two := named("one", nil)(b.t), named("two", nil)(b.t)
		f := b.linked(one, two, named("report", comingAfter(jobs.AfterSuccess, "one", "two"))(b.t))
		early, late := b.due(one, 50*time.Second), b.due(one, 40*time.Second)
		b.ended(early, jobs.OutcomeSucceeded)
		b.ended(late, jobs.OutcomeSucceeded)
		assert.Empty(b.t, b.mustFollow(f), "one of two")
		assert.False(b.t, b.isMarked(), "the other one's end looks again")
		last := b.ended(two.ScheduledRun(late.ScheduledAt), jobs.OutcomeSucceeded)
		rows := b.mustFollow(f)
		require.Len(b.t, rows, 1)
		assert.Equal(b.t, jobs.StatePending, rows[0].State)
		assert.Equal(b.t, late.Occurrence, rows[0].Occurrence)
		assert.Equal(b.t, *last.FinishedAt, rows[0].DueAt)
		require.Len(b.t, rows[0].Follows.Runs, 2)
		assert.Equal(b.t, "one", rows[0].Follows.Runs[0].Job, "in the order of the definition")
	})
}

// Two jobs with different schedules have the month in common.
func TestSeveralJobsMeetByPeriod(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		sales, stock := named("sales-YYYY-MM", nil)(b.t), named("stock:YYYY-MM", nil)(b.t)
		f := b.linked(sales, stock, named("report", comingAfter(jobs.AfterSuccess, stock.Name, sales.Name))(b.t))
		first := b.ended(sales.ScheduledRun(at("2026-05-01T06:00:00Z")), jobs.OutcomeSucceeded)
		b.ended(stock.ScheduledRun(at("2026-04-30T23:00:00Z")), jobs.OutcomeSucceeded)
		assert.Empty(b.t, b.mustFollow(f), "another month")
		second := b.ended(stock.ScheduledRun(at("2026-05-20T06:00:00Z")), jobs.OutcomeSucceeded)
		b.ended(stock.ScheduledRun(at("2026-05-21T06:00:00Z")), jobs.OutcomeFailed)
		rows := b.mustFollow(f)
		require.Len(b.t, rows, 1)
		assert.Equal(b.t, "p:2026-05", rows[0].Occurrence)
		assert.Equal(b.t, jobs.StatePending, rows[0].State)
		assert.Equal(b.t, second.ScheduledAt, rows[0].ScheduledAt, "the latest of them")
		assert.Equal(b.t, first.ID, rows[0].Follows.Runs[1].RunID)
		assert.Equal(b.t, second.ID, rows[0].Follows.Runs[0].RunID, "of several in a period the first one counts")

		b.ended(sales.ScheduledRun(at("2026-05-02T06:00:00Z")), jobs.OutcomeSucceeded)
		assert.Empty(b.t, b.mustFollow(f), "once for a period")
		assert.False(b.t, b.isMarked())
	})
}

func TestTheFirstThatFailsDecides(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		one, two := named("one", nil)(b.t), named("two", nil)(b.t)
		f := b.linked(one, two, named("report", comingAfter(jobs.AfterSuccess, "one", "two"))(b.t))
		row := b.due(one, 50*time.Second)
		bad := b.ended(row, jobs.OutcomeFailed)
		rows := b.mustFollow(f)
		require.Len(b.t, rows, 1, "nobody waits for the other one")
		assert.Equal(b.t, jobs.OutcomeSkipped, rows[0].Outcome)
		assert.Equal(b.t, jobs.ReasonUpstream, rows[0].Reason)
		assert.JSONEq(b.t, fmt.Sprintf(
			`{"upstream": [{"job": "one", "run_id": %d, "outcome": "failed", "reason": "exit", "on": "success"}]}`, bad.ID), string(rows[0].Detail))
		b.ended(two.ScheduledRun(row.ScheduledAt), jobs.OutcomeSucceeded)
		assert.Empty(b.t, b.mustFollow(f))
		assert.Len(b.t, b.runsOf("report"), 1)
	})
}

// Many look at the same moment at which the runs end, each of them in a transaction of its own.
func TestBothEndAtTheSameMoment(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		const rounds = 200
		one, two := named("one", nil)(b.t), named("two", nil)(b.t)
		f := b.linked(one, two, named("report", comingAfter(jobs.AfterSuccess, "one", "two"))(b.t))
		now := b.clock().Truncate(time.Second)
		for i := range rounds {
			runs := b.put(one.ScheduledRun(now.Add(-time.Duration(i)*time.Second)), two.ScheduledRun(now.Add(-time.Duration(i)*time.Second)))
			begin := make(chan struct{})
			var wg sync.WaitGroup
			var errs [4]error
			for n := range errs {
				wg.Go(func() {
					<-begin
					if n < len(runs) {
						_, errs[n] = b.end(b.ctx(), b.db, []ending{{ID: runs[n].ID, FromState: jobs.StatePending, Outcome: jobs.OutcomeSucceeded}})
					}
					_, err := b.followUp(b.ctx(), f)
					errs[n] = errors.Join(errs[n], err)
				})
			}
			close(begin)
			wg.Wait()
			require.NoError(b.t, errors.Join(errs[:]...))
			require.Equal(b.t, i+1, b.count("report"))
			require.False(b.t, b.isMarked(), "whoever had a run in hand has finished")
		}
	})
}

// The one interleaving in which the end of a run could be lost: the first look has read that the other run has not ended, and is
// not committed when that ends and is looked at. The second look sees both, whether the first one is committed or not.
func TestALookThatIsUnderWayHidesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		if b.d == dialect.SQLite {
			b.t.Skip("a second transaction waits for the first")
		}
		one, two := named("one", nil)(b.t), named("two", nil)(b.t)
		f := b.linked(one, two, named("report", comingAfter(jobs.AfterSuccess, "one", "two"))(b.t))
		row := b.due(one, 50*time.Second)
		b.ended(row, jobs.OutcomeSucceeded)
		tx, err := b.db.BeginTx(b.ctx(), nil)
		require.NoError(b.t, err)
		found, err := b.followIn(b.ctx(), tx, f)
		require.NoError(b.t, err)
		require.Empty(b.t, found.rows)

		b.ended(two.ScheduledRun(row.ScheduledAt), jobs.OutcomeSucceeded)
		assert.Len(b.t, b.mustFollow(f), 1)
		require.NoError(b.t, tx.Commit())
		assert.False(b.t, b.isMarked())
	})
}

// The look reads the other run after it took its own: with one statement for both, two looks could each miss the other's.
func TestALookSeesWhatEndedAfterItTookItsRow(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		if b.d == dialect.SQLite {
			b.t.Skip("a second transaction waits for the first")
		}
		one, two := named("one", nil)(b.t), named("two", nil)(b.t)
		f := b.linked(one, two, named("report", comingAfter(jobs.AfterSuccess, "one", "two"))(b.t))
		row := b.due(one, 50*time.Second)
		b.ended(row, jobs.OutcomeSucceeded)
		tx, err := b.db.BeginTx(b.ctx(), nil)
		require.NoError(b.t, err)
		_, err = jobs.ScanRuns(b.ctx(), tx.NewRaw(b.q.followed, `["one", "two"]`, followBatch)) // it has the first one
		require.NoError(b.t, err)
		b.ended(two.ScheduledRun(row.ScheduledAt), jobs.OutcomeSucceeded)
		found, err := b.followIn(b.ctx(), tx, f)
		require.NoError(b.t, err)
		require.Len(b.t, found.rows, 1)
		require.NoError(b.t, tx.Commit())
	})
}
