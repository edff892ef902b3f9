package jobs

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What within takes for granted: no two changes of an offset stand so close that the local times which one of them
// repeats or leaves out touch those of the other. The largest step of any zone is a day.
func TestPeriodsAreLongerThanAnyStep(t *testing.T) {
	t.Parallel()
	db, err := openZones()
	require.NoError(t, err)
	const twoDays = 2 * secondsPerDay
	for _, name := range db.names {
		loc, err := LoadZone(name)
		require.NoError(t, err)
		end := time.Date(2110, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
		for p := periodAt(loc, firstInstant); p.end < end; p = periodAt(loc, p.end) {
			if p.start != math.MinInt64 {
				require.Greater(t, p.end-p.start, int64(twoDays), "%s from %s", name, time.Unix(p.start, 0).UTC())
			}
			require.LessOrEqual(t, max(p.offset-p.before, p.before-p.offset), int64(secondsPerDay+3600), name)
			require.NotEqual(t, p.offset, offsetAt(loc, p.end), "%s: no change at %s", name, time.Unix(p.end, 0).UTC())
			require.Equal(t, p.offset, offsetAt(loc, p.end-1))
		}
	}
}

// Asked at any instant, periodAt gives the same period, and the offset within it never differs.
func TestPeriodAtIsConsistent(t *testing.T) {
	t.Parallel()
	db, err := openZones()
	require.NoError(t, err)
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, name := range db.names {
		loc, err := LoadZone(name)
		require.NoError(t, err)
		for i := range 40 {
			at := rnd.Int64N(9e9) - 4e9
			if i%4 == 0 { // the last days of a leap year, and the first of the next
				at = time.Date(2029+4*rnd.IntN(20), 1, 1, 0, 0, 0, 0, time.UTC).Unix() + rnd.Int64N(4*secondsPerDay) - 2*secondsPerDay
			}
			p := periodAt(loc, at)
			require.LessOrEqual(t, p.start, at, name)
			require.Greater(t, p.end, at, name)
			low, high := max(p.start, at-1e9), min(p.end, at+1e9)
			inside := low + rnd.Int64N(high-low)
			require.Equal(t, p.offset, offsetAt(loc, inside), "%s %s", name, time.Unix(inside, 0).UTC())
			require.Equal(t, p, periodAt(loc, inside), "%s %s and %s", name, time.Unix(at, 0).UTC(), time.Unix(inside, 0).UTC())
		}
	}
}
