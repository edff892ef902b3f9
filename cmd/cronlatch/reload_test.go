package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/auth"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
)

// reloadable is a daemon as a process, on a database of its own.
func reloadable(t *testing.T, url, yaml string, args ...string) (*world, *child) {
	t.Helper()
	w := newWorld(t)
	w.write(t, yaml)
	w.env["DATABASE_URL"] = url
	c := w.spawn(t, append([]string{"serve", "--replica", "a", "--listen", "127.0.0.1:0"}, args...)...)
	_, address, _ := strings.Cut(c.waitFor(t, "ready at http://"), "ready at ")
	w.env["CRONLATCH_SERVER"] = address
	return w, c
}

func (c *child) leave(t *testing.T) {
	t.Helper()
	c.signal(t, syscall.SIGTERM)
	code, rest := c.end(t)
	assert.Equal(t, exitOK, code, rest)
}

func TestReload(t *testing.T) {
	t.Parallel()
	w, daemon := reloadable(t, dbtest.SQLiteURL(t), "jobs: {a: {run: date}, b: {run: date}}\n", "--watch=false", "--capacity", "3")
	w.run(t, "reload").says(t, exitOK, "nothing has changed\n", "")
	w.write(t, "jobs: {b: {run: uptime}, c: {run: date}, d: {run: date}}\n")
	w.run(t, "reload").says(t, exitOK, "added    c\nadded    d\nremoved  a\nchanged  b\n", "")
	assert.Regexp(t, `(?s)^\{\n  "added": \[\],\n  "removed": \[\],\n  "changed": \[\],\n  "jobs": 3,\n  "definitions": "[0-9a-f]{64}"\n\}\n$`, w.run(t, "reload", "-o", "json").out)

	w.write(t, "jobs:\n  a: {run: date, timeout: soon}\n  b: {rum: date}\n")
	bad := w.run(t, "reload")
	assert.Equal(t, exitConfig, bad.code)
	assert.Empty(t, bad.out)
	assert.Contains(t, bad.errors, "cronlatch.yaml:2:27: ")
	assert.Contains(t, bad.errors, "cronlatch.yaml:3:7: ", "all of it at once")
	assert.Contains(t, bad.errors, "cronlatch: the configuration has errors; nothing was changed\n")
	daemon.waitFor(t, "the configuration was rejected")

	w.write(t, "lock: {ttl: 20s}\ncapacity: 7\njobs: {}\n")
	w.run(t, "reload").says(t, exitConfig, "", "lock.ttl: only a restart can change this key  [restart]\n"+
		"cronlatch: only a restart can change the keys in errors; nothing was changed\n")

	w.write(t, "capacity: 7\njobs: {}\n") // the flag goes before the file, as at the start
	daemon.signal(t, syscall.SIGHUP)
	daemon.waitFor(t, `"by":"signal"`)
	w.run(t, "reload").says(t, exitOK, "nothing has changed\n", "")
	daemon.leave(t)
	for _, action := range []string{"config.load", "config.reject", "job.define", "job.remove"} {
		assert.Contains(t, daemon.output.String(), `"event.action":"`+action+`"`)
	}
}

func TestServeWatchesTheFile(t *testing.T) {
	t.Parallel()
	w, daemon := reloadable(t, dbtest.SQLiteURL(t), "jobs: {}\n")
	w.write(t, "jobs: {a: {run: date}}\n")
	assert.Contains(t, daemon.waitFor(t, "the configuration was reloaded"), `"by":"file"`)
	daemon.leave(t)
	w.env["CRONLATCH_WATCH"] = "sometimes"
	w.run(t, "serve").says(t, exitConfig, "", "cronlatch: CRONLATCH_WATCH must be true or false, not \"sometimes\"\n")
}

func TestWhoMayReload(t *testing.T) {
	t.Parallel()
	w, daemon := reloadable(t, dbtest.SQLiteURL(t), "jobs: {}\n", "--watch=false")
	stranger, err := auth.New("stranger")
	require.NoError(t, err)
	w.env["CRONLATCH_TOKEN"] = stranger
	got := w.run(t, "reload")
	assert.Equal(t, exitDenied, got.code)
	assert.Contains(t, got.errors, "does not permit it")
	assert.Contains(t, got.errors, "admin's token")
	daemon.leave(t)
	delete(w.env, "CRONLATCH_TOKEN")
	gone := w.run(t, "reload")
	assert.Equal(t, exitUnavailable, gone.code)
	assert.Contains(t, gone.errors, "is `cronlatch serve` running?")
}

// A server that is something else, or an older one.
func TestReloadWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"code": "draining", "detail": "this replica is \u001b[2Jleaving"}`))
	}))
	defer answers.Close()
	got := newWorld(t).run(t, "reload", "--server", answers.URL)
	assert.Equal(t, exitUnavailable, got.code)
	assert.NotContains(t, got.errors, "\x1b")
	assert.Contains(t, got.errors, "cronlatch: not reloaded: this replica is ")
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	newWorld(t).run(t, "reload", "--server", other.URL).says(t, exitUnavailable, "", "cronlatch: "+other.URL+"/-/reload answered 404 Not Found\n")
}

func TestReplicasList(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		w, a := reloadable(t, url, "jobs: {j: {run: date}}\n", "--watch=false")
		b := w.spawn(t, "serve", "--replica", "b", "--listen", "127.0.0.1:0", "--watch=false", "--capacity", "5", "--label", "zone=b", "--label", "disk=fast")
		b.waitFor(t, "ready at")
		seen := func() string { return w.run(t, "replicas", "list").out }
		host, err := os.Hostname()
		require.NoError(t, err)
		eventually(t, func() bool { return strings.Count(seen(), " up ") == 2 })
		got := w.run(t, "replicas", "list")
		assert.Empty(t, got.errors, "all agree")
		assert.Regexp(t, `(?m)^NAME +STATE +HOST +PID +VERSION +DEFINITIONS +RUNNING +LABELS +SEEN$`, got.out)
		assert.Regexp(t, `(?m)^b +up +`+host+` +\d+ +\S+ +[0-9a-f]{12} +0/5 +disk=fast,zone=b +\S+ ago$`, got.out)
		views := decode[[]map[string]any](t, w.run(t, "replicas", "list", "-o", "json").out)
		assert.Equal(t, []any{map[string]any{}, map[string]any{"disk": "fast", "zone": "b"}}, []any{views[0]["labels"], views[1]["labels"]})

		w.write(t, "jobs: {j: {run: uptime}}\n")
		w.run(t, "reload").says(t, exitOK, "changed  j\n", "")
		eventually(t, func() bool { return strings.Count(seen(), " * ") == 2 })
		assert.Contains(t, w.run(t, "replicas", "list").errors, "2 replicas with other jobs than most (*)", "of two, none is most")
		a.leave(t)
		delete(w.env, "CRONLATCH_SERVER") // the database tells it without a daemon
		left := w.run(t, "replicas", "list", "-o", "name")
		left.says(t, exitOK, "b\n", "")
		b.leave(t)
		w.run(t, "replicas", "list").says(t, exitOK, "", "cronlatch: there is no replica; `cronlatch serve` starts one\n")
	})
}
