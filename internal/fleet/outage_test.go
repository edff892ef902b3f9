package fleet

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/internal/fleet/record"
	"github.com/cronlatch/cronlatch/internal/netfault"
	"github.com/cronlatch/cronlatch/internal/pgserver"
	"github.com/cronlatch/cronlatch/jobs"
)

// ofJob are the runs of one job.
func ofJob(runs []jobs.Run, job string) []jobs.Run {
	return slices.DeleteFunc(slices.Clone(runs), func(r jobs.Run) bool { return r.Job != job })
}

// P8: the server goes away and comes back, politely, rudely, and for longer than the TTL. No daemon dies, the long job is
// dead before its lock expires, its outcome is written when the server is back, and everything goes on by itself.
func TestPostgresRestarts(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	list := append(shortJobs(3), Job{Name: "long", Args: []string{"-for", "3m", "-grandchild"}, OnLost: "retry"})
	f := New(t, server.URL(), Settings{TTL: roomyTTL, Jobs: list})
	replicas := []*Replica{f.StartReady("a"), f.StartReady("b")}
	for _, mode := range []pgserver.Mode{pgserver.Fast, pgserver.Immediate} {
		server.Stop(mode)
		server.Restart()
		f.waitForNewRuns(3)
	}
	run := f.WaitAlive(f.Trigger("long").ID, record.Grandchild)
	server.Stop(pgserver.Fast)
	gone := boottime.Now()
	until(t, "the long job is dead", patience, func() bool { return len(f.JobProcesses()) == 0 })
	last := f.LastSign(run.ID)
	assert.Less(t, last, gone+roomyTTL, "the job was dead before its lock could expire")
	f.Outlast(gone)
	for _, r := range replicas {
		require.False(t, r.Ended(), "replica %s lives", r.Name)
	}
	server.Restart()

	lost := f.WaitFinished(run.ID)
	assert.Equal(t, jobs.OutcomeLost, lost.Outcome)
	next := f.WaitAttempt(run, 2)
	f.WaitAlive(next.ID, record.Main)
	f.waitForNewRuns(3)
	for _, r := range replicas {
		r.Says("the database answers again")
	}
	f.finishLong(list)
	h := f.Rest()
	for _, job := range []string{"short-00", "short-01", "short-02"} {
		require.NoError(t, check.Calendar(ofJob(h.Runs, job), map[string]string{job: everySecond}, check.Window{}))
	}
}

// waitForNewRuns waits until n runs have been claimed and have succeeded after this moment.
func (f *Fleet) waitForNewRuns(n int) {
	f.tb.Helper()
	var newest int64
	until(f.tb, "the database answers", patience, func() bool {
		runs, err := f.runs()
		for i := range runs {
			newest = max(newest, runs[i].ID)
		}
		return err == nil
	})
	until(f.tb, "new runs succeed", patience, func() bool {
		runs, err := f.runs()
		fresh := slices.DeleteFunc(runs, func(r jobs.Run) bool { return r.ID <= newest || r.Outcome != jobs.OutcomeSucceeded })
		return err == nil && len(fresh) >= n
	})
}

// finishLong makes what is left of the long job short: attempts from now on end at once.
func (f *Fleet) finishLong(list []Job) {
	f.tb.Helper()
	list[len(list)-1].Args = []string{"-for", "100ms"}
	f.settings.Jobs = list
}

// P3, P8 for a whole daemon: its connection swallows everything. Its job is dead before a rival's attempt can begin; when
// the network is back, the daemon goes on, and what it has to say about the run is kept aside.
func TestBlackHoledDaemon(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	proxy := netfault.Listen(t, server.Addr())
	quick := Job{Name: "quick"}
	f := New(t, server.URL(), Settings{TTL: roomyTTL, Jobs: []Job{retried(), quick}})
	direct := f.url
	f.url = strings.Replace(direct, server.Addr(), proxy.Addr(), 1)
	a := f.StartReady("a")
	run := f.WaitAlive(f.Trigger("job").ID, record.Grandchild)
	f.url = direct
	b := f.StartReady("b")

	proxy.BlackHole()
	f.WaitRun(run.ID, "the black-holed replica's run is lost", wasLost)
	again := f.WaitFinished(f.WaitAttempt(run, 2).ID)
	assert.Equal(t, "b", again.Replica)
	assert.Equal(t, jobs.OutcomeSucceeded, again.Outcome)
	require.False(t, a.Ended())
	proxy.Restore()
	f.WaitRun(run.ID, "the late outcome is kept aside", func(r *jobs.Run) bool { return r.LateOutcome != nil })
	b.Leave(bound(drain))
	more := f.WaitFinished(f.Trigger("quick").ID)
	assert.Equal(t, "a", more.Replica, "it works again")
	assert.Equal(t, jobs.OutcomeSucceeded, more.Outcome)
	assert.Len(t, f.Rest().Runs, 3)
}
