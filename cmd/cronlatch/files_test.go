package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const noFile = "cronlatch: there is no configuration file DIR/cronlatch.yaml\n" +
	"cronlatch: `cronlatch init` writes one; --config or CRONLATCH_CONFIG names another\n"

const noDatabase = "cronlatch: nothing says where the database is: there is no configuration file DIR/cronlatch.yaml\n" +
	"cronlatch: DATABASE_URL or --database-url names a database (postgres://... or sqlite:PATH), --config a configuration; `cronlatch init` writes one\n"

// Every command that needs the file says how to get one.
func TestWithoutAConfiguration(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"validate", "jobs list", "next backup:db", "run backup:db", "serve"} {
		newWorld(t).run(t, strings.Fields(line)...).says(t, exitConfig, "", noFile)
	}
	for _, line := range []string{
		"runs list", "lock deploy -- true", "locks list", "locks show a", "token list", "migrate up", "migrate status",
	} {
		newWorld(t).run(t, strings.Fields(line)...).says(t, exitConfig, "", noDatabase)
	}
	w := newWorld(t)
	w.env["CRONLATCH_CONFIG"] = "other.yaml"
	assert.Contains(t, w.run(t, "validate").errors, "no configuration file DIR/other.yaml")
	assert.Contains(t, w.run(t, "validate", "--config", "third.yaml").errors, "no configuration file DIR/third.yaml", "the flag wins")
	w.file(t, "other.yaml", "jobs: {}")
	assert.Equal(t, exitOK, w.run(t, "validate").code)
}

func TestInitThenValidate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.run(t, "init")
	assert.Equal(t, exitOK, got.code)
	assert.Empty(t, got.out)
	assert.Contains(t, got.errors, "cronlatch: wrote DIR/cronlatch.yaml")

	good := w.run(t, "validate")
	assert.Equal(t, exitOK, good.code)
	assert.Contains(t, good.out, "report:monthly")
	assert.Equal(t, "cronlatch: DIR/cronlatch.yaml: valid, 2 jobs\n", good.errors)
}

func TestInitNeverOverwrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, "mine")
	got := w.run(t, "init")
	assert.Equal(t, exitFailure, got.code)
	assert.Contains(t, got.errors, "cronlatch: DIR/cronlatch.yaml is already there, and nothing was written")
	text, err := os.ReadFile(filepath.Join(w.dir, "cronlatch.yaml"))
	require.NoError(t, err)
	assert.Equal(t, "mine", string(text))

	other := w.run(t, "init", "elsewhere")
	assert.Equal(t, exitOK, other.code)
	assert.FileExists(t, filepath.Join(w.dir, "elsewhere", "cronlatch.yaml"))
}

func TestInitIntoAFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.file(t, "taken", "")
	got := w.run(t, "init", "taken")
	assert.Equal(t, exitFailure, got.code)
	assert.NotEmpty(t, got.errors)
}

func TestValidate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, twoJobs)
	w.run(t, "validate").says(t, exitOK, ""+
		"JOB                     SCHEDULE    ZONE              NEXT                                    DESCRIPTION\n"+
		"backup:db               30 2 * * *  America/New_York  Sun 2026-03-08 03:00:00 -04:00 (in 2h)  Nightly\\x1b[2J backup\n"+
		"by-hand                 by hand                       `cronlatch run by-hand`\n"+
		"report:monthly-YYYY-MM  0 6 1 * *   UTC               disabled\n",
		"cronlatch: DIR/cronlatch.yaml: valid, 3 jobs\n")
	w.run(t, "validate", "-o", "json").says(t, exitOK, "[]\n", "")
	w.run(t, "validate", "-o", "github").says(t, exitOK, "", "")
}

// All problems of all files are in one answer.
func TestValidateReportsEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.file(t, "a.yaml", "jobs:\n  x:\n    schedul: \"0 2 * * *\"\n    run: \"true\"\n")
	w.file(t, "b.yaml", "jobs:\n  y:\n    schedule: \"61 * * * *\"\n    run: \"true\"\n    oops: 1\n")
	w.file(t, "good.yaml", "jobs: {}\n")

	text := w.run(t, "validate", "a.yaml", "good.yaml", "b.yaml")
	text.says(t, exitConfig, "", `DIR/a.yaml:3:5: unknown key "schedul" in job "x", did you mean "schedule"?  [unknown-key]
    3 |     schedul: "0 2 * * *"
      |     ^~~~~~~
DIR/b.yaml:3:16: minute 61 is outside 0-59 in "61 * * * *"  [schedule]
    3 |     schedule: "61 * * * *"
      |                ^~
DIR/b.yaml:5:5: unknown key "oops" in job "y"  [unknown-key]
    5 |     oops: *
      |     ^~~~
3 errors in 2 files. Nothing was loaded.
`)
	json := w.run(t, "validate", "a.yaml", "b.yaml", "-o", "json")
	assert.Equal(t, exitConfig, json.code)
	assert.Empty(t, json.errors)
	assert.Equal(t, 3, strings.Count(json.out, `"code"`))

	github := w.run(t, "validate", "a.yaml", "b.yaml", "-o", "github")
	assert.Equal(t, exitConfig, github.code)
	assert.Equal(t, 3, strings.Count(github.out, "::error file="))
	assert.Empty(t, github.errors)
}

func TestABrokenFileStopsOtherCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, "jobs: {x: {run: 'true', oops: 1}}")
	for _, line := range []string{"jobs list", "next x", "run x", "serve", "runs list"} {
		got := w.run(t, strings.Fields(line)...)
		assert.Equal(t, exitConfig, got.code, line)
		assert.Contains(t, got.errors, "DIR/cronlatch.yaml:1:", line)
		assert.Contains(t, got.errors, "[unknown-key]", line)
		assert.Empty(t, got.out)
	}
	const without = "cronlatch: only the database is asked of the file here: --database-url or DATABASE_URL names it, --server or CRONLATCH_SERVER a daemon\n"
	for _, line := range []string{"runs list", "explain x", "locks list"} { // a daemon runs with its last good file, and somebody asks it at night
		assert.Contains(t, w.run(t, strings.Fields(line)...).errors, "Nothing was loaded.\n"+without, line)
	}
	assert.NotContains(t, w.run(t, "serve").errors, without)
}

func TestJobsList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, twoJobs)
	w.run(t, "jobs", "list", "--tag", "ops", "-o", "name").says(t, exitOK, "backup:db\nreport:monthly-YYYY-MM\n", "")
	w.run(t, "jobs", "list", "--tag", "none", "-o", "json").says(t, exitOK, "[]\n", "cronlatch: no jobs in DIR/cronlatch.yaml have this tag\n")
	assert.Contains(t, w.run(t, "jobs", "list").out, `Nightly\x1b[2J backup`)

	w.run(t, "jobs", "list", "-o", "json").says(t, exitOK, `[
  {
    "name": "backup:db",
    "description": "Nightly\u001b[2J backup",
    "tags": [
      "ops"
    ],
    "schedule": "30 2 * * *",
    "timezone": "America/New_York",
    "after": [],
    "hook_of": null,
    "enabled": true,
    "resource": "backup:db",
    "next": "2026-03-08T07:00:00Z",
    "overlap": "queue",
    "catch_up": {
      "policy": "latest",
      "window": "1h",
      "max": 100
    },
    "on_lost": "fail",
    "timeout": "1h30m",
    "kill_after": "10s",
    "start_deadline": "1h",
    "max_age": null,
    "only_on": null,
    "defined": true,
    "schedule_limits": null,
    "jitter": null,
    "late_after": null,
    "once_per": "occurrence",
    "attempts": 1,
    "limits": {},
    "kind": "run",
    "env": [],
    "secrets": [],
    "params": [],
    "state": null
  },
  {
    "name": "by-hand",
    "description": "",
    "tags": [],
    "schedule": null,
    "timezone": null,
    "after": [],
    "hook_of": null,
    "enabled": true,
    "resource": "by-hand",
    "next": null,
    "overlap": "skip",
    "catch_up": {
      "policy": "latest",
      "window": "1h",
      "max": 100
    },
    "on_lost": "fail",
    "timeout": null,
    "kill_after": "10s",
    "start_deadline": "1h",
    "max_age": null,
    "only_on": null,
    "defined": true,
    "schedule_limits": null,
    "jitter": null,
    "late_after": null,
    "once_per": "occurrence",
    "attempts": 1,
    "limits": {},
    "kind": "run",
    "env": [],
    "secrets": [],
    "params": [],
    "state": null
  },
  {
    "name": "report:monthly-YYYY-MM",
    "description": "",
    "tags": [
      "finance",
      "ops"
    ],
    "schedule": "0 6 1 * *",
    "timezone": "UTC",
    "after": [],
    "hook_of": null,
    "enabled": false,
    "resource": "report:monthly-YYYY-MM",
    "next": null,
    "overlap": "skip",
    "catch_up": {
      "policy": "latest",
      "window": "1h",
      "max": 100
    },
    "on_lost": "hold",
    "timeout": null,
    "kill_after": "10s",
    "start_deadline": "1h",
    "max_age": null,
    "only_on": null,
    "defined": true,
    "schedule_limits": null,
    "jitter": null,
    "late_after": null,
    "once_per": "occurrence",
    "attempts": 1,
    "limits": {},
    "kind": "command",
    "env": [],
    "secrets": [],
    "params": [],
    "state": null
  }
]
`, "")
}

func TestColorOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, twoJobs)
	assert.NotContains(t, w.run(t, "jobs", "list").out, "\x1b", "auto, and no terminal")
	assert.Contains(t, w.run(t, "jobs", "list", "--color", "always").out, "\x1b[1mJOB")
	assert.NotContains(t, w.run(t, "jobs", "list", "--color", "always", "-o", "json").out, "\x1b")
	assert.NotContains(t, w.run(t, "jobs", "list", "--color", "never").out, "\x1b")
}

func TestDurationText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"1h30m0s": "1h30m", "1h0m0s": "1h", "10s": "10s", "1m0s": "1m", "20m0s": "20m", "1h0m5s": "1h0m5s", "0s": "0s"} {
		assert.Equal(t, want, durationText(parse(t, in)), in)
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"0s": "0s", "34567us": "35ms", "1234ms": "1.2s", "59600ms": "1m", "125s": "2m5s", "3600s": "1h", "26h": "1d2h", "1000h": "41d16h", "48h30m": "2d",
	} {
		assert.Equal(t, want, span(parse(t, in)), in)
	}
	assert.Equal(t, "in 1m", relative(parse(t, "1m")))
	assert.Equal(t, "5s ago", relative(parse(t, "-5s")))
}
