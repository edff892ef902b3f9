package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/explain"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// holding lets a client hold a resource, and say who it is.
func holding(at, ttl time.Duration, resource, metadata string) step {
	return step{at, func(s *stage) {
		store, err := locking.NewStore(s.db.Main)
		require.NoError(s.t, err)
		res, err := store.Acquire(s.t.Context(), []locking.AcquireRequest{{
			Resource: resource, Owner: "client", TTL: ttl, Metadata: json.RawMessage(metadata),
		}})
		require.NoError(s.t, err)
		require.True(s.t, res[0].Acquired)
	}}
}

// waitedScenarios are of runs that started late: what was in the way is gone when somebody asks. They end between two renewals
// of their locks, which come each ten seconds, so that these are counted alike each time.
func waitedScenarios() map[string]asked {
	shared := func(j *jobs.Job) {
		var err error
		if j.Resource, err = jobs.ParseTemplate("db/orders", jobs.TemplateOptions{}); err != nil {
			panic(err)
		}
	}
	limited := func(j *jobs.Job) { j.Limits = map[string]int{"db": 1} }
	y := about("y", "2000-01-01T00:10:00Z")
	heldByAPerson := policyCase{
		jobs: one(func(j *jobs.Job) { j.Overlap, j.OnLost = jobs.OverlapQueue, jobs.OnLostHold }), work: takes(20 * time.Second),
		steps: []step{
			join(time.Minute+1500*time.Millisecond, "b"), crash(time.Minute+2500*time.Millisecond, "a"),
			act(2*time.Minute+30*time.Second, func(ctx context.Context, a *Actions, _ *stage) error {
				_, err := a.Cancel(ctx, RunRequest{ID: 2, By: "ann", Reason: "it is done"})
				return err
			}),
		},
		until: 2*time.Minute + 50*time.Second,
	}
	return map[string]asked{
		"waited for a lock of another job": {policyCase: policyCase{
			jobs: playing(tenth("x", shared), tenth("y", shared)), work: takes(37 * time.Second), until: 12 * time.Minute,
		}, ask: y},
		"waited for a lock of another job that goes on": {policyCase: policyCase{
			jobs: playing(tenth("x", shared), tenth("y", shared)), work: takes(37 * time.Second), until: ten(20 * time.Second),
		}, ask: y},
		"waited for a lock of a client": {policyCase: policyCase{
			jobs:  alone(nil),
			steps: []step{holding(9*time.Minute+50*time.Second, 40*time.Second, "job", `{"host": "db7", "pid": 412, "ticket": "OPS-12"}`)},
			until: 12 * time.Minute,
		}},
		"waited for a limit": {policyCase: policyCase{
			jobs: playing(tenth("x", limited), tenth("y", limited)), work: takes(37 * time.Second), until: 12 * time.Minute,
		}, ask: y},
		"waited for a slot": {policyCase: policyCase{
			jobs: playing(tenth("x", nil), tenth("y", nil)), capacity: 1, work: takes(37 * time.Second), until: 12 * time.Minute,
		}, ask: y},
		"waited for the end of a pause": {policyCase: policyCase{
			jobs:  alone(func(j *jobs.Job) { j.Jitter = 5 * time.Minute }),
			steps: []step{pause(ten(10*time.Millisecond), PauseRequest{Jobs: []string{"job"}, By: "ann", Reason: "a migration", For: 9 * time.Minute})},
			until: 19*time.Minute + 50*time.Second,
		}},
		"waited for labels": {policyCase: policyCase{
			jobs:   alone(func(j *jobs.Job) { j.OnlyOn = jobs.Labels{"zone": {"eu"}} }),
			labels: map[string]map[string]string{"a": {"zone": "asia"}, "b": {"zone": "eu"}},
			steps:  []step{join(12*time.Minute, "b")}, until: 13 * time.Minute,
		}},
		"waited twice": {policyCase: policyCase{
			jobs: playing(tenth("x", limited), tenth("y", limited)), work: takes(37 * time.Second),
			steps: []step{holding(ten(20*time.Second), 50*time.Second, "y", `{"replica": "somewhere"}`)}, until: 13 * time.Minute,
		}, ask: y},
		"waited for anybody": {policyCase: policyCase{
			jobs: alone(retried(jobs.Retry{Attempts: 2, Delay: 2 * time.Minute})), work: exits(1, 0),
			steps: []step{leave(ten(30*time.Second), "a"), join(18*time.Minute, "b")}, until: 19 * time.Minute,
		}},
		"running and its lock has expired": {policyCase: policyCase{
			jobs: alone(lost(jobs.OnLostHold)), work: takes(time.Hour), steps: []step{crash(ten(2500*time.Millisecond), "a")}, until: ten(50 * time.Second),
		}},
		"waited for a person": {policyCase: heldByAPerson, ask: about("job", "2000-01-01T00:02:00Z")},
	}
}

