package locking_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

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
