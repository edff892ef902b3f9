package fleet

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/locking"
)

const everySecond = "* * * * * *"

// shortJobs are n jobs that record their start and end and nothing between.
func shortJobs(n int) []Job {
	list := make([]Job, n)
	for i := range list {
		list[i] = Job{Name: fmt.Sprintf("short-%02d", i), Schedule: everySecond}
	}
	return list
}

func schedules(list []Job) map[string]string {
	m := map[string]string{}
	for _, j := range list {
		if j.Schedule != "" {
			m[j.Name] = j.Schedule
		}
	}
	return m
}

// now is the database's clock.
func (f *Fleet) now() time.Time {
	f.t.Helper()
	store, err := locking.NewStore(f.DB.Main)
	f.must(err)
	now, err := store.Now(f.t.Context())
	f.must(err)
	return now
}

// watch lets the fleet work for a span of the database's clock and returns it: all replicas were there in it.
func (f *Fleet) watch(span time.Duration) check.Window {
	f.t.Helper()
	from := f.now().Truncate(time.Second).Add(time.Second)
	pass(f.t, boottime.Now()+span)
	return check.Window{From: from, Until: f.now().Add(-2 * time.Second)}
}

// P1, P5, P7: three daemons, sixty jobs, every second.
func TestEveryOccurrenceRunsOnce(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		list := shortJobs(60)
		f := New(t, url, Settings{Jobs: list})
		for _, name := range []string{"a", "b", "c"} {
			f.StartReady(name)
		}
		w := f.watch(30 * time.Second)
		h := f.Rest()
		require.NoError(t, check.Calendar(h.Runs, schedules(list), w))
		require.NoError(t, check.NotRun(h.Runs))
		ran, all := check.Share(h.Runs)
		assert.Greater(t, ran*100, all*90, "%d of %d occurrences have run", ran, all)
		share := check.PerReplica(h.Runs)
		t.Logf("%d of %d occurrences have run, by replica: %v", ran, all, share)
		for _, name := range []string{"a", "b", "c"} {
			assert.Greater(t, share[name], all/20, "replica %s has run too little: %v", name, share)
		}
		if os.Getenv("FLEET_SHOW") != "" {
			f.dump()
		}
	})
}
