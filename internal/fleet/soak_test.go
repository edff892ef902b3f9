package fleet

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/jobs"
)

// soakEnv is how long the replicas are killed in rotation.
const soakEnv = "CRONLATCH_FLEET_SOAK"

func soakFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(soakEnv)
	if text == "" {
		return 20 * time.Second
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err, soakEnv)
	return d
}

// leastSeen is how often each thing that the soak is about must have happened, or it has shown nothing.
const leastSeen = 5

// P1 to P6: five runs a second, and one replica after the other is killed while it runs some of them, and started again.
// No occurrence is missing and none is there twice, each attempt is started at most once, and every occurrence succeeds in
// the end: those that were lost, at a later attempt.
func TestSoak(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		list := soakedJobs()
		f := New(t, url, Settings{TTL: roomyTTL, Jobs: list})
		f.configureWith("", "retry: {attempts: 10}") // an occurrence may be lost again and again; none fails
		names := []string{"a", "b", "c"}
		living := map[string]*Replica{}
		for _, name := range names {
			living[name] = f.StartReady(name)
		}
		from := f.planning()
		kills := 0
		for end := boottime.Now() + soakFor(t); boottime.Now() < end || kills <= leastSeen || !f.soakedEnough(); kills++ {
			name := names[kills%len(names)]
			f.killAtWork(living[name])
			living[name] = f.StartReady(name)
		}
		w := f.window(from)
		h := f.Rest()
		require.NoError(t, check.Calendar(h.Runs, schedules(list), w))
		for _, r := range ends(h.Runs) {
			assert.Equal(t, jobs.OutcomeSucceeded, r.Outcome, describe(r))
		}
		seen := soaked(h.Runs)
		seen["takeovers"] = f.audited("lock.takeover")
		seen["kills"] = kills
		t.Logf("%d occurrences, %d attempts, by replica %v: %v", len(ends(h.Runs)), len(h.Runs), check.PerReplica(h.Runs), seen)
		for what, n := range seen {
			assert.GreaterOrEqual(t, n, leastSeen, what)
		}
	})
}

// soakedJobs take a good part of their second, so that there is always something to be killed.
func soakedJobs() []Job {
	list := make([]Job, 5)
	for i := range list {
		list[i] = Job{
			Name: fmt.Sprintf("soaked-%d", i), Schedule: everySecond, Args: []string{"-for", "400ms"}, Overlap: "allow", OnLost: "retry",
		}
	}
	return list
}

// soakedEnough: what the soak is about has happened as often as it must. A run can still come to its end between the look and
// the kill.
func (f *Fleet) soakedEnough() bool {
	f.tb.Helper()
	seen := soaked(f.Runs())
	return seen["lost"] >= leastSeen && seen["recovered"] >= leastSeen && f.audited("lock.takeover") >= leastSeen
}

// killAtWork kills a replica while it has a run to lose, one of its own and not of the one that had its name before: it is
// stopped first, so that a slow look does not come too late.
func (f *Fleet) killAtWork(victim *Replica) {
	f.tb.Helper()
	since := dbtime.Arg(f.DB.Main.Dialect().Name(), f.now())
	mine := func() bool {
		return f.count(`state = 'running' AND replica = ? AND started_at > ?`, victim.Name, since) > 0
	}
	until(f.tb, "replica "+victim.Name+" runs something", patience, func() bool {
		if !mine() {
			return false
		}
		victim.Freeze()
		if mine() {
			return true
		}
		victim.Thaw()
		return false
	})
	victim.Kill()
}

// ends are the last attempts of all occurrences.
func ends(runs []jobs.Run) map[string]*jobs.Run {
	last := map[string]*jobs.Run{}
	for i := range runs {
		r := &runs[i]
		key := r.Job + " " + r.Occurrence
		if e := last[key]; e == nil || r.Attempt > e.Attempt {
			last[key] = r
		}
	}
	return last
}

// soaked counts how often what should happen has happened.
func soaked(runs []jobs.Run) map[string]int {
	seen := map[string]int{"lost": countLost(runs), "recovered": 0}
	for _, r := range ends(runs) {
		if r.Attempt > 1 {
			seen["recovered"]++
		}
	}
	return seen
}

// audited counts the rows of the audit with an action.
func (f *Fleet) audited(action string) (n int) {
	f.tb.Helper()
	f.must(f.DB.Main.NewRaw(`SELECT count(*) FROM audit_log WHERE action = ?`, action).Scan(f.tb.Context(), &n))
	return n
}
