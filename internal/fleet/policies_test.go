package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/internal/fleet/record"
	"github.com/cronlatch/cronlatch/jobs"
)

// capacity of each replica is less than the tests have to do at a time, so that they share it.
const capacity = 2

// threeWith starts three replicas of a fleet whose jobs have further keys: each is a line of YAML. top is one at the top
// of the file.
func threeWith(t *testing.T, url, top string, list []Job, keys ...string) *Fleet {
	t.Helper()
	f := New(t, url, Settings{Capacity: capacity, Jobs: list})
	f.configureWith(top, keys...)
	for _, name := range []string{"a", "b", "c"} {
		f.StartReady(name)
	}
	return f
}

// configureWith writes the configuration with further keys.
func (f *Fleet) configureWith(top string, keys ...string) {
	f.tb.Helper()
	text := f.settings.yaml(f)
	for _, j := range f.settings.Jobs {
		name := fmt.Sprintf("  %q:\n", j.Name)
		for _, key := range keys {
			text = strings.Replace(text, name, name+"    "+key+"\n", 1)
		}
	}
	f.must(os.WriteFile(f.config(), []byte(top+"\n"+text), 0o600))
}

// settled waits until nothing is left to do, and checks what holds whatever the policies say.
func (f *Fleet) settled() History {
	f.tb.Helper()
	f.waitForRest()
	f.locksAreFree()
	f.LeaveAll()
	h := History{f.Runs(), f.Events()}
	if err := errors.Join(check.Exclusive(h.Events), check.Starts(h.Runs, h.Events), check.Tokens(h.Runs), check.Finished(h.Runs)); err != nil {
		f.tb.Errorf("the history is wrong:\n%v", err)
	}
	return h
}

func (h History) of(job string) []jobs.Run {
	var runs []jobs.Run
	for _, r := range h.Runs {
		if r.Job == job {
			runs = append(runs, r)
		}
	}
	slices.SortFunc(runs, func(a, b jobs.Run) int { return cmp.Compare(a.ID, b.ID) })
	return runs
}

// script records itself, and then does what the shell says.
func script(then string) []string {
	return []string{"/bin/sh", "-c", `"$FLEET_DIR/recorder" && ` + then}
}

func TestRetryOnAnyReplica(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		const delay = 500 * time.Millisecond
		var list []Job
		for i := range 6 {
			list = append(list, Job{Name: fmt.Sprintf("third-time-%d", i), Command: script(`test "$CRONLATCH_ATTEMPT" -ge 3`)})
		}
		list = append(list, Job{Name: "never", Command: script("exit 9")}, Job{Name: "nothing", Command: script("exit 75")})
		f := threeWith(t, url, "", list, "retry: {attempts: 3, delay: 500ms, backoff: linear}", "exit_codes: {skip: [75]}")
		for _, j := range list {
			f.Trigger(j.Name)
		}
		until(t, "all are tried", patience, func() bool { return len(f.Runs()) == 7*3+1 })
		h := f.settled()
		for _, j := range list[:7] {
			runs := h.of(j.Name)
			require.Len(t, runs, 3, j.Name)
			for i, r := range runs {
				assert.Equal(t, i+1, r.Attempt)
				assert.Equal(t, runs[0].Occurrence, r.Occurrence)
				if i > 0 {
					assert.Equal(t, jobs.TriggerRetry, r.Trigger)
					assert.GreaterOrEqual(t, r.StartedAt.Sub(*runs[i-1].FinishedAt), time.Duration(i)*delay*9/10, "the delay grows")
				}
			}
			want := jobs.OutcomeSucceeded
			if j.Name == "never" {
				want = jobs.OutcomeFailed
			}
			assert.Equal(t, want, runs[2].Outcome, j.Name)
		}
		skipped := h.of("nothing")
		require.Len(t, skipped, 1)
		assert.Equal(t, jobs.OutcomeSkipped, skipped[0].Outcome)
		assert.Equal(t, 75, *skipped[0].ExitCode)
	})
}

