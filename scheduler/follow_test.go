package scheduler

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// comingAfter makes a job that has no schedule of its own; on is what each upstream job must do.
func comingAfter(on jobs.AfterOn, upstream ...string) func(*jobs.Job) {
	return func(j *jobs.Job) {
		j.Schedule = nil
		for _, name := range upstream {
			j.After = append(j.After, jobs.After{Job: name, On: on})
		}
	}
}

// hook makes a hook of the job up.
func hook(on jobs.AfterOn) func(*jobs.Job) {
	return func(j *jobs.Job) {
		comingAfter(on, "up")(j)
		j.HookOf, j.Overlap = "up", jobs.OverlapAllow
	}
}

func (b *bench) linked(list ...*jobs.Job) followers {
	require.NoError(b.t, jobs.Link(list))
	return followersOf(list)
}

// ended is a row that has ended without the detour over a claim.
func (b *bench) ended(row jobs.NewRun, outcome jobs.Outcome) jobs.Run {
	r := b.put(row)[0]
	ended, err := b.end(b.ctx(), b.db, []ending{{ID: r.ID, FromState: jobs.StatePending, Outcome: outcome, Reason: jobs.ReasonExit}})
	require.NoError(b.t, err)
	require.Len(b.t, ended, 1)
	return ended[0]
}

func (b *bench) mustFollow(f followers) []jobs.Run {
	found, err := b.followUp(b.ctx(), f)
	require.NoError(b.t, err)
	return found.rows
}

func (b *bench) isMarked() bool {
	g, err := b.look(b.ctx())
	require.NoError(b.t, err)
	return g.Follow
}

func (b *bench) count(job string) (n int) {
	require.NoError(b.t, b.db.NewRaw("SELECT count(*) FROM job_runs WHERE job = ?", job).Scan(b.ctx(), &n))
	return n
}

// jobsOf are the jobs of the rows with the given state, sorted.
func jobsOf(rows []jobs.Run, state jobs.State) []string {
	names := []string{}
	for _, r := range rows {
		if r.State == state {
			names = append(names, r.Job)
		}
	}
	slices.Sort(names)
	return names
}

func TestWhatFollowsEachOutcome(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		up := named("up", nil)(b.t)
		list := []*jobs.Job{up}
		for _, on := range []jobs.AfterOn{jobs.AfterSuccess, jobs.AfterFailure, jobs.AfterAlways} {
			list = append(list, named(string(on), comingAfter(on, "up"))(b.t))
		}
		for _, on := range []jobs.AfterOn{jobs.AfterSuccess, jobs.AfterFailure, jobs.AfterAbort} {
			list = append(list, named("up#on_"+string(on), hook(on))(b.t))
		}
		f := b.linked(list...)
		success := []string{"always", "success", "up#on_success"}
		failure := []string{"always", "failure", "up#on_failure"}
		abort := []string{"always", "up#on_abort"}
		for i, tt := range []struct {
			outcome jobs.Outcome
			run     []string
			skipped []string // the others have no row
		}{
			{jobs.OutcomeSucceeded, success, []string{"failure"}},
			{jobs.OutcomeFailed, failure, []string{"success"}},
			{jobs.OutcomeTimedOut, failure, []string{"success"}},
			{jobs.OutcomeLost, failure, []string{"success"}},
			{jobs.OutcomeCancelled, abort, []string{"failure", "success"}},
			{jobs.OutcomeSkipped, []string{}, []string{"always", "failure", "success"}},
			{jobs.OutcomeMissed, []string{}, []string{"always", "failure", "success"}},
		} {
			run := b.ended(b.due(up, time.Duration(60-i)*time.Second), tt.outcome)
			require.True(b.t, b.isMarked())
			rows := b.mustFollow(f)
			assert.Equal(b.t, tt.run, jobsOf(rows, jobs.StatePending), tt.outcome)
			assert.Equal(b.t, tt.skipped, jobsOf(rows, jobs.StateFinished), tt.outcome)
			for _, r := range rows {
				assert.Equal(b.t, run.Occurrence, r.Occurrence)
			}
			assert.False(b.t, b.isMarked(), "somebody has looked")
			assert.Empty(b.t, b.mustFollow(f))
		}
	})
}

