//go:build linux

package supervisor

import (
	"fmt"
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

func TestDaemonKilled(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			spec, polite := shell(t, stubborn), shell(t, `trap ': > heard; exit' TERM; note main; while :; do sleep 0.01; done`)
			spec.KillAfter = 300 * time.Millisecond
			polite.ID += "/polite" // two runs never share an id, or the mark made of it
			polite.Env[2] = markName + polite.ID
			v := startVictim(t, mode, spec, polite)
			all := append(stubbornOnes(t, spec), noted(t, polite, "main"))
			supervisor := mustRead(t, v.supervisor)
			home := homeOf(t, v.runs[0])

			v.signal(t, syscall.SIGKILL)
			eventually(t, func() bool { return !runs(supervisor) }, "the supervisor stays")
			requireDead(t, all...)
			requireNobody(t, spec)
			assert.FileExists(t, filepath.Join(polite.Dir, "heard"), "SIGTERM came first")
			if mode == CgroupsAuto {
				assert.NoDirExists(t, home)
			}
		})
	}
}

// P4: what a frozen daemon cannot stop is dead by its deadline, and reports that it does not read stop nobody.
func TestDaemonFrozenPastTheDeadline(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			var specs []Spec
			for range 8 { // together more than the socket holds
				s := shell(t, `while ! [ -e go ]; do sleep 0.05; done; head -c 300000 /dev/zero; note main; exec sleep 0.1`)
				s.HeadBytes = 200_000
				specs = append(specs, s)
			}
			spec := shell(t, stubborn)
			v := startVictim(t, mode, append(specs, spec)...)
			all := stubbornOnes(t, spec)

			deadline := v.limit(t)
			v.signal(t, syscall.SIGSTOP)
			for _, s := range specs {
				require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "go"), nil, 0o600))
			}
			require.Less(t, boottime.Now(), deadline, "the test itself was too slow")
			for _, p := range all {
				eventually(t, func() bool { return !runs(p) }, "the deadline passed")
			}
			eventually(t, func() bool { return len(membersOf(spec)) == 0 }, "the deadline passed")
			late := boottime.Now() - deadline
			t.Logf("dead %v after the deadline", late)
			assert.Less(t, late, room) // a busy machine; milliseconds on an idle one
		})
	}
}

func TestSupervisorKilled(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, mode)
			spec := shell(t, stubborn)
			p, all := startStubborn(t, c, spec)
			first := c.PID()
			home := homeOf(t, p.PID())
			everything := descendants(first)
			require.GreaterOrEqual(t, len(everything), len(all))
			require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
			r := wait(t, p)
			requireDead(t, all...)
			requireNobody(t, spec)
			assert.Equal(t, Result{Cause: CauseSupervisorGone, ExitCode: -1}, r)

			assert.Equal(t, CauseExited, execute(t, c, shell(t, "exit 0")).Cause, "a new supervisor")
			assert.NotEqual(t, first, c.PID())
			if mode == CgroupsAuto {
				assert.NoDirExists(t, home)
			}
			for _, one := range everything { // they became our children, which must not stay zombies
				eventually(t, func() bool {
					now, found, err := readProcess(one.pid)
					return err == nil && (!found || now.start != one.start)
				}, fmt.Sprintf("a zombie is left: %+v", one))
			}
		})
	}
}

// A supervisor that dies between fork and exec leaves a child that must not become the command. The client cannot know how
// far it came, and does not say that it never ran.
func TestSupervisorKilledWhileStarting(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, mode)
			spec := shell(t, "note main")
			spec.Env = append(spec.Env, freezeMark)
			started := startAside(t.Context(), c, spec)
			child := frozenChild(t, c.PID())
			require.NoError(t, syscall.Kill(c.PID(), syscall.SIGKILL))
			got := <-started
			require.NoError(t, got.err)
			assert.Equal(t, CauseSupervisorGone, wait(t, got.process).Cause)
			assert.Zero(t, got.process.PID())
			eventually(t, func() bool { return !runs(child) }, "exec-child lives")
			assert.NoFileExists(t, filepath.Join(spec.Dir, "main"))
		})
	}
}

// A supervisor that is alive but does nothing does not make a run live longer.
func TestSupervisorFrozenPastTheDeadline(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, mode)
			spec := shell(t, stubborn)
			p, all := startStubborn(t, c, spec)
			require.NoError(t, syscall.Kill(c.PID(), syscall.SIGSTOP))
			p.Extend(boottime.Now(), boottime.Now())
			for _, one := range all {
				eventually(t, func() bool { return !runs(one) }, "the deadline passed")
			}
			assert.Equal(t, CauseSupervisorGone, wait(t, p).Cause)
			requireNobody(t, spec)
			assert.Equal(t, CauseExited, execute(t, c, shell(t, "exit 0")).Cause)
		})
	}
}

