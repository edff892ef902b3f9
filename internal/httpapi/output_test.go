package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/internal/wire"
)

// outputs is an API on a database with one job's runs.
type outputs struct {
	*rig

	db *database.DB
}

func eachWithOutputs(t *testing.T, f func(o *outputs)) {
	t.Helper()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		f(newOutputs(t, db, nil))
	})
}

func newOutputs(t *testing.T, db *database.DB, change func(o *httpapi.Options)) *outputs {
	t.Helper()
	return &outputs{newRig(t, func(o *httpapi.Options) {
		o.Fleet = &httpapi.Fleet{DB: db.Main, TTL: time.Minute}
		if change != nil {
			change(o)
		}
	}), db}
}

func (o *outputs) exec(query string, args ...any) {
	o.Helper()
	_, err := o.db.Main.NewRaw(query, args...).Exec(o.Context())
	require.NoError(o, err)
}

// run inserts an attempt at an occurrence.
func (o *outputs) run(id int64, attempt int, state string) {
	o.Helper()
	at := dbtime.Arg(o.db.Main.Dialect().Name(), time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC))
	outcome, finished := any(nil), any(nil)
	if state == "finished" {
		outcome, finished = "failed", at
	}
	o.exec(`INSERT INTO job_runs (id, job, occurrence, attempt, trigger, scheduled_at, due_at, resource, overlap, on_lost, max_attempts,
		state, outcome, fencing_token, created_at, started_at, finished_at)
		VALUES (?, 'j', 'm:1', ?, 'manual', ?, ?, 'j', 'skip', 'fail', 2, ?, ?, 1, ?, ?, ?)`,
		id, attempt, at, at, state, outcome, at, at, finished)
}

func (o *outputs) chunk(run, at int64, data string) {
	o.Helper()
	o.exec(`INSERT INTO run_output_chunks (run_id, at_byte, data) VALUES (?, ?, ?)`, run, at, []byte(data))
}

func (o *outputs) stored(run int64, head, tail string, total int) {
	o.Helper()
	o.exec(`INSERT INTO run_outputs (run_id, head, tail, total_bytes) VALUES (?, ?, ?, ?)`, run, []byte(head), []byte(tail), total)
}

func (o *outputs) get(run int64, query string) wire.Output {
	o.Helper()
	w := o.ask(http.MethodGet, fmt.Sprintf("/runs/%d/output%s", run, query), "")
	require.Equal(o, http.StatusOK, w.Code, w.Body.String())
	return decode[wire.Output](o.T, w)
}

func TestOutputOfARunningRun(t *testing.T) {
	t.Parallel()
	eachWithOutputs(t, func(o *outputs) {
		o.run(7, 1, "running")
		assert.Equal(o, wire.Output{RunID: 7, Data: []byte{}, State: "running"}, o.get(7, ""))
		o.chunk(7, 0, "one\n\xff\x00")
		o.chunk(7, 6, "two\n")
		o.chunk(7, 20, "three")
		assert.Equal(o, wire.Output{
			RunID: 7, Data: []byte("one\n\xff\x00two\n"), NextOffset: 10, TotalBytes: 25, State: "running",
		}, o.get(7, ""), "up to the gap")
		assert.Equal(o, wire.Output{
			RunID: 7, Offset: 10, MissingBytes: 10, Data: []byte("three"), NextOffset: 25, TotalBytes: 25, State: "running",
		}, o.get(7, "?offset=10"), "behind the gap")
		assert.Equal(o, wire.Output{
			RunID: 7, Offset: 5, Data: []byte("\x00tw"), NextOffset: 8, TotalBytes: 25, State: "running",
		}, o.get(7, "?offset=5&limit=3"))
		assert.Equal(o, wire.Output{RunID: 7, Offset: 25, Data: []byte{}, NextOffset: 25, TotalBytes: 25, State: "running"}, o.get(7, "?offset=25"))
		assert.Equal(o, wire.Output{RunID: 7, Offset: 99, Data: []byte{}, NextOffset: 99, TotalBytes: 25, State: "running"}, o.get(7, "?offset=99"))
	})
}

