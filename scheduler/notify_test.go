package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// heard lets the channel ops hear of everything, and a URL of the ends.
func heard(j *jobs.Job) {
	j.Notify = jobs.Notify{}
	for _, e := range []jobs.Event{
		jobs.EventFailure, jobs.EventRecovery, jobs.EventMissed, jobs.EventLost, jobs.EventLate, jobs.EventOverdue,
	} {
		j.Notify[e] = []string{"ops"}
	}
	j.Ping, j.LateAfter = "https://ping.example/x", time.Minute
}

func TestWhatHappened(t *testing.T) {
	t.Parallel()
	job := minuteJob(t, heard)
	at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	began := func(after time.Duration) func(*jobs.Run) {
		return func(r *jobs.Run) { r.StartedAt = new(at.Add(after)) }
	}
	for name, tt := range map[string]struct {
		outcome jobs.Outcome
		reason  jobs.Reason
		change  func(*jobs.Run)
		again   bool
		before  bool // it was in trouble
		events  string
		ping    jobs.Event
		after   bool
	}{
		"a success":                        {outcome: jobs.OutcomeSucceeded, ping: PingSuccess},
		"a success after trouble":          {outcome: jobs.OutcomeSucceeded, before: true, events: "recovery", ping: PingSuccess},
		"a failure":                        {outcome: jobs.OutcomeFailed, events: "failure", ping: PingFail, after: true},
		"another failure":                  {outcome: jobs.OutcomeFailed, before: true, events: "failure", ping: PingFail, after: true},
		"a failure that is retried":        {outcome: jobs.OutcomeFailed, again: true},
		"retried, in trouble":              {outcome: jobs.OutcomeFailed, again: true, before: true, after: true},
		"a timeout":                        {outcome: jobs.OutcomeTimedOut, events: "failure", ping: PingFail, after: true},
		"lost":                             {outcome: jobs.OutcomeLost, events: "lost", ping: PingFail, after: true},
		"lost and tried again":             {outcome: jobs.OutcomeLost, again: true},
		"lost and held":                    {outcome: jobs.OutcomeLost, again: true, change: holds, events: "lost", ping: PingFail, after: true},
		"drained and held":                 {outcome: jobs.OutcomeCancelled, reason: jobs.ReasonDrain, again: true, change: holds, events: "lost", ping: PingFail, after: true},
		"failed and retried, with hold":    {outcome: jobs.OutcomeFailed, again: true, change: holds},
		"cancelled":                        {outcome: jobs.OutcomeCancelled, reason: jobs.ReasonRequested},
		"cancelled in trouble":             {outcome: jobs.OutcomeCancelled, before: true, after: true},
		"skipped":                          {outcome: jobs.OutcomeSkipped, reason: jobs.ReasonOverlap},
		"missed":                           {outcome: jobs.OutcomeMissed, reason: jobs.ReasonNoReplica, events: "missed", after: true},
		"missed in a pause":                {outcome: jobs.OutcomeMissed, reason: jobs.ReasonPaused},
		"late":                             {outcome: jobs.OutcomeSucceeded, change: began(61 * time.Second), events: "late", ping: PingSuccess},
		"not late":                         {outcome: jobs.OutcomeSucceeded, change: began(60 * time.Second), ping: PingSuccess},
		"late and failed":                  {outcome: jobs.OutcomeFailed, change: began(time.Hour), events: "late failure", ping: PingFail, after: true},
		"late, and tried again":            {outcome: jobs.OutcomeFailed, again: true, change: began(time.Hour), events: "late"},
		"a second attempt is not late":     {outcome: jobs.OutcomeSucceeded, change: both(began(time.Hour), second), ping: PingSuccess},
		"by hand is not late":              {outcome: jobs.OutcomeSucceeded, change: both(began(time.Hour), byHand), ping: PingSuccess},
		"a backfill is not late":           {outcome: jobs.OutcomeSucceeded, change: both(began(time.Hour), backfilled), ping: PingSuccess},
		"a success by hand ends a trouble": {outcome: jobs.OutcomeSucceeded, change: byHand, before: true, events: "recovery", ping: PingSuccess},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := jobs.Run{ID: 7, Job: job.Name, Occurrence: jobs.ScheduledOccurrence(at), ScheduledAt: at, Attempt: 1, Outcome: tt.outcome, Reason: tt.reason}
			if tt.change != nil {
				tt.change(&r)
			}
			var before *trouble
			if tt.before {
				before = &trouble{event: jobs.EventFailure, run: 3, since: at.Add(-time.Hour)}
			}
			h := happened(job, &r, tt.again, before)
			var events []string
			for _, e := range h.events {
				events = append(events, string(e))
			}
			assert.Equal(t, tt.events, strings.Join(events, " "))
			assert.Equal(t, tt.ping, h.ping)
			assert.Equal(t, tt.after, h.now != nil)
			for _, m := range messagesOf(job, &r, h, before) {
				assert.True(t, strings.HasPrefix(m.Payload.Text, job.Name+", scheduled for 2026-05-01T00:00:00Z, "), m.Payload.Text)
				assert.True(t, strings.HasSuffix(m.Payload.Text, " (cronlatch explain 7)"), m.Payload.Text)
			}
		})
	}
}

