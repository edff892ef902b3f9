package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
)

// fakeAPI shows the rows that the script has for the time since the start of the bubble. An error of it is an outage.
type fakeAPI struct {
	t     *testing.T
	began time.Time
	rows  func(since time.Duration) ([]jobs.Run, error)
	locks map[string]string // what GET of a lock answers
	asked int               // how often for a run
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rows, err := f.rows(time.Since(f.began))
	if err != nil {
		unavailable(w, r)
		return
	}
	if name, isLock := strings.CutPrefix(r.URL.Path, "/locks/"); isLock {
		if text, held := f.locks[name]; held {
			_, _ = w.Write([]byte(text))
			return
		}
	}
	for i := range rows {
		switch r.URL.Path {
		case runPath(rows[i].ID, ""):
			f.asked++
			assert.NoError(f.t, json.NewEncoder(w).Encode(wire.RunOf(&rows[i])))
			return
		case outputPath(rows[i].ID):
			assert.NoError(f.t, json.NewEncoder(w).Encode(f.output(r, rows, &rows[i])))
			return
		}
	}
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte(`{"status": 404, "code": "not_found", "detail": "there is no such thing"}`))
}

// output is a line for each second that the run has run, until it ends.
func (f *fakeAPI) output(r *http.Request, rows []jobs.Run, run *jobs.Run) wire.Output {
	var text strings.Builder
	for s := range int(min(time.Since(f.began), 3*time.Second) / time.Second) {
		_, _ = fmt.Fprintf(&text, "run %d second %d\n", run.ID, s+1)
	}
	offset, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("offset"), "0"))
	require.NoError(f.t, err)
	p := wire.Output{RunID: run.ID, Data: []byte(text.String())[offset:], NextOffset: int64(text.Len()), Ended: run.State == jobs.StateFinished}
	for i := range rows {
		if p.Ended && rows[i].Occurrence == run.Occurrence && rows[i].Attempt == run.Attempt+1 {
			p.NextRunID = &rows[i].ID
		}
	}
	return p
}

func pending() jobs.Run {
	return jobs.Run{ID: 17, Job: "backup:db", Occurrence: "m:x", Attempt: 1, Resource: "backup:db", State: jobs.StatePending}
}

func running() jobs.Run {
	r := pending()
	r.State, r.Replica = jobs.StateRunning, "b"
	return r
}

func finished(o jobs.Outcome, reason jobs.Reason) jobs.Run {
	r := running()
	r.State, r.Outcome, r.Reason = jobs.StateFinished, o, reason
	return r
}

func second(r jobs.Run) jobs.Run {
	r.ID, r.Attempt = 18, 2
	return r
}

// waited is what the user sees of a wait.
type waited struct {
	run  *wire.Run
	err  error
	out  string
	said []string
	took time.Duration
	asks int
}

func waitFor(t *testing.T, locks map[string]string, interrupt time.Duration, rows func(since time.Duration) ([]jobs.Run, error)) (w waited) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		if interrupt > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			defer cancel()
			time.AfterFunc(interrupt, cancel)
		}
		fake := &fakeAPI{t: t, began: time.Now(), rows: rows, locks: locks}
		c := &api{base: &url.URL{Scheme: "http", Host: "localhost"}, client: &http.Client{Transport: inProcess{fake}}, where: "the database x"}
		var out, errors bytes.Buffer
		waiter := &waiter{a: &app{process: process{Patience: patience, Stdout: &out, Stderr: &errors}}, api: c, logs: true}
		first := pending()
		w.run, w.err = waiter.wait(ctx, new(wire.RunOf(&first)))
		w.out, w.took, w.asks = out.String(), time.Since(fake.began), fake.asked
		for line := range strings.Lines(errors.String()) {
			w.said = append(w.said, strings.TrimSuffix(strings.TrimPrefix(line, "cronlatch: "), "\n"))
		}
	})
	return w
}

func TestWaitUntilFinished(t *testing.T) {
	t.Parallel()
	w := waitFor(t, nil, 0, func(since time.Duration) ([]jobs.Run, error) {
		switch {
		case since < 500*time.Millisecond:
			return []jobs.Run{pending()}, nil
		case since < 2*time.Second:
			return []jobs.Run{running()}, nil
		default:
			return []jobs.Run{finished(jobs.OutcomeSucceeded, "")}, nil
		}
	})
	require.NoError(t, w.err)
	assert.Equal(t, "succeeded", orNone(w.run.Outcome))
	assert.Equal(t, []string{"run 17 of backup:db is running on replica b"}, w.said)
	assert.Equal(t, 2*time.Second, w.took)
	assert.Equal(t, 11, w.asks, "every 200 ms, and no more")
	assert.Equal(t, "run 17 second 1\nrun 17 second 2\n", w.out, "each line once, and the last one after the end")
}

