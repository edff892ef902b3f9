package metrics_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/metrics"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

// seriesOf counts the series of the product, by metric.
func seriesOf(t *testing.T, m *metrics.Metrics) map[string]int {
	t.Helper()
	_, text := scrape(t, m)
	n := map[string]int{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "cronlatch_") {
			name, _, _ := strings.Cut(line, "{")
			name, _, _ = strings.Cut(name, " ")
			n[name]++
		}
	}
	return n
}

func total(n map[string]int) (sum int) {
	for _, k := range n {
		sum += k
	}
	return sum
}

// The number of series follows from the number of known jobs, whatever else has been seen.
func TestCardinality(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	m := metrics.New(metrics.Options{Fleet: metrics.Fleet{DB: db.Main, TTL: ttl}})
	const many = 500
	known := make([]*jobs.Job, many)
	for i := range known {
		known[i] = job(t, fmt.Sprintf("job-%03d", i), "* * * * *", func(j *jobs.Job) { j.MaxAge = time.Hour })
	}
	m.Know(known)
	fixed := total(seriesOf(t, metrics.New(metrics.Options{Fleet: metrics.Fleet{DB: db.Main, TTL: ttl}})))
	quiet := total(seriesOf(t, m))
	const each = 13 + 12 + 1 + 1 + 1 + 1 + 1 + 1 // two histograms; active, waiting, last success, next, max age, paused
	assert.Equal(t, fixed+each*many, quiet)

	outcomes := []jobs.Outcome{"succeeded", "failed", "timed_out", "cancelled", "skipped", "missed", "lost", "of a later version"}
	for i := range 5000 { // runs of known and unknown jobs, with all outcomes
		at := time.Unix(int64(i), 0)
		r := &jobs.Run{Job: fmt.Sprintf("job-%03d", i), Trigger: jobs.Trigger(fmt.Sprint("t", i)), Outcome: outcomes[i%len(outcomes)], DueAt: at, StartedAt: &at}
		m.Claimed(r)
		m.Ended(&scheduler.Ending{Run: r, Claimed: true, Written: true, Took: time.Second})
	}
	n := seriesOf(t, m)
	assert.Equal(t, many+len(outcomes), n["cronlatch_runs_total"], "one outcome of each known job, and all of them of the others")
	assert.Equal(t, quiet+many+len(outcomes)+13+12, total(n), "and two histograms of the others")

	m.Know(known[:10])
	n = seriesOf(t, m)
	assert.Equal(t, 10+len(outcomes), n["cronlatch_runs_total"])
	assert.Equal(t, 11, n["cronlatch_run_duration_seconds_count"])
	assert.Equal(t, 10, n["cronlatch_runs_active"])
}

// Everybody who scrapes within 5 s gets the answer to one question.
func TestScrapesShareOneStatement(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	m := metrics.New(metrics.Options{Fleet: metrics.Fleet{DB: dbtest.SQLite(t).Main, TTL: ttl, Clock: func() time.Time { return now }}})
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
	asked := `db_query_duration_seconds_count{op="metrics"} `
	for i, after := range []time.Duration{0, time.Second, 3 * time.Second, time.Second, 5 * time.Second} {
		now = now.Add(after)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { m.Handler().ServeHTTP(httptest.NewRecorder(), request.Clone(t.Context())) })
		}
		all.Wait() // and then once more, because a histogram may be gathered before the statement
		want := []string{"1", "1", "1", "2", "3"}[i]
		assert.Equal(t, []string{asked + want}, samples(t, m, "db_query_duration_seconds_count"))
	}
}

// Without the database there are the figures of this replica, and none that would have to be invented.
func TestMetricsWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		now := time.Now()
		m := metrics.New(metrics.Options{Fleet: metrics.Fleet{DB: db.Main, TTL: ttl, Clock: func() time.Time { return now }}})
		m.Know([]*jobs.Job{job(t, "a", "* * * * *", func(j *jobs.Job) { j.MaxAge = time.Hour })})
		run := &jobs.Run{Job: "a", Trigger: jobs.TriggerSchedule, Outcome: jobs.OutcomeSucceeded}
		m.Ended(&scheduler.Ending{Run: run, Written: true})
		before := seriesOf(t, m)
		require.Equal(t, []string{"db_up 1"}, samples(t, m, "db_up"))
		require.NoError(t, db.Main.Close())
		assert.Equal(t, []string{"db_up 1"}, samples(t, m, "db_up"), "the answer of a moment ago")
		now = now.Add(5 * time.Second)
		after := seriesOf(t, m)
		_, text := scrape(t, m)
		assert.Contains(t, text, "\ncronlatch_db_up 0\n")
		assert.Contains(t, text, `cronlatch_runs_total{job_name="a",outcome="succeeded",trigger="schedule"} 1`)
		assert.Contains(t, text, `cronlatch_job_max_age_seconds{job_name="a"} 3600`)
		maps.DeleteFunc(before, func(name string, _ int) bool { return after[name] > 0 })
		assert.Equal(t, []string{
			"cronlatch_db_clock_offset_seconds", "cronlatch_job_last_success_timestamp_seconds", "cronlatch_job_next_run_timestamp_seconds",
			"cronlatch_job_paused", "cronlatch_notifications_given_up", "cronlatch_notifications_pending", "cronlatch_replicas",
			"cronlatch_replicas_definitions", "cronlatch_runs_waiting",
		}, slices.Sorted(maps.Keys(before)))
	})
}