// The new run starts when the whole tree of the old one is dead, wherever that ran: check.Exclusive looks at every
// sign of life, and the grandchild ignores SIGTERM.
func TestReplaceOnAnyReplica(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		f := threeWith(t, url, "", []Job{{Name: "job", Args: []string{"-for", "3m", "-grandchild"}, Overlap: "replace"}},
			"retry: {attempts: 5, delay: 0s}")
		var last jobs.Run
		for range 4 {
			last = f.WaitAlive(f.Trigger("job").ID, record.Grandchild)
			require.Equal(t, jobs.StateRunning, last.State)
		}
		f.LeaveAll()
		h := History{f.Runs(), f.Events()}
		require.NoError(t, errors.Join(check.Exclusive(h.Events), check.Starts(h.Runs, h.Events), check.Tokens(h.Runs)))
		runs := h.of("job")
		require.Len(t, runs, 4, "what was replaced is not tried again")
		for i, r := range runs[:3] {
			assert.Equal(t, jobs.OutcomeCancelled, r.Outcome)
			assert.Equal(t, jobs.ReasonReplaced, r.Reason)
			assert.JSONEq(t, fmt.Sprintf(`{"replaced_by": %d}`, runs[i+1].ID), string(r.Detail))
		}
	})
}

func TestAllowOnAnyReplica(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		f := threeWith(t, url, "", []Job{{Name: "job", Args: []string{"-for", "3m"}, Overlap: "allow"}})
		var all []jobs.Run
		for range 5 {
			all = append(all, f.Trigger("job"))
		}
		for _, r := range all {
			f.WaitAlive(r.ID, record.Main)
		}
		for _, r := range all {
			assert.Equal(t, jobs.StateRunning, f.WaitAlive(r.ID, record.Main).State, "they run side by side")
		}
		f.LeaveAll()
	})
}

func TestOncePerResourceOnAnyReplica(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		list := []Job{{Name: "job", Schedule: everySecond, Command: script(`test "$CRONLATCH_RUN_ID" -ge 3`), Resource: "report"}}
		f := threeWith(t, url, "", list, "once_per: resource")
		until(t, "it has succeeded, and was skipped after that", patience, func() bool { return f.count(`reason = 'once_per'`) >= 3 })
		f.LeaveAll()
		h := History{Runs: f.Runs()}
		done := false
		for _, r := range h.of("job") {
			switch {
			case r.State != jobs.StateFinished: // it fell due at the end
			case r.Reason == jobs.ReasonOverlap: // the one before took longer than a second
			case !done:
				done = r.Outcome == jobs.OutcomeSucceeded
				assert.Equal(t, r.ID < 3, r.Outcome == jobs.OutcomeFailed)
			default:
				assert.Equal(t, jobs.OutcomeSkipped, r.Outcome)
				assert.Equal(t, jobs.ReasonOncePer, r.Reason)
			}
		}
		assert.True(t, done)
	})
}

// What the jobs themselves have recorded counts, not what the ledger says.
func TestLimitOverTheFleet(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		var list []Job
		for i := range 24 {
			list = append(list, Job{Name: fmt.Sprintf("job-%02d", i), Args: []string{"-for", "300ms", "-until", "end"}})
		}
		f := threeWith(t, url, "limits: {db: 3}", list, "tags: [db]")
		for _, j := range list {
			f.Trigger(j.Name)
		}
		until(t, "as many run as may", patience, func() bool { return mostAtOnce(f.Events()) == 3 })
		f.allow("end") // the others begin now, one after the other
		h := f.settled()
		require.Len(t, h.Runs, len(list))
		replicas := map[string]bool{}
		for _, r := range h.Runs {
			assert.Equal(t, jobs.OutcomeSucceeded, r.Outcome, "it waited")
			replicas[r.Replica] = true
		}
		assert.Greater(t, len(replicas), 1)
		assert.Equal(t, 3, mostAtOnce(h.Events))
	})
}

// mostAtOnce is how many runs showed life at the same instant of the boot clock.
func mostAtOnce(events []record.Event) (most int) {
	type end struct {
		at    time.Duration
		delta int
	}
	first, last := map[int64]time.Duration{}, map[int64]time.Duration{}
	for _, e := range events {
		if at, ok := first[e.Run]; !ok || e.Boot < at {
			first[e.Run] = e.Boot
		}
		last[e.Run] = max(last[e.Run], e.Boot)
	}
	var ends []end
	for run, at := range first {
		ends = append(ends, end{at, 1}, end{last[run], -1})
	}
	slices.SortFunc(ends, func(a, b end) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.delta, a.delta)) })
	n := 0
	for _, e := range ends {
		n += e.delta
		most = max(most, n)
	}
	return most
}
