package importer

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

func crontab(text string) Source { return Source{Name: "tab", Data: []byte(text)} }

// imported is the jobs of a crontab that has no problem.
func imported(t *testing.T, text string) []*jobs.Job {
	t.Helper()
	result := Crontabs([]Source{crontab(text)}, CrontabOptions{Timezone: "Europe/Berlin"})
	require.Empty(t, result.Problems)
	return loaded(t, result).Jobs
}

func TestLinesThatAreRefused(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"hello":             "this is neither NAME=value nor five fields (minute, hour, day of month, month, day of week) and a command",
		"* * * * *":         "this is neither NAME=value nor five fields (minute, hour, day of month, month, day of week) and a command",
		"@daily":            "this is neither NAME=value nor five fields (minute, hour, day of month, month, day of week) and a command",
		"* * * * * %in":     "there is no command",
		"@reboot x":         "@reboot is the start of one host, and no time that all replicas know; let the host start it (a systemd unit)",
		"@fortnightly x":    `unknown schedule "@fortnightly" in "@fortnightly"; known are @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually and @every`,
		"0 24 * * * x":      `hour 24 is outside 0-23 in "0 24 * * *"`,
		"*/0 * * * * x":     `step 0 in "*/0 * * * *"; a step is at least 1`,
		"a * * * * x":       `minute "a" is not a number in "a * * * *"`,
		"0 0 31 2,4 * x":    `"0 0 31 2,4 *" never fires: February and April have no day 31`,
		"* * * * * x\x00":   "the line holds a NUL character",
		"* * * * * x\xff":   "the line is not UTF-8; convert the file first (iconv)",
		"CRON_TZ=CST":       `time zone "CST" is not accepted: an abbreviation does not say which place's rules apply; write America/Chicago, Asia/Shanghai or America/Havana`,
		"RANDOM_DELAY=soon": "RANDOM_DELAY is a number of minutes, at most a day of them",
		"RANDOM_DELAY=1441": "RANDOM_DELAY is a number of minutes, at most a day of them",
		"CRONLATCH_JOB=x":   "every run gets its own variables CRONLATCH_*, so that this one cannot be set",
	} {
		result := Crontabs([]Source{crontab("# one\n\n" + line + "\n")}, CrontabOptions{})
		require.Len(t, result.Problems, 1, line)
		assert.Equal(t, "tab:3: "+want, result.Problems[0].String())
		assert.Zero(t, result.Jobs)
		loaded(t, result)
	}
}

func TestSystemCrontabs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		layout     Layout
		want       string // the text of the only job; "" is a problem
	}{
		{"/etc/crontab", "0 0 * * * app run me", LayoutDetect, "run me"},
		{"etc/cron.d/x", "0 0 * * * app run me", LayoutDetect, "run me"},
		{"/var/spool/cron/app", "0 0 * * * app run me", LayoutDetect, "app run me"},
		{"stdin", "0 0 * * * root run me\n@reboot app x", LayoutDetect, "run me"},
		{"stdin", "0 0 * * * root run me\n0 0 * * 8 /bin/x y", LayoutDetect, "root run me"},
		{"/home/me/crontab", "0 0 * * * app run me", LayoutDetect, "app run me"},
		{"stdin", "0 0 * * * root run me", LayoutDetect, "run me"},
		{"stdin", "0 0 * * * root", LayoutDetect, "root"},
		{"stdin", "# m h dom mon dow user\tcommand\n@daily app run me", LayoutDetect, "run me"},
		{"stdin", "#minute hour mday month wday who command\n0 0 * * * app:staff run me", LayoutDetect, "run me"},
		{"stdin", "# m h  dom mon dow   command\n0 0 * * * app run me", LayoutDetect, "app run me"},
		{"stdin", "0 0 * * * app run me", LayoutSystem, "run me"},
		{"/etc/crontab", "0 0 * * * app run me", LayoutUser, "app run me"},
		{"/etc/crontab", "0 0 * * * /bin/run me", LayoutDetect, ""},
		{"/etc/crontab", "0 0 * * * root", LayoutDetect, ""},
	} {
		result := Crontabs([]Source{{c.name, []byte(c.text)}}, CrontabOptions{Layout: c.layout})
		config := loaded(t, result)
		if c.want == "" {
			require.Len(t, result.Problems, 1, c.text)
			assert.Contains(t, result.Problems[0].Message, "--system=false", c.text)
			continue
		}
		require.NotEmpty(t, config.Jobs, c.text)
		assert.Equal(t, c.want, config.Jobs[0].Run, c.text)
	}
}

