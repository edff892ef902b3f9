//go:build linux

package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/cronlatch/cronlatch/internal/boottime"
)

// heirOrders is what a program that runs one command in its place is told.
type heirOrders struct {
	Mode   Mode
	Spec   Spec
	Result string // path of a file for heirResult
	Again  bool   // try a second command afterwards
}

type heirResult struct {
	Result Result
	Halted []syscall.Signal
	Error  string
	Again  string
	Legacy []int // the descriptors that the program was started with
}

// heirMain passes SIGUSR1 on, answers SIGUSR2 with Kill, and SIGALRM with a deadline, which is written to a file.
func heirMain(instructions string) int {
	var o heirOrders
	if err := json.Unmarshal([]byte(instructions), &o); err != nil {
		return 2
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGTTOU)
	r := runHeir(o, signals)
	if leaveAs(o.Result, r) != nil {
		return 3
	}
	return 0
}

// leaveAs writes a file that appears whole.
func leaveAs(path string, content any) error {
	text, err := json.Marshal(content)
	return errors.Join(err, os.WriteFile(path+".new", text, 0o600), os.Rename(path+".new", path))
}

func runHeir(o heirOrders, signals chan os.Signal) (r heirResult) {
	r.Legacy = inherited()
	c, err := Start(Options{Cgroups: o.Mode, Name: "heir", Inherit: true})
	if err != nil {
		r.Error = err.Error()
		return r
	}
	defer func() { _ = c.Close() }()
	p, err := c.Start(context.Background(), o.Spec)
	if err != nil {
		r.Error = err.Error()
		return r
	}
	for running := true; running; {
		select {
		case <-p.Done():
			running = false
		case sig := <-p.Halted():
			r.Halted = append(r.Halted, sig)
			p.Signal(syscall.SIGCONT)
		case sig := <-signals:
			switch sig {
			case syscall.SIGUSR2:
				p.Kill()
			case syscall.SIGUSR1:
				p.Signal(syscall.SIGUSR1)
			case syscall.SIGALRM:
				_ = leaveAs(o.Result+".deadline", limit(p)) // the test waits for it
			}
		}
	}
	r.Result = p.Result()
	if o.Again {
		_, err := c.Start(context.Background(), o.Spec)
		r.Again = err.Error()
	}
	return r
}

// heir is such a program in a process of its own.
type heir struct {
	*exec.Cmd

	result string
	out    bytes.Buffer
}

func newHeir(t *testing.T, mode Mode, spec Spec) *heir {
	t.Helper()
	return heirOf(t, heirOrders{Mode: mode, Spec: spec})
}

func heirOf(t *testing.T, o heirOrders) *heir {
	t.Helper()
	h := &heir{result: filepath.Join(o.Spec.Dir, "result")}
	o.Result = h.result
	text, err := json.Marshal(o)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	h.Cmd = exec.CommandContext(t.Context(), self, heirRole, string(text))
	h.Stdout, h.Stderr = &h.out, &h.out
	t.Cleanup(func() {
		if h.Process != nil {
			_ = h.Process.Kill()
			_ = h.Wait()
		}
	})
	return h
}

// end waits for the program, and so for the end of its stdout: nobody else holds the pipe open.
func (h *heir) end(t *testing.T) heirResult {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- h.Wait() }()
	select {
	case err := <-done:
		require.NoError(t, err, h.out.String())
	case <-time.After(soon):
		require.FailNow(t, "the program does not end, or something holds its stdout")
	}
	text, err := os.ReadFile(h.result)
	require.NoError(t, err)
	var r heirResult
	require.NoError(t, json.Unmarshal(text, &r))
	return r
}

// limit gives the command a deadline that is near.
func (h *heir) limit(t *testing.T) (deadline time.Duration) {
	t.Helper()
	require.NoError(t, h.Process.Signal(syscall.SIGALRM))
	eventually(t, func() bool {
		text, err := os.ReadFile(h.result + ".deadline")
		return err == nil && json.Unmarshal(text, &deadline) == nil
	}, "no deadline")
	return deadline
}

