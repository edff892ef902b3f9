package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/jobs"
)

func TestTwoReplicasInsertOneRow(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		const n = 3 * followBatch
		up := named("up", nil)(b.t)
		f := b.linked(up, named("next", comingAfter(jobs.AfterSuccess, "up"))(b.t))
		rows := make([]jobs.NewRun, n)
		now := b.clock().Truncate(time.Second)
		for i := range rows {
			rows[i] = up.EndedRun(now.Add(-time.Duration(i)*time.Second), jobs.OutcomeSucceeded, "", nil)
		}
		b.put(rows...)
		var inserted atomic.Int64
		var wg sync.WaitGroup
		var errs [3]error
		for i := range errs {
			wg.Go(func() {
				for range 4 {
					found, err := b.followUp(b.ctx(), f)
					errs[i] = errors.Join(errs[i], err)
					inserted.Add(int64(len(found.rows)))
				}
			})
		}
		wg.Wait()
		require.NoError(b.t, errors.Join(errs[:]...))
		assert.EqualValues(b.t, n, inserted.Load())
		assert.Equal(b.t, n, b.count("next"))
		assert.False(b.t, b.isMarked())
	})
}

func TestAReplicaThatDoesNotKnowTheFollowerLeavesTheRun(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		up := named("up", nil)(b.t)
		theirs := b.linked(up, named("next", comingAfter(jobs.AfterSuccess, "up"))(b.t))
		other := b.linked(named("other", nil)(b.t), named("later", comingAfter(jobs.AfterSuccess, "other"))(b.t))
		run := b.ended(b.due(up, 50*time.Second), jobs.OutcomeSucceeded)
		for _, ours := range []followers{followersOf(nil), other} {
			assert.Empty(b.t, b.mustFollow(ours))
			assert.True(b.t, b.get(run.ID).Follow)
		}
		assert.Len(b.t, b.mustFollow(theirs), 1)

		run = b.ended(b.due(up, 40*time.Second), jobs.OutcomeSucceeded)
		b.age(run, 23*time.Hour)
		assert.Empty(b.t, b.mustFollow(other))
		assert.True(b.t, b.get(run.ID).Follow)
		b.age(run, 2*time.Hour)
		found, err := b.followUp(b.ctx(), other)
		require.NoError(b.t, err)
		require.Len(b.t, found.stale, 1, "nobody has known for a day")
		assert.Equal(b.t, run.ID, found.stale[0].ID)
		assert.False(b.t, b.isMarked())
	})
}

// age moves the end of a run into the past.
func (b *bench) age(r jobs.Run, by time.Duration) {
	query := "UPDATE job_runs SET finished_at = finished_at - ? * interval '1 millisecond' WHERE id = ?"
	if b.q == &sqliteQueries {
		query = "UPDATE job_runs SET finished_at = finished_at - ? WHERE id = ?"
	}
	_, err := b.db.NewRaw(query, by.Milliseconds(), r.ID).Exec(b.ctx())
	require.NoError(b.t, err)
}

// There is one look a second on each replica, and mostly nothing to follow among millions of rows.
func TestLooksAreByTheSmallIndex(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		for name, plan := range map[string]string{"look": b.explain(b.q.look, "nonce"), "followed": b.explain(b.q.followed, `["up"]`, followBatch)} {
			assert.Contains(b.t, plan, "job_runs_follow", name)
		}
	})
}

// explain is the plan of a query when the table is large.
func (b *bench) explain(query string, args ...any) string {
	if b.q == &sqliteQueries {
		var steps []struct {
			ID      int    `bun:"id"`
			Parent  int    `bun:"parent"`
			NotUsed int    `bun:"notused"`
			Detail  string `bun:"detail"`
		}
		require.NoError(b.t, b.db.NewRaw("EXPLAIN QUERY PLAN "+query, args...).Scan(b.ctx(), &steps))
		return fmt.Sprint(steps)
	}
	var lines []string
	require.NoError(b.t, b.tx(b.ctx(), func(tx bun.Tx) error {
		if _, err := tx.NewRaw("SET LOCAL enable_seqscan = off").Exec(b.ctx()); err != nil {
			return err
		}
		return tx.NewRaw("EXPLAIN "+query, args...).Scan(b.ctx(), &lines)
	}))
	return strings.Join(lines, "\n")
}

// A follower is due when the other run ended, so that an outage in between does not start it days later.
func TestWhatFollowsIsMissedAfterALongOutage(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		up := named("up", nil)(b.t)
		f := b.linked(up, named("next", comingAfter(jobs.AfterSuccess, "up"))(b.t))
		b.age(b.ended(b.due(up, 50*time.Second), jobs.OutcomeSucceeded), 48*time.Hour)
		require.Len(b.t, b.mustFollow(f), 1)
		ended, _ := b.mustSettle()
		require.Len(b.t, ended, 1)
		assert.Equal(b.t, jobs.OutcomeMissed, ended[0].Outcome)
	})
}

// A crash at any statement leaves the run to be looked at again, and no row.
func TestFollowIsOneTransaction(t *testing.T) {
	t.Parallel()
	const crash = "SELECT no_such_column FROM job_runs"
	for name, at := range map[string]func(q *queries){
		"at the attempts": func(q *queries) { q.repeated = crash + " WHERE ? = ''" },
		"at the rows":     func(q *queries) { q.insertRuns = crash + " WHERE ? = ''" },
		"at the mark":     func(q *queries) { q.unmarkFollow = crash + " WHERE ? = ''" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(b *bench) {
				up := named("up", nil)(b.t)
				f := b.linked(up, named("next", comingAfter(jobs.AfterSuccess, "up"))(b.t))
				b.ended(b.due(up, 50*time.Second), jobs.OutcomeSucceeded)
				broken := *b.q
				at(&broken)
				_, err := (&store{db: b.db, q: &broken, d: b.d}).followUp(b.ctx(), f)
				require.Error(b.t, err)
				assert.Zero(b.t, b.count("next"))
				assert.True(b.t, b.isMarked())
				assert.Len(b.t, b.mustFollow(f), 1)
			})
		})
	}
}
