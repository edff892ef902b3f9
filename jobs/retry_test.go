package jobs

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDelaysGrowAsTheBackoffSays(t *testing.T) {
	t.Parallel()
	for backoff, want := range map[Backoff][]time.Duration{
		BackoffConstant:    {10, 10, 10, 10},
		BackoffLinear:      {10, 20, 30, 40},
		BackoffExponential: {10, 20, 40, 80},
	} {
		p := Retry{Delay: 10 * time.Second, Backoff: backoff, MaxDelay: time.Hour}
		for i, seconds := range want {
			assert.Equal(t, seconds*time.Second, p.grown(i+1), "%s, after attempt %d", backoff, i+1)
		}
	}
}

func TestDelaysAreBounded(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]Retry{
		"by max_delay": {Delay: time.Hour, Backoff: BackoffExponential, MaxDelay: 2 * time.Hour},
		"by a second":  {Delay: 30 * 24 * time.Hour, Backoff: BackoffLinear, MaxDelay: time.Second},
		"by nothing":   {Delay: 30 * 24 * time.Hour, Backoff: BackoffExponential},
	} {
		bound := p.MaxDelay
		if bound == 0 {
			bound = math.MaxInt64
		}
		for attempt := 1; attempt < 1200; attempt++ {
			after := p.after("job", "s:2026-05-01T00:00:00Z", attempt)
			require.Positive(t, after, "%s, attempt %d", name, attempt)
			require.LessOrEqual(t, after, bound, "%s, attempt %d", name, attempt)
		}
	}
}

func TestJitterIsTheSameEverywhereAndSpreads(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]Retry{
		"between": {Delay: 100 * time.Second, Backoff: BackoffConstant, MaxDelay: time.Hour},
		"bounded": {Delay: 200 * time.Second, Backoff: BackoffConstant, MaxDelay: 100 * time.Second},
	} {
		const n = 1000
		different := map[time.Duration]bool{}
		var least, most time.Duration = math.MaxInt64, 0
		for i := range n {
			job := fmt.Sprintf("job-%d", i)
			after := p.after(job, "s:2026-05-01T00:00:00Z", 1)
			require.Equal(t, after, p.after(job, "s:2026-05-01T00:00:00Z", 1))
			different[after], least, most = true, min(least, after), max(most, after)
		}
		assert.Len(t, different, n, name)
		assert.Less(t, least, 91*time.Second, name)
		assert.GreaterOrEqual(t, least, 90*time.Second, name)
		assert.LessOrEqual(t, most, 110*time.Second, name)
	}
	p := Retry{Delay: time.Minute}
	assert.NotEqual(t, p.after("a", "s:1", 1), p.after("a", "s:1", 2), "each attempt has its own")
	assert.NotEqual(t, p.after("a", "s:1", 1), p.after("a", "s:2", 1), "each occurrence has its own")
}

func TestNoDelayIsNoDelay(t *testing.T) {
	t.Parallel()
	for _, b := range []Backoff{BackoffConstant, BackoffLinear, BackoffExponential} {
		assert.Zero(t, Retry{Backoff: b, MaxDelay: time.Hour}.after("j", "s:x", 2000))
	}
}

func TestRetryInItsColumn(t *testing.T) {
	t.Parallel()
	p := Retry{Attempts: 3, Delay: time.Minute, Backoff: BackoffExponential, MaxDelay: time.Hour}
	doc, err := json.Marshal(p)
	require.NoError(t, err)
	assert.JSONEq(t, `{"attempts": 3, "delay": "1m0s", "backoff": "exponential", "max_delay": "1h0m0s"}`, string(doc))
	var back Retry
	require.NoError(t, json.Unmarshal(doc, &back))
	assert.Equal(t, p, back)

	doc, err = json.Marshal(Retry{Attempts: 1, Delay: time.Minute})
	require.NoError(t, err)
	assert.Equal(t, "{}", string(doc), "nothing is what rows of the version before say")
	require.NoError(t, json.Unmarshal([]byte("{}"), &back))
	assert.Equal(t, Retry{}, back)
	require.Error(t, json.Unmarshal([]byte(`{"delay": "soon"}`), &back))
	require.Error(t, json.Unmarshal([]byte(`[]`), &back))
}

func TestWhatFollowsAFailure(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	due := now.Add(-time.Hour)
	startBy := due.Add(30 * time.Minute)
	base := Run{
		Job: "j", Occurrence: "s:x", Attempt: 1, Resource: "r", DueAt: due, StartBy: &startBy, MaxAttempts: 3, Overlap: RuleSkip,
		Retry:  Retry{Attempts: 2, Delay: time.Minute, Backoff: BackoffConstant, MaxDelay: time.Hour},
		Limits: map[string]int{"db": 1}, OncePer: OncePerResource, OnLost: OnLostRetry,
	}

	r := base
	next, ok := r.RetryAttempt(now)
	require.True(t, ok)
	assert.Equal(t, 2, next.Attempt)
	assert.Equal(t, TriggerRetry, next.Trigger)
	assert.WithinRange(t, next.DueAt, now.Add(54*time.Second), now.Add(66*time.Second))
	assert.Equal(t, 30*time.Minute, next.StartBy.Sub(next.DueAt), "start_deadline counts from the new instant")
	assert.Equal(t, RuleWait, next.Overlap, "what has begun is not skipped")
	assert.Equal(t, base.Retry, next.Retry)
	assert.Equal(t, base.Limits, next.Limits)
	assert.Equal(t, base.OncePer, next.OncePer)

	r.Attempt = 2
	_, ok = r.RetryAttempt(now)
	assert.False(t, ok, "attempts is the total")
	_, ok = r.NextAttempt(now)
	assert.True(t, ok, "a lost one may be tried a third time")

	r = base
	r.Overlap = RuleAllow
	next, ok = r.RetryAttempt(now)
	require.True(t, ok)
	assert.Equal(t, RuleAllow, next.Overlap)

	r = base
	r.CancelReason = ReasonReplaced
	_, ok = r.RetryAttempt(now)
	assert.False(t, ok, "somebody asked for its end")
	_, ok = r.NextAttempt(now)
	assert.False(t, ok, "and if it is lost meanwhile, nobody wants it back")

	r = base
	r.Retry = Retry{}
	_, ok = r.RetryAttempt(now)
	assert.False(t, ok)
}

func TestAttemptsInTotal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		onLost   OnLost
		attempts int
		want     int
	}{
		{OnLostFail, 0, 1}, {OnLostFail, 5, 5}, {OnLostRetry, 1, 3}, {OnLostRetry, 2, 3}, {OnLostRetry, 5, 5}, {OnLostHold, 1, 1},
	} {
		j := Job{OnLost: tt.onLost, Retry: Retry{Attempts: tt.attempts}}
		assert.Equal(t, tt.want, j.MaxAttempts(), "%s, %d", tt.onLost, tt.attempts)
	}
}
