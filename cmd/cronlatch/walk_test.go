package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
)

// newcomersPatience is what a job of each minute may take to have run, with room for a busy machine.
const newcomersPatience = 3 * time.Minute

// The walk of somebody who has never seen cronlatch, from an empty folder: each command with its answer. The clock of
// the commands is the real one here: they speak of what a daemon does now. The demo has a test of its own, and the compose
// file one in deploy.
func TestTheWalkOfANewcomer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env["PATH"] = os.Getenv("PATH")
	w.now = time.Now
	walk, cancel := context.WithTimeout(t.Context(), newcomersPatience)
	defer cancel()

	t.Log("init writes a file and its schema, and never overwrites")
	made := w.run(t, "init")
	require.Equal(t, exitOK, made.code, made.errors)
	yaml, err := os.ReadFile(filepath.Join(w.dir, "cronlatch.yaml"))
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(yaml), "# yaml-language-server: $schema=./cronlatch.schema.json\n"))
	schema, err := os.ReadFile(filepath.Join(w.dir, "cronlatch.schema.json"))
	require.NoError(t, err)
	assert.Equal(t, w.run(t, "schema").out, string(schema))
	assert.NotEqual(t, exitOK, w.run(t, "init").code, "it would overwrite")

	t.Log("validate shows when each job runs next")
	valid := w.run(t, "validate")
	assert.Equal(t, exitOK, valid.code, valid.errors)
	assert.Regexp(t, `(?m)^heartbeat +.*UTC`, valid.out)
	assert.Regexp(t, `(?m)^report:monthly +.*UTC +.* 06:00:00 `, valid.out)

	t.Log("serve says where its state is, where it answers, and how to log in; a second one joins it")
	first := w.spawn(t, "serve", "--replica", "a", "--listen", "127.0.0.1:0")
	banner := first.until(t, "ready at http://")
	assert.Contains(t, banner, "cronlatch.db")
	assert.Contains(t, banner, "cronlatch.token")
	second := w.spawn(t, "serve", "--replica", "b", "--listen", "127.0.0.1:0")
	second.waitFor(t, "ready at http://")
	w.waitFor(walk, t, `(?s)\na +up .*\nb +up `, "replicas", "list")

	t.Log("the first run succeeds within the patience of a newcomer")
	run := w.firstSuccess(walk, t, "heartbeat")

	t.Log("explain tells its story, from planned to released")
	newest := w.run(t, "explain", "heartbeat")
	assert.Equal(t, exitOK, newest.code, newest.errors)
	story := w.run(t, "explain", run) // by now another run may be the newest
	require.Equal(t, exitOK, story.code, story.errors)
	for _, word := range []string{"Planned", "claimed", "fencing token", "Succeeded", "released", "replica"} {
		assert.Contains(t, story.out, word)
	}
	assert.Contains(t, w.run(t, "logs", run).out, "under the lock heartbeat")

	t.Log("a command under a lock exits with its own code")
	w.script(t, "deploy.sh", "#!/bin/sh\necho \"$CRONLATCH_LOCK\"\nexit 7\n")
	code, rest := w.spawn(t, "lock", "deploy", "--", "./deploy.sh").end(t)
	assert.Equal(t, 7, code, rest)

	for _, daemon := range []*child{first, second} {
		daemon.signal(t, syscall.SIGTERM)
		code, rest := daemon.end(t)
		assert.Equal(t, exitOK, code, rest)
	}
}

// until reads stderr until a line contains the text, and returns all that was said.
func (c *child) until(t *testing.T, text string) string {
	t.Helper()
	var said strings.Builder
	for line := range c.lines {
		said.WriteString(line + "\n")
		if strings.Contains(line, text) {
			return said.String()
		}
	}
	require.Fail(t, "the process ended", "without saying %q: %s", text, said.String())
	return ""
}

// waitFor asks until the answer is like this.
func (w *world) waitFor(ctx context.Context, t *testing.T, like string, args ...string) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		got := w.runIn(ctx, args...)
		require.Equal(t, exitOK, got.code, got.errors)
		if regexp.MustCompile(like).MatchString(got.out) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			require.Fail(t, "it never answers like this", "%s\n%s", like, got.out)
		}
	}
}

// firstSuccess waits until a run of the job has succeeded, and returns its id.
func (w *world) firstSuccess(ctx context.Context, t *testing.T, job string) string {
	t.Helper()
	for tick := time.NewTicker(500 * time.Millisecond); ; {
		got := w.runIn(ctx, "runs", "list", "--job", job, "--outcome", "succeeded", "-o", "json")
		require.Equal(t, exitOK, got.code, got.errors)
		var runs []struct {
			ID json.Number `json:"id"`
		}
		require.NoError(t, json.Unmarshal([]byte(got.out), &runs))
		if len(runs) > 0 {
			tick.Stop()
			return runs[0].ID.String()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			require.Fail(t, "no run has succeeded", "%s", w.runIn(context.WithoutCancel(ctx), "runs", "list").out)
		}
	}
}

func (w *world) script(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o700))
}

// What somebody with a database and a crontab types next.
func TestTheWalkToAFleet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env["PATH"], w.env["DATABASE_URL"] = os.Getenv("PATH"), dbtest.PostgresURL(t)
	w.now = time.Now

	w.file(t, "crontab", "SHELL=/bin/sh\nMAILTO=root\n17 3 * * * root cd / && echo 100\\% > /dev/null\n")
	imported := w.run(t, "import", "crontab", "crontab")
	require.Equal(t, exitOK, imported.code, imported.errors)
	w.write(t, imported.out)
	valid := w.run(t, "validate")
	assert.Equal(t, exitOK, valid.code, valid.out+valid.errors)
	assert.Regexp(t, `03:17:00`, valid.out)

	checked := w.run(t, "doctor")
	assert.Equal(t, exitOK, checked.code, checked.out+checked.errors)
	assert.Regexp(t, `(?m)^ok +.*PostgreSQL`, checked.out)
	for line := range strings.Lines(checked.out) {
		assert.NotRegexp(t, `^fail`, line)
	}
}
