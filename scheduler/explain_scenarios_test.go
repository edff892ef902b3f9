package scheduler

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// scenarios are all of them. The file of each has its name.
func scenarios() map[string]asked {
	all := map[string]asked{}
	for _, part := range []map[string]asked{
		endScenarios(), reportedScenarios(), lostScenarios(), blockedScenarios(), plannedScenarios(), chainScenarios(), askedScenarios(), futureScenarios(), absentScenarios(), waitedScenarios(),
	} {
		for name, c := range part {
			if _, twice := all[name]; twice {
				panic("two scenarios are called " + name)
			}
			all[name] = c
		}
	}
	return all
}

func TestExplainScenarios(t *testing.T) {
	t.Parallel()
	tellAll(t, scenarios())
}

// Every file belongs to a scenario or is one of those of a hand-made ledger.
func TestNoStoryIsLeftOver(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(storiesDir)
	require.NoError(t, err)
	names := map[string]bool{}
	for name := range scenarios() {
		names[strings.ReplaceAll(name, " ", "-")+".txt"] = true
	}
	for _, name := range handMade() {
		names[name+".txt"] = true
	}
	for _, e := range entries {
		assert.True(t, names[e.Name()], "%s is of no scenario", e.Name())
	}
	assert.Len(t, entries, len(names))
}

func ten(d time.Duration) time.Duration { return 10*time.Minute + d }

func ends(r jobs.Result) func(*jobs.Attempt) work {
	return func(*jobs.Attempt) work { return work{takes: 5 * time.Second, end: &r} }
}

func refused(err error) func(*jobs.Attempt) work {
	return func(*jobs.Attempt) work { return work{refused: err} }
}

func alone(change func(*jobs.Job)) []func(testing.TB) *jobs.Job { return playing(tenth("job", change)) }

func endScenarios() map[string]asked {
	until := ten(30 * time.Second)
	return map[string]asked{
		"succeeded": {policyCase: policyCase{jobs: alone(nil), until: until}},
		"succeeded at the second attempt": {policyCase: policyCase{
			jobs: alone(retried(jobs.Retry{Attempts: 2, Delay: 10 * time.Second})), work: exits(1, 0), until: ten(time.Minute),
		}},
		"failed exit":           {policyCase: policyCase{jobs: alone(nil), work: exits(3), until: until}},
		"failed exit attempts":  {policyCase: policyCase{jobs: alone(retried(jobs.Retry{Attempts: 2})), work: exits(1, 2), until: until}},
		"failed exit and waits": {policyCase: policyCase{jobs: alone(retried(jobs.Retry{Attempts: 2, Delay: time.Hour})), work: exits(1, 2), until: until}},
		"skipped exit": {policyCase: policyCase{
			jobs: alone(func(j *jobs.Job) { j.ExitCodes = jobs.ExitCodes{Skip: []int{75}} }), work: exits(75), until: until,
		}},
		"failed signal": {policyCase: policyCase{jobs: alone(nil), work: ends(jobs.Result{Cause: jobs.CauseExited, Signal: "SIGSEGV"}), until: until}},
		"failed start": {policyCase: policyCase{
			jobs: alone(nil), work: refused(&jobs.StartError{ExitCode: 127, Message: "fork/exec /bin/nothing:\n\x1b[31mno such file"}), until: until,
		}},
		"timed out timeout": {policyCase: policyCase{
			jobs: alone(func(j *jobs.Job) { j.Timeout = 13 * time.Second }), work: takes(time.Hour), until: ten(time.Minute), // not at a beat
		}},
	}
}

// reportedScenarios are of work that is no process.
func reportedScenarios() map[string]asked {
	all := map[string]asked{}
	for _, reason := range []jobs.Reason{jobs.ReasonHTTPStatus, jobs.ReasonHTTPBody, jobs.ReasonSQL, jobs.ReasonError, jobs.ReasonPanic} {
		all["failed "+string(reason)] = asked{policyCase: policyCase{
			jobs: alone(nil), work: ends(jobs.Result{Cause: jobs.CauseExited, ExitCode: 1, Reason: reason}), until: ten(30 * time.Second),
		}}
	}
	return all
}

