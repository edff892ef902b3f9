package linear_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cronlatch/cronlatch/internal/linear"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// decided is how long one search may take; they take milliseconds.
const decided = time.Minute

// callsOf is how many calls each client makes.
func callsOf(tb testing.TB) int {
	tb.Helper()
	text := os.Getenv("CRONLATCH_LINEAR_OPS")
	if text == "" {
		return defaultCalls
	}
	n, err := strconv.Atoi(text)
	require.NoError(tb, err)
	return n
}

// verify drives, checks, and sees that enough of everything was met for the check to mean something.
func verify(t *testing.T, c linear.Config, met map[string]int) {
	t.Helper()
	c.Calls = callsOf(t)
	c.Segment = c.Calls / 10
	started := time.Now()
	history, stats, err := linear.Drive(t.Context(), c)
	require.NoError(t, err)
	driven := time.Since(started)
	problems := history.Check(decided)
	t.Logf("driven in %s, checked in %s: %v", driven.Round(time.Millisecond), (time.Since(started) - driven).Round(time.Millisecond), stats)
	for _, problem := range problems {
		t.Error(problem)
	}
	if c.Calls < fullDrive {
		return // what is rare need not come in a short one
	}
	for what, atLeast := range met {
		assert.GreaterOrEqual(t, stats[what], atLeast*c.Calls/fullDrive, what)
	}
}

// fullDrive is how many calls of each client are enough to meet everything.
const fullDrive = 2000

// everything is what each full drive must have met, however slow the machine is.
func everything() map[string]int {
	return map[string]int{
		"acquire done": 100, "acquire refused": 100, "renew done": 50, "renew lost": 50, "release done": 100,
		"release not found": 20, "release not the owner": 20, "release stale token": 1, "get done": 100, "get not found": 5,
		"force done": 5, "force stale token": 10,
	}
}
