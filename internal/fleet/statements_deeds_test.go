package fleet

import (
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/fleet/check"
)

// notInDeeds are the statements of the tables beside the scheduler's own that nothing in the deeds gives a reason for.
func notInDeeds() []string {
	return []string{
		"audit_now", "audit_list", "audit_texts", "audit_place", "wait_read", // they only read
		"notify_late",      // it only reads; what it finds is written with addMessages, as a failure is
		"outbox_renew",     // for a try that is slow; it moves the end of the sender's claim, and nothing else
		"outbox_overtaken", // for jobs with a ping; it is in the transactions of outbox_sent and outbox_failed
	}
}

// pausing are statements of the scheduler's own table that only deeds execute.
func pausing() []string {
	return []string{"lockPauses", "openPauses", "addPause", "changePause", "closePause", "auditPause", "askDrain", "drainOf", "replicas"}
}

// beside reports whether a statement is of a table beside those of the scheduler's loop, or only of deeds.
func beside(name string) bool {
	return strings.Contains(name, "_") && !ofAccess(name) && !slices.Contains(waiting(), name) || slices.Contains(pausing(), name)
}

// waiting are the statements that take down what due runs wait for: the loop executes them.
func waiting() []string { return []string{"wait_waiting", "wait_add"} }

// ofAccess: the tokens of the API have nothing to do with runs.
func ofAccess(name string) bool { return strings.HasPrefix(name, "auth_") }

func statementOf(point string) (step, name, when string) {
	step, rest, _ := strings.Cut(point, ".")
	name, when, _ = strings.Cut(rest, ":")
	return step, name, when
}

func besidePoint(point string) bool {
	_, name, _ := statementOf(point)
	return !slices.ContainsFunc(strings.Split(name, "+"), func(name string) bool { return !beside(name) })
}

// ofDeeds are the points of steps, and of statements alone, that are not the scheduler's loop: what people ask for, messages,
// retention.
func ofDeeds(points []string) (list []string) {
	steps := map[string]bool{}
	for _, p := range points {
		if step, _, _ := statementOf(p); step != "alone" && besidePoint(p) {
			steps[step] = true
		}
	}
	for _, p := range points {
		if step, _, _ := statementOf(p); steps[step] || step == "alone" && besidePoint(p) {
			list = append(list, p)
		}
	}
	return list
}

// enough leaves out the points that show the same state as another one: in a transaction only its COMMIT counts, and before a
// statement alone is after the one before it.
func enough(points []string) (list []string) {
	for _, p := range points {
		step, name, when := statementOf(p)
		if name == "COMMIT" || step == "alone" && when == "after" {
			list = append(list, p)
		}
	}
	return list
}

// P5, P6: a daemon is killed before and after the statements of what people ask for (start, retry, release, cancel, backfill,
// pause, resume, drain), of messages and of retention. At once the database shows whole steps; then the same is asked of
// another daemon, which does it if it was not done, and only then. Every message comes, and what must not be deleted is there.
//
//nolint:paralleltest // as TestKilledAtEveryStatement
func TestKilledAtEveryDeed(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		w := newDeeds(t, url)
		points := recordDeeds(t, w)
		next := make(chan string)
		var wg sync.WaitGroup
		for range killsAtOnce {
			wg.Go(func() {
				for point := range next {
					t.Run(point, func(t *testing.T) { killDeedAt(t, w, point) })
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

func recordDeeds(t *testing.T, w *wreck) (points []string) {
	t.Helper()
	t.Run("recording", func(t *testing.T) {
		d := w.deeds(t)
		path := filepath.Join(d.f.dir, "record")
		d.a = d.f.StartReady("a", "CRONLATCH_FAILPOINT_RECORD="+path, unwatched, hasty)
		d.all()
		r := readRecord(t, path)
		d.end()
		points = ofDeeds(r.executed(1))
		t.Logf("%d points: %s", len(points), strings.Join(points, " "))
		assert.Empty(t, r.notExecuted(func(name string) bool { return beside(name) && !slices.Contains(notInDeeds(), name) }),
			"statements that no deed gives a reason for")
		assert.NotContains(t, strings.Join(r.points, " "), "unnamed", "each statement is in a table of statements")
		if executions(t) == 0 {
			points = enough(points)
		}
	})
	require.NotEmpty(t, points)
	return points
}

func killDeedAt(t *testing.T, w *wreck, point string) {
	t.Helper()
	d := w.deeds(t)
	env, hit := d.f.failAt(point, "kill")
	d.a = d.f.Start("a", append(env, unwatched, hasty)...)
	until(t, "it is ready or dead", patience, func() bool { return d.a.Ended() || d.a.readyz() == http.StatusOK })
	d.all()
	d.until("the daemon is killed at "+point, d.a.Ended)
	require.True(t, hit(), "the daemon came to %s", point)
	d.end()
}

// end judges what is there when all is done.
func (d *deeds) end() {
	t := d.f.tb
	t.Helper()
	require.NoError(t, d.whole())
	assert.Equal(t, []string{"failure sick", "recovery sick"}, d.mail.got(), "however often it comes, a message has one id")
	for what, n := range map[string]int{
		`job = 'old'`: 4, `job = 'old' AND outcome IN ('succeeded', 'failed')`: 2, // the newest two, the last success, the last failure
		`job = 'sick' AND attempt = 1`: 1, `job = 'sick' AND attempt = 2`: 1, `job = 'long'`: 1,
		`job = 'holds'`: 1, `job = 'holds' AND outcome = 'succeeded'`: 1,
		`job = 'daily'`: instants, `job = 'daily' AND outcome = 'succeeded'`: instants,
		`job = 'nowhere'`: 1, `job = 'nowhere' AND outcome = 'cancelled'`: 1,
	} {
		assert.Equal(t, n, d.f.count(what), what)
	}
	d.f.exec(`DELETE FROM job_runs WHERE job = 'old'`) // nothing has ever run them
	d.f.waitForRest()
	d.f.locksAreFree()
	d.f.LeaveAll()
	runs, events := d.f.Runs(), d.f.Events()
	require.NoError(t, errors.Join(check.Exclusive(events), check.Starts(runs, events), check.Tokens(runs), check.Finished(runs)))
}
