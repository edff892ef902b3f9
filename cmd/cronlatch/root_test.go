package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMistakesInTheCommandLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line   string
		errors string
	}{
		{"jbos", "unknown command \"jbos\" for \"cronlatch\", did you mean \"jobs\"?\ncronlatch: \"cronlatch --help\" lists what there is"},
		{"jbos list --tag x", "unknown command \"jbos\" for \"cronlatch\", did you mean \"jobs\"?\ncronlatch: \"cronlatch --help\" lists what there is"},
		{"jobs lsit", "unknown command \"lsit\" for \"cronlatch jobs\", did you mean \"list\"?\ncronlatch: \"cronlatch jobs --help\" lists what there is"},
		{"jobs lsit --tag x", "unknown command \"lsit\" for \"cronlatch jobs\", did you mean \"list\"?\ncronlatch: \"cronlatch jobs --help\" lists what there is"},
		{"xyzzy", "unknown command \"xyzzy\" for \"cronlatch\"\ncronlatch: \"cronlatch --help\" lists what there is"},
		{"help jbos", "unknown command \"jbos\" for \"cronlatch\", did you mean \"jobs\"?\ncronlatch: \"cronlatch --help\" lists what there is"},
		{"jobs", "jobs needs a subcommand: backfill, list, pause, paused, resume, show"},
		{"migrate", "migrate needs a subcommand: status, up"},
		{"jobs list --tga x", "unknown flag: --tga, did you mean \"--tag\"?\ncronlatch: \"cronlatch jobs list --help\" lists the flags"},
		{"serve --databse-url x", "unknown flag: --databse-url, did you mean \"--database-url\"?\ncronlatch: \"cronlatch serve --help\" lists the flags"},
		{"--xyzzy", "unknown flag: --xyzzy\ncronlatch: \"cronlatch --help\" lists the flags"},
		{"jobs list -x", "unknown shorthand flag: 'x' in -x\ncronlatch: \"cronlatch jobs list --help\" lists the flags"},
		{"jobs list extra", "jobs list takes no arguments, and got \"extra\""},
		{"runs list --state finishd", "invalid argument \"finishd\" for \"--state\" flag: it must be one of pending, running, held, finished, did you mean \"finished\"?\ncronlatch: \"cronlatch runs list --help\" lists the flags"},
		{"jobs list -o jsno", "invalid argument \"jsno\" for \"-o, --output\" flag: it must be one of table, json, ndjson, yaml, name, did you mean \"json\"?\ncronlatch: \"cronlatch jobs list --help\" lists the flags"},
		{"runs list --limit many", "invalid argument \"many\" for \"--limit\" flag: it must be a whole number\ncronlatch: \"cronlatch runs list --help\" lists the flags"},
		{"runs list --limit 99999999999999999999", "invalid argument \"99999999999999999999\" for \"--limit\" flag: it must be a smaller number\ncronlatch: \"cronlatch runs list --help\" lists the flags"},
		{"audit list --run x", "invalid argument \"x\" for \"--run\" flag: it must be a whole number\ncronlatch: \"cronlatch audit list --help\" lists the flags"},
		{"jobs backfill x --yes=maybe", "invalid argument \"maybe\" for \"--yes\" flag: it must be true or false\ncronlatch: \"cronlatch jobs backfill --help\" lists the flags"},
		{"jobs backfill x --from 2026-01-01T00:00:00Z --until 2026-01-01T00:00:00Z --concurrency 0", "--concurrency must be at least 1"},
		{"runs export --filter x:1", "--filter: the term \"x:1\" at character 1: \"x\" is not a key; the keys are job, state, outcome, reason, trigger, replica, resource, tag, id, attempt, since, until"},
		{"audit tail --filter run:x", "--filter: the term \"run:x\" at character 1: \"x\" is not a number from 1 on"},
		{"audit list --filter outcome:failed", "--filter: the term \"outcome:failed\" at character 1: \"failed\" is no outcome; there are success, failure, unknown"},
		{"jobs list --filter pausd:true", "--filter: the term \"pausd:true\" at character 1: \"pausd\" is not a key, did you mean \"paused\"?; the keys are job, tag, kind, enabled, defined, paused, state, outcome, reason"},
		{"runs list --since 3x", "invalid argument \"3x\" for \"--since\" flag: \"3x\" is neither a duration (90m, 3d, 2w) nor a time like 2026-03-07T12:00:00-05:00\ncronlatch: \"cronlatch runs list --help\" lists the flags"},
		{"runs list --since -3h", "invalid argument \"-3h\" for \"--since\" flag: \"-3h\" is neither a duration (90m, 3d, 2w) nor a time like 2026-03-07T12:00:00-05:00\ncronlatch: \"cronlatch runs list --help\" lists the flags"},
		{"runs list --limit 0", "--limit must be between 1 and 10000"},
		{"locks list --limit 10001", "--limit must be between 1 and 10000"},
		{"--color sometimes version", "invalid argument \"sometimes\" for \"--color\" flag: it must be one of auto, always, never\ncronlatch: \"cronlatch version --help\" lists the flags"},
		{"run", "run needs the name of a job"},
		{"run a b", "run takes one argument, and got \"b\" as well"},
		{"init a b", "init takes one argument, and got \"b\" as well"},
		{"next", "next needs the name of a job, or --schedule\ncronlatch: `cronlatch jobs list` shows the jobs with their next run"},
		{"next -n 0 x", "-n must be between 1 and 10000"},
		{"next --schedule @daily x", "--schedule does not go with the job \"x\": the file has its schedule"},
		{"next --from yesterday x", "invalid argument \"yesterday\" for \"--from\" flag: \"yesterday\" is not a time like 2026-03-07T12:00:00-05:00\ncronlatch: \"cronlatch next --help\" lists the flags"},
		{"health --server ftp://x", "\"ftp://x\" is not an address like http://127.0.0.1:8420 or unix:/run/cronlatch.sock"},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			newWorld(t).run(t, strings.Fields(c.line)...).says(t, exitUsage, "", "cronlatch: "+c.errors+"\n")
		})
	}
}

