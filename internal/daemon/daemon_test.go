package daemon

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/migrations"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// booted is a daemon inside the test.
type booted struct {
	addr  string
	audit *observer.ObservedLogs
	stop  context.CancelFunc
	ended chan error
}

func boot(t *testing.T, url, yaml string) *booted {
	t.Helper()
	return serve(t, url, yaml, nil).booted
}

func options(t *testing.T, url, yaml string) (Options, *booted) {
	t.Helper()
	dir := t.TempDir()
	config, err := configs.Parse(filepath.Join(dir, "cronlatch.yaml"), []byte("version: 1\nlisten: 127.0.0.1:0\n"+yaml),
		configs.Options{Getenv: func(string) string { return "" }})
	require.NoError(t, err)
	target, err := database.Parse(url, os.Getenv, dir)
	require.NoError(t, err)
	core, lines := observer.New(zapcore.InfoLevel)
	return Options{
		Config: config, Target: target, Replica: "a", Version: "test", Dir: dir, Getenv: os.Getenv,
		Log: zap.NewNop(), Audit: zap.New(core),
	}, &booted{audit: lines, ended: make(chan error, 1)}
}

// leave ends the daemon politely.
func (b *booted) leave(t *testing.T) {
	t.Helper()
	b.stop()
	select {
	case err := <-b.ended:
		require.NoError(t, err)
	case <-time.After(patience):
		require.Fail(t, "the daemon did not leave")
	}
}

func (b *booted) status(t *testing.T, path string) int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+b.addr+path, nil)
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

const everySecond = `
jobs:
  tick:
    schedule: "* * * * * *"
    seconds: true
    command: ["/bin/sh", "-c", "echo $CRONLATCH_FENCING_TOKEN"]
`

// The whole daemon boots inside a test, twice in one process, and runs a job.
func TestTwoDaemonsInOneProcess(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		one, two := boot(t, url, everySecond), boot(t, url, everySecond)
		assert.Equal(t, http.StatusOK, one.status(t, "/healthz"))
		assert.Equal(t, http.StatusOK, two.status(t, "/readyz"))
		runs := waitForRuns(t, url, 3)
		one.leave(t)
		two.leave(t)
		for _, r := range runs {
			out, err := ledger(t, url).Output(t.Context(), r.ID)
			require.NoError(t, err)
			assert.Equal(t, fmt.Sprintln(r.FencingToken), string(out.Head))
		}
		checkAudit(t, one, two)
	})
}

func ledger(t *testing.T, url string) *jobs.Ledger {
	t.Helper()
	l, err := jobs.OpenLedger(dbtest.Open(t, url).Main)
	require.NoError(t, err)
	return l
}

// waitForRuns waits until at least n runs have succeeded.
func waitForRuns(t *testing.T, url string, n int) (runs []jobs.Run) {
	t.Helper()
	l := ledger(t, url)
	require.Eventually(t, func() bool {
		var err error
		runs, err = l.List(t.Context(), jobs.RunFilter{Outcome: jobs.OutcomeSucceeded})
		return err == nil && len(runs) >= n
	}, patience, 50*time.Millisecond)
	return runs
}

// checkAudit: each run has its line for every decision, once in the whole fleet, with the same identity in all of them.
func checkAudit(t *testing.T, daemons ...*booted) {
	t.Helper()
	seen := map[string]int{}
	for _, d := range daemons {
		for _, line := range d.audit.All() {
			f := line.ContextMap()
			action, _ := f["event.action"].(string)
			if id, ok := f["run.id"]; ok {
				seen[fmt.Sprint(action, " ", id)]++
			}
			if action == "run.finish" {
				assert.Equal(t, "run finish", line.Message, "the message is constant")
				assert.Equal(t, "tick", f["job"])
				assert.Equal(t, "succeeded", f["run.outcome"])
				for _, name := range []string{"scheduled_at", "resource", "owner", "fencing_token", "replica", "actor.type", "actor.id"} {
					assert.Contains(t, f, name)
				}
			}
		}
	}
	for key, n := range seen {
		assert.Equal(t, 1, n, key)
	}
	for _, action := range []string{"run.plan", "lock.acquire", "run.claim", "run.start", "run.finish"} {
		assert.Contains(t, seen, action+" 1")
	}
}

func TestASchemaFromTheFutureIsRefused(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		db := dbtest.Open(t, url)
		_, err := db.Main.NewRaw("INSERT INTO schema_migrations (version, name, checksum, applied_at) SELECT 999, name, checksum, applied_at FROM schema_migrations WHERE version = 1").Exec(t.Context())
		require.NoError(t, err)
		o, _ := options(t, url, "jobs: {}\n")
		d, err := New(o)
		require.NoError(t, err)
		require.ErrorIs(t, d.Run(t.Context()), migrations.ErrNewer)
	})
}

func TestATakenAddressIsAnError(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLiteURL(t)
	first := boot(t, url, "jobs: {}\n")
	defer first.leave(t)
	o, _ := options(t, url, "jobs: {}\n")
	o.Config.Listen = first.addr
	d, err := New(o)
	require.NoError(t, err)
	require.ErrorContains(t, d.Run(t.Context()), "listening on "+first.addr)
}

func TestACommandThatCannotStartIsAFailedRun(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLiteURL(t)
	d := boot(t, url, `
jobs:
  broken: {schedule: "* * * * * *", seconds: true, command: ["/no/such/program"]}
`)
	defer d.leave(t)
	var run jobs.Run
	l := ledger(t, url)
	require.Eventually(t, func() bool {
		runs, err := l.List(t.Context(), jobs.RunFilter{Outcome: jobs.OutcomeFailed})
		if err != nil || len(runs) == 0 {
			return false
		}
		run = runs[0]
		return true
	}, patience, 50*time.Millisecond)
	assert.Equal(t, jobs.ReasonStart, run.Reason)
	assert.Equal(t, 127, *run.ExitCode)
	assert.Contains(t, string(run.Detail), "/no/such/program")
}

// Two owners would be the result: one in the deleted file, one in the new one.
func TestADeletedDatabaseFileStopsEverything(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLiteURL(t)
	d := boot(t, url, `
lock: {ttl: 1s}
jobs:
  long: {schedule: "* * * * * *", seconds: true, command: ["sleep", "60"], kill_after: 100ms}
`)
	started := func() bool { return d.audit.FilterField(zap.String("event.action", "run.start")).Len() > 0 }
	require.Eventually(t, started, patience, 20*time.Millisecond)
	require.NoError(t, os.Remove(strings.TrimPrefix(url, "sqlite:")))
	lost := func() bool { return d.audit.FilterField(zap.String("event.action", "lock.lose")).Len() > 0 }
	require.Eventually(t, lost, patience, 20*time.Millisecond, "the lock is not renewed in a file that nobody else sees")
	assert.Equal(t, http.StatusServiceUnavailable, d.status(t, "/readyz"))
	d.stop()
	select {
	case <-d.ended: // an error is right: nothing could be written in the end
	case <-time.After(patience):
		require.Fail(t, "the daemon did not leave")
	}
}
