package jobs_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// zoneWithChanges is a zone whose clocks change in the years 2024 to 2027, and the hours in which they do.
type zoneWithChanges struct {
	name    string
	loc     *time.Location
	changes []int64
}

func zonesWithChanges(t *testing.T) []zoneWithChanges {
	t.Helper()
	start, end := instant(t, "2024-01-01T00:00:00Z").Unix(), instant(t, "2028-01-01T00:00:00Z").Unix()
	var zones []zoneWithChanges
	for _, name := range zoneNames(t) {
		loc, err := jobs.LoadZone(name)
		require.NoError(t, err)
		z := zoneWithChanges{name: name, loc: loc}
		for u := start; u < end; u += 5 * 86400 {
			for v := u; zoneOffset(loc, u) != zoneOffset(loc, u+5*86400) && v < u+5*86400; v += 3600 {
				if zoneOffset(loc, v) != zoneOffset(loc, v+3600) {
					z.changes = append(z.changes, v)
				}
			}
		}
		if len(z.changes) > 0 {
			zones = append(zones, z)
		}
	}
	require.Greater(t, len(zones), 150)
	return zones
}

// 2,000 random schedules with everything there is agree with a scan of dates and minutes. Each is tried in one
// zone whose clocks change in 2024 to 2027, so that all of them have their turn, or in as many as half of
// CRONLATCH_CALENDAR_WINDOWS says.
func TestFeaturesAgreeWithTheNaiveScan(t *testing.T) {
	t.Parallel()
	const expressions, batch = featureExpressions, 100
	windows, seed := windowsPerZone(t)
	windows = max(1, windows/2)
	zones := zonesWithChanges(t)
	var refused, instants atomic.Int64
	t.Run("batches", func(t *testing.T) {
		for first := 0; first < expressions; first += batch {
			t.Run(strconv.Itoa(first), func(t *testing.T) {
				t.Parallel()
				for i := first; i < first+batch; i++ {
					for w := range min(windows, len(zones)) {
						z := zones[(i*windows+w)%len(zones)]
						n, ok := checkFeatures(t, z, rand.New(rand.NewPCG(seed, uint64(i))), rand.New(rand.NewPCG(seed+uint64(w), uint64(i))))
						instants.Add(int64(n))
						if !ok {
							refused.Add(1)
						}
					}
				}
			})
		}
	})
	tried := int64(expressions * min(windows, len(zones)))
	assert.Less(t, refused.Load(), tried/4, "too many schedules have no instant at all")
	assert.Greater(t, instants.Load(), 5*tried, "the windows are nearly empty")
	t.Logf("%d zones, %d windows, %d instants, %d never fire", len(zones), tried, instants.Load(), refused.Load())
}

// checkFeatures looks at five days around a change of the clocks or the end of a month. The same expression comes from
// the same rnd, whatever the place.
func checkFeatures(t *testing.T, z zoneWithChanges, rnd, where *rand.Rand) (instants int, ok bool) {
	t.Helper()
	near := z.changes[where.IntN(len(z.changes))]
	if where.IntN(2) == 0 {
		near = time.Date(2024, time.Month(where.IntN(48)+1), 1, where.IntN(48)-24, 0, 0, 0, time.UTC).Unix()
	}
	f := newFeatures(rnd, z.name, near)
	from, until := near-60*3600-where.Int64N(3600), near+60*3600
	want := f.between(z.loc, from, until)
	s, err := jobs.ParseSchedules(f.texts(), f.options)
	if err != nil {
		var fault *jobs.ScheduleError
		require.ErrorAs(t, err, &fault)
		require.Equal(t, jobs.CodeScheduleNever, fault.Code, err.Error())
		if fault.Item == -1 { // else one item of a list is refused although the others fire
			require.Empty(t, want, "%s: %s", strings.Join(f.texts(), "; "), err)
		}
		return 0, false
	}
	about := func(u int64) string {
		return fmt.Sprintf("%s %+v after %s", s, f.options, time.Unix(u, 0).In(z.loc).Format(time.RFC3339))
	}
	at := from
	for _, w := range want {
		got := s.Next(time.Unix(at, 0)).Unix()
		if got != w {
			require.Equal(t, time.Unix(w, 0).In(z.loc).Format(time.RFC3339), time.Unix(got, 0).In(z.loc).Format(time.RFC3339), about(at))
		}
		require.Equal(t, w, s.Next(time.Unix(at+where.Int64N(w-at), 0)).Unix(), about(at))
		at = w
	}
	if next := s.Next(time.Unix(at, 0)); !next.IsZero() && next.Unix() <= until {
		require.Fail(t, "an instant too many", "%s: %s", about(at), next)
	}
	return len(want), true
}

// A plain schedule is asked for its next instant without an allocation, lists and calendars included.
func TestNextDoesNotAllocate(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts the whole process
	weekend := calendarOf(t, jobs.CalendarOptions{Weekdays: []string{"sat", "sun"}, Dates: []string{"12-25", "2026-05-25"}})
	o := jobs.ScheduleOptions{Timezone: "Europe/Berlin", Job: "backup"}
	shifted := o
	shifted.Calendars = jobs.Calendars{Exclude: []*jobs.Calendar{weekend}, Shift: jobs.ShiftNext}
	for name, s := range map[string]*jobs.Schedule{
		"plain": parse(t, "*/5 8-18 * * MON-FRI", o), "list": parseList(t, o, "H H L * *", "0 9 * * 5#2", "@every 7h"),
		"calendars": parse(t, "0 9 * * *", shifted),
	} {
		at := instant(t, "2026-05-01T00:00:00Z")
		assert.Zero(t, testing.AllocsPerRun(500, func() { at = s.Next(at) }), name)
	}
}

// A rule of which a calendar leaves nothing does not make each instant of the others a search of a hundred years.
func TestADeadRuleBesideALiveOneIsCheap(t *testing.T) {
	t.Parallel()
	sundays := jobs.Calendars{Exclude: []*jobs.Calendar{calendarOf(t, jobs.CalendarOptions{Weekdays: []string{"sun"}})}}
	s := parseList(t, jobs.ScheduleOptions{Calendars: sundays}, "0 9 * * SUN", "* * * * *")
	at, more := s.Between(instant(t, "2026-05-01T00:00:00Z"), instant(t, "2026-08-01T00:00:00Z"), 200_000)
	assert.False(t, more)
	assert.Len(t, at, (92-13)*1440)
}