func TestTheRowThatFollows(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		up := named("up", nil)(b.t)
		next := named("next", func(j *jobs.Job) {
			comingAfter(jobs.AfterSuccess, "up")(j)
			j.Resource, _ = jobs.ParseTemplate("next-YYYY-MM", jobs.TemplateOptions{})
		})(b.t)
		f := b.linked(up, next, named("up#on_failure", hook(jobs.AfterFailure))(b.t))
		good := b.ended(b.due(up, 50*time.Second), jobs.OutcomeSucceeded)
		r := b.mustFollow(f)[0]
		assert.Equal(b.t, jobs.TriggerAfter, r.Trigger)
		assert.Equal(b.t, good.ScheduledAt, r.ScheduledAt)
		assert.Equal(b.t, *good.FinishedAt, r.DueAt, "when the other one ended")
		assert.Equal(b.t, good.FinishedAt.Add(next.StartDeadline), *r.StartBy)
		assert.Equal(b.t, next.Resource.At(good.ScheduledAt), r.Resource)
		assert.Equal(b.t, jobs.Follows{Kind: jobs.TriggerAfter, Runs: []jobs.Followed{
			{Job: "up", RunID: good.ID, Outcome: jobs.OutcomeSucceeded, Reason: jobs.ReasonExit},
		}}, r.Follows)
		won := b.mustClaim(1, "next")
		require.Len(b.t, won, 1)
		assert.Equal(b.t, r.Follows, won[0].run.Follows, "its process is told")

		bad := b.ended(b.due(up, 40*time.Second), jobs.OutcomeFailed)
		rows := b.mustFollow(f)
		require.Len(b.t, rows, 2)
		assert.Equal(b.t, jobs.OutcomeSkipped, rows[0].Outcome)
		assert.Equal(b.t, jobs.ReasonUpstream, rows[0].Reason)
		assert.Equal(b.t, jobs.TriggerAfter, rows[0].Trigger)
		assert.JSONEq(b.t, fmt.Sprintf(
			`{"upstream": [{"job": "up", "run_id": %d, "outcome": "failed", "reason": "exit", "on": "success"}]}`, bad.ID), string(rows[0].Detail))
		assert.Equal(b.t, jobs.TriggerOnFailure, rows[1].Trigger)
		assert.Equal(b.t, "up#on_failure@"+bad.Occurrence, rows[1].Resource)
	})
}

// Only the last attempt is followed, whoever decides about it.
func TestARunWithAFurtherAttemptIsNotOver(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		up := named("up", func(j *jobs.Job) { retrying(2)(j); j.OnLost = jobs.OnLostHold })(b.t)
		f := b.linked(up, named("next", comingAfter(jobs.AfterAlways, "up"))(b.t))
		first := b.put(b.due(up, 50*time.Second))[0]
		b.mustFinish(b.mustClaim(1, "up")[0], jobs.OutcomeFailed)
		assert.Empty(b.t, b.mustFollow(f), "it is tried again")
		assert.False(b.t, b.isMarked())

		won := b.mustClaim(1, "up")
		require.Len(b.t, won, 1)
		held := b.mustFinish(won[0], jobs.OutcomeLost).next
		require.Equal(b.t, jobs.StateHeld, held.State)
		assert.Empty(b.t, b.mustFollow(f), "a person decides")
		assert.False(b.t, b.isMarked())

		_, err := b.end(b.ctx(), b.db, []ending{{
			ID: held.ID, FromState: jobs.StateHeld, Outcome: jobs.OutcomeCancelled, Reason: jobs.ReasonRequested,
		}})
		require.NoError(b.t, err)
		rows := b.mustFollow(f)
		require.Len(b.t, rows, 1)
		assert.Equal(b.t, first.Occurrence, rows[0].Occurrence)
		assert.Equal(b.t, held.ID, rows[0].Follows.Runs[0].RunID)
	})
}