// Not parallel: the other tests start clients, which would clean up first.
func TestDaemonAndSupervisorKilledTogether(t *testing.T) { //nolint:paralleltest // see above
	for _, mode := range modes(t) { //nolint:paralleltest // see above
		t.Run(string(mode), func(t *testing.T) {
			spec := shell(t, stubborn)
			v := startVictim(t, mode, spec)
			all := stubbornOnes(t, spec)
			home := homeOf(t, v.runs[0])
			v.signal(t, syscall.SIGSTOP)
			require.NoError(t, syscall.Kill(v.supervisor, syscall.SIGKILL))
			v.signal(t, syscall.SIGKILL)

			eventually(t, func() bool { return !runs(all[0]) }, "the parent-death signal did not come")
			if mode == CgroupsOff { // Weaknesses says so
				assert.NotEmpty(t, membersOf(spec), "without cgroups the rest lives on; if it does not, say so in Weaknesses")
				eventually(t, func() bool { return !killMembers(spec) }, "processes are left behind")
				return
			}
			c := newClient(t, mode) // the next daemon on this host
			requireDead(t, all...)
			requireNobody(t, spec)
			assert.NoDirExists(t, home)
			assert.Equal(t, CauseExited, execute(t, c, shell(t, "exit 0")).Cause)
		})
	}
}

// A daemon that was started by nohup, or with signals blocked by a careless parent, does not pass that on.
func TestSignalsAreReset(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			spec := shell(t, "note main; exec sleep 1000")
			v := startVictimThrough(t, `trap '' HUP INT TERM USR1 TSTP PIPE; exec "$@"`, mode, spec)
			noted(t, spec, "main")
			eventually(t, func() bool { return strings.HasPrefix(procFile(t, v.runs[0], "cmdline"), "sleep\x00") }, "")
			assert.Zero(t, ignoredSignals(t, procFile(t, v.runs[0], "status")))
		})
	}
}

// ignoredSignals is the mask in a process's status. Signals 32 and 33 do not count: they belong to the C library, GNU
// make hands them down as ignored, and the Go runtime leaves them alone.
func ignoredSignals(t *testing.T, status string) uint64 {
	t.Helper()
	_, after, found := strings.Cut(status, "SigIgn:\t")
	require.True(t, found, status)
	mask, _, _ := strings.Cut(after, "\n")
	ignored, err := strconv.ParseUint(mask, 16, 64)
	require.NoError(t, err)
	return ignored &^ (1<<31 | 1<<32)
}

func TestSupervisorSurvivesSignals(t *testing.T) {
	t.Parallel()
	c := newClient(t, CgroupsAuto)
	spec := shell(t, "note main; while ! [ -e go ]; do sleep 0.01; done")
	p := start(t, c, spec)
	pid := c.PID()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGUSR1} {
		require.NoError(t, syscall.Kill(pid, s))
	}
	require.NoError(t, os.WriteFile(filepath.Join(spec.Dir, "go"), nil, 0o600))
	assert.Equal(t, CauseExited, wait(t, p).Cause)
	assert.Equal(t, pid, c.PID())
}

func TestCloseStopsEverything(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, mode)
			spec := shell(t, stubborn)
			spec.KillAfter = 100 * time.Millisecond
			p, all := startStubborn(t, c, spec)
			supervisor := mustRead(t, c.PID())
			require.NoError(t, c.Close())
			requireDead(t, append(all, supervisor)...)
			assert.Equal(t, CauseStopped, wait(t, p).Cause)
			assert.Equal(t, ReasonSupervisor, startError(t, c, spec).Reason)
			assert.Zero(t, c.PID())
		})
	}
}

func TestWeaknesses(t *testing.T) {
	t.Parallel()
	assert.NotEmpty(t, newClient(t, CgroupsOff).Weaknesses())
	needCgroups(t)
	assert.Empty(t, newClient(t, CgroupsAuto).Weaknesses())
}

func descendants(pid int) []process {
	var all []process
	c := takeCensus(pid)
	for _, p := range c.candidates {
		for up := p; up.pid > 1; up = c.byPID[up.ppid] {
			if up.ppid == pid {
				all = append(all, p)
			}
		}
	}
	return all
}

func mustRead(t *testing.T, pid int) process {
	t.Helper()
	p, found, err := readProcess(pid)
	require.NoError(t, err)
	require.True(t, found)
	return p
}

// homeOf is the supervisor's cgroup folder, from the cgroup of one of its runs; meaningless without cgroups.
func homeOf(t *testing.T, pid int) string {
	t.Helper()
	path, _ := ownCgroup(procFile(t, pid, "cgroup"))
	places, err := cgroupPlaces()
	if err != nil {
		return ""
	}
	return filepath.Join(places[len(places)-1], filepath.Dir(path))
}
