//go:build linux

package supervisor

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/boottime"
)

// stubborn ignores SIGTERM, has a child that does, one in a session of its own that keeps stdout open, and one that has
// forked twice and cleared what it could.
const stubborn = `trap '' TERM
  (trap '' TERM; sh -c 'echo $$ > child'; while :; do sleep 1; done) &
  setsid sh -c 'trap "" TERM; echo $$ > "session"; while :; do sleep 1; done' &
  (setsid sh -c '(echo $$; trap "" TERM; exec sh -c "echo \$\$ > twice; while :; do sleep 1; done") > /dev/null &') &
  note main
  while :; do sleep 1; done`

// startStubborn returns when all four are there.
func startStubborn(t *testing.T, c *Client, spec Spec) (*Process, []process) {
	t.Helper()
	p := start(t, c, spec)
	return p, stubbornOnes(t, spec)
}

func stubbornOnes(t *testing.T, spec Spec) []process {
	t.Helper()
	all := []process{noted(t, spec, "main"), noted(t, spec, "session"), noted(t, spec, "twice")}
	for _, p := range all {
		require.True(t, runs(p))
	}
	return all
}

func TestTimeoutKillsTheTree(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, mode)
			spec := shell(t, stubborn)
			spec.Timeout, spec.KillAfter = inTime, 200*time.Millisecond
			p, all := startStubborn(t, c, spec)
			r := wait(t, p)
			requireDead(t, all...)
			assert.Equal(t, CauseTimeout, r.Cause)
			assert.Equal(t, "SIGKILL", r.Signal)
			requireNoZombies(t, c.PID())
		})
	}
}

func TestDeadlineKillsTheTree(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, mode)
			spec := shell(t, stubborn)
			p, all := startStubborn(t, c, spec)
			deadline := boottime.Now() + 300*time.Millisecond
			p.Extend(deadline-200*time.Millisecond, deadline)
			r := wait(t, p)
			requireDead(t, all...)
			assert.GreaterOrEqual(t, boottime.Now(), deadline)
			assert.Equal(t, CauseDeadline, r.Cause)
			assert.Equal(t, "SIGKILL", r.Signal)
		})
	}
}

func TestStopIsPolite(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, mode)
			for cause, stop := range map[Cause]func(*Process){
				CauseStopped:  (*Process).Stop,
				CauseDeadline: func(p *Process) { p.Extend(boottime.Now(), boottime.Now()+plenty) },
			} {
				spec := shell(t, `trap 'echo bye; exit 7' TERM; note main; while :; do sleep 0.01; done`)
				p := start(t, c, spec)
				noted(t, spec, "main")
				stop(p)
				r := wait(t, p)
				assert.Equal(t, cause, r.Cause)
				assert.Equal(t, 7, r.ExitCode)
				assert.Empty(t, r.Signal)
				assert.Contains(t, string(r.Output.Head), "bye\n") // the shell may say that SIGTERM hit its child, too
			}
		})
	}
}

func TestStoppedProcessHearsTheStop(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, mode)
			spec := shell(t, `note main; kill -STOP $$; exit 1`)
			p := start(t, c, spec)
			noted(t, spec, "main")
			p.Stop()
			assert.Equal(t, "SIGTERM", wait(t, p).Signal)
		})
	}
}

func TestKillAfterEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, mode)
			spec := shell(t, stubborn) // KillAfter is plenty
			p, all := startStubborn(t, c, spec)
			p.Extend(boottime.Now()+plenty, boottime.Now()+500*time.Millisecond)
			p.Stop()
			r := wait(t, p)
			requireDead(t, all...)
			assert.Equal(t, "SIGKILL", r.Signal)
		})
	}
}

// What a command leaves behind gets SIGTERM and, after KillAfter, SIGKILL; the command has exited all the same.
func TestLeftoversEndWithTheirRun(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, mode)
			spec := shell(t, `
		  setsid sh -c 'trap ": > heard; exit" TERM; echo $$ > polite; while :; do sleep 0.01; done' &
		  (setsid sh -c '(trap "" TERM; echo $$ > rude; while :; do sleep 1; done) &') &
		  while ! [ -s polite ] || ! [ -s rude ] || ! [ -e go ]; do sleep 0.01; done; exit 5`)
			spec.KillAfter = 5 * time.Second // time for the polite one to hear it, which the rude one makes us wait for
			p := start(t, c, spec)
			polite := noted(t, spec, "polite") // while it is there
			release(t, spec)
			r := wait(t, p)
			requireDead(t, polite)
			requireNobody(t, spec)
			assert.FileExists(t, filepath.Join(spec.Dir, "heard"))
			assert.Equal(t, Result{Cause: CauseExited, ExitCode: 5}, Result{Cause: r.Cause, ExitCode: r.ExitCode, Signal: r.Signal})
			requireNoZombies(t, c.PID())
		})
	}
}

// requireNobody wants no process anywhere that was started with the run's environment.
func requireNobody(t *testing.T, spec Spec) {
	t.Helper()
	require.Empty(t, membersOf(spec), "alive")
}

