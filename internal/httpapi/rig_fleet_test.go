package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
)

// withFleet gives a rig the jobs of fleetJobs and a ledger of its own, with one run that waits; several rigs may share it.
func withFleet(t *testing.T) func(o *httpapi.Options) {
	t.Helper()
	db, known := dbtest.SQLite(t), fleetJobs(t)
	fleet := &httpapi.Fleet{DB: db.Main, Jobs: func() []*jobs.Job { return known }, TTL: 30 * time.Second}
	g := newRig(t, func(o *httpapi.Options) { o.Fleet = fleet })
	w := g.ask(http.MethodPost, "/jobs/hand/runs", `{}`)
	require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
	require.EqualValues(t, 1, decode[wire.Run](t, w).ID, "what pathOf takes for a run")
	_, err := db.Main.NewRaw("INSERT INTO replicas (name, boot_nonce, host, pid, version, definitions_hash, capacity, joined_at, seen_at) " +
		"SELECT 'here', 'n', 'h', 1, 'v', 'd', 4, created_at, created_at FROM job_runs").Exec(t.Context())
	require.NoError(t, err)
	return func(o *httpapi.Options) { o.Fleet = fleet }
}

// broken is a fleet whose database does what down does.
func broken(f *httpapi.Fleet, down func() error) *httpapi.Fleet {
	other := *f
	other.Check = func(context.Context) error { return down() }
	return &other
}

// driveFleet brings what depends on jobs, runs and replicas, one line for each answer.
func driveFleet(g *rig) {
	admin := []string{"Authorization", "Bearer admin"}
	do := func(method, at, body string) int { return g.ask(method, at, body, admin...).Code }
	get := func(at string) { do(http.MethodGet, at, "") }
	post := func(at, body string) int { return do(http.MethodPost, at, body) }
	for _, at := range []string{
		"/jobs/hand", "/jobs/hand/next", "/jobs/nobody", "/jobs/nobody/next", report + "/next", report + "/next?count=0", "/jobs?tag=%00", "/jobs?limit=0",
		report + "/explain", report + "/explain?at=noon", "/jobs/nobody/explain", "/runs/1/explain", "/runs/99/explain", "/runs/x/explain",
	} {
		get(at)
	}
	for _, at := range []string{"/runs?limit=0", "/runs/export?format=x", "/runs/export", "/runs/1", "/runs/99", "/runs/x", "/runs/1/output", "/runs/99/output", "/runs/x/output", "/runs/1/output/raw", "/runs/99/output/raw", "/runs/x/output/raw", "/audit?limit=0", "/audit", "/pauses", "/replicas", "/replicas?x=1"} {
		get(at)
	}
	for _, verb := range []string{"pause", "resume"} {
		for _, body := range []string{`{"tag": "finance"}`, `{"tag": "nothing"}`, `{"all": true}`, `{"tag": 1}`, `{}`} {
			post("/jobs/"+verb, body)
		}
		post("/jobs/hand/"+verb, `{}`)
		post("/jobs/nobody/"+verb, `{}`)
	}
	post("/jobs/hand/pause", `{"for_seconds": 0}`)
	for _, verb := range []string{"drain", "undrain"} {
		post("/replicas/nobody/"+verb, `{}`)
		post("/replicas/here/"+verb, `{}`)
		post("/replicas/nobody/"+verb, `{"reason": 1}`)
	}
	driveRuns(g, post)
	driveBackfill(post)
}

func driveRuns(g *rig, post func(at, body string) int) {
	for _, job := range []string{"hand", "off", "nobody", "team%2Freport:daily", "team%2Freport:daily"} { // the last one finds a run
		post("/jobs/"+job+"/runs", `{"request_id": "`+strings.Repeat("x", len(job))+`"}`)
	}
	post("/jobs/team%2Freport:daily/runs", `{}`)
	post("/jobs/hand/runs", `{"request_id": 1}`)
	post("/runs/1/cancel", `{"reason": 1}`)
	post("/runs/x/cancel", `{}`)
	post("/runs/99/cancel", `{}`)
	waiting := decode[wire.Run](g.T, g.ask(http.MethodPost, "/jobs/hand/runs", `{"request_id": "own"}`, "Authorization", "Bearer admin"))
	run := fmt.Sprint("/runs/", waiting.ID)
	post(run+"/retry", `{}`)               // unfinished
	post(run+"/cancel", `{"reason": "x"}`) // done
	post(run+"/cancel", `{}`)              // finished
	post(run+"/retry", `{}`)               // done
	post(run+"/retry", `{}`)               // superseded
	ended(g, waiting.ID, "other", "succeeded")
	post(run+"/retry", `{}`)
	ended(g, waiting.ID, "off", "failed")
	post(run+"/retry", `{}`) // disabled
	post("/runs/99/retry", `{}`)
	post("/runs/x/retry", `{}`)
	post("/runs/2/retry", `{"force": 1}`)
	for range 200 { // until the rate is too much
		if post("/jobs/hand/runs", `{"request_id": "again"}`) == http.StatusTooManyRequests {
			return
		}
	}
	require.Fail(g, "starts have no limit")
}

// ended makes a run the last one of a job, with this outcome.
func ended(g *rig, run int64, job, outcome string) {
	g.Helper()
	_, err := g.fleet.DB.NewRaw("UPDATE job_runs SET job = ?, state = 'finished', outcome = ?, finished_at = created_at WHERE id = ?",
		job, outcome, run).Exec(g.Context())
	require.NoError(g, err)
}

func driveBackfill(post func(at, body string) int) {
	const span = `"from": "2026-05-01T00:00:00Z", "until": "2026-05-01T00:02:00Z"`
	post(report+"/backfill", `{`+span+`, "preview": true}`)
	post(report+"/backfill", `{`+span+`}`)
	post(report+"/backfill", `{`+span+`, "concurrency": 0}`)
	for _, job := range []string{"hand", "off", "nobody"} {
		post("/jobs/"+job+"/backfill", `{`+span+`}`)
	}
}
