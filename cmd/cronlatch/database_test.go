package main

import (
	"context"
	"encoding/json"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/locking"
)

// connected is a world with two jobs on the given database.
func connected(t *testing.T, url string) *world {
	t.Helper()
	w := newWorld(t)
	w.write(t, twoJobs)
	w.env["DATABASE_URL"] = url
	return w
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	return v
}

func TestTriggerAndList(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		w := connected(t, url)
		w.run(t, "runs", "list", "-o", "json").says(t, exitOK, "[]\n", "cronlatch: no such runs; `cronlatch run JOB` makes one\n")
		w.run(t, "runs", "list").says(t, exitOK, "", "cronlatch: no such runs; `cronlatch run JOB` makes one\n")

		first := w.run(t, "run", "backup:db", "--detach", "--request-id", "k1")
		assert.Equal(t, exitOK, first.code)
		assert.Regexp(t, `^\d+\n$`, first.out)
		assert.Empty(t, first.errors)
		assert.Equal(t, first, w.run(t, "run", "backup:db", "--detach", "--request-id", "k1"), "the same request is the same run")
		other := w.run(t, "run", "by-hand", "--detach")
		assert.NotEqual(t, first.out, other.out)

		list := w.run(t, "runs", "list", "--job", "backup:db", "-o", "json")
		runs := decode[[]map[string]any](t, list.out)
		require.Len(t, runs, 1)
		assertPendingRun(t, runs[0], strings.TrimSpace(first.out))

		assert.Equal(t, other.out+first.out, w.run(t, "runs", "list", "-o", "name").out, "newest first")
		assert.Equal(t, 2, strings.Count(w.run(t, "runs", "list", "-o", "ndjson").out, "\n"))
		assert.Empty(t, w.run(t, "runs", "list", "--state", "finished", "-o", "name").out)
		assert.Empty(t, w.run(t, "runs", "list", "--outcome", "failed", "-o", "name").out)
		assert.Equal(t, other.out+first.out, w.run(t, "runs", "list", "--state", "pending", "--since", "2026-01-01T00:00:00Z", "-o", "name").out)
		assert.Empty(t, w.run(t, "runs", "list", "--since", "2999-01-01T00:00:00Z", "-o", "name").out)
		w.run(t, "runs", "list", "--limit", "1", "-o", "name").says(t, exitOK, other.out, "cronlatch: the newest 1; --limit shows more\n")
		assert.Regexp(t, `backup:db +\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ +1  pending\n`, w.run(t, "runs", "list").out)
	})
}

