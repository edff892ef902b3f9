package metrics_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun/dialect"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/internal/metrics"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/scheduler"
)

// ledger writes rows as the scheduler would leave them.
type ledger struct {
	t   testing.TB
	db  *database.DB
	now time.Time // the database's, in whole seconds
}

func newLedger(tb testing.TB, db *database.DB) *ledger {
	tb.Helper()
	store, err := locking.NewStore(db.Main)
	require.NoError(tb, err)
	now, err := store.Now(tb.Context())
	require.NoError(tb, err)
	return &ledger{tb, db, now.Truncate(time.Second)}
}

// row is a run; At is before now, and so is its end, a second later.
type row struct {
	job, occurrence string
	attempt         int
	at              time.Duration // how long ago
	state           string
	outcome, reason string
}

func (l *ledger) add(rows ...row) {
	l.t.Helper()
	d := l.db.Main.Dialect().Name()
	for i, r := range rows {
		if r.occurrence == "" {
			r.occurrence = fmt.Sprint("s:", i)
		}
		at := l.now.Add(-r.at)
		var outcome, ended, started, token any
		if r.outcome != "" {
			r.state, outcome, ended = "finished", r.outcome, dbtime.Arg(d, at.Add(time.Second))
		}
		if r.state == "running" {
			started, token = dbtime.Arg(d, at), 1
		}
		_, err := l.db.Main.NewRaw(`INSERT INTO job_runs (job, occurrence, attempt, trigger, scheduled_at, due_at, resource, overlap, on_lost,
			max_attempts, state, outcome, reason, created_at, started_at, finished_at, fencing_token)
			VALUES (?, ?, ?, 'schedule', ?, ?, ?, 'skip', 'fail', 3, ?, ?, ?, ?, ?, ?, ?)`, r.job, r.occurrence, max(1, r.attempt),
			dbtime.Arg(d, at), dbtime.Arg(d, at), r.job, r.state, outcome, r.reason, dbtime.Arg(d, at), started, ended, token).Exec(l.t.Context())
		require.NoError(l.t, err)
	}
}

func (l *ledger) exec(query string, args ...any) {
	l.t.Helper()
	_, err := l.db.Main.NewRaw(query, args...).Exec(l.t.Context())
	require.NoError(l.t, err)
}

// What the ledger says of each job, whatever this replica has seen of it.
func TestFactsOfJobs(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		l := newLedger(t, db)
		l.add(
			row{job: "good", at: 3 * time.Hour, outcome: "failed"}, row{job: "good", at: 2 * time.Hour, outcome: "succeeded"},
			row{job: "good", at: time.Hour, outcome: "skipped"},

			row{job: "bad", at: 2 * time.Hour, outcome: "succeeded"}, row{job: "bad", at: time.Hour, outcome: "timed_out"},
			row{job: "bad", at: time.Minute, outcome: "cancelled"}, row{job: "bad", at: 30 * time.Second, outcome: "missed", reason: "paused"},

			row{job: "never", at: 9 * time.Hour, outcome: "lost"}, row{job: "never", at: 8 * time.Hour, outcome: "missed", reason: "no_replica"},

			// the second attempt of the last occurrence is still to come
			row{job: "again", at: 2 * time.Hour, outcome: "succeeded"},
			row{job: "again", occurrence: "s:x", at: time.Hour, outcome: "failed"},
			row{job: "again", occurrence: "s:x", attempt: 2, at: time.Hour - time.Minute, state: "pending"},

			// nobody repeats what waits for a person
			row{job: "held", at: 2 * time.Hour, outcome: "succeeded"},
			row{job: "held", occurrence: "s:y", at: time.Hour, outcome: "lost"},
			row{job: "held", occurrence: "s:y", attempt: 2, at: time.Hour, state: "held"},

			row{job: "later", at: -time.Hour, state: "pending"}, row{job: "later", at: time.Minute, state: "pending"},
			row{job: "elsewhere", at: time.Minute, state: "pending"}, row{job: "elsewhere", at: 2 * time.Minute, state: "running"},
		)
		m := l.metrics("good", "bad", "never", "again", "held", "later", "nothing")
		assert.ElementsMatch(t, []string{
			"job_last_success_timestamp_seconds{job_name=\"good\"} " + l.ago(2*time.Hour-time.Second),
			"job_last_success_timestamp_seconds{job_name=\"bad\"} " + l.ago(2*time.Hour-time.Second),
			"job_last_success_timestamp_seconds{job_name=\"again\"} " + l.ago(2*time.Hour-time.Second),
			"job_last_success_timestamp_seconds{job_name=\"held\"} " + l.ago(2*time.Hour-time.Second),
		}, samples(t, m, "job_last_success_timestamp_seconds"), "0 is never")
		families, _ := scrape(t, m)
		assert.Len(t, families["cronlatch_job_last_success_timestamp_seconds"].GetMetric(), 7)
		assert.Contains(t, samples(t, m, "job_first_planned_timestamp_seconds"), "job_first_planned_timestamp_seconds{job_name=\"never\"} "+l.ago(9*time.Hour))
		assert.Len(t, samples(t, m, "job_first_planned_timestamp_seconds"), 6)
		success := map[string]float64{}
		for _, s := range families["cronlatch_job_last_run_success"].GetMetric() {
			success[s.GetLabel()[0].GetValue()] = s.GetGauge().GetValue()
		}
		assert.Equal(t, map[string]float64{"good": 1, "bad": 0, "never": 0, "again": 1, "held": 0}, success)
		assert.ElementsMatch(t, []string{
			`runs_waiting{job_name=""} 1`, `runs_waiting{job_name="again"} 1`, `runs_waiting{job_name="later"} 1`,
		}, samples(t, m, "runs_waiting"))
		assert.Equal(t, []string{"job_next_run_timestamp_seconds{job_name=\"later\"} " + l.ago(-time.Hour)}, samples(t, m, "job_next_run_timestamp_seconds"))
	})
}

