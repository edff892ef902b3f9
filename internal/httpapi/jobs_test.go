package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
)

// got asks as a viewer and expects an answer.
func got[T any](g *runsRig, path string) T {
	g.Helper()
	w := g.as("viewer", http.MethodGet, path, "")
	require.Equal(g, http.StatusOK, w.Code, w.Body.String())
	return decode[T](g.T, w)
}

// did asks as an operator and expects an answer.
func did[T any](g *runsRig, path, body string) T {
	g.Helper()
	w := g.post(path, body)
	require.Equal(g, http.StatusOK, w.Code, w.Body.String())
	return decode[T](g.T, w)
}

func jobNames(page wire.JobPage) (names []string) {
	for _, j := range page.Jobs {
		names = append(names, j.Name)
	}
	return names
}

func (g *runsRig) exec(query string, args ...any) {
	g.Helper()
	_, err := g.db.Main.NewRaw(query, args...).Exec(g.Context())
	require.NoError(g, err)
}

func TestJobsHaveTheirState(t *testing.T) {
	t.Parallel()
	onRuns(t, func(g *runsRig) {
		good := g.start(report, "{}", http.StatusCreated)
		g.exec("UPDATE job_runs SET state = 'finished', outcome = 'succeeded', finished_at = created_at WHERE id = ?", good.ID)
		state := got[wire.Job](g, report).State
		assert.Equal(g, []int64{good.ID, good.ID}, []int64{state.LastRun.ID, state.LastSuccess.ID})
		failed := g.start(report, "{}", http.StatusCreated)
		g.exec("UPDATE job_runs SET state = 'finished', outcome = 'failed', finished_at = created_at WHERE id = ?", failed.ID)
		running := g.start(report, "{}", http.StatusCreated)
		g.exec("INSERT INTO plan_positions (job, schedule_hash, position) SELECT 'elsewhere', 'x', created_at FROM job_runs WHERE id = ?", good.ID)

		page := got[wire.JobPage](g, "/jobs")
		assert.Equal(g, []string{"elsewhere", "hand", "off", "team/report:daily"}, jobNames(page))
		assert.Equal(g, []bool{false, true, true, true}, []bool{page.Jobs[0].Defined, page.Jobs[1].Defined, page.Jobs[2].Defined, page.Jobs[3].Defined})
		assert.Empty(g, page.NextCursor)
		job := got[wire.Job](g, report)
		assert.Equal(g, page.Jobs[3].State, job.State)
		assert.Equal(g, []int64{failed.ID, good.ID, running.ID}, []int64{job.State.LastRun.ID, job.State.LastSuccess.ID, job.State.UnfinishedRuns[0].ID})
		assert.Equal(g, 1, job.State.Unfinished)
		assert.Nil(g, job.State.Paused)
		assert.Equal(g, "* * * * *", *job.Schedule)
		require.NotNil(g, job.Next)
		assert.Nil(g, page.Jobs[1].State.LastRun)
		assert.Nil(g, page.Jobs[2].Next, "it is disabled")

		assert.Equal(g, []string{"team/report:daily"}, jobNames(got[wire.JobPage](g, "/jobs?tag=finance")))
		assert.Empty(g, jobNames(got[wire.JobPage](g, "/jobs?tag=none")))
		first := got[wire.JobPage](g, "/jobs?limit=3")
		assert.Equal(g, []string{"elsewhere", "hand", "off"}, jobNames(first))
		assert.Equal(g, []string{"team/report:daily"}, jobNames(got[wire.JobPage](g, "/jobs?cursor="+first.NextCursor)))
		p := g.refused(g.as("viewer", http.MethodGet, "/jobs/of", ""), http.StatusNotFound, "not_found")
		assert.Contains(g, p["detail"], `did you mean "off"?`)
		for _, bad := range []string{"limit=0", "limit=1001", "tag=", "cursor=%21"} {
			g.refused(g.as("viewer", http.MethodGet, "/jobs?"+bad, ""), http.StatusUnprocessableEntity, "invalid")
		}
		g.refused(g.as("viewer", http.MethodGet, "/jobs?tga=x", ""), http.StatusBadRequest, "query")
	})
}

// A long backlog is counted, and only its oldest runs are shown.
func TestABacklogIsCounted(t *testing.T) {
	t.Parallel()
	onRuns(t, func(g *runsRig) {
		for range 25 {
			g.start("/jobs/hand", "{}", http.StatusCreated)
		}
		state := got[wire.Job](g, "/jobs/hand").State
		assert.Equal(g, 25, state.Unfinished)
		require.Len(g, state.UnfinishedRuns, jobs.MaxUnfinished)
		assert.Less(g, state.UnfinishedRuns[0].ID, state.UnfinishedRuns[19].ID)
	})
}

