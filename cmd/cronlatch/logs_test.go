package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/internal/wire"
)

// printed is a world with a run of backup:db that has printed something.
type printed struct {
	*world

	exec func(query string, args ...any)
	at   any
}

func newPrinted(t *testing.T, url string) *printed {
	t.Helper()
	db := dbtest.Open(t, url)
	p := &printed{world: connected(t, url), at: dbtime.Arg(db.Main.Dialect().Name(), time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC))}
	p.exec = func(query string, args ...any) {
		t.Helper()
		_, err := db.Main.NewRaw(query, args...).Exec(t.Context())
		require.NoError(t, err)
	}
	return p
}

// attempt inserts an attempt with an id.
func (p *printed) attempt(id, attempt int, state string) {
	outcome, finished, started := any(nil), any(nil), any(nil)
	if state == "finished" {
		outcome, finished = "failed", p.at
	}
	if state != "pending" {
		started = p.at
	}
	p.exec(`INSERT INTO job_runs (id, job, occurrence, attempt, trigger, scheduled_at, due_at, resource, overlap, on_lost, max_attempts,
		state, outcome, fencing_token, created_at, started_at, finished_at)
		VALUES (?, 'backup:db', 'm:1', ?, 'manual', ?, ?, 'backup:db', 'skip', 'fail', 9, ?, ?, 1, ?, ?, ?)`,
		id, attempt, p.at, p.at, state, outcome, p.at, started, finished)
}

func (p *printed) stored(id int, head, tail string, total int) {
	p.exec(`INSERT INTO run_outputs (run_id, head, tail, total_bytes) VALUES (?, ?, ?, ?)`, id, []byte(head), []byte(tail), total)
}

func (p *printed) chunk(id, at int, data string) {
	p.exec(`INSERT INTO run_output_chunks (run_id, at_byte, data) VALUES (?, ?, ?)`, id, at, []byte(data))
}

func TestLogs(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		p := newPrinted(t, url)
		p.attempt(7, 1, "finished")
		p.stored(7, "one\x1b[0m\n", "two\n", 100)
		p.run(t, "logs", "7").says(t, exitOK, "one\x1b[0m\ntwo\n", "cronlatch: ... 88 bytes are not kept here ...\n")
		p.run(t, "logs", "7", "--offset", "97").says(t, exitOK, "wo\n", "")
		p.attempt(8, 2, "running")
		p.chunk(8, 0, "half a li")
		p.run(t, "logs", "8").says(t, exitOK, "half a li", "")
		p.attempt(9, 3, "pending")
		p.run(t, "logs", "backup:db").says(t, exitOK, "half a li", "") // the newest that was started

		pieces := decode[[]wire.Output](t, p.run(t, "logs", "7", "-o", "json").out)
		require.Len(t, pieces, 2)
		assert.Equal(t, "two\n", string(pieces[1].Data))
		assert.EqualValues(t, 88, pieces[1].MissingBytes)
		assert.Equal(t, 2, strings.Count(p.run(t, "logs", "7", "-o", "ndjson").out, "\n"))
		assert.Equal(t, "[]\n", p.run(t, "logs", "9", "-o", "json").out)

		p.terminal = true
		p.run(t, "logs", "8").says(t, exitOK, "half a li\n", "")
		assert.Equal(t, "one\\x1b[0m\ntwo\n", p.run(t, "logs", "7").out)
	})
}

func TestLogsRefuses(t *testing.T) {
	t.Parallel()
	p := newPrinted(t, dbtest.SQLiteURL(t))
	p.run(t, "logs", "5").says(t, exitFailure, "",
		"cronlatch: there is no run 5\ncronlatch: old runs are deleted; `cronlatch runs list` shows those that are kept\n")
	p.run(t, "logs", "nobody").says(t, exitFailure, "",
		"cronlatch: no replica has ever planned a job \"nobody\"\ncronlatch: `cronlatch jobs list` shows the jobs\n")
	p.run(t, "logs", "").says(t, exitUsage, "", "cronlatch: RUN is empty: it is a run's id or the name of a job\n")
	p.exec(`INSERT INTO plan_positions (job, schedule_hash, position) VALUES ('backup:db', 'x', ?)`, p.at)
	p.run(t, "logs", "backup:bd").says(t, exitFailure, "",
		"cronlatch: no replica has ever planned a job \"backup:bd\", did you mean \"backup:db\"?\ncronlatch: `cronlatch jobs list` shows the jobs\n")
	p.run(t, "logs", "backup:db").says(t, exitFailure, "",
		"cronlatch: there is no run of \"backup:db\"\ncronlatch: `cronlatch explain backup:db` tells when it runs\n")
	p.attempt(9, 1, "pending")
	p.run(t, "logs", "backup:db").says(t, exitFailure, "",
		"cronlatch: no run of \"backup:db\" was started yet\ncronlatch: `cronlatch runs list --job backup:db` says why\n")
	for _, args := range [][]string{
		{"logs"}, {"logs", "1", "2"}, {"logs", "1", "--offset", "-1"}, {"logs", "1", "-f", "-o", "json"}, {"logs", "1", "-o", "yaml"},
	} {
		assert.Equal(t, exitUsage, p.run(t, args...).code, args)
	}
}

