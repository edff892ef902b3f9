//go:build linux

package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
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
	heirRole   = "test-heir"
	// freezeMark in a run's environment stops exec-child before its last look at the clock.
	freezeMark = "TEST_FREEZE=1"
	soon       = time.Minute      // how long a test waits for what happens within milliseconds on an idle machine
	plenty     = 5 * time.Minute  // a deadline that a test does not reach
	room       = 10 * time.Second // for what is due at an instant, on a machine that does much else
	near       = 4 * time.Second  // a deadline that is reached, when only one signal must be sent before
	inTime     = 8 * time.Second  // a deadline that is reached, when all that comes before it has happened also on a busy machine
)

// TestMain makes the test binary play every part.
func TestMain(m *testing.M) {
	stuckAfter = 15 * time.Second
	role := ""
	if len(os.Args) > 1 {
		role = os.Args[1]
	}
	switch role {
	case Command:
		syscall.Exit(Main(os.Args[2:]))
	case ChildCommand:
		syscall.Exit(childMain(os.Args[2:], freezeIfAsked))
	case daemonRole:
		syscall.Exit(daemonMain(os.Args[2]))
	case heirRole:
		syscall.Exit(heirMain(os.Args[2]))
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

// daemonMain is a daemon that starts the runs it is given, says so, and then lives until it is killed. With SIGALRM the last run
// gets a deadline.
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
	var last *Process
	for _, spec := range in.Specs {
		last, err = c.Start(context.Background(), spec)
		if err != nil {
			fmt.Println("error", err)
			return 1
		}
		fmt.Println("run", last.PID())
	}
	alarms := make(chan os.Signal, 1)
	signal.Notify(alarms, syscall.SIGALRM)
	fmt.Println("supervisor", c.PID())
	for range alarms {
		fmt.Println("deadline", int64(limit(last)))
	}
	return 0
}

// limit gives a run a deadline that is near, and returns it when the supervisor knows it.
func limit(p *Process) (deadline time.Duration) {
	deadline = boottime.Now() + near
	p.Extend(deadline-500*time.Millisecond, deadline)
	_, _ = p.Output(context.Background(), 0) // is asked after that
	return deadline
}

// victim is a daemon in a process of its own.
type victim struct {
	cmd        *exec.Cmd
	said       *bufio.Scanner
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
	v.said = bufio.NewScanner(out)
	for v.supervisor == 0 {
		switch word, n := v.says(t); word {
		case "run":
			v.runs = append(v.runs, n)
		default:
			v.supervisor = n
		}
	}
	return v
}

// says is the daemon's next line.
func (v *victim) says(t *testing.T) (word string, n int) {
	t.Helper()
	require.True(t, v.said.Scan(), "the daemon ended")
	word, number, _ := strings.Cut(v.said.Text(), " ")
	n, err := strconv.Atoi(number)
	require.NoError(t, err, v.said.Text())
	return word, n
}

// limit gives the last run a deadline that is near.
func (v *victim) limit(t *testing.T) (deadline time.Duration) {
	t.Helper()
	v.signal(t, syscall.SIGALRM)
	word, n := v.says(t)
	require.Equal(t, "deadline", word)
	return time.Duration(n)
}

func (v *victim) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, v.cmd.Process.Signal(s))
}

// modes is with cgroups, where this machine lets us, and without.
func modes(t *testing.T) []Mode {
	t.Helper()
	if err := tryCgroups(); err != nil {
		t.Run(string(CgroupsAuto), needCgroups)
		return []Mode{CgroupsOff}
	}
	return []Mode{CgroupsAuto, CgroupsOff}
}

func needCgroups(t *testing.T) {
	t.Helper()
	if err := tryCgroups(); err != nil {
		t.Skip("needs a writable cgroup v2 hierarchy: ", err)
	}
}

func tryCgroups() error {
	home, err := makeHome("test")
	if err == nil {
		removeHome(home)
	}
	return err
}

func newClient(tb testing.TB, mode Mode) *Client {
	tb.Helper()
	c, err := Start(Options{Cgroups: mode, Name: "test", Logger: zap.NewNop()})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, c.Close()) })
	return c
}

// shell is a run of a shell script. $DIR is a folder of its own, in which `note NAME` leaves the PID of the caller.
func shell(tb testing.TB, script string) Spec {
	tb.Helper()
	dir := tb.TempDir()
	const prelude = `note() { echo $$ > "$DIR/.$1" && mv "$DIR/.$1" "$DIR/$1"; }; `
	return Spec{
		ID: tb.Name(), Argv: []string{"/bin/sh", "-c", prelude + script},
		Env: []string{"DIR=" + dir, "PATH=" + os.Getenv("PATH"), markName + tb.Name()},
		Dir: dir, StopAt: boottime.Now() + plenty, Deadline: boottime.Now() + plenty,
		KillAfter: plenty, HeadBytes: 64 << 10, TailBytes: 64 << 10,
	}
}

func start(tb testing.TB, c *Client, spec Spec) *Process {
	tb.Helper()
	p, err := c.Start(context.Background(), spec)
	require.NoError(tb, err)
	return p
}

func wait(tb testing.TB, p *Process) Result {
	tb.Helper()
	select {
	case <-p.Done():
		return p.Result()
	case <-time.After(soon):
		require.FailNow(tb, "the run does not end")
		return Result{}
	}
}

func execute(tb testing.TB, c *Client, spec Spec) Result {
	tb.Helper()
	return wait(tb, start(tb, c, spec))
}

func startError(t *testing.T, c *Client, spec Spec) *StartError {
	t.Helper()
	_, err := c.Start(t.Context(), spec)
	var refused *StartError
	require.ErrorAs(t, err, &refused)
	return refused
}

// noted waits for `note NAME` of a script and returns that process.
func noted(tb testing.TB, spec Spec, name string) process {
	tb.Helper()
	var p process
	eventually(tb, func() bool {
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

func eventually(tb testing.TB, condition func() bool, msg string) {
	tb.Helper()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for end := time.After(soon); !condition(); {
		select {
		case <-ticker.C:
		case <-end:
			require.FailNow(tb, "waited in vain", msg)
		}
	}
}

func runs(p process) bool {
	now, found, err := readProcess(p.pid)
	return err == nil && found && !now.zombie && now.start == p.start
}

// requireDead wants every process to be dead by now, not soon.
func requireDead(tb testing.TB, processes ...process) {
	tb.Helper()
	for _, p := range processes {
		require.False(tb, runs(p), "process %d is alive", p.pid)
	}
}

func requireNoZombies(tb testing.TB, parent int) {
	tb.Helper()
	eventually(tb, func() bool {
		all := processes()
		return !slices.ContainsFunc(all, func(p process) bool { return p.ppid == parent && p.zombie })
	}, "a zombie is left")
}
