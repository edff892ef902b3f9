package main

import (
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/netfault"
)

// lostTTL is long enough for renewals to come in time on a busy machine, and short enough to be waited for.
const lostTTL = "10s"

// stubbornScript does not listen to SIGTERM.
const stubbornScript = "trap '' TERM; note ready; while :; do sleep 0.01; done"

func TestLockTakenAway(t *testing.T) {
	t.Parallel()
	eachLockRig(t, func(t *testing.T, rig *lockRig) {
		t.Helper()
		p := rig.shell(t, "a", "trap ': > heard; exit 3' TERM; note ready; while :; do sleep 0.01; done", "--ttl", lostTTL)
		pid := rig.noted(t, "ready")
		rig.force(t, "a")
		assert.Equal(t, exitLost, p.end(t))
		p.says(t, `cronlatch: the lock "a" is lost: it was taken away; stopping the command`)
		p.says(t, `cronlatch: the lock "a" was lost while the command ran, and the command was stopped (it ended with exit code 3)`)
		assert.FileExists(t, filepath.Join(rig.dir, "heard"), "SIGTERM first")
		assert.False(t, isAlive(t, pid))
	})
}

// A command that ended by itself, after its lock was somebody else's, was perhaps not alone.
func TestLockTakenAwayUnnoticed(t *testing.T) {
	t.Parallel()
	rig := newLockRig(t, dbtest.SQLiteURL(t))
	p := rig.shell(t, "a", "note ready; while ! [ -e go ]; do sleep 0.01; done; exit 0", "--ttl", "1h")
	rig.noted(t, "ready")
	record, err := rig.store.Get(t.Context(), "a")
	require.NoError(t, err)
	w := &world{dir: rig.dir, env: map[string]string{"DATABASE_URL": rig.env[0][len("DATABASE_URL="):]}, patience: time.Minute}
	forced := w.run(t, "locks", "release", "a", "--force", "--yes", "--immediate", "--reason", "test")
	require.Equal(t, exitOK, forced.code, forced.errors)
	rival := rig.take(t, "a", time.Hour)
	require.Greater(t, rival.FencingToken, record.FencingToken)
	rig.goOn(t)
	assert.Equal(t, exitLost, p.end(t))
	p.says(t, `cronlatch: the lock "a" had been taken away before the command ended (it ended with exit code 0)`)
}

// P3 and P4: whatever happens to `cronlatch lock` and its connection, its command is dead before a rival's begins.
func TestLockCommandIsDeadBeforeARivalStarts(t *testing.T) {
	t.Parallel()
	faults := map[string]func(t *testing.T, p *lockProcess, proxy *netfault.Proxy){
		"killed":     func(t *testing.T, p *lockProcess, _ *netfault.Proxy) { t.Helper(); p.signal(t, syscall.SIGKILL) },
		"frozen":     func(t *testing.T, p *lockProcess, _ *netfault.Proxy) { t.Helper(); p.signal(t, syscall.SIGSTOP) },
		"black hole": func(t *testing.T, _ *lockProcess, proxy *netfault.Proxy) { t.Helper(); proxy.BlackHole() },
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct := newLockRig(t, dbtest.PostgresURL(t))
			proxy := proxied(t, direct)
			p := proxy.rig.shell(t, "a", stubbornScript, "--ttl", lostTTL, "--kill-after", "1s")
			victim := proxy.rig.noted(t, "ready")
			fault(t, p, proxy.Proxy)
			rival := direct.lock(t, "a", "--wait", "1m", "--", "/bin/sh", "-c", "if kill -0 "+victim+" 2>&-; then echo overlap; else echo alone; fi")
			require.Zero(t, rival.end(t), rival.stderr.String())
			assert.Equal(t, "alone\n", rival.stdout.String())
			_ = p.cmd.Process.Signal(syscall.SIGCONT) // only a frozen one is still there
			want := exitLost
			if name == "killed" {
				want = -1
			}
			assert.Equal(t, want, p.end(t), p.stderr.String())
			if name == "black hole" {
				p.says(t, "cronlatch: renewal not confirmed: ")
				p.says(t, "it could not be renewed in time")
			}
		})
	}
}

// The supervisor's death is the command's, and then the lock is free.
func TestLockWhoseSupervisorDies(t *testing.T) {
	t.Parallel()
	rig := newLockRig(t, dbtest.SQLiteURL(t))
	p := rig.shell(t, "a", "echo $PPID > parent; "+stubbornScript)
	pid := rig.noted(t, "ready")
	parent, err := strconv.Atoi(rig.noted(t, "parent"))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(parent, syscall.SIGKILL))
	assert.Equal(t, exitFailure, p.end(t))
	p.says(t, "cronlatch: the process that watched over the command died, and the command was killed")
	assert.False(t, isAlive(t, pid))
	rig.isFree(t, "a")
}

// A database that is away for less than the lease harms nobody, and its release is tried until it is back.
func TestLockSurvivesAShortOutage(t *testing.T) {
	t.Parallel()
	direct := newLockRig(t, dbtest.PostgresURL(t))
	proxy := proxied(t, direct)
	p := proxy.rig.shell(t, "a", "note ready; while ! [ -e go ]; do sleep 0.01; done; exit 6", "--ttl", lostTTL, "--kill-after", "0s")
	proxy.rig.noted(t, "ready")
	proxy.Refuse()
	proxy.CutAll()
	p.says(t, "cronlatch: renewal not confirmed: ")
	proxy.rig.goOn(t)
	proxy.Restore()
	assert.Equal(t, 6, p.end(t), p.stderr.String())
	assert.Equal(t, 1, strings.Count(p.stderr.String(), "renewal not confirmed"), "once for each outage")
	direct.isFree(t, "a")
}
