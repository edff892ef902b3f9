package scheduler

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/jobs"
)

func minuteJob(tb testing.TB, change func(*jobs.Job)) *jobs.Job {
	tb.Helper()
	s, err := jobs.ParseSchedule("* * * * *", jobs.ScheduleOptions{})
	require.NoError(tb, err)
	name, err := jobs.ParseTemplate("backup:db", jobs.TemplateOptions{})
	require.NoError(tb, err)
	j := &jobs.Job{
		Name: "backup:db", Schedule: s, Resource: name, Overlap: jobs.OverlapSkip, OnLost: jobs.OnLostFail, Enabled: true,
		StartDeadline: time.Hour, CatchUp: jobs.CatchUp{Policy: jobs.CatchUpLatest, Window: time.Hour, Max: 100},
	}
	if change != nil {
		change(j)
	}
	return j
}

func at(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t
}

const lastPlanned = "2026-05-01T00:00:00Z"

// plannedRuns plans the minutes in (lastPlanned, now].
func plannedRuns(j *jobs.Job, now string, alive ...lifetime) []jobs.NewRun {
	instants, more := j.Schedule.Between(at(lastPlanned), at(now), maxInstants)
	o := outage{job: j, instants: instants, now: at(now), rules: planRules{late: 30 * time.Second}, alive: alive, more: more}
	return o.runs()
}

type tally map[string]int

// count says how many rows there are of each kind: trigger, state, outcome and reason.
func count(rows []jobs.NewRun) tally {
	n := tally{}
	for _, r := range rows {
		key := string(r.Trigger) + " " + string(r.State)
		if r.Outcome != nil {
			key += " " + string(*r.Outcome) + " " + string(r.Reason)
		}
		n[key]++
	}
	return n
}

func TestAnInstantPlannedInTimeIsAnOrdinaryRun(t *testing.T) {
	t.Parallel()
	rows := plannedRuns(minuteJob(t, nil), "2026-05-01T00:01:02Z")
	require.Len(t, rows, 1)
	assert.Equal(t, "s:2026-05-01T00:01:00Z", rows[0].Occurrence)
	assert.Equal(t, jobs.TriggerSchedule, rows[0].Trigger)
	assert.Equal(t, jobs.RuleSkip, rows[0].Overlap)
	assert.Equal(t, at("2026-05-01T00:01:00Z"), rows[0].DueAt)
	assert.Equal(t, at("2026-05-01T01:01:00Z"), rows[0].StartBy, "start_deadline after the instant")
}

func TestCatchUpPolicies(t *testing.T) {
	t.Parallel()
	const now = "2026-05-01T10:00:30.5Z" // 600 instants, nobody planned
	policy := func(p jobs.CatchUpPolicy, window time.Duration, limit int) func(*jobs.Job) {
		return func(j *jobs.Job) { j.CatchUp = jobs.CatchUp{Policy: p, Window: window, Max: limit} }
	}
	tests := map[string]struct {
		change func(*jobs.Job)
		want   tally
	}{
		"none":             {policy(jobs.CatchUpNone, time.Hour, 100), tally{"schedule finished missed no_replica": 600}},
		"latest":           {policy(jobs.CatchUpLatest, time.Hour, 100), tally{"catch_up pending": 1, "schedule finished missed no_replica": 599}},
		"all, newest max":  {policy(jobs.CatchUpAll, 24*time.Hour, 100), tally{"catch_up pending": 100, "schedule finished missed no_replica": 500}},
		"all, in window":   {policy(jobs.CatchUpAll, 10*time.Minute, 100), tally{"catch_up pending": 10, "schedule finished missed no_replica": 590}},
		"latest too old":   {policy(jobs.CatchUpLatest, 10*time.Second, 100), tally{"schedule finished missed no_replica": 600}},
		"disabled is said": {func(j *jobs.Job) { j.Enabled = false }, tally{"schedule finished skipped disabled": 600}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, count(plannedRuns(minuteJob(t, tt.change), now)))
		})
	}
}

func TestTheLatestInstantIsTheOneThatRuns(t *testing.T) {
	t.Parallel()
	rows := plannedRuns(minuteJob(t, nil), "2026-05-01T10:00:30.5Z")
	last := rows[len(rows)-1]
	assert.Equal(t, "s:2026-05-01T10:00:00Z", last.Occurrence)
	assert.Equal(t, jobs.RuleWait, last.Overlap, "exempt from overlap: skip")
	assert.Equal(t, at("2026-05-01T10:00:30.5Z"), last.DueAt, "due now, or start_deadline would be over")
}