// Silence is explained: a run that has not begun, one that printed nothing, or whose output is deleted.
func TestARunWithoutOutputSaysWhy(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		p := newPrinted(t, url)
		p.attempt(7, 1, "pending")
		waits := "cronlatch: run 7 has not begun; `cronlatch explain 7` tells what it waits for\n"
		p.run(t, "logs", "7").says(t, exitOK, "", waits)
		p.run(t, "logs", "7", "-o", "ndjson").says(t, exitOK, "", waits)
		p.exec("UPDATE job_runs SET state = 'running', started_at = scheduled_at WHERE id = 7")
		p.run(t, "logs", "7").says(t, exitOK, "", "")
		p.exec("UPDATE job_runs SET state = 'finished', outcome = 'succeeded', finished_at = scheduled_at WHERE id = 7")
		ended := "cronlatch: run 7 has ended, and there is no output of it; `cronlatch explain 7` tells what became of it\n"
		p.run(t, "logs", "7").says(t, exitOK, "", ended)
		p.run(t, "logs", "7", "-f").says(t, exitOK, "", ended)
	})
}

func TestFollowingARunThatWaitsSaysSoOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pending := func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(wire.Output{RunID: 7, State: "pending"})
	}
	url, _ := scripted(t, pending, pending, piece(t, 0, "one\n", false), piece(t, 4, "", true))
	w.run(t, "logs", "7", "-f", "--server", url).says(t, exitOK, "one\n",
		"cronlatch: run 7 has not begun; `cronlatch explain 7` tells what it waits for\n")
}

// A run that is followed goes on in its next attempt, and ends with the last one.
func TestFollowingThroughAttempts(t *testing.T) {
	t.Parallel()
	p := newPrinted(t, dbtest.SQLiteURL(t))
	p.attempt(7, 1, "finished")
	p.stored(7, "first", "", 5)
	p.attempt(8, 2, "finished")
	p.stored(8, "second\n", "", 7)
	p.terminal = true
	p.run(t, "logs", "7", "-f").says(t, exitOK, "first\nsecond\n", "cronlatch: run 7 has ended; the next attempt follows as run 8\n")
}

// scripted answers each call with the next of its answers, and the last one for ever.
func scripted(t *testing.T, answers ...http.HandlerFunc) (url string, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("limit") == "1" { // is there such a run?
			_, _ = w.Write([]byte(`{}`))
			return
		}
		n := int(asked.Add(1)) - 1
		answers[min(n, len(answers)-1)](w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

// piece answers with text from an offset on, and wants to be asked for that.
func piece(t *testing.T, offset int, text string, ended bool) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, strconv.Itoa(offset), r.URL.Query().Get("offset"))
		_ = json.NewEncoder(w).Encode(wire.Output{
			RunID: 7, Offset: int64(offset), Data: []byte(text), NextOffset: int64(offset + len(text)), TotalBytes: int64(offset + len(text)),
			State: "running", Ended: ended,
		})
	}
}

func unavailable(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write([]byte(`{"status": 503, "code": "database", "detail": "the database did not answer"}`))
}

// An outage is waited for: nothing is shown twice, and nothing is lost. A character that is cut in two is put together.
func TestFollowingThroughAnOutage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.terminal = true
	url, _ := scripted(t, piece(t, 0, "a\xc3", false), piece(t, 2, "", false), unavailable, unavailable,
		piece(t, 2, "\xa9\n", true), piece(t, 4, "", true))
	got := w.run(t, "logs", "7", "-f", "--server", url)
	got.says(t, exitOK, "aé\n", "cronlatch: the server "+url+" does not answer; waiting, and going on from byte 2\n"+
		"cronlatch: the server "+url+" answers again\n")
	url, asked := scripted(t, unavailable)
	assert.Equal(t, exitUnavailable, w.run(t, "logs", "7", "-f", "--server", url).code, "the first question must be answered")
	assert.EqualValues(t, 1, asked.Load())
}

func TestCtrlCEndsTheFollowing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, interrupt := context.WithCancel(t.Context())
	url, _ := scripted(t, piece(t, 0, "one", false), func(w http.ResponseWriter, r *http.Request) {
		piece(t, 3, "", false)(w, r)
		interrupt()
	})
	w.runIn(ctx, "logs", "7", "-f", "--server", url).says(t, exitInterrupted, "one",
		"cronlatch: not following any longer; the run goes on\ncronlatch: `cronlatch logs 7 -f --offset 3` goes on from here\n")
}