// Settings hold for the lines below them, and a later one replaces an earlier one.
func TestSettings(t *testing.T) {
	t.Parallel()
	all := imported(t, `
0 1 * * * a
A = 'one two'
"B"=${x} $y $$
0 2 * * * b
A=
CRON_TZ=Asia/Tokyo
RANDOM_DELAY=7
SHELL=/bin/zsh
0 3 * * * c {{ x }}
SHELL=/bin/sh
CRON_TZ=Europe/Berlin
RANDOM_DELAY=0
0 4 * * * d
`)
	require.Len(t, all, 4)
	assert.Empty(t, all[0].Env)
	assert.Equal(t, map[string]string{"A": "one two", "B": "${x} $y $$"}, all[1].Env)
	assert.Equal(t, map[string]string{"A": "", "B": "${x} $y $$", "SHELL": "/bin/zsh"}, all[2].Env)
	assert.Equal(t, map[string]string{"A": "", "B": "${x} $y $$"}, all[3].Env)
	argv, err := jobs.Expand(all[2].Command, jobs.Values{})
	require.NoError(t, err)
	assert.Equal(t, []string{"/bin/zsh", "-c", "c {{ x }}"}, argv)
	assert.Equal(t, "d", all[3].Run)
	assert.Equal(t, "Europe/Berlin", all[0].Schedule.Location().String())
	assert.Equal(t, "Asia/Tokyo", all[2].Schedule.Location().String())
	assert.Equal(t, "Europe/Berlin", all[3].Schedule.Location().String())
	assert.Equal(t, []time.Duration{0, 0, 7 * time.Minute, 0}, []time.Duration{all[0].Jitter, all[1].Jitter, all[2].Jitter, all[3].Jitter})
}

// The texts are what Vixie cron gives to the shell and to its standard input.
func TestPercent(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		`a`:                 {`a`, ``},
		`date +\%F`:         {`date +%F`, ``},
		`cat%`:              {`cat`, ``},
		`cat%one`:           {`cat`, "one\n"},
		`cat%one%two%`:      {`cat`, "one\ntwo\n"},
		`cat%%one`:          {`cat`, "\none\n"},
		`cat%50\% off`:      {`cat`, "50% off\n"},
		`echo \\%in`:        {`echo \\`, "in\n"},
		`echo \n \"%a\b\\c`: {`echo \n \"`, "a\\b\\\\c\n"},
		`cat%a\`:            {`cat`, "a\\\n"},
	} {
		command, stdin := splitPercent(text)
		assert.Equal(t, want, [2]string{command, stdin}, text)
	}
}

func TestStandardInputReachesTheCommand(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`cat%one%%two`:                 "one\n\ntwo\n",
		`cat; echo end%one`:            "one\nend\n",
		`true && cat # comment%$HOME`:  "$HOME\n",
		`cat%END%END2`:                 "END\nEND2\n",
		`read a && echo "<$a>"%x "y'%`: "<x \"y'>\n",
	} {
		all := imported(t, "0 0 * * * "+line+"\n")
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", all[0].Run).CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Equal(t, want, string(out), line)
	}
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", withStdin(`printf '%s.' \`, "x\n")).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, `\.`, string(out))
}

func TestNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/usr/local/bin/backup.sh":                                "backup",
		"/usr/local/bin/Backup-DB.sh --full nightly":              "backup-db",
		"certbot -q renew":                                        "certbot-renew",
		"cd / && run-parts --report /etc/cron.hourly":             "run-parts-cron-hourly",
		"cd /srv/app && /usr/bin/php artisan schedule:run":        "artisan-schedule-run",
		"FOO=bar nice -n 19 ionice -c2 -n7 /opt/x/job.py a":       "job-a",
		"flock -n /tmp/l -c '/opt/report month'":                  "report-month",
		"bash -lc 'cd /x; rake db:prune'":                         "rake-db-prune",
		"python3 -m app.tasks clean":                              "app-tasks-clean",
		"timeout -k 5 60 curl -fsS https://u:p@example.com/p?t=1": "curl-example-com",
		"curl -u me:secret https://example.com/":                  "curl-example-com",
		"mysqldump -u root --password hunter2 -psecret shop":      "mysqldump",
		"if [ -x /usr/bin/a ]; then /usr/bin/a go >/dev/null; fi": "a-go",
		"[ $(date +%u) = 7 ] && /usr/bin/sunday":                  "sunday",
		"test -e /run/systemd/system || SERVICE_MODE=1 /usr/lib/x86_64-linux-gnu/e2fsprogs/e2scrub_all_cron": "e2scrub_all_cron",
		"find /tmp -type f -mtime +7 -delete": "find-tmp",
		"2>/dev/null >out ls 2>&1 /var":       "ls-var",
		"sync-a # the other\nsync-b":          "sync-a",
		"echo a#b '# c'":                      "echo-a-b",
		"true":                                "true",
		"$JOB":                                "job",
		"日本":                                  "job",
		"&&":                                  "job",
		strings.Repeat("long-", 30):           "long-long-long-long-long-long-long-long-long-lon",
	} {
		assert.Equal(t, want, names{}.take(commandNames(text)), text)
	}
}

// A name is the same as long as nothing above it changes, and no two are equal.
func TestNamesAreStableAndUnique(t *testing.T) {
	t.Parallel()
	lines := strings.Split(strings.Repeat("0 0 * * * a x y\n0 0 * * * a x z\n0 0 * * * a\n0 0 * * * /b/a x-y\n0 0 * * * yes\n0 0 * * * 7\n", 3), "\n")
	before := []string{}
	for n := range len(lines) {
		f := &file{timezone: "UTC"}
		r := &crontabReader{file: f, source: crontab(strings.Join(lines[:n], "\n")), names: names{}, zone: "UTC"}
		r.read(LayoutUser)
		require.Empty(t, r.problems)
		now := []string{}
		seen := map[string]bool{}
		for _, j := range f.jobs() {
			now = append(now, j.name)
			require.False(t, seen[j.name], j.name)
			seen[j.name] = true
		}
		require.Len(t, now, n)
		require.Equal(t, before, now[:len(before):len(before)])
		before = now
		loaded(t, f.result())
	}
	assert.Equal(t, []string{"a-x", "a-x-z", "a", "a-x-y", "yes", "7", "a-x-2"}, before[:7])
}

func TestTooLongCrontab(t *testing.T) {
	t.Parallel()
	result := Crontabs([]Source{crontab(strings.Repeat("#\n", MaxBytes))}, CrontabOptions{})
	require.Len(t, result.Problems, 1)
	assert.Equal(t, "tab:1: the file has more than 1048576 bytes (1 MiB); is it a crontab?", result.Problems[0].String())
}

