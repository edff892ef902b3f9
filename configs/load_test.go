package configs

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

func mustParse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("f.yaml", []byte(text), fixtureOptions())
	require.NoError(t, err)
	return c
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c := mustParse(t, "jobs:\n  a: {run: date}\n")
	assert.Equal(t, &Config{
		Path: "f.yaml", Dir: ".", Version: 1, Listen: "127.0.0.1:8420", Auth: Auth{TokenFile: DefaultTokenFile},
		Lock: Lock{TTL: 30 * time.Second, KeepFor: 7 * 24 * time.Hour}, Capacity: 16, DrainTimeout: 30 * time.Second,
		Log: Log{Level: "info", Format: LogAuto}, Jobs: c.Jobs, History: jobs.History{Keep: 100, KeepFor: 90 * 24 * time.Hour}, JobHashes: c.JobHashes, Hash: c.Hash,
	}, c)
	job, err := c.Job("a")
	require.NoError(t, err)
	assert.Equal(t, &jobs.Job{
		Name: "a", Resource: job.Resource, Run: "date", KillAfter: jobs.DefaultKillAfter,
		StartDeadline: jobs.DefaultStartDeadline, Overlap: jobs.OverlapSkip, OnLost: jobs.OnLostFail, Enabled: true,
		CatchUp: jobs.CatchUp{Policy: jobs.CatchUpLatest, Window: jobs.DefaultCatchUpWindow, Max: jobs.DefaultCatchUpMax},
		Retry:   jobs.Retry{Attempts: 1, Delay: 10 * time.Second, Backoff: jobs.BackoffExponential, MaxDelay: time.Hour},
		OncePer: jobs.OncePerOccurrence,
	}, job)
	assert.Equal(t, "a", job.Resource.At(time.Now()))
}

func TestEverything(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/good/everything.yaml")
	require.NoError(t, err)
	c := mustParse(t, string(data))
	assert.Equal(t, "postgres://u:p@db.example.com/cronlatch", c.Database.URL)
	assert.Equal(t, Lock{TTL: time.Minute, TakeoverGrace: time.Second, KeepFor: 7 * 24 * time.Hour}, c.Lock)
	assert.Equal(t, Log{Level: "debug", Format: LogJSON}, c.Log)
	assert.Equal(t, 90*time.Second, c.DrainTimeout)

	full, err := c.Job("full")
	require.NoError(t, err)
	assert.Equal(t, "Costs: $5", full.Description)
	assert.Equal(t, []string{"/bin/report", "", "${NOT_REPLACED}", "{{ .Period }}"}, full.Command)
	assert.Equal(t, map[string]string{"TEAM": "ops", "REGION": "us", "PASSWORD": canary, "HOST": "db", "EMPTY": ""}, full.Env)
	assert.Equal(t, jobs.CatchUp{Policy: jobs.CatchUpNone, Window: 7 * 24 * time.Hour, Max: 10}, full.CatchUp)
	assert.Equal(t, "America/New_York", full.Schedule.Location().String())
	assert.Equal(t, "r-2026-05", full.Resource.At(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)))
	assert.Zero(t, full.Timeout)
	assert.Zero(t, full.KillAfter)
	assert.Equal(t, 24*time.Hour, full.StartDeadline)
	assert.False(t, full.Enabled)

	plain, err := c.Job("plain")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"TEAM": "ops", "REGION": "eu"}, plain.Env)
	assert.Equal(t, 30*time.Minute, plain.Timeout)
	assert.Equal(t, 5*time.Second, plain.KillAfter)
	assert.Equal(t, jobs.OverlapQueue, plain.Overlap)
	assert.Equal(t, jobs.OnLostHold, plain.OnLost)
	assert.Equal(t, 2*time.Hour, plain.StartDeadline)
	assert.Equal(t, jobs.CatchUp{Policy: jobs.CatchUpAll, Window: time.Hour, Max: 10}, plain.CatchUp)
	assert.Nil(t, plain.Schedule)
}

func TestAnchorsAndMerges(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/good/anchors.yaml")
	require.NoError(t, err)
	c := mustParse(t, string(data))
	timeouts := map[string]time.Duration{}
	for _, job := range c.Jobs {
		assert.Equal(t, "date", job.Run)
		assert.Equal(t, map[string]string{"A": "x"}, job.Env)
		timeouts[job.Name] = job.Timeout
	}
	assert.Equal(t, map[string]time.Duration{"a": time.Minute, "b": 2 * time.Minute, "c": 3 * time.Minute, "d": time.Minute}, timeouts)
}

// TestWindowsLineEnds: a shell would choke on carriage returns.
func TestWindowsLineEnds(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/good/windows.yaml")
	require.NoError(t, err)
	require.Contains(t, string(data), "\r\n")
	assert.Equal(t, "x\ny\n", mustParse(t, string(data)).Jobs[0].Run)
}

