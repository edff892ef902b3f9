package httpapi_test

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
)

// runsRig is an API on a ledger, with three jobs: one of every minute with overlap: skip, one that is disabled, and one without
// a schedule whose runs wait for each other.
type runsRig struct {
	*rig

	db    *database.DB
	woken int
}

func onRuns(t *testing.T, f func(g *runsRig)) {
	t.Helper()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		f(newRunsRig(t, db, nil))
	})
}

// fleetJobs are the jobs of a runsRig.
func fleetJobs(t *testing.T) []*jobs.Job {
	t.Helper()
	minutely, err := jobs.ParseSchedule("* * * * *", jobs.ScheduleOptions{})
	require.NoError(t, err)
	named := func(name string, change func(*jobs.Job)) *jobs.Job {
		resource, err := jobs.ParseTemplate(name, jobs.TemplateOptions{})
		require.NoError(t, err)
		j := &jobs.Job{Name: name, Resource: resource, Schedule: minutely, Overlap: jobs.OverlapSkip, OnLost: jobs.OnLostFail, Enabled: true}
		change(j)
		return j
	}
	return []*jobs.Job{
		named("team/report:daily", func(j *jobs.Job) { j.Tags = []string{"finance"} }),
		named("off", func(j *jobs.Job) { j.Enabled = false }),
		named("hand", func(j *jobs.Job) { j.Schedule, j.Overlap = nil, jobs.OverlapQueue }),
	}
}

func newRunsRig(t *testing.T, db *database.DB, change func(*httpapi.Fleet)) *runsRig {
	t.Helper()
	g := &runsRig{db: db}
	known := fleetJobs(t)
	fleet := &httpapi.Fleet{DB: db.Main, Jobs: func() []*jobs.Job { return known }, TTL: 30 * time.Second, Wake: func() { g.woken++ }}
	if change != nil {
		change(fleet)
	}
	g.rig = newRig(t, func(o *httpapi.Options) { withAuth(o); o.Fleet = fleet })
	return g
}

const report = "/jobs/team%2Freport:daily"

// as asks with a token.
func (g *runsRig) as(role, method, path, body string) *httptest.ResponseRecorder {
	g.Helper()
	return g.ask(method, path, body, "Authorization", "Bearer "+role)
}

func (g *runsRig) post(path, body string) *httptest.ResponseRecorder {
	g.Helper()
	return g.as("operator", http.MethodPost, path, body)
}

func (g *runsRig) start(job, body string, status int) wire.Run {
	g.Helper()
	w := g.post(job+"/runs", body)
	require.Equal(g, status, w.Code, w.Body.String())
	return decode[wire.Run](g.T, w)
}

func (g *runsRig) page(query string) wire.RunPage {
	g.Helper()
	w := g.as("viewer", http.MethodGet, "/runs"+query, "")
	require.Equal(g, http.StatusOK, w.Code, w.Body.String())
	return decode[wire.RunPage](g.T, w)
}

func TestStartARun(t *testing.T) {
	t.Parallel()
	onRuns(t, func(g *runsRig) {
		run := g.start(report, `{"request_id": "one", "reason": "because"}`, http.StatusCreated)
		assert.Equal(g, "team/report:daily", run.Job)
		assert.Equal(g, "o", *run.RequestedBy)
		assert.Equal(g, 1, g.woken)
		assert.Equal(g, run, g.start(report, `{"request_id": "one"}`, http.StatusOK), "the same request")
		p := g.refused(g.post(report+"/runs", `{}`), http.StatusConflict, "overlap")
		assert.InDelta(g, run.ID, p["run_id"], 0)
		g.refused(g.post("/jobs/off/runs", `{}`), http.StatusConflict, "disabled")
		p = g.refused(g.post("/jobs/hnad/runs", `{}`), http.StatusNotFound, "not_found")
		assert.Contains(g, p["detail"], `did you mean "hand"?`)
		for _, body := range []string{
			`{"params": {"x": "1"}}`, `{"params": {"x": 1}}`, `{"params": {"x": null}}`, `{"params": []}`, `{"reason": 1}`, `{"request_id": "` + strings.Repeat("x", 300) + `"}`,
		} {
			g.refused(g.post(report+"/runs", body), http.StatusUnprocessableEntity, "invalid")
		}
		p = g.refused(g.post(report+"/runs", `{"params": {"x": "1"}}`), http.StatusUnprocessableEntity, "invalid")
		assert.Equal(g, []any{map[string]any{
			"field": "params.x", "code": "unknown", "message": `the job declares no parameters, and "x" was given`,
		}}, p["errors"])
		g.refused(g.as("viewer", http.MethodPost, report+"/runs", `{}`), http.StatusForbidden, "forbidden")
		lines := g.lines()
		require.NotEmpty(g, lines)
		assert.Equal(g, "run.trigger", lines[0]["event.action"])
		assert.Equal(g, "o", lines[0]["actor.id"])
	})
}

func TestStartsAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // where no time passes: a slow machine gets room for ten more each second
		g := newRunsRig(t, dbtest.SQLite(t), nil)
		for range 200 {
			w := g.post("/jobs/hand/runs", `{"request_id": "same"}`)
			if w.Code == http.StatusTooManyRequests {
				assert.NotEmpty(t, w.Header().Get("Retry-After"))
				assert.Equal(t, http.StatusOK, g.as("admin", http.MethodPost, "/jobs/hand/runs", `{"request_id": "same"}`).Code, "each caller by itself")
				return
			}
		}
		assert.Fail(t, "no limit in 200 calls")
	})
}

func TestReadAndPageRuns(t *testing.T) {
	t.Parallel()
	onRuns(t, func(g *runsRig) {
		var ids []int64
		for range 5 {
			ids = append([]int64{g.start("/jobs/hand", `{}`, http.StatusCreated).ID}, ids...)
		}
		g.start(report, `{}`, http.StatusCreated)
		w := g.as("viewer", http.MethodGet, fmt.Sprint("/runs/", ids[0]), "")
		require.Equal(g, http.StatusOK, w.Code)
		assert.Equal(g, "hand", decode[wire.Run](g.T, w).Job)
		g.refused(g.as("viewer", http.MethodGet, "/runs/999", ""), http.StatusNotFound, "not_found")
		g.refused(g.as("viewer", http.MethodGet, "/runs/x", ""), http.StatusUnprocessableEntity, "invalid")

		var got []int64
		query := "?limit=2&filter=" + url.QueryEscape("job:hand")
		for cursor := ""; ; {
			page := g.page(query + cursor)
			for _, r := range page.Runs {
				got = append(got, r.ID)
			}
			if page.NextCursor == "" {
				break
			}
			cursor = "&cursor=" + page.NextCursor
			g.start("/jobs/hand", `{}`, http.StatusCreated) // newer than the page
		}
		assert.Equal(g, ids, got)
		assert.Len(g, g.page("?filter=tag:finance").Runs, 1)
		assert.Empty(g, g.page("?filter=tag:other").Runs)
		for _, bad := range []string{"?limit=0", "?limit=1001", "?cursor=x", "?cursor=MQ", "?filter=jbo:x"} {
			g.refused(g.as("viewer", http.MethodGet, "/runs"+bad, ""), http.StatusUnprocessableEntity, "invalid")
		}
		p := g.refused(g.as("viewer", http.MethodGet, "/runs?filter=jbo:x", ""), http.StatusUnprocessableEntity, "invalid")
		assert.Contains(g, fmt.Sprint(p["errors"]), `did you mean "job"?`)
		g.refused(g.as("locker", http.MethodGet, "/runs", ""), http.StatusForbidden, "forbidden")
	})
}

func TestExportRuns(t *testing.T) {
	t.Parallel()
	onRuns(t, func(g *runsRig) {
		g.start(report, `{}`, http.StatusCreated)
		fill := `INSERT INTO job_runs (job, occurrence, attempt, trigger, scheduled_at, due_at, resource, overlap, on_lost, max_attempts,
			state, created_at) SELECT '=evil', 'm:x' || n.id, 1, 'manual', r.scheduled_at, r.due_at, 'r', 'skip', 'fail', 1, 'pending', r.created_at
			FROM job_runs AS r, n`
		numbers := `WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 2500) `
		_, err := g.db.Main.NewRaw(numbers + fill).Exec(g.Context())
		require.NoError(g, err)
		w := g.as("viewer", http.MethodGet, "/runs/export?filter="+url.QueryEscape("job:=evil"), "")
		require.Equal(g, http.StatusOK, w.Code)
		rows, err := csv.NewReader(w.Body).ReadAll()
		require.NoError(g, err)
		require.Len(g, rows, 2501)
		assert.Equal(g, "'=evil", rows[1][1])
		w = g.as("viewer", http.MethodGet, "/runs/export?format=ndjson", "")
		assert.Equal(g, 2501, strings.Count(w.Body.String(), "\n"))
		g.refused(g.as("viewer", http.MethodGet, "/runs/export?format=xls", ""), http.StatusUnprocessableEntity, "invalid")
	})
}