func lostScenarios() map[string]asked {
	story := func(o jobs.OnLost) policyCase {
		return policyCase{
			jobs: alone(lost(o)), work: takes(57 * time.Second), until: 15 * time.Minute,
			steps: []step{join(ten(1500*time.Millisecond), "b"), crash(ten(2500*time.Millisecond), "a")},
		}
	}
	drained := story(jobs.OnLostRetry)
	drained.steps[1] = leave(ten(2200*time.Millisecond), "a")
	return map[string]asked{
		"lost replica_lost fail":  {policyCase: story(jobs.OnLostFail)},
		"lost replica_lost retry": {policyCase: story(jobs.OnLostRetry)},
		"lost replica_lost hold":  {policyCase: story(jobs.OnLostHold)},
		"cancelled drain":         {policyCase: drained, ask: run(jobs.ReasonDrain)},
		"lost lease_lost": {policyCase: policyCase{
			jobs: alone(nil), work: ends(jobs.Result{Cause: jobs.CauseDeadline, Signal: "SIGKILL"}), until: ten(30 * time.Second),
		}},
		"lost stale_start": {policyCase: policyCase{
			jobs: alone(nil), work: refused(&jobs.StartError{Lost: jobs.ReasonStaleStart, Message: "the lock's time was over"}), until: ten(30 * time.Second),
		}},
		"lost supervisor": {policyCase: policyCase{
			jobs: alone(nil), work: ends(jobs.Result{Cause: jobs.CauseSupervisorGone}), until: ten(30 * time.Second),
		}},
	}
}

// blockedScenarios are of runs that waited for something.
func blockedScenarios() map[string]asked {
	short := func(change func(*jobs.Job)) func(*jobs.Job) {
		return func(j *jobs.Job) {
			j.StartDeadline = 30 * time.Second
			if change != nil {
				change(j)
			}
		}
	}
	limited := func(name string) func(testing.TB) *jobs.Job {
		return tenth(name, short(func(j *jobs.Job) { j.Limits = map[string]int{"db": 1} }))
	}
	return map[string]asked{
		"skipped overlap": {policyCase: policyCase{jobs: one(overlapping(jobs.OverlapSkip)), work: takes(130 * time.Second), until: 4*time.Minute + 30*time.Second}, ask: run(jobs.ReasonOverlap)},
		"skipped overlap queue": {policyCase: policyCase{
			jobs: one(overlapping(jobs.OverlapQueue)), work: takes(250 * time.Second), until: 4*time.Minute + 30*time.Second,
		}, ask: run(jobs.ReasonOverlap)},
		"missed overlap": {policyCase: policyCase{
			jobs: one(short(overlapping(jobs.OverlapQueue))), work: takes(250 * time.Second), until: 3*time.Minute + 50*time.Second,
		}, ask: run(jobs.ReasonOverlap)},
		"succeeded after a wait": {policyCase: policyCase{
			jobs: one(overlapping(jobs.OverlapQueue)), work: takes(83 * time.Second), until: 3*time.Minute + 50*time.Second,
		}, ask: about("job", "2000-01-01T00:02:00Z")},
		"cancelled replaced": {policyCase: policyCase{
			jobs: one(replacing(7 * time.Second)), work: takes(90 * time.Second), until: 3*time.Minute + 30*time.Second,
		}, ask: run(jobs.ReasonReplaced)},
		"cancelled replaced while it waited": {policyCase: policyCase{
			jobs: one(replacing(130 * time.Second)), work: takes(time.Hour), until: 5*time.Minute + 30*time.Second,
		}, ask: about("job", "2000-01-01T00:02:00Z")},
		"skipped once_per": {policyCase: policyCase{jobs: one(oncePerResource), work: takes(time.Second), until: 150 * time.Second}, ask: run(jobs.ReasonOncePer)},
		"missed limit": {policyCase: policyCase{
			jobs: playing(limited("x"), limited("y")), work: takes(5 * time.Minute), until: ten(time.Minute),
		}, ask: run(jobs.ReasonLimit)},
		"missed no_capacity": {policyCase: policyCase{
			jobs: playing(tenth("x", nil), tenth("y", short(nil))), capacity: 1, work: takes(5 * time.Minute), until: ten(time.Minute),
		}, ask: run(jobs.ReasonNoCapacity)},
		"missed lock_held": {policyCase: policyCase{
			jobs: alone(short(nil)), steps: []step{lock(9*time.Minute+50*time.Second, time.Hour)}, until: ten(time.Minute),
		}},
		"missed no_matching_replica": {policyCase: policyCase{
			jobs:   alone(short(func(j *jobs.Job) { j.OnlyOn = jobs.Labels{"zone": {"eu", "us"}} })),
			labels: map[string]map[string]string{"a": {"zone": "asia", "disk": "ssd"}}, until: ten(time.Minute),
		}},
		"missed paused at its deadline": {policyCase: policyCase{
			jobs:  alone(func(j *jobs.Job) { j.StartDeadline, j.Jitter = 30*time.Second, 5*time.Minute }),
			steps: []step{pause(ten(10*time.Millisecond), PauseRequest{Jobs: []string{"job"}, By: "ann", Reason: "a migration", For: 9 * time.Minute})},
			until: 17 * time.Minute,
		}},
	}
}

