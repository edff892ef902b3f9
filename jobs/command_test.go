package jobs

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func attempt(t *testing.T, change func(*Job)) *Attempt {
	t.Helper()
	tmpl, err := ParseTemplate("report:monthly-YYYY-MM", TemplateOptions{Offset: "-1mo"})
	require.NoError(t, err)
	j := &Job{Name: "report:monthly", Resource: tmpl, Command: []string{"/bin/report", "--month", "{{ .Period }}"}}
	if change != nil {
		change(j)
	}
	at := time.Date(2026, 6, 1, 6, 0, 0, 0, time.UTC)
	return &Attempt{Job: j, LockExpires: at.Add(30 * time.Second), Run: Run{
		ID: 42, Job: j.Name, ScheduledAt: at, Resource: tmpl.At(at), Attempt: 2, FencingToken: 7,
	}}
}

func TestArgvIsNeverSplitAgain(t *testing.T) {
	t.Parallel()
	argv, err := attempt(t, nil).Argv()
	require.NoError(t, err)
	assert.Equal(t, []string{"/bin/report", "--month", "2026-05"}, argv)

	argv, err = attempt(t, func(j *Job) { j.Command, j.Run = nil, `echo "$HOME" {{ .Period }}` }).Argv()
	require.NoError(t, err)
	assert.Equal(t, []string{"/bin/sh", "-c", `echo "$HOME" {{ .Period }}`}, argv, "shell text is passed as it is")
}

func TestTheEnvironmentIsAClosedList(t *testing.T) {
	t.Parallel()
	daemon := map[string]string{
		"PATH": "/bin", "HOME": "/root", "DATABASE_URL": "postgres://u:canary@h/d", "CRONLATCH_TOKEN": "canary", "LD_PRELOAD": "canary",
	}
	env := attempt(t, func(j *Job) {
		j.Env = map[string]string{"HOME": "/srv", "CRONLATCH_FENCING_TOKEN": "999"}
	}).Environ(func(k string) string { return daemon[k] })
	assert.Equal(t, []string{
		"CRONLATCH_ATTEMPT=2", "CRONLATCH_FENCING_TOKEN=7", "CRONLATCH_JOB=report:monthly",
		"CRONLATCH_LOCK=report:monthly-2026-05", "CRONLATCH_LOCK_EXPIRES=2026-06-01T06:00:30Z", "CRONLATCH_PERIOD=2026-05",
		"CRONLATCH_RUN_ID=42", "CRONLATCH_SCHEDULED_AT=2026-06-01T06:00:00Z", "HOME=/srv", "PATH=/bin",
	}, env)
	assert.NotContains(t, strings.Join(env, " "), "canary")
}
