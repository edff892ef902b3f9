package scheduler

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// playing is the list of the jobs of a story, in the order of their names. Each has the schedule of every minute.
func playing(list ...func(testing.TB) *jobs.Job) []func(testing.TB) *jobs.Job { return list }

// one is a list of one job.
func one(change func(*jobs.Job)) []func(testing.TB) *jobs.Job { return playing(named("job", change)) }

// timed gives a job another schedule.
func timed(job func(testing.TB) *jobs.Job, text string, o jobs.ScheduleOptions) func(testing.TB) *jobs.Job {
	return func(tb testing.TB) *jobs.Job {
		tb.Helper()
		j := job(tb)
		var err error
		j.Schedule, err = jobs.ParseSchedule(text, o)
		require.NoError(tb, err)
		return j
	}
}

// tenth is a job of every tenth minute, with room between its runs.
func tenth(name string, change func(*jobs.Job)) func(testing.TB) *jobs.Job {
	return timed(named(name, change), "*/10 * * * *", jobs.ScheduleOptions{})
}

// dated gives each occurrence of a job another resource.
func dated(job func(testing.TB) *jobs.Job) func(testing.TB) *jobs.Job {
	return func(tb testing.TB) *jobs.Job {
		tb.Helper()
		j := job(tb)
		var err error
		j.Resource, err = jobs.ParseTemplate("job:YYYY-MM-DD-HH-mm", jobs.TemplateOptions{})
		require.NoError(tb, err)
		return j
	}
}

func replacing(killAfter time.Duration) func(*jobs.Job) {
	return func(j *jobs.Job) { j.Overlap, j.KillAfter = jobs.OverlapReplace, killAfter }
}

func deadline(d time.Duration) func(*jobs.Job) { return func(j *jobs.Job) { j.StartDeadline = d } }

func TestPolicyOverlap(t *testing.T) {
	t.Parallel()
	playPolicies(t, map[string]policyCase{
		"skip": {
			jobs: one(overlapping(jobs.OverlapSkip)), work: takes(130 * time.Second), until: 8*time.Minute + 30*time.Second,
			want: `
				00:01 1 00:01:00 succeeded
				00:02 1 -        skipped overlap
				00:03 1 -        skipped overlap
				00:04 1 00:04:00 succeeded
				00:05 1 -        skipped overlap
				00:06 1 -        skipped overlap
				00:07 1 00:07:00 running
				00:08 1 -        skipped overlap`,
		},
		"queue": {
			jobs: one(overlapping(jobs.OverlapQueue)), work: takes(130 * time.Second), until: 8*time.Minute + 30*time.Second,
			want: `
				00:01 1 00:01:00 succeeded
				00:02 1 00:03:10 succeeded
				00:03 1 -        skipped overlap
				00:04 1 00:05:20 succeeded
				00:05 1 -        skipped overlap
				00:06 1 00:07:30 running
				00:07 1 -        skipped overlap
				00:08 1 -        pending`,
		},
		"queue, where each occurrence locks a name of its own": {
			jobs: playing(dated(named("job", overlapping(jobs.OverlapQueue)))),
			work: takes(130 * time.Second), until: 4*time.Minute + 30*time.Second,
			want: `
				00:01 1 00:01:00 succeeded
				00:02 1 00:03:10 running
				00:03 1 -        skipped overlap
				00:04 1 -        pending`,
		},
		"replace": {
			jobs: one(replacing(7 * time.Second)), work: takes(90 * time.Second), until: 4*time.Minute + 30*time.Second,
			want: `
				00:01 1 00:01:00 cancelled replaced
				00:02 1 00:02:07 cancelled replaced
				00:03 1 00:03:07 cancelled replaced
				00:04 1 00:04:07 running`,
		},
		"replace, when the old one takes longer to die than the schedule": {
			jobs: one(replacing(130 * time.Second)), work: takes(time.Hour), until: 5*time.Minute + 30*time.Second,
			want: `
				00:01 1 00:01:00 cancelled replaced
				00:02 1 -        cancelled replaced
				00:03 1 -        cancelled replaced
				00:04 1 00:04:10 running
				00:05 1 -        pending`,
		},
		"allow": {
			jobs: one(overlapping(jobs.OverlapAllow)), work: takes(130 * time.Second), until: 4*time.Minute + 30*time.Second,
			want: `
				00:01 1 00:01:00 succeeded
				00:02 1 00:02:00 succeeded
				00:03 1 00:03:00 running
				00:04 1 00:04:00 running`,
		},
	})
}