func holds(r *jobs.Run)      { r.OnLost = jobs.OnLostHold }
func second(r *jobs.Run)     { r.Attempt = 2 }
func byHand(r *jobs.Run)     { r.Occurrence = jobs.ManualOccurrence("x") }
func backfilled(r *jobs.Run) { r.Trigger = jobs.TriggerBackfill }

func both(a, b func(*jobs.Run)) func(*jobs.Run) { return func(r *jobs.Run) { a(r); b(r) } }

func TestTheSentences(t *testing.T) {
	t.Parallel()
	job := minuteJob(t, func(j *jobs.Job) { j.Timeout, j.LateAfter = time.Minute, 5*time.Minute })
	at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	code := 3
	started := at.Add(7 * time.Minute)
	base := jobs.Run{ID: 7, Job: "backup", ScheduledAt: at, Attempt: 2, Retry: jobs.Retry{Attempts: 3}, Replica: "b"}
	for want, tt := range map[string]struct {
		event  jobs.Event
		before *trouble
		change func(*jobs.Run)
	}{
		"failed on replica b in attempt 2 of 3: exit code 3": {jobs.EventFailure, nil, func(r *jobs.Run) { r.ExitCode = &code }},
		"failed on replica b in attempt 2 of 3: it ran longer than its timeout of 1m0s": {
			jobs.EventFailure, nil, func(r *jobs.Run) { r.Reason = jobs.ReasonTimeout },
		},
		"succeeded on replica b: it is well again after the failure of 2026-04-30T23:00:00Z": {
			jobs.EventRecovery, &trouble{event: jobs.EventFailure, since: at.Add(-time.Hour)}, func(*jobs.Run) {},
		},
		"was lost on replica b in attempt 2: its replica is gone or was cut off, and nobody said how the run ended": {
			jobs.EventLost, nil, func(r *jobs.Run) { r.Outcome, r.Reason = jobs.OutcomeLost, jobs.ReasonReplicaLost },
		},
		"was lost on replica b in attempt 2: the next attempt waits for a person (cronlatch runs retry)": {
			jobs.EventLost, nil, func(r *jobs.Run) { r.Outcome, r.OnLost = jobs.OutcomeLost, jobs.OnLostHold },
		},
		"did not run: no replica reached the database at its instant; the same holds for 90 instants in all": {
			jobs.EventMissed, nil, func(r *jobs.Run) { r.Reason, r.Detail = jobs.ReasonNoReplica, json.RawMessage(`{"missed_count": 90}`) },
		},
		"began late on replica b, 7m0s after its instant": {jobs.EventLate, nil, func(r *jobs.Run) { r.StartedAt = &started }},
		"still waits: it is late after 5m0s":              {jobs.EventLate, nil, func(*jobs.Run) {}},
	} {
		r := base
		tt.change(&r)
		assert.Equal(t, "backup, scheduled for 2026-05-01T00:00:00Z, "+want, sentence(job, &r, tt.event, tt.before))
	}
}

func known(list ...*jobs.Job) map[string]*jobs.Job {
	m := map[string]*jobs.Job{}
	for _, j := range list {
		m[j.Name] = j
	}
	return m
}

func (b *bench) mustNotify(list ...*jobs.Job) notified {
	seen, err := b.notify(b.ctx(), known(list...))
	require.NoError(b.t, err)
	return seen
}

// spoken are the messages in the outbox: event, job, channel.
func (b *bench) spoken() []string {
	said := []string{}
	require.NoError(b.t, b.db.NewRaw("SELECT event || ' ' || job || ' ' || channel FROM outbox ORDER BY id").Scan(b.ctx(), &said))
	return said
}

func (b *bench) toBeNotified() bool {
	g, err := b.look(b.ctx())
	require.NoError(b.t, err)
	return g.Notify
}