func TestVariables(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/good/variables.yaml")
	require.NoError(t, err)
	c := mustParse(t, string(data))
	assert.Equal(t, 8080, c.Capacity)
	assert.Equal(t, 8080*time.Second, c.DrainTimeout)
	job, err := c.Job("${PORT}") // never in keys
	require.NoError(t, err)
	assert.Equal(t, "echo ${PORT} $$", job.Run) // never in run
	assert.False(t, job.Enabled)
}

// TestVariablesAreReplacedOnce: what a variable holds is not looked at again.
func TestVariablesAreReplacedOnce(t *testing.T) {
	t.Parallel()
	env := map[string]string{"A": "${B} $$ {{ .Period }}", "B": "no"}
	c, err := Parse("f", []byte("jobs:\n  a: {run: x, env: {V: \"${A}-$$-$-${C:-$}\"}}\n"), Options{Getenv: func(n string) string { return env[n] }})
	require.NoError(t, err)
	assert.Equal(t, "${B} $$ {{ .Period }}-$-$-$", c.Jobs[0].Env["V"])
}

func TestRelativeFilesStartAtTheConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "c.yaml")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("s\r\n"), 0o600))
	require.NoError(t, os.WriteFile(path, []byte("jobs:\n  a: {run: x, env: {S: \"${file:secret}\"}}\n"), 0o600))
	c, err := Load(path, Options{})
	require.NoError(t, err)
	assert.Equal(t, "s", c.Jobs[0].Env["S"])
	assert.Equal(t, dir, c.Dir)
	assert.Equal(t, path, c.Path)
}

func TestLoadWithoutFile(t *testing.T) {
	t.Parallel()
	_, err := Load(filepath.Join(t.TempDir(), "none.yaml"), Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "read configuration: open ")
	_, err = Load(t.TempDir(), Options{})
	require.ErrorContains(t, err, "is a directory")
}

func TestOverlay(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"CRONLATCH_LISTEN": "0.0.0.0:1", "CRONLATCH_CAPACITY": "3", "CRONLATCH_LOCK_TTL": "2m", "CRONLATCH_LOCK_TAKEOVER_GRACE": "1s",
		"CRONLATCH_DRAIN_TIMEOUT": "1d", "CRONLATCH_LOG_LEVEL": "error", "CRONLATCH_LOG_FORMAT": "console", "CRONLATCH_AUTH": "none",
	}
	o := Options{
		Getenv: func(n string) string { return env[n] },
		Flags:  map[string]string{"listen": "127.0.0.1:2", "database.url": "sqlite:x.db", "log.level": ""},
	}
	c, err := Parse("f", []byte("listen: 127.0.0.1:3\ncapacity: 5\njobs: {}\n"), o)
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1:2", c.Listen, "the flag goes before the variable")
	assert.Equal(t, 3, c.Capacity, "the variable goes before the file")
	assert.Equal(t, Lock{TTL: 2 * time.Minute, TakeoverGrace: time.Second, KeepFor: 7 * 24 * time.Hour}, c.Lock)
	assert.Equal(t, 24*time.Hour, c.DrainTimeout)
	assert.Equal(t, Log{Level: "error", Format: LogConsole}, c.Log)
	assert.Equal(t, "sqlite:x.db", c.Database.URL)
}

func TestOverlayProblems(t *testing.T) {
	t.Parallel()
	env := map[string]string{"CRONLATCH_CAPACITY": "many", "CRONLATCH_LOCK_TTL": "1ms", "CRONLATCH_DRAIN_TIMEOUT": "30"}
	o := Options{Getenv: func(n string) string { return env[n] }, Flags: map[string]string{"listen": "x", "lock.takeover_grace": "-1s", "nope": "1"}}
	_, err := Parse("f.yaml", []byte("capacity: 0\njobs: {}\n"), o)
	require.EqualError(t, err, strings.TrimSpace(`
--listen: "x" is not an address to listen on: write host:port, for example 127.0.0.1:8420 or [::1]:8420  [listen]
--lock-takeover-grace: lock.takeover_grace must be at least 0s, not -1s  [range]
--nope: there is no key "nope"  [unknown-key]
CRONLATCH_CAPACITY: capacity must be a whole number, not the text "many"  [type]
CRONLATCH_DRAIN_TIMEOUT: drain_timeout: "30" is not a duration; write for example 30s, 5m, 1h30m or 2d  [duration]
CRONLATCH_LOCK_TTL: lock.ttl must be at least 1s, not 1ms  [range]
f.yaml:1:11: capacity must be from 1 to 10000, not 0  [range]
    1 | capacity: 0
      |           ^
7 errors in 1 file and the environment and the flags. Nothing was loaded.`))
}

