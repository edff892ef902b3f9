package configs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheReferencePageIsTheTables(t *testing.T) {
	t.Parallel()
	const page = "../docs/configuration.md"
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(reference()), 0o644)) //nolint:gosec // documentation
	}
	have, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Equal(t, reference(), string(have), "go test ./configs -update")
}

// reference is the reference page of all keys, in Markdown, from the same tables that the loader reads by.
func reference() string {
	var b strings.Builder
	b.WriteString(referenceIntro)
	section(&b, "Daemon", "", daemonFields())
	section(&b, "database", "database.", databaseFields())
	section(&b, "auth", "auth.", authFields())
	section(&b, "An item of auth.tokens", "", tokenFields())
	section(&b, "tls", "tls.", tlsFields())
	section(&b, "lock", "lock.", lockFields())
	section(&b, "log", "log.", logFields())
	section(&b, "history", "history.", historyFields(true))
	section(&b, "tracing", "tracing.", tracingFields())
	section(&b, "An item of channels: one of", "", channelFields())
	section(&b, "webhook of a channel", "webhook.", webhookFields())
	section(&b, "slack of a channel", "slack.", slackFields())
	section(&b, "email of a channel", "email.", emailFields())
	section(&b, "An item of calendars", "", calendarFields())
	section(&b, "A job", "", jobFields())
	section(&b, "calendars of a job", "calendars.", calendarsFields())
	section(&b, "An item of calendars.blackout", "", blackoutFields())
	section(&b, "after of a job, or an item of it", "after.", afterFields())
	section(&b, "on_success, on_failure and on_abort of a job", "on_failure.", hookFields())
	section(&b, "An item of params", "", paramFields())
	section(&b, "notify", "notify.", notifyFields())
	section(&b, "history of a job", "history.", historyFields(false))
	section(&b, "retry", "retry.", retryFields())
	section(&b, "exit_codes", "exit_codes.", exitCodeFields())
	section(&b, "catch_up", "catch_up.", catchUpFields())
	section(&b, "http", "http.", httpFields())
	section(&b, "http.expect", "http.expect.", expectFields())
	section(&b, "sql", "sql.", sqlFields())
	section(&b, "An item of databases", "", targetDatabaseFields())
	b.WriteString(referenceNotes)
	return b.String()
}

func section[T any](b *strings.Builder, title, prefix string, fields []field[T]) {
	fmt.Fprintf(b, "\n## %s\n\n| key | default | |\n|---|---|---|\n", title)
	for _, f := range fields {
		doc := f.doc
		if f.env != "" {
			doc += " Also `" + f.env + "`."
		}
		if f.shared {
			doc += " May be in `defaults`."
		}
		initial := ""
		if f.initial != "" {
			initial = "`" + f.initial + "`"
		}
		fmt.Fprintf(b, "| `%s%s` | %s | %s |\n", prefix, f.key, initial, strings.ReplaceAll(doc, "|", `\|`))
	}
}

const referenceIntro = `# Configuration

One YAML file, ` + "`cronlatch.yaml`" + ` unless ` + "`--config`" + ` or ` + "`CRONLATCH_CONFIG`" + ` says otherwise. Unknown keys are errors;
` + "`cronlatch validate`" + ` reports every problem at once, with line and column. A flag of ` + "`serve`" + ` goes before the environment, and
that before the file. Durations are Go's plus ` + "`d`" + ` and ` + "`w`" + `: ` + "`90s`, `12h`, `3d`" + `.

This page is made from the tables that the loader reads by (` + "`go test ./configs -update`" + `), and so is the JSON Schema (draft-07) that
` + "`cronlatch init` writes beside the file and `cronlatch schema`" + ` prints. Editors complete and check by it when the first line is
` + "`# yaml-language-server: $schema=./cronlatch.schema.json`" + `. What the schema refuses, the loader refuses; the loader sees more.
`