func TestMissedSaysWhetherAnybodyWasAlive(t *testing.T) {
	t.Parallel()
	alive := lifetime{From: dbtime.Time{Time: at("2026-05-01T00:00:00Z")}, Until: dbtime.Time{Time: at("2026-05-01T00:03:30Z")}}
	rows := plannedRuns(minuteJob(t, func(j *jobs.Job) { j.CatchUp.Policy = jobs.CatchUpNone }),
		"2026-05-01T00:10:30.5Z", alive)
	assert.Equal(t, tally{"schedule finished missed catch_up": 3, "schedule finished missed no_replica": 7}, count(rows))
}

func TestMissedSaysFromWhenToWhenNobodyWasThere(t *testing.T) {
	t.Parallel()
	life := func(from, until string) lifetime {
		return lifetime{From: dbtime.Time{Time: at(from)}, Until: dbtime.Time{Time: at(until)}}
	}
	rows := plannedRuns(minuteJob(t, func(j *jobs.Job) { j.CatchUp.Policy = jobs.CatchUpNone }), "2026-05-01T00:10:30.5Z",
		life("2026-04-30T00:00:00Z", "2026-04-30T23:59:10Z"), // before the first instant
		life("2026-04-30T12:00:00Z", "2026-04-30T13:00:00Z"),
		life("2026-05-01T00:03:30Z", "2026-05-01T00:05:30Z"))
	require.Len(t, rows, 10)
	for i, want := range []string{
		`"nobody_from":"2026-04-30T23:59:10Z","nobody_until":"2026-05-01T00:03:30Z"`, // minute 1
		"", "", "", "", // a is there in 4 and 5
		`"nobody_from":"2026-05-01T00:05:30Z","nobody_until":"2026-05-01T00:10:30.5Z"`, // minute 6: until now
	} {
		if want != "" {
			assert.Contains(t, string(rows[i].Detail), want, rows[i].Occurrence)
		}
	}
	never := plannedRuns(minuteJob(t, func(j *jobs.Job) { j.CatchUp.Policy = jobs.CatchUpNone }), "2026-05-01T00:10:30.5Z")
	assert.NotContains(t, string(never[0].Detail), "nobody_from", "there was nobody before")
	assert.Contains(t, string(never[0].Detail), `"nobody_until":"2026-05-01T00:10:30.5Z"`)
}

func TestALongOutageIsSummarized(t *testing.T) {
	t.Parallel()
	rows := plannedRuns(minuteJob(t, nil), "2026-05-08T00:00:30.5Z")                                           // 10,080 instants
	require.Equal(t, 1+maxMissedRows+1, len(rows), "a summary, the newest missed ones, and the one that runs") //nolint:testifylint // Len would print a thousand rows
	var facts struct {
		From  time.Time `json:"missed_from"`
		Until time.Time `json:"missed_until"`
		Count int       `json:"missed_count"`
	}
	require.NoError(t, json.Unmarshal(rows[0].Detail, &facts))
	assert.Equal(t, 10_080, facts.Count+maxMissedRows+1, "every instant is accounted for")
	assert.Equal(t, at("2026-05-01T00:01:00Z"), facts.From)
	assert.Equal(t, rows[1].ScheduledAt.Add(-time.Minute), facts.Until, "the rows go on where the summary ends")
}

func TestAnOutageLongerThanOnePlanRunsNothingOfItsOldPart(t *testing.T) {
	t.Parallel()
	j := minuteJob(t, func(j *jobs.Job) {
		j.CatchUp = jobs.CatchUp{Policy: jobs.CatchUpAll, Window: 10_000 * time.Hour, Max: 100}
	})
	o := outage{
		job: j, now: at("2026-05-08T00:00:30.5Z"), rules: planRules{late: 30 * time.Second}, more: true,
		instants: []time.Time{at("2026-05-01T00:01:00Z"), at("2026-05-01T00:02:00Z")},
	}
	rows := o.runs()
	assert.Equal(t, tally{"schedule finished missed no_replica": 1}, count(rows), "one row for the piece: the newest are still to come")
	assert.Contains(t, string(rows[0].Detail), `"missed_count":2`)
}
