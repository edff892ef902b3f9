package filter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/filter"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

func TestWhatAFilterOfTheAuditMeans(t *testing.T) {
	t.Parallel()
	on := func(column scheduler.AuditColumn, m jobs.Match) scheduler.AuditFilter {
		return scheduler.AuditFilter{Where: []scheduler.AuditCondition{{Column: column, Match: m}}}
	}
	for text, want := range map[string]scheduler.AuditFilter{
		"":                           {},
		"action:job.*,run.cancel":    on(scheduler.AuditByAction, jobs.Match{Exact: []string{"run.cancel"}, Prefix: []string{"job."}}),
		"-outcome:success":           on(scheduler.AuditByOutcome, jobs.Match{Not: true, Exact: []string{"success"}}),
		"actor:root@*":               on(scheduler.AuditByActor, jobs.Match{Prefix: []string{"root@"}}),
		"job:a":                      on(scheduler.AuditByJob, jobs.Match{Exact: []string{"a"}}),
		"run:7,12":                   on(scheduler.AuditByRun, jobs.Match{Exact: []string{"7", "12"}}),
		"resource:db/*":              on(scheduler.AuditByResource, jobs.Match{Prefix: []string{"db/"}}),
		"replica:b":                  on(scheduler.AuditByReplica, jobs.Match{Exact: []string{"b"}}),
		"backup":                     {Words: []jobs.WordMatch{{Text: "backup"}}},
		"since:3d until:1h since:2d": {SinceAgo: 48 * time.Hour, UntilAgo: time.Hour},
	} {
		f, err := filter.ParseAudit(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, f.CompileAudit(), text)
	}
}

// All terms must be true: of two bounds the narrower one counts, in whatever order they come.
func TestTheNarrowerBoundCounts(t *testing.T) {
	t.Parallel()
	early, late := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]jobs.RunFilter{
		"since:1h since:3d": {SinceAgo: time.Hour},
		"since:3d since:1h": {SinceAgo: time.Hour},
		"until:1h until:3d": {UntilAgo: 72 * time.Hour},
		"until:3d until:1h": {UntilAgo: 72 * time.Hour},
		"since:2026-03-02T00:00:00Z since:2026-03-01T00:00:00Z until:2026-03-01T00:00:00Z until:2026-03-02T00:00:00Z": {Since: late, Until: early},
		"since:2026-03-01T00:00:00Z since:2026-03-02T00:00:00Z until:2026-03-02T00:00:00Z until:2026-03-01T00:00:00Z": {Since: late, Until: early},
	} {
		f, err := filter.Parse(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, f.Compile(nil), text)
	}
}

func TestWhatIsWrongWithAFilterOfAnotherList(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"jbo:x":         `the term "jbo:x" at character 1: "jbo" is not a key, did you mean "job"?; the keys are job, tag, kind, enabled, defined, paused, state, outcome, reason`,
		"a paused:yes":  `the term "paused:yes" at character 3: "yes" is neither true nor false`,
		"state:runing":  `did you mean "running"?; there are pending, running, held, idle`, //nolint:misspell // on purpose
		"state:idle*":   `which only job can`,
		"since:3d":      `"since" is not a key`,
		"kind:cmmand":   `did you mean "command"?`,
		"outcome:wrong": `"wrong" is no outcome; there are succeeded,`,
	} {
		_, err := filter.ParseJobs(text)
		require.ErrorContains(t, err, want, text)
	}
	for text, want := range map[string]string{
		"ü action:job.paus": `the term "action:job.paus" at character 3: "job.paus" is no action, did you mean "job.pause"?; there are lock.acquire,`,
		"action:jb.*":       `"jb." is no action`,
		"outcome:failed":    `"failed" is no outcome; there are success, failure, unknown`,
		"run:0":             `"0" is not a number from 1 on`,
		"run:7*":            `which only action, actor, job, resource and replica can`,
		"run_id:7":          `"run_id" is not a key; the keys are action, outcome, actor, job, run, resource, replica, since, until`,
		"since:x":           `neither a duration like 90m`,
	} {
		_, err := filter.ParseAudit(text)
		require.ErrorContains(t, err, want, text)
	}
}

// Each action that a row of the audit can have can be asked for, and so can all that begin like it.
func TestEveryActionCanBeAskedFor(t *testing.T) {
	t.Parallel()
	for _, a := range audit.Actions() {
		for _, text := range []string{"action:" + string(a), "action:" + string(a[:3]) + "*"} {
			_, err := filter.ParseAudit(text)
			require.NoError(t, err)
		}
	}
}

func TestWhatAFilterOfJobsSelects(t *testing.T) {
	t.Parallel()
	texts := func(key string) []string {
		return map[string][]string{"": {"report:daily"}, "job": {"report:daily"}, "tag": {"a", "b"}, "paused": {"true"}}[key]
	}
	for text, want := range map[string]bool{
		"": true, "job:report:*": true, "job:report": false, "-job:report:*": false, "tag:b": true, "tag:c,a": true, "tag:c": false,
		"-tag:c": true, "-tag:a": false, "daily": true, "-daily": false, "Daily": false, "paused:true tag:a": true, "paused:false": false,
		"outcome:failed": false, "-outcome:failed": true, "paused:true tag:c": false,
	} {
		f, err := filter.ParseJobs(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, f.Match(texts), text)
	}
}
