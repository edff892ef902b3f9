//go:build linux

package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/cronlatch/cronlatch/internal/boottime"
)

// canary is in the environment of every daemon here, and must be nowhere else.
const canary = "postgres://canary:swordfish@db/prod"

const (
	daemonRole = "test-daemon"
	// freezeMark in a run's environment stops exec-child before its last look at the clock.
	freezeMark = "TEST_FREEZE=1"
	soon       = 20 * time.Second // how long a test waits for what happens within milliseconds on an idle machine
	plenty     = time.Minute      // a deadline that a test does not reach
)

// TestMain makes the test binary play every part.
func TestMain(m *testing.M) {
	role := ""
	if len(os.Args) > 1 {
		role = os.Args[1]
	}
	switch role {
	case Command:
		syscall.Exit(Main(nil))
	case ChildCommand:
		syscall.Exit(childMain(freezeIfAsked))
	case daemonRole:
		syscall.Exit(daemonMain(os.Args[2]))
	}
	if err := os.Setenv("DATABASE_URL", canary); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func freezeIfAsked(o childOrder) {
	if slices.Contains(toStrings(o.Env), freezeMark) {
		// To this thread, which then does not return from the call; any other could be stopped a moment too late.
		_ = unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGSTOP)
	}
}

// daemonMain is a daemon that starts the runs it is given, says so, and then lives until it is killed.
func daemonMain(instructions string) int {
	var in struct {
		Mode  Mode
		Specs []Spec
	}
	if err := json.Unmarshal([]byte(instructions), &in); err != nil {
		return 2
	}
	c, err := Start(Options{Cgroups: in.Mode, Name: "victim"})
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	for _, spec := range in.Specs {
		p, err := c.Start(context.Background(), spec)
		if err != nil {
			fmt.Println("error", err)
			return 1
		}
		fmt.Println("run", p.PID())
	}
	fmt.Println("supervisor", c.PID())
	select {}
}

// victim is a daemon in a process of its own.
type victim struct {
	cmd        *exec.Cmd
	supervisor int
	runs       []int
}

func startVictim(t *testing.T, mode Mode, specs ...Spec) *victim {
	t.Helper()
	return startVictimThrough(t, `exec "$@"`, mode, specs...)
}

// startVictimThrough lets a shell prepare the daemon's process.
func startVictimThrough(t *testing.T, script string, mode Mode, specs ...Spec) *victim {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	text, err := json.Marshal(map[string]any{"Mode": mode, "Specs": specs})
	require.NoError(t, err)
	v := &victim{cmd: exec.CommandContext(t.Context(), "/bin/sh", "-c", script, "sh", self, daemonRole, string(text))}
	out, err := v.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, v.cmd.Start())
	t.Cleanup(func() { _ = v.cmd.Process.Kill(); _ = v.cmd.Wait() })
	for lines := bufio.NewScanner(out); v.supervisor == 0; {
		require.True(t, lines.Scan(), "the daemon ended")
		word, number, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.Atoi(number)
		require.NoError(t, err, lines.Text())
		if word == "run" {
			v.runs = append(v.runs, n)
		} else {
			v.supervisor = n
		}
	}
	return v
}

func (v *victim) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, v.cmd.Process.Signal(s))
}

// eachMode runs f with cgroups, where this machine lets us, and without.
func eachMode(t *testing.T, f func(t *testing.T, mode Mode)) {
	t.Helper()
	for _, mode := range []Mode{CgroupsAuto, CgroupsOff} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			if mode == CgroupsAuto {
				needCgroups(t)
			}
			f(t, mode)
		})
	}
}

func needCgroups(t testing.TB) {
	t.Helper()
	home, err := makeHome("test")
	if errors.Is(err, errNoCgroups) {
		t.Skip("needs a writable cgroup v2 hierarchy: ", err)
	}
	require.NoError(t, err)
	removeHome(home)
}

func newClient(t testing.TB, mode Mode) *Client {
	t.Helper()
	c, err := Start(Options{Cgroups: mode, Name: "test", Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// shell is a run of a shell script. $DIR is a folder of its own, in which `note NAME` leaves the PID of the caller.
func shell(t testing.TB, script string) Spec {
	t.Helper()
	dir := t.TempDir()
	const prelude = `note() { echo $$ > "$DIR/.$1" && mv "$DIR/.$1" "$DIR/$1"; }; `
	return Spec{
		ID: t.Name(), Argv: []string{"/bin/sh", "-c", prelude + script},
		Env: []string{"DIR=" + dir, "PATH=" + os.Getenv("PATH"), markName + t.Name()},
		Dir: dir, StopAt: boottime.Now() + plenty, Deadline: boottime.Now() + plenty,
		KillAfter: plenty, HeadBytes: 64 << 10, TailBytes: 64 << 10,
	}
}

func start(t testing.TB, c *Client, spec Spec) *Process {
	t.Helper()
	p, err := c.Start(context.Background(), spec)
	require.NoError(t, err)
	return p
}

func wait(t testing.TB, p *Process) Result {
	t.Helper()
	select {
	case <-p.Done():
		return p.Result()
	case <-time.After(soon):
		require.FailNow(t, "the run does not end")
		return Result{}
	}
}

func execute(t testing.TB, c *Client, spec Spec) Result {
	t.Helper()
	return wait(t, start(t, c, spec))
}

func startError(t *testing.T, c *Client, spec Spec) *StartError {
	t.Helper()
	_, err := c.Start(t.Context(), spec)
	var refused *StartError
	require.ErrorAs(t, err, &refused)
	return refused
}

// noted waits for `note NAME` of a script and returns that process.
func noted(t testing.TB, spec Spec, name string) process {
	t.Helper()
	var p process
	eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(spec.Dir, name))
		if err != nil {
			return false
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil { // not written yet
			return false
		}
		var found bool
		p, found, err = readProcess(pid)
		return err == nil && found
	}, "no process noted "+name)
	return p
}

func eventually(t testing.TB, condition func() bool, msg string) {
	t.Helper()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for end := time.After(soon); !condition(); {
		select {
		case <-ticker.C:
		case <-end:
			require.FailNow(t, "waited in vain", msg)
		}
	}
}

func runs(p process) bool {
	now, found, err := readProcess(p.pid)
	return err == nil && found && !now.zombie && now.start == p.start
}

// requireDead wants every process to be dead by now, not soon.
func requireDead(t testing.TB, processes ...process) {
	t.Helper()
	for _, p := range processes {
		require.False(t, runs(p), "process %d is alive", p.pid)
	}
}

func requireNoZombies(t testing.TB, parent int) {
	t.Helper()
	eventually(t, func() bool {
		all, _ := processes()
		return !slices.ContainsFunc(all, func(p process) bool { return p.ppid == parent && p.zombie })
	}, "a zombie is left")
}