// A run's end and its further attempt are one transaction; an attempt that ends while nobody looks must hide the first.
func TestBothAttemptsAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		up := named("up", retrying(2))(b.t)
		f := b.linked(up, named("good", comingAfter(jobs.AfterSuccess, "up"))(b.t), named("bad", comingAfter(jobs.AfterFailure, "up"))(b.t))
		b.put(b.due(up, 50*time.Second))
		b.mustFinish(b.mustClaim(1, "up")[0], jobs.OutcomeFailed)
		b.mustFinish(b.mustClaim(1, "up")[0], jobs.OutcomeSucceeded)
		rows := b.mustFollow(f)
		assert.Equal(b.t, []string{"good"}, jobsOf(rows, jobs.StatePending))
		assert.Equal(b.t, []string{"bad"}, jobsOf(rows, jobs.StateFinished))
	})
}

func TestARunByHandIsFollowedToo(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		up, other := named("up", nil)(b.t), named("other", nil)(b.t)
		f := b.linked(up, other, named("next", comingAfter(jobs.AfterSuccess, "up"))(b.t),
			named("both", comingAfter(jobs.AfterSuccess, "up", "other"))(b.t))
		for _, j := range []*jobs.Job{up, other} {
			b.start(j, "one")
			b.mustFinish(b.mustClaim(1, j.Name)[0], jobs.OutcomeSucceeded)
		}
		rows := b.mustFollow(f)
		require.Len(b.t, rows, 1, "several runs belong together by the calendar only")
		assert.Equal(b.t, "next", rows[0].Job)
		assert.Equal(b.t, "m:one", rows[0].Occurrence)
		assert.False(b.t, b.isMarked())
	})
}

func TestADisabledFollowerIsSkipped(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		up := named("up", nil)(b.t)
		f := b.linked(up, named("next", func(j *jobs.Job) { comingAfter(jobs.AfterSuccess, "up")(j); j.Enabled = false })(b.t))
		for i, o := range []jobs.Outcome{jobs.OutcomeSucceeded, jobs.OutcomeFailed} {
			b.ended(b.due(up, time.Duration(50-i)*time.Second), o)
			rows := b.mustFollow(f)
			require.Len(b.t, rows, 1)
			assert.Equal(b.t, jobs.OutcomeSkipped, rows[0].Outcome)
			assert.Equal(b.t, jobs.ReasonDisabled, rows[0].Reason)
		}
	})
}

func TestAChainOfThree(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		first := named("a", nil)(b.t)
		f := b.linked(first, named("b", comingAfter(jobs.AfterSuccess, "a"))(b.t), named("c", comingAfter(jobs.AfterSuccess, "b"))(b.t),
			named("alarm", comingAfter(jobs.AfterFailure, "b"))(b.t))
		run := b.ended(b.due(first, 50*time.Second), jobs.OutcomeSucceeded)
		require.Len(b.t, b.mustFollow(f), 1)
		b.mustFinish(b.mustClaim(1, "b")[0], jobs.OutcomeSucceeded)
		rows := b.mustFollow(f)
		assert.Equal(b.t, []string{"c"}, jobsOf(rows, jobs.StatePending))
		assert.Equal(b.t, run.Occurrence, rows[0].Occurrence)

		b.ended(b.due(first, 40*time.Second), jobs.OutcomeFailed)
		assert.Equal(b.t, []string{"b"}, jobsOf(b.mustFollow(f), jobs.StateFinished))
		require.True(b.t, b.isMarked(), "what was skipped is followed, too")
		rows = b.mustFollow(f)
		assert.Equal(b.t, []string{"alarm", "c"}, jobsOf(rows, jobs.StateFinished), "nothing is lost in the middle, and a skip is no failure")
		assert.False(b.t, b.isMarked())
	})
}

