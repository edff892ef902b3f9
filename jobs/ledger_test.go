package jobs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun/dialect"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/jobs"
)

func manualJob(tb testing.TB, name string) *jobs.Job {
	tb.Helper()
	tmpl, err := jobs.ParseTemplate(name, jobs.TemplateOptions{})
	require.NoError(tb, err)
	return &jobs.Job{
		Name: name, Resource: tmpl, Overlap: jobs.OverlapSkip, OnLost: jobs.OnLostFail, Enabled: true, StartDeadline: time.Hour,
	}
}

func openLedger(tb testing.TB, db *database.DB) *jobs.Ledger {
	tb.Helper()
	l, err := jobs.OpenLedger(db.Main)
	require.NoError(tb, err)
	return l
}

// insertRun puts a row into the ledger as the scheduler does.
func insertRun(tb testing.TB, db *database.DB, n jobs.NewRun) jobs.Run {
	tb.Helper()
	statement := jobs.InsertRunsPostgres
	if db.Main.Dialect().Name() == dialect.SQLite {
		statement = jobs.InsertRunsSQLite
	}
	doc, err := jobs.EncodeRuns(db.Main.Dialect().Name(), []jobs.NewRun{n})
	require.NoError(tb, err)
	runs, err := jobs.ScanRuns(tb.Context(), db.Main.NewRaw(statement, doc))
	require.NoError(tb, err)
	require.Len(tb, runs, 1)
	return runs[0]
}

func manualRun(tb testing.TB, db *database.DB, job, requestID string) jobs.Run {
	tb.Helper()
	return insertRun(tb, db, jobs.ManualRun(jobs.TriggerRequest{Job: manualJob(tb, job), RequestID: requestID}, time.Now()))
}

func TestListFiltersAndOrder(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		l := openLedger(t, db)
		var ids []int64
		for _, name := range []string{"a", "b", "a"} {
			ids = append(ids, manualRun(t, db, name, string(rune('0'+len(ids)))).ID)
		}
		tests := map[string]struct {
			filter jobs.RunFilter
			want   []int64
		}{
			"all, newest first": {jobs.RunFilter{}, []int64{ids[2], ids[1], ids[0]}},
			"by job":            {jobs.RunFilter{Job: "a"}, []int64{ids[2], ids[0]}},
			"by state":          {jobs.RunFilter{State: jobs.StateRunning}, []int64{}},
			"by outcome":        {jobs.RunFilter{Outcome: jobs.OutcomeFailed}, []int64{}},
			"since":             {jobs.RunFilter{Since: time.Now().Add(time.Hour)}, []int64{}},
			"limit":             {jobs.RunFilter{Limit: 1}, []int64{ids[2]}},
		}
		for name, tt := range tests {
			runs, err := l.List(t.Context(), tt.filter)
			require.NoError(t, err, name)
			got := []int64{}
			for _, r := range runs {
				got = append(got, r.ID)
			}
			assert.Equal(t, tt.want, got, name)
		}
	})
}

func TestGetOfAnUnknownRun(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		_, err := openLedger(t, db).Get(t.Context(), 999)
		require.ErrorIs(t, err, jobs.ErrRunNotFound)
		out, err := openLedger(t, db).Output(t.Context(), 999)
		require.NoError(t, err)
		assert.Zero(t, out)
	})
}

func TestTheLedgerRefusesIllegalRows(t *testing.T) { // CHECK constraints as a second line
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		r := manualRun(t, db, "j", "r")
		_, err := db.Main.NewRaw("UPDATE job_runs SET state = 'held' WHERE id = ?", r.ID).Exec(t.Context())
		require.Error(t, err, "a pending run does not become held")
		for _, set := range []string{"state = 'gone'", "state = 'finished'", "outcome = 'failed'", "state = 'running'", "attempt = 0"} {
			_, err := db.Main.NewRaw("UPDATE job_runs SET "+set+" WHERE id = ?", r.ID).Exec(t.Context())
			require.Error(t, err, set)
		}
		finish := "UPDATE job_runs SET state = 'finished', outcome = 'missed', finished_at = created_at WHERE id = ?"
		_, err = db.Main.NewRaw(finish, r.ID).Exec(t.Context())
		require.NoError(t, err)
		_, err = db.Main.NewRaw("UPDATE job_runs SET state = 'pending', outcome = NULL, finished_at = NULL WHERE id = ?", r.ID).Exec(t.Context())
		require.Error(t, err, "finished is final")
	})
}
