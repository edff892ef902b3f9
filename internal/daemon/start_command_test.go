package daemon

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/jobs"
)

// finished waits for a run of a daemon with one job, and returns it with its output.
func finished(t *testing.T, yaml string) (run jobs.Run, output string) {
	t.Helper()
	url := dbtest.SQLiteURL(t)
	d := boot(t, url, yaml)
	defer d.leave(t)
	l := ledger(t, url)
	require.Eventually(t, func() bool {
		runs, err := l.List(t.Context(), jobs.RunFilter{State: jobs.StateFinished})
		claimed := slices.IndexFunc(runs, func(r jobs.Run) bool { return r.FencingToken > 0 }) // not one that was skipped beside it
		if err != nil || claimed < 0 {
			return false
		}
		run = runs[claimed]
		out, err := l.Output(t.Context(), run.ID)
		output = string(out.Head)
		return err == nil
	}, patience, 50*time.Millisecond)
	return run, output
}

// A scheduled command gets the defaults of its parameters and its secrets; what it prints of these is hidden.
func TestACommandGetsItsParametersAndSecrets(t *testing.T) {
	t.Parallel()
	_, output := finished(t, `
jobs:
  a:
    schedule: "* * * * * *"
    seconds: true
    params: {the-month: {default: "2026 05"}, rows: {type: integer, default: 10}}
    secrets: {TOKEN: hunter2-canary}
    env: {TOKEN2: x}
    command:
      - sh
      - -c
      - 'echo "$1" $# "$CRONLATCH_PARAM_THE_MONTH" "$CRONLATCH_PARAM_ROWS" ${#TOKEN}; echo $TOKEN; printf hunter2; sleep 0.2; echo -canary; printf %s "$TOKEN" | base64'
      - sh
      - "{{ .Params.the-month }}"
`)
	assert.Equal(t, "2026 05 1 2026 05 10 14\n***\n***\n***\n", output)
}

func TestACommandRunsAsItsUser(t *testing.T) {
	t.Parallel()
	const yaml = `
jobs:
  a: {schedule: "* * * * * *", seconds: true, user: "4711:4712", run: 'echo $(id -u) $(id -g) $(id -G) $HOME $USER'}
`
	run, output := finished(t, yaml)
	if os.Geteuid() == 0 {
		assert.Equal(t, jobs.OutcomeSucceeded, run.Outcome)
		assert.Equal(t, "4711 4712 4712 /\n", output)
		return
	}
	assert.Equal(t, jobs.ReasonStart, run.Reason)
	assert.Contains(t, string(run.Detail), "needs a daemon that is root, and this one is the account "+strconv.Itoa(os.Geteuid()))
}

// An account that is not there fails the run, and says so where people look.
func TestACommandWithoutItsAccount(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root looks for the account")
	}
	run, _ := finished(t, `
jobs:
  a: {schedule: "* * * * * *", seconds: true, user: no-such-account, run: "true"}
`)
	assert.Equal(t, jobs.OutcomeFailed, run.Outcome)
	assert.Equal(t, jobs.ReasonStart, run.Reason)
	assert.Contains(t, string(run.Detail), "there is no account no-such-account on this host")
}
