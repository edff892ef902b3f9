package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/jobs"
)

const day = 24 * time.Hour

// began is when these tests began: the days are those before it, however long they take.
var began = time.Now().UTC().Truncate(time.Second) //nolint:gochecknoglobals // one instant for all

// ago is half a day and so many days ago.
func ago(days int) time.Time { return began.Add(-day/2 - time.Duration(days)*day) }

// history inserts runs of a job that have ended when they were due: the outcome of each, by days ago.
func (b *bench) history(j *jobs.Job, outcomes map[int]jobs.Outcome) {
	b.t.Helper()
	for days, outcome := range outcomes {
		row := j.EndedRun(ago(days), outcome, "", nil)
		row.Follow = false
		b.put(row)
	}
	b.exec(`UPDATE job_runs SET finished_at = scheduled_at WHERE state = 'finished' AND finished_at > scheduled_at`)
}

func (b *bench) exec(query string, args ...any) {
	b.t.Helper()
	_, err := b.db.NewRaw(query, args...).Exec(b.ctx())
	require.NoError(b.t, err)
}

// kept are the runs that are there: job, days ago, attempt after the first.
func (b *bench) kept() string {
	b.t.Helper()
	l, err := jobs.OpenLedger(b.db)
	require.NoError(b.t, err)
	var all []string
	runs, err := l.List(b.ctx(), jobs.RunFilter{Limit: 10_000})
	require.NoError(b.t, err)
	slices.SortFunc(runs, func(a, b jobs.Run) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), b.ScheduledAt.Compare(a.ScheduledAt), cmp.Compare(a.Attempt, b.Attempt))
	})
	for i := range runs {
		r := &runs[i]
		days := int(ago(0).Sub(r.ScheduledAt) / day)
		text := fmt.Sprintf("%s-%d", r.Job, days)
		if r.Attempt > 1 {
			text += fmt.Sprintf("#%d", r.Attempt)
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func (b *bench) prune(k *Keeping) Pruned {
	b.t.Helper()
	r, err := OpenRetention(b.db)
	require.NoError(b.t, err)
	done, err := r.Prune(b.ctx(), k)
	require.NoError(b.t, err)
	return done
}

// every is the same outcome on each of so many days, from today on back.
func every(days int, outcome jobs.Outcome) map[int]jobs.Outcome {
	m := map[int]jobs.Outcome{}
	for i := range days {
		m[i] = outcome
	}
	return m
}

func TestOldRunsAreDeleted(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		short := named("short", func(j *jobs.Job) { j.History = jobs.History{Keep: 2, KeepFor: 3 * day} })(b.t)
		b.history(short, every(8, jobs.OutcomeSucceeded))
		many := named("many", func(j *jobs.Job) { j.History = jobs.History{Keep: 5} })(b.t)
		b.history(many, every(8, jobs.OutcomeSucceeded))
		removed := named("removed", nil)(b.t)
		b.history(removed, every(8, jobs.OutcomeSkipped))
		done := b.prune(&Keeping{Default: jobs.History{Keep: 3, KeepFor: 4 * day}, Jobs: []*jobs.Job{short, many}})
		assert.Equal(b.t, 5+3+3, done.Runs) // of removed the first one stays: it never succeeded
		assert.Equal(b.t, "many-0 many-1 many-2 many-3 many-4 "+
			"removed-0 removed-1 removed-2 removed-3 removed-7 short-0 short-1 short-2", b.kept())
		assert.Zero(b.t, b.prune(&Keeping{Default: jobs.History{Keep: 3, KeepFor: 4 * day}, Jobs: []*jobs.Job{short, many}}))
	})
}

func TestTheDefaultHistory(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("job", nil)(b.t)
		b.history(j, every(120, jobs.OutcomeSucceeded))
		assert.Equal(b.t, 20, b.prune(&Keeping{}).Runs, "the newest 100 are kept, although 90 days are over")
		young := named("young", nil)(b.t)
		for i := range 150 {
			b.put(young.EndedRun(ago(1).Add(time.Duration(i)*time.Minute), jobs.OutcomeSucceeded, "", nil))
		}
		assert.Zero(b.t, b.prune(&Keeping{}).Runs, "they are not 90 days old")
	})
}

