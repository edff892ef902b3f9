//go:build linux

package supervisor

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can start a command as somebody else")
	}
}

// as is a shell script that an account runs in a directory which is open to all.
func as(t *testing.T, a *Account, script string) Spec {
	t.Helper()
	s := shell(t, script)
	s.User, s.Dir = a, "/"
	return s
}

// TestCommandRunsAsItsAccount: all of its numbers are the account's, it has no privilege left, and cannot get any back.
func TestCommandRunsAsItsAccount(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, mode)
			r := execute(t, c, as(t, &Account{UID: 4711, GID: 4712, Groups: []int{4713, 4714}}, "cat /proc/self/status"))
			require.Equal(t, CauseExited, r.Cause)
			status := map[string]string{}
			for line := range strings.Lines(string(r.Output.Head)) {
				name, value, _ := strings.Cut(line, ":")
				status[name] = strings.Join(strings.Fields(value), " ")
			}
			const none = "0000000000000000"
			for name, want := range map[string]string{
				"Uid": "4711 4711 4711 4711", "Gid": "4712 4712 4712 4712", "Groups": "4713 4714", "NoNewPrivs": "1",
				"CapEff": none, "CapPrm": none, "CapAmb": none,
			} {
				assert.Equal(t, want, status[name], name)
			}

			r = execute(t, c, as(t, &Account{UID: 4711, GID: 4712}, "cat /proc/self/status"))
			assert.Contains(t, string(r.Output.Head), "Groups:\t \n", "none of the daemon's")
			r = execute(t, c, as(t, &Account{UID: 4711, GID: 4712}, "echo hello > /dev/stdout; cat /etc/shadow"))
			assert.Equal(t, "hello\n", strings.SplitAfter(string(r.Output.Head), "\n")[0])
			assert.NotContains(t, string(r.Output.Head), "root:")
			assert.Equal(t, 1, r.ExitCode)
		})
	}
}

// TestAnAccountsCommandIsStopped: a deadline is for every tree, whoever it belongs to.
func TestAnAccountsCommandIsStopped(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, mode)
			spec := as(t, &Account{UID: 4711, GID: 4712}, "trap '' TERM; echo started; setsid sleep 1000 & wait; sleep 1000")
			spec.Timeout, spec.KillAfter = seconds(1), seconds(1)
			r := execute(t, c, spec)
			assert.Equal(t, CauseTimeout, r.Cause)
			requireNoZombies(t, c.PID())
		})
	}
}

// TestAnAccountsCommandDiesWithItsSupervisor: the kernel forgets who to die with when a process becomes somebody else.
func TestAnAccountsCommandDiesWithItsSupervisor(t *testing.T) { //nolint:paralleltest // as TestDaemonAndSupervisorKilledTogether
	needRoot(t)
	v := startVictim(t, CgroupsOff, as(t, &Account{UID: 4711, GID: 4712}, "exec sleep 1000"))
	main := mustRead(t, v.runs[0])
	v.signal(t, syscall.SIGSTOP) // so that it does not clean up after its supervisor
	require.NoError(t, syscall.Kill(v.supervisor, syscall.SIGKILL))
	eventually(t, func() bool { return !runs(main) }, "the command stays")
	v.signal(t, syscall.SIGKILL)
}

func TestAnAccountThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	needRoot(t)
	c := newClient(t, CgroupsOff)
	e := startError(t, c, as(t, &Account{UID: -1, GID: 0}, "true"))
	assert.Equal(t, ReasonUser, e.Reason)
	assert.Contains(t, e.Error(), "becoming the account -1")
}
