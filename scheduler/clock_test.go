package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// bootClock is a boot clock that a test moves.
type bootClock struct{ now time.Duration }

func (b *bootClock) read() time.Duration { return b.now }

func TestTheClockSeesStepsAndNotSlowAnswers(t *testing.T) {
	t.Parallel()
	start := at("2026-05-01T00:00:00Z")
	tests := map[string]struct {
		passed time.Duration // on the boot clock between the two answers
		took   time.Duration // of it, the second question
		answer time.Duration // the second answer, after the first
		step   time.Duration
	}{
		"steady":                  {passed: 10 * time.Second, took: time.Millisecond, answer: 10 * time.Second},
		"a slow answer, early":    {passed: 10 * time.Second, took: 5 * time.Second, answer: 5 * time.Second},
		"a slow answer, late":     {passed: 10 * time.Second, took: 5 * time.Second, answer: 10 * time.Second},
		"within the margin":       {passed: 10 * time.Second, took: 0, answer: 12*time.Second + 900*time.Millisecond},
		"a minute forward":        {passed: 10 * time.Second, took: 0, answer: 70 * time.Second, step: time.Minute},
		"an hour back":            {passed: 10 * time.Second, took: 0, answer: 10*time.Second - time.Hour, step: -time.Hour},
		"back, with a slow query": {passed: 10 * time.Second, took: 4 * time.Second, answer: 6*time.Second - time.Hour, step: -time.Hour},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			boot := &bootClock{now: time.Hour}
			c := newClock(boot.read, 30*time.Second)
			assert.Zero(t, c.observe(start, boot.now))
			boot.now += tt.passed
			step := c.observe(start.Add(tt.answer), boot.now-tt.took)
			assert.InDelta(t, tt.step.Seconds(), step.Seconds(), 0.05, "less what two sound clocks may drift")
		})
	}
}

func TestAStepHoldsClaimsForOneTTL(t *testing.T) {
	t.Parallel()
	boot := &bootClock{now: time.Hour}
	c := newClock(boot.read, 30*time.Second)
	assert.False(t, c.held())
	c.stepped(time.Minute)
	boot.now += 30*time.Second - 1
	assert.True(t, c.held())
	boot.now++
	assert.False(t, c.held())
}