func TestTheLastSuccessAndFailureStay(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("job", func(j *jobs.Job) { j.History = jobs.History{Keep: 1, KeepFor: day} })(b.t)
		b.history(j, map[int]jobs.Outcome{
			2: jobs.OutcomeSkipped, 3: jobs.OutcomeMissed, 5: jobs.OutcomeTimedOut, 6: jobs.OutcomeFailed,
			8: jobs.OutcomeSucceeded, 9: jobs.OutcomeSucceeded,
		})
		never := named("never", func(j *jobs.Job) { j.History = jobs.History{Keep: 1, KeepFor: day} })(b.t)
		b.history(never, map[int]jobs.Outcome{2: jobs.OutcomeFailed, 3: jobs.OutcomeFailed, 7: jobs.OutcomeFailed})
		b.prune(&Keeping{Jobs: []*jobs.Job{j, never}})
		assert.Equal(b.t, "job-2 job-5 job-8 never-2 never-7", b.kept(), "max_age counts from the first of those that never succeeded")
	})
}

func TestRunsThatOthersNeedStay(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("job", func(j *jobs.Job) { j.History = jobs.History{Keep: 1, KeepFor: day} })(b.t)
		b.history(j, every(9, jobs.OutcomeSucceeded))
		mark := func(column string, days int) {
			b.exec(`UPDATE job_runs SET `+column+` = true WHERE scheduled_at = ?`, dbtime.Arg(b.d, ago(days)))
		}
		mark("follow", 3)
		mark("notify", 4)
		held := j.ScheduledRun(ago(5)) // the attempt after that of five days ago waits for a person
		held.Attempt, held.State = 2, jobs.StateHeld
		b.put(held)
		b.history(j, map[int]jobs.Outcome{20: jobs.OutcomeFailed})
		over := j.EndedRun(ago(6), jobs.OutcomeSucceeded, "", nil)
		over.Attempt = 2
		b.put(over) // it has ended just now
		b.prune(&Keeping{Jobs: []*jobs.Job{j}})
		assert.Equal(b.t, "job-0 job-3 job-4 job-5 job-5#2 job-6#2 job-20", b.kept())
	})
}

// A run that a fan-in waits for stays while the other one is on its way; one that waits in vain does not stay for ever.
func TestWhatAFanInWaitsForStays(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		short := func(j *jobs.Job) { j.History = jobs.History{Keep: 1, KeepFor: day} }
		one, two := named("one", short)(b.t), named("two", short)(b.t)
		both := named("both", func(j *jobs.Job) {
			short(j)
			comingAfter(jobs.AfterSuccess, "one", "two")(j)
		})(b.t)
		k := &Keeping{Jobs: []*jobs.Job{one, two, both}}
		require.NoError(b.t, jobs.Link(k.Jobs))
		b.history(one, every(1, jobs.OutcomeSucceeded))
		b.history(one, map[int]jobs.Outcome{10: jobs.OutcomeSucceeded, 11: jobs.OutcomeSucceeded, 12: jobs.OutcomeSucceeded})
		waits := two.ScheduledRun(ago(10))
		waits.State = jobs.StateHeld
		b.put(waits)
		waits = two.ScheduledRun(ago(11))
		waits.State = jobs.StateHeld
		b.put(waits)
		b.put(both.EndedRun(ago(11), jobs.OutcomeSkipped, "", nil)) // this fan-in has been decided
		b.prune(k)
		assert.Equal(b.t, "both-11 one-0 one-10 two-10 two-11", b.kept())
	})
}

func TestWhatAFanInWaitsForByPeriodStays(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		short := func(j *jobs.Job) { j.History = jobs.History{Keep: 1, KeepFor: day} }
		one, two := named("one-YYYY", short)(b.t), named("two-YYYY", short)(b.t)
		both := named("both", func(j *jobs.Job) {
			short(j)
			comingAfter(jobs.AfterSuccess, "one-YYYY", "two-YYYY")(j)
		})(b.t)
		k := &Keeping{Jobs: []*jobs.Job{one, two, both}}
		require.NoError(b.t, jobs.Link(k.Jobs))
		b.history(one, every(1, jobs.OutcomeSucceeded))
		b.history(one, map[int]jobs.Outcome{10: jobs.OutcomeSucceeded, 11: jobs.OutcomeSucceeded, 12: jobs.OutcomeSucceeded})
		b.exec(`UPDATE job_runs SET period = '2020' WHERE scheduled_at < ?`, dbtime.Arg(b.d, ago(9)))
		b.prune(k)
		assert.Equal(b.t, "one-YYYY-0 one-YYYY-12", b.kept(), "of several in a period the first one counts")
		done := both.EndedRun(ago(3), jobs.OutcomeSkipped, "", nil)
		done.Occurrence = jobs.PeriodOccurrence("2020")
		b.put(done)
		b.prune(k)
		assert.Equal(b.t, "both-3 one-YYYY-0", b.kept(), "it has been decided")
	})
}

