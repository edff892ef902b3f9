package locking_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

func TestPostgresConforms(t *testing.T) {
	t.Parallel()
	lockingtest.Run(t, func(t *testing.T) lockingtest.Backend {
		t.Helper()
		url := dbtest.PostgresURL(t)
		db := dbtest.Open(t, url).Main
		return lockingtest.Backend{
			Store: newStore(t, db),
			Age: func(t *testing.T, resource string, d time.Duration) {
				t.Helper()
				_, err := db.ExecContext(t.Context(), `UPDATE distributed_locks AS l SET acquired_at = acquired_at - i,
					renewed_at = renewed_at - i, expires_at = expires_at - i, released_at = released_at - i
					FROM (SELECT ?0 * interval '1 microsecond') AS x (i) WHERE resource = ?1`, d.Microseconds(), resource)
				require.NoError(t, err)
			},
			Reopen: func(t *testing.T) locking.Store { t.Helper(); return newStore(t, dbtest.Open(t, url).Main) },
		}
	})
}
