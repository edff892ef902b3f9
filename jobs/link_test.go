package jobs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// linked makes a job for Link: a schedule unless it comes after others, and a resource of its own.
func linked(t *testing.T, name, schedule string, after ...After) *Job {
	t.Helper()
	j := &Job{Name: name, After: after}
	var err error
	j.Resource, err = ParseTemplate(name, TemplateOptions{})
	require.NoError(t, err)
	if schedule != "" {
		j.Schedule, err = ParseSchedule(schedule, ScheduleOptions{})
		require.NoError(t, err)
	}
	return j
}

func on(names ...string) (after []After) {
	for _, n := range names {
		after = append(after, After{Job: n, On: AfterSuccess})
	}
	return after
}

func TestLink(t *testing.T) {
	t.Parallel()
	list := []*Job{
		linked(t, "report", "", on("load", "clean")...),
		linked(t, "load", "", After{Job: "extract"}),
		linked(t, "clean", "", on("extract")...),
		linked(t, "extract", "@daily"),
		linked(t, "by-hand", ""),
		linked(t, "then", "", on("by-hand")...),
	}
	require.NoError(t, Link(list))
	require.NoError(t, Link(list), "again is the same")
	for _, j := range list {
		assert.Equal(t, j.Name != "report" && j.Name != "then", j.Followed, j.Name)
	}
	assert.Equal(t, AfterSuccess, list[1].After[0].On)

	alone := list[3:5]
	require.NoError(t, Link(alone))
	assert.False(t, alone[0].Followed, "in a set without the others")
}

func TestLinkRefuses(t *testing.T) {
	t.Parallel()
	const (
		never     = "the runs it waits for never meet: "
		schedules = ` have different schedules; give the resources of both a date of the same form, like YYYY-MM-DD`
		oneDate   = never + `the resource of "dated-YYYY-MM-DD" has a date, that of "daily" has none; give both a date of the same form`
	)
	daily, hourly := linked(t, "daily", "@daily"), linked(t, "hourly", "@hourly")
	dated, monthly := linked(t, "dated-YYYY-MM-DD", "@daily"), linked(t, "m-YYYY-MM", "@monthly")
	handmade := linked(t, "then", "", on("by-hand")...)
	d, h := linked(t, "d", "", on("daily")...), linked(t, "h", "", on("hourly")...)
	also, both := linked(t, "d-YYYY-MM-DD", "@hourly"), linked(t, "both", "", on("dated-YYYY-MM-DD", "d-YYYY-MM-DD")...)
	hook := linked(t, "daily#on_failure", "", on("hourly")...)
	hook.HookOf = "daily"
	linkedHook := linked(t, "hourly#on_failure", "", on("hourly")...)
	linkedHook.HookOf = "hourly"
	for name, tt := range map[string]struct {
		list []*Job
		item int
		code string
		want string
	}{
		"unknown": {[]*Job{daily, linked(t, "j", "", on("daily", "nobody")...)}, 1, CodeAfter, `there is no job "nobody" for it to come after`},
		"itself":  {[]*Job{linked(t, "j", "", on("j")...)}, 0, CodeAfterCycle, "a job cannot come after itself"},
		"twice": {
			[]*Job{daily, linked(t, "j", "", on("daily", "daily")...)},
			1, CodeAfter,
			`it comes after "daily" twice; one entry is enough, on: always if need be`,
		},
		"schedule": {
			[]*Job{daily, linked(t, "j", "@daily", on("daily")...)},
			-1, CodeAfter,
			"a job that comes after others has no schedule of its own; remove one of the two",
		},
		"word": {
			[]*Job{daily, linked(t, "j", "", After{Job: "daily", On: "done"})},
			0, CodeAfter,
			`on "done" is not one of success, failure, always`,
		},
		"hook": {[]*Job{daily, hourly, hook}, -1, CodeAfter, "a hook comes after the job whose hook it is, and no other"},
		"abort": {
			[]*Job{daily, linked(t, "j", "", After{Job: "daily", On: AfterAbort})},
			0, CodeAfter,
			`on: abort is for hooks; say on: always, or give "daily" a hook on_abort`,
		},
		"after a hook": {
			[]*Job{hourly, linkedHook, linked(t, "j", "", on("hourly#on_failure")...)},
			0, CodeAfter,
			`"hourly#on_failure" is a hook, and nothing comes after a hook; come after "hourly" itself`,
		},
		"cycle": {
			[]*Job{linked(t, "j", "", on("b")...), linked(t, "b", "", on("a")...), linked(t, "a", "", on("j")...)},
			0, CodeAfterCycle, "it comes after itself: j -> a -> b -> j",
		},
		"schedules": {
			[]*Job{daily, hourly, linked(t, "j", "", on("daily", "hourly")...)},
			1, CodeAfterNever,
			never + `"daily" and "hourly"` + schedules,
		},
		"schedules at the head of chains": {
			[]*Job{daily, hourly, d, h, linked(t, "j", "", on("d", "h")...)},
			1, CodeAfterNever,
			never + `"d" and "h"` + schedules,
		},
		"one date": {
			[]*Job{daily, dated, linked(t, "j", "", on("daily", "dated-YYYY-MM-DD")...)},
			1, CodeAfterNever,
			oneDate,
		},
		"the other date": {
			[]*Job{daily, dated, linked(t, "j", "", on("dated-YYYY-MM-DD", "daily")...)},
			1, CodeAfterNever,
			oneDate,
		},
		"forms": {
			[]*Job{dated, monthly, linked(t, "j", "", on("dated-YYYY-MM-DD", "m-YYYY-MM")...)},
			1, CodeAfterNever,
			never + `the date in the resource of "dated-YYYY-MM-DD" is YYYY-MM-DD, ` +
				`that of "m-YYYY-MM" is YYYY-MM; give both the same form`,
		},
		"by hand": {
			[]*Job{linked(t, "by-hand", ""), handmade, daily, linked(t, "j", "", on("then", "daily")...)},
			0, CodeAfterNever,
			`it waits for several jobs, and "then" runs only by hand; give that job a schedule`,
		},
		"a period and an instant": {
			[]*Job{dated, also, daily, both, linked(t, "j", "", on("both", "daily")...)},
			1, CodeAfterNever,
			never + `"both" and "daily"` + schedules,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := make([]*Job, len(tt.list)) // the cases share jobs, and Link writes
			for i := range list {
				j := *tt.list[i]
				list[i] = &j
			}
			err := Link(list)
			var faults LinkErrors
			require.ErrorAs(t, err, &faults)
			culprit := list[len(list)-1].Name
			if name == "cycle" {
				culprit = "j"
			}
			assert.Equal(t, &LinkError{Job: culprit, Item: tt.item, Code: tt.code, Message: tt.want}, faults[0])
			assert.Contains(t, err.Error(), `: `+tt.want)
			for _, j := range list {
				assert.False(t, j.Followed)
			}
		})
	}
}

