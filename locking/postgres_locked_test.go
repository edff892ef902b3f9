package locking_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/locking"
)

// waitUntilBlocked returns when n sessions of the test's database wait for a lock.
func waitUntilBlocked(t *testing.T, db *bun.DB, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		var blocked int
		err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&blocked)
		return err == nil && blocked >= n
	}, time.Minute, 5*time.Millisecond)
}

// patient opens a database whose statements wait for a locked row, and whose transactions may be idle, for as long as a
// busy machine needs.
func patient(t *testing.T, url string) *bun.DB {
	t.Helper()
	target, err := database.Parse(url, func(name string) string {
		return map[string]string{"PGCONNECT_TIMEOUT": "120"}[name] // a hundred clients come at the same moment
	}, ".")
	require.NoError(t, err)
	db, err := database.Open(target, database.Options{AppName: "cronlatch test", StatementTimeout: 2 * time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	return db.Main
}

// impatient is a session that waits for a row lock only briefly.
func impatient(t *testing.T, db *bun.DB) locking.Store {
	t.Helper()
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	exec(t, conn, `SET lock_timeout = '100ms'`)
	return newStore(t, conn)
}

func holdTen(t *testing.T, store locking.Store) []locking.Claim {
	t.Helper()
	claims := make([]locking.Claim, 10)
	for i := range claims {
		claims[i] = claimOf(mustAcquire(t, store, fmt.Sprintf("lock %d", i), "A"))
	}
	return claims
}

// One row that another transaction has locked stalls neither the others nor becomes lost.
func TestPostgresRenewalOfALockedRow(t *testing.T) {
	t.Parallel()
	db := dbtest.Postgres(t)
	claims := holdTen(t, newStore(t, db.Main))
	other := begin(t, db.Main)
	exec(t, other, `SELECT FROM distributed_locks WHERE resource = 'lock 3' FOR UPDATE`)
	store := impatient(t, db.Main)
	res, err := store.Renew(t.Context(), claims)
	require.NoError(t, err)
	for i := range res {
		if i == 3 {
			require.ErrorIs(t, res[i].Err, locking.ErrUnknown)
			require.NotErrorIs(t, res[i].Err, locking.ErrLost)
			assert.Equal(t, "55P03", database.SQLState(res[i].Err))
			continue
		}
		require.NoError(t, res[i].Err)
	}
	require.NoError(t, other.Rollback())
	res, err = store.Renew(t.Context(), claims)
	require.NoError(t, err)
	require.NoError(t, res[3].Err)
}

// The single retry decides by the row as it is after the wait, not by the snapshot from before.
func TestPostgresRenewalAfterTheWait(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change string
		want   error
	}{
		"unchanged": {`SELECT FROM distributed_locks WHERE resource = 'lock 3' FOR UPDATE`, nil},
		"metadata":  {`UPDATE distributed_locks SET metadata = '{"x":1}' WHERE resource = 'lock 3'`, nil},
		"forced":    {`UPDATE distributed_locks SET released_at = clock_timestamp() WHERE resource = 'lock 3'`, locking.ErrLost},
		"expired":   {`UPDATE distributed_locks SET expires_at = clock_timestamp() WHERE resource = 'lock 3'`, locking.ErrLost},
		"other":     {`UPDATE distributed_locks SET owner = 'B' WHERE resource = 'lock 3'`, locking.ErrLost},
		"token":     {`UPDATE distributed_locks SET fencing_token = fencing_token + 1000 WHERE resource = 'lock 3'`, locking.ErrLost},
		"deleted":   {`DELETE FROM distributed_locks WHERE resource = 'lock 3'`, locking.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := patient(t, dbtest.PostgresURL(t))
			store := newStore(t, db)
			claims := holdTen(t, store)
			other := begin(t, db)
			exec(t, other, c.change)
			done := make(chan []locking.ClaimResult, 1)
			go func() {
				res, err := store.Renew(t.Context(), claims)
				assert.NoError(t, err)
				done <- res
			}()
			waitUntilBlocked(t, db, 1)
			require.NoError(t, other.Commit())
			for i, r := range <-done {
				if i == 3 && c.want != nil {
					require.ErrorIs(t, r.Err, c.want)
					continue
				}
				require.NoError(t, r.Err)
			}
		})
	}
}

