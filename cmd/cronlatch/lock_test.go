package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
)

// The table of exit codes, by real processes.
func TestLockExitCodes(t *testing.T) {
	t.Parallel()
	eachLockRig(t, func(t *testing.T, rig *lockRig) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(rig.dir, "data"), []byte("no program"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(rig.dir, "garbage"), []byte("no program"), 0o700))              //nolint:gosec // to be executable is the point
		require.NoError(t, os.WriteFile(filepath.Join(rig.dir, "orphan"), []byte("#!/no/such/interpreter\n"), 0o700)) //nolint:gosec // as above
		rig.take(t, "busy", time.Hour)
		for _, c := range []struct {
			args []string
			code int
			says string // on stderr; "" is nothing at all
		}{
			{[]string{"a", "--", "true"}, 0, ""},
			{[]string{"a", "--", "false"}, 1, ""},
			{[]string{"a", "--", "sh", "-c", "exit 75"}, 75, ""},
			{[]string{"a", "--", "sh", "-c", "exit 255"}, 255, ""},
			{[]string{"a", "--", "sh", "-c", "kill -KILL $$"}, 137, ""},
			{[]string{"a", "--", "sh", "-c", "kill -TERM $$"}, 143, ""},
			{[]string{"a", "--kill-after", "0s", "--", "true"}, 0, ""},
			{[]string{"--ttl", "1d", "a", "--", "echo", "--ttl"}, 0, ""},
			{[]string{"a"}, exitUsage, "lock needs a command to run"},
			{[]string{"a", "--"}, exitUsage, "lock needs a command to run"},
			{[]string{"--", "true"}, exitUsage, "lock needs the name of a resource"},
			{[]string{}, exitUsage, "lock needs the name of a resource"},
			{[]string{"a", "true"}, exitUsage, "`--` goes between it and the command"},
			{[]string{"a", "b", "--", "true"}, exitUsage, "lock takes one resource"},
			{[]string{"..", "--", "true"}, exitUsage, `cronlatch: resource: name must not be ".."`},
			{[]string{"", "--", "true"}, exitUsage, "cronlatch: resource: "},
			{[]string{"a\nb", "--", "true"}, exitUsage, "cronlatch: resource: "},
			{[]string{"a", "--ttl", "999ms", "--", "true"}, exitUsage, "cronlatch: TTL: is 999ms; a kept lock needs from 1s to 24h"},
			{[]string{"a", "--ttl", "25h", "--", "true"}, exitUsage, "cronlatch: TTL: is 25h"},
			{[]string{"a", "--ttl", "soon", "--", "true"}, exitUsage, `"soon" is not a duration like 90s`},
			{[]string{"a", "--wait", "-1s", "--", "true"}, exitUsage, `"-1s" is not a duration`},
			{[]string{"a", "--wait", "1s", "--no-wait", "--", "true"}, exitUsage, "contradict each other"},
			{[]string{"a", "--owner", " ", "--", "true"}, exitUsage, "cronlatch: owner: is blank"},
			{[]string{"a", "--metadata", "[1]", "--", "true"}, exitUsage, "must be a JSON object"},
			{[]string{"a", "--metadata", "null", "--", "true"}, exitUsage, "must be a JSON object"},
			{[]string{"a", "--metadata", `{"a": "\u0000"}`, "--", "true"}, exitUsage, "cronlatch: metadata: has a "},
			{[]string{"a", "--tll", "9s", "--", "true"}, exitUsage, `did you mean "--ttl"?`},
			{[]string{"busy", "--", "true"}, exitBusy, `cronlatch: the lock "busy" is busy: held by {"team":"ops"} since `},
			{[]string{"busy", "--ttl", "1s", "--", "true"}, exitBusy, "is busy"}, // the shortest that is taken
			{[]string{"busy", "--wait", "100ms", "--", "true"}, exitBusy, "cronlatch: waited 100ms; `cronlatch locks show busy` shows who has it"},
			{[]string{"a", "--", "./data"}, exitNotExecutable, "has no execute permission"},
			{[]string{"a", "--", "."}, exitNotExecutable, "cronlatch: "},
			{[]string{"a", "--", "./garbage"}, exitNotExecutable, "is not a program for this machine"},
			{[]string{"a", "--", "./orphan"}, exitNotExecutable, "interpreter"},
			{[]string{"a", "--", "no-such-command"}, exitNotFound, `cronlatch: the command "no-such-command" was not found`},
			{[]string{"a", "--", "./no-such-file"}, exitNotFound, "was not found"},
			{[]string{"a", "--", ""}, exitNotFound, "was not found"},
		} {
			p := rig.lock(t, c.args...)
			assert.Equal(t, c.code, p.end(t), "%q: %s", c.args, p.stderr.String())
			if c.says == "" {
				assert.Empty(t, p.stderr.String(), "%q", c.args)
			} else {
				assert.Contains(t, p.stderr.String(), c.says, "%q", c.args)
				assertPrefixed(t, p.stderr.String())
			}
		}
		rig.isFree(t, "a")
	})
}

