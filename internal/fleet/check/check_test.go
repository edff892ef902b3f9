package check_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/internal/fleet/record"
	"github.com/cronlatch/cronlatch/jobs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is the first planned instant of every history here.
func noon() time.Time { return time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC) }

func at(ms int) *time.Time {
	t := noon().Add(time.Duration(ms) * time.Millisecond)
	return &t
}

// run is a run of job j that was scheduled at noon plus id seconds and took from 100 to 800 ms after that.
func run(id int64) jobs.Run {
	second := int(id) * 1000
	scheduled := *at(second)
	return jobs.Run{
		ID: id, Job: "j", Occurrence: jobs.ScheduledOccurrence(scheduled), Attempt: 1, Trigger: jobs.TriggerSchedule,
		ScheduledAt: scheduled, DueAt: scheduled, CreatedAt: scheduled, Resource: "r", Overlap: jobs.RuleSkip,
		OnLost: jobs.OnLostRetry, MaxAttempts: 3, State: jobs.StateFinished, Outcome: jobs.OutcomeSucceeded, Replica: "a",
		FencingToken: 10 + id, StartedAt: at(second + 100), FinishedAt: at(second + 800),
	}
}

func ledger() []jobs.Run { return []jobs.Run{run(0), run(1), run(2)} }

// event is a sign of life of a run, ms after noon on all clocks.
func event(k record.Kind, id int64, ms int) record.Event {
	r := run(id)
	return record.Event{
		Kind: k, Boot: time.Duration(ms) * time.Millisecond, Wall: *at(ms), Job: r.Job, Resource: r.Resource,
		Token: r.FencingToken, Run: id, Attempt: 1, At: r.ScheduledAt, PID: 100 + int(id), Role: record.Main,
	}
}

func events() []record.Event {
	var all []record.Event
	for id := range int64(3) {
		second := int(id) * 1000
		all = append(all, event(record.Start, id, second+200), event(record.Alive, id, second+400), event(record.Stop, id, second+700))
	}
	return all
}

// mutant is a history with one fault, and a part of what the checker must say about it.
type mutant[T any] struct {
	name   string
	mutate func(h T) T
	says   string
}

// kill checks that the sound history passes and that every mutant is caught.
func kill[T any](t *testing.T, sound func() T, checker func(h T) error, mutants []mutant[T]) {
	t.Helper()
	require.NoError(t, checker(sound()))
	for _, m := range mutants {
		assert.ErrorContains(t, checker(m.mutate(sound())), m.says, m.name)
	}
}

func TestExclusiveCatches(t *testing.T) {
	t.Parallel()
	grandchild := func(ms int) record.Event {
		e := event(record.Alive, 0, ms)
		e.Role = record.Grandchild
		return e
	}
	kill(t, events, check.Exclusive, []mutant[[]record.Event]{
		{"a grandchild outlives its grant", func(h []record.Event) []record.Event { return append(h, grandchild(1250)) }, "started 50ms before"},
		{"it outlives the next grant too", func(h []record.Event) []record.Event { return append(h, grandchild(2900)) }, "started 700ms before"},
		{"at the same instant", func(h []record.Event) []record.Event { return append(h, grandchild(1200)) }, "started 0s before"},
		{"a token went back", func(h []record.Event) []record.Event {
			for i := range h {
				if h[i].Run == 1 {
					h[i].Token = 5
				}
			}
			return h
		}, "token 5 (run 1) came after token 10"},
		{"one token for two runs", func(h []record.Event) []record.Event {
			for i := range h {
				if h[i].Run == 1 {
					h[i].Token = 10
				}
			}
			return h
		}, "token 10 was given to run 0 and to run 1"},
	})
	other := events()
	for i := range other {
		other[i].Resource, other[i].Boot = "another", other[i].Boot+1
	}
	require.NoError(t, check.Exclusive(append(events(), other...)), "two resources at the same time are no overlap")
}

func TestDeadByCatches(t *testing.T) {
	t.Parallel()
	first := func(id int64) bool { return id == 0 }
	require.NoError(t, check.DeadBy(events(), 700*time.Millisecond, first))
	require.ErrorContains(t, check.DeadBy(events(), 699*time.Millisecond, first), "run 0 (j, token 10, pid 100, main) showed life 1ms after")
}