func TestNextInstants(t *testing.T) {
	t.Parallel()
	g := newRunsRig(t, dbtest.SQLite(t), func(f *httpapi.Fleet) {
		f.Now = func() time.Time { return time.Date(2026, 3, 7, 12, 0, 30, 0, time.UTC) }
	})
	next := got[wire.Instants](g, report+"/next?count=2")
	at := time.Date(2026, 3, 7, 12, 1, 0, 0, time.UTC)
	assert.Equal(t, []wire.Instant{
		{At: at, Local: "2026-03-07T12:01:00+00:00", DueAt: at}, {At: at.Add(time.Minute), Local: "2026-03-07T12:02:00+00:00", DueAt: at.Add(time.Minute)},
	}, next.Instants)
	assert.Len(t, got[wire.Instants](g, report+"/next").Instants, 10)
	assert.Empty(t, got[wire.Instants](g, "/jobs/hand/next").Instants)
	g.refused(g.as("viewer", http.MethodGet, report+"/next?count=0", ""), http.StatusUnprocessableEntity, "invalid")
	g.refused(g.as("viewer", http.MethodGet, "/jobs/none/next", ""), http.StatusNotFound, "not_found")
}

func TestPausesOverTheAPI(t *testing.T) {
	t.Parallel()
	onRuns(t, func(g *runsRig) {
		one := did[wire.PausedList](g, "/jobs/hand/pause", `{"reason": "disk", "for_seconds": 60}`).Pauses
		require.Len(g, one, 1)
		assert.Equal(g, []any{"hand", "disk", "o", false}, []any{*one[0].Job, one[0].Reason, one[0].By, one[0].Before})
		assert.Equal(g, time.Minute, one[0].Until.Sub(one[0].From).Round(time.Second))
		assert.True(g, did[wire.PausedList](g, "/jobs/hand/pause", `{}`).Pauses[0].Before)
		tagged := did[wire.PausedList](g, "/jobs/pause", `{"tag": "finance", "reason": "close"}`).Pauses
		require.Len(g, tagged, 1)
		assert.Equal(g, "team/report:daily", *tagged[0].Job)
		assert.Nil(g, did[wire.PausedList](g, "/jobs/pause", `{"all": true}`).Pauses[0].Job)
		assert.Len(g, got[wire.PauseList](g, "/pauses").Pauses, 3)
		assert.Equal(g, "close", got[wire.Job](g, report).State.Paused.Reason, "its own pause comes first")
		assert.Nil(g, got[wire.Job](g, "/jobs/off").State.Paused.Job, "all are paused")

		r := did[wire.Resumed](g, "/jobs/resume", `{"tag": "finance"}`)
		assert.Equal(g, []string{"team/report:daily"}, r.Jobs)
		assert.Len(g, r.Still, 2)
		assert.Equal(g, []string{"off"}, did[wire.Resumed](g, "/jobs/off/resume", `{}`).NotPaused)
		assert.True(g, did[wire.Resumed](g, "/jobs/resume", `{"all": true}`).All)
		r = did[wire.Resumed](g, "/jobs/resume", `{"jobs": ["hand", "off", "hand"]}`)
		assert.Equal(g, [][]string{{"hand"}, {"off"}}, [][]string{r.Jobs, r.NotPaused})
		assert.Empty(g, got[wire.PauseList](g, "/pauses").Pauses)
		assertTaggedRows(g)
	})
}

// assertTaggedRows: the tag by which a job was chosen is in the audit, in the row and in the line.
func assertTaggedRows(g *runsRig) {
	rows := got[wire.AuditPage](g, "/audit?job="+url.QueryEscape("team/report:daily")).Entries
	require.Len(g, rows, 2)
	assert.Equal(g, []string{"job.resume", "job.pause"}, []string{rows[0].Action, rows[1].Action})
	for _, r := range rows {
		assert.Contains(g, string(r.Detail), `"finance"`)
	}
	var tags []string
	for _, line := range g.lines() {
		if tag, ok := line["tag"]; ok {
			tags = append(tags, fmt.Sprint(line["event.action"], " ", tag, " ", line["job"], " ", line["actor.id"]))
		}
	}
	assert.Equal(g, []string{"job.pause finance team/report:daily o", "job.resume finance team/report:daily o"}, tags)
}