func TestEachEndIsSaidOnce(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", heard)(b.t)
		deaf := named("deaf", nil)(b.t)
		b.ended(b.due(deaf, 50*time.Second), jobs.OutcomeFailed)
		assert.False(b.t, b.toBeNotified(), "nobody listens to it")
		for i, o := range []jobs.Outcome{jobs.OutcomeFailed, jobs.OutcomeFailed, jobs.OutcomeSucceeded, jobs.OutcomeSucceeded} {
			b.ended(b.due(j, time.Duration(40-i)*time.Second), o)
			require.True(b.t, b.toBeNotified())
			b.mustNotify(j)
			assert.False(b.t, b.toBeNotified())
		}
		b.mustNotify(j)
		assert.Equal(b.t, []string{
			"failure j ops", "fail j (ping)", "failure j ops", "fail j (ping)", "recovery j ops", "success j (ping)", "success j (ping)",
		}, sorted(b.spoken(), 2))
		// all of them at once say the same
		for i, o := range []jobs.Outcome{jobs.OutcomeFailed, jobs.OutcomeSucceeded} {
			b.ended(b.due(j, time.Duration(30-i)*time.Second), o)
		}
		b.mustNotify(j)
		assert.Len(b.t, b.spoken(), 7+4)
	})
}

// sorted brings the messages of each transaction into the order channel, then ping: within one they come in the order of keys.
func sorted(said []string, n int) []string {
	for i := 0; i+n <= len(said); i += n {
		if strings.HasSuffix(said[i], PingChannel) && !strings.HasSuffix(said[i+1], PingChannel) {
			said[i], said[i+1] = said[i+1], said[i]
		}
	}
	return said
}

// The ping that a run has ended waits for the one that it has begun; messages wait for nothing.
func TestOnlyThePingOfAnEndWaits(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", heard)(b.t)
		b.ended(b.due(j, 40*time.Second), jobs.OutcomeFailed)
		before := b.clock()
		b.mustNotify(j)
		assert.WithinRange(b.t, b.outboxTime("due_at", PingChannel), before.Add(PingWait), b.clock().Add(PingWait))
		due := func(at time.Time) {
			b.exec("UPDATE outbox SET due_at = ? WHERE channel = ?", b.millis(at), PingChannel)
		}
		due(before.Add(time.Hour)) // for a slow machine
		by := sender("a", "ops")
		by.Lease = time.Hour
		assert.Equal(b.t, map[string]int{"ops": 1}, b.taken(by))
		due(before)
		assert.Equal(b.t, map[string]int{PingChannel: 1}, b.taken(by))
	})
}

func TestOnlyTheLastAttemptIsSaid(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", func(j *jobs.Job) { heard(j); j.Ping, j.Retry = "", jobs.Retry{Attempts: 2} })(b.t)
		first := b.ended(b.due(j, 40*time.Second), jobs.OutcomeFailed)
		next, ok := first.RetryAttempt(b.clock())
		require.True(b.t, ok)
		b.put(next)
		b.mustNotify(j)
		assert.Empty(b.t, b.spoken(), "it is tried again")
		next.Attempt = 2
		_, err := b.end(b.ctx(), b.db, []ending{{ID: first.ID + 1, FromState: jobs.StatePending, Outcome: jobs.OutcomeFailed}})
		require.NoError(b.t, err)
		b.mustNotify(j)
		assert.Equal(b.t, []string{"failure j ops"}, b.spoken())
	})
}

// The whole step happens or nothing of it: a replica that dies in the middle leaves the mark, and no message.
func TestAMessageAndItsMarkAreOneTransaction(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", heard)(b.t)
		b.ended(b.due(j, 40*time.Second), jobs.OutcomeFailed)
		tx, err := b.db.BeginTx(b.ctx(), nil)
		require.NoError(b.t, err)
		_, err = b.notifyIn(b.ctx(), tx, known(j))
		require.NoError(b.t, err)
		require.NoError(b.t, tx.Rollback())
		assert.Empty(b.t, b.spoken())
		assert.True(b.t, b.toBeNotified())
		b.mustNotify(j)
		assert.Len(b.t, b.spoken(), 2)
	})
}

func TestTwoReplicasSayItOnce(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		const n = 3*notifyBatch + 7
		j := named("j", func(j *jobs.Job) { heard(j); j.Ping = "" })(b.t)
		rows := make([]jobs.NewRun, n)
		now := b.clock().Truncate(time.Second)
		for i := range rows {
			rows[i] = j.EndedRun(now.Add(-time.Duration(i)*time.Second), jobs.OutcomeMissed, jobs.ReasonCatchUp, nil)
		}
		b.put(rows...)
		var wg sync.WaitGroup
		var errs [3]error
		for i := range errs {
			wg.Go(func() {
				for range 8 {
					_, err := b.notify(b.ctx(), known(j))
					errs[i] = errors.Join(errs[i], err)
				}
			})
		}
		wg.Wait()
		require.NoError(b.t, errors.Join(errs[:]...))
		for b.mustNotify(j).more {
		}
		assert.Len(b.t, b.spoken(), n)
		assert.False(b.t, b.toBeNotified())
	})
}

