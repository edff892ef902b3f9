package executor

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// sqlRig is a database with a table and a lock for one run.
type sqlRig struct {
	*testing.T

	db    *database.DB
	locks locking.Store
	lock  locking.Record
	e     *Executor
}

const lockTTL = time.Hour

func newSQLRig(t *testing.T, db *database.DB) *sqlRig {
	t.Helper()
	r := &sqlRig{T: t, db: db, e: New(Options{Boot: boottime.Now, Own: db.Target, Replica: "a", TTL: lockTTL, Getenv: os.Getenv})}
	_, err := db.Main.ExecContext(t.Context(), "CREATE TABLE notes (text text)")
	require.NoError(t, err)
	r.locks, err = locking.NewStore(db.Main)
	require.NoError(t, err)
	r.lock = r.acquire("me")
	return r
}

func (r *sqlRig) acquire(owner string) locking.Record {
	r.Helper()
	got, err := r.locks.Acquire(r.Context(), []locking.AcquireRequest{{Resource: "res", Owner: owner, TTL: lockTTL}})
	require.NoError(r, err)
	require.True(r, got[0].Acquired)
	return got[0].Record
}

// takeOver gives the lock to somebody else.
func (r *sqlRig) takeOver() {
	r.Helper()
	_, err := r.locks.Release(r.Context(), []locking.Claim{{Resource: "res", Owner: "me", FencingToken: r.lock.FencingToken}})
	require.NoError(r, err)
	r.acquire("other")
}

func (r *sqlRig) attempt(statements ...string) jobs.Attempt {
	a := attempt(&jobs.Job{Name: "a", SQL: &jobs.SQL{Database: jobs.OwnDatabase, Statements: statements}})
	a.Run.FencingToken = r.lock.FencingToken
	return a
}

func (r *sqlRig) run(statements ...string) jobs.Result {
	r.Helper()
	return ended(r.T, start(r.T, r.e, r.attempt(statements...)))
}

func (r *sqlRig) notes() []string {
	r.Helper()
	list := []string{}
	require.NoError(r, r.db.Main.NewRaw("SELECT text FROM notes ORDER BY text").Scan(r.Context(), &list))
	return list
}

func TestATransactionIsStored(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		r := newSQLRig(t, db)
		got := r.run("INSERT INTO notes VALUES ('b'), ('c'), ('d')", "-- all but one\nUPDATE notes SET text = {{ .Resource }} || text WHERE text <> 'd'",
			"DELETE FROM notes WHERE text = 'd'")
		assert.Equal(t, jobs.CauseExited, got.Cause, string(got.Output.Head))
		assert.Zero(t, got.ExitCode)
		assert.Equal(t, "INSERT: 3 rows\nUPDATE: 2 rows\nDELETE: 1 row\ncommitted\n", string(got.Output.Head))
		assert.Equal(t, []string{"resb", "resc"}, r.notes())
	})
}

func TestAFailedStatementStoresNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		r := newSQLRig(t, db)
		got := r.run("INSERT INTO notes VALUES ('b')", "INSERT INTO nowhere VALUES ('hunter2-canary')")
		assert.Equal(t, jobs.CauseExited, got.Cause)
		assert.Equal(t, jobs.ReasonSQL, got.Reason)
		assert.Contains(t, string(got.Output.Head), "INSERT: 1 row\nstatement 2 (INSERT): ")
		assert.Contains(t, string(got.Output.Head), "nowhere")
		assert.NotContains(t, string(got.Output.Head), canary)
		assert.Empty(t, r.notes())
	})
}

// TestAPartIsOneStatement: what splitting overlooked cannot end the transaction in the middle.
func TestAPartIsOneStatement(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		r := newSQLRig(t, db)
		got := r.run("INSERT INTO notes VALUES ('b'); COMMIT")
		assert.Equal(t, jobs.ReasonSQL, got.Reason, string(got.Output.Head))
		assert.Empty(t, r.notes())
	})
}