// What a user typed is shown back without letting it act on the terminal.
func TestMessagesDoNotAct(t *testing.T) {
	t.Parallel()
	got := newWorld(t).run(t, "a\x1b[2J\nb\u202e")
	assert.Equal(t, exitUsage, got.code)
	assert.NotContains(t, got.errors, "\x1b")
	assert.NotContains(t, got.errors, "\u202e")
	assert.Equal(t, 2, strings.Count(got.errors, "\n"))
}

func everyCommand(t *testing.T, visit func(t *testing.T, cmd *cobra.Command)) {
	t.Helper()
	a := &app{process: process{Now: testNow}}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		visit(t, cmd)
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(a.rootCommand())
}

func TestHelpStartsWithAnExample(t *testing.T) {
	t.Parallel()
	everyCommand(t, func(t *testing.T, cmd *cobra.Command) {
		t.Helper()
		text := helpText(cmd)
		first, _, _ := strings.Cut(text, "\n")
		assert.Regexp(t, `^  \$ cronlatch `, first, cmd.CommandPath())
		assert.NotEmpty(t, cmd.Short, cmd.CommandPath())
		for line := range strings.Lines(text) {
			assert.LessOrEqual(t, len(line), 130, "%s: %s", cmd.CommandPath(), line)
		}
	})
}

// An example that does not parse is worse than none: each one reaches its command.
func TestExamplesParse(t *testing.T) {
	t.Parallel()
	everyCommand(t, func(t *testing.T, cmd *cobra.Command) {
		t.Helper()
		for line := range strings.Lines(cmd.Example) {
			for part := range strings.SplitSeq(strings.TrimPrefix(strings.TrimSpace(line), "$ "), "&&") {
				part, _, _ = strings.Cut(part, "||")
				part, _, _ = strings.Cut(part, " > ")
				root := (&app{process: process{Now: testNow}}).rootCommand()
				words := shellWords(part)
				require.Equal(t, "cronlatch", words[0], line)
				found, rest, err := root.Find(words[1:])
				require.NoError(t, err, line)
				require.NotEqual(t, root, found, line)
				require.NoError(t, found.ParseFlags(rest), line)
				if found.Args != nil {
					require.NoError(t, found.ValidateArgs(found.Flags().Args()), line)
				}
			}
		}
	})
}

// shellWords splits at blanks outside double quotes.
func shellWords(line string) []string {
	quoted := false
	words := strings.FieldsFunc(strings.TrimSpace(line), func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
	for i := range words {
		words[i] = strings.Trim(words[i], `"`)
	}
	return words
}

func TestHelpIsData(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	help := w.run(t, "help", "runs", "list")
	assert.Equal(t, exitOK, help.code)
	assert.Empty(t, help.errors)
	assert.Contains(t, help.out, "Usage: cronlatch runs list [flags]")
	assert.Contains(t, help.out, "--outcome")
	assert.Contains(t, help.out, "--database-url")
	assert.Equal(t, help, w.run(t, "runs", "list", "--help"))
	assert.Equal(t, w.run(t), w.run(t, "--help"))
	assert.Equal(t, w.run(t), w.run(t, "help"))
	assert.NotContains(t, w.run(t).out, "supervise")
}

// The table of UX and the help are one list.
func TestHelpExitCodes(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"help", "man"} {
		assert.Contains(t, newWorld(t).run(t, command, "exit-code").errors, `did you mean "exit-codes"?`, command)
	}
	newWorld(t).run(t, "help", "exit-codes").says(t, exitOK, `  $ cronlatch run backup:db || echo "it ended with $?"

Exit codes:
  0      it worked; with run: the job succeeded
  1      it did not work; with run: the run was missed or cancelled, or failed without a code of its own
  2      plan found changes
  64     the command line is wrong
  69     the server or the database cannot be reached (commands give up within 5 s), or is not ready
  75     the lock is busy; with run: skipped because an earlier run is unfinished, or missed behind a lock
  76     the lock was lost while the command ran, and it was stopped; with run: the run was lost
  77     not permitted
  78     the configuration is invalid or missing
  124    timed out
  126    the command cannot be executed
  127    the command was not found
  128+n  ended by signal n
  other  with run and lock: the code of the job or the command
`, "")
}

func TestVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.run(t, "version", "-o", "json")
	assert.Equal(t, exitOK, got.code)
	assert.Regexp(t, `(?s)^\{\n  "version": ".+",\n.*"go": "go1.*",\n  "platform": ".*/.*",\n  "zones": "20.*"\n\}\n$`, got.out)
	assert.Regexp(t, `^cronlatch .+\nbuilt with go1.+ for .+\ntime zones 20.+\n`, w.run(t, "version").out)
	assert.Regexp(t, `^cronlatch .+\n$`, w.run(t, "--version").out)
}

func TestDidYouMean(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"lisst": `, did you mean "list"?`, "LIST": `, did you mean "list"?`, "validdate": `, did you mean "validate"?`,
		"xxxx": "", "": "", "l": "", "qqqqqqqqqqqqqqqqqqqqqqqq": "",
	} {
		assert.Equal(t, want, didYouMean(word, "", []string{"list", "validate"}), word)
	}
}
