package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pipe runs a command with something on its standard input.
func (w *world) pipe(t *testing.T, input string, args ...string) answer {
	t.Helper()
	var out, errors bytes.Buffer
	code := run(t.Context(), process{
		Args: args, Stdin: strings.NewReader(input), Stdout: &out, Stderr: &errors,
		Getenv: func(name string) string { return w.env[name] }, Dir: w.dir, Now: testNow, Patience: w.patience,
	})
	return answer{code, out.String(), errors.String()}
}

// What import prints is a file that validate accepts, with the jobs at the times of cron.
func TestImportedCrontabIsValid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env["TZ"] = ":America/New_York"
	w.file(t, "tab", "30 4 * * * /usr/local/bin/backup.sh\n@reboot warm\n")
	got := w.run(t, "import", "crontab", "tab")
	assert.Equal(t, exitOK, got.code)
	assert.Equal(t, "tab:2: @reboot is the start of one host, and no time that all replicas know; let the host start it (a systemd unit)\n"+
		"cronlatch: imported 1 job from tab, with 0 notes; not imported: 1, see above\n", got.errors)
	w.write(t, got.out)
	valid := w.run(t, "validate")
	assert.Equal(t, exitOK, valid.code, valid.errors)
	assert.Regexp(t, `(?m)^backup +30 4 \* \* \* +America/New_York +Sun 2026-03-08 04:30:00 -04:00 `, valid.out)
}

func TestImportReadsStandardInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.pipe(t, "0 0 * * * app run me\n", "import", "crontab", "--system", "--timezone", "Asia/Tokyo", "-")
	assert.Equal(t, exitOK, got.code)
	assert.Equal(t, "cronlatch: imported 1 job from stdin, with 0 notes\n", got.errors)
	assert.Contains(t, got.out, "# stdin:1, as app\n  run-me:\n")
	assert.Contains(t, got.out, "timezone: \"Asia/Tokyo\"")

	manifest, err := os.ReadFile("../../internal/importer/testdata/cronjob/release.yaml")
	require.NoError(t, err)
	got = w.pipe(t, string(manifest), "import", "cronjob", "-")
	assert.Equal(t, exitOK, got.code)
	assert.Equal(t, "stdin:52: hour 25 is outside 0-23 in \"0 25 * * *\"\n"+
		"cronlatch: passed over 1 manifest of another kind\n"+
		"cronlatch: imported 2 jobs from stdin, with 11 notes; not imported: 1, see above\n", got.errors)
	w.write(t, got.out)
	assert.Equal(t, exitOK, w.run(t, "validate").code)
}

// Nothing to import is a failure, and what is printed is a configuration all the same.
func TestImportOfNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct{ kind, input, errors string }{
		{"crontab", "", ""},
		{"crontab", "# nothing\nMAILTO=me\n", ""},
		{"crontab", "@reboot x\x1b[2J\nwhat\n", "stdin:1: @reboot is the start of one host, and no time that all replicas know; let the host start it (a systemd unit)\n" +
			"stdin:2: this is neither NAME=value nor five fields (minute, hour, day of month, month, day of week) and a command\n"},
		{"cronjob", "kind: Service\n", "cronlatch: passed over 1 manifest of another kind\n"},
		{"cronjob", "kind: [", "stdin:1: this is not YAML: sequence end token ']' not found\n"},
	} {
		w.env["TZ"] = "UTC"
		got := w.pipe(t, c.input, "import", c.kind, "-")
		assert.Equal(t, exitFailure, got.code, c.input)
		assert.Equal(t, c.errors+"cronlatch: nothing could be imported from stdin\n", got.errors)
		assert.NotContains(t, got.out, "\x1b")
		w.write(t, got.out)
		assert.Equal(t, exitOK, w.run(t, "validate").code, got.out)
	}
}

func TestMistakesInImport(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"import":                               "import needs a subcommand: cronjob, crontab",
		"import crontab":                       "import crontab needs the path of a crontab, or - for standard input",
		"import cronjob":                       "import cronjob needs the path of a manifest, or - for standard input",
		"import crontab - -":                   "- stands for standard input, which can be read once only",
		"import crontab --timezone Berlin x":   "--timezone: unknown time zone \"Berlin\", did you mean Europe/Berlin?",
		"import crontabs x":                    "unknown command \"crontabs\" for \"cronlatch import\", did you mean \"crontab\"?\ncronlatch: \"cronlatch import --help\" lists what there is",
		"import cronjob --timezone UTC x.yaml": "unknown flag: --timezone\ncronlatch: \"cronlatch import cronjob --help\" lists the flags",
	} {
		w := newWorld(t)
		w.env["TZ"] = "UTC"
		w.run(t, strings.Fields(line)...).says(t, exitUsage, "", "cronlatch: "+want+"\n")
	}
	w := newWorld(t)
	w.env["TZ"] = "UTC"
	w.run(t, "import", "crontab", "none").says(t, exitFailure, "", "cronlatch: read what to import: open DIR/none: no such file or directory\n")
}

// A configuration that cronlatch would not read is not printed.
func TestImportPrintsNothingThatDoesNotLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env["TZ"] = "UTC"
	got := w.pipe(t, strings.Repeat("* * * * * x\n", 30_000), "import", "crontab", "-")
	got.says(t, exitFailure, "", "cronlatch: what was made of it is no valid configuration, and is not printed: "+
		"the file has more than 1048576 bytes (1 MiB), the most that is read\n")
}

func TestHostZone(t *testing.T) {
	t.Parallel()
	link := func(target string) func(string) (string, error) {
		return func(name string) (string, error) {
			if name != "/etc/localtime" || target == "" {
				return "", errors.New("no link")
			}
			return filepath.FromSlash(target), nil
		}
	}
	for _, c := range []struct{ tz, target, want string }{
		{"Europe/Berlin", "/usr/share/zoneinfo/Asia/Tokyo", "Europe/Berlin"},
		{":Europe/Berlin", "", "Europe/Berlin"},
		{"", "../usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"},
		{"", "/var/db/timezone/zoneinfo/America/New_York", "America/New_York"},
		{"", "/usr/share/zoneinfo/Etc/UTC", "Etc/UTC"},
		{"", "", ""},
		{"", "/etc/elsewhere", ""},
		{"CST6CDT,M3.2.0,M11.1.0", "/usr/share/zoneinfo/Asia/Tokyo", ""},
	} {
		got := hostZone(func(string) string { return c.tz }, link(c.target))
		assert.Equal(t, c.want, got, "%q %q", c.tz, c.target)
	}
}
