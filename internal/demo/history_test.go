package demo

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/jobs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func past(t *testing.T, seed uint64, now time.Time) *history {
	t.Helper()
	c, err := parseConfig(configName)
	require.NoError(t, err)
	h, err := newHistory(c, seed, now)
	require.NoError(t, err)
	return h
}

// Whenever a demo is started, its history holds to the rules.
func TestHistoryHoldsToTheRules(t *testing.T) {
	t.Parallel()
	for _, now := range []time.Time{
		time.Date(2026, 3, 31, 5, 0, 0, 0, time.UTC), time.Date(2026, 4, 1, 0, 30, 0, 123e6, time.UTC), // around a change of Berlin's clocks
		time.Date(2026, 11, 30, 1, 30, 4, 0, time.UTC), time.Date(2026, 7, 4, 12, 15, 0, 0, time.UTC),
	} {
		h := past(t, 1, now)
		runs := make([]jobs.Run, len(h.entries))
		seen := map[jobs.Outcome]int{}
		for i, e := range h.entries {
			runs[i] = *e.run()
			r := &runs[i]
			r.ID, r.Owner, r.FencingToken, r.State, r.Outcome, r.Reason = e.id, e.owner(), e.token, e.State, *e.Outcome, e.Reason
			r.CreatedAt, r.FinishedAt = e.created, &e.finished
			if e.ran() {
				r.StartedAt = &e.started
				assert.False(t, e.finished.Before(e.started))
			}
			assert.False(t, e.created.Before(e.ScheduledAt), "%s was there before its instant", e.Occurrence)
			assert.False(t, e.finished.After(now), "%s %s", e.Job, e.Occurrence)
			assert.False(t, h.outage.has(e.started), "somebody ran %s while nobody was there", e.Occurrence)
			seen[r.Outcome]++
		}
		require.NoError(t, check.Tokens(runs))
		require.NoError(t, check.Finished(runs))
		require.NoError(t, check.Attempts(runs))
		for _, outcome := range []jobs.Outcome{
			jobs.OutcomeSucceeded, jobs.OutcomeFailed, jobs.OutcomeTimedOut, jobs.OutcomeCancelled, jobs.OutcomeSkipped, jobs.OutcomeMissed, jobs.OutcomeLost,
		} {
			assert.NotZero(t, seen[outcome], "%s at %s", outcome, now)
		}
	}
}

// Every instant of the schedules has its row, and no row has another instant.
func TestHistoryHasTheInstantsOfTheSchedules(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 4, 2, 9, 7, 30, 0, time.UTC)
	h := past(t, 7, now)
	had := map[string][]string{}
	for _, e := range h.entries {
		if e.Attempt == 1 && e.Trigger != jobs.TriggerManual {
			had[e.Job] = append(had[e.Job], e.Occurrence)
		}
	}
	for _, name := range []string{jobBackup, jobReport, jobSync, jobCleanup, jobPartner, jobIndex} {
		at, err := instants(h.config, name, now)
		require.NoError(t, err)
		want := make([]string, len(at))
		for i := range at {
			want[i] = jobs.ScheduledOccurrence(at[i])
		}
		slices.Sort(had[name])
		slices.Sort(want)
		assert.Equal(t, want, had[name], name)
	}
}

// The job that is always busy has a believable past: back to back, now and then one too many, and the last one made way.
func TestTheSearchIndexWasAlwaysBusy(t *testing.T) {
	t.Parallel()
	seen, last := map[jobs.Outcome]int{}, time.Time{}
	for _, e := range past(t, 1, time.Date(2026, 11, 30, 9, 28, 12, 0, time.UTC)).entries {
		if e.Job != jobIndex {
			continue
		}
		seen[*e.Outcome]++
		if !e.ran() {
			continue
		}
		assert.True(t, e.started.After(last), "%s began before the one before it had ended", e.Occurrence)
		assert.Contains(t, e.output, "token ")
		if *e.Outcome == jobs.OutcomeSucceeded {
			assert.Greater(t, e.finished.Sub(e.started), time.Minute, e.Occurrence)
		}
		last = e.finished
	}
	assert.Greater(t, seen[jobs.OutcomeSucceeded], 2800)
	assert.InDelta(t, 20, seen[jobs.OutcomeSkipped], 10)
	assert.LessOrEqual(t, seen[jobs.OutcomeCancelled], 1)
}

func TestHistoryIsAFunctionOfTheSeed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 4, 2, 9, 7, 30, 0, time.UTC)
	one, again, other := past(t, 1, now), past(t, 1, now), past(t, 2, now)
	assert.Equal(t, one.outputs(), again.outputs())
	assert.NotEqual(t, one.lifetimes, other.lifetimes)
	for i, e := range past(t, 1, now).entries {
		assert.Equal(t, one.entries[i].owner(), e.owner())
	}
}

// What was inserted is what the ledger gives back, and the tokens go on from there.
func TestSeed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), databaseName)
	o := Options{Seed: 1, Version: "test"}
	require.NoError(t, o.seed(t.Context(), path))
	db, err := database.Open(database.Target{Kind: database.SQLite, Path: path}, database.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	ledger, err := jobs.OpenLedger(db.Main)
	require.NoError(t, err)
	runs, err := ledger.List(t.Context(), jobs.RunFilter{Job: jobBackup, Limit: 100})
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(runs), 32, "30 nights, a retry, a recovery")
	for i := range runs {
		if runs[i].Outcome == jobs.OutcomeLost {
			assert.JSONEq(t, `"c"`, `"`+runs[i].Replica+`"`)
			assert.Contains(t, string(runs[i].Detail), "recovered_by")
		}
	}
	require.NoError(t, check.Tokens(runs))
	var last, most int64
	require.NoError(t, db.Main.NewRaw(`SELECT last FROM fencing_tokens`).Scan(t.Context(), &last))
	require.NoError(t, db.Main.NewRaw(`SELECT max(fencing_token) FROM distributed_locks`).Scan(t.Context(), &most))
	assert.Equal(t, last, most)
	waiting, err := ledger.List(t.Context(), jobs.RunFilter{State: jobs.StatePending, Limit: 10})
	require.NoError(t, err)
	require.Len(t, waiting, 1)
	assert.Equal(t, jobIndex, waiting[0].Job)
}