func TestRegisterCatches(t *testing.T) {
	t.Parallel()
	sound := func() []record.Write {
		return []record.Write{{Token: 1, Accepted: true}, {Token: 3, Accepted: true}, {Token: 2}, {Token: 3, Accepted: true}}
	}
	kill(t, sound, check.Register, []mutant[[]record.Write]{
		{"no guard", func(h []record.Write) []record.Write { h[2].Accepted = true; return h }, "token 2 (run 0) was accepted after token 3"},
		{"refuses the holder", func(h []record.Write) []record.Write { h[3].Accepted = false; return h }, "token 3 (run 0) was refused"},
	})
}

// both is a ledger with what its jobs recorded.
type both struct {
	runs   []jobs.Run
	events []record.Event
}

func TestStartsCatches(t *testing.T) {
	t.Parallel()
	sound := func() both { return both{ledger(), events()} }
	checker := func(h both) error { return check.Starts(h.runs, h.events) }
	kill(t, sound, checker, []mutant[both]{
		{"started twice", func(h both) both { h.events = append(h.events, event(record.Start, 1, 1300)); return h }, "started 2 times"},
		{"row is missing", func(h both) both { h.runs = h.runs[:2]; return h }, "no such row"},
		{"row of another job", func(h both) both { h.runs[1].Job = "k"; return h }, "no such row"},
		{"another instant", func(h both) both { h.events[0].At = *at(5000); return h }, "no such row"},
		{"another attempt", func(h both) both { h.events[0].Attempt = 2; return h }, "no such row"},
		{"another token", func(h both) both { h.runs[1].FencingToken = 99; return h }, "worked with token 11, its row says 99"},
		{"worked before the claim", func(h both) both { h.runs[1].StartedAt = at(1250); return h }, "its row was started at"},
		{"worked without a claim", func(h both) both { h.runs[1].StartedAt = nil; return h }, "its row was started at"},
		{"lived after the end", func(h both) both { h.runs[1].FinishedAt = at(1698); return h }, "its row was finished at"},
		{"succeeded without a start", func(h both) both { h.events = h.events[3:]; return h }, "without having been started"},
		{"early by the schedule", func(h both) both { h.runs[1].StartedAt = at(999); return h }, "before its instant"},
		{"early by its due time", func(h both) both { h.runs[1].DueAt = *at(1101); return h }, "before its instant"},
	})
}

func TestTokensCatches(t *testing.T) {
	t.Parallel()
	kill(t, ledger, check.Tokens, []mutant[[]jobs.Run]{
		{"twice", func(h []jobs.Run) []jobs.Run { h[1].FencingToken = 10; return h }, "run 1 has token 10, run 0 before it had 10"},
		{"backwards", func(h []jobs.Run) []jobs.Run { h[2].FencingToken = 10; return h }, "run 2 has token 10, run 1 before it had 11"},
		{"twice at once", func(h []jobs.Run) []jobs.Run {
			h[1].FencingToken, h[1].StartedAt = 10, h[0].StartedAt
			return h
		}, "has token 10"},
	})
	elsewhere := ledger()
	elsewhere[1].Resource, elsewhere[1].FencingToken = "another", 10
	require.NoError(t, check.Tokens(elsewhere))
}

func TestFinishedCatches(t *testing.T) {
	t.Parallel()
	sound := func() []jobs.Run {
		held := run(3)
		held.State, held.Outcome, held.OnLost, held.FinishedAt = jobs.StateHeld, "", jobs.OnLostHold, nil
		return append(ledger(), held)
	}
	kill(t, sound, check.Finished, []mutant[[]jobs.Run]{
		{"pending", func(h []jobs.Run) []jobs.Run { h[1].State = jobs.StatePending; return h }, "is still pending"},
		{"running", func(h []jobs.Run) []jobs.Run { h[1].State = jobs.StateRunning; return h }, "is still running"},
		{"held by mistake", func(h []jobs.Run) []jobs.Run { h[3].OnLost = jobs.OnLostFail; return h }, "is held, its policy is fail"},
		{"no outcome", func(h []jobs.Run) []jobs.Run { h[0].Outcome = ""; return h }, "without outcome"},
	})
}

// lostOnce is a lost first attempt, and the second that follows it.
func lostOnce() []jobs.Run {
	first, second := run(0), run(0)
	first.Outcome, first.Reason = jobs.OutcomeLost, jobs.ReasonReplicaLost
	second.ID, second.Attempt, second.FencingToken = 7, 2, 17
	return []jobs.Run{first, second}
}