// The row of an outage that counts many instants has one row after it, which counts as many.
func TestASummaryRowIsFollowedOnce(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		up := named("up", nil)(b.t)
		f := b.linked(up, named("next", comingAfter(jobs.AfterAlways, "up"))(b.t), named("up#on_failure", hook(jobs.AfterFailure))(b.t))
		instants, _ := up.Schedule.Between(at("2026-05-01T00:00:00Z"), at("2026-05-01T20:00:00Z"), maxInstants)
		o := outage{job: up, instants: instants, now: at("2026-05-03T00:00:00Z"), rules: planRules{late: time.Second}}
		b.put(o.runs()...)
		found, err := b.followUp(b.ctx(), f)
		require.NoError(b.t, err)
		assert.True(b.t, found.more)
		require.Len(b.t, found.rows, followBatch)
		var facts struct {
			Upstream []followedFacts
			From     time.Time `json:"missed_from"`
			Until    time.Time `json:"missed_until"`
			Count    int       `json:"missed_count"`
		}
		i := slices.IndexFunc(found.rows, func(r jobs.Run) bool { return r.Occurrence == "s:2026-05-01T00:01:00Z" })
		require.NoError(b.t, json.Unmarshal(found.rows[i].Detail, &facts))
		assert.Equal(b.t, 200, facts.Count)
		assert.Equal(b.t, at("2026-05-01T00:01:00Z"), facts.From)
		assert.Equal(b.t, at("2026-05-01T03:20:00Z"), facts.Until)
		require.Len(b.t, facts.Upstream, 1)
		assert.Equal(b.t, jobs.OutcomeMissed, facts.Upstream[0].Outcome)
		for found.more {
			found, err = b.followUp(b.ctx(), f)
			require.NoError(b.t, err)
		}
		assert.Equal(b.t, maxMissedRows+1, b.count("next"))
		assert.Empty(b.t, b.runsOf("up#on_failure"))
		assert.False(b.t, b.isMarked())
	})
}

// Caught-up instants are not skipped because of each other, nor is what follows them, along the whole chain.
func TestWhatFollowsCaughtUpRunsIsNotSkipped(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		up := named("up", nil)(b.t)
		free := named("free", func(j *jobs.Job) { comingAfter(jobs.AfterSuccess, "up")(j); j.Overlap = jobs.OverlapAllow })(b.t)
		f := b.linked(up, free, named("next", comingAfter(jobs.AfterSuccess, "up"))(b.t),
			named("last", comingAfter(jobs.AfterSuccess, "next"))(b.t))
		now := b.clock()
		for i := range 2 {
			b.ended(up.CatchUpRun(now.Add(time.Duration(i-60)*time.Minute).Truncate(time.Minute), now), jobs.OutcomeSucceeded)
		}
		require.Len(b.t, b.mustFollow(f), 4)
		for range 2 {
			ended, _ := b.mustSettle()
			require.Empty(b.t, ended)
			won := b.mustClaim(10, "next")
			require.Len(b.t, won, 1, "one after another")
			b.mustFinish(won[0], jobs.OutcomeSucceeded)
			for _, r := range b.mustFollow(f) {
				assert.Equal(b.t, jobs.RuleWait, r.Overlap)
			}
		}
		assert.Len(b.t, b.mustClaim(10, "free"), 2, "side by side as ever")

		retried := b.due(up, 50*time.Second)
		retried.Attempt, retried.Overlap = 2, jobs.RuleWait
		b.ended(retried, jobs.OutcomeSucceeded)
		assert.Equal(b.t, jobs.RuleSkip, b.mustFollow(f)[1].Overlap, "a further attempt was not caught up")
	})
}

func TestOncePerResourceHoldsForWhatFollows(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		up, other := named("up-YYYY", nil)(b.t), named("other-YYYY", nil)(b.t)
		next := named("next", func(j *jobs.Job) { comingAfter(jobs.AfterSuccess, up.Name, other.Name)(j); oncePerResource(j) })(b.t)
		f := b.linked(up, other, next)
		for i, year := range []string{"2024", "2025"} { // two periods, one resource
			row, second := up.ScheduledRun(at(year+"-05-01T00:00:00Z")), other.ScheduledRun(at(year+"-06-01T00:00:00Z"))
			b.ended(row, jobs.OutcomeSucceeded)
			b.ended(second, jobs.OutcomeSucceeded)
			rows := b.mustFollow(f)
			require.Len(b.t, rows, 1)
			require.Equal(b.t, "p:"+year, rows[0].Occurrence)
			ended, _ := b.mustSettle()
			require.Len(b.t, ended, i)
			if i == 0 {
				b.mustFinish(b.mustClaim(1, "next")[0], jobs.OutcomeSucceeded)
			} else {
				assert.Equal(b.t, jobs.ReasonOncePer, ended[0].Reason)
			}
		}
	})
}
