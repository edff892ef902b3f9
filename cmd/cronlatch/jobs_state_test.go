package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// served is a daemon's API on the database of a world, with its jobs and without authentication.
func (w *world) served(t *testing.T, at string) (address string) {
	t.Helper()
	db := dbtest.Open(t, at)
	config, err := w.app().loadConfig()
	require.NoError(t, err)
	fleet := &httpapi.Fleet{DB: db.Main, TTL: locking.DefaultTTL, Now: testNow, Jobs: func() []*jobs.Job { return config.Jobs }}
	s := httptest.NewServer(httpapi.New(httpapi.Options{Fleet: fleet, Actor: "daemon"}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestJobsWithTheirState(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, at string) {
		t.Helper()
		w := connected(t, at)
		address := w.served(t, at)
		db := dbtest.Open(t, at).Main
		require.Equal(t, exitOK, w.run(t, "run", "by-hand", "--detach").code)
		_, err := db.ExecContext(t.Context(), "UPDATE job_runs SET state = 'finished', outcome = 'failed', reason = 'exit', exit_code = 3, finished_at = created_at")
		require.NoError(t, err)
		require.Equal(t, exitOK, w.run(t, "run", "by-hand", "--detach").code)
		_, err = db.ExecContext(t.Context(), "INSERT INTO plan_positions (job, schedule_hash, position) SELECT 'else\x1bwhere', 'x', created_at FROM job_runs LIMIT 1")
		require.NoError(t, err)
		w.run(t, "jobs", "pause", "--tag", "finance", "--reason", "close").says(t, exitOK, "",
			"cronlatch: the job \"report:monthly-YYYY-MM\" is paused until it is resumed; `cronlatch jobs resume report:monthly-YYYY-MM` ends it\n")
		for _, server := range []string{"", address} {
			list := w.run(t, "jobs", "list", "--server", server)
			require.Equal(t, exitOK, list.code, list.errors)
			assert.Regexp(t, `(?m)^JOB +SCHEDULE +ZONE +NEXT +STATE +LAST +DESCRIPTION$`, list.out)
			assert.Regexp(t, `(?m)^by-hand +by hand .* pending +failed `, list.out)
			assert.Regexp(t, `(?m)^report:monthly-YYYY-MM .* disabled +paused`, list.out)
			assert.Regexp(t, `(?m)^else\\x1bwhere +not defined here`, list.out)
			show := w.run(t, "jobs", "show", "by-hand", "--server", server)
			assert.Regexp(t, `(?m)^last run +run \d+, failed \(exit 3\), `, show.out)
			assert.Regexp(t, `(?m)^unfinished +run \d+, pending$`, show.out)
			show = w.run(t, "jobs", "show", "backup:db", "--server", server)
			assert.Regexp(t, `(?m)^next +2026-03-08T03:00:00-04:00 \(in 2h\)$`, show.out)
			assert.Contains(t, show.out, `Nightly\x1b[2J backup`)
			assert.Regexp(t, `(?m)^paused +until it is resumed, by \S+: close$`, w.run(t, "jobs", "show", "report:monthly-YYYY-MM", "--server", server).out)
			job := decode[wire.Job](t, w.run(t, "jobs", "show", "by-hand", "-o", "json", "--server", server).out)
			assert.Equal(t, 1, job.State.Unfinished)
			w.run(t, "jobs", "show", "byhand", "--server", server).says(t, exitFailure, "",
				"cronlatch: no replica has ever planned a job \"byhand\", did you mean \"by-hand\"?\ncronlatch: `cronlatch jobs list` shows the jobs\n")
			w.run(t, "jobs", "list", "--tag", "ops", "-o", "name", "--server", server).says(t, exitOK, "backup:db\nreport:monthly-YYYY-MM\n", "")
			for terms, want := range map[string]string{
				"tag:ops": "backup:db\nreport:monthly-YYYY-MM\n", "paused:true": "report:monthly-YYYY-MM\n", "state:pending": "by-hand\n",
				"outcome:failed reason:exit": "by-hand\n", "-defined:true": `else\x1bwhere` + "\n", "state:idle enabled:true": "backup:db\n",
			} {
				w.run(t, "jobs", "list", "--filter", terms, "-o", "name", "--server", server).says(t, exitOK, want, "")
			}
			w.run(t, "jobs", "list", "--filter", "tag:ops", "--tag", "finance", "-o", "name", "--server", server).says(t, exitOK, "report:monthly-YYYY-MM\n", "")
			none := w.run(t, "jobs", "list", "--filter", "outcome:lost", "-o", "name", "--server", server)
			assert.Regexp(t, `^cronlatch: no such jobs in `, none.errors)
		}
	})
}

// By tag, over a server: what was done has the name of the one whom the server knows.
func TestPauseByTag(t *testing.T) {
	t.Parallel()
	at := dbtest.SQLiteURL(t)
	w := connected(t, at)
	address := w.served(t, at)
	w.run(t, "pause-all", "--tag", "ops", "--server", address, "--until", "2999-01-01T00:00:00Z").says(t, exitOK, "",
		"cronlatch: the job \"backup:db\" is paused until 2999-01-01 00:00:00Z; `cronlatch jobs resume backup:db` ends it\n"+
			"cronlatch: the job \"report:monthly-YYYY-MM\" is paused until 2999-01-01 00:00:00Z; `cronlatch jobs resume report:monthly-YYYY-MM` ends it\n")
	list := decode[[]wire.Pause](t, w.run(t, "jobs", "paused", "-o", "json", "--server", address).out)
	require.Len(t, list, 2)
	assert.Equal(t, "daemon", list[0].By)
	w.run(t, "jobs", "resume", "--tag", "finance").says(t, exitOK, "", "cronlatch: the job \"report:monthly-YYYY-MM\" is resumed\n")
	w.run(t, "resume-all", "--tag", "finance").says(t, exitFailure, "", "cronlatch: no job with the tag \"finance\" has a pause of its own\n")
	w.run(t, "jobs", "resume", "--tag", "ops").says(t, exitOK, "", "cronlatch: the job \"backup:db\" is resumed\n")
	w.run(t, "jobs", "pause", "--tag", "finace").says(t, exitFailure, "",
		"cronlatch: no job that is defined here has the tag \"finace\", did you mean \"finance\"?\n")
	w.run(t, "jobs", "pause", "by-hand", "--tag", "ops").says(t, exitUsage, "", "cronlatch: jobs pause takes the names of jobs or --tag, not both\n")
	rows := decode[[]wire.AuditEntry](t, w.run(t, "audit", "list", "--action", "job.pause", "-o", "json").out)
	require.Len(t, rows, 2)
	assert.Contains(t, string(rows[0].Detail), `"ops"`)
}

// Without the database the list is that of the file, and says so; with --server there is no other list.
func TestJobsListWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	const address = nobodyListens
	w := connected(t, "postgres://x@"+address+"/x?sslmode=disable")
	w.patience = parse(t, "300ms")
	got := w.run(t, "jobs", "list", "-o", "name")
	assert.Equal(t, "backup:db\nby-hand\nreport:monthly-YYYY-MM\n", got.out)
	assert.Equal(t, exitOK, got.code)
	assert.Contains(t, got.errors, "cronlatch: without the state: the database ")
	assert.Equal(t, "by-hand\n", w.run(t, "jobs", "list", "-o", "name", "--filter", "-tag:ops hand").out)
	assert.Equal(t, exitUnavailable, w.run(t, "jobs", "list", "--filter", "paused:false").code, "nobody can tell")
	assert.Equal(t, exitUnavailable, w.run(t, "jobs", "list", "--server", address).code)
	assert.Equal(t, exitUnavailable, w.run(t, "jobs", "show", "by-hand").code)
	assert.Equal(t, exitOK, w.run(t, "next", "backup:db").code)
}

