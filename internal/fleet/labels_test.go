package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/jobs"
)

// keyed writes the configuration of a fleet without replicas, with further keys for some jobs.
func keyed(t *testing.T, url string, s Settings, keys map[string]string) *Fleet {
	t.Helper()
	f := New(t, url, s)
	text := s.yaml(f)
	for job, line := range keys {
		name := fmt.Sprintf("  %q:\n", job)
		require.Contains(t, text, name)
		text = strings.Replace(text, name, name+"    "+line+"\n", 1)
	}
	f.must(os.WriteFile(f.config(), []byte(text), 0o600))
	return f
}

// Three replicas, each in a zone of its own; what the jobs themselves recorded and the ledger must agree with the labels.
func TestOnlyMatchingReplicasRun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		allowed := map[string]string{"anywhere": "abc", "in-a": "a", "in-b-or-c": "bc", "fast": "b"}
		list := []Job{{Name: "nowhere", Schedule: everySecond}}
		for name := range allowed {
			list = append(list, Job{Name: name, Schedule: everySecond})
		}
		f := keyed(t, url, Settings{Jobs: list}, map[string]string{
			"in-a": "only_on: {zone: a}", "in-b-or-c": "only_on: {zone: [b, c]}", "fast": "only_on: {disk: fast, zone: [a, b]}",
			"nowhere": "only_on: {zone: moon}\n    start_deadline: 2s",
		})
		f.StartReady("a", "CRONLATCH_LABELS=zone=a")
		f.StartReady("b", "CRONLATCH_LABELS=zone=b,disk=fast")
		f.StartReady("c", "CRONLATCH_LABELS=zone=c,disk=fast")
		w := f.watch(12 * time.Second)
		until(t, "each job has run, and one that nobody may run was missed more than once", patience, func() bool {
			ran := 0
			for name := range allowed {
				ran += min(1, f.count(`job = ? AND outcome = 'succeeded'`, name))
			}
			return ran == len(allowed) && f.count(`reason = ?`, jobs.ReasonNoMatchingReplica) > 2
		})
		f.LeaveAll()
		h := History{f.Runs(), f.Events()}
		require.NoError(t, errors.Join(check.Calendar(h.Runs, schedules(list), w), check.Exclusive(h.Events), check.Starts(h.Runs, h.Events),
			check.Tokens(h.Runs)))
		by := map[int64]jobs.Run{}
		for _, r := range h.Runs {
			by[r.ID] = r
		}
		ran := map[string]map[string]int{}
		for _, e := range h.Events { // what the jobs recorded: its token is the row's, and the row says which replica has it
			r := by[e.Run]
			if ran[r.Job] == nil {
				ran[r.Job] = map[string]int{}
			}
			ran[r.Job][r.Replica]++
			assert.Contains(t, allowed[r.Job], r.Replica, "run %d of %s", r.ID, r.Job)
		}
		for name, replicas := range allowed {
			assert.NotEmpty(t, ran[name], "%s may run on %s", name, replicas)
		}
		for _, r := range h.Runs {
			assert.True(t, r.Replica == "" || strings.Contains(allowed[r.Job], r.Replica), "run %d of %s on %s", r.ID, r.Job, r.Replica)
		}
		mostly(t, withoutJob(h.Runs, "nowhere"))
		assertNowhere(t, h.of("nowhere"))
	})
}

func withoutJob(runs []jobs.Run, job string) (others []jobs.Run) {
	for _, r := range runs {
		if r.Job != job {
			others = append(others, r)
		}
	}
	return others
}

// assertNowhere: what nobody may run is missed when its start_deadline has passed, and says who was there.
func assertNowhere(t *testing.T, runs []jobs.Run) {
	t.Helper()
	unmatched := 0
	for _, r := range runs {
		if r.Reason != jobs.ReasonNoMatchingReplica {
			// It waited for an earlier one that nobody could run, or fell due while the daemons left.
			assert.Contains(t, []jobs.Reason{jobs.ReasonOverlap, jobs.ReasonNoReplica, jobs.ReasonCatchUp, ""}, r.Reason)
			continue
		}
		assert.Equal(t, jobs.OutcomeMissed, r.Outcome)
		var facts struct {
			OnlyOn   jobs.Labels `json:"only_on"`
			Replicas []struct {
				Name   string            `json:"name"`
				Labels map[string]string `json:"labels"`
			} `json:"replicas"`
		}
		require.NoError(t, json.Unmarshal(r.Detail, &facts))
		assert.Equal(t, jobs.Labels{"zone": {"moon"}}, facts.OnlyOn)
		for _, there := range facts.Replicas {
			assert.Equal(t, there.Name, there.Labels["zone"])
		}
		if len(facts.Replicas) == 3 {
			unmatched++
		}
	}
	assert.GreaterOrEqual(t, unmatched, 2)
}

// The only replica that matches is killed: its run is tried again when another one with the label is there, and on no other.
func TestRecoveryKeepsToTheLabels(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		f := keyed(t, url, Settings{TTL: roomyTTL, Jobs: []Job{retried()}},
			map[string]string{"job": "only_on: {disk: fast}"})
		f.StartReady("a", "CRONLATCH_LABELS=disk=slow")
		f.StartReady("b", "CRONLATCH_LABELS=disk=slow")
		fast := f.StartReady("c", "CRONLATCH_LABELS=disk=fast")
		run := f.Trigger("job")
		f.WaitRun(run.ID, "it runs", func(r *jobs.Run) bool { return r.State == jobs.StateRunning })
		fast.Kill()
		second := f.WaitAttempt(run, 2)
		f.StartReady("d", "CRONLATCH_LABELS=disk=fast")
		ended := f.WaitFinished(second.ID)
		assert.Equal(t, []any{"d", jobs.OutcomeSucceeded}, []any{ended.Replica, ended.Outcome})
		h := f.Rest()
		require.Len(t, h.Runs, 2)
		assert.Equal(t, jobs.OutcomeLost, f.WaitFinished(run.ID).Outcome)
	})
}
