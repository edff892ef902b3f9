package fleet

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cronlatch/cronlatch/internal/boottime"
)

// poll is how often a condition is looked at.
const poll = 20 * time.Millisecond

// patience is how long a test waits for what has no deadline of its own on a busy machine.
const patience = 45 * time.Second

// until waits for a condition, and fails the test when it has not become true within limit.
func until(tb testing.TB, what string, limit time.Duration, condition func() bool) {
	tb.Helper()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for deadline := boottime.Now() + limit; !condition(); <-tick.C {
		if boottime.Now() > deadline {
			tb.Fatalf("waited %s in vain: %s", limit, what)
		}
	}
}

// keptPromise compares how long something took several times with what is promised. A machine that stands still for a moment
// keeps no promise, so one of them may be later than that, but not by much.
func keptPromise(t *testing.T, took []time.Duration, promise time.Duration) {
	t.Helper()
	slices.Sort(took)
	assert.Less(t, took[len(took)/2], promise)
	assert.Less(t, took[len(took)-1], promise+onTime)
}

// allow makes the file that jobs with -until wait for.
func (f *Fleet) allow(file string) {
	f.tb.Helper()
	f.must(os.WriteFile(filepath.Join(f.dir, file), nil, 0o600))
}

// pass lets the boot clock come to an instant: the only way to arrange that something is away for longer than a TTL.
func pass(tb testing.TB, instant time.Duration) {
	tb.Helper()
	until(tb, "the clock goes on", patience, func() bool { return boottime.Now() >= instant })
}