func TestDrainCommands(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, at string) {
		t.Helper()
		w, a := reloadable(t, at, "drain_timeout: 0s\njobs: {j: {run: sleep 300}}\n", "--watch=false")
		w.run(t, "replicas", "drain", "b").says(t, exitFailure, "",
			"cronlatch: there is no replica \"b\"\ncronlatch: `cronlatch replicas list` shows them\n")
		name := ""
		eventually(t, func() bool { // its row comes with its first beat
			name = strings.TrimSpace(w.run(t, "replicas", "list", "-o", "name").out)
			return name != ""
		})
		drained := w.run(t, "replicas", "drain", name, "--reason", "kernel\x1b", "--wait")
		assert.Equal(t, exitOK, drained.code)
		assert.Contains(t, drained.errors, fmt.Sprintf("cronlatch: the replica %q takes no new runs; `cronlatch replicas undrain %s` takes that back\n", name, name))
		assert.Contains(t, drained.errors, "cronlatch: no other replica takes runs: what falls due waits\n")
		assert.Contains(t, drained.errors, fmt.Sprintf("cronlatch: nothing runs on %q any more\n", name))
		views := decode[[]wire.Replica](t, w.run(t, "replicas", "list", "-o", "json").out)
		require.Len(t, views, 1)
		assert.Equal(t, []any{"draining", true, "kernel\x1b", "admin"}, []any{views[0].State, views[0].Draining, views[0].Drain.Reason, views[0].Drain.By})
		assert.NotEqual(t, exitOK, w.run(t, "health").code)

		w.run(t, "run", "j", "--detach")
		w.run(t, "replicas", "undrain", name).says(t, exitOK, "", fmt.Sprintf("cronlatch: the replica %q takes runs again\n", name))
		eventually(t, func() bool {
			return strings.Contains(w.run(t, "runs", "list", "-o", "json").out, `"running"`)
		})
		waiting := w.spawn(t, "replicas", "drain", name, "--wait")
		waiting.waitFor(t, "1 running run on ")
		waiting.signal(t, syscall.SIGINT)
		waiting.says(t, exitInterrupted, "not waiting any longer; the replica goes on to drain") // and the run goes on
		out := w.run(t, "audit", "list", "--replica", name).out
		assert.Contains(t, out, `kernel\x1b`)
		a.leave(t)
	})
}

// gate lets questions through to a daemon, or not, and counts them.
type gate struct {
	mu     sync.Mutex
	closed bool
	asked  int
}

func gated(t *testing.T, to string) (address string, g *gate) {
	t.Helper()
	target, err := url.Parse(to)
	require.NoError(t, err)
	g = &gate{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.pass() {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
		g.mu.Lock()
		g.asked++
		g.mu.Unlock()
	}))
	t.Cleanup(s.Close)
	return s.URL, g
}

func (g *gate) pass() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.closed
}

func (g *gate) close() { g.mu.Lock(); defer g.mu.Unlock(); g.closed = true }
func (g *gate) open()  { g.mu.Lock(); defer g.mu.Unlock(); g.closed = false }

// waitAsked waits until so many questions were answered.
func (g *gate) waitAsked(t *testing.T, n int) {
	t.Helper()
	eventually(t, func() bool { g.mu.Lock(); defer g.mu.Unlock(); return g.asked >= n })
}