// assertPendingRun checks that every field of UX is there, null when not set.
func assertPendingRun(t *testing.T, run map[string]any, id string) {
	t.Helper()
	number, err := strconv.ParseFloat(id, 64)
	require.NoError(t, err)
	for _, field := range []string{"scheduled_at", "due_at"} {
		text, ok := run[field].(string)
		require.True(t, ok, field)
		assert.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`, text, field)
		at, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		assert.WithinDuration(t, time.Now(), at, time.Minute)
		delete(run, field)
	}
	assert.Contains(t, run["requested_by"], "@")
	delete(run, "requested_by")
	assert.Equal(t, map[string]any{
		"id": number, "job": "backup:db", "occurrence": "m:k1", "attempt": 1.0, "state": "pending", "outcome": nil, "reason": nil,
		"trigger": "manual", "replica": nil, "resource": "backup:db", "fencing_token": nil, "started_at": nil, "finished_at": nil,
		"exit_code": nil, "signal": nil, "detail": map[string]any{}, "params": map[string]any{},
	}, run)
}

func TestDetachedRunAsJSON(t *testing.T) {
	t.Parallel()
	w := connected(t, dbtest.SQLiteURL(t))
	got := w.run(t, "run", "backup:db", "--detach", "--request-id", "k1", "-o", "json")
	run := decode[map[string]any](t, got.out)
	assertPendingRun(t, run, "1")
}

func TestTriggerRefuses(t *testing.T) {
	t.Parallel()
	w := connected(t, dbtest.SQLiteURL(t))
	w.run(t, "run", "backup-db").says(t, exitFailure, "",
		"cronlatch: unknown job \"backup-db\" in DIR/cronlatch.yaml, did you mean \"backup:db\"?\ncronlatch: `cronlatch jobs list` shows the jobs\n")
	w.run(t, "run", "report:monthly-YYYY-MM").says(t, exitFailure, "",
		"cronlatch: the job \"report:monthly-YYYY-MM\" is disabled, and no replica would take the run\ncronlatch: `enabled: true` in DIR/cronlatch.yaml enables it\n")
	assert.Equal(t, "[]\n", w.run(t, "runs", "list", "-o", "json").out)
}

func TestLocksList(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		w := connected(t, url)
		w.run(t, "locks", "list", "-o", "json").says(t, exitOK, "[]\n", "cronlatch: no lock is held\n")
		store, err := locking.NewStore(dbtest.Open(t, url).Main)
		require.NoError(t, err)
		_, err = store.Acquire(t.Context(), []locking.AcquireRequest{
			{Resource: "a", Owner: "o1", TTL: time.Hour, Metadata: json.RawMessage(`{"replica":"b"}`)},
			{Resource: "deploy/ü%'", Owner: "o2", TTL: time.Hour},
		})
		require.NoError(t, err)

		locks := decode[[]map[string]any](t, w.run(t, "locks", "list", "-o", "json").out)
		require.Len(t, locks, 2)
		assert.InDelta(t, time.Hour.Milliseconds(), locks[0]["remaining_ms"], 60_000)
		for _, field := range []string{"acquired_at", "expires_at"} {
			assert.Regexp(t, `Z$`, locks[0][field])
		}
		for _, varying := range []string{"acquired_at", "expires_at", "remaining_ms", "fencing_token"} {
			delete(locks[0], varying)
		}
		assert.Equal(t, map[string]any{"resource": "a", "owner": "o1", "metadata": map[string]any{"replica": "b"}}, locks[0])

		w.run(t, "locks", "list", "--prefix", "deploy/", "-o", "name").says(t, exitOK, "deploy/ü%'\n", "")
		w.run(t, "locks", "list", "--owner", "o1", "-o", "name").says(t, exitOK, "a\n", "")
		w.run(t, "locks", "list", "--state", "expired").says(t, exitOK, "", "cronlatch: no lock is expired\n")
		w.run(t, "locks", "list", "--limit", "1", "-o", "name").says(t, exitOK, "a\n", "cronlatch: the first 1; --limit or --prefix shows others\n")
		assert.Regexp(t, `(?m)^a +\d+  o1 .* (1h|59m\d+s)  \{"replica": ?"b"\}$`, w.run(t, "locks", "list").out)
	})
}

// pages answers like a store with many locks, to see every page once.
type pages struct {
	locking.Store
	names []string
	asked []locking.ListFilter
}

func (p *pages) List(_ context.Context, f locking.ListFilter) ([]locking.Record, error) {
	p.asked = append(p.asked, f)
	var page []locking.Record
	for _, name := range p.names {
		if name > f.After && len(page) < f.Limit {
			page = append(page, locking.Record{Resource: name})
		}
	}
	return page, nil
}

func TestAllLocksPages(t *testing.T) {
	t.Parallel()
	p := &pages{}
	for i := range 2500 {
		p.names = append(p.names, strconv.Itoa(10_000+i))
	}
	views, err := allLocks(t.Context(), p, locking.ListFilter{Limit: maxList})
	require.NoError(t, err)
	assert.Len(t, views, 2500)
	assert.Len(t, p.asked, 3)
	assert.JSONEq(t, "{}", string(views[0].Metadata), "metadata is always an object")

	views, err = allLocks(t.Context(), p, locking.ListFilter{Limit: 1200})
	require.NoError(t, err)
	assert.Len(t, views, 1200)
}

// The first client on an empty database migrates it, and several first clients are no problem.
func TestFirstClientsMigrate(t *testing.T) {
	t.Parallel()
	dbtest.EachEmpty(t, func(t *testing.T, url string) {
		t.Helper()
		w := connected(t, url)
		var wg sync.WaitGroup
		answers := make([]answer, 5)
		for i := range answers {
			wg.Go(func() { answers[i] = w.runIn(t.Context(), "run", "backup:db", "--detach", "--request-id", "same") })
		}
		wg.Wait()
		for _, got := range answers {
			assert.Equal(t, exitOK, got.code, got.errors)
			assert.Equal(t, answers[0].out, got.out)
		}
	})
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	dbtest.EachEmpty(t, func(t *testing.T, url string) {
		t.Helper()
		w := connected(t, url)
		w.run(t, "migrate", "status").says(t, exitOK, "VERSION  NAME          APPLIED\n      1  initial       pending\n      2  lock_service  pending\n      3  policies      pending\n      4  operating     pending\n", "cronlatch: `cronlatch migrate up` applies what is pending\n")
		w.run(t, "migrate", "status", "-o", "ndjson").says(t, exitOK, `{"version":1,"name":"initial","applied_at":null}`+"\n"+`{"version":2,"name":"lock_service","applied_at":null}`+"\n"+`{"version":3,"name":"policies","applied_at":null}`+"\n"+`{"version":4,"name":"operating","applied_at":null}`+"\n",
			"cronlatch: `cronlatch migrate up` applies what is pending\n")
		w.run(t, "migrate", "up").says(t, exitOK, "", "cronlatch: applied 4 migrations; the schema is at migration 4\n")
		w.run(t, "migrate", "up").says(t, exitOK, "", "cronlatch: the schema is up to date at migration 4; nothing was done\n")
		status := w.run(t, "migrate", "status")
		assert.Regexp(t, `^VERSION  NAME          APPLIED\n      1  initial       \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ\n      2  lock_service  \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ\n      3  policies      \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ\n      4  operating     \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ\n$`, status.out)
		assert.Empty(t, status.errors)
	})
}

func TestASchemaFromTheFuture(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		db := dbtest.Open(t, url)
		_, err := db.Main.ExecContext(t.Context(), "INSERT INTO schema_migrations (version, name, checksum, applied_at) "+
			"SELECT 99, 'later', checksum, applied_at FROM schema_migrations WHERE version = 1")
		require.NoError(t, err)
		w := connected(t, url)
		for _, line := range []string{"runs list", "locks list", "run backup:db", "migrate up", "migrate status"} {
			got := w.run(t, strings.Fields(line)...)
			assert.Equal(t, exitFailure, got.code, line)
			assert.Contains(t, got.errors, "newer than this binary", line)
		}
	})
}

// A server that is not there, and one that accepts and never answers: both end with 69 within the patience.
func TestDatabaseOutOfReach(t *testing.T) {
	t.Parallel()
	silent := listen(t)
	for name, addr := range map[string]string{"refused": nobodyListens, "silent": silent.Addr().String()} {
		for _, line := range []string{"runs list", "locks list", "run backup:db", "migrate up", "migrate status"} {
			t.Run(name+" "+line, func(t *testing.T) {
				t.Parallel()
				w := connected(t, "postgres://u:geheim@"+addr+"/x?sslmode=disable")
				w.patience = patience
				began := time.Now()
				got := w.run(t, strings.Fields(line)...)
				assert.Less(t, time.Since(began), patience+10*time.Second)
				assert.Equal(t, exitUnavailable, got.code)
				assert.Empty(t, got.out)
				assert.Contains(t, got.errors, "cronlatch: the database postgres://u")
				assert.Contains(t, got.errors, "cannot be reached")
				assert.Contains(t, got.errors, "--database-url or DATABASE_URL names another")
				assert.NotContains(t, got.errors, "geheim")
			})
		}
	}
}

// nobodyListens is an address that refuses: the port of a listener that is closed may be the next one's.
const nobodyListens = "127.0.0.1:1"

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestABadDatabaseURL(t *testing.T) {
	t.Parallel()
	w := connected(t, "mysql://u:geheim@db/x")
	got := w.run(t, "runs", "list")
	assert.Equal(t, exitConfig, got.code)
	assert.Contains(t, got.errors, "cronlatch: DATABASE_URL: ")
	assert.NotContains(t, got.errors, "geheim")
	flag := w.run(t, "runs", "list", "--database-url", "postgres:x")
	assert.Equal(t, exitConfig, flag.code)
	assert.Contains(t, flag.errors, "cronlatch: --database-url: ", "the flag goes before the variable")
}

// Who is in trouble with a broken file can still look at the ledger.
func TestListsNeedNoFileWhenTheDatabaseIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, "oops: [")
	got := w.run(t, "runs", "list", "--database-url", dbtest.SQLiteURL(t), "-o", "json")
	assert.Equal(t, exitOK, got.code, got.errors)
	assert.Equal(t, "[]\n", got.out)
}

func TestTheDatabaseOfTheFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, "database: {url: 'sqlite:state/x.db'}\njobs: {x: {run: 'true'}}\n")
	got := w.run(t, "runs", "list")
	assert.Equal(t, exitConfig, got.code)
	assert.Contains(t, got.errors, "the folder DIR/state does not exist")
	w.write(t, "jobs: {x: {run: 'true'}}\n")
	assert.Equal(t, "1\n", w.run(t, "run", "x", "--detach").out)
	assert.FileExists(t, w.dir+"/cronlatch.db", "beside the configuration")
}

func TestInterruptedClient(t *testing.T) {
	t.Parallel()
	w := connected(t, "postgres://u@"+listen(t).Addr().String()+"/x?sslmode=disable")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := w.runIn(ctx, "runs", "list")
	got.says(t, 130, "", "cronlatch: interrupted\n")
}