func TestPolicyStartDeadline(t *testing.T) {
	t.Parallel()
	playPolicies(t, map[string]policyCase{
		"a busy resource": {
			jobs:  playing(tenth("job", deadline(90*time.Second))),
			steps: []step{lock(9*time.Minute, 4*time.Minute), lock(29*time.Minute, 65*time.Second)}, until: 31 * time.Minute,
			want: `
				00:10 1 -        missed lock_held
				00:20 1 00:20:00 succeeded
				00:30 1 00:30:05 succeeded`,
		},
		"none: it waits": {
			jobs:  playing(tenth("job", deadline(0))),
			steps: []step{lock(9*time.Minute, 20*time.Minute)}, until: 29*time.Minute + 30*time.Second,
			want: `
				00:10 1 00:29:00 succeeded
				00:20 1 -        skipped overlap`,
		},
		"no free slot": {
			jobs: playing(tenth("long", nil), tenth("other", deadline(2*time.Minute)), tenth("patient", deadline(4*time.Minute))),
			work: takes(3 * time.Minute), capacity: 1, until: 19 * time.Minute,
			want: `
				long    00:10 1 00:10:00 succeeded
				other   00:10 1 -        missed no_capacity
				patient 00:10 1 00:13:00 succeeded`,
		},
	})
}

// Nobody is there from 00:02:30 to 00:12:30.
func TestPolicyCatchUp(t *testing.T) {
	t.Parallel()
	caughtUp := func(c jobs.CatchUp) policyCase {
		return policyCase{
			jobs: one(func(j *jobs.Job) { j.CatchUp = c }), work: takes(2 * time.Second), until: 13*time.Minute + 30*time.Second,
			steps: []step{leave(2*time.Minute+30*time.Second, "a"), join(12*time.Minute+30*time.Second, "b")},
		}
	}
	cases := map[string]policyCase{}
	add := func(name string, c jobs.CatchUp, want string) {
		story := caughtUp(c)
		story.want = `
			00:01 1 00:01:00 succeeded
			00:02 1 00:02:00 succeeded
			` + want + `
			00:13 1 00:13:00 succeeded`
		cases[name] = story
	}
	missed := func(minutes ...string) string {
		lines := make([]string, len(minutes))
		for i, m := range minutes {
			lines[i] = "00:" + m + " 1 - missed no_replica"
		}
		return strings.Join(lines, "\n")
	}
	add("none", jobs.CatchUp{Policy: jobs.CatchUpNone, Window: time.Hour, Max: 100},
		missed("03", "04", "05", "06", "07", "08", "09", "10", "11", "12"))
	add("latest", jobs.CatchUp{Policy: jobs.CatchUpLatest, Window: time.Hour, Max: 100},
		missed("03", "04", "05", "06", "07", "08", "09", "10", "11")+`
			00:12 1 00:12:30 succeeded`)
	add("latest, which is too old", jobs.CatchUp{Policy: jobs.CatchUpLatest, Window: 29 * time.Second, Max: 100},
		missed("03", "04", "05", "06", "07", "08", "09", "10", "11", "12"))
	add("all, one after another", jobs.CatchUp{Policy: jobs.CatchUpAll, Window: time.Hour, Max: 100}, `
			00:03 1 00:12:30 succeeded
			00:04 1 00:12:32 succeeded
			00:05 1 00:12:34 succeeded
			00:06 1 00:12:36 succeeded
			00:07 1 00:12:38 succeeded
			00:08 1 00:12:40 succeeded
			00:09 1 00:12:42 succeeded
			00:10 1 00:12:44 succeeded
			00:11 1 00:12:46 succeeded
			00:12 1 00:12:48 succeeded`)
	add("all, within the window", jobs.CatchUp{Policy: jobs.CatchUpAll, Window: 4 * time.Minute, Max: 100},
		missed("03", "04", "05", "06", "07", "08")+`
			00:09 1 00:12:30 succeeded
			00:10 1 00:12:32 succeeded
			00:11 1 00:12:34 succeeded
			00:12 1 00:12:36 succeeded`)
	add("all, the newest", jobs.CatchUp{Policy: jobs.CatchUpAll, Window: time.Hour, Max: 3},
		missed("03", "04", "05", "06", "07", "08", "09")+`
			00:10 1 00:12:30 succeeded
			00:11 1 00:12:32 succeeded
			00:12 1 00:12:34 succeeded`)
	cases["a gap that is shorter than the TTL is none"] = policyCase{
		jobs:  one(func(j *jobs.Job) { j.CatchUp.Policy = jobs.CatchUpNone }),
		steps: []step{leave(110*time.Second, "a"), join(145*time.Second, "b")}, until: 170 * time.Second,
		want: `
			00:01 1 00:01:00 succeeded
			00:02 1 00:02:25 succeeded`,
	}
	playPolicies(t, cases)
}