// All faults come at once, and each cycle once.
func TestLinkReportsEverything(t *testing.T) {
	t.Parallel()
	err := Link([]*Job{
		linked(t, "way-in", "", on("a")...), linked(t, "a", "", on("b")...), linked(t, "b", "", on("a")...),
		linked(t, "c", "", on("nobody", "c", "a")...), linked(t, "d", "", on("d2")...), linked(t, "d2", "", on("d")...),
	})
	var faults LinkErrors
	require.ErrorAs(t, err, &faults)
	var texts []string
	for _, f := range faults {
		texts = append(texts, f.Error())
	}
	assert.Equal(t, []string{
		`job "a": it comes after itself: a -> b -> a`,
		`job "c": there is no job "nobody" for it to come after`,
		`job "c": a job cannot come after itself`,
		`job "d": it comes after itself: d -> d2 -> d`,
	}, texts)
}

func TestFollowingRun(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 6, 0, 0, 0, time.UTC)
	s := Successor{
		Occurrence: PeriodOccurrence("2026-05"), ScheduledAt: at, DueAt: at.Add(time.Minute),
		Runs: []Followed{{Job: "a", RunID: 1, Outcome: OutcomeFailed}},
	}
	for want, j := range map[Trigger]*Job{
		TriggerAfter:     {After: []After{{"a", AfterFailure}}},
		TriggerOnSuccess: {HookOf: "a", After: []After{{"a", AfterSuccess}}},
		TriggerOnFailure: {HookOf: "a", After: []After{{"a", AfterFailure}}},
		TriggerOnAbort:   {HookOf: "a", After: []After{{"a", AfterAbort}}},
	} {
		j.StartDeadline = time.Hour
		n := j.FollowingRun(s)
		assert.Equal(t, want, n.Trigger)
		assert.Equal(t, Follows{Kind: want, Runs: s.Runs}, n.Follows)
		assert.Equal(t, "p:2026-05", n.Occurrence)
		assert.Equal(t, at.Add(time.Minute+time.Hour), n.StartBy)
		assert.Equal(t, StatePending, n.State)
		skipped := j.SkippedRun(s, ReasonUpstream, []byte(`{"x":1}`))
		assert.Equal(t, StateFinished, skipped.State)
		assert.Equal(t, OutcomeSkipped, *skipped.Outcome)
		assert.Equal(t, ReasonUpstream, skipped.Reason)
		assert.Equal(t, n.Follows, skipped.Follows)
	}
}

func TestTheEnvironmentSaysWhatCameBefore(t *testing.T) {
	t.Parallel()
	a := attempt(t, nil)
	a.Run.Follows = Follows{Kind: TriggerAfter, Runs: []Followed{
		{Job: "extract", RunID: 7, Outcome: OutcomeSucceeded}, {Job: "load", RunID: 12, Outcome: OutcomeTimedOut, Reason: ReasonTimeout},
	}}
	env := a.Environ(func(string) string { return "" })
	assert.Subset(t, env, []string{
		"CRONLATCH_AFTER_JOB=extract,load", "CRONLATCH_AFTER_RUN_ID=7,12",
		"CRONLATCH_AFTER_OUTCOME=succeeded,timed_out", "CRONLATCH_AFTER_REASON=,timeout",
	})
}

func TestPeriodForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a": "", "COMMAND": "", "a-YYYY-MM": "YYYY-MM", "b:YYYY-MM-DD/HH!": "YYYY-MM-DD/HH", "YYYYMMDD": "YYYYMMDD",
	} {
		tmpl, err := ParseTemplate(text, TemplateOptions{})
		require.NoError(t, err)
		assert.Equal(t, want, tmpl.PeriodForm())
	}
}
