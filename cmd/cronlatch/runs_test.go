package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/wire"
)

// eachWay calls f with a daemon as the server and then straight on its database.
func eachWay(t *testing.T, w *world, f func(t *testing.T, way string)) {
	t.Helper()
	address := w.env["CRONLATCH_SERVER"]
	require.NotEmpty(t, address)
	t.Run("server", func(t *testing.T) { f(t, "server") }) // one daemon and one world for both
	delete(w.env, "CRONLATCH_SERVER")
	t.Run("database", func(t *testing.T) { f(t, "database") })
	w.env["CRONLATCH_SERVER"] = address
}

const withParams = `
jobs:
  report:
    run: 'echo "$CRONLATCH_PARAM_MONTH, dry run $CRONLATCH_PARAM_DRY_RUN"'
    params:
      month: {pattern: '\d{4}-\d\d'}
      dry-run: {type: boolean, default: true}
  slow: {run: 'echo begun; until [ -e go ]; do sleep 0.02; done; rm go; echo ended; exit 3'}
`

// Parameters reach the command; what the job does not take is refused by name, before there is a run.
func TestRunWithParameters(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		w, daemon := reloadable(t, url, withParams)
		eachWay(t, w, func(t *testing.T, _ string) {
			t.Helper()
			ok := w.run(t, "run", "report", "-p", "month=2026-05", "--reason", "late")
			assert.Equal(t, exitOK, ok.code, ok.errors)
			assert.Equal(t, "2026-05, dry run true\n", ok.out)
			got := w.run(t, "run", "report", "--param", "month=2026-06", "-p", "dry-run=false", "-o", "json")
			assert.Equal(t, map[string]string{"month": "2026-06", "dry-run": "false"}, decode[wire.Run](t, got.out).Params)
			before := w.run(t, "runs", "list", "-o", "name").out
			w.run(t, "run", "report", "-p", "mnth=1", "-p", "dry-run=no").says(t, exitUsage, "",
				"cronlatch: the parameter dry-run must be true or false; there is no parameter \"mnth\"; the job has dry-run, month; "+
					"the parameter month is missing; it has no default\ncronlatch: `cronlatch jobs show report` shows the parameters\n")
			assert.Equal(t, before, w.run(t, "runs", "list", "-o", "name").out, "nothing was started")
		})
		daemon.leave(t)
	})
}

func TestParamFlag(t *testing.T) {
	t.Parallel()
	w := connected(t, dbtest.SQLiteURL(t))
	for text, why := range map[string]string{"month": `"month" is not a parameter like month=2026-05`, "=x": `"=x" is not a parameter like month=2026-05`} {
		got := w.run(t, "run", "by-hand", "-p", text)
		assert.Equal(t, exitUsage, got.code)
		assert.Contains(t, got.errors, why)
	}
	twice := w.run(t, "run", "by-hand", "-p", "a=1", "-p", "a=2")
	assert.Equal(t, exitUsage, twice.code)
	assert.Contains(t, twice.errors, "the parameter a is given twice")
	w.run(t, "run", "by-hand", "-p", "a=b=c").says(t, exitUsage, "",
		"cronlatch: the job declares no parameters, and \"a\" was given\ncronlatch: `cronlatch jobs show by-hand` shows the parameters\n")
}

// seen is a writer that tells when a text has come.
type seen struct {
	mu    sync.Mutex
	text  bytes.Buffer
	until string
	come  chan struct{}
}

func (s *seen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := strings.Contains(s.text.String(), s.until)
	s.text.Write(p)
	if !before && strings.Contains(s.text.String(), s.until) {
		close(s.come)
	}
	return len(p), nil
}

// What the job prints is shown while it runs, and a second run of it is refused with what is in its way.
func TestRunShowsOutputBeforeTheEnd(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		w, daemon := reloadable(t, url, withParams)
		eachWay(t, w, func(t *testing.T, _ string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			out, errs, code := &seen{until: "begun\n", come: make(chan struct{})}, &bytes.Buffer{}, make(chan int, 1)
			go func() {
				code <- run(ctx, process{
					Args: []string{"run", "slow"}, Stdin: strings.NewReader(""), Stdout: out, Stderr: errs,
					Getenv: func(name string) string { return w.env[name] }, Dir: w.dir, Now: testNow, Patience: w.patience,
				})
			}()
			select {
			case <-out.come: // only then may the job end
			case got := <-code:
				require.Fail(t, "it ended before", "exit code %d: %s", got, errs)
			}
			id := strings.TrimSpace(w.run(t, "runs", "list", "--state", "running", "-o", "name").out)
			busy := w.run(t, "run", "slow")
			assert.Equal(t, exitBusy, busy.code)
			assert.Empty(t, busy.out)
			assert.Regexp(t, fmt.Sprintf("^cronlatch: busy: run %s of slow is running on replica a since \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\dZ, "+
				"and the job's overlap is skip\ncronlatch: `cronlatch logs %s -f` follows it, `cronlatch runs cancel %s` ends it\n$", id, id, id), busy.errors)
			w.file(t, "go", "")
			assert.Equal(t, 3, <-code)
			assert.Equal(t, "begun\nended\n", out.text.String())
			assert.Contains(t, errs.String(), fmt.Sprintf("cronlatch: run %s of slow on replica a failed after ", id))
		})
		daemon.leave(t)
	})
}

