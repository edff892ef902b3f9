package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/internal/fleet/record"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// faultTTL is the TTL where something is hurt; a beat is a third of it.
const faultTTL = 2 * time.Second

// roomyTTL is the TTL where somebody must keep a lock, or be dead in time, on a machine that others keep busy: who stands
// still for two seconds after a beat has not lost the lock yet, and the margin is 600 ms.
const roomyTTL = 3 * faultTTL

const (
	stubborn = "long:stubborn" // ignores SIGTERM; lost is lost
	clan     = "long:clan"     // leaves a grandchild in its own session, which ignores SIGTERM; lost is tried again
)

func longJobs() []Job {
	return []Job{
		{Name: stubborn, Schedule: "*/2 * * * * *", Args: []string{"-for", "4s", "-ignore-term"}, OnLost: "fail"},
		{Name: clan, Schedule: "*/3 * * * * *", Args: []string{"-for", "4s", "-grandchild"}, OnLost: "retry"},
	}
}

// P1 to P6: sixty short jobs and two long ones; one replica is killed and another one frozen past the TTL, each while
// it runs a long job.
func TestKilledAndFrozenReplicas(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		list := append(shortJobs(60), longJobs()...)
		f := New(t, url, Settings{TTL: roomyTTL, Jobs: list})
		all := []*Replica{f.StartReady("a"), f.StartReady("b"), f.StartReady("c")}
		from, end := f.planning(), boottime.Now()+30*time.Second

		dead, lost, _ := f.FreezeVictim(stubborn, record.Main, all...)
		killed := dead.Kill()
		f.WaitRun(lost.ID, "the killed replica's run is lost", wasLost)

		frozen, given, stopped := f.FreezeVictim(clan, record.Grandchild, f.Others(dead)...)
		f.WaitRun(given.ID, "the frozen replica's run is lost", wasLost)
		f.Outlast(stopped)
		thawed := f.now()
		frozen.Thaw()
		late := f.WaitRun(given.ID, "its late outcome is kept aside", func(r *jobs.Run) bool { return r.LateOutcome != nil })
		assert.Equal(t, jobs.OutcomeLost, late.Outcome)
		until(t, "the thawed replica works again", patience, func() bool {
			now, err := f.Ledger.List(t.Context(), jobs.RunFilter{Limit: 300}) // the newest: a few seconds
			return err == nil && claimedAfter(now, frozen.Name, thawed)
		})

		pass(t, end)
		w := f.window(from)
		h := f.Rest()
		require.NoError(t, check.Calendar(h.Runs, schedules(list), w))
		require.NoError(t, check.NotRun(h.Runs, roomyTTL))
		require.NoError(t, check.DeadBy(h.Events, killed+roomyTTL, unfinishedOf(h.Runs, dead.Name)))
		require.NoError(t, check.DeadBy(h.Events, stopped+roomyTTL, func(id int64) bool { return id == given.ID }))
		mostly(t, h.Runs)
		t.Logf("%d were lost", countLost(h.Runs))
	})
}

func wasLost(r *jobs.Run) bool { return r.Outcome == jobs.OutcomeLost }

func countLost(runs []jobs.Run) (n int) {
	for i := range runs {
		if wasLost(&runs[i]) {
			n++
		}
	}
	return n
}

// unfinishedOf chooses the runs that a killed replica never finished.
func unfinishedOf(runs []jobs.Run, replica string) func(int64) bool {
	chosen := map[int64]bool{}
	for i := range runs {
		chosen[runs[i].ID] = runs[i].Replica == replica && wasLost(&runs[i])
	}
	return func(id int64) bool { return chosen[id] }
}

func claimedAfter(runs []jobs.Run, replica string, instant time.Time) bool {
	for i := range runs {
		if r := &runs[i]; r.Replica == replica && r.StartedAt != nil && r.StartedAt.After(instant) {
			return true
		}
	}
	return false
}

// A pause that is shorter than what is left of the lock costs nothing. It begins with a renewal, or the next one would be due
// in the middle of it, and nothing would be left when it is over.
func TestShortFreezeLosesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		const ttl = 12 * time.Second
		f := New(t, url, Settings{TTL: ttl, Jobs: []Job{{Name: "job", Args: []string{"-until", "end"}, OnLost: "retry"}}})
		a, b := f.StartReady("a"), f.StartReady("b")
		run := f.WaitAlive(f.Trigger("job").ID, record.Main)
		holder := a
		if run.Replica == b.Name {
			holder = b
		}
		renewed := f.jobRenewedAt()
		until(t, "the lock is renewed", patience, func() bool { return f.jobRenewedAt().After(renewed) })
		pass(t, holder.Freeze()+ttl/2-ttl/10)
		holder.Thaw()
		renewed = f.jobRenewedAt()
		until(t, "the lock is renewed again", patience, func() bool { return f.jobRenewedAt().After(renewed) })
		f.allow("end")
		done := f.WaitFinished(run.ID)
		assert.Equal(t, jobs.OutcomeSucceeded, done.Outcome)
		assert.Len(t, f.Rest().Runs, 1)
	})
}

// jobRenewedAt is when the lock of "job" was acquired or renewed.
func (f *Fleet) jobRenewedAt() time.Time {
	f.tb.Helper()
	store, err := locking.NewStore(f.DB.Main)
	f.must(err)
	lock, err := store.Get(f.tb.Context(), "job")
	f.must(err)
	return lock.RenewedAt
}
