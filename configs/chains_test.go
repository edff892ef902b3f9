package configs

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// goodJobs are the jobs of a file in testdata/good, by name.
func goodJobs(t *testing.T, name string) map[string]*jobs.Job {
	t.Helper()
	data, err := os.ReadFile("testdata/good/" + name)
	require.NoError(t, err)
	byName := map[string]*jobs.Job{}
	for _, j := range mustParse(t, string(data)).Jobs {
		byName[j.Name] = j
	}
	return byName
}

func TestChains(t *testing.T) {
	t.Parallel()
	all := goodJobs(t, "chains.yaml")
	load := all["load"]
	assert.Equal(t, []jobs.After{{Job: "extract:orders", On: jobs.AfterSuccess}, {Job: "extract:customers", On: jobs.AfterAlways}}, load.After)
	assert.Nil(t, load.Schedule)
	assert.Equal(t, 3, load.Retry.Attempts, "it is a job like any other")
	assert.Equal(t, []jobs.After{{Job: "load", On: jobs.AfterSuccess}}, all["publish"].After)
	assert.Equal(t, []jobs.After{{Job: "load", On: jobs.AfterFailure}}, all["clean"].After)
	assert.Equal(t, []jobs.After{{Job: "${WORD}", On: jobs.AfterSuccess}}, all["literal"].After, "names are never replaced")
	assert.Equal(t, 26*time.Hour, all["extract:orders"].MaxAge)
	assert.Zero(t, load.MaxAge)
	followed := map[string]bool{}
	for name, j := range all {
		if j.Followed {
			followed[name] = true
		}
	}
	assert.Equal(t, map[string]bool{
		"extract:orders": true, "extract:customers": true, "load": true, "a": true, "b": true, "behind-a": true, "by-hand": true, "${WORD}": true,
	}, followed)
}

func TestHooksAreJobsOfTheirOwn(t *testing.T) {
	t.Parallel()
	all := goodJobs(t, "hooks.yaml")
	assert.Len(t, all, 8, "three jobs and five hooks")
	hook := all["report#on_failure"]
	require.NotNil(t, hook)
	assert.Equal(t, "report", hook.HookOf)
	assert.Equal(t, []jobs.After{{Job: "report", On: jobs.AfterFailure}}, hook.After)
	assert.True(t, all["report"].Followed)
	assert.Equal(t, "mail failed", hook.Run)

	// From the job.
	assert.Equal(t, map[string]string{"TEAM": "ops", "TO": "finance"}, hook.Env)
	assert.Equal(t, map[string]string{"TEAM": "ops", "TO": "board"}, all["report#on_success"].Env)
	assert.Equal(t, jobs.Labels{"disk": {"fast"}}, hook.OnlyOn)
	assert.False(t, hook.Enabled)
	assert.True(t, all["last#on_abort"].Enabled)

	// Of its own, and what has nothing to do with it.
	assert.Equal(t, []time.Duration{time.Minute, time.Second}, []time.Duration{hook.Timeout, hook.KillAfter})
	assert.Equal(t, []int{5, 1}, []int{hook.Retry.Attempts, all["report#on_success"].Retry.Attempts})
	assert.Equal(t, 30*time.Minute, all["report#on_success"].Timeout, "of defaults, and not that of the job")
	assert.Equal(t, jobs.OverlapAllow, hook.Overlap)
	assert.Equal(t, jobs.DefaultStartDeadline, hook.StartDeadline)
	assert.Equal(t, jobs.OnLostFail, hook.OnLost)
	assert.Empty(t, hook.ExitCodes)
	assert.Empty(t, hook.Tags)
	assert.Empty(t, hook.Limits)

	assert.Equal(t, jobs.AfterSuccess, all["report#on_success"].After[0].On)
	assert.Equal(t, jobs.AfterAbort, all["report#on_abort"].After[0].On)
	assert.NotNil(t, all["report#on_abort"].HTTP)
	assert.Empty(t, all["report#on_abort"].Env, "a request has no process")
	assert.NotNil(t, all["last#on_abort"].SQL)
}