// With a server no file is needed.
func TestRunsOfAServerWithoutAFile(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLiteURL(t)
	address := connected(t, url).served(t, url)
	w := newWorld(t)
	started := w.run(t, "run", "by-hand", "--detach", "--server", address)
	assert.Equal(t, exitOK, started.code, started.errors)
	id := strings.TrimSpace(started.out)
	for _, args := range [][]string{
		{"runs", "list"}, {"runs", "show", id}, {"runs", "cancel", id}, {"runs", "retry", id}, {"runs", "export"}, {"logs", id},
	} {
		got := w.run(t, append(args, "--server", address)...)
		assert.Equal(t, exitOK, got.code, "%v: %s", args, got.errors)
	}
	w.run(t, "run", "byhand", "--server", address).says(t, exitFailure, "",
		"cronlatch: no job \"byhand\" is defined here, did you mean \"by-hand\"?\ncronlatch: `cronlatch jobs list` shows the jobs\n")
	assert.Equal(t, exitFailure, w.run(t, "run", "report:monthly-YYYY-MM", "--server", address).code, "disabled")
}

func TestRunsByFilter(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		w := connected(t, url)
		w.env["CRONLATCH_SERVER"] = w.served(t, url)
		start := func(job string) string { return w.run(t, "run", job, "--detach").out }
		backup, hand := start("backup:db"), start("by-hand")
		eachWay(t, w, func(t *testing.T, _ string) {
			t.Helper()
			list := func(filter string, more ...string) string {
				return w.run(t, append([]string{"runs", "list", "-o", "name", "--filter", filter}, more...)...).out
			}
			assert.Equal(t, backup, list("job:backup:*"))
			assert.Equal(t, hand, list("-job:backup:* state:pending"))
			assert.Equal(t, backup, list("tag:ops"))
			assert.Equal(t, hand, list("trigger:manual", "--job", "by-hand"), "flags are terms, too")
			assert.Empty(t, list("tag:ops", "--job", "by-hand"))
			bad := w.run(t, "runs", "list", "--filter", "jbo:x")
			assert.Equal(t, exitUsage, bad.code)
			assert.Contains(t, bad.errors, "jbo")
		})
	})
}

func TestShowCancelRetry(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		w := connected(t, url)
		w.env["CRONLATCH_SERVER"] = w.served(t, url)
		eachWay(t, w, func(t *testing.T, _ string) {
			t.Helper()
			id := strings.TrimSpace(w.run(t, "run", "by-hand", "--detach").out)
			show := w.run(t, "runs", "show", id)
			assert.Regexp(t, `(?m)^id +`+id+"\njob +by-hand\n", show.out)
			assert.Regexp(t, `(?m)^state +pending$`, show.out)
			assert.Equal(t, "by-hand", decode[wire.Run](t, w.run(t, "runs", "show", id, "-o", "json").out).Job)

			w.run(t, "runs", "retry", id).says(t, exitFailure, "", "cronlatch: run "+id+": the run has not ended; cancel it first, or wait\n")
			w.run(t, "runs", "cancel", id, "--reason", "wrong\x1b").says(t, exitOK, "", "cronlatch: run "+id+" of by-hand is cancelled\n")
			w.run(t, "runs", "cancel", id).says(t, exitFailure, "", "cronlatch: run "+id+": the run has ended; there is nothing to cancel\n")
			assert.Regexp(t, `(?m)^outcome +cancelled$`, w.run(t, "runs", "show", id).out)
			retried := w.run(t, "runs", "retry", id)
			assert.Equal(t, exitOK, retried.code, retried.errors)
			assert.Regexp(t, `^cronlatch: run \d+ is attempt 2 of by-hand; `, retried.errors)
			next := strings.TrimSpace(w.run(t, "runs", "list", "--state", "pending", "-o", "name").out)
			assert.NotEqual(t, id, next)
			assert.Equal(t, exitOK, w.run(t, "runs", "cancel", next).code)

			w.run(t, "runs", "show", "999").says(t, exitFailure, "", "cronlatch: there is no run 999\ncronlatch: `cronlatch runs list` shows the newest ones\n")
			assert.Equal(t, exitUsage, w.run(t, "runs", "cancel", "x").code)
			actions := w.run(t, "audit", "list", "--action", "run.cancel").out
			assert.Contains(t, actions, `wrong\x1b`)
		})
	})
}