func (h *heir) run(t *testing.T) heirResult {
	t.Helper()
	require.NoError(t, h.Start())
	return h.end(t)
}

// The command has what its caller has: stdin, stdout, stderr and every other open file under its own number, however
// they collide with the supervisor's own, and nothing besides.
func TestInheritedDescriptors(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			spec := shell(t, `cat; cat <&3; cat <&4; cat <&9; echo error >&2; ls /proc/self/fd | tr '\n' ' '`)
			h := newHeir(t, mode, spec)
			h.Stdin = strings.NewReader("zero ")
			for i, text := range map[int]string{0: "three ", 1: "four ", 6: "nine "} {
				for len(h.ExtraFiles) <= i {
					h.ExtraFiles = append(h.ExtraFiles, nil)
				}
				h.ExtraFiles[i] = fileWith(t, text)
			}
			r := h.run(t)
			require.Empty(t, r.Error)
			assert.Equal(t, CauseExited, r.Result.Cause)
			assert.Zero(t, r.Result.ExitCode)
			text, open, _ := strings.Cut(h.out.String(), "\n")
			assert.Equal(t, "zero three four nine error", text)
			want := []string{"0", "1", "2", "3", "4", "5", "9"} // 5 is what ls opened itself
			for _, fd := range r.Legacy {
				if fd > 9 { // the tests' own caller, or another test beside this one, may have left files open
					want = append(want, strconv.Itoa(fd))
				}
			}
			assert.ElementsMatch(t, want, strings.Fields(open))
		})
	}
}

func fileWith(t *testing.T, text string) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// The command stays in its caller's session, in a group of its own; what the caller ignores it ignores, and it may gain
// privileges.
func TestInheritedSession(t *testing.T) {
	t.Parallel()
	spec := shell(t, `grep -E '^(SigIgn|NoNewPrivs)' /proc/self/status; ps -o sid=,pgid=,pid= -p $$; ps -o sid=,pgid= -p $CALLER`)
	spec.Ignore = []syscall.Signal{syscall.SIGHUP}
	spec.Argv[2] = `CALLER=$(ps -o ppid= -p $(ps -o ppid= -p $$)); ` + spec.Argv[2]
	h := newHeir(t, CgroupsOff, spec)
	r := h.run(t)
	require.Empty(t, r.Error)
	fields := strings.Fields(h.out.String())
	require.Len(t, fields, 9, h.out.String())
	ignored, err := strconv.ParseUint(fields[1], 16, 64)
	require.NoError(t, err)
	const internal = 1<<31 | 1<<32 // libc's own signals, which make hands down ignored, and nobody can change
	assert.Equal(t, uint64(1), ignored&^internal, "SIGHUP")
	assert.Equal(t, "0", fields[3], "NoNewPrivs")
	assert.Equal(t, fields[7], fields[4], "the session")
	assert.Equal(t, fields[6], fields[5], "the leader of its group")
	assert.NotEqual(t, fields[8], fields[5], "another group than the caller's")
}

func TestInheritingSupervisorHasOneCommand(t *testing.T) {
	t.Parallel()
	r := heirOf(t, heirOrders{Mode: CgroupsOff, Spec: shell(t, "true"), Again: true}).run(t)
	assert.Contains(t, r.Again, "given to its first command")
}

// A pipe ends with the command, not with the supervisor or its caller's knowledge of it.
func TestInheritedPipeEndsWithTheCommand(t *testing.T) {
	t.Parallel()
	spec := shell(t, `exec 3>&-; while ! [ -e go ]; do sleep 0.01; done`)
	h := newHeir(t, CgroupsOff, spec)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close() //nolint:errcheck // only read
	h.ExtraFiles = []*os.File{write}
	require.NoError(t, h.Start())
	require.NoError(t, write.Close())
	supervisor := 0
	eventually(t, func() bool {
		for _, p := range processes() {
			if p.ppid == h.Process.Pid {
				supervisor = p.pid
			}
		}
		return supervisor != 0 && len(descendants(supervisor)) > 0
	}, "no supervisor")
	eventually(t, func() bool { return !holds(t, supervisor, read) }, "the supervisor keeps the pipe")
	require.NoError(t, os.WriteFile(filepath.Join(spec.Dir, "go"), nil, 0o600))
	h.end(t)
}

