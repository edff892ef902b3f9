package jobs_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// One thousand jobs that all say H H * * * are spread over minutes and hours as chance would: no minute of the hour is
// more than three standard deviations from its share.
func TestHSpreadsAThousandJobs(t *testing.T) {
	t.Parallel()
	const count = 1000
	var minutes [60]int
	var hours [24]int
	from := instant(t, "2026-05-01T00:00:00Z")
	for i := range count {
		s := parse(t, "H H * * *", jobs.ScheduleOptions{Job: fmt.Sprintf("job-%d", i)})
		at := s.Next(from.Add(-time.Second))
		minutes[at.Minute()]++
		hours[at.Hour()]++
	}
	within := func(counts []int) {
		share := float64(count) / float64(len(counts))
		sigma := math.Sqrt(share * (1 - 1/float64(len(counts))))
		for value, n := range counts {
			assert.InDelta(t, share, n, 3*sigma, "value %d", value)
		}
	}
	within(minutes[:])
	within(hours[:])
}

// The value depends on the name and the field alone. These are promises: a release that moves them moves every job.
func TestHIsStable(t *testing.T) {
	t.Parallel()
	o := jobs.ScheduleOptions{Job: "backup:db"}
	for text, want := range map[string]string{
		"H * * * *":             "2026-05-01T00:21:00Z",
		"H H * * *":             "2026-05-01T18:21:00Z",
		"H(30-39) H(2-4) * * *": "2026-05-01T02:31:00Z",
	} {
		assert.Equal(t, want, parse(t, text, o).Next(instant(t, "2026-05-01T00:00:00Z")).Format(time.RFC3339), text)
	}
	other := jobs.ScheduleOptions{Job: "backup:files"}
	assert.NotEqual(t, parse(t, "H H * * *", o).Hash(), parse(t, "H H * * *", other).Hash())
	assert.Equal(t, parse(t, "0 2 * * *", o).Hash(), parse(t, "0 2 * * *", other).Hash(), "without H the name does not count")
}

func TestHStaysInItsRange(t *testing.T) {
	t.Parallel()
	from := instant(t, "2026-01-01T00:00:00Z")
	seen := map[int]bool{}
	for i := range 200 {
		o := jobs.ScheduleOptions{Job: fmt.Sprintf("j%d", i)}
		at := parse(t, "H(10-12) H(22-23) * * H(MON-WED)", o).Next(from)
		require.GreaterOrEqual(t, at.Minute(), 10)
		require.LessOrEqual(t, at.Minute(), 12)
		require.GreaterOrEqual(t, at.Hour(), 22)
		seen[at.Minute()] = true

		day := parse(t, "0 0 H * *", o).Next(from.Add(-time.Second))
		require.LessOrEqual(t, day.Day(), 28, "every month has it")
		weekday := parse(t, "0 0 * * H(5-7)", o).Next(from).Weekday()
		require.Contains(t, []time.Weekday{time.Friday, time.Saturday, time.Sunday}, weekday)

		quarters, _ := parse(t, "H/15 * * * *", o).Between(from.Add(-time.Second), from.Add(time.Hour-time.Second), 10)
		require.Len(t, quarters, 4)
		require.Less(t, quarters[0].Minute(), 15)
		require.Equal(t, 15*time.Minute, quarters[1].Sub(quarters[0]))
		tens, _ := parse(t, "H(0-29)/10 * * * *", o).Between(from.Add(-time.Second), from.Add(time.Hour-time.Second), 10)
		require.Len(t, tens, 3)
	}
	assert.Len(t, seen, 3)
}

// H is a value: the schedule is fixed, and a missing time is made up for. H/15 is a step.
func TestHIsFixed(t *testing.T) {
	t.Parallel()
	gap := instant(t, "2026-03-08T03:00:00-04:00")
	for text, madeUp := range map[string]bool{"H 2 * * *": true, "H(10-50) H(2-2) * * *": true, "H/30 2 * * *": false} {
		s := parse(t, text, jobs.ScheduleOptions{Timezone: "America/New_York", Job: "nightly"})
		assert.Equal(t, madeUp, s.Next(gap.Add(-time.Second)).Equal(gap), text)
	}
}