// A second replica, and a second look, take down nothing again; a new holder is something new.
func TestAWaitIsTakenDownOnce(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		x, y := named("x", func(j *jobs.Job) { j.Limits = map[string]int{"db": 1} })(b.t), named("y", nil)(b.t)
		rows := b.put(b.due(x, 30*time.Second), b.due(y, 20*time.Second), b.due(named("z", nil)(b.t), 10*time.Second))
		byHand := func(owner string) {
			res, err := b.locks().Acquire(b.ctx(), []locking.AcquireRequest{{
				Resource: "y", Owner: owner, TTL: time.Hour, Metadata: json.RawMessage(`{"ticket": "OPS-12"}`),
			}})
			require.NoError(b.t, err)
			require.True(b.t, res[0].Acquired)
		}
		look := func(replica string, free int) {
			require.NoError(b.t, b.noteWaits(b.ctx(), &lookout{
				replica: replica, runnable: func(job string) bool { return job != "z" }, capacity: 4, free: free,
			}))
		}
		byHand("one")
		look("a", 1)
		look("b", 1)
		assert.Equal(b.t, []string{"lock_held a"}, b.noted(rows[1].ID))
		assert.Empty(b.t, b.noted(rows[0].ID), "a free slot, and nothing in the way")

		look("b", 0)
		look("a", 0)
		assert.Equal(b.t, []string{"no_capacity b"}, b.noted(rows[0].ID))
		assert.Empty(b.t, b.noted(rows[2].ID), "a replica that cannot run the job says nothing about its slots")

		require.Len(b.t, b.mustClaim(1, "x"), 1)
		other := b.put(b.due(named("w", func(j *jobs.Job) { j.Limits = map[string]int{"db": 1} })(b.t), 5*time.Second))
		require.NoError(b.t, b.release("y", "one"))
		byHand("two")
		look("a", 1)
		assert.Equal(b.t, []string{"limit a"}, b.noted(other[0].ID))
		assert.Equal(b.t, []string{"lock_held a", "lock_held a"}, b.noted(rows[1].ID))

		story, err := Explain(b.ctx(), b.db, ExplainRequest{RunID: other[0].ID, Known: []*jobs.Job{x}})
		require.NoError(b.t, err)
		assert.Contains(b.t, story.Verdict, "the limit of the tag db is reached")
		_, err = b.db.ExecContext(b.ctx(), `DELETE FROM job_runs`)
		require.NoError(b.t, err)
		assert.Empty(b.t, b.noted(rows[1].ID), "it goes with its run")
	})
}

// What is due for too short a time, paused, or behind a running run of its job costs no row.
func TestWaitsThatAreNotTakenDown(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		queue := named("q", overlapping(jobs.OverlapQueue))(b.t)
		b.put(b.due(queue, 40*time.Minute))
		require.Len(b.t, b.mustClaim(1, "q"), 1)
		rows := b.put(b.due(queue, 35*time.Minute), b.due(named("p", nil)(b.t), 35*time.Minute))
		fresh := b.put(b.due(named("f", nil)(b.t), time.Minute))[0]
		rows = append(rows, fresh)
		pauses, err := OpenPauses(b.db)
		require.NoError(b.t, err)
		_, err = pauses.Pause(b.ctx(), PauseRequest{Jobs: []string{"p"}, By: "ann"})
		require.NoError(b.t, err)
		look := &lookout{replica: "a", runnable: func(string) bool { return true }, capacity: 1, after: 30 * time.Minute}
		require.NoError(b.t, b.noteWaits(b.ctx(), look))
		for i := range rows {
			assert.Empty(b.t, b.noted(rows[i].ID), rows[i].Job)
		}
		look.after = 0
		require.NoError(b.t, b.noteWaits(b.ctx(), look))
		assert.Equal(b.t, []string{"no_capacity a"}, b.noted(fresh.ID), "it was only not due for long enough")
	})
}

// noted is what was taken down of a run, with the replica that did.
func (b *bench) noted(id int64) (list []string) {
	b.t.Helper()
	rows := []struct {
		RunID  int64   `bun:"run_id"`
		Cause  string  `bun:"cause"`
		Holder string  `bun:"holder"`
		SeenAt any     `bun:"seen_at"`
		SeenBy string  `bun:"seen_by"`
		Detail rawText `bun:"detail"`
	}{}
	require.NoError(b.t, b.db.NewRaw(b.waits().read, encode([]int64{id})).Scan(b.ctx(), &rows))
	for _, r := range rows {
		list = append(list, r.Cause+" "+r.SeenBy)
	}
	return list
}

