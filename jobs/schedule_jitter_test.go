package jobs_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// Jitter moves when a run is due, and nothing else; every replica computes the same.
func TestJitter(t *testing.T) {
	t.Parallel()
	resource, err := jobs.ParseTemplate("report:YYYY-MM-DD", jobs.TemplateOptions{})
	require.NoError(t, err)
	job := &jobs.Job{Name: "report", Resource: resource, Jitter: 2 * time.Minute, StartDeadline: time.Hour}
	at := instant(t, "2026-05-01T23:59:00Z")
	plain := *job
	plain.Jitter = 0

	got, want := job.ScheduledRun(at), plain.ScheduledRun(at)
	assert.True(t, want.DueAt.Equal(at), "no jitter, no delay")
	assert.Equal(t, "2026-05-01T23:59:32.319Z", got.DueAt.Format(time.RFC3339Nano), "a promise: replicas of two releases agree")
	assert.Equal(t, got.DueAt.Add(time.Hour), got.StartBy, "the start deadline counts from when it is due")
	assert.Equal(t, want.Occurrence, got.Occurrence)
	assert.Equal(t, want.ScheduledAt, got.ScheduledAt)
	assert.Equal(t, "report:2026-05-01", got.Resource)

	late := at.Add(time.Hour)
	assert.Equal(t, late, job.CatchUpRun(at, late).DueAt, "what is late has waited")
	assert.Equal(t, got.DueAt, job.CatchUpRun(at, at).DueAt, "but not earlier than it would have been")
	assert.Equal(t, at, job.EndedRun(at, jobs.OutcomeMissed, "", nil).DueAt)
}

func TestJitterIsEvenlySpread(t *testing.T) {
	t.Parallel()
	const count, parts = 6000, 12
	job := jobs.Job{Name: "backup", Jitter: time.Minute}
	start := instant(t, "2026-05-01T00:00:00Z")
	var counts [parts]int
	for i := range count {
		at := start.Add(time.Duration(i) * time.Minute)
		late := job.DueAt(at).Sub(at)
		require.GreaterOrEqual(t, late, time.Duration(0))
		require.Less(t, late, job.Jitter)
		counts[late*parts/job.Jitter]++
	}
	share := float64(count) / parts
	for part, n := range counts {
		assert.InDelta(t, share, n, 3*math.Sqrt(share), "part %d", part)
	}
	other := jobs.Job{Name: "report", Jitter: time.Minute}
	assert.NotEqual(t, job.DueAt(start), other.DueAt(start))
}