func TestOutputOfARunThatHasEnded(t *testing.T) {
	t.Parallel()
	eachWithOutputs(t, func(o *outputs) {
		o.run(7, 1, "finished")
		o.stored(7, "head", "tail", 100)
		o.run(8, 2, "pending")
		next := int64(8)
		assert.Equal(o, wire.Output{
			RunID: 7, Data: []byte("head"), NextOffset: 4, TotalBytes: 100, State: "finished", Ended: true, NextRunID: &next,
		}, o.get(7, ""))
		assert.Equal(o, wire.Output{
			RunID: 7, Offset: 4, MissingBytes: 92, Data: []byte("tail"), NextOffset: 100, TotalBytes: 100, State: "finished",
			Ended: true, NextRunID: &next,
		}, o.get(7, "?offset=4"))
		assert.Equal(o, wire.Output{RunID: 8, Data: []byte{}, State: "pending"}, o.get(8, ""))

		o.exec(`DELETE FROM job_runs WHERE id = 8`)
		o.run(9, 2, "finished") // it was lost: what it had printed until then is there
		o.chunk(9, 0, "last words")
		assert.Equal(o, wire.Output{
			RunID: 9, Data: []byte("last words"), NextOffset: 10, TotalBytes: 10, State: "finished", Ended: true,
		}, o.get(9, ""))
	})
}

// A chunk that was handed in twice, the second time with more, is read once.
func TestOutputThatWasHandedInTwice(t *testing.T) {
	t.Parallel()
	eachWithOutputs(t, func(o *outputs) {
		o.run(7, 1, "running")
		o.chunk(7, 0, "one two")
		o.chunk(7, 4, "two")
		o.chunk(7, 5, "wo three")
		assert.Equal(o, "one two three", string(o.get(7, "").Data))
		assert.Equal(o, "one two three", o.ask(http.MethodGet, "/runs/7/output/raw", "").Body.String())
	})
}

// The whole output is a file, and no page.
func TestRawOutput(t *testing.T) {
	t.Parallel()
	eachWithOutputs(t, func(o *outputs) {
		o.run(7, 1, "finished")
		o.stored(7, "<script>", "\x1b]0;x\x07", 100)
		w := o.ask(http.MethodGet, "/runs/7/output/raw", "")
		require.Equal(o, http.StatusOK, w.Code)
		assert.Equal(o, "<script>\n... 86 bytes were not kept ...\n\x1b]0;x\x07", w.Body.String())
		assert.Equal(o, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
		assert.Equal(o, "nosniff", w.Header().Get("X-Content-Type-Options"))
		assert.Equal(o, `attachment; filename="run-7.log"`, w.Header().Get("Content-Disposition"))
		o.run(8, 2, "running")
		assert.Empty(o, o.ask(http.MethodGet, "/runs/8/output/raw", "").Body.String())
	})
}

func TestOutputRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	o := newOutputs(t, dbtest.SQLite(t), nil)
	o.run(7, 1, "running")
	for _, raw := range []string{"", "/raw"} {
		o.refused(o.ask(http.MethodGet, "/runs/99/output"+raw, ""), http.StatusNotFound, "not_found")
		for _, id := range []string{"0", "-1", "x", "07", "1e3", "%2e%2e", "99999999999999999999"} {
			o.refused(o.ask(http.MethodGet, "/runs/"+id+"/output"+raw, ""), http.StatusUnprocessableEntity, "invalid")
		}
		o.refused(o.ask(http.MethodGet, "/runs/7/output"+raw+"?x=1", ""), http.StatusBadRequest, "query")
		o.refused(o.ask(http.MethodPost, "/runs/7/output"+raw, ""), http.StatusMethodNotAllowed, "method")
	}
	for _, query := range []string{"offset=-1", "offset=01", "offset=", "offset=x", "limit=0", "limit=262145", "limit=1.5"} {
		o.refused(o.ask(http.MethodGet, "/runs/7/output?"+query, ""), http.StatusUnprocessableEntity, "invalid")
	}
	o.refused(o.ask(http.MethodGet, "/runs/7/output/raw?offset=1", ""), http.StatusBadRequest, "query")

	away := newOutputs(t, dbtest.SQLite(t), func(o *httpapi.Options) {
		o.Fleet.Check = func(context.Context) error { return errors.New("secret") }
	})
	for _, raw := range []string{"", "/raw"} {
		p := away.refused(away.ask(http.MethodGet, "/runs/7/output"+raw, ""), http.StatusServiceUnavailable, "database")
		assert.NotContains(t, fmt.Sprint(p), "secret")
	}
}

// Who may see runs may see what they print; a locker may not.
func TestWhoMayReadOutput(t *testing.T) {
	t.Parallel()
	o := newOutputs(t, dbtest.SQLite(t), withAuth)
	o.run(7, 1, "running")
	for _, at := range []string{"/runs/7/output", "/runs/7/output/raw"} {
		for role, status := range map[string]int{
			"viewer": http.StatusOK, "operator": http.StatusOK, "admin": http.StatusOK, "locker": http.StatusForbidden, "": http.StatusUnauthorized,
		} {
			w := o.ask(http.MethodGet, at, "", "Authorization", strings.TrimSpace("Bearer "+role))
			assert.Equal(t, status, w.Code, "%s %s", role, at)
		}
	}
}
