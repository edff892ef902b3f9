package scheduler

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// past is an instant of every minute's schedule, some hours ago.
func (b *bench) past() time.Time { return b.clock().Add(-6 * time.Hour).Truncate(time.Minute) }

func (b *bench) backfill(r BackfillRequest) []BackfillItem {
	r.By = "ann"
	items, err := b.actions().Backfill(b.ctx(), r)
	require.NoError(b.t, err)
	return items
}

// decisions are the items as "minutes since the first instant: why".
func decisions(items []BackfillItem) (all []string) {
	for _, i := range items {
		why := i.Why
		if why == "" {
			why = "run"
		}
		all = append(all, fmt.Sprintf("%.0f %s", i.ScheduledAt.Sub(items[0].ScheduledAt).Minutes(), why))
	}
	return all
}

func TestBackfillLeavesOutWhatIsDone(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j, from := named("j", nil)(b.t), b.past()
		outcomes := []jobs.Outcome{jobs.OutcomeSucceeded, jobs.OutcomeFailed, "", jobs.OutcomeMissed, jobs.OutcomeSkipped}
		for i, outcome := range outcomes {
			n := j.ScheduledRun(from.Add(time.Duration(i) * time.Minute))
			if outcome != "" {
				n.State, n.Outcome = jobs.StateFinished, &outcome
			}
			b.put(n)
		}
		r := BackfillRequest{Job: j, From: from, Until: from.Add(6 * time.Minute), Preview: true}
		want := []string{"0 already_succeeded", "1 run", "2 unfinished", "3 run", "4 run", "5 run", "6 run"}
		preview := b.backfill(r)
		assert.Equal(b.t, want, decisions(preview))
		assert.Equal(b.t, 5, b.rowCount(), "a preview does nothing")
		assert.Empty(b.t, b.deeds())
		assert.Zero(b.t, preview[1].RunID)
		assert.NotZero(b.t, preview[0].RunID, "which run it is that succeeded")

		r.Preview = false
		items := b.backfill(r)
		assert.Equal(b.t, want, decisions(items))
		assert.Equal(b.t, []string{"job.backfill ann -"}, b.deeds())
		run := b.run(items[1].RunID)
		assert.Equal(b.t, 2, run.Attempt)
		assert.Equal(b.t, jobs.TriggerBackfill, run.Trigger)
		assert.Equal(b.t, "ann", run.RequestedBy)
		assert.Equal(b.t, jobs.RuleWait, run.Overlap)
		assert.Nil(b.t, run.StartBy)
		assert.True(b.t, run.Backfilled())
		assert.Equal(b.t, 1, b.run(items[6].RunID).Attempt)

		assert.Equal(b.t, []string{"0 run", "1 unfinished", "2 unfinished", "3 unfinished", "4 unfinished", "5 unfinished", "6 unfinished"},
			decisions(b.backfill(BackfillRequest{Job: j, From: from, Until: from.Add(6 * time.Minute), Force: true})))
	})
}

func TestTheSpanOfABackfill(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j, from := named("j", nil)(b.t), b.past()
		ask := func(r BackfillRequest) error {
			_, err := b.actions().Backfill(b.ctx(), r)
			return err
		}
		inside := b.backfill(BackfillRequest{Job: j, From: from.Add(time.Nanosecond), Until: from.Add(119 * time.Second), Preview: true})
		assert.Len(b.t, inside, 1)
		future := b.backfill(BackfillRequest{Job: j, From: b.clock().Add(-90 * time.Second), Until: b.clock().Add(time.Hour), Preview: true})
		assert.NotEmpty(b.t, future)
		assert.LessOrEqual(b.t, len(future), 3, "what lies ahead is the schedule's")
		err := ask(BackfillRequest{Job: j, From: from.Add(-20_000 * time.Minute), Until: from, Preview: true})
		many, ok := errors.AsType[*TooManyError](err)
		require.True(b.t, ok, "%v", err)
		assert.Equal(b.t, 20_001, many.Count)
		err = ask(BackfillRequest{Job: j, From: from.AddDate(-3, 0, 0), Until: from})
		require.ErrorContains(b.t, err, "more than 100000 instants")
		require.ErrorIs(b.t, ask(BackfillRequest{Job: named("off", func(j *jobs.Job) { j.Enabled = false })(b.t)}), ErrDisabled)
		require.ErrorIs(b.t, ask(BackfillRequest{Job: named("hand", func(j *jobs.Job) { j.Schedule = nil })(b.t)}), ErrNoSchedule)
		assert.Zero(b.t, b.rowCount())
	})
}

func TestABackfillAndOncePer(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j, from := named("j", oncePerResource)(b.t), b.past()
		b.put(b.due(j, 30*time.Second))
		b.mustFinish(b.mustClaim(1, "j")[0], jobs.OutcomeSucceeded)
		r := BackfillRequest{Job: j, From: from, Until: from.Add(time.Minute)}
		assert.Equal(b.t, []string{"0 once_per", "1 once_per"}, decisions(b.backfill(r)))
		r.Force = true
		assert.Equal(b.t, []string{"0 run", "1 run"}, decisions(b.backfill(r)))
		for range 2 {
			ended, _ := b.mustSettle()
			require.Empty(b.t, ended)
			won := b.mustClaim(4, "j")
			require.Len(b.t, won, 1)
			b.mustFinish(won[0], jobs.OutcomeSucceeded)
		}
	})
}

