package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
)

// Each signal reaches the command and what it runs in the foreground, once.
func TestLockPassesSignalsOn(t *testing.T) {
	t.Parallel()
	rig := newLockRig(t, dbtest.SQLiteURL(t))
	p := rig.shell(t, "a", `
		for s in HUP QUIT USR1 USR2 WINCH INT; do trap "echo $s >> heard; : > $s" $s; done
		trap 'echo TERM >> heard; exit 9' TERM
		note ready; while :; do sleep 0.01; done`)
	rig.noted(t, "ready")
	sent := map[string]syscall.Signal{
		"HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "WINCH": syscall.SIGWINCH,
	}
	for name, sig := range sent {
		p.signal(t, sig)
		rig.noted(t, name)
	}
	p.signal(t, syscall.SIGTERM)
	assert.Equal(t, 9, p.end(t), "its own code")
	heard, err := os.ReadFile(filepath.Join(rig.dir, "heard"))
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"HUP", "QUIT", "USR1", "USR2", "WINCH", "TERM"}, strings.Fields(string(heard)))
	assert.Equal(t, 1, strings.Count(p.stderr.String(), "cronlatch: "), "shells talk about what a signal ended, too")
	p.says(t, "cronlatch: SIGTERM was passed on to the command; the next one kills it\n")
	rig.isFree(t, "a")
}

func TestLockSecondSignalKills(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		rig := newLockRig(t, dbtest.SQLiteURL(t))
		p := rig.shell(t, "a", "trap : INT TERM; note ready; while :; do sleep 0.01; done")
		pid := rig.noted(t, "ready")
		p.signal(t, sig)
		p.says(t, "the next one kills it")
		p.signal(t, sig)
		assert.Equal(t, exitSignal+int(sig), p.end(t))
		p.says(t, "again: killing the command")
		assert.False(t, isAlive(t, pid))
		rig.isFree(t, "a")
	}
}

// isAlive leaves out a zombie, which its new parent has not collected yet.
func isAlive(t *testing.T, pid string) bool {
	t.Helper()
	state, _ := exec.CommandContext(t.Context(), "ps", "-o", "stat=", "-p", pid).Output() // an error: there is none
	return len(state) > 0 && state[0] != 'Z'
}

// What nohup does is kept: the command ignores SIGHUP, and so do we.
func TestLockKeepsIgnoredSignals(t *testing.T) {
	t.Parallel()
	rig := newLockRig(t, dbtest.SQLiteURL(t))
	p := rig.command(t, "lock", "a", "--", "/bin/sh", "-c", noting+"note ready; while ! [ -e go ]; do sleep 0.01; done; exit 5")
	nohup, err := exec.LookPath("nohup")
	require.NoError(t, err)
	p.cmd.Args, p.cmd.Path = append([]string{"nohup", p.cmd.Path}, p.cmd.Args[1:]...), nohup
	p.start(t)
	rig.noted(t, "ready")
	p.signal(t, syscall.SIGHUP)
	child := rig.noted(t, "ready")
	n, err := strconv.Atoi(child)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(n, syscall.SIGHUP))
	rig.goOn(t)
	assert.Equal(t, 5, p.end(t))
}

// The lock is free only when nothing of the command is left.
func TestLockOutlivesLeftovers(t *testing.T) {
	t.Parallel()
	eachLockRig(t, func(t *testing.T, rig *lockRig) {
		t.Helper()
		p := rig.shell(t, "a", `(trap '' TERM; echo $(exec sh -c 'echo $PPID') > left.new; mv left.new left; while :; do sleep 0.01; done) >/dev/null 2>&1 &
			while ! [ -e left ]; do sleep 0.01; done; exit 4`, "--kill-after", "200ms")
		left := rig.noted(t, "left")
		assert.Equal(t, 4, p.end(t))
		assert.False(t, isAlive(t, left))
		rig.isFree(t, "a")
	})
}