func membersOf(spec Spec) []int {
	var pids []int
	all := processes()
	for _, p := range all {
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), "environ"))
		if err == nil && strings.Contains(string(text), "DIR="+spec.Dir+"\x00") {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// killMembers kills what was started with the run's environment, and reports whether there was anything.
func killMembers(spec Spec) bool {
	members := membersOf(spec)
	for _, pid := range members {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return len(members) > 0
}

func TestManyProcessesDie(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, mode)
			spec := shell(t, `i=0; while [ $i -lt 200 ]; do setsid sleep 1000 & i=$((i+1)); done; note main; wait`)
			spec.KillAfter = 0
			p := start(t, c, spec)
			noted(t, spec, "main")
			p.Stop()
			wait(t, p)
			requireNobody(t, spec)
		})
	}
}

// A bomb whose size is bounded and whose speed is not: each process lives until it has started the next one, in a new
// session, so nobody who counts first and kills later hits anything.
func TestForkBombDies(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, mode)
			spec := shell(t, `echo 'trap "" TERM; setsid sh ./hop & exit' > hop
		  i=0; while [ $i -lt 10 ]; do sh ./hop & i=$((i+1)); done; note main; while :; do sleep 1; done`)
			spec.KillAfter = 0
			p := start(t, c, spec)
			noted(t, spec, "main")
			p.Stop()
			wait(t, p)
			requireNobody(t, spec)
			requireNoZombies(t, c.PID())
		})
	}
}

func TestExtendKeepsARunAlive(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, mode)
			spec := shell(t, `note main; while ! [ -e go ]; do sleep 0.01; done`)
			first := boottime.Now() + inTime
			spec.StopAt, spec.Deadline = first, first
			p := start(t, c, spec)
			p.Extend(boottime.Now()+plenty, boottime.Now()+plenty)
			eventually(t, func() bool { return boottime.Now() > first+2*tick }, "")
			require.NoError(t, os.WriteFile(filepath.Join(spec.Dir, "go"), nil, 0o600))
			assert.Equal(t, CauseExited, wait(t, p).Cause)
		})
	}
}

// A start is refused between fork and exec when the lock's time has passed there, although the supervisor could not
// see to it.
func TestStaleBetweenForkAndExec(t *testing.T) {
	t.Parallel()
	for name, stopSupervisor := range map[string]bool{"supervisor runs": false, "supervisor frozen": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, mode := range modes(t) {
				t.Run(string(mode), func(t *testing.T) {
					t.Parallel()
					c := newClient(t, mode)
					spec := shell(t, "note main")
					spec.Env = append(spec.Env, freezeMark)
					spec.StopAt = boottime.Now() + inTime
					refused := startAside(t.Context(), c, spec)
					if stopSupervisor {
						child := frozenChild(t, c.PID())
						require.NoError(t, syscall.Kill(c.PID(), syscall.SIGSTOP))
						eventually(t, func() bool { return boottime.Now() > spec.StopAt }, "")
						require.NoError(t, syscall.Kill(child.pid, syscall.SIGCONT))
						eventually(t, func() bool { return !runs(child) }, "exec-child goes on")
						require.NoError(t, syscall.Kill(c.PID(), syscall.SIGCONT))
					}
					var err *StartError
					require.ErrorAs(t, (<-refused).err, &err)
					assert.Equal(t, ReasonStale, err.Reason, err.Msg)
					assert.NoFileExists(t, filepath.Join(spec.Dir, "main"))
					requireNoZombies(t, c.PID())
				})
			}
		})
	}
}

func TestStartIsCancelled(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, mode)
			spec := shell(t, "note main")
			spec.Env = append(spec.Env, freezeMark)
			ctx, cancel := context.WithCancel(t.Context())
			refusal := startAside(ctx, c, spec)
			frozenChild(t, c.PID())
			cancel()
			var refused *StartError
			require.ErrorAs(t, (<-refusal).err, &refused)
			assert.Equal(t, ReasonCancelled, refused.Reason)
			assert.NoFileExists(t, filepath.Join(spec.Dir, "main"))
		})
	}
}

// frozenChild waits for a stopped child of the supervisor.
func frozenChild(t *testing.T, supervisor int) process {
	t.Helper()
	var child process
	eventually(t, func() bool {
		for _, p := range processes() {
			stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), "stat"))
			if err == nil && p.ppid == supervisor && strings.Contains(string(stat), ") T ") {
				child = p
				return true
			}
		}
		return false
	}, "no child is frozen")
	return child
}

// aside is what came of a start.
type aside struct {
	process *Process
	err     error
}

// startAside starts a run in a goroutine and returns where what comes of it arrives.
func startAside(ctx context.Context, c *Client, spec Spec) <-chan aside {
	result := make(chan aside, 1)
	go func() {
		p, err := c.Start(ctx, spec)
		result <- aside{p, err}
	}()
	return result
}
