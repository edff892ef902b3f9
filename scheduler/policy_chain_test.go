package scheduler

import (
	"testing"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

func TestPolicyChains(t *testing.T) {
	t.Parallel()
	byOccurrence := func(a *jobs.Attempt) work { // of the job "up"; the others succeed
		w := work{takes: 5 * time.Second}
		if a.Job.Name == "up" {
			w.code = map[int]int{20: 1, 30: 75}[a.Run.ScheduledAt.Minute()]
		}
		return w
	}
	skips := func(j *jobs.Job) { j.ExitCodes.Skip = []int{75} }
	playPolicies(t, map[string]policyCase{
		"after success, failure and always": {
			jobs: playing(tenth("up", skips), named("yes", comingAfter(jobs.AfterSuccess, "up")),
				named("no", comingAfter(jobs.AfterFailure, "up")), named("any", comingAfter(jobs.AfterAlways, "up"))),
			work: byOccurrence, until: 31 * time.Minute,
			want: `
				any 00:10 1 00:10:05 succeeded
				no  00:10 1 -        skipped upstream
				up  00:10 1 00:10:00 succeeded
				yes 00:10 1 00:10:05 succeeded
				any 00:20 1 00:20:05 succeeded
				no  00:20 1 00:20:05 succeeded
				up  00:20 1 00:20:00 failed exit
				yes 00:20 1 -        skipped upstream
				any 00:30 1 -        skipped upstream
				no  00:30 1 -        skipped upstream
				up  00:30 1 00:30:00 skipped exit
				yes 00:30 1 -        skipped upstream`,
		},
		"hooks leave nothing behind when they have nothing to do": {
			jobs: playing(tenth("up", skips), named("up#on_failure", hook(jobs.AfterFailure)),
				named("up#on_success", hook(jobs.AfterSuccess))),
			work: byOccurrence, until: 31 * time.Minute,
			want: `
				up            00:10 1 00:10:00 succeeded
				up#on_success 00:10 1 00:10:05 succeeded
				up            00:20 1 00:20:00 failed exit
				up#on_failure 00:20 1 00:20:05 succeeded
				up            00:30 1 00:30:00 skipped exit`,
		},
		"only the last attempt counts": {
			jobs: playing(tenth("up", retried(jobs.Retry{Attempts: 2})), named("yes", comingAfter(jobs.AfterSuccess, "up")),
				named("no", comingAfter(jobs.AfterFailure, "up"))),
			work: func(a *jobs.Attempt) work {
				if a.Job.Name == "up" {
					return exits(1, 0)(a)
				}
				return work{takes: time.Second}
			},
			until: 19 * time.Minute,
			want: `
				no  00:10 1 -        skipped upstream
				up  00:10 1 00:10:00 failed exit
				up  00:10 2 00:10:05 succeeded
				yes 00:10 1 00:10:10 succeeded`,
		},
		"the slowest of two": {
			jobs: playing(tenth("fast", nil), tenth("slow", nil), named("both", comingAfter(jobs.AfterSuccess, "fast", "slow")),
				named("then", comingAfter(jobs.AfterSuccess, "both"))),
			work: func(a *jobs.Attempt) work {
				if a.Job.Name == "slow" {
					return work{takes: 70 * time.Second}
				}
				return work{takes: 5 * time.Second}
			},
			until: 19 * time.Minute,
			want: `
				both 00:10 1 00:11:10 succeeded
				fast 00:10 1 00:10:00 succeeded
				slow 00:10 1 00:10:00 succeeded
				then 00:10 1 00:11:15 succeeded`,
		},
		"after a lost run": {
			jobs: playing(tenth("up", nil), named("up#on_failure", hook(jobs.AfterFailure))), work: takes(time.Minute),
			steps: []step{join(601500*time.Millisecond, "b"), crash(602500*time.Millisecond, "a")}, until: 12 * time.Minute,
			want: `
				up            00:10 1 00:10:00 lost replica_lost
				up#on_failure 00:10 1 00:10:30 succeeded`,
		},
	})
}

func onlyOn(values ...string) func(*jobs.Job) {
	return func(j *jobs.Job) { j.OnlyOn, j.StartDeadline = jobs.Labels{"disk": values}, 8*time.Minute }
}

// The replica "a" has no labels.
func TestPolicyLabels(t *testing.T) {
	t.Parallel()
	labels := map[string]map[string]string{"b": {"disk": "fast"}, "c": {"disk": "slow"}}
	playPolicies(t, map[string]policyCase{
		"nobody, later somebody": {
			jobs: playing(tenth("job", onlyOn("fast")), tenth("other", nil)), labels: labels, until: 33 * time.Minute,
			steps: []step{join(8*time.Minute, "c"), leave(9*time.Minute, "a"), join(25*time.Minute, "b"), leave(26*time.Minute, "c")},
			want: `
				job   00:10 1 -          missed no_matching_replica
				other 00:10 1 00:10:00 c succeeded
				job   00:20 1 00:25:00 b succeeded
				other 00:20 1 00:20:00 c succeeded
				job   00:30 1 00:30:00 b succeeded
				other 00:30 1 00:30:00 b succeeded`,
		},
		"any of several values": {
			jobs: playing(tenth("job", onlyOn("fast", "slow"))), labels: labels, until: 19 * time.Minute,
			steps: []step{join(9*time.Minute, "c")},
			want:  `00:10 1 00:10:00 c succeeded`,
		},
	})
}

func TestPolicyPauses(t *testing.T) {
	t.Parallel()
	half := 30 * time.Second
	ours, all := PauseRequest{Jobs: []string{"job"}, By: "test"}, PauseRequest{Jobs: []string{""}, By: "test"}
	limited := ours
	limited.For = 2 * time.Minute
	playPolicies(t, map[string]policyCase{
		"one job, until it is resumed": {
			jobs: playing(named("job", nil), named("other", nil)), until: 4*time.Minute + half,
			steps: []step{pause(time.Minute+half, ours), resume(3*time.Minute+half, "job")},
			want: `
				job   00:01 1 00:01:00 succeeded
				other 00:01 1 00:01:00 succeeded
				job   00:02 1 -        missed paused
				other 00:02 1 00:02:00 succeeded
				job   00:03 1 -        missed paused
				other 00:03 1 00:03:00 succeeded
				job   00:04 1 00:04:00 succeeded
				other 00:04 1 00:04:00 succeeded`,
		},
		"all, with a run by hand": {
			jobs: one(nil), until: 4*time.Minute + half,
			steps: []step{pause(time.Minute+half, all), trigger(150500*time.Millisecond, "mine"), resume(3*time.Minute+half, "")},
			want: `
				00:01 1 00:01:00 succeeded
				00:02 1 -        missed paused
				00:02:30 1 00:02:31 succeeded
				00:03 1 -        missed paused
				00:04 1 00:04:00 succeeded`,
		},
		"for two minutes": {
			jobs: one(nil), until: 4*time.Minute + half,
			steps: []step{pause(time.Minute+half, limited)},
			want: `
				00:01 1 00:01:00 succeeded
				00:02 1 -        missed paused
				00:03 1 -        missed paused
				00:04 1 00:04:00 succeeded`,
		},
		"what is caught up does not reach into the pause": {
			jobs:  one(func(j *jobs.Job) { j.CatchUp = jobs.CatchUp{Policy: jobs.CatchUpAll, Window: time.Hour, Max: 100} }),
			until: 6*time.Minute + half,
			steps: []step{
				pause(time.Minute+half, ours), leave(100*time.Second, "a"), resume(3*time.Minute+half, "job"), join(5*time.Minute+half, "b"),
			},
			want: `
				00:01 1 00:01:00 succeeded
				00:02 1 -        missed paused
				00:03 1 -        missed paused
				00:04 1 00:05:30 succeeded
				00:05 1 00:05:35 succeeded
				00:06 1 00:06:00 succeeded`,
		},
		"a run that waits": {
			jobs: playing(tenth("job", deadline(5*time.Minute))), until: 29 * time.Minute,
			steps: []step{
				lock(9*time.Minute, 2*time.Minute), pause(10*time.Minute+half, ours), resume(810500*time.Millisecond, "job"),
				lock(19*time.Minute, 2*time.Minute), pause(20*time.Minute+half, ours),
			},
			want: `
				00:10 1 00:13:31 succeeded
				00:20 1 -        missed paused`,
		},
	})
}
