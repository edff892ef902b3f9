package jobs_test

import (
	"archive/zip"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// windowsPerZone is how many stretches of time each zone is tried on. CRONLATCH_CALENDAR_WINDOWS raises it for a long
// run (make calendar); CRONLATCH_CALENDAR_SEED tries others.
func windowsPerZone(tb testing.TB) (windows int, seed uint64) {
	tb.Helper()
	windows, seed = 2, 1
	if v := os.Getenv("CRONLATCH_CALENDAR_WINDOWS"); v != "" {
		n, err := strconv.Atoi(v)
		require.NoError(tb, err)
		windows = n
	}
	if v := os.Getenv("CRONLATCH_CALENDAR_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		require.NoError(tb, err)
		seed = n
	}
	return windows, seed
}

// zoneNames lists the zones of the embedded database that LoadZone accepts.
func zoneNames(tb testing.TB) []string {
	tb.Helper()
	r, err := zip.OpenReader("zoneinfo.zip")
	require.NoError(tb, err)
	var names []string
	for _, f := range r.File {
		if _, err := jobs.LoadZone(f.Name); err == nil {
			names = append(names, f.Name)
		}
	}
	require.NoError(tb, r.Close())
	require.Greater(tb, len(names), 580)
	return names
}

// Next agrees with the oracle around changes of every zone: the same instants, strictly increasing, each of them found
// from any instant before it.
func TestNextAgreesWithTheNaiveScanInEveryZone(t *testing.T) {
	t.Parallel()
	windows, seed := windowsPerZone(t)
	for _, name := range zoneNames(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := fnv.New64a()
			_, err := h.Write([]byte(name))
			require.NoError(t, err)
			rnd := rand.New(rand.NewPCG(seed, h.Sum64()))
			loc, err := jobs.LoadZone(name)
			require.NoError(t, err)
			changes := changesOf(loc)
			for range windows {
				checkWindow(t, rnd, newOracle(rnd, name), loc, pickInstant(rnd, changes))
			}
		})
	}
}

// changesOf finds the instants, to five days, at which the offset changes.
func changesOf(loc *time.Location) []int64 {
	var changes []int64
	const step = 5 * 86400
	start, end := time.Date(1840, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(2110, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	for u := start; u < end; u += step {
		if zoneOffset(loc, u) != zoneOffset(loc, u+step) {
			changes = append(changes, u)
		}
	}
	return changes
}

// pickInstant prefers a change of the offset; the last day of a leap year is where time.ZoneBounds is wrong.
func pickInstant(rnd *rand.Rand, changes []int64) int64 {
	switch {
	case rnd.IntN(10) == 0:
		return time.Date(2028+4*rnd.IntN(18), 12, 31, rnd.IntN(24), 0, 0, 0, time.UTC).Unix()
	case len(changes) == 0:
		return rnd.Int64N(4e9) - 1e9
	}
	return changes[rnd.IntN(len(changes))]
}

// checkWindow looks at two days around the change behind an instant.
func checkWindow(t *testing.T, rnd *rand.Rand, o *oracle, loc *time.Location, near int64) {
	t.Helper()
	for u := near; u < near+5*86400; u += 3600 { // the change itself, to the hour
		if zoneOffset(loc, u) != zoneOffset(loc, u+3600) {
			near = u
			break
		}
	}
	from, until := near-26*3600-rnd.Int64N(3600), near+26*3600
	want := o.between(loc, from, until)
	s, err := jobs.ParseSchedule(o.text(), o.options)
	if err != nil {
		requireNever(t, o, err)
		return
	}
	about := func(u int64) string {
		return o.text() + " " + o.options.Timezone + " dst " + string(o.options.DST) + " after " +
			time.Unix(u, 0).In(loc).Format(time.RFC3339)
	}
	at := from
	for _, w := range want {
		got := s.Next(time.Unix(at, 999_999_999)).Unix()
		if got != w {
			require.Equal(t, time.Unix(w, 0).In(loc).Format(time.RFC3339), time.Unix(got, 0).In(loc).Format(time.RFC3339), about(at))
		}
		middle := at + rnd.Int64N(w-at)
		require.Equal(t, w, s.Next(time.Unix(middle, 0)).Unix(), about(middle))
		at = w
	}
	if next := s.Next(time.Unix(at, 0)); next.Unix() <= until {
		require.Fail(t, "an instant too many", "%s: %s", about(at), next)
	}
}

// requireNever accepts a refusal only for what really has no day in any month.
func requireNever(t *testing.T, o *oracle, err error) {
	t.Helper()
	var fault *jobs.ScheduleError
	require.ErrorAs(t, err, &fault)
	require.Equal(t, jobs.CodeScheduleNever, fault.Code, o.text())
	require.True(t, o.dow.star, "%s refused, but every week has a match", o.text())
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for d := start; d.Year() < 2001; d = d.AddDate(0, 0, 1) {
		require.False(t, o.month.set[int(d.Month())] && o.dom.set[d.Day()], "%s refused, but %s matches", o.text(), d)
	}
}