func (b *bench) release(resource, owner string) error {
	_, err := b.locks().Release(b.ctx(), []locking.Claim{{Resource: resource, Owner: owner}})
	return err
}

// The bubbles of the scenarios have SQLite: this is the same on both databases, from the plan to the end.
func TestWhatALateRunWaitedForIsTold(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		b.replica = "p"
		shared := func(name string) *jobs.Job {
			return named(name, func(j *jobs.Job) {
				tmpl, err := jobs.ParseTemplate("db/orders", jobs.TemplateOptions{})
				require.NoError(b.t, err)
				j.Resource = tmpl
			})(b.t)
		}
		rows := b.put(b.due(shared("first"), time.Minute), b.due(shared("second"), 50*time.Second))
		_, err := b.db.ExecContext(b.ctx(), `UPDATE job_runs SET created_at = due_at`) // as if they had been planned in time
		require.NoError(b.t, err)
		won := b.mustClaim(1, "first", "second")
		require.Len(b.t, won, 1)
		look := &lookout{replica: "q", runnable: func(string) bool { return true }, capacity: 4, free: 3}
		require.NoError(b.t, b.noteWaits(b.ctx(), look))
		renewals, left := 3, int64(12_400)
		for _, id := range []int64{rows[0].ID, rows[1].ID} {
			_, err := b.finish(b.ctx(), &report{run: b.get(id), outcome: jobs.OutcomeSucceeded, renewals: &renewals, leastLeft: &left})
			require.NoError(b.t, err)
			if id == rows[0].ID {
				require.Len(b.t, b.mustClaim(1, "first", "second"), 1)
			}
		}
		story, err := Explain(b.ctx(), b.db, ExplainRequest{RunID: rows[1].ID})
		require.NoError(b.t, err)
		assert.Contains(b.t, story.Verdict, "for the lock of db/orders")
		told := storyText(story)
		for _, text := range []string{
			", by replica p.", "The lock of db/orders was held by replica a (host h, pid 1) for run 1 of first since ",
			"; that run ended at ", "It waited for ", "Replica a renewed the lock 3 times, each with at least 12s to spare.", "next: cronlatch explain 1\n",
		} {
			assert.Contains(b.t, told, text)
		}
		for _, s := range story.Steps {
			if s.Kind == explain.Blocked {
				assert.Equal(b.t, jobs.ReasonLockHeld, s.Reason)
				assert.Equal(b.t, "q", s.Replica)
				assert.Contains(b.t, s.Facts, "holder")
				assert.NotContains(b.t, fmt.Sprint(s.Facts), won[0].lock.Owner, "whoever knows the owner may release the lock")
			}
		}
	})
}

// A run that waits for another one of its job may see it before that has begun; it is told of once, by when it ran.
func TestARunInTheWayIsToldOfOnce(t *testing.T) {
	t.Parallel()
	due := at("2026-05-01T06:00:00Z")
	after := func(d time.Duration) *time.Time { then := due.Add(d); return &then }
	r := jobs.Run{
		ID: 12, Job: "job", Occurrence: jobs.ScheduledOccurrence(due), Attempt: 1, Trigger: jobs.TriggerSchedule, ScheduledAt: due, DueAt: due,
		Resource: "job", Overlap: jobs.RuleQueue, OnLost: jobs.OnLostFail, MaxAttempts: 1, State: jobs.StateRunning, Replica: "a", FencingToken: 7,
		CreatedAt: due, StartedAt: after(time.Minute),
	}
	other := r
	other.ID, other.State, other.Outcome, other.StartedAt, other.FinishedAt = 11, jobs.StateFinished, jobs.OutcomeSucceeded, after(10*time.Second), r.StartedAt
	for state, steps := range map[jobs.State]int{jobs.StatePending: 1, jobs.StateHeld: 2} { // that it was held says more than when it ran
		f := &explain.Facts{
			Now: due.Add(time.Hour), Job: "job", Question: explain.Question{RunID: 12}, Run: &r, Attempts: []jobs.Run{r}, Beside: []jobs.Run{other},
			Waits: []explain.Wait{{
				RunID: 12, Cause: jobs.ReasonOverlap, Holder: "11", At: due.Add(2 * time.Second), By: "a",
				Detail: json.RawMessage(`{"unfinished_run": 11, "state": "` + string(state) + `"}`),
			}},
		}
		blocked := 0
		for _, step := range explain.Tell(f).Steps {
			if step.Kind == explain.Blocked && step.Reason == jobs.ReasonOverlap {
				blocked++
				assert.Contains(t, step.Text, "un 11 of the job had not ended")
			}
		}
		assert.Equal(t, steps, blocked, state)
	}
}
