package main

import (
	"context"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/auth"
	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/internal/netfault"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

// callers know who has which token.
type callers map[string]auth.Principal

func (c callers) Authenticate(_ context.Context, token string) (auth.Principal, error) {
	p, ok := c[token]
	if !ok {
		return p, auth.ErrUnauthenticated
	}
	return p, nil
}

// served is a rig whose processes ask a server, with the token of ci, who may lock what begins with "ci/".
type served struct {
	*lockRig

	address string
	tokens  map[string]string // by who has it
}

func serverRig(t *testing.T) served {
	t.Helper()
	s := served{tokens: map[string]string{}}
	known := callers{}
	for _, p := range []auth.Principal{{ID: "ci", Role: auth.Locker, Prefix: "ci/"}, {ID: "other", Role: auth.Locker}, {ID: "admin", Role: auth.Admin}, {ID: "gone"}} {
		token, err := auth.New(p.ID)
		require.NoError(t, err)
		s.tokens[p.ID] = token
		if p.Role != "" {
			known[token] = p
		}
	}
	store := lockingtest.NewMemory(time.Now)
	server := httptest.NewServer(httpapi.New(httpapi.Options{Locks: store, Auth: known}))
	t.Cleanup(server.Close)
	s.address = server.URL
	s.lockRig = &lockRig{dir: t.TempDir(), env: []string{"CRONLATCH_SERVER=" + server.URL, "CRONLATCH_TOKEN=" + s.tokens["ci"]}, store: store}
	return s
}

// world is one whose commands ask the server as somebody.
func (s served) world(t *testing.T, who string) *world {
	t.Helper()
	w := newWorld(t)
	w.env["CRONLATCH_SERVER"], w.env["CRONLATCH_TOKEN"] = s.address, s.tokens[who]
	return w
}

func TestLockThroughAServer(t *testing.T) {
	t.Parallel()
	rig := serverRig(t)
	rig.take(t, "ci/busy", time.Hour)
	for _, c := range []struct {
		args []string
		who  string
		code int
		says string
	}{
		{[]string{"ci/a", "--", "sh", "-c", "exit 7"}, "ci", 7, ""},
		{[]string{"ci/a b/ü%2F?#", "--", "true"}, "ci", 0, ""},
		{[]string{"ci/busy", "--", "true"}, "ci", exitBusy, `cronlatch: the lock "ci/busy" is busy: held by {"team":"ops"} since `},
		{[]string{"ci/busy", "--wait", "100ms", "--", "true"}, "ci", exitBusy, "waited 100ms"},
		{[]string{"other", "--", "true"}, "ci", exitDenied, "cronlatch: the server " + rig.address + " does not permit it: "},
		{[]string{"ci/a", "--", "true"}, "gone", exitDenied, "CRONLATCH_TOKEN is the token that is sent"},
		{[]string{"ci/a", "--server", "http://127.0.0.1:1", "--", "true"}, "ci", exitUnavailable, "cronlatch: the server http://127.0.0.1:1 cannot be reached: "},
		{[]string{"ci/a", "--server", "ftp://x", "--", "true"}, "ci", exitUsage, "is not an address"},
	} {
		p := rig.command(t, append([]string{"lock"}, c.args...)...)
		p.cmd.Env = append(p.cmd.Env, "CRONLATCH_TOKEN="+rig.tokens[c.who])
		if c.code == exitUnavailable {
			p.cmd.Env = append(p.cmd.Env, asCommand+"=100ms")
		}
		p.start(t)
		assert.Equal(t, c.code, p.end(t), "%q: %s", c.args, p.stderr.String())
		assert.Contains(t, p.stderr.String(), c.says)
		assert.NotContains(t, p.stderr.String(), rig.tokens[c.who], "a token is never shown")
	}
	rig.isFree(t, "ci/a")
}

func TestLockTakenAwayThroughAServer(t *testing.T) {
	t.Parallel()
	rig := serverRig(t)
	p := rig.shell(t, "ci/a", stubbornScript, "--ttl", lostTTL, "--kill-after", "100ms")
	pid := rig.noted(t, "ready")
	w := rig.world(t, "ci")
	force := []string{"locks", "release", "ci/a", "--force", "--yes", "--reason", "test"}
	assert.Equal(t, exitDenied, w.run(t, force...).code)
	w.env["CRONLATCH_TOKEN"] = rig.tokens["admin"]
	forced := w.run(t, force...)
	require.Equal(t, exitOK, forced.code, forced.errors)
	assert.Equal(t, exitLost, p.end(t))
	assert.False(t, isAlive(t, pid))
	p.says(t, "it was taken away")
}

// A command whose server has gone silent is dead before somebody else's begins.
func TestLockCutOffFromItsServer(t *testing.T) {
	t.Parallel()
	rig := serverRig(t)
	u, err := url.Parse(rig.address)
	require.NoError(t, err)
	proxy := netfault.Listen(t, u.Host)
	p := rig.shell(t, "ci/a", stubbornScript, "--ttl", lostTTL, "--kill-after", "1s", "--server", "http://"+proxy.Addr())
	pid := rig.noted(t, "ready")
	proxy.BlackHole()
	rival := rig.lock(t, "ci/a", "--wait", "1m", "--", "/bin/sh", "-c", "if kill -0 "+pid+" 2>&-; then echo overlap; else echo alone; fi")
	require.Zero(t, rival.end(t), rival.stderr.String())
	assert.Equal(t, "alone\n", rival.stdout.String())
	assert.Equal(t, exitLost, p.end(t))
	p.says(t, "it could not be renewed in time")
}

func TestLocksThroughAServer(t *testing.T) {
	t.Parallel()
	rig := serverRig(t)
	w := rig.world(t, "ci")
	w.run(t, "locks", "list").says(t, exitOK, "", "cronlatch: no lock is held\n")
	w.run(t, "locks", "show", "ci/a").says(t, exitFailure, "", "cronlatch: the lock \"ci/a\" is free\n")
	p := rig.shell(t, "ci/a", "note ready; while ! [ -e go ]; do sleep 0.01; done", "--owner", "o7")
	rig.noted(t, "ready")
	w.run(t, "locks", "list", "-o", "name").says(t, exitOK, "ci/a\n", "")
	shown := w.run(t, "locks", "show", "ci/a")
	assert.Contains(t, shown.out, `The lock "ci/a" is held by sh (pid `)
	assert.Contains(t, shown.out, "and its owner is o7.")
	assert.Equal(t, exitDenied, w.run(t, "locks", "release", "ci/a", "--owner", "o8").code)
	assert.Equal(t, exitDenied, w.run(t, "locks", "show", "x").code)
	w.env["CRONLATCH_TOKEN"] = rig.tokens["other"]
	assert.Equal(t, exitDenied, w.run(t, "locks", "release", "ci/a", "--owner", "o7").code, "a lock belongs to the token, too")
	rig.goOn(t)
	assert.Zero(t, p.end(t))

	_, err := rig.store.Acquire(t.Context(), []locking.AcquireRequest{{Resource: "ci/b", Owner: "o9", Principal: "ci", TTL: time.Hour}})
	require.NoError(t, err)
	w.env["CRONLATCH_TOKEN"] = rig.tokens["ci"]
	w.run(t, "locks", "release", "ci/b", "--owner", "o9").says(t, exitOK, "", "cronlatch: the lock \"ci/b\" is released\n")
	w.env["CRONLATCH_SERVER"] = "http://127.0.0.1:1"
	gone := w.run(t, "locks", "list")
	assert.Equal(t, exitUnavailable, gone.code)
	assert.True(t, strings.HasPrefix(gone.errors, "cronlatch: the server http://127.0.0.1:1 cannot be reached: "), gone.errors)
	assert.NoFileExists(t, filepath.Join(w.dir, "cronlatch.db"), "the database was not touched")
}