func TestPausesThatAreRefused(t *testing.T) {
	t.Parallel()
	onRuns(t, func(g *runsRig) {
		p := g.refused(g.post("/jobs/pause", `{"jobs": ["off", "hnad"]}`), http.StatusNotFound, "not_found")
		assert.Contains(g, p["detail"], `did you mean "hand"?; nothing was paused`)
		g.refused(g.post("/jobs/none/pause", `{}`), http.StatusNotFound, "not_found")
		p = g.refused(g.post("/jobs/pause", `{"tag": "finace"}`), http.StatusNotFound, "not_found")
		assert.Contains(g, p["detail"], `did you mean "finance"?`)
		g.refused(g.post("/jobs/resume", `{"tag": "finace"}`), http.StatusNotFound, "not_found")
		for _, body := range []string{
			`{}`, `{"all": false}`, `{"all": true, "tag": "finance"}`, `{"jobs": []}`, `{"jobs": [1]}`, `{"jobs": [""]}`, `{"jobs": ["off"], "tag": "x"}`,
			`{"all": true, "until": "soon"}`, `{"all": true, "until": "2020-01-01T00:00:00Z"}`, `{"all": true, "for_seconds": 0}`, `{"tag": ""}`,
			`{"all": true, "until": "2999-01-01T00:00:00Z", "for_seconds": 60}`, `{"all": true, "reason": 1}`,
		} {
			g.refused(g.post("/jobs/pause", body), http.StatusUnprocessableEntity, "invalid")
		}
		g.refused(g.post("/jobs/resume", `{}`), http.StatusUnprocessableEntity, "invalid")
		g.refused(g.post("/jobs/resume", `{"reason": "x"}`), http.StatusBadRequest, "malformed")
		assert.Empty(g, got[wire.PauseList](g, "/pauses").Pauses)
	})
}

// A job may be called like a path of its own; its caller escapes a letter.
func TestAJobCalledPause(t *testing.T) {
	t.Parallel()
	g := newRunsRig(t, dbtest.SQLite(t), nil)
	g.exec("INSERT INTO plan_positions (job, schedule_hash, position) VALUES ('pause', 'x', 1)")
	assert.Equal(t, "pause", got[wire.Job](g, "/jobs/%70ause").Name)
	assert.Equal(t, "pause", *did[wire.PausedList](g, "/jobs/pause/pause", `{}`).Pauses[0].Job)
}

// fleetCalls are the calls of this part, each with the least role.
func fleetCalls() map[[3]string]string {
	return map[[3]string]string{
		{http.MethodGet, "/jobs", ""}: "viewer", {http.MethodGet, report, ""}: "viewer", {http.MethodGet, report + "/next", ""}: "viewer",
		{http.MethodGet, "/pauses", ""}: "viewer", {http.MethodGet, "/replicas", ""}: "viewer", {http.MethodGet, "/audit", ""}: "viewer",
		{http.MethodPost, report + "/pause", "{}"}: "operator", {http.MethodPost, report + "/resume", "{}"}: "operator",
		{http.MethodPost, "/jobs/pause", `{"all": true}`}: "operator", {http.MethodPost, "/jobs/resume", `{"all": true}`}: "operator",
		{http.MethodPost, "/replicas/a/drain", "{}"}: "admin", {http.MethodPost, "/replicas/a/undrain", "{}"}: "admin",
	}
}

func TestWhoMayOperateTheFleet(t *testing.T) {
	t.Parallel()
	g := newRunsRig(t, dbtest.SQLite(t), nil)
	order := map[string]int{"locker": 0, "viewer": 1, "operator": 2, "admin": 3}
	for call, least := range fleetCalls() {
		g.refused(g.ask(call[0], call[1], call[2]), http.StatusUnauthorized, "unauthenticated")
		for role, rank := range order {
			w := g.as(role, call[0], call[1], call[2])
			if rank < order[least] {
				g.refused(w, http.StatusForbidden, "forbidden")
				continue
			}
			assert.NotEqual(t, http.StatusForbidden, w.Code, "%s %v", role, call)
		}
	}
}

func TestTheFleetWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	g := newRunsRig(t, dbtest.SQLite(t), func(f *httpapi.Fleet) {
		f.Check = func(context.Context) error { return errors.New("open /secret/path: gone") }
	})
	for call := range fleetCalls() {
		w := g.as("admin", call[0], call[1], call[2])
		if call[1] == report+"/next" {
			assert.Equal(t, http.StatusOK, w.Code, "the schedule is enough")
			continue
		}
		g.refused(w, http.StatusServiceUnavailable, "database")
		assert.NotContains(t, w.Body.String(), "secret")
	}
}
