package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
)

const anInstant = `\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		w := connected(t, url)
		w.run(t, "jobs", "paused").says(t, exitOK, "", "cronlatch: nothing is paused\n")
		w.run(t, "jobs", "paused", "-o", "json").says(t, exitOK, "[]\n", "cronlatch: nothing is paused\n")
		w.run(t, "jobs", "pause", "backup:db", "by-hand", "by-hand", "--reason", "disk").says(t, exitOK, "",
			"cronlatch: the job \"backup:db\" is paused until it is resumed; `cronlatch jobs resume backup:db` ends it\n"+
				"cronlatch: the job \"by-hand\" is paused until it is resumed; `cronlatch jobs resume by-hand` ends it\n")

		again := w.run(t, "jobs", "pause", "backup:db", "--reason", "network", "--until", "2h")
		assert.Equal(t, exitOK, again.code)
		assert.Regexp(t, "^cronlatch: the job \"backup:db\" is paused since "+anInstant+" already, and from now on until "+anInstant+
			"; `cronlatch jobs resume backup:db` ends it\n$", again.errors)
		all := w.run(t, "pause-all", "--until", "2999-01-01T01:00:00+01:00")
		all.says(t, exitOK, "", "cronlatch: all jobs are paused until 2999-01-01 00:00:00Z; `cronlatch resume-all` ends it\n")

		list := decode[[]map[string]any](t, w.run(t, "jobs", "paused", "-o", "json").out)
		require.Len(t, list, 3)
		assert.Equal(t, []any{nil, "backup:db", "by-hand"}, []any{list[0]["job"], list[1]["job"], list[2]["job"]})
		assert.Equal(t, []any{"2999-01-01T00:00:00Z", nil}, []any{list[0]["until"], list[2]["until"]})
		assert.Equal(t, []any{"network", requester()}, []any{list[1]["reason"], list[1]["by"]})
		assert.Regexp(t, `(?m)^JOB +SINCE +UNTIL +BY +REASON$`, w.run(t, "jobs", "paused").out)
		assert.Regexp(t, `(?m)^\* +`+anInstant+` +2999-01-01 00:00:00Z +\S+$`, w.run(t, "jobs", "paused").out)
		w.run(t, "jobs", "paused", "-o", "name").says(t, exitOK, "*\nbackup:db\nby-hand\n", "")

		w.run(t, "jobs", "resume", "backup:db").says(t, exitOK, "",
			"cronlatch: the job \"backup:db\" is resumed\ncronlatch: all jobs are paused; `cronlatch resume-all` ends that\n")
		w.run(t, "resume-all").says(t, exitOK, "",
			"cronlatch: all jobs are resumed\ncronlatch: still paused by name: 1 job; `cronlatch jobs paused` shows them\n")
		w.run(t, "jobs", "resume", "backup:db", "by-hand").says(t, exitFailure, "",
			"cronlatch: the job \"by-hand\" is resumed\ncronlatch: the job \"backup:db\" is not paused\n")
		w.run(t, "resume-all").says(t, exitFailure, "", "cronlatch: there is no pause of all jobs\n")
		assertPausesAudited(t, url)
	})
}

// assertPausesAudited wants a row for each change, with who and why.
func assertPausesAudited(t *testing.T, url string) {
	t.Helper()
	var rows []struct {
		Action, Outcome, ActorType, ActorID, Job, Reason string
	}
	query := "SELECT action, outcome, actor_type, actor_id, job, reason FROM audit_log WHERE action LIKE 'job.%' ORDER BY id"
	require.NoError(t, dbtest.Open(t, url).Main.NewRaw(query).Scan(t.Context(), &rows))
	var got []string
	for _, r := range rows {
		assert.Equal(t, []string{"success", "user", requester()}, []string{r.Outcome, r.ActorType, r.ActorID})
		got = append(got, r.Action+" "+r.Job+" "+r.Reason)
	}
	assert.Equal(t, []string{
		"job.pause backup:db disk", "job.pause by-hand disk", "job.pause backup:db network", "job.pause  ",
		"job.resume backup:db network", "job.resume  ", "job.resume by-hand disk",
	}, got)
}

func TestPauseRefuses(t *testing.T) {
	t.Parallel()
	w := connected(t, dbtest.SQLiteURL(t))
	w.run(t, "jobs", "pause", "by-hand", "backup-db").says(t, exitFailure, "",
		"cronlatch: unknown job \"backup-db\" in DIR/cronlatch.yaml, did you mean \"backup:db\"?; nothing was paused\n"+
			"cronlatch: `cronlatch jobs list` shows the jobs\n")
	w.run(t, "jobs", "pause", "by-hand", "--until", "2026-01-01T00:00:00Z").says(t, exitUsage, "",
		"cronlatch: --until 2026-01-01T00:00:00Z has passed; nothing was paused\n")
	for _, until := range []string{"soon", "-2h", "0s"} {
		got := w.run(t, "jobs", "pause", "by-hand", "--until="+until)
		assert.Equal(t, exitUsage, got.code)
		assert.Contains(t, got.errors, "is neither a duration (90m, 3d, 2w) nor a time like")
	}
	w.run(t, "jobs", "pause").says(t, exitUsage, "", "cronlatch: jobs pause needs the name of a job\n")
	w.run(t, "jobs", "resume").says(t, exitUsage, "", "cronlatch: jobs resume needs the name of a job\n")
	w.run(t, "pause-all", "x").says(t, exitUsage, "", "cronlatch: pause-all takes no arguments, and got \"x\"\n")
	w.run(t, "jobs", "resume", "by-hand").says(t, exitFailure, "", "cronlatch: the job \"by-hand\" is not paused\n")
	w.run(t, "jobs", "paused", "-o", "name").says(t, exitOK, "", "cronlatch: nothing is paused\n")

	w.run(t, "jobs", "pause", "by-hand")
	w.run(t, "jobs", "resume", "byhand").says(t, exitFailure, "", "cronlatch: the job \"byhand\" is not paused, did you mean \"by-hand\"?\n")
}

// Without a configuration the database says which jobs there are: those that were ever planned or run.
func TestPauseWithoutAFile(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLiteURL(t)
	w := connected(t, url)
	w.run(t, "run", "by-hand", "--detach")
	_, err := dbtest.Open(t, url).Main.ExecContext(t.Context(),
		"INSERT INTO plan_positions (job, schedule_hash, position) VALUES ('backup:db', 'x', ?)", time.Now().UnixMilli())
	require.NoError(t, err)
	w.write(t, "jobs: {other: {run: date}}\n")
	assert.Equal(t, exitOK, w.run(t, "jobs", "pause", "backup:db", "other").code, "replicas may know it")
	w.write(t, "oops: [")
	assert.Equal(t, exitOK, w.run(t, "jobs", "pause", "by-hand").code)
	w.run(t, "jobs", "pause", "backup-db").says(t, exitFailure, "",
		"cronlatch: no replica has ever planned a job \"backup-db\", did you mean \"backup:db\"?; nothing was paused\n")
}

func TestServeRefusesLabels(t *testing.T) {
	t.Parallel()
	w := connected(t, dbtest.SQLiteURL(t))
	got := w.run(t, "serve", "--label", "zone")
	assert.Equal(t, exitUsage, got.code)
	assert.Contains(t, got.errors, "--label: labels must look like disk=fast,zone=a, not ")
	w.env["CRONLATCH_LABELS"] = "zone=a b"
	got = w.run(t, "serve")
	assert.Equal(t, exitConfig, got.code)
	assert.Contains(t, got.errors, "CRONLATCH_LABELS: labels has the item \"zone=a b\"; a label and its value have 1 to 63 of the characters")
}