// The daemon runs a line as the account that cron ran it as, or the line is not imported.
func TestAccounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, line string
		user       string
		note       string // in the text
		problem    string
	}{
		{file: "/etc/crontab", line: "@daily www-data x", user: "www-data"},
		{file: "/etc/crontab", line: "@daily root x", user: "root"},
		{file: "/etc/crontab", line: "@daily host$ x", user: "host$"},
		{file: "/etc/crontab", line: "@daily app:staff x", user: "app", note: "note: the group staff is left out"},
		{file: "/etc/crontab", line: "@daily app:staff/daemon x", user: "app", note: "note: the login class daemon is left out"},
		{file: "/etc/crontab", line: "@daily app/daemon x", user: "app", note: "note: the login class daemon is left out"},
		{file: "/etc/crontab", line: "@daily 1000 x", problem: `"1000" is not a name that the key user takes`},
		{file: "/etc/crontab", line: "@daily 0day x", problem: `"0day" is not a name that the key user takes`},
		{file: "/etc/crontab", line: "@daily " + strings.Repeat("a", 33) + " x", problem: "is not a name that the key user takes"},
		{file: "/var/spool/cron/crontabs/ann", line: "@daily x", user: "ann"},
		{file: "/var/spool/cron/ann", line: "@daily x", user: "ann"},
		{file: "/var/spool/cron/tabs/root", line: "@daily x", user: "root"},
		{file: "/etc/crontabs/ann", line: "@daily x", user: "ann"},
		{file: "/var/spool/cron/crontabs", line: "@daily x", user: "crontabs"},
		{file: "/var/spool/cron/tmp.1/ann", line: "@daily x"},
		{file: "stdin", line: "@daily x"},
	} {
		result := Crontabs([]Source{{c.file, []byte(c.line)}}, CrontabOptions{})
		config := loaded(t, result)
		if c.problem != "" {
			require.Len(t, result.Problems, 1, c.line)
			assert.Contains(t, result.Problems[0].Message, c.problem)
			continue
		}
		require.Empty(t, result.Problems, c.line)
		assert.Equal(t, c.user, config.Jobs[0].User, c.line)
		assert.Equal(t, c.user == "root", config.Jobs[0].AllowRoot, c.line)
		assert.Equal(t, "x", config.Jobs[0].Run, c.line)
		assert.Contains(t, result.YAML, c.note)
		assert.Equal(t, c.user != "", strings.Contains(result.YAML, "the daemon must be root"), c.line)
	}
}

// For the jobs of the system's crontab the daemon is root, and a job whose user is not known would be root with it.
func TestAccountsOfSeveralCrontabs(t *testing.T) {
	t.Parallel()
	const note = "note: nothing says whose crontab this was"
	system, own := Source{"/etc/crontab", []byte("@daily app x")}, Source{"stdin", []byte("@daily y")}
	both := Crontabs([]Source{system, own}, CrontabOptions{})
	assert.Equal(t, 1, strings.Count(both.YAML, note), both.YAML)
	assert.Equal(t, 1, both.Notes)
	assert.NotContains(t, Crontabs([]Source{system}, CrontabOptions{}).YAML, note)
	assert.NotContains(t, Crontabs([]Source{own}, CrontabOptions{}).YAML, note)
}

// What is no cron, and looks as if it were.
func TestLinesThatWereMeantOtherwise(t *testing.T) {
	t.Parallel()
	for line, note := range map[string]string{
		"0 0 2 * * * x":      "the command begins with *: a field too much?",
		"0 0 2 * * MON x":    "",
		"0 0 2 * * */5 x":    "the command begins with */5: a field too much?",
		"0 0 2 * * 2026 x":   "the command begins with 2026: a field too much?",
		"0 0 2 * * /bin/x":   "",
		"0 0 2 * * 7z a /x":  "",
		`0 0 2 * * x \`:      `cron does not join lines: the \ at the end`,
		"CRON_TZ=Asia/Tokyo": "CRON_TZ is timezone of the jobs below",
	} {
		result := Crontabs([]Source{crontab(line)}, CrontabOptions{})
		require.Empty(t, result.Problems, line)
		loaded(t, result)
		if note == "" {
			assert.Zero(t, result.Notes, line)
			continue
		}
		assert.Equal(t, 1, result.Notes, line)
		assert.Contains(t, result.YAML, note)
	}
}
