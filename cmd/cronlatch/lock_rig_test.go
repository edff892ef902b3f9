package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/locking"
)

// lockPatience is how long a test waits for what takes milliseconds on an idle machine.
const lockPatience = testPatience

// lockRig is a folder, a database and its locks, for `cronlatch lock` as processes.
type lockRig struct {
	dir   string
	env   []string
	store locking.Store
}

// eachLockRig runs a test on both databases.
func eachLockRig(t *testing.T, f func(t *testing.T, rig *lockRig)) {
	t.Helper()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		f(t, newLockRig(t, url))
	})
}

func newLockRig(t *testing.T, url string) *lockRig {
	t.Helper()
	store, err := locking.NewStore(dbtest.Open(t, url).Main)
	require.NoError(t, err)
	return &lockRig{dir: t.TempDir(), env: []string{"DATABASE_URL=" + url}, store: store}
}

// lockProcess is a cronlatch process; what it writes can be read while it runs.
type lockProcess struct {
	cmd            *exec.Cmd
	stdout, stderr shared
	ended          chan struct{}
}

// shared is a buffer that is written and read at the same time.
type shared struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (r *lockRig) command(t *testing.T, args ...string) *lockProcess {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &lockProcess{cmd: exec.CommandContext(t.Context(), self, args...), ended: make(chan struct{})}
	p.cmd.Dir = r.dir
	p.cmd.Env = append([]string{asCommand + "=" + testPatience.String(), "PATH=" + os.Getenv("PATH"), "HOME=" + r.dir}, r.env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.WaitDelay = lockPatience
	return p
}

func (p *lockProcess) start(t *testing.T) *lockProcess {
	t.Helper()
	require.NoError(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait() // how it ended is in its state
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

// lock starts `cronlatch lock` with the arguments.
func (r *lockRig) lock(t *testing.T, args ...string) *lockProcess {
	t.Helper()
	return r.command(t, append([]string{"lock"}, args...)...).start(t)
}

// shell starts a script under the lock; `note NAME` in it leaves its PID in a file.
func (r *lockRig) shell(t *testing.T, resource, script string, flags ...string) *lockProcess {
	t.Helper()
	return r.lock(t, append(append([]string{resource}, flags...), "--", "/bin/sh", "-c", noting+script)...)
}

const noting = `note() { echo $$ > ".$1" && mv ".$1" "$1"; }; `

// end waits for the process and returns its exit code; -1 when a signal killed it.
func (p *lockProcess) end(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(lockPatience):
		require.FailNow(t, "the process does not end", p.stderr.String())
		return 0
	}
}

func (p *lockProcess) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(sig))
}

// says waits for a text on stderr.
func (p *lockProcess) says(t *testing.T, text string) {
	t.Helper()
	lockUntil(t, "it says "+text, func() bool { return strings.Contains(p.stderr.String(), text) }, &p.stderr)
}

// noted waits for a note of a script and returns the PID in it.
func (r *lockRig) noted(t *testing.T, name string) string {
	t.Helper()
	var pid []byte
	lockUntil(t, "there is a note "+name, func() bool {
		var err error
		pid, err = os.ReadFile(filepath.Join(r.dir, name))
		return err == nil
	})
	return strings.TrimSpace(string(pid))
}

// goOn lets a script that waits for the file go on.
func (r *lockRig) goOn(t *testing.T) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o600))
}

// lockUntil waits for a condition; a test that waits in vain shows the clues.
func lockUntil(t *testing.T, what string, condition func() bool, clues ...fmt.Stringer) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for end := time.After(lockPatience); !condition(); {
		select {
		case <-ticker.C:
		case <-end:
			require.FailNow(t, "waited in vain until "+what, clues)
		}
	}
}

// take holds a lock as somebody else does.
func (r *lockRig) take(t *testing.T, resource string, ttl time.Duration) locking.Record {
	t.Helper()
	res, err := r.store.Acquire(t.Context(), []locking.AcquireRequest{{Resource: resource, Owner: "o1", TTL: ttl, Metadata: []byte(`{"team":"ops"}`)}})
	require.NoError(t, err)
	require.True(t, res[0].Acquired)
	return res[0].Record
}

// force takes a lock away from whoever has it.
func (r *lockRig) force(t *testing.T, resource string) {
	t.Helper()
	record, err := r.store.Get(t.Context(), resource)
	require.NoError(t, err)
	_, err = r.store.ForceRelease(t.Context(), locking.Force{Resource: resource, FencingToken: record.FencingToken, Actor: "test", Reason: "test"})
	require.NoError(t, err)
}

func (r *lockRig) isFree(t *testing.T, resource string) {
	t.Helper()
	_, err := r.store.Get(t.Context(), resource)
	assert.ErrorIs(t, err, locking.ErrNotFound, "%s is not free", resource)
}

// withStdin lets the process read a text.
func (p *lockProcess) withStdin(in io.Reader) *lockProcess {
	p.cmd.Stdin = in
	return p
}