// plannedScenarios are of instants that never had a chance.
func plannedScenarios() map[string]asked {
	catch := func(p jobs.CatchUpPolicy, window time.Duration) func(*jobs.Job) {
		return func(j *jobs.Job) { j.CatchUp = jobs.CatchUp{Policy: p, Window: window, Max: 1} }
	}
	only := func(names ...string) func(s *stage) { // from here on replicas know only these
		return func(s *stage) {
			all := s.known
			s.known = nil
			for _, j := range all {
				for _, n := range names {
					if j.Name == n {
						s.known = append(s.known, j)
					}
				}
			}
			s.join("b")
			s.known = all
		}
	}
	return map[string]asked{
		"skipped disabled": {policyCase: policyCase{jobs: alone(func(j *jobs.Job) { j.Enabled = false }), until: ten(30 * time.Second)}},
		"missed paused": {policyCase: policyCase{
			jobs: alone(nil), steps: []step{pause(9*time.Minute, PauseRequest{Jobs: []string{"job"}, By: "ann", Reason: "a migration", For: 5 * time.Minute})},
			until: 12 * time.Minute,
		}},
		"missed paused all": {policyCase: policyCase{
			jobs: alone(nil), steps: []step{pause(9*time.Minute, PauseRequest{Jobs: []string{""}, By: "ann"})}, until: 12 * time.Minute,
		}},
		"missed no_replica": {policyCase: policyCase{
			jobs:  alone(catch(jobs.CatchUpNone, 0)),
			steps: []step{leave(12*time.Minute, "a"), join(41*time.Minute, "b")}, until: 42 * time.Minute,
		}, ask: run(jobs.ReasonNoReplica)},
		"missed catch_up": {policyCase: policyCase{
			jobs: playing(tenth("job", catch(jobs.CatchUpLatest, 5*time.Minute)), tenth("other", nil)),
			steps: []step{
				{12 * time.Minute, only("other")}, leave(13*time.Minute, "a"), join(36*time.Minute, "c"),
			},
			until: 37 * time.Minute,
		}, ask: run(jobs.ReasonCatchUp)},
		"caught up": {policyCase: policyCase{
			jobs:  alone(catch(jobs.CatchUpLatest, time.Hour)),
			steps: []step{leave(12*time.Minute, "a"), join(35*time.Minute, "b")}, until: 36 * time.Minute,
		}},
		"missed no_replica in one row": {policyCase: policyCase{
			jobs:  one(catch(jobs.CatchUpNone, 0)),
			steps: []step{leave(90*time.Second, "a"), join(20*time.Hour, "b")}, until: 20*time.Hour + 10*time.Second,
		}, ask: about("job", "2000-01-01T01:00:00Z")},
	}
}