// TestHooksKnowThePeriodOfTheJob: a message that a report failed says which one.
func TestHooksKnowThePeriodOfTheJob(t *testing.T) {
	t.Parallel()
	all := goodJobs(t, "hooks.yaml")
	at := time.Date(2026, 6, 1, 2, 0, 0, 0, time.UTC) // in New York it is still May
	for name, want := range map[string]string{
		"report":                      "report-2026-04",
		"report#on_failure":           "report-2026-04#on_failure",
		"report#on_success":           "report-2026-04#on_success",
		"dated-YYYY-MM-DD#on_failure": "dated-2026-06-01#on_failure",
		"last#on_abort":               "last#on_abort",
	} {
		assert.Equal(t, want, all[name].Resource.At(at), name)
	}
	period, _ := all["report"].Resource.Period(at)
	own, _ := all["report#on_failure"].Resource.Period(at)
	assert.Equal(t, period, own)
}

// TestHooksDoNotShareWhatTheJobHas: a map that two jobs have is a data race, or a change that shows in both.
func TestHooksDoNotShareWhatTheJobHas(t *testing.T) {
	t.Parallel()
	all := goodJobs(t, "hooks.yaml")
	all["report"].Env["X"] = "1"
	assert.NotContains(t, all["report#on_failure"].Env, "X")
}

func TestHashCoversChains(t *testing.T) {
	t.Parallel()
	const head = "jobs:\n  b: {run: date}\n  c: {run: date}\n  a: {run: date"
	seen := map[string]string{}
	for _, change := range []string{
		"", ", after: {job: b}", ", after: {job: c}", ", after: {job: b, on: failure}", ", after: [{job: b, on: always}]",
		", max_age: 1h", ", max_age: 2h", ", on_success: {run: x}", ", on_failure: {run: x}", ", on_abort: {run: x}",
		", on_failure: {run: y}", ", on_failure: {run: x, timeout: 1m}", ", on_failure: {run: x, retry: {attempts: 2}}",
	} {
		h := mustParse(t, head+change+"}\n").Hash
		assert.NotContains(t, seen, h, change)
		seen[h] = change
	}
	one, list := mustParse(t, head+", after: {job: b}}\n"), mustParse(t, head+", after: [{on: success, job: b}]}\n")
	assert.Equal(t, one.Hash, list.Hash, "two ways of writing the same")
	plain := mustParse(t, head+"}\n")
	assert.NotEqual(t, plain.JobHashes["a"], one.JobHashes["a"])
	hooked := mustParse(t, head+", on_failure: {run: x}}\n")
	assert.Equal(t, plain.JobHashes["a"], hooked.JobHashes["a"], "a hook is a definition of its own")
	assert.Contains(t, hooked.JobHashes, "a#on_failure")
}

// TestTheChainsOfTheDocumentation: what the page shows can be copied.
func TestTheChainsOfTheDocumentation(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "## Chains and hooks")
	require.True(t, found)
	_, rest, found = strings.Cut(rest, "```yaml\n")
	require.True(t, found)
	text, _, _ := strings.Cut(rest, "```")
	names := []string{}
	for _, j := range mustParse(t, text).Jobs {
		names = append(names, j.Name)
	}
	assert.Equal(t, []string{"extract:customers", "extract:orders", "load", "load#on_failure"}, names)
}

// TestChainsEndInTime: a file of chains and circles is read in time that grows with the file.
func TestChainsEndInTime(t *testing.T) {
	t.Parallel()
	const count = 3000
	var long, circles strings.Builder
	long.WriteString("jobs:\n  j0: {schedule: \"@daily\", run: x}\n")
	circles.WriteString("jobs:\n  j0: {after: {job: j1}, run: x}\n")
	for i := 1; i < count; i++ {
		long.WriteString("  j" + strconv.Itoa(i) + ": {after: {job: j" + strconv.Itoa(i-1) + "}, run: x}\n")
		up, down := strconv.Itoa(i-1), strconv.Itoa((i+1)%count)
		circles.WriteString("  j" + strconv.Itoa(i) + ": {after: [{job: j" + up + "}, {job: j" + down + "}], run: x}\n")
	}
	assert.Len(t, mustParse(t, long.String()).Jobs, count)
	_, err := Parse("f.yaml", []byte(circles.String()), Options{})
	var report *Errors
	require.ErrorAs(t, err, &report)
	for _, p := range report.Problems {
		assert.Equal(t, jobs.CodeAfterCycle, p.Code)
		assert.Less(t, len(p.Message), 1000)
	}
}
