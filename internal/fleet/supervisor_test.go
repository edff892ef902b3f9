package fleet

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/internal/fleet/record"
	"github.com/cronlatch/cronlatch/jobs"
)

// retried is a job that starts a grandchild in its own session and is tried again when it was lost. Its first attempt runs
// until something is done to it, however long that takes, and the later ones come to their end at once.
func retried() Job {
	const script = `if [ "$CRONLATCH_ATTEMPT" = 1 ]; then life=3m; else life=500ms; fi
		exec "$FLEET_DIR/recorder" -for $life -grandchild`
	return Job{Name: "job", Command: []string{"/bin/sh", "-c", script}, OnLost: "retry"}
}

// P4: the daemon kills the trees of a supervisor that died, keeps the lock until they are dead, and goes on with a new
// supervisor. The next attempt begins long before the lock would have expired.
func TestSupervisorKilled(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		f := New(t, url, Settings{Jobs: []Job{retried()}})
		a := f.StartReady("a")
		run := f.WaitAlive(f.Trigger("job").ID, record.Grandchild)
		first := a.Supervisor()
		require.NotZero(t, first)
		require.NoError(t, syscall.Kill(first, syscall.SIGKILL))

		lost := f.WaitFinished(run.ID)
		assert.Equal(t, jobs.OutcomeLost, lost.Outcome)
		assert.Equal(t, jobs.ReasonSupervisor, lost.Reason)
		again := f.WaitFinished(f.WaitAttempt(run, 2).ID)
		assert.Equal(t, jobs.OutcomeSucceeded, again.Outcome)
		assert.NotEqual(t, first, a.Supervisor())
		assert.Len(t, f.Rest().Runs, 2)
	})
}

// P4, second line: daemon and supervisor die at the same time. The kernel ends the command with its parent; a
// grandchild in another session ends where the supervisor could use cgroups, when the next daemon starts here at the
// latest. The test's job has none, so that it holds on every machine.
func TestSupervisorAndDaemonKilledTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		job := Job{Name: "job", Args: []string{"-for", "1m", "-ignore-term"}, OnLost: "fail"}
		f := New(t, url, Settings{TTL: roomyTTL, Jobs: []Job{job}})
		a := f.StartReady("a")
		run := f.WaitAlive(f.Trigger("job").ID, record.Main)
		supervisor := a.Supervisor()
		require.NotZero(t, supervisor)
		a.Signal(syscall.SIGSTOP) // so that it cannot act between the two signals
		a.WaitFrozen()
		require.NoError(t, syscall.Kill(supervisor, syscall.SIGKILL))
		a.Kill()
		dead := boottime.Now()

		f.StartReady("b")
		lost := f.WaitFinished(run.ID)
		assert.Equal(t, jobs.OutcomeLost, lost.Outcome)
		assert.Equal(t, jobs.ReasonReplicaLost, lost.Reason)
		h := f.Rest()
		assert.Len(t, h.Runs, 1)
		require.NoError(t, check.DeadBy(h.Events, dead+roomyTTL, func(int64) bool { return true }))
	})
}