const referenceNotes = `
## Included files

` + "`include: [jobs.d/*.yaml, more.yaml]`" + ` reads further files with jobs. Names and patterns (` + "`*`, `?`, `[a-z]`" + `; in one folder, no ` + "`**`" + `) start at
the file that includes them. The matches of a pattern are read in the order of their names, those that begin with a dot are not,
and there may be none; a file that is named and not there is an error, and so is one that includes itself. A file is read once.

An included file has ` + "`version`, `include`, `defaults` and `jobs`" + `; the daemon's keys, ` + "`calendars`, `limits` and `databases`" + ` stand in the
configuration itself and are there for all. Its jobs start from the ` + "`defaults`" + ` of the file that includes it and then from its own, which no
other file sees. Names of jobs are unique over all files. Everything else that is relative (` + "`sql.file`, `${file:...}`" + `, where a command
runs) starts at the configuration, wherever it is written. Anchors end with their file.

A daemon follows included files and their folders as it follows the configuration: a change, a new file or one that is gone reloads all
of them, or nothing. At most 200 files, 8 MiB together, 8 deep.

## Warnings

` + "`cronlatch validate`" + ` warns of what is right and probably not meant; ` + "`--strict`" + ` makes that a failure. Nothing else looks at it.

| code | |
|---|---|
| ` + "`field-count`" + ` | a field more or less: ` + "`* 2 * * *`" + ` fires 60 times, ` + "`0 0 2 * * *` with `seconds: true`" + ` needs no second |
| ` + "`uneven-step`" + ` | a step that does not divide its range and starts again too early: ` + "`*/7`" + ` minutes has 4 minutes between :56 and :00, ` + "`*/2`" + ` days comes on the 31st and on the 1st |
| ` + "`day-fields`" + ` | day of month and day of week both restricted, and no ` + "`day_match`" + ` that says how they go together |
| ` + "`clock-change`" + ` | fires twice, or not at all, when the clocks of its zone change in the coming year, with the dates. Fixed schedules do as ` + "`dst`" + ` says, and are not among them |
| ` + "`plain-secret`" + ` | a secret that the file itself holds |
| ` + "`in-shell`" + ` | a parameter in the text of a shell, ` + "`[sh, -c, \"x {{ .Params.y }}\"]`" + `, which reads it as commands |
| ` + "`needs-root`" + ` | ` + "`user`" + `, and who checks is not root |
| ` + "`busy-minute`" + ` | more than five jobs without jitter due in one minute of the coming week. Jobs that run every hour do not count |

## Replacements

- ` + "`${VAR}`, `${VAR:-default}`, `${VAR:?message}` and `${file:path}`" + ` are replaced once in scalar values, after parsing; never
  in keys, ` + "`command`, `run`, `sql.statement`, `http.expect.body` and `after.job`, `user` and `pattern`" + ` of a parameter. An unset (or empty) variable is an error unless it has a default. ` + "`$$`" + ` is a dollar.
- ` + "`{{ .Period }}`, `{{ .ScheduledAt }}`, `{{ .Resource }}` and `{{ .Params.NAME }}`" + ` are replaced inside an element of ` + "`command`" + `, which is never split
  again; in ` + "`http.url`" + ` (after the host, percent-encoded), ` + "`http.headers` and `http.body`" + ` (as they are); and in ` + "`sql.statement`" + ` and the
  file of ` + "`sql.file`" + `, outside of quotes, as a text in quotes: ` + "`WHERE month = {{ .Period }}`" + `. ` + "`{{ \"{{\" }}`" + ` is two literal braces. ` + "`.Period`" + ` is the date part of the resource.
- In ` + "`resource`, `YYYY`, `MM`, `DD`, `HH` and `mm`" + ` count when ` + "`YYYY`" + ` is among them and they stand between non-letters (or
  together, as in ` + "`YYYYMMDD`" + `). They are filled from the scheduled instant in the job's zone; ` + "`resource_offset: -1mo`" + `
  counts from the first of the month, ` + "`d`, `w` and `y`" + ` from the day.

## Parameters, secrets, accounts

A run that is asked for may be given the ` + "`params`" + ` that its job declares, and nothing else. What is unknown, missing, of another type, does not
match ` + "`pattern`" + ` as a whole or is not in ` + "`enum`" + `, holds a NUL character or begins with ` + "`-`" + ` (unless ` + "`leading_dash`" + `) is refused, when the run is asked
for and once more when it starts; 4 KiB each, 32 KiB together. A command gets ` + "`CRONLATCH_PARAM_<NAME>`" + `, in capitals and with _ for -, and ` + "`{{ .Params.NAME }}`" + `
in an element of ` + "`command`" + `. In ` + "`http.body`" + ` a parameter stands as it is: give it a ` + "`pattern`" + ` that leaves out what the format of the body needs.

What ` + "`secrets`, `ping`, addresses and passwords of `channels` and `tracing.headers`" + ` hold is not shown by the API, in logs, messages or snippets; the hash of the definitions has a
fingerprint of it, so that replicas with another secret are visible. A file of ` + "`${file:...}`" + ` is followed like the configuration. Where a job's output
has one of its secrets of 6 bytes or more, as it is, in base64 or as in a URL, *** is kept in its place. That is best effort: what a command encodes in another way is not
found. What ` + "`validate`" + ` shows of a line leaves out, too, what is under a key that nobody knows, passwords in addresses and behind names like ` + "`PGPASSWORD`" + `; and, in a file that
cannot be read at all (YAML, or none), every value but those of known keys that hold no secret.

` + "`user`" + ` makes a command run as that account, with its groups, ` + "`HOME`, `USER` and `LOGNAME`" + `, and without a way back (no_new_privs). The working directory is entered before. Root has to be
allowed by ` + "`allow_root: true`" + `. When the daemon is not root, or the account is not there, each run fails with the reason ` + "`start`" + `.

## Schedules

Five fields: minute, hour, day of month, month, day of week; with ` + "`seconds: true`" + ` six, the second first. Lists, ranges, steps, names
(` + "`MON`, `monday`, `jan`" + `), 7 as Sunday, ranges that wrap (` + "`22-2`, `FRI-MON`" + `), ` + "`@hourly`" + ` and its kin, ` + "`@every 15m`" + ` (counted from 1970,
so that all replicas mean the same instants). Day of month and day of week both restricted: either matches, or both must with
` + "`day_match: all`" + `; ` + "`*/n`" + ` counts as restricted. A list of schedules is the instants of all of them, each once.

| | |
|---|---|
| ` + "`H`, `H(0-29)`, `H/15`, `H(0-29)/10`" + ` | a value (or the first of a step) that the job's name picks, always the same for the same name and field; ` + "`H`" + ` as day of month is 1 to 28 |
| ` + "`L`, `L-3`" + ` as day of month | the last day, three days before it |
| ` + "`15W`, `LW`, `L-3W`" + ` as day of month | the day from Monday to Friday nearest to it, in the same month; a month without a 31st has no ` + "`31W`" + ` |
| ` + "`5L`, `FRIL`" + ` as day of week | the last Friday of the month |
| ` + "`MON#2`, `1#2`" + ` as day of week | the second Monday of the month; there is not always a fifth |

What never fires is an error: ` + "`0 0 30 2 *`, `MON#6`, `L-31`" + `, or what calendars and bounds leave nothing of.

` + "`dst`" + ` is for *fixed* schedules, those without ` + "`*`" + `, range or step in hour and minute: ` + "`once`" + ` runs a missing local time at the
first instant after the gap and a doubled one the first time only; ` + "`skip`" + ` does not make up for a missing one; ` + "`both`" + ` runs a
doubled one twice. Other schedules follow elapsed time.

` + "`jitter: 2m`" + ` makes a run due up to two minutes after its instant, always as much for the same job and instant; its name, the
resource and the date that it reports on stay the instant's. A jitter that is longer than the shortest time between two instants is an
error: a run that is due later could be overtaken by the next one.

## Calendars

` + "`calendars`" + ` at the top of the file names sets of dates; ` + "`calendars`" + ` in a job says what its schedule does with them:

` + "```yaml" + `
calendars:
  holidays: {dates: [2026-04-03, "12-25", "12-26"], file: holidays.ics}
  weekend: {weekdays: [sat, sun]}
jobs:
  payroll:
    schedule: "0 6 L * *"
    calendars: {exclude: [holidays, weekend], shift: previous}
    command: [payroll]
` + "```" + `

The date that counts is that of the schedule's local time. An excluded date has no instants: they are dropped, or with ` + "`shift`" + ` they
move to the ` + "`next` or `previous`" + ` date that is not excluded, by at most 366 days, at the same local time, to which ` + "`dst`" + ` applies
there; two that fall together are one. ` + "`@every`" + ` has no time of day to move, so it only drops. Blackouts and the bounds ` + "`from` and `until`" + `
look at where an instant ends up. An instant in a blackout is as if the schedule did not have it: it is not made up for.

A calendar file is iCalendar with whole days: ` + "`DTSTART;VALUE=DATE`, `DTEND;VALUE=DATE`" + ` and at most ` + "`RRULE:FREQ=YEARLY`" + `. What
else would change its dates is an error that names the line. The file is read together with the configuration, and its dates are
part of the definitions' hash: replicas with different files are visible. A schedule whose dates change is planned anew from then on.
`