// The name of a job can begin like a formula; a spreadsheet must not calculate it.
func TestExportRuns(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		w := connected(t, url)
		w.env["CRONLATCH_SERVER"] = w.served(t, url)
		first, second := w.run(t, "run", "by-hand", "--detach"), w.run(t, "run", "backup:db", "--detach")
		_, err := dbtest.Open(t, url).Main.NewRaw("UPDATE job_runs SET job = '=SUM(1)' WHERE id = " + strings.TrimSpace(second.out)).Exec(t.Context())
		require.NoError(t, err)
		eachWay(t, w, func(t *testing.T, _ string) {
			t.Helper()
			rows, err := csv.NewReader(strings.NewReader(w.run(t, "runs", "export").out)).ReadAll()
			require.NoError(t, err)
			require.Len(t, rows, 3)
			assert.Equal(t, []string{"id", "job"}, rows[0][:2])
			assert.Equal(t, []string{strings.TrimSpace(second.out), "'=SUM(1)"}, rows[1][:2])
			assert.Equal(t, []string{strings.TrimSpace(first.out), "by-hand"}, rows[2][:2])
			lines := strings.Split(strings.TrimSpace(w.run(t, "runs", "export", "-o", "ndjson", "--filter", "job:=SUM*").out), "\n")
			require.Len(t, lines, 1)
			assert.Equal(t, "=SUM(1)", decode[wire.Run](t, lines[0]).Job, "it is the name, not a cell")
		})
	})
}

const daily = "jobs: {report: {schedule: '0 6 * * *', run: 'true', params: {month: {default: all}}}, hand: {run: 'true'}}\n"

// Without a terminal nothing runs that nobody has said yes to.
func TestBackfill(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		w := newWorld(t)
		w.write(t, daily)
		w.env["DATABASE_URL"] = url
		w.env["CRONLATCH_SERVER"] = w.served(t, url)
		month := 0
		eachWay(t, w, func(t *testing.T, _ string) {
			t.Helper()
			month++ // what was filled is not filled again
			span := []string{
				"jobs", "backfill", "report", "--from", fmt.Sprintf("2026-0%d-02T00:00:00Z", month), "--until", fmt.Sprintf("2026-0%d-05T00:00:00Z", month),
			}
			fill := func(more ...string) answer { return w.run(t, append(span, more...)...) }
			head := "3 instants of report would run, 0 are left out\n"
			instants := fmt.Sprintf("  2026-0%[1]d-02T06:00:00Z run\n  2026-0%[1]d-03T06:00:00Z run\n  2026-0%[1]d-04T06:00:00Z run\n", month)
			fill("--preview").says(t, exitOK, head+instants, "")
			fill().says(t, exitUsage, head+instants,
				"cronlatch: nobody can be asked without a terminal; nothing was started\ncronlatch: --yes goes on without asking\n")
			started := func() string {
				return w.run(t, "runs", "list", "-o", "name", "--filter", fmt.Sprintf("since:2026-0%d-01T00:00:00Z", month)).out
			}
			assert.Empty(t, started())
			done := fill("--yes", "-p", "month=x", "-o", "json")
			require.Equal(t, exitOK, done.code, done.errors)
			filled := decode[wire.Backfilled](t, done.out)
			assert.Equal(t, 3, filled.Runs)
			assert.Equal(t, 3, strings.Count(started(), "\n"))
			run := decode[wire.Run](t, w.run(t, "runs", "show", strconv.FormatInt(*filled.Instants[0].RunID, 10), "-o", "json").out)
			assert.Equal(t, map[string]string{"month": "x"}, run.Params)
			again := fill("--yes")
			assert.Equal(t, exitOK, again.code)
			assert.Contains(t, again.out, "0 instants of report run, 3 are left out\n")
			assert.Equal(t, exitOK, fill().code, "there is nothing to ask about")
		})
		bad := w.run(t, "jobs", "backfill", "hand", "--from", "2026-01-01T00:00:00Z", "--until", "2026-01-02T00:00:00Z", "--yes")
		assert.Equal(t, exitFailure, bad.code)
		assert.Contains(t, bad.errors, "the job has no schedule")
		assert.Equal(t, exitUsage, w.run(t, "jobs", "backfill", "report", "--from", "2026-01-01T00:00:00Z").code)
		unknown := w.run(t, "jobs", "backfill", "report", "--from", "2026-01-01T00:00:00Z", "--until", "2026-01-02T00:00:00Z", "-p", "x=1")
		assert.Equal(t, exitUsage, unknown.code)
		assert.Contains(t, unknown.errors, `there is no parameter "x"; the job has month`)
	})
}
