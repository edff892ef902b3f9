//go:build linux

package supervisor

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/boottime"
)

func TestCommandEndsByItself(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, mode)
			for script, want := range map[string]Result{
				"exit 0":                           {Cause: CauseExited},
				"exit 3":                           {Cause: CauseExited, ExitCode: 3},
				"exit 255":                         {Cause: CauseExited, ExitCode: 255},
				"kill -9 $$":                       {Cause: CauseExited, ExitCode: -1, Signal: "SIGKILL"},
				"kill -TERM $$":                    {Cause: CauseExited, ExitCode: -1, Signal: "SIGTERM"},
				"cat":                              {Cause: CauseExited}, // stdin is empty
				"echo out; echo err >&2":           {Cause: CauseExited, Output: Output{Head: []byte("out\nerr\n"), Total: 8}},
				`printf 'a\000\377\n\r'`:           {Cause: CauseExited, Output: Output{Head: []byte("a\x00\xff\n\r"), Total: 5}},
				"exec >&- 2>&-; sleep 0.1; exit 4": {Cause: CauseExited, ExitCode: 4},
			} {
				got := execute(t, c, shell(t, script))
				assert.Equal(t, want.Output.Total, got.Output.Total, script)
				assert.Equal(t, string(want.Output.Head), string(got.Output.Head), script)
				got.Output = want.Output
				assert.Equal(t, want, got, script)
			}
			requireNoZombies(t, c.PID())
		})
	}
}

func TestCommandThatCannotStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		syscall.ForkLock.RLock() // whoever is forked meanwhile holds the file open, and then it cannot be executed
		defer syscall.ForkLock.RUnlock()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), mode))
	}
	write("plain", "#!/bin/sh\n", 0o644)
	write("orphan", "#!/no/such/interpreter\n", 0o755)
	write("bare", "echo hello\n", 0o755)
	write("good", "#!/bin/sh\necho good\n", 0o755)
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, mode)
			spec := func(argv ...string) Spec {
				s := shell(t, "")
				s.Dir, s.Argv, s.Env = dir, argv, []string{"PATH=/nonexistent:."}
				return s
			}
			for name, want := range map[string]Reason{
				"no-such-command": ReasonNotFound, "./no-such-command": ReasonNotFound, "/": ReasonNotExecutable,
				"./plain": ReasonNotExecutable, "plain": ReasonNotExecutable, "./orphan": ReasonNotExecutable,
				"bare": ReasonNotExecutable, "plain/below": ReasonNotFound, "": ReasonNotFound, "nul\x00": ReasonNotExecutable,
			} {
				assert.Equal(t, want, startError(t, c, spec(name)).Reason, name)
			}
			assert.Equal(t, ReasonNotFound, startError(t, c, spec()).Reason)
			assert.Equal(t, ReasonSystem, startError(t, c, spec("good", "a\x00b")).Reason)
			assert.Equal(t, ReasonSystem, startError(t, c, spec("good", strings.Repeat("x", 1<<20))).Reason)
			assert.Equal(t, "good\n", string(execute(t, c, spec("good")).Output.Head), "by the job's PATH and directory")
			assert.Equal(t, "good\n", string(execute(t, c, spec("./good")).Output.Head))
			nowhere := spec("good")
			nowhere.Dir = "/no/such/dir"
			assert.Equal(t, ReasonDir, startError(t, c, nowhere).Reason)
			requireNoZombies(t, c.PID())
		})
	}
}

func TestExitCodeOfStartError(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 127, (&StartError{Reason: ReasonNotFound}).ExitCode())
	assert.Equal(t, 126, (&StartError{Reason: ReasonNotExecutable}).ExitCode())
	assert.Equal(t, -1, (&StartError{Reason: ReasonStale}).ExitCode())
}

// The child gets what its Spec says and nothing of the daemon.
func TestCommandInheritsNothing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "leak")
	leak, err := syscall.Open(file, syscall.O_CREAT|syscall.O_RDWR, 0o600) // not close-on-exec: as if we were started with it
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Close(leak) })
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, mode)
			spec := shell(t, "")
			spec.Argv = []string{"/usr/bin/env"}
			spec.Env = []string{"A=1", "B=\xff two\nlines"}
			assert.Equal(t, "A=1\nB=\xff two\nlines\n", string(execute(t, c, spec).Output.Head))
			spec.Env = nil
			assert.Empty(t, string(execute(t, c, spec).Output.Head))

			spec = shell(t, "note main; exec sleep 1000")
			p := start(t, c, spec)
			noted(t, spec, "main")
			eventually(t, func() bool { return strings.HasPrefix(procFile(t, p.PID(), "cmdline"), "sleep\x00") }, "")
			for _, pid := range []int{p.PID(), c.PID()} {
				assert.NotContains(t, procFile(t, pid, "environ"), "canary")
				assert.NotContains(t, procFile(t, pid, "cmdline"), "canary")
			}
			eventually(t, func() bool { // the loader opens libraries
				return slices.Equal([]string{"0", "1", "2"}, descriptors(t, p.PID()))
			}, "more descriptors than 0, 1, 2")
			for _, fd := range descriptors(t, c.PID()) {
				link, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(c.PID()), "fd", fd))
				require.NoError(t, err)
				assert.NotEqual(t, file, link)
			}
			self := mustRead(t, p.PID())
			assert.Equal(t, [2]int{p.PID(), p.PID()}, [2]int{self.sid, self.pgid}, "a session of its own")
			status := procFile(t, p.PID(), "status")
			assert.Zero(t, ignoredSignals(t, status))
			for _, line := range []string{"SigBlk:\t0000000000000000", "NoNewPrivs:\t1"} {
				assert.Contains(t, status, line)
			}
			p.Stop()
			wait(t, p)
		})
	}
}

func procFile(t *testing.T, pid int, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), name))
	require.NoError(t, err)
	return string(text)
}

func descriptors(t *testing.T, pid int) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "fd"))
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestStaleStartIsRefused(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, mode)
			late := shell(t, "note main")
			late.StopAt = boottime.Now() - 1
			assert.Equal(t, ReasonStale, startError(t, c, late).Reason)
			late = shell(t, "note main")
			late.Deadline = boottime.Now() - 1
			assert.Equal(t, ReasonStale, startError(t, c, late).Reason)
			assert.NoFileExists(t, filepath.Join(late.Dir, "main"))
		})
	}
}
