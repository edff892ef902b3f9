package fleet

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/fleet/record"
	"github.com/cronlatch/cronlatch/jobs"
)

// One of three replicas is drained over the API of another one: it starts nothing more, what runs there comes to its own end,
// the others do the work; when that is taken back, it works again.
func TestADrainedReplicaLeavesTheWorkToOthers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		list := append(shortJobs(4), Job{Name: "long", Args: []string{"-until", "end"}})
		f := New(t, url, Settings{Jobs: list})
		for _, name := range []string{"a", "b", "c"} {
			f.StartReady(name)
		}
		run := f.WaitAlive(f.Trigger("long").ID, record.Main)
		all := f.Replicas()
		victim := all[slices.IndexFunc(all, func(r *Replica) bool { return r.Name == run.Replica })]
		server := []string{"--server", f.Others(victim)[0].address()}
		code, out := f.Cronlatch(append([]string{"replicas", "drain", victim.Name, "--reason", "kernel"}, server...)...)
		require.Zero(t, code, out)
		asked := boottime.Now()
		until(t, "it is not ready", patience, func() bool { return victim.readyz() == http.StatusServiceUnavailable })
		assert.Less(t, boottime.Now()-asked, 5*time.Second+onTime, "it notices soon")
		s := span{from: f.now()}

		f.allow("end")
		code, out = f.Cronlatch(append([]string{"replicas", "drain", victim.Name, "--wait"}, server...)...)
		require.Zero(t, code, out)
		ended := f.WaitFinished(run.ID)
		assert.Equal(t, []any{victim.Name, jobs.OutcomeSucceeded}, []any{ended.Replica, ended.Outcome})
		assert.True(t, ended.FinishedAt.After(s.from), "it went on after the replica had noticed")
		until(t, "the others work", patience, func() bool { return f.ran(list[:4], *ended.FinishedAt) })
		s.until = f.now()
		code, out = f.Cronlatch(append([]string{"replicas", "undrain", victim.Name}, server...)...)
		require.Zero(t, code, out)
		until(t, "it works again", patience, func() bool {
			return f.count("replica = ? AND started_at IS NOT NULL AND id > ?", victim.Name, f.lastBefore(s.until)) > 0
		})
		until(t, "it is ready again", patience, func() bool { return victim.readyz() == http.StatusOK })
		for _, r := range f.Rest().Runs {
			if r.Replica == victim.Name && r.StartedAt != nil {
				assert.False(t, s.has(*r.StartedAt), "run %d of %s started at %s", r.ID, r.Job, r.StartedAt)
			}
		}
	})
}

// lastBefore is the newest run that was made before an instant.
func (f *Fleet) lastBefore(at time.Time) (id int64) {
	f.tb.Helper()
	for _, r := range f.Runs() {
		if r.CreatedAt.Before(at) {
			id = max(id, r.ID)
		}
	}
	return id
}