func chainScenarios() map[string]asked {
	follows := func(name string, on jobs.AfterOn, up ...string) func(testing.TB) *jobs.Job {
		return func(tb testing.TB) *jobs.Job {
			tb.Helper()
			j := named(name, nil)(tb)
			j.Schedule = nil
			for _, u := range up {
				j.After = append(j.After, jobs.After{Job: u, On: on})
			}
			return j
		}
	}
	chain := func(codes ...int) policyCase {
		return policyCase{
			jobs: playing(tenth("job", nil), follows("then", jobs.AfterSuccess, "job")), until: ten(30 * time.Second),
			work: func(a *jobs.Attempt) work {
				if a.Job.Name == "job" {
					return work{takes: 5 * time.Second, code: codes[0]}
				}
				return work{takes: 5 * time.Second}
			},
		}
	}
	disabled := chain(0)
	disabled.jobs[1] = func(tb testing.TB) *jobs.Job {
		tb.Helper()
		j := follows("then", jobs.AfterSuccess, "job")(tb)
		j.Enabled = false
		return j
	}
	waiting := chain(0)
	waiting.until = ten(2 * time.Second)
	return map[string]asked{
		"skipped upstream":          {policyCase: chain(1), ask: about("then", "")},
		"followed":                  {policyCase: chain(0)},
		"succeeded after another":   {policyCase: chain(0), ask: about("then", "")},
		"skipped disabled follower": {policyCase: disabled, ask: about("then", "")},
		"future after another":      {policyCase: waiting, ask: about("then", "")},
	}
}

// act is an action of a person.
func act(at time.Duration, do func(ctx context.Context, a *Actions, s *stage) error) step {
	return step{at, func(s *stage) {
		actions, err := OpenActions(s.db.Main, &s.counted)
		require.NoError(s.t, err)
		require.NoError(s.t, do(s.t.Context(), actions, s))
	}}
}

func cancelFirst(at time.Duration) step {
	return act(at, func(ctx context.Context, a *Actions, _ *stage) error {
		_, err := a.Cancel(ctx, RunRequest{ID: 1, By: "ann", Reason: "the wrong day"})
		return err
	})
}

func askedScenarios() map[string]asked {
	retry := func(at time.Duration, id int64) step {
		return act(at, func(ctx context.Context, a *Actions, _ *stage) error {
			_, err := a.Retry(ctx, RetryRequest{RunRequest: RunRequest{ID: id, By: "bob", Reason: "the disk is there again"}})
			return err
		})
	}
	held := lostScenarios()["lost replica_lost hold"].policyCase
	held.steps = append(held.steps, retry(14*time.Minute, 2))
	return map[string]asked{
		"cancelled requested": {policyCase: policyCase{
			jobs: alone(nil), work: takes(time.Minute), steps: []step{cancelFirst(ten(5 * time.Second))}, until: ten(50 * time.Second),
		}},
		"cancelled requested before it began": {policyCase: policyCase{
			jobs: alone(nil), steps: []step{lock(9*time.Minute, time.Hour), cancelFirst(ten(5 * time.Second))}, until: ten(50 * time.Second),
		}},
		"running and asked to end": {policyCase: policyCase{
			jobs: alone(func(j *jobs.Job) { j.KillAfter = 30 * time.Second }), work: takes(time.Minute),
			steps: []step{cancelFirst(ten(5 * time.Second))}, until: ten(9 * time.Second),
		}},
		"manual": {policyCase: policyCase{jobs: alone(nil), steps: []step{trigger(5*time.Minute, "mine")}, until: 6 * time.Minute}},
		"retried by a person": {policyCase: policyCase{
			jobs: alone(nil), work: exits(1, 0), steps: []step{retry(12*time.Minute, 1)}, until: 13 * time.Minute,
		}},
		"held and let go": {policyCase: held},
		"backfilled": {policyCase: policyCase{
			jobs: alone(nil), until: ten(50 * time.Second), work: takes(20 * time.Second),
			steps: []step{act(ten(10*time.Second), func(ctx context.Context, a *Actions, s *stage) error {
				_, err := a.Backfill(ctx, BackfillRequest{Job: s.known[0], From: s.began.Add(-30 * time.Minute), Until: s.began.Add(-20 * time.Minute), By: "ann"})
				return err
			})},
		}, ask: about("job", "1999-12-31T23:40:00Z")},
	}
}
