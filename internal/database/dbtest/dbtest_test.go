package dbtest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/migrations"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEachTestHasAMigratedDatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	for range 2 {
		dbtest.Each(t, func(t *testing.T, db *database.DB) {
			t.Helper()
			require.NoError(t, migrations.Check(t.Context(), db.Main))
			_, err := db.Main.ExecContext(t.Context(),
				`INSERT INTO plan_positions (job, schedule_hash, position) VALUES ('j', 'h', `+epoch(db)+`)`)
			require.NoError(t, err, "the other test's row must not be here")
		})
	}
}

func TestEmptyDatabasesHaveNoSchema(t *testing.T) {
	t.Parallel()
	dbtest.EachEmpty(t, func(t *testing.T, url string) {
		t.Helper()
		db := dbtest.Open(t, url)
		require.ErrorIs(t, migrations.Check(t.Context(), db.Main), migrations.ErrPending)
	})
}

func TestPostgresDatabasesAreDropped(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("inner", func(t *testing.T) {
		db := dbtest.Postgres(t)
		require.NoError(t, db.Main.QueryRowContext(t.Context(), `SELECT current_database()`).Scan(&name))
	})
	server := dbtest.Open(t, dbtest.ServerURL(t))
	var left int
	require.NoError(t, server.Main.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_database WHERE datname = ?`, name).Scan(&left))
	assert.Zero(t, left)
}

func epoch(db *database.DB) string {
	if db.Kind == database.SQLite {
		return `0`
	}
	return `'epoch'`
}

func BenchmarkPostgresURL(b *testing.B) {
	for b.Loop() {
		dbtest.PostgresURL(b)
	}
}

func BenchmarkSQLiteURL(b *testing.B) {
	for b.Loop() {
		dbtest.SQLiteURL(b)
	}
}
