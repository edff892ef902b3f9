package scheduler

import (
	"strconv"
	"testing"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

func retried(r jobs.Retry) func(*jobs.Job) { return func(j *jobs.Job) { j.Retry = r } }

// Each delay differs from what the policy says by up to a tenth, by the same for the same attempt on every replica: the
// instants are 60 s after the end of the attempt, 60, 120 and 180 s, or 60, 120 and 240 s, give or take.
func TestPolicyRetry(t *testing.T) {
	t.Parallel()
	story := func(backoff jobs.Backoff, want string) policyCase {
		r := jobs.Retry{Attempts: 4, Delay: time.Minute, Backoff: backoff}
		return policyCase{jobs: playing(tenth("job", retried(r))), work: exits(1, 1, 1, 0), until: 19 * time.Minute, want: want}
	}
	bounded := story(jobs.BackoffExponential, `
		00:10 1 00:10:00 failed exit
		00:10 2 00:11:10 failed exit
		00:10 3 00:12:43 failed exit
		00:10 4 00:14:11 succeeded`)
	bound := jobs.Retry{Attempts: 4, Delay: time.Minute, Backoff: jobs.BackoffExponential, MaxDelay: 90 * time.Second}
	bounded.jobs = playing(tenth("job", retried(bound)))
	playPolicies(t, map[string]policyCase{
		"constant": story(jobs.BackoffConstant, `
			00:10 1 00:10:00 failed exit
			00:10 2 00:11:10 failed exit
			00:10 3 00:12:17 failed exit
			00:10 4 00:13:27 succeeded`),
		"linear": story(jobs.BackoffLinear, `
			00:10 1 00:10:00 failed exit
			00:10 2 00:11:10 failed exit
			00:10 3 00:13:19 failed exit
			00:10 4 00:16:39 succeeded`),
		"exponential": story(jobs.BackoffExponential, `
			00:10 1 00:10:00 failed exit
			00:10 2 00:11:10 failed exit
			00:10 3 00:13:19 failed exit
			00:10 4 00:17:44 succeeded`),
		"exponential, bounded": bounded,
		"the attempts are over": {
			jobs: playing(tenth("job", retried(jobs.Retry{Attempts: 2}))), work: exits(1, 1), until: 19 * time.Minute,
			want: `
				00:10 1 00:10:00 failed exit
				00:10 2 00:10:05 failed exit`,
		},
		"later occurrences queue behind it": {
			jobs: one(func(j *jobs.Job) {
				j.Overlap, j.Retry = jobs.OverlapQueue, jobs.Retry{Attempts: 2, Delay: 150 * time.Second}
			}),
			work: exits(1, 0), until: 4*time.Minute + 30*time.Second,
			want: `
				00:01 1 00:01:00 failed exit
				00:01 2 00:03:35 succeeded
				00:02 1 00:03:40 failed exit
				00:02 2 -        pending
				00:03 1 -        skipped overlap
				00:04 1 -        pending`,
		},
		"later occurrences do not overtake": { // skip: the occurrence is unfinished while it waits for its next attempt
			jobs: one(retried(jobs.Retry{Attempts: 2, Delay: 150 * time.Second})), work: exits(1, 0), until: 4*time.Minute + 30*time.Second,
			want: `
				00:01 1 00:01:00 failed exit
				00:01 2 00:03:35 succeeded
				00:02 1 -        skipped overlap
				00:03 1 -        skipped overlap
				00:04 1 00:04:00 failed exit
				00:04 2 -        pending`,
		},
	})
}

func TestPolicyExitCodesAndTimeouts(t *testing.T) {
	t.Parallel()
	codes := jobs.ExitCodes{Success: []int{0, 3}, Skip: []int{75}}
	job := func(name string) func(testing.TB) *jobs.Job {
		return tenth(name, func(j *jobs.Job) { j.ExitCodes, j.Retry = codes, jobs.Retry{Attempts: 2} })
	}
	playPolicies(t, map[string]policyCase{
		"exit codes": {
			jobs: playing(job("0"), job("1"), job("3"), job("75")), until: 11 * time.Minute,
			work: func(a *jobs.Attempt) work {
				code, err := strconv.Atoi(a.Job.Name)
				if err != nil {
					panic(err)
				}
				return work{takes: time.Second, code: code}
			},
			want: `
				0  00:10 1 00:10:00 succeeded
				1  00:10 1 00:10:00 failed exit
				1  00:10 2 00:10:01 failed exit
				3  00:10 1 00:10:00 succeeded
				75 00:10 1 00:10:00 skipped exit`,
		},
		"a timeout is tried again": {
			jobs: playing(tenth("job", func(j *jobs.Job) { j.Timeout, j.Retry = 2*time.Minute, jobs.Retry{Attempts: 2} })),
			work: takes(time.Hour), until: 15 * time.Minute,
			want: `
				00:10 1 00:10:00 timed_out timeout
				00:10 2 00:12:00 timed_out timeout`,
		},
	})
}

func lost(o jobs.OnLost) func(*jobs.Job) { return func(j *jobs.Job) { j.OnLost = o } }

// The replica that runs the job loses the database for ever; its lock is over 30 s after its last renewal.
func TestPolicyOnLost(t *testing.T) {
	t.Parallel()
	second := func(n float64) time.Duration { return 10*time.Minute + time.Duration(n*float64(time.Second)) }
	story := func(o jobs.OnLost, want string) policyCase {
		return policyCase{
			jobs: playing(tenth("job", lost(o))), work: takes(time.Minute), until: 15 * time.Minute, want: want,
			steps: []step{join(second(1.5), "b"), crash(second(2.5), "a")},
		}
	}
	drained := story(jobs.OnLostRetry, `
		00:10 1 00:10:00 cancelled drain
		00:10 2 00:10:02 succeeded`)
	drained.steps[1] = leave(second(2.2), "a")
	thrice := story(jobs.OnLostRetry, `
		00:10 1 00:10:00 lost replica_lost
		00:10 2 00:10:30 lost replica_lost
		00:10 3 00:11:00 lost replica_lost`)
	thrice.steps = append(thrice.steps, join(second(34.7), "c"), crash(second(35.5), "b"), join(second(64.9), "d"), crash(second(65.5), "c"))
	playPolicies(t, map[string]policyCase{
		"fail":                story(jobs.OnLostFail, `00:10 1 00:10:00 lost replica_lost`),
		"retry":               story(jobs.OnLostRetry, "00:10 1 00:10:00 lost replica_lost\n00:10 2 00:10:30 succeeded"),
		"hold":                story(jobs.OnLostHold, "00:10 1 00:10:00 lost replica_lost\n00:10 2 - held"),
		"retry, drained":      drained,
		"retry, not for ever": thrice,
	})
}

func TestPolicyOncePer(t *testing.T) {
	t.Parallel()
	playPolicies(t, map[string]policyCase{
		"a success counts, a failure does not, and a person may": {
			jobs: one(oncePerResource), until: 5*time.Minute + 30*time.Second,
			work: func(a *jobs.Attempt) work {
				if a.Run.ScheduledAt.Minute() < 2 {
					return work{takes: time.Second, code: 1}
				}
				return work{takes: time.Second}
			},
			steps: []step{trigger(4*time.Minute+30500*time.Millisecond, "mine")},
			want: `
				00:01 1 00:01:00 failed exit
				00:02 1 00:02:00 succeeded
				00:03 1 -        skipped once_per
				00:04 1 -        skipped once_per
				00:04:30 1 00:04:31 succeeded
				00:05 1 -        skipped once_per`,
		},
	})
}

func TestPolicyLimits(t *testing.T) {
	t.Parallel()
	limited := func(name string, limit int, start time.Duration) func(testing.TB) *jobs.Job {
		return tenth(name, func(j *jobs.Job) { j.Limits, j.StartDeadline = map[string]int{"db": limit}, start })
	}
	playPolicies(t, map[string]policyCase{
		"one at a time": {
			jobs: playing(limited("x", 1, time.Hour), limited("y", 1, time.Hour), limited("z", 1, 30*time.Second), tenth("free", nil)),
			work: takes(20 * time.Second), until: 12 * time.Minute,
			want: `
				free 00:10 1 00:10:00 succeeded
				x    00:10 1 00:10:00 succeeded
				y    00:10 1 00:10:20 succeeded
				z    00:10 1 -        missed limit`,
		},
		"two at a time": {
			jobs: playing(limited("x", 2, time.Hour), limited("y", 2, time.Hour), limited("z", 2, 30*time.Second)),
			work: takes(20 * time.Second), until: 12 * time.Minute,
			want: `
				x 00:10 1 00:10:00 succeeded
				y 00:10 1 00:10:00 succeeded
				z 00:10 1 00:10:20 succeeded`,
		},
	})
}

func TestPolicySchedules(t *testing.T) {
	t.Parallel()
	midnight := at("2000-01-01T00:00:00Z") // a bubble's first moment
	playPolicies(t, map[string]policyCase{
		"jitter": {
			jobs:  playing(timed(named("job", func(j *jobs.Job) { j.Jitter = 20 * time.Minute }), "0 * * * *", jobs.ScheduleOptions{})),
			until: 2*time.Hour + 30*time.Minute,
			want: `
				01:00 1 01:04:33 succeeded
				02:00 1 02:18:13 succeeded`,
		},
		"from and until": {
			jobs: playing(timed(named("job", nil), "* * * * *", jobs.ScheduleOptions{
				From: midnight.Add(2 * time.Minute), Until: midnight.Add(4 * time.Minute),
			})),
			until: 6 * time.Minute,
			want: `
				00:02 1 00:02:00 succeeded
				00:03 1 00:03:00 succeeded`,
		},
		"disabled": {
			jobs: one(func(j *jobs.Job) { j.Enabled = false }), until: 150 * time.Second,
			want: `
				00:01 1 - skipped disabled
				00:02 1 - skipped disabled`,
		},
		"three replicas": {
			jobs:  one(nil),
			steps: []step{join(time.Second, "b"), join(2*time.Second, "c"), leave(150*time.Second, "a")}, until: 270 * time.Second,
			want: `
				00:01 1 00:01:00 succeeded
				00:02 1 00:02:00 succeeded
				00:03 1 00:03:00 succeeded
				00:04 1 00:04:00 succeeded`,
		},
	})
}