func TestCancelAndRetryARun(t *testing.T) {
	t.Parallel()
	onRuns(t, func(g *runsRig) {
		run := g.start(report, `{}`, http.StatusCreated)
		at := fmt.Sprint("/runs/", run.ID)
		g.refused(g.post(at+"/retry", `{}`), http.StatusConflict, "unfinished")
		g.refused(g.as("viewer", http.MethodPost, at+"/cancel", `{}`), http.StatusForbidden, "forbidden")
		w := g.post(at+"/cancel", `{"reason": "enough"}`)
		require.Equal(g, http.StatusOK, w.Code, w.Body.String())
		assert.Equal(g, "cancelled", *decode[wire.Run](g.T, w).Outcome)
		g.refused(g.post(at+"/cancel", `{}`), http.StatusConflict, "finished")
		g.refused(g.post("/runs/999/cancel", `{}`), http.StatusNotFound, "not_found")
		w = g.post(at+"/retry", `{}`)
		require.Equal(g, http.StatusOK, w.Code, w.Body.String())
		next := decode[wire.Run](g.T, w)
		assert.Equal(g, 2, next.Attempt)
		assert.Equal(g, "retry", next.Trigger)
		p := g.refused(g.post(at+"/retry", `{"force": true}`), http.StatusConflict, "superseded")
		assert.InDelta(g, next.ID, p["run_id"], 0)
		g.refused(g.post("/runs/999/retry", `{}`), http.StatusNotFound, "not_found")
		g.refused(g.post("/runs/0/retry", `{}`), http.StatusUnprocessableEntity, "invalid")
		_, err := g.db.Main.NewRaw("UPDATE job_runs SET state = 'finished', outcome = 'succeeded', finished_at = created_at WHERE id = ?", next.ID).Exec(g.Context())
		require.NoError(g, err)
		g.refused(g.post(fmt.Sprint("/runs/", next.ID, "/retry"), `{}`), http.StatusConflict, "succeeded")
		assert.Equal(g, http.StatusOK, g.post(fmt.Sprint("/runs/", next.ID, "/retry"), `{"force": true}`).Code)
	})
}

func TestBackfillAJob(t *testing.T) {
	t.Parallel()
	onRuns(t, func(g *runsRig) {
		ask := func(more string) wire.Backfilled {
			w := g.post(report+"/backfill", `{"from": "2026-05-01T00:00:00Z", "until": "2026-05-01T00:09:00Z"`+more+`}`)
			require.Equal(g, http.StatusOK, w.Code, w.Body.String())
			return decode[wire.Backfilled](g.T, w)
		}
		preview := ask(`, "preview": true`)
		assert.Equal(g, 10, preview.Runs)
		assert.Empty(g, g.page("").Runs)
		done := ask(`, "concurrency": 2, "reason": "lost them"`)
		assert.Equal(g, 10, done.Runs)
		assert.Equal(g, done.Instants[9].RunID, &g.page("").Runs[0].ID)
		assert.Equal(g, 10, ask("").Skipped)
		assert.Equal(g, "unfinished", *ask("").Instants[0].Why)
		for _, body := range []string{
			`{}`, `{"from": "yesterday", "until": "2026-05-01T00:00:00Z"}`, `{"from": "2026-05-02T00:00:00Z", "until": "2026-05-01T00:00:00Z"}`,
			`{"from": "2026-05-01T00:00:00Z", "until": "2026-05-01T00:00:00Z", "concurrency": 0}`,
		} {
			g.refused(g.post(report+"/backfill", body), http.StatusUnprocessableEntity, "invalid")
		}
		p := g.refused(g.post(report+"/backfill", `{"from": "2026-04-01T00:00:00Z", "until": "2026-05-01T00:00:00Z"}`), http.StatusUnprocessableEntity, "invalid")
		assert.Contains(g, fmt.Sprint(p["errors"]), "43201 instants")
		g.refused(g.post("/jobs/hand/backfill", `{"from": "2026-04-01T00:00:00Z", "until": "2026-05-01T00:00:00Z"}`), http.StatusConflict, "no_schedule")
		g.refused(g.post("/jobs/off/backfill", `{"from": "2026-04-01T00:00:00Z", "until": "2026-05-01T00:00:00Z"}`), http.StatusConflict, "disabled")
		g.refused(g.post("/jobs/none/backfill", `{"from": "2026-04-01T00:00:00Z", "until": "2026-05-01T00:00:00Z"}`), http.StatusNotFound, "not_found")
	})
}

// Without the database every call about runs is 503, and says nothing of the reason.
func TestRunsWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	g := newRunsRig(t, dbtest.SQLite(t), func(f *httpapi.Fleet) {
		f.Check = func(context.Context) error { return errors.New("open /secret/path: gone") }
	})
	for _, call := range [][3]string{
		{http.MethodGet, "/runs", ""},
		{http.MethodGet, "/runs/1", ""},
		{http.MethodGet, "/runs/export", ""},
		{http.MethodPost, "/runs/1/cancel", "{}"},
		{http.MethodPost, "/runs/1/retry", "{}"},
		{http.MethodPost, report + "/runs", "{}"},
		{http.MethodPost, report + "/backfill", `{"from": "2026-05-01T00:00:00Z", "until": "2026-05-01T00:00:00Z"}`},
		{http.MethodPost, report + "/backfill", `{"from": "2026-05-01T00:00:00Z", "until": "2026-05-01T00:00:00Z", "preview": true}`},
	} {
		w := g.as("admin", call[0], call[1], call[2])
		g.refused(w, http.StatusServiceUnavailable, "database")
		assert.NotContains(t, w.Body.String(), "secret")
	}
}