// A release that waited for the row says why it was refused from the row as it is then.
func TestPostgresReleaseAfterTheWait(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change string
		want   error
	}{
		"expired": {`UPDATE distributed_locks SET expires_at = clock_timestamp()`, locking.ErrNotFound},
		"other":   {`UPDATE distributed_locks SET owner = 'B'`, locking.ErrNotOwner},
		"token":   {`UPDATE distributed_locks SET fencing_token = fencing_token + 1`, locking.ErrStaleToken},
		"deleted": {`DELETE FROM distributed_locks`, locking.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := patient(t, dbtest.PostgresURL(t))
			store := newStore(t, db)
			a := mustAcquire(t, store, "a", "A")
			other := begin(t, db)
			exec(t, other, c.change)
			done := make(chan error, 1)
			go func() {
				res, err := store.Release(t.Context(), []locking.Claim{claimOf(a)})
				assert.NoError(t, err)
				done <- res[0].Err
			}()
			waitUntilBlocked(t, db, 1)
			require.NoError(t, other.Commit())
			require.ErrorIs(t, <-done, c.want)
		})
	}
}

type acquired struct {
	res locking.AcquireResult
	err error
}

// acquireBlocked starts an acquire by B and returns when it waits for the row.
func acquireBlocked(t *testing.T, db *bun.DB, ttl time.Duration) <-chan acquired {
	t.Helper()
	store, done := newStore(t, db), make(chan acquired, 1)
	go func() {
		res, err := store.Acquire(t.Context(), []locking.AcquireRequest{{Resource: "a", Owner: "B", TTL: ttl}})
		if err != nil {
			done <- acquired{err: err}
			return
		}
		done <- acquired{res: res[0]}
	}()
	waitUntilBlocked(t, db, 1)
	return done
}

// A grant counts from after the wait for the row, and its token is above what was given out during the wait.
func TestPostgresGrantAfterAWait(t *testing.T) {
	t.Parallel()
	const short = 100 * time.Millisecond
	db := patient(t, dbtest.PostgresURL(t))
	store := newStore(t, db)
	_, err := store.Release(t.Context(), []locking.Claim{claimOf(mustAcquire(t, store, "a", "A"))})
	require.NoError(t, err)
	tx := begin(t, db)
	a := mustAcquire(t, newStore(t, tx), "a", "A")
	_, err = newStore(t, tx).Release(t.Context(), []locking.Claim{claimOf(a)})
	require.NoError(t, err)
	done := acquireBlocked(t, db, short)
	for range 40 { // more than the wait of B is worth, and tokens drawn by others
		mustAcquire(t, store, "other "+locking.NewOwner(), "A")
	}
	outlast(t, store, short)
	require.NoError(t, tx.Commit())
	got := <-done
	require.NoError(t, got.err)
	require.True(t, got.res.Acquired)
	assert.False(t, got.res.Takeover, "the row that was replaced had been released, whatever the snapshot showed")
	assert.Positive(t, got.res.Record.Remaining())
	assert.Greater(t, got.res.Record.FencingToken, a.FencingToken)
	assert.Greater(t, got.res.Record.FencingToken, mustTokenOfOthers(t, store), "drawn after the wait")
}

// outlast waits until d has passed on the database's clock.
func outlast(t *testing.T, store locking.Store, d time.Duration) {
	t.Helper()
	from, err := store.Now(t.Context())
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		now, err := store.Now(t.Context())
		return err == nil && now.Sub(from) > d
	}, time.Minute, 10*time.Millisecond)
}

func mustTokenOfOthers(t *testing.T, store locking.Store) int64 {
	t.Helper()
	rows, err := store.List(t.Context(), locking.ListFilter{Prefix: "other "})
	require.NoError(t, err)
	highest := int64(0)
	for _, r := range rows {
		highest = max(highest, r.FencingToken)
	}
	return highest
}

// The first insert waits for another one that is rolled back: what it had computed before is too old.
func TestPostgresInsertAfterARollback(t *testing.T) {
	t.Parallel()
	const short = 100 * time.Millisecond
	db := patient(t, dbtest.PostgresURL(t))
	tx := begin(t, db)
	mustAcquire(t, newStore(t, tx), "a", "A")
	done := acquireBlocked(t, db, short)
	outlast(t, newStore(t, db), short)
	require.NoError(t, tx.Rollback())
	got := <-done
	require.NoError(t, got.err)
	require.True(t, got.res.Acquired)
	assert.Positive(t, got.res.Record.Remaining(), "a grant does not arrive expired")
	assert.False(t, got.res.Takeover)
}

// The holder came after the loser's snapshot: the loser is told who it is all the same.
func TestPostgresLoserAfterAWait(t *testing.T) {
	t.Parallel()
	db := patient(t, dbtest.PostgresURL(t))
	tx := begin(t, db)
	a := mustAcquire(t, newStore(t, tx), "a", "A")
	done := acquireBlocked(t, db, time.Minute)
	require.NoError(t, tx.Commit())
	got := <-done
	require.NoError(t, got.err)
	require.False(t, got.res.Acquired)
	assert.Equal(t, a.FencingToken, got.res.Record.FencingToken)
	assert.Equal(t, "A", got.res.Record.Owner)
}
