package fleet

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/fleet/check"
)

// statementsEnv is at how many executions of each statement a daemon is killed, before it and after it. Not set, it is the
// first one, and after a statement in a transaction is left to the place before the next one: nothing is between them.
const statementsEnv = "CRONLATCH_FLEET_STATEMENTS"

// killsAtOnce is how many fleets of one database are killed at a time. Most of the time they wait for locks to expire. More of
// them are not faster: each starts jobs every second for as long as it lives, and on two cores twice as many live for four
// times as long.
const killsAtOnce = 4

// reached is how long a daemon has for coming to the point where it is killed: longer than the minute between two looks for
// overdue jobs, and everything else is done more often.
const reached = 90 * time.Second

// P1, P2, P5, P6: a daemon is killed before and after every statement of the scheduler, BEGIN and COMMIT included. At once
// the database shows the state before or after a whole step (whole); after another daemon has worked for a moment, the
// ledger is the calendar with one row for each instant, no command was started twice, no attempt and no follower is
// missing, and no lock is left. The points are those that a daemon records which has the same to do and lives: a new
// statement is among them when the wreck gives it a reason to be executed, and when not, this test says so.
//
// Eight fleets at a time are too many neighbours for the package's other tests: it has the package for itself.
//
//nolint:paralleltest // see above
func TestKilledAtEveryStatement(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		w := newWreck(t, url)
		points := w.record(t)
		next := make(chan string)
		var wg sync.WaitGroup
		for range killsAtOnce { // not t.Parallel, which runs as many as there are processors
			wg.Go(func() {
				for point := range next {
					t.Run(point, func(t *testing.T) { w.killAt(t, point) })
				}
			})
		}
		for _, point := range points {
			next <- point
		}
		close(next)
		wg.Wait()
		t.Logf("killed at %d points", len(points))
	})
}

// inside: the point is after a statement in a transaction that goes on.
func inside(point string) bool {
	return strings.HasSuffix(point, ":after") && !strings.HasPrefix(point, "alone.") && !strings.HasSuffix(point, ".COMMIT:after")
}

// executions is what statementsEnv says, 0 when it is not set.
func executions(t *testing.T) int {
	t.Helper()
	text := os.Getenv(statementsEnv)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, statementsEnv)
	return n
}

// killAt kills a daemon at a point, lets another one go on with its work, and judges.
func (w *wreck) killAt(t *testing.T, point string) {
	t.Helper()
	f := w.fleet(t)
	env, hit := f.failAt(point, "kill")
	a := f.Start("a", append(env, unwatched)...)
	until(t, "the daemon is killed at "+point, reached, func() bool { f.giveAway(); return a.Ended() })
	require.True(t, hit(), "the daemon came to %s", point)
	require.Equal(t, -1, a.code)
	f.isWhole()

	b := f.StartReady("b", unwatched)
	killed := f.now()
	until(t, "every schedule goes on", patience, func() bool { return f.allPlannedAfter(killed) })
	calendar := schedules(f.settings.Jobs)
	f.Configure(f.settings.once("0 0 0 1 1 *")) // a job without a schedule could not be waited for by one that comes after it
	b.Signal(syscall.SIGHUP)
	b.Says("the configuration was reloaded")
	until(t, "nothing is left to follow", patience, func() bool { return f.count(`follow OR state <> 'finished'`) == 0 })
	f.settings = f.settings.withoutSchedules() // b has nothing new to do, and needs no other daemon in its place
	h := f.Rest()
	require.NoError(t, check.Calendar(of(h.Runs, names(calendar)...), calendar, check.Window{}))
	require.NoError(t, followersFit(h.Runs))
}

// quiet is how long a daemon that lives goes on after it came by a point for the first time. It is not what brings it to
// every statement: until it was there, it goes on as long as one that is killed there would.
const quiet = 4 * time.Second

// record lets a daemon live that has the same to do as those that are killed, and returns the points that it came by: the
// first execution of each, and then the later ones.
func (w *wreck) record(t *testing.T) (points []string) {
	t.Helper()
	t.Run("recording", func(t *testing.T) {
		f := w.fleet(t)
		path := filepath.Join(f.dir, "record")
		a := f.StartReady("a", "CRONLATCH_FAILPOINT_RECORD="+path, unwatched)
		var r recorded
		var missing []string
		since := boottime.Now()
		limit := since + reached
		until(t, "the daemon comes by no new point", 2*reached, func() bool {
			f.giveAway()
			now := readRecord(t, path)
			if len(now.points) > len(r.points) {
				since = boottime.Now()
			}
			r = now
			missing = r.notExecuted(func(name string) bool { return !beside(name) && !ofAccess(name) })
			return boottime.Now()-since > quiet && (len(missing) == 0 || boottime.Now() > limit)
		})
		a.Kill()
		t.Logf("%d points: %s", len(r.points), strings.Join(r.points, " "))
		assert.Empty(t, missing, "statements that nothing in the wreck gives a reason for")
		assert.NotContains(t, strings.Join(r.points, " "), "unnamed", "each statement is in a table of statements")
		deeds := ofDeeds(r.points)
		r.points = slices.DeleteFunc(r.points, func(p string) bool { return slices.Contains(deeds, p) })
		n := executions(t)
		for i := range max(n, 1) {
			points = append(points, r.executed(i+1)...)
		}
		if n == 0 {
			points = slices.DeleteFunc(points, inside)
		}
	})
	require.NotEmpty(t, points)
	return points
}
