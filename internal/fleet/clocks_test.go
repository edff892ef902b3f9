package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/locking"
)

// P5, P7: the wall clocks of three replicas are five seconds apart on both sides of the database's. What is due and when
// is the database's decision, so nothing changes; that none is early is checked by Rest, by the database's clock and by
// that of the jobs.
func TestReplicaClocksApart(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		list := shortJobs(4)
		f := New(t, url, Settings{Jobs: list})
		offsets := map[string]string{"early": "5s", "right": "0s", "late": "-5s"}
		for name, offset := range offsets {
			f.StartReady(name, "CRONLATCH_WALL_OFFSET="+offset)
		}
		w := f.watch(8 * time.Second)
		for name := range offsets {
			until(t, name+" works as the others do", patience, func() bool { return f.count("replica = ?", name) > 0 })
		}
		h := f.Rest()
		require.NoError(t, check.Calendar(h.Runs, schedules(list), w))
		require.NoError(t, check.NotRun(h.Runs, locking.DefaultTTL))
		mostly(t, h.Runs)
	})
}
