package locking_test

import (
	"database/sql"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

// begin starts a transaction that ends with the test at the latest.
func begin(t *testing.T, db *bun.DB) bun.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func exec(t *testing.T, db bun.IDB, query string, args ...any) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), query, args...)
	require.NoError(t, err)
}

func tryAcquire(t *testing.T, s locking.Store, resource, owner string) locking.AcquireResult {
	t.Helper()
	res, err := s.Acquire(t.Context(), []locking.AcquireRequest{{Resource: resource, Owner: owner, TTL: time.Minute}})
	require.NoError(t, err)
	return res[0]
}

func mustAcquire(t *testing.T, s locking.Store, resource, owner string) locking.Record {
	t.Helper()
	res := tryAcquire(t, s, resource, owner)
	require.True(t, res.Acquired)
	return res.Record
}

func claimOf(r locking.Record) locking.Claim {
	return locking.Claim{Resource: r.Resource, Owner: r.Owner, FencingToken: r.FencingToken, TTL: time.Minute}
}

func newStore(tb testing.TB, db bun.IDB) locking.Store {
	tb.Helper()
	store, err := locking.NewStore(db)
	require.NoError(tb, err)
	return store
}

func TestSQLiteConforms(t *testing.T) {
	t.Parallel()
	lockingtest.Run(t, func(t *testing.T) lockingtest.Backend {
		t.Helper()
		url := dbtest.SQLiteURL(t)
		db := dbtest.Open(t, url).Main
		return lockingtest.Backend{
			Store: newStore(t, db),
			Age: func(t *testing.T, resource string, d time.Duration) {
				t.Helper()
				_, err := db.ExecContext(t.Context(), `UPDATE distributed_locks SET acquired_at = acquired_at - ?0,
					renewed_at = renewed_at - ?0, expires_at = expires_at - ?0, released_at = released_at - ?0
					WHERE resource = ?1`, d.Milliseconds(), resource)
				require.NoError(t, err)
			},
			Reopen: func(t *testing.T) locking.Store { t.Helper(); return newStore(t, dbtest.Open(t, url).Main) },
		}
	})
}

// A loser neither writes nor waits for who writes.
func TestSQLiteLoserDoesNotNeedTheWriteLock(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	mustAcquire(t, newStore(t, db.Main), "a", "A")
	writer := begin(t, db.Main)
	exec(t, writer, `UPDATE fencing_tokens SET last = last`)
	// The writer does not end before the answer: who waits for it gets an error after the busy timeout.
	res, err := newStore(t, db.Renew).Acquire(t.Context(), []locking.AcquireRequest{{Resource: "a", Owner: "B", TTL: time.Minute}})
	require.NoError(t, err)
	require.False(t, res[0].Acquired)
}

// A driver may begin transactions DEFERRED. One that reads first and writes later fails at once, whatever the busy
// timeout is, when another connection wrote in between: the store takes the write lock before it reads.
func TestSQLiteDeferredTransactions(t *testing.T) {
	t.Parallel()
	path := strings.TrimPrefix(dbtest.SQLiteURL(t), "sqlite:")
	var wg sync.WaitGroup
	for i := range 4 {
		raw, err := sql.Open("sqlite3", "file:"+path+"?_txlock=deferred&_pragma=busy_timeout(60000)")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, raw.Close()) })
		store := newStore(t, bun.NewDB(raw, sqlitedialect.New()))
		wg.Go(func() {
			for range 50 {
				_, err := store.Acquire(t.Context(), []locking.AcquireRequest{
					{Resource: strconv.Itoa(i), Owner: locking.NewOwner(), TTL: time.Millisecond},
				})
				if !assert.NoError(t, err) {
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestSQLiteTokensSurviveACounterThatWasSetBack(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t).Main
	store := newStore(t, db)
	exec(t, db, `UPDATE fencing_tokens SET last = 1000`)
	a := mustAcquire(t, store, "a", "A")
	exec(t, db, `UPDATE fencing_tokens SET last = 1`)
	requireTokensGoOn(t, store, a, func() {
		exec(t, db, `UPDATE distributed_locks SET expires_at = expires_at - 36000000, released_at = released_at - 36000000`)
	})
}

// requireTokensGoOn checks that a row keeps its memory of a token that the counter has forgotten.
func requireTokensGoOn(t *testing.T, store locking.Store, a locking.Record, age func()) {
	t.Helper()
	for range 3 {
		_, err := store.Release(t.Context(), []locking.Claim{claimOf(a)})
		require.NoError(t, err)
		age()
		_, err = store.Purge(t.Context(), time.Minute, 10)
		require.NoError(t, err)
		next := mustAcquire(t, store, "a", "B")
		require.Greater(t, next.FencingToken, a.FencingToken)
		a = next
	}
}

// The store works inside the caller's transaction, and what is rolled back was never granted.
func TestStoreInATransaction(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		outside := newStore(t, db.Renew)
		tx := begin(t, db.Main)
		first := mustAcquire(t, newStore(t, tx), "a", "A")
		require.NoError(t, tx.Rollback())
		_, err := outside.Get(t.Context(), "a")
		require.ErrorIs(t, err, locking.ErrNotFound)

		tx = begin(t, db.Main)
		inside := newStore(t, tx)
		a := mustAcquire(t, inside, "a", "A")
		require.False(t, tryAcquire(t, inside, "a", "B").Acquired)
		renewed, err := inside.Renew(t.Context(), []locking.Claim{claimOf(a)})
		require.NoError(t, err)
		require.NoError(t, renewed[0].Err)
		b := mustAcquire(t, inside, "b", "A")
		freed, err := inside.Release(t.Context(), []locking.Claim{claimOf(b), {Resource: "c", Owner: "A"}})
		require.NoError(t, err)
		require.NoError(t, freed[0].Err)
		require.ErrorIs(t, freed[1].Err, locking.ErrNotFound)
		require.NoError(t, tx.Commit())
		held, err := outside.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, a.FencingToken, held.FencingToken)
		require.GreaterOrEqual(t, a.FencingToken, first.FencingToken)
	})
}
