package scheduler

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// pausedRuns plans the minutes in (lastPlanned, now] with pauses; more than 30 s are an outage.
func pausedRuns(j *jobs.Job, now string, pauses ...Pause) []jobs.NewRun {
	instants, _ := j.Schedule.Between(at(lastPlanned), at(now), maxInstants)
	o := outage{job: j, instants: instants, now: at(now), rules: planRules{late: 30 * time.Second}, pauses: pauses}
	return o.runs()
}

func TestAPauseCoversItsStartAndNotItsEnd(t *testing.T) {
	t.Parallel()
	pause := func(job, from, until string) Pause {
		p := Pause{Job: job, From: at(from)}
		if until != "" {
			p.Until = at(until)
		}
		return p
	}
	const start, end = "2026-05-01T00:02:00Z", "2026-05-01T00:04:00Z" // two of the instants, exactly
	const middle = "2026-05-01T00:03:00Z"
	paused := tally{"schedule finished missed paused": 2, "catch_up pending": 3}
	none := tally{"catch_up pending": 5}
	tests := map[string]struct {
		pauses []Pause
		want   tally
	}{
		"of the job":                {[]Pause{pause("backup:db", start, end)}, paused},
		"of all":                    {[]Pause{pause("", start, end)}, paused},
		"of both":                   {[]Pause{pause("", start, end), pause("backup:db", start, end)}, paused},
		"one after the other":       {[]Pause{pause("", start, middle), pause("backup:db", middle, end)}, paused},
		"of another job":            {[]Pause{pause("backup", start, end)}, none},
		"between two instants":      {[]Pause{pause("", "2026-05-01T00:02:00.001Z", "2026-05-01T00:02:59.999Z")}, none},
		"a moment before its start": {[]Pause{pause("", "2026-05-01T00:02:00.001Z", "2026-05-01T00:04:00.001Z")}, paused},
		"not ended yet":             {[]Pause{pause("", "2026-05-01T00:05:00Z", "")}, tally{"schedule finished missed paused": 1, "catch_up pending": 4}},
		"all the time":              {[]Pause{pause("", lastPlanned, "")}, tally{"schedule finished missed paused": 5}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := minuteJob(t, func(j *jobs.Job) { j.CatchUp.Policy = jobs.CatchUpAll })
			assert.Equal(t, tt.want, count(pausedRuns(j, "2026-05-01T00:05:30.5Z", tt.pauses...)))
		})
	}
}

// The latest instant that was not paused is caught up, not the latest one.
func TestCatchUpPassesOverWhatWasPaused(t *testing.T) {
	t.Parallel()
	rows := pausedRuns(minuteJob(t, nil), "2026-05-01T00:05:30.5Z",
		Pause{Job: "backup:db", By: "ops@h", Reason: "disk", From: at("2026-05-01T00:04:00Z"), Until: at("2026-05-01T00:05:10Z")})
	assert.Equal(t, tally{"schedule finished missed paused": 2, "catch_up pending": 1, "schedule finished missed no_replica": 2}, count(rows))
	last := rows[len(rows)-1]
	assert.Equal(t, "s:2026-05-01T00:03:00Z", last.Occurrence)
	assert.JSONEq(t, `{"pause": {"job": "backup:db", "by": "ops@h", "reason": "disk",
		"from": "2026-05-01T00:04:00Z", "until": "2026-05-01T00:05:10Z"}}`, string(rows[0].Detail))
}

func TestADisabledJobIsSkippedThoughItIsPaused(t *testing.T) {
	t.Parallel()
	j := minuteJob(t, func(j *jobs.Job) { j.Enabled = false })
	rows := pausedRuns(j, "2026-05-01T00:05:30.5Z", Pause{From: at(lastPlanned)})
	assert.Equal(t, tally{"schedule finished skipped disabled": 5}, count(rows))
}

// An outage of a week in a pause is summarized like any other, and each instant is accounted for.
func TestALongPauseIsSummarized(t *testing.T) {
	t.Parallel()
	rows := pausedRuns(minuteJob(t, nil), "2026-05-08T00:00:30.5Z", Pause{From: at(lastPlanned)})
	require.Equal(t, 1+maxMissedRows, len(rows)) //nolint:testifylint // Len would print a thousand rows
	var facts struct {
		Count int            `json:"missed_count"`
		Pause map[string]any `json:"pause"`
	}
	require.NoError(t, json.Unmarshal(rows[0].Detail, &facts))
	assert.Equal(t, 10_080, facts.Count+maxMissedRows)
	assert.NotNil(t, facts.Pause)
}

// plannedSince plans a job whose position is some time ago, and says what became of each occurrence.
func (b *bench) plannedSince(j *jobs.Job, ago time.Duration, rules planRules) map[string]string {
	p := []*planned{{job: j, hash: j.Schedule.Hash()}}
	b.movePosition(p[0], -ago)
	require.NoError(b.t, b.loadPositions(b.ctx(), p))
	rows, err := b.plan(b.ctx(), p, rules)
	require.NoError(b.t, err)
	became := map[string]string{}
	for _, r := range rows {
		became[r.Occurrence] = string(r.Trigger) + " " + string(r.State) + " " + string(r.Reason)
	}
	return became
}

func TestPlanSeesThePausesOfThePast(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		base := b.clock().Truncate(time.Minute)
		minute := func(n int) time.Time { return base.Add(time.Duration(n) * time.Minute) }
		for name, rules := range map[string]planRules{"in time": {late: time.Hour}, "late": {late: time.Second}} {
			job, other := named(name, nil)(b.t), named("not "+name, nil)(b.t)
			for _, j := range []*jobs.Job{job, other} {
				j.CatchUp.Policy = jobs.CatchUpAll
			}
			b.paused(name, minute(-3), minute(-1)) // resumed at -1
			b.paused(name, minute(0), time.Time{}) // and paused again
			runs := map[string]string{"in time": "schedule pending ", "late": "catch_up pending "}[name]
			got := b.plannedSince(job, 30*time.Minute, rules) // with room for a slow machine
			for n, want := range map[int]string{
				-4: runs, -3: "schedule finished paused", -2: "schedule finished paused", -1: runs, 0: "schedule finished paused",
			} {
				assert.Equal(b.t, want, got[jobs.ScheduledOccurrence(minute(n))], "%s: minute %d", name, n)
			}
			for occurrence, what := range b.plannedSince(other, 2*time.Minute, rules) {
				assert.Equal(b.t, runs, what, "%s", occurrence)
			}
		}
	})
}
