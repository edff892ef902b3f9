package fleet

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/internal/fleet/record"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// reloadsEnv is how long the daemons are reloaded every half a second.
const reloadsEnv = "CRONLATCH_FLEET_RELOADS"

func reloadsFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(reloadsEnv)
	if text == "" {
		return 10 * time.Second
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err, reloadsEnv)
	return d
}

// What a daemon says about a configuration.
const (
	reloaded = "the configuration was reloaded"
	rejected = "the configuration was rejected"
)

// said is how often the daemon has printed a text.
func (r *Replica) said(text string) int { return strings.Count(r.Log(), text) }

const unwatched = "CRONLATCH_WATCH=false"

// reloadedJobs are the jobs of one round. steady is the same schedule in another definition each time; turning is another
// schedule each time that means the same instants; guest comes and goes.
func reloadedJobs(round int) []Job {
	steady := Job{Name: "steady", Schedule: everySecond, KillAfter: time.Duration(1+round%2) * time.Second}
	turning := Job{Name: "turning", Schedule: []string{everySecond, "@every 1s"}[round%2]}
	list := []Job{steady, turning}
	if round%2 == 1 {
		list = append(list, Job{Name: "guest", Schedule: everySecond})
	}
	return list
}

// P5, P6, P10: two daemons under jobs of every second get another configuration every half a second, and each third time a
// broken one. No occurrence is lost or doubled.
func TestReloadsLoseNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		f := New(t, url, Settings{Jobs: reloadedJobs(1)}) // all names, for the rest
		all := []*Replica{f.StartReady("a", unwatched), f.StartReady("b", unwatched)}
		from := f.planning("steady", "turning")
		rounds, broken := 0, 0
		for end := boottime.Now() + reloadsFor(t); boottime.Now() < end; rounds++ {
			if rounds%3 == 2 {
				f.must(os.WriteFile(f.config(), []byte("jobs: {steady: [}\n"), 0o600))
				broken++
			} else {
				f.Configure(Settings{Jobs: reloadedJobs(rounds)})
			}
			for _, r := range all {
				r.Signal(syscall.SIGHUP)
			}
			pass(t, boottime.Now()+500*time.Millisecond)
			for _, r := range all { // it is not late for this one and gets the next one in its place
				until(t, "replica "+r.Name+" has read it", patience, func() bool { return r.said(reloaded)+r.said(rejected) == rounds+1 })
			}
		}
		w := f.window(from, "steady", "turning")
		f.Configure(f.settings)
		for _, r := range all {
			t.Logf("replica %s: %d rounds, %d reloads, %d refused", r.Name, rounds, r.said(reloaded), r.said(rejected))
			assert.Equal(t, rounds-broken, r.said(reloaded))
			assert.Equal(t, broken, r.said(rejected))
		}
		h := f.Rest()
		require.NoError(t, check.Calendar(of(h.Runs, "steady", "turning"), map[string]string{"steady": everySecond, "turning": everySecond}, w))
		require.NoError(t, check.NotRun(h.Runs, locking.DefaultTTL))
		mostly(t, h.Runs)
	})
}

func of(runs []jobs.Run, names ...string) (some []jobs.Run) {
	for _, r := range runs {
		for _, name := range names {
			if r.Job == name {
				some = append(some, r)
			}
		}
	}
	return some
}

// A job that only some replicas know runs on those, and `replicas list` shows that they do not agree; a reload brings the
// others along. What runs while its job is removed ends as it would have.
func TestReplicasThatDoNotAgree(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		old, young := Job{Name: "old", Args: []string{"-for", "2s"}}, Job{Name: "young"}
		f := New(t, url, Settings{Jobs: []Job{old}})
		a := f.StartReady("a", unwatched)
		f.Configure(Settings{Jobs: []Job{old, young}})
		f.StartReady("b", unwatched)
		for range 4 {
			assert.Equal(t, "b", f.WaitFinished(f.Trigger("young").ID).Replica)
		}
		_, list := f.Cronlatch("replicas", "list")
		assert.Equal(t, 2, strings.Count(list, " * "), list)

		running := f.Trigger("old")
		f.WaitAlive(running.ID, record.Main)
		f.Configure(Settings{Jobs: []Job{young}})
		for _, r := range f.Replicas() {
			r.Signal(syscall.SIGHUP)
			r.Says(reloaded)
		}
		until(t, "both have the same definitions", patience, func() bool {
			code, list := f.Cronlatch("replicas", "list")
			return code == 0 && strings.Count(list, " up ") == 2 && !strings.Contains(list, " * ")
		})
		assert.Equal(t, jobs.OutcomeSucceeded, f.WaitFinished(running.ID).Outcome, "its job was removed while it ran")
		others := f.Others(a)
		require.Len(t, others, 1)
		others[0].Leave(bound(drain))
		assert.Equal(t, "a", f.WaitFinished(f.Trigger("young").ID).Replica, "it knows the job now")
		assert.Len(t, f.Rest().Runs, 6)
	})
}
