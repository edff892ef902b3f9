package jobs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestWhatFollowsALostAttempt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	due := now.Add(-time.Hour)
	startBy := due.Add(30 * time.Minute)
	base := Run{Job: "j", Occurrence: "s:x", Attempt: 1, Resource: "r", DueAt: due, StartBy: &startBy, MaxAttempts: LostAttempts}

	r := base
	r.OnLost = OnLostFail
	_, ok := r.NextAttempt(now)
	assert.False(t, ok)

	r = base
	r.OnLost = OnLostRetry
	next, ok := r.NextAttempt(now)
	assert.True(t, ok)
	assert.Equal(t, 2, next.Attempt)
	assert.Equal(t, StatePending, next.State)
	assert.Equal(t, now, next.DueAt)
	assert.Equal(t, now.Add(30*time.Minute), next.StartBy, "start_deadline counts anew")
	assert.Equal(t, "r", next.Resource, "the same resource, although it is another day by now")

	r.Attempt = LostAttempts
	_, ok = r.NextAttempt(now)
	assert.False(t, ok, "attempts are bounded")

	r = base
	r.OnLost = OnLostHold
	next, ok = r.NextAttempt(now)
	assert.True(t, ok)
	assert.Equal(t, StateHeld, next.State)
	assert.True(t, next.StartBy.IsZero(), "a person may take longer than start_deadline")
}