// ago is an instant as the exposition format writes it.
func (l *ledger) ago(ago time.Duration) string {
	return fmt.Sprint(float64(l.now.Add(-ago).Unix()))
}

// silence is the TTL of those tests: whoever was heard of seconds ago is there, however long the test takes.
const silence = 10 * time.Minute

// metrics are those of a replica that knows these jobs by hand.
func (l *ledger) metrics(names ...string) *metrics.Metrics {
	l.t.Helper()
	m := metrics.New(metrics.Options{Fleet: metrics.Fleet{DB: l.db.Main, TTL: silence}})
	known := make([]*jobs.Job, len(names))
	for i, name := range names {
		known[i] = job(l.t, name, "", nil)
	}
	m.Know(known)
	return m
}

func TestFactsOfTheFleet(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		l := newLedger(t, db)
		d := db.Main.Dialect().Name()
		at := func(ago time.Duration) any { return dbtime.Arg(d, l.now.Add(-ago)) }
		for nonce, r := range map[string]struct {
			hash       string
			seen, left any
		}{
			"a": {"1", at(0), nil}, "b": {"2", at(5 * time.Second), nil}, "c": {"2", at(10 * time.Second), nil},
			"silent": {"3", at(time.Hour), nil}, "gone": {"4", at(0), at(0)},
		} {
			l.exec(`INSERT INTO replicas (name, boot_nonce, host, pid, version, definitions_hash, capacity, joined_at, seen_at, left_at)
				VALUES ('r', ?, 'h', 1, 'v', ?, 8, ?, ?, ?)`, nonce, r.hash, at(time.Hour), r.seen, r.left)
		}
		for i, r := range []struct {
			state string
			done  any
		}{{"pending", nil}, {"pending", nil}, {"sent", at(0)}, {"given_up", at(time.Minute)}, {"given_up", at(2 * time.Hour)}} {
			l.exec(`INSERT INTO outbox (key, channel, event, state, created_at, due_at, done_at) VALUES (?, 'c', 'failure', ?, ?, ?, ?)`,
				strconv.Itoa(i), r.state, at(time.Hour), at(time.Hour), r.done)
		}
		m := l.metrics("a", "b")
		assert.ElementsMatch(t, []string{
			"db_up 1", "replicas 3", "replicas_definitions 2", "notifications_pending 2", "notifications_given_up 1",
		}, samples(t, m, "db_up", "replicas", "replicas_definitions", "notifications_pending", "notifications_given_up"))
		families, _ := scrape(t, m)
		offset := families["cronlatch_db_clock_offset_seconds"].GetMetric()[0].GetGauge().GetValue()
		assert.InDelta(t, 0, offset, 2, "the database is on this host")
		assert.Empty(t, samples(t, m, "job_paused"))
		pauses, err := scheduler.OpenPauses(db.Main)
		require.NoError(t, err)
		pause := func(name string) {
			_, err := pauses.Pause(t.Context(), scheduler.PauseRequest{Jobs: []string{name}, By: "test", Reason: "test"})
			require.NoError(t, err)
		}
		pause("a")
		assert.Equal(t, []string{`job_paused{job_name="a"} 1`}, samples(t, l.metrics("a", "b"), "job_paused"))
		pause("")
		assert.Equal(t, []string{`job_paused{job_name="a"} 1`, `job_paused{job_name="b"} 1`}, samples(t, l.metrics("a", "b"), "job_paused"))
	})
}