// assertPrefixed wants each line to be recognizable as ours.
func assertPrefixed(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		assert.True(t, strings.HasPrefix(line, "cronlatch: "), line)
	}
}

func TestLockBusyIsAFullAnswer(t *testing.T) {
	t.Parallel()
	rig := newLockRig(t, dbtest.SQLiteURL(t))
	holder := rig.shell(t, "it's mine", "note here; while ! [ -e go ]; do sleep 0.01; done")
	rig.noted(t, "here")
	p := rig.lock(t, "it's mine", "--", "true")
	assert.Equal(t, exitBusy, p.end(t))
	const stamped = `\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`
	assert.Regexp(t, `^cronlatch: the lock "it's mine" is busy: held by sh \(pid \d+\) of \S+@\S+ since `+stamped+
		`, until `+stamped+` \(in (30|[12]?\d)(\.\d)?s\) unless it is renewed\n`+
		"cronlatch: --wait 5m waits for it; `cronlatch locks show 'it'\\\\''s mine'` shows who has it\n$", p.stderr.String())
	rig.goOn(t)
	assert.Zero(t, holder.end(t))
}

// The command is executed as it is, with the caller's stdin and environment and the lock in it.
func TestLockGivesTheCommandEverything(t *testing.T) {
	t.Parallel()
	eachLockRig(t, func(t *testing.T, rig *lockRig) {
		t.Helper()
		rig.env = append(rig.env, "CRONLATCH_TOKEN=cl_x_secret", "CRONLATCH_LOCK=outer", "ODD=a=b\nc")
		script := `cat; printf '<%s>' "$@"; echo; echo "$ODD|$CRONLATCH_LOCK|$CRONLATCH_TOKEN|${DATABASE_URL:+there}"; echo "$CRONLATCH_FENCING_TOKEN $CRONLATCH_LOCK_EXPIRES"; echo oops >&2`
		began := time.Now()
		p := rig.command(t, "lock", "deploy/ü%", "--ttl", "20s", "--", "sh", "-c", script, "sh", "", "$HOME", "a b", "--", "-x").
			withStdin(strings.NewReader("from stdin\n")).start(t)
		require.Zero(t, p.end(t), p.stderr.String())
		lines := strings.Split(p.stdout.String(), "\n")
		require.Len(t, lines, 6, p.stdout.String())
		assert.Equal(t, []string{"from stdin", "<><$HOME><a b><--><-x>", "a=b", "c|deploy/ü%|cl_x_secret|there"}, lines[:4])
		token, expires, _ := strings.Cut(lines[4], " ")
		assert.Regexp(t, `^\d+$`, token)
		at, err := time.Parse(time.RFC3339, expires)
		require.NoError(t, err)
		assert.True(t, strings.HasSuffix(expires, "Z"))
		assert.WithinRange(t, at.Add(-20*time.Second), began.Add(-time.Second), time.Now().Add(time.Second), "by the database's clock")
		assert.Equal(t, "oops\n", p.stderr.String(), "nothing of ours between")
	})
}

