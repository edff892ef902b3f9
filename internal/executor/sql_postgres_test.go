package executor

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

const (
	blocked   = "SELECT pg_advisory_xact_lock(1)"
	isBlocked = "SELECT EXISTS (SELECT FROM pg_locks JOIN pg_database AS d ON d.oid = database WHERE locktype = 'advisory' AND NOT granted AND datname = current_database())"
)

// block holds up the statement blocked until the returned function is called.
func (r *sqlRig) block() (release func()) {
	r.Helper()
	tx, err := r.db.Main.BeginTx(r.Context(), nil)
	require.NoError(r, err)
	_, err = tx.ExecContext(r.Context(), blocked)
	require.NoError(r, err)
	return func() { require.NoError(r, tx.Rollback()) }
}

// TestALockThatIsLostMeanwhileStoresNothing: what counts is the moment of the commit.
func TestALockThatIsLostMeanwhileStoresNothing(t *testing.T) {
	t.Parallel()
	r := newSQLRig(t, dbtest.Postgres(t))
	release := r.block()
	p := start(t, r.e, r.attempt("INSERT INTO notes VALUES ('b')", blocked))
	r.waitFor(isBlocked)
	r.takeOver()
	release()
	got := ended(t, p)
	assert.Equal(t, jobs.CauseDeadline, got.Cause)
	assert.Contains(t, string(got.Output.Head), "INSERT: 1 row\n")
	assert.Contains(t, string(got.Output.Head), "no longer its lock")
	assert.Empty(t, r.notes())
}

// TestALongTransactionIsRenewed: the statements do not lock the row that the keeper writes to.
func TestALongTransactionIsRenewed(t *testing.T) {
	t.Parallel()
	r := newSQLRig(t, dbtest.Postgres(t))
	release := r.block()
	p := start(t, r.e, r.attempt("INSERT INTO notes VALUES ('b')", blocked))
	r.waitFor(isBlocked)
	renewed, err := r.locks.Renew(t.Context(), []locking.Claim{{Resource: "res", Owner: "me", FencingToken: r.lock.FencingToken, TTL: lockTTL}})
	require.NoError(t, err)
	require.NoError(t, renewed[0].Err)
	release()
	got := ended(t, p)
	assert.Equal(t, jobs.CauseExited, got.Cause)
	assert.Equal(t, []string{"b"}, r.notes())
}

// TestNobodyTakesALockOverWhileItsRunCommits: the row is locked from the last look to the end of the transaction.
func TestNobodyTakesALockOverWhileItsRunCommits(t *testing.T) {
	t.Parallel()
	r := newSQLRig(t, dbtest.Postgres(t))
	tx, err := r.db.Main.DB.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	a := r.attempt("SELECT 1")
	x := &transaction{e: r.e, a: &a, target: r.db.Target}
	require.NoError(t, x.checkLock(t.Context(), tx, pgLock))
	got, err := r.locks.Renew(t.Context(), []locking.Claim{{Resource: "res", Owner: "me", FencingToken: r.lock.FencingToken, TTL: lockTTL}})
	require.NoError(t, err)
	require.ErrorIs(t, got[0].Err, locking.ErrUnknown)
	require.NoError(t, tx.Rollback())
}

// TestTheServerGivesUpWithTheLock even if nobody on this side could tell it to.
func TestTheServerGivesUpWithTheLock(t *testing.T) {
	t.Parallel()
	r := newSQLRig(t, dbtest.Postgres(t))
	a := r.attempt("INSERT INTO notes VALUES ('b')", "SELECT pg_sleep(60)")
	a.Deadline = boottime.Now() + inTime // and StopAt is far away
	got := ended(t, start(t, r.e, a))
	assert.Equal(t, jobs.ReasonSQL, got.Reason)
	assert.Contains(t, string(got.Output.Head), "statement 2 (SELECT): ")
	assert.Contains(t, string(got.Output.Head), "raise lock.ttl")
	assert.Empty(t, r.notes())
}

func TestTheSettingsOfATransaction(t *testing.T) {
	t.Parallel()
	r := newSQLRig(t, dbtest.Postgres(t))
	for name, want := range map[string]string{
		"transaction_isolation": "read committed", "lock_timeout": "0", "jit": "on", "enable_bitmapscan": "on",
	} {
		got := r.run("INSERT INTO notes SELECT current_setting('" + name + "')")
		require.Empty(t, got.Reason, string(got.Output.Head))
		assert.Contains(t, r.notes(), want, name)
	}
	_, err := r.db.Main.ExecContext(t.Context(), "DELETE FROM notes")
	require.NoError(t, err)
	a := r.attempt("INSERT INTO notes SELECT setting FROM pg_settings WHERE name = 'statement_timeout'")
	a.Deadline = boottime.Now() + time.Minute
	require.Empty(t, ended(t, start(t, r.e, a)).Reason)
	limit, err := strconv.Atoi(r.notes()[0])
	require.NoError(t, err)
	assert.Positive(t, limit)
	assert.LessOrEqual(t, limit, 60_000)
}
