package locking_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cronlatch/cronlatch/locking"
)

func TestLeaseFigures(t *testing.T) {
	t.Parallel()
	const s, ms = time.Second, time.Millisecond
	for _, c := range []struct{ ttl, ask, margin, beat, attempt, grace time.Duration }{
		{30 * s, 10 * s, 3 * s, 10 * s, 3 * s, 4 * s},
		{30 * s, s, 3 * s, 10 * s, 3 * s, s},
		{60 * s, 10 * s, 6 * s, 20 * s, 3 * s, 10 * s},
		{9 * s, 10 * s, 900 * ms, 3 * s, 900 * ms, 1200 * ms},
		{3 * s, 10 * s, 300 * ms, s, 300 * ms, 400 * ms},
		{s, 10 * s, 250 * ms, s / 3, 100 * ms, 0}, // it may be 0, and is no reason to refuse
		{24 * time.Hour, time.Minute, 144 * time.Minute, 8 * time.Hour, 3 * s, time.Minute},
	} {
		l := locking.NewLease(locking.LeaseConfig{TTL: c.ttl, StopGrace: c.ask})
		require.NoError(t, l.Validate())
		assert.Equal(t, c.margin, l.Margin, c.ttl)
		assert.Equal(t, c.beat, l.Beat, c.ttl)
		assert.Equal(t, c.attempt, l.Attempt, c.ttl)
		assert.Equal(t, c.grace, l.Grace, c.ttl)
	}
}

// Whatever is asked for: the holder stops before the expiry, and a first renewal fits before it is told to.
func TestLeaseOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ttl := time.Duration(rapid.Int64Range(int64(locking.MinKeptTTL), int64(locking.MaxTTL)).Draw(t, "ttl"))
		ask := time.Duration(rapid.Int64Range(0, int64(2*locking.MaxTTL)).Draw(t, "grace"))
		sent := time.Duration(rapid.Int64Range(0, int64(locking.MaxTTL)).Draw(t, "sent"))
		l := locking.NewLease(locking.LeaseConfig{TTL: ttl, StopGrace: ask})
		require.NoError(t, l.Validate())
		require.LessOrEqual(t, l.StopAt(sent), l.Deadline(sent))
		require.LessOrEqual(t, l.Deadline(sent), sent+ttl-250*time.Millisecond)
		require.Less(t, sent+l.Beat+l.Attempt, l.StopAt(sent))
		require.LessOrEqual(t, l.Grace, ask)
	})
}

func TestStepDetector(t *testing.T) {
	t.Parallel()
	const s = time.Second
	epoch := time.Unix(1_700_000_000, 0)
	type observation struct{ sent, received, database, want time.Duration }
	for name, all := range map[string][]observation{
		"no step":              {{0, 1 * s, s / 2, 0}, {10 * s, 11 * s, 10*s + s/2, 0}, {20 * s, 20 * s, 20 * s, 0}},
		"forward":              {{0, 0, 0, 0}, {10 * s, 10 * s, 15 * s, 5*s - 10*time.Millisecond}, {20 * s, 20 * s, 25 * s, 0}},
		"backward":             {{0, 0, 0, 0}, {10 * s, 10 * s, 5 * s, -5*s + 10*time.Millisecond}, {20 * s, 20 * s, 15 * s, 0}},
		"hidden by a slow one": {{0, 0, 0, 0}, {10 * s, 20 * s, 21 * s, s - 30*time.Millisecond}},
		"slow, then sharp":     {{0, 0, 0, 0}, {10 * s, 20 * s, 15 * s, 0}, {30 * s, 30 * s, 31 * s, s - 30*time.Millisecond}},
		"slewed":               {{0, 0, 0, 0}, {1000 * s, 1000 * s, 1000*s + s/2, 0}, {2000 * s, 2000 * s, 2001 * s, 0}},
		"overtaken answer":     {{0, 0, 0, 0}, {10 * s, 12 * s, 11 * s, 0}, {5 * s, 6 * s, 60 * s, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var d locking.StepDetector
			for i, o := range all {
				got := d.Observe(o.sent, o.received, epoch.Add(o.database))
				assert.Equalf(t, o.want, got, "observation %d", i)
			}
		})
	}
}

// It never cries wolf: with a clock that only drifts within the limits, no observation is a step.
func TestStepDetectorIsNeverWrong(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var d locking.StepDetector
		boot, db := time.Duration(0), time.Unix(1_700_000_000, 0)
		advance := func(label string) {
			by := time.Duration(rapid.Int64Range(0, int64(30*time.Second)).Draw(t, label))
			ppm := rapid.Int64Range(-900, 900).Draw(t, "ppm")
			boot += by
			db = db.Add(by + time.Duration(int64(by)*ppm/1_000_000))
		}
		for range rapid.IntRange(2, 40).Draw(t, "n") {
			sent := boot
			advance("there")
			at := db
			advance("back")
			require.Zero(t, d.Observe(sent, boot, at))
			advance("pause")
		}
	})
}