func TestOutputGoesWithItsRun(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		run := b.running("prints")
		require.True(b.t, b.handIn(&run, 0, "x"))
		b.finishWith(run, "x", false) // an answer was lost, and a chunk came after all
		assert.Equal(b.t, 1, b.chunks(run.ID))
		lost := b.running("lost")
		require.True(b.t, b.handIn(&lost, 0, "x"))
		b.finishWith(lost, "", true)
		done := b.prune(&Keeping{})
		assert.Equal(b.t, Pruned{Chunks: 1}, done, "of the lost run they are all that is left")
		assert.Equal(b.t, 1, b.chunks(lost.ID))
		b.exec(`UPDATE job_runs SET scheduled_at = ?0, finished_at = ?0, occurrence = occurrence || 'x'`, dbtime.Arg(b.d, ago(10)))
		next := b.running("prints")
		b.finishWith(next, "y", false)
		next = b.running("lost")
		b.finishWith(next, "y", false)
		assert.Equal(b.t, 2, b.prune(&Keeping{Default: jobs.History{Keep: 1, KeepFor: day}}).Runs)
		assert.Zero(b.t, b.chunks(lost.ID))
		var outputs int
		require.NoError(b.t, b.db.NewRaw(`SELECT count(*) FROM run_outputs`).Scan(b.ctx(), &outputs))
		assert.Equal(b.t, 2, outputs)
	})
}

func TestOtherTablesAreBounded(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		arg := func(days int) any { return dbtime.Arg(b.d, ago(days)) }
		life := func(name string, from, until int) {
			b.exec(`INSERT INTO replicas (name, boot_nonce, host, pid, version, definitions_hash, capacity, joined_at, seen_at)
				VALUES (?, ?, 'h', 1, '1', '', 1, ?, ?)`, name, name, arg(from), arg(until))
		}
		for i, name := range []string{"f", "e", "d", "c"} {
			life(name, 300-10*i, 291-10*i)
		}
		life("old", 400, 80)
		pause := func(job string, until int, open bool) {
			b.exec(`INSERT INTO job_pauses (job, paused_by, paused_at, until_at, resumed_at) VALUES (?, 'me', ?, ?, ?)`,
				job, arg(until+1), arg(until), map[bool]any{false: arg(until)}[open])
		}
		pause("ended", 100, false)
		pause("over", 95, true)
		pause("young", 5, false)
		b.exec(`INSERT INTO job_pauses (job, paused_by, paused_at) VALUES ('paused', 'me', ?)`, arg(500))
		for _, state := range []string{"pending", "sent", "given_up"} {
			for _, days := range []int{29, 31} {
				b.exec(`INSERT INTO outbox (key, channel, event, state, created_at, due_at, done_at) VALUES (?, 'c', 'e', ?, ?, ?, ?)`,
					fmt.Sprint(state, days), state, arg(days), arg(days), arg(days))
			}
		}
		b.exec(`INSERT INTO plan_positions (job, schedule_hash, position) VALUES ('stopped', '', ?)`, arg(266))
		assert.Equal(b.t, Pruned{Replicas: 2, Messages: 2}, b.prune(&Keeping{}))
		assert.Equal(b.t, "c d old", b.names(`SELECT name FROM replicas ORDER BY name`), "d says since when nobody was there")
		assert.Equal(b.t, "given_up29 pending29 pending31 sent29", b.names(`SELECT key FROM outbox ORDER BY key`))

		b.exec(`UPDATE plan_positions SET position = ?`, arg(0))
		assert.Equal(b.t, Pruned{Replicas: 1, Pauses: 2}, b.prune(&Keeping{}))
		assert.Equal(b.t, "c old", b.names(`SELECT name FROM replicas ORDER BY name`))
		assert.Equal(b.t, "paused young", b.names(`SELECT job FROM job_pauses ORDER BY job`))
	})
}

func (b *bench) names(query string) string {
	b.t.Helper()
	var names []string
	require.NoError(b.t, b.db.NewRaw(query).Scan(b.ctx(), &names))
	return strings.Join(names, " ")
}
