package fleet

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

const everySecond = "* * * * * *"

// leastShare is how many percent of the instants must have run: that the fleet worked at all. It is far below what an idle
// machine does (92 to 99 of 100), because a busy one skips by overlap, which the checkers look at one by one. The same two
// cores, with nothing else on them that they could see, have done 30 in a slow hour, and 40 with thirty processes to each.
const leastShare = 20

// mostly: the fleet worked.
func mostly(t *testing.T, runs []jobs.Run) {
	t.Helper()
	ran, all := check.Share(runs)
	t.Logf("%d of %d have run (asked for: %d %%), by replica: %v", ran, all, leastShare, check.PerReplica(runs))
	assert.Greater(t, ran*100, all*leastShare)
}

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
	f.tb.Helper()
	store, err := locking.NewStore(f.DB.Main)
	f.must(err)
	now, err := store.Now(f.tb.Context())
	f.must(err)
	return now
}

// planned waits until each schedule was planned up to an instant: a busy machine is late, and nobody plans what is left when
// all have gone.
func (f *Fleet) planned(to time.Time, names ...string) {
	f.tb.Helper()
	until(f.tb, "the schedules are planned until "+to.String(), 4*patience, func() bool {
		var there []string
		err := f.DB.Main.NewRaw(`SELECT DISTINCT job FROM plan_positions WHERE position >= ?`,
			dbtime.Arg(f.DB.Main.Dialect().Name(), to)).Scan(f.tb.Context(), &there)
		return err == nil && !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(there, name) })
	})
}

// planning is the first whole second at which each schedule is certainly watched. A replica that is ready may not have come
// to its schedules yet.
func (f *Fleet) planning(names ...string) time.Time {
	f.tb.Helper()
	f.planned(time.Unix(0, 0), f.orAll(names)...)
	return f.now().Truncate(time.Second).Add(time.Second)
}

// window is from an instant to the last one that is certainly planned.
func (f *Fleet) window(from time.Time, names ...string) check.Window {
	f.tb.Helper()
	w := check.Window{From: from, Until: f.now()}
	f.planned(w.Until, f.orAll(names)...)
	return w
}

// orAll are the names, or those of all jobs with a schedule when there are none.
func (f *Fleet) orAll(names []string) []string {
	if names != nil {
		return names
	}
	return slices.Collect(maps.Keys(schedules(f.settings.Jobs)))
}

// watch lets the fleet work for a span of the database's clock and returns it: all replicas were there in it.
func (f *Fleet) watch(span time.Duration, names ...string) check.Window {
	f.tb.Helper()
	from := f.planning(names...)
	pass(f.tb, boottime.Now()+span)
	return f.window(from, names...)
}

// P1, P5, P7: three daemons, sixty jobs, every second.
func TestEveryOccurrenceRunsOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		list := shortJobs(60)
		f := New(t, url, Settings{Jobs: list})
		for _, name := range []string{"a", "b", "c"} {
			f.StartReady(name)
		}
		w := f.watch(30 * time.Second)
		h := f.Rest()
		require.NoError(t, check.Calendar(h.Runs, schedules(list), w))
		require.NoError(t, check.NotRun(h.Runs, locking.DefaultTTL))
		mostly(t, h.Runs)
		ran, _ := check.Share(h.Runs)
		share := check.PerReplica(h.Runs)
		for _, name := range []string{"a", "b", "c"} {
			assert.Greater(t, share[name], ran/20, "replica %s has run too little: %v", name, share)
		}
	})
}