func TestWaitSaysThatNoReplicaTookIt(t *testing.T) {
	t.Parallel()
	never := func(time.Duration) ([]jobs.Run, error) { return []jobs.Run{pending()}, nil }
	w := waitFor(t, nil, time.Minute, never)
	assert.Equal(t, []string{"no replica has taken run 17 yet; is `cronlatch serve` running with this database and this job?"}, w.said)

	early := waitFor(t, nil, noticeAfter-time.Millisecond, never)
	assert.Empty(t, early.said)

	busy := waitFor(t, map[string]string{"backup:db": `{"owner": "api/x", "acquired_at": "2026-03-08T05:00:00Z"}`}, time.Minute, never)
	assert.Equal(t, []string{"run 17 waits for the lock backup:db, which is held since 2026-03-08 05:00:00Z by api/x; `cronlatch locks list` shows it"}, busy.said)
}

func TestInterruptedWait(t *testing.T) {
	t.Parallel()
	w := waitFor(t, nil, 1100*time.Millisecond, func(time.Duration) ([]jobs.Run, error) { return []jobs.Run{running()}, nil })
	f, ok := errors.AsType[*failure](w.err)
	require.True(t, ok)
	assert.Equal(t, 130, f.code)
	require.EqualError(t, f, "not waiting any longer; run 17 goes on")
	assert.Equal(t, "`cronlatch runs list --job backup:db` shows how it ends", f.hint)
	assert.Equal(t, 1100*time.Millisecond, w.took)
}

func TestWaitFollowsTheNextAttempt(t *testing.T) {
	t.Parallel()
	w := waitFor(t, nil, 0, func(since time.Duration) ([]jobs.Run, error) {
		lost := finished(jobs.OutcomeLost, jobs.ReasonReplicaLost)
		other := second(finished(jobs.OutcomeFailed, jobs.ReasonExit))
		other.Occurrence, other.ID = "m:other", 99
		switch {
		case since < time.Second:
			return []jobs.Run{other, running()}, nil
		case since < 2*time.Second:
			return []jobs.Run{other, second(pending()), lost}, nil
		case since < 3*time.Second:
			return []jobs.Run{other, second(running()), lost}, nil
		default:
			return []jobs.Run{other, second(finished(jobs.OutcomeSucceeded, "")), lost}, nil
		}
	})
	require.NoError(t, w.err)
	assert.Equal(t, int64(18), w.run.ID)
	assert.Equal(t, []string{
		"run 17 of backup:db is running on replica b",
		"run 17 of backup:db on replica b was lost: its replica is gone; attempt 2 follows as run 18",
		"run 18 of backup:db is running on replica b",
	}, w.said)
}

func TestWaitEndsAtAHeldAttempt(t *testing.T) {
	t.Parallel()
	w := waitFor(t, nil, 0, func(time.Duration) ([]jobs.Run, error) {
		held := second(pending())
		held.State = jobs.StateHeld
		return []jobs.Run{held, finished(jobs.OutcomeLost, jobs.ReasonReplicaLost)}, nil
	})
	require.NoError(t, w.err)
	assert.Equal(t, "held", w.run.State)
	assert.Equal(t, exitLost, exitCodeOf(w.run))
	assert.Equal(t, "run 18 of backup:db is held: a person decides whether it runs again", ending(w.run))
}

// A restart of the database is sat out; an outage ends the waiting after 5 s, and not the run.
func TestWaitThroughAnOutage(t *testing.T) {
	t.Parallel()
	away := context.DeadlineExceeded
	short := waitFor(t, nil, 0, func(since time.Duration) ([]jobs.Run, error) {
		if since > time.Second && since < 5*time.Second {
			return nil, away
		}
		if since < 6*time.Second {
			return []jobs.Run{running()}, nil
		}
		return []jobs.Run{finished(jobs.OutcomeSucceeded, "")}, nil
	})
	require.NoError(t, short.err)

	long := waitFor(t, nil, 0, func(since time.Duration) ([]jobs.Run, error) {
		if since > time.Second {
			return nil, away
		}
		return []jobs.Run{running()}, nil
	})
	f, ok := errors.AsType[*failure](long.err)
	require.True(t, ok)
	assert.Equal(t, exitUnavailable, f.code)
	assert.Contains(t, f.hint, "run 17 goes on without this command")
	assert.Equal(t, time.Second+patience, long.took)
}

