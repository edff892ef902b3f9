package locking_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/driver/pgdriver"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

func TestPostgresConforms(t *testing.T) {
	t.Parallel()
	postgresConforms(t, func(t *testing.T, url string) *bun.DB { t.Helper(); return dbtest.Open(t, url).Main })
}

// A program of somebody else opens its database as it likes: here with pgdriver alone, which prepares nothing and writes
// the arguments into the text. That its sessions are READ COMMITTED is its own business.
func TestPostgresConformsOnABareDriver(t *testing.T) {
	t.Parallel()
	postgresConforms(t, func(t *testing.T, url string) *bun.DB {
		t.Helper()
		db := bun.NewDB(sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(url), pgdriver.WithConnParams(map[string]any{
			"default_transaction_isolation": "read committed", "DateStyle": "ISO",
		}))), pgdialect.New())
		t.Cleanup(func() { assert.NoError(t, db.Close()) })
		return db
	})
}

func postgresConforms(t *testing.T, open func(t *testing.T, url string) *bun.DB) {
	t.Helper()
	lockingtest.Run(t, func(t *testing.T) lockingtest.Backend {
		t.Helper()
		url := dbtest.PostgresURL(t)
		db := open(t, url)
		return lockingtest.Backend{
			Store: newStore(t, db),
			Age: func(t *testing.T, resource string, d time.Duration) {
				t.Helper()
				_, err := db.ExecContext(t.Context(), `UPDATE distributed_locks AS l SET acquired_at = acquired_at - i,
					renewed_at = renewed_at - i, expires_at = expires_at - i, released_at = released_at - i
					FROM (SELECT ?0 * interval '1 microsecond') AS x (i) WHERE resource = ?1`, d.Microseconds(), resource)
				require.NoError(t, err)
			},
			Reopen: func(t *testing.T) locking.Store { t.Helper(); return newStore(t, open(t, url)) },
		}
	})
}