func TestLockMetadata(t *testing.T) {
	t.Parallel()
	rig := newLockRig(t, dbtest.SQLiteURL(t))
	script := "note $CRONLATCH_LOCK; while ! [ -e go ]; do sleep 0.01; done"
	own := rig.shell(t, "own", script, "--metadata", `{"ticket": 4711}`, "--owner", "ci 17")
	byDefault := rig.shell(t, "default", script)
	rig.noted(t, "own")
	rig.noted(t, "default")
	record, err := rig.store.Get(t.Context(), "own")
	require.NoError(t, err)
	assert.Equal(t, "ci 17", record.Owner)
	assert.JSONEq(t, `{"ticket": 4711}`, string(record.Metadata))
	record, err = rig.store.Get(t.Context(), "default")
	require.NoError(t, err)
	metadata := decode[map[string]any](t, string(record.Metadata))
	assert.Equal(t, "sh", metadata["command"])
	assert.InDelta(t, byDefault.cmd.Process.Pid, metadata["pid"], 0)
	assert.NotEmpty(t, metadata["host"])
	assert.NotEmpty(t, metadata["user"])
	assert.Len(t, metadata, 4)
	rig.goOn(t)
	assert.Zero(t, own.end(t))
	assert.Zero(t, byDefault.end(t))
}

func TestLockWaits(t *testing.T) {
	t.Parallel()
	eachLockRig(t, func(t *testing.T, rig *lockRig) {
		t.Helper()
		first := rig.shell(t, "a", "note first; while ! [ -e go ]; do sleep 0.01; done; echo 1 >> order")
		rig.noted(t, "first")
		second := rig.shell(t, "a", "echo 2 >> order", "--wait", "1m")
		second.says(t, `waiting up to 1m for the lock "a", which is busy: held by sh (pid `)
		rig.goOn(t)
		assert.Zero(t, first.end(t))
		assert.Zero(t, second.end(t))
		order, err := os.ReadFile(filepath.Join(rig.dir, "order"))
		require.NoError(t, err)
		assert.Equal(t, "1\n2\n", string(order))
		assert.Equal(t, 1, strings.Count(second.stderr.String(), "\n"), "it is said once: %s", second.stderr.String())
	})
}

// An expired lock is taken over.
func TestLockWaitsForAnExpiry(t *testing.T) {
	t.Parallel()
	rig := newLockRig(t, dbtest.SQLiteURL(t))
	dead := rig.take(t, "a", time.Second)
	p := rig.shell(t, "a", `echo "$CRONLATCH_FENCING_TOKEN"`, "--wait", "1m")
	require.Zero(t, p.end(t), p.stderr.String())
	assert.Equal(t, formatToken(dead.FencingToken+1)+"\n", p.stdout.String())
}

func TestLockInterruptedWhileWaiting(t *testing.T) {
	t.Parallel()
	rig := newLockRig(t, dbtest.SQLiteURL(t))
	rig.take(t, "a", time.Hour)
	for sig, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		p := rig.shell(t, "a", "note never", "--wait", "1h")
		p.says(t, "waiting up to 1h")
		p.signal(t, sig)
		assert.Equal(t, code, p.end(t))
		p.says(t, `cronlatch: interrupted before the lock "a" was free; nothing was started`)
	}
	assert.NoFileExists(t, filepath.Join(rig.dir, "never"))
}

func TestLockWithoutADatabase(t *testing.T) {
	t.Parallel()
	silent := listen(t)
	for _, url := range []string{"postgres://u:geheim@127.0.0.1:1/x?sslmode=disable", "postgres://u:geheim@" + silent.Addr().String() + "/x?sslmode=disable"} {
		rig := &lockRig{dir: t.TempDir(), env: []string{"DATABASE_URL=" + url, asCommand + "=" + patience.String()}}
		began := time.Now()
		p := rig.shell(t, "a", "note never", "--wait", "1h")
		assert.Equal(t, exitUnavailable, p.end(t), "waiting is for a lock, not for a database")
		assert.Less(t, time.Since(began), patience+10*time.Second)
		p.says(t, "cannot be reached")
		assert.NotContains(t, p.stderr.String(), "geheim")
		assert.NoFileExists(t, filepath.Join(rig.dir, "never"))
	}
}