// The database's clock minus ours.
func TestClockOffset(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	m := metrics.New(metrics.Options{Fleet: metrics.Fleet{DB: db.Main, TTL: ttl, Clock: func() time.Time { return time.Now().Add(-90 * time.Second) }}})
	families, _ := scrape(t, m)
	assert.InDelta(t, 90, families["cronlatch_db_clock_offset_seconds"].GetMetric()[0].GetGauge().GetValue(), 2)
}

// The next instant of a schedule counts from the database's clock.
func TestNextRun(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	l := newLedger(t, db)
	m := metrics.New(metrics.Options{Fleet: metrics.Fleet{DB: db.Main, TTL: ttl}})
	m.Know([]*jobs.Job{
		job(t, "hourly", "0 0 1 1 *", nil), job(t, "off", "0 0 1 1 *", func(j *jobs.Job) { j.Enabled = false; j.MaxAge = time.Hour }),
	})
	newYear := func(now time.Time) float64 {
		return float64(time.Date(now.UTC().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
	}
	families, _ := scrape(t, m)
	next := families["cronlatch_job_next_run_timestamp_seconds"].GetMetric()
	require.Len(t, next, 1, "a job that is not enabled has none")
	assert.Contains(t, []float64{newYear(l.now), newYear(time.Now())}, next[0].GetGauge().GetValue(), "the test may see the old year out")
	assert.Empty(t, samples(t, m, "job_max_age_seconds"))
}

// BenchmarkFacts is the statement behind /metrics: 500 jobs of 200 runs each, of which none ever succeeded.
func BenchmarkFacts(b *testing.B) {
	for name, open := range map[string]func(testing.TB) *database.DB{"postgres": dbtest.Postgres, "sqlite": dbtest.SQLite} {
		b.Run(name, func(b *testing.B) {
			db := open(b)
			l := newLedger(b, db)
			fill := `INSERT INTO job_runs (job, occurrence, attempt, trigger, scheduled_at, due_at, resource, overlap, on_lost, max_attempts,
				state, outcome, created_at, finished_at)
				SELECT 'job-' || j.n, 's:' || r.n, 1, 'schedule', ?0, ?0, 'x', 'skip', 'fail', 1, 'finished', 'failed', ?0, ?0
				FROM (%s) AS j, (%s) AS r`
			series := `WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < %d) SELECT n FROM s`
			if db.Main.Dialect().Name() == dialect.PG {
				series = `SELECT generate_series(1, %d) AS n`
			}
			l.exec(fmt.Sprintf(fill, fmt.Sprintf(series, 500), fmt.Sprintf(series, 200)), dbtime.Arg(db.Main.Dialect().Name(), l.now))
			if db.Main.Dialect().Name() == dialect.PG {
				_, err := db.Main.ExecContext(context.Background(), "ANALYZE job_runs")
				require.NoError(b, err)
			}
			var shift time.Duration // nothing is ever young enough
			m := metrics.New(metrics.Options{Fleet: metrics.Fleet{DB: db.Main, TTL: ttl, Clock: func() time.Time { return time.Now().Add(shift) }}})
			known := make([]*jobs.Job, 500)
			for i := range known {
				known[i] = job(b, fmt.Sprintf("job-%d", i+1), "", nil)
			}
			m.Know(known)
			for b.Loop() {
				shift += time.Minute
				scrape(b, m)
			}
			families, _ := scrape(b, m)
			for _, s := range families["cronlatch_db_query_duration_seconds"].GetMetric() {
				if s.GetLabel()[0].GetValue() == "metrics" {
					b.ReportMetric(s.GetHistogram().GetSampleSum()/float64(s.GetHistogram().GetSampleCount())*1e3, "ms/statement")
				}
			}
		})
	}
}