// TestVariablesInTheEnvironmentAreNotReplaced: ${...} belongs to the file.
func TestVariablesInTheEnvironmentAreNotReplaced(t *testing.T) {
	t.Parallel()
	_, err := Parse("f", []byte("jobs: {}\n"), Options{Flags: map[string]string{"log.level": "${SECRET}"}})
	require.ErrorContains(t, err, `--log-level: log.level must be debug, info, warn or error, not "${SECRET}"`)
}

func TestUnknownJob(t *testing.T) {
	t.Parallel()
	c := mustParse(t, "jobs:\n  backup-db: {run: x}\n  report: {run: x}\n")
	_, err := c.Job("backupdb")
	require.ErrorIs(t, err, ErrUnknownJob)
	require.EqualError(t, err, `unknown job "backupdb" in f.yaml, did you mean "backup-db"?`)
	_, err = c.Job("zzz")
	require.EqualError(t, err, `unknown job "zzz" in f.yaml`)
}

func TestDatabaseURLIsHidden(t *testing.T) {
	t.Parallel()
	c := mustParse(t, "database: {url: \"postgres://u:"+canary+"@h/d\"}\njobs: {}\n")
	text, err := json.Marshal(c)
	require.NoError(t, err)
	for _, printed := range []string{string(text), fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", *c), c.Database.String()} {
		assert.NotContains(t, printed, canary)
		assert.Contains(t, printed, "***")
	}
}

func TestHash(t *testing.T) {
	t.Parallel()
	const base = "jobs:\n  a: {schedule: \"@daily\", run: date, env: {A: \"1\", B: \"2\"}, tags: [x]}\n  b: {run: date}\n"
	want := mustParse(t, base).Hash
	assert.Len(t, want, 64)
	same := []string{
		"version: 1\n" + base,
		"capacity: 3\nlisten: \"127.0.0.1:1\"\n" + base, // not a definition
		"jobs:\n  b:\n    run: \"date\"\n  a:\n    env:\n      B: '2'\n      A: \"1\"\n    tags: [\"x\"]\n    run: date\n    schedule: '@daily'\n    timezone: UTC\n    timeout: 0s\n",
	}
	for _, text := range same {
		assert.Equal(t, want, mustParse(t, text).Hash, text)
	}
	assert.NotEqual(t, hash("2025c", nil), hash("2025d", nil))
	changes := []string{
		"run: date", "run: date -u", "run: date, schedule: \"@hourly\"", "run: date, timezone: Europe/Berlin", "run: date, dst: skip, schedule: \"0 2 * * *\"",
		"run: date, dst: both, schedule: \"0 2 * * *\"", "run: date, seconds: true, schedule: \"0 0 2 * * *\"", "command: [date]",
		"command: [date, \"\"]", "run: date, env: {A: \"1\"}", "run: date, timeout: 1m", "run: date, kill_after: 1m", "run: date, start_deadline: 1m",
		"run: date, resource: x", "run: date, resource: x-YYYY", "run: date, resource: x-YYYY, resource_offset: -1y",
		"run: date, overlap: queue", "run: date, catch_up: {policy: all}", "run: date, catch_up: {window: 2h}", "run: date, catch_up: {max: 2}",
		"run: date, on_lost: hold", "run: date, enabled: false", "run: date, description: d", "run: date, tags: [t]",
	}
	seen := map[string]string{}
	for _, change := range changes {
		h := mustParse(t, "jobs:\n  a: {"+change+"}\n").Hash
		assert.Empty(t, seen[h], change)
		seen[h] = change
	}
}

// TestNamesAreLiteral: the job report:monthly-YYYY-MM is one job, whose default resource has a date.
func TestNamesAreLiteral(t *testing.T) {
	t.Parallel()
	c := mustParse(t, "jobs:\n  report:monthly-YYYY-MM: {command: [x, \"{{ .Period }}\"]}\n  ' padded ': {run: x}\n")
	job, err := c.Job("report:monthly-YYYY-MM")
	require.NoError(t, err)
	assert.Equal(t, "report:monthly-2026-05", job.Resource.At(time.Date(2026, 5, 3, 0, 0, 0, 0, time.UTC)))
	_, err = c.Job(" padded ")
	assert.NoError(t, err)
}

func TestJobsMayShareAResource(t *testing.T) {
	t.Parallel()
	c := mustParse(t, "jobs:\n  a: {run: x, resource: db/orders}\n  b: {run: x, resource: db/orders}\n")
	assert.Equal(t, c.Jobs[0].Resource.String(), c.Jobs[1].Resource.String())
}
