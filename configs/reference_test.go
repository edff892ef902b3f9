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
	section(&b, "A job", "", jobFields())
	section(&b, "catch_up", "catch_up.", catchUpFields())
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

This page is made from the tables that the loader reads by (` + "`go test ./configs -update`" + `).
`

const referenceNotes = `
## Replacements

- ` + "`${VAR}`, `${VAR:-default}`, `${VAR:?message}` and `${file:path}`" + ` are replaced once in scalar values, after parsing; never
  in keys, ` + "`command` or `run`" + `. An unset (or empty) variable is an error unless it has a default. ` + "`$$`" + ` is a dollar.
- ` + "`{{ .Period }}`, `{{ .ScheduledAt }}` and `{{ .Resource }}`" + ` are replaced inside an element of ` + "`command`" + `, which is never split
  again; ` + "`{{ \"{{\" }}`" + ` is two literal braces. ` + "`.Period`" + ` is the date part of the resource.
- In ` + "`resource`, `YYYY`, `MM`, `DD`, `HH` and `mm`" + ` count when ` + "`YYYY`" + ` is among them and they stand between non-letters (or
  together, as in ` + "`YYYYMMDD`" + `). They are filled from the scheduled instant in the job's zone; ` + "`resource_offset: -1mo`" + `
  counts from the first of the month, ` + "`d`, `w` and `y`" + ` from the day.

## Schedules

Five fields: minute, hour, day of month, month, day of week; with ` + "`seconds: true`" + ` six, the second first. Lists, ranges, steps, names
(` + "`MON`, `jan`" + `), 7 as Sunday, ranges that wrap (` + "`22-2`, `FRI-MON`" + `), ` + "`@hourly`" + ` and its kin, ` + "`@every 15m`" + ` (counted from 1970, so that
all replicas mean the same instants). Day of month and day of week both restricted: either matches, and ` + "`*/n`" + ` counts as
restricted.

` + "`dst`" + ` is for *fixed* schedules, those without ` + "`*`" + `, range or step in hour and minute: ` + "`once`" + ` runs a missing local time at the
first instant after the gap and a doubled one the first time only; ` + "`skip`" + ` does not make up for a missing one; ` + "`both`" + ` runs a
doubled one twice. Other schedules follow elapsed time.

Not in this version: ` + "`H`, `L`, `W`, `#`" + `, lists of schedules.
`