// Scheduled and manual runs do not wait for what a backfill has still to do, nor are they skipped or do they replace it; what
// runs counts.
func TestABackfillBesideTheSchedule(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		for _, overlap := range []jobs.Overlap{jobs.OverlapSkip, jobs.OverlapQueue, jobs.OverlapReplace} {
			name := string(overlap)
			j, from := named(name, func(j *jobs.Job) { j.Overlap = overlap })(b.t), b.past()
			require.Len(b.t, b.backfill(BackfillRequest{Job: j, From: from, Until: from.Add(3 * time.Minute)}), 4)
			_, err := b.db.NewRaw("UPDATE job_runs SET due_at = due_at").Exec(b.ctx())
			require.NoError(b.t, err)
			scheduled := b.put(b.due(j, 30*time.Second))[0]
			ended, asked := b.mustSettle()
			assert.Empty(b.t, ended, name)
			assert.False(b.t, asked)
			won := b.mustClaim(1, name)
			require.Len(b.t, won, 1, name)
			assert.Equal(b.t, scheduled.ID, won[0].run.ID, "%s: it fell due first", name)
			b.mustFinish(won[0], jobs.OutcomeSucceeded)
			manual, _, err := b.actions().Start(b.ctx(), StartRequest{Job: j, By: "ann"})
			require.NoError(b.t, err, "a backfill that waits is not in the way")
			_, err = b.cancel(manual.ID)
			require.NoError(b.t, err)

			won = b.mustClaim(4, name)
			require.Len(b.t, won, 1, "one at a time")
			assert.True(b.t, won[0].run.Backfilled())
			if overlap == jobs.OverlapSkip {
				_, _, err = b.actions().Start(b.ctx(), StartRequest{Job: j, By: "ann"})
				_, busy := errors.AsType[*BusyError](err)
				assert.True(b.t, busy, "what runs counts: %v", err)
				b.put(b.due(j, 10*time.Second))
				ended, _ = b.mustSettle()
				require.Len(b.t, ended, 1)
				assert.Equal(b.t, jobs.ReasonOverlap, ended[0].Reason)
			}
			_, err = b.db.NewRaw("DELETE FROM job_runs").Exec(b.ctx())
			require.NoError(b.t, err)
		}
	})
}

func TestTheConcurrencyOfABackfill(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j, from := named("j", func(j *jobs.Job) {
			tmpl, err := jobs.ParseTemplate("j-YYYY-MM-DD-HH-mm", jobs.TemplateOptions{})
			require.NoError(b.t, err)
			j.Resource = tmpl
		})(b.t), b.past()
		items := b.backfill(BackfillRequest{Job: j, From: from, Until: from.Add(9 * time.Minute), Concurrency: 3})
		require.Len(b.t, items, 10)
		p := &Pauses{b.store}
		_, err := p.Pause(b.ctx(), PauseRequest{Jobs: []string{"j"}, By: "t"})
		require.NoError(b.t, err)
		assert.Empty(b.t, b.mustClaim(8, "j"), "a pause holds it back")
		_, err = p.Resume(b.ctx(), []string{"j"}, "t")
		require.NoError(b.t, err)
		var order []int64
		won := b.mustClaim(8, "j")
		for len(won) > 0 {
			assert.LessOrEqual(b.t, len(won), 3)
			assert.Empty(b.t, b.mustClaim(8, "j"), "three at a time")
			for _, c := range won {
				order = append(order, c.run.ID)
				b.mustFinish(c, jobs.OutcomeSucceeded)
			}
			won = b.mustClaim(8, "j")
		}
		for i := range items {
			assert.Contains(b.t, order[i/3*3:min(i/3*3+3, 10)], items[i].RunID, "in their order, three by three")
		}
	})
}

// A failed attempt of a backfill has the whole policy of retries before it, and its further attempts are the backfill's.
func TestABackfillIsRetried(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j, from := named("j", func(j *jobs.Job) { j.Retry = jobs.Retry{Attempts: 2, Backoff: jobs.BackoffConstant} })(b.t), b.past()
		for range 2 { // the second time begins with the third attempt
			items := b.backfill(BackfillRequest{Job: j, From: from, Until: from})
			require.Equal(b.t, []string{"0 run"}, decisions(items))
			for _, follows := range []bool{true, false} {
				won := b.mustClaim(1, "j")
				require.Len(b.t, won, 1)
				assert.True(b.t, won[0].run.Backfilled())
				done, err := b.finish(b.ctx(), &report{run: won[0].run, outcome: jobs.OutcomeFailed, reason: jobs.ReasonExit})
				require.NoError(b.t, err)
				assert.Equal(b.t, follows, done.next != nil)
			}
		}
		assert.Equal(b.t, 4, b.rowCount())
	})
}

func TestBackfillTwiceAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j, from := named("j", nil)(b.t), b.past()
		var mu sync.Mutex
		made := map[time.Time]int{}
		together(4, func(int) {
			items, err := b.actions().Backfill(b.ctx(), BackfillRequest{Job: j, From: from, Until: from.Add(100 * time.Minute), By: "ann"})
			mu.Lock()
			defer mu.Unlock()
			assert.NoError(b.t, err)
			for _, i := range items {
				if i.Why == "" {
					made[i.ScheduledAt]++
				}
			}
		})
		require.Len(b.t, made, 101)
		for at, n := range made {
			assert.Equal(b.t, 1, n, at)
		}
		assert.Equal(b.t, 101, b.rowCount())
		assert.Len(b.t, b.deeds(), 1)
	})
}