func TestWaitReportsOtherErrorsAtOnce(t *testing.T) {
	t.Parallel()
	w := waitFor(t, nil, 0, func(time.Duration) ([]jobs.Run, error) { return nil, nil })
	assert.True(t, isProblem(w.err, "not_found"), "%v", w.err)
	assert.Zero(t, w.took)
}

func TestExitCodeOfARun(t *testing.T) {
	t.Parallel()
	code := func(n int) func(*jobs.Run) { return func(r *jobs.Run) { r.ExitCode = &n } }
	signal := func(name string) func(*jobs.Run) { return func(r *jobs.Run) { r.Signal = name } }
	nothing := func(*jobs.Run) {}
	for _, c := range []struct {
		outcome jobs.Outcome
		reason  jobs.Reason
		with    func(*jobs.Run)
		code    int
		text    string
	}{
		{jobs.OutcomeSucceeded, "", code(0), 0, "succeeded"},
		{jobs.OutcomeFailed, jobs.ReasonExit, code(3), 3, "failed: exit code 3"},
		{jobs.OutcomeFailed, jobs.ReasonExit, code(255), 255, "failed: exit code 255"},
		{jobs.OutcomeFailed, jobs.ReasonExit, code(0), 1, "failed: exit code 0"},
		{jobs.OutcomeFailed, "panic", nothing, 1, "failed: panic"},
		{jobs.OutcomeFailed, jobs.ReasonSignal, signal("SIGKILL"), 137, "failed: ended by SIGKILL"},
		{jobs.OutcomeFailed, jobs.ReasonSignal, signal("SEGV"), 139, "failed: ended by SEGV"},
		{jobs.OutcomeFailed, jobs.ReasonSignal, signal("SIGNONE"), 1, "failed: ended by SIGNONE"},
		{jobs.OutcomeFailed, jobs.ReasonStart, code(127), 127, "failed: the command could not be started"},
		{jobs.OutcomeFailed, jobs.ReasonStart, nothing, 126, "failed: the command could not be started"},
		{jobs.OutcomeTimedOut, jobs.ReasonTimeout, signal("SIGTERM"), 124, "timed out"},
		{jobs.OutcomeLost, jobs.ReasonLeaseLost, nothing, 76, "was lost: its lock could not be renewed, and it was stopped"},
		{jobs.OutcomeSkipped, jobs.ReasonOverlap, nothing, 75, "was skipped: an earlier run of the job is unfinished"},
		{jobs.OutcomeSkipped, jobs.ReasonDisabled, nothing, 1, "was skipped: the job is disabled"},
		{jobs.OutcomeMissed, jobs.ReasonLockHeld, nothing, 75, "was missed: the lock backup:db stayed busy"},
		{jobs.OutcomeMissed, jobs.ReasonNoCapacity, nothing, 1, "was missed: no replica that knows the job had room in time"},
		{jobs.OutcomeMissed, "", nothing, 1, "was missed"},
		{jobs.OutcomeCancelled, jobs.ReasonDrain, signal("SIGTERM"), 1, "was cancelled: the replica was asked to leave"},
		{jobs.OutcomeCancelled, "new", nothing, 1, "was cancelled: new"},
	} {
		r := finished(c.outcome, c.reason)
		c.with(&r)
		assert.Equal(t, c.code, exitCodeOf(new(wire.RunOf(&r))), c.text)
		assert.Equal(t, "run 17 of backup:db on replica b "+c.text, ending(new(wire.RunOf(&r))))
	}
	started, ended := testNow(), testNow().Add(1250*time.Millisecond)
	r := finished(jobs.OutcomeSucceeded, "")
	r.StartedAt, r.FinishedAt = &started, &ended
	assert.Equal(t, "run 17 of backup:db on replica b succeeded after 1.3s", ending(new(wire.RunOf(&r))))
	code3 := finished(jobs.OutcomeFailed, jobs.ReasonExit)
	code3.StartedAt, code3.FinishedAt, code3.ExitCode = &started, &ended, new(3)
	assert.Equal(t, "run 17 of backup:db on replica b failed after 1.3s: exit code 3", ending(new(wire.RunOf(&code3))))
}