// holds reports whether a process has the pipe open.
func holds(t *testing.T, pid int, pipe *os.File) bool {
	t.Helper()
	var want unix.Stat_t
	require.NoError(t, unix.Fstat(int(pipe.Fd()), &want))
	links, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd", "*"))
	require.NoError(t, err)
	for _, link := range links {
		var got unix.Stat_t
		if unix.Stat(link, &got) == nil && got.Ino == want.Ino && got.Dev == want.Dev {
			return true
		}
	}
	return false
}

func TestSignalAndKill(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			spec := shell(t, `trap ': > usr1' USR1; trap : TERM; note main; while :; do sleep 0.01; done`)
			h := newHeir(t, mode, spec)
			require.NoError(t, h.Start())
			noted(t, spec, "main")
			require.NoError(t, h.Process.Signal(syscall.SIGUSR1))
			eventually(t, func() bool { _, err := os.Stat(filepath.Join(spec.Dir, "usr1")); return err == nil }, "no SIGUSR1")
			require.NoError(t, h.Process.Signal(syscall.SIGUSR2))
			assert.Equal(t, Result{Cause: CauseStopped, ExitCode: -1, Signal: "SIGKILL"}, h.end(t).Result)
		})
	}
}

// A command that was stopped is told, and goes on when it is told to.
func TestHalted(t *testing.T) {
	t.Parallel()
	h := newHeir(t, CgroupsOff, shell(t, `kill -TSTP $$; exit 3`))
	r := h.run(t)
	assert.Equal(t, []syscall.Signal{syscall.SIGTSTP}, r.Halted)
	assert.Equal(t, 3, r.Result.ExitCode)
}

// Without cgroups, what left its session, its parent and its environment behind is still found: all that descends from a
// supervisor with one command is that command's.
func TestSoleCommandLeavesNobody(t *testing.T) {
	t.Parallel()
	spec := shell(t, `(setsid env -i DIR="$DIR" sh -c 'echo $$ > "$DIR/.away" && mv "$DIR/.away" "$DIR/away"; exec env -i sleep 60' & ) ; while ! [ -e away ] || ! [ -e go ]; do sleep 0.01; done`)
	spec.Env = spec.Env[:2] // no mark
	spec.KillAfter = 0
	h := newHeir(t, CgroupsOff, spec)
	require.NoError(t, h.Start())
	away := noted(t, spec, "away") // while it is there
	release(t, spec)
	r := h.end(t)
	assert.Equal(t, CauseExited, r.Result.Cause)
	requireDead(t, away)
}

// A caller that is killed leaves nothing; one that is frozen leaves nothing beyond the deadline.
func TestInheritingCallerKilledOrFrozen(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "frozen": syscall.SIGSTOP} {
		for _, mode := range modes(t) {
			t.Run(name+" "+string(mode), func(t *testing.T) {
				t.Parallel()
				spec := shell(t, stubborn)
				h := newHeir(t, mode, spec)
				null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
				require.NoError(t, err)
				defer null.Close() //nolint:errcheck // nothing is written
				h.Stdout, h.Stderr = null, null
				require.NoError(t, h.Start())
				all := stubbornOnes(t, spec)
				deadline := h.limit(t)
				require.NoError(t, h.Process.Signal(sig))
				require.Less(t, boottime.Now(), deadline, "the test itself was too slow")
				for _, p := range all {
					eventually(t, func() bool { return !runs(p) }, "the deadline passed")
				}
				assert.Less(t, boottime.Now()-deadline, room) // a busy machine; milliseconds on an idle one
			})
		}
	}
}