// TestWithoutItsLockARunStoresNothing: the token is what counts, not the resource.
func TestWithoutItsLockARunStoresNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		r := newSQLRig(t, db)
		r.takeOver()
		got := r.run("INSERT INTO notes VALUES ('b')")
		assert.Equal(t, jobs.CauseDeadline, got.Cause)
		assert.Contains(t, string(got.Output.Head), "no longer its lock")
		assert.NotContains(t, string(got.Output.Head), "INSERT", "it is refused before the first statement")
		assert.Empty(t, r.notes())
	})
}

func TestAStatementEndsWithItsRun(t *testing.T) {
	t.Parallel()
	const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000) INSERT INTO notes SELECT max(i) FROM n"
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		r := newSQLRig(t, db)
		a := r.attempt("INSERT INTO notes VALUES ('b')", endless)
		a.Job.Timeout = 200 * time.Millisecond
		got := ended(t, start(t, r.e, a))
		assert.Equal(t, jobs.CauseTimeout, got.Cause, string(got.Output.Head))
		assert.Empty(t, r.notes())
	})
}

// TestALongTransactionDoesNotStopTheFleet: on SQLite nobody else can write meanwhile.
func TestALongTransactionDoesNotStopTheFleet(t *testing.T) {
	t.Parallel()
	r := newSQLRig(t, dbtest.SQLite(t))
	r.e.o.TTL = 8 * time.Second // a quarter of it is room for the beginning
	got := r.run("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000) INSERT INTO notes SELECT max(i) FROM n")
	assert.Equal(t, jobs.ReasonSQL, got.Reason)
	assert.Contains(t, string(got.Output.Head), "a quarter of lock.ttl")
	assert.Empty(t, r.notes())
}

func TestAnotherDatabase(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		db := dbtest.Open(t, url)
		r := newSQLRig(t, db)
		r.takeOver() // there is no lock in another database to look at
		a := r.attempt("INSERT INTO notes VALUES ('b')")
		a.Job.SQL.Database, a.Job.SQL.URL = "warehouse", url
		got := ended(t, start(t, r.e, a))
		assert.Empty(t, got.Reason, string(got.Output.Head))
		assert.Equal(t, []string{"b"}, r.notes())
	})
}

func TestADatabaseThatCannotBeReached(t *testing.T) {
	t.Parallel()
	a := attempt(&jobs.Job{Name: "a", SQL: &jobs.SQL{
		Database: "w", URL: "postgres://u:" + canary + "@127.0.0.1:1/x?sslmode=disable", Statements: []string{"SELECT 1"},
	}})
	e := New(Options{Boot: boottime.Now})
	got := ended(t, start(t, e, a))
	assert.Equal(t, jobs.ReasonStart, got.Reason)
	assert.Contains(t, string(got.Output.Head), "connection refused")
	assert.NotContains(t, string(got.Output.Head), canary)

	a.Job.SQL.URL = "mysql://u:" + canary + "@host/x"
	p, err := e.Start(t.Context(), a)
	require.Nil(t, p)
	var refused *jobs.StartError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, 126, refused.ExitCode)
	assert.NotContains(t, refused.Message, canary)
}

// TestAnotherServerIsNotSentOurPassword: the daemon's environment is for the daemon's database.
func TestAnotherServerIsNotSentOurPassword(t *testing.T) {
	t.Parallel()
	e := New(Options{Boot: boottime.Now, Getenv: func(name string) string {
		return map[string]string{"PGPASSWORD": canary, "PGHOST": "ours.example", "PGUSER": "ours", "USER": "me"}[name]
	}})
	target, err := e.target(&jobs.SQL{Database: "w", URL: "postgres://theirs.example/x"})
	require.NoError(t, err)
	assert.Equal(t, "postgres://me@theirs.example:5432/x?sslmode=verify-full", target.String())
}

// waitFor polls a question about the server until its answer is true.
func (r *sqlRig) waitFor(question string) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	require.Eventually(r, func() bool {
		var answer bool
		return r.db.Main.NewRaw(question).Scan(ctx, &answer) == nil && answer
	}, patience, 10*time.Millisecond)
}