func TestAttemptsCatches(t *testing.T) {
	t.Parallel()
	kill(t, lostOnce, check.Attempts, []mutant[[]jobs.Run]{
		{"no retry", func(h []jobs.Run) []jobs.Run { return h[:1] }, "another one follows: false"},
		{"number left out", func(h []jobs.Run) []jobs.Run { h[1].Attempt = 3; return h }, "attempt 3 is number 2"},
		{"row twice", func(h []jobs.Run) []jobs.Run { return append(h, h[1]) }, "attempt 2 is number 3"},
		{"retry of what may not be retried", func(h []jobs.Run) []jobs.Run { h[0].OnLost = jobs.OnLostFail; return h }, "another one follows: true"},
		{"retry of a success", func(h []jobs.Run) []jobs.Run { h[0].Outcome = jobs.OutcomeSucceeded; return h }, "another one follows: true"},
		{"one too many", func(h []jobs.Run) []jobs.Run { h[0].MaxAttempts = 1; return h }, "another one follows: true"},
		{"drained and forgotten", func(h []jobs.Run) []jobs.Run {
			h[1].Outcome, h[1].Reason = jobs.OutcomeCancelled, jobs.ReasonDrain
			return h
		}, "another one follows: false"},
		{"held and forgotten", func(h []jobs.Run) []jobs.Run {
			h[0].OnLost, h[0].MaxAttempts = jobs.OnLostHold, 1
			return h[:1]
		}, "another one follows: false"},
	})
}

func TestNotRunCatches(t *testing.T) {
	t.Parallel()
	sound := func() []jobs.Run { // the second run takes until 2.5 s, so the third is skipped
		h := ledger()
		h[1].FinishedAt = at(2500)
		h[2].Outcome, h[2].Reason, h[2].StartedAt, h[2].FinishedAt = jobs.OutcomeSkipped, jobs.ReasonOverlap, nil, at(2001)
		return h
	}
	checker := func(h []jobs.Run) error { return check.NotRun(h, 2*time.Second) }
	kill(t, sound, checker, []mutant[[]jobs.Run]{
		{"nothing was unfinished", func(h []jobs.Run) []jobs.Run { h[1].FinishedAt = at(900); return h }, "no earlier run was unfinished"},
		{"another job's run was", func(h []jobs.Run) []jobs.Run { h[1].Job = "k"; return h }, "no earlier run was unfinished"},
		{"a later run was", func(h []jobs.Run) []jobs.Run { h[1].ScheduledAt = *at(3000); return h }, "no earlier run was unfinished"},
		{"missed", func(h []jobs.Run) []jobs.Run { h[2].Outcome = jobs.OutcomeMissed; return h }, "did not run: missed"},
		{"missed too soon", func(h []jobs.Run) []jobs.Run { return missed(h, 3999) }, "did not run: missed"},
		{"another reason", func(h []jobs.Run) []jobs.Run { h[2].Reason = jobs.ReasonDisabled; return h }, `did not run: skipped, "disabled"`},
	})
	require.NoError(t, checker(missed(sound(), 4001)), "nobody had planned for more than two seconds")
}

// missed makes the third run one that was planned ms after noon, when nobody had planned since its own instant at 2 s.
func missed(h []jobs.Run, ms int) []jobs.Run {
	h[2].Outcome, h[2].Reason, h[2].CreatedAt = jobs.OutcomeMissed, jobs.ReasonCatchUp, *at(ms)
	h[2].Detail = json.RawMessage(`{"unplanned_from": "2026-05-04T12:00:02Z"}`)
	return h
}

func TestLogCatches(t *testing.T) {
	t.Parallel()
	sound := func() string { return "cronlatch: replica a\n{\"level\":\"info\"}\n" }
	checker := func(text string) error { return check.Log(text, "hunter2", "s3cret") }
	kill(t, sound, checker, []mutant[string]{
		{"panic", func(h string) string { return h + "panic: runtime error: index out of range" }, "line 3: panic:"},
		{"fatal", func(h string) string { return "fatal error: concurrent map writes\n" + h }, "line 1: fatal error"},
		{"race", func(h string) string { return h + "WARNING: DATA RACE" }, "line 3: WARNING"},
		{"secret", func(h string) string { return h + "dial postgres://x:s3cret@h/d" }, "line 3 contains secret 2"},
	})
	assert.NotContains(t, checker("x hunter2").Error(), "hunter2", "the report does not pass the secret on")
}

func TestOnlyTheFirstViolationsAreShown(t *testing.T) {
	t.Parallel()
	var h []jobs.Run
	for id := range int64(50) {
		r := run(id)
		r.State = jobs.StatePending
		h = append(h, r)
	}
	require.ErrorContains(t, check.Finished(h), "and 38 more")
}