// While one looks, the other one leaves everything to it: what is a recovery depends on what was told before.
func TestOneReplicaLooksAtATime(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		if b.notifyQueries().tryLock == "" {
			b.t.Skip("a transaction is the only writer here")
		}
		j := named("j", heard)(b.t)
		b.ended(b.due(j, 40*time.Second), jobs.OutcomeFailed)
		first, err := b.db.BeginTx(b.ctx(), nil)
		require.NoError(b.t, err)
		_, err = b.notifyIn(b.ctx(), first, known(j))
		require.NoError(b.t, err)
		b.ended(b.due(j, 30*time.Second), jobs.OutcomeSucceeded)
		b.mustNotify(j)
		assert.Empty(b.t, b.spoken())
		require.NoError(b.t, first.Commit())
		b.mustNotify(j)
		assert.Contains(b.t, b.spoken(), "recovery j ops")
		assert.Len(b.t, b.spoken(), 4)
	})
}

func TestAReplicaThatDoesNotKnowTheListenerLeavesTheRun(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", heard)(b.t)
		older := named("j", nil)(b.t) // as a replica knows it whose file is older
		run := b.ended(b.due(j, 40*time.Second), jobs.OutcomeFailed)
		b.mustNotify(older)
		b.mustNotify()
		assert.True(b.t, b.toBeNotified())
		b.age(run, 25*time.Hour)
		seen := b.mustNotify(older)
		require.Len(b.t, seen.stale, 1, "nobody has known for a day")
		assert.False(b.t, b.toBeNotified())
		assert.Empty(b.t, b.spoken())
	})
}

func (b *bench) mustBeLate(list ...*jobs.Job) []string {
	late, err := b.late(b.ctx(), latesOf(list), known(list...))
	require.NoError(b.t, err)
	names := []string{}
	for i := range late {
		names = append(names, fmt.Sprintf("%s %s", late[i].Job, late[i].State))
	}
	slices.Sort(names)
	return names
}

func TestLateRunsAreSaidOnce(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		late := func(j *jobs.Job) { heard(j); j.Ping, j.LateAfter = "", 10*time.Minute }
		waits, runs, early, paused := named("waits", late)(b.t), named("runs", late)(b.t), named("early", late)(b.t), named("paused", late)(b.t)
		all := []*jobs.Job{waits, runs, early, paused}
		for _, j := range []*jobs.Job{waits, runs, paused} {
			b.put(b.due(j, 15*time.Minute))
		}
		b.put(b.due(early, 5*time.Minute))
		b.put(jobs.ManualRun(jobs.TriggerRequest{Job: waits, RequestID: "x"}, b.clock().Add(-time.Hour)))
		_, err := b.db.NewRaw("INSERT INTO job_pauses (job, reason, paused_by, paused_at) VALUES ('paused', 'r', 'me', ?)",
			b.millis(b.clock().Add(-time.Hour))).Exec(b.ctx())
		require.NoError(b.t, err)
		require.Len(b.t, b.mustClaim(1, runs.Name), 1)
		assert.Equal(b.t, []string{"runs running", "waits pending"}, b.mustBeLate(all...))
		assert.Empty(b.t, b.mustBeLate(all...), "once")
		assert.ElementsMatch(b.t, []string{"late waits ops", "late runs ops"}, b.spoken())

		// It is the same message when the run has ended.
		won := b.get(b.id("runs"))
		_, err = b.end(b.ctx(), b.db, []ending{{ID: won.ID, FromState: jobs.StateRunning, FencingToken: won.FencingToken, Outcome: jobs.OutcomeSucceeded}})
		require.NoError(b.t, err)
		b.mustNotify(all...)
		assert.Len(b.t, b.spoken(), 2)
	})
}

func (b *bench) id(job string) (id int64) {
	require.NoError(b.t, b.db.NewRaw("SELECT min(id) FROM job_runs WHERE job = ?", job).Scan(b.ctx(), &id))
	return id
}

// What is overdue is said in the transaction that reports it, and the next success is a recovery.
func TestAnOverdueJobIsSaidOnce(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", func(j *jobs.Job) { heard(j); j.Ping, j.MaxAge = "", tooOld })(b.t)
		b.put(b.due(j, 50*time.Second))
		b.pass()
		for range 2 {
			_, err := b.overdue(b.ctx(), agesOf([]*jobs.Job{j}), identity{Replica: "a"})
			require.NoError(b.t, err)
		}
		assert.Equal(b.t, []string{"overdue j ops"}, b.spoken())
		_, err := b.end(b.ctx(), b.db, []ending{{ID: b.id("j"), FromState: jobs.StatePending, Outcome: jobs.OutcomeSucceeded}})
		require.NoError(b.t, err)
		b.mustNotify(j)
		assert.Equal(b.t, []string{"overdue j ops", "recovery j ops"}, b.spoken())
	})
}
