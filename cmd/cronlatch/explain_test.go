package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/wire"
)

func TestExplainCommand(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		p := newPrinted(t, url)
		p.attempt(7, 1, "finished")
		p.exec(`UPDATE job_runs SET reason = 'exit', exit_code = 3, replica = 'a', detail = '{"note": "a rather long remark that somebody wrote into the facts of this run, so that the line must be broken"}'`)
		shown := p.run(t, "explain", "7")
		require.Equal(t, exitOK, shown.code, shown.errors)
		assert.True(t, strings.HasPrefix(shown.out, "Run 7 of backup:db for 2026-05-01 00:00:00Z (2026-04-30 20:00:00 -04:00) failed on replica a: the\n"), shown.out)
		for line := range strings.Lines(shown.out) {
			assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), storyWidth, line)
		}
		assert.Contains(t, shown.out, "\nnext: cronlatch logs 7\n")
		assert.Contains(t, p.run(t, "explain", "backup:db").out, "Run 7 of backup:db")
		assert.Contains(t, p.run(t, "--color", "always", "explain", "7").out, "\x1b[31mRun 7 of")

		// JSON and text are one story.
		story := decode[wire.Story](t, p.run(t, "explain", "7", "-o", "json").out)
		flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
		assert.Contains(t, flat(shown.out), flat(story.Verdict))
		assert.NotEmpty(t, story.Steps)
		for _, s := range story.Steps {
			assert.Contains(t, flat(shown.out), flat(s.Text))
		}
		for _, next := range story.Next {
			assert.Contains(t, shown.out, "next: "+next+"\n")
		}
		assert.Contains(t, p.run(t, "explain", "7", "-o", "yaml").out, "verdict: ")

		p.run(t, "explain", "8").fails(t, exitFailure, `there is neither a job nor a run "8"`)
		p.run(t, "explain", "7", "--at", "2h ago").fails(t, exitUsage, `--at is for a job, and there is no job "7"`)
		p.run(t, "explain", "backup:bd").fails(t, exitFailure, `did you mean "backup:db"?`)
		p.run(t, "explain", "backup:db", "--at", "yesterday").fails(t, exitUsage, `write 2026-03-29T02:30:00Z`)
		p.run(t, "explain").fails(t, exitUsage, "explain needs the name of a job or a run's id")

		p.exec(`UPDATE job_runs SET job = '7'`)
		assert.Contains(t, p.run(t, "explain", "7").out, "Run 7 of 7 for")
		p.exec(`INSERT INTO job_runs (id, job, occurrence, attempt, trigger, scheduled_at, due_at, resource, overlap, on_lost, max_attempts, state, created_at)
			VALUES (70, '7', 's:x', 1, 'schedule', ?, ?, 'x', 'skip', 'fail', 1, 'pending', ?)`, p.at, p.at, p.at)
		assert.Contains(t, p.run(t, "explain", "7").out, "Run 70 of 7 for", "a job's name comes before a run's id")
	})
}

// fails expects an exit code, and a text on stderr.
func (a answer) fails(t *testing.T, code int, text string) {
	t.Helper()
	assert.Equal(t, code, a.code, a.errors)
	assert.Contains(t, a.errors, text)
}

func TestWrapping(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"one two", "three"}, wrapped("one two three", 8))
	assert.Equal(t, []string{"ä ä", "waytoolongword", "x"}, wrapped("ä  ä waytoolongword x", 3))
	assert.Equal(t, []string{""}, wrapped("", 3))
}
