// Package dbtest gives every test its own migrated database, on PostgreSQL and on SQLite.
//
// Model: on the server named by CRONLATCH_TEST_POSTGRES (make test starts one, see internal/pgserver) the first caller
// migrates a template database; each test gets a copy of it, which takes 15 ms on an idle machine, and drops it at its
// end. A SQLite database is a file in a temporary folder of the test. A whole database rather than a schema of its own,
// because advisory locks, notifications and pg_stat_activity are per database.
//
// Guarantees: tests that run at the same time, in one process or in several, never see each other's data. Nothing is left
// on the server but the template.
//
// Non-guarantees: roles, settings and the server itself are shared. A test that changes them, or stops the server, uses
// pgserver.Start.
//
// Failure handling: without a server the test fails and says what to type.
//
// How to test: go test ./internal/database/dbtest, beside a server.
package dbtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/migrations"
)

// Each runs f as the parallel subtests "postgres" and "sqlite", each with its own database.
func Each(t *testing.T, f func(t *testing.T, db *database.DB)) {
	t.Helper()
	EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		f(t, Open(t, url))
	})
}

// EachURL is Each for tests that start processes.
func EachURL(t *testing.T, f func(t *testing.T, url string)) {
	t.Helper()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		f(t, PostgresURL(t))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		f(t, SQLiteURL(t))
	})
}

// EachEmpty is EachURL with databases that were never migrated.
func EachEmpty(t *testing.T, f func(t *testing.T, url string)) {
	t.Helper()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		f(t, EmptyPostgresURL(t))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		f(t, EmptySQLiteURL(t))
	})
}

// Postgres opens a new migrated PostgreSQL database, closed and dropped at the end of the test.
func Postgres(tb testing.TB) *database.DB {
	tb.Helper()
	return Open(tb, PostgresURL(tb))
}

// SQLite opens a new migrated SQLite file, closed at the end of the test.
func SQLite(tb testing.TB) *database.DB {
	tb.Helper()
	return Open(tb, SQLiteURL(tb))
}

// SQLiteURL makes a migrated SQLite file and returns its URL.
func SQLiteURL(tb testing.TB) string {
	tb.Helper()
	url := EmptySQLiteURL(tb)
	db := open(tb, url, database.Options{})
	defer closeDB(tb, db)
	if err := migrations.Up(tb.Context(), db.Main); err != nil {
		tb.Fatal(err)
	}
	return url
}

// EmptySQLiteURL names a SQLite file that does not exist yet.
func EmptySQLiteURL(tb testing.TB) string {
	tb.Helper()
	// Not tb.TempDir: the second subtest of one name has a # in it, which the URL of a SQLite file refuses.
	dir, err := os.MkdirTemp("", "cronlatch-db-") //nolint:usetesting // see above
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Errorf("removing the test's database: %v", err)
		}
	})
	return "sqlite:" + filepath.Join(dir, "cronlatch.db")
}

// Open opens a database as the daemon does, closed at the end of the test.
func Open(tb testing.TB, url string) *database.DB {
	tb.Helper()
	db := open(tb, url, database.Options{AppName: "cronlatch test"})
	tb.Cleanup(func() { closeDB(tb, db) })
	return db
}

func open(tb testing.TB, url string, o database.Options) *database.DB {
	tb.Helper()
	target, err := database.Parse(url, func(string) string { return "" }, ".")
	if err != nil {
		tb.Fatal(err)
	}
	db, err := database.Open(target, o)
	if err != nil {
		tb.Fatal(err)
	}
	return db
}

// filling is how long Fill may take on a busy machine.
const filling = 5 * time.Minute

// Fill writes more than the timeouts of a daemon's statements leave time for.
func Fill(tb testing.TB, db *bun.DB, query string, args ...any) {
	tb.Helper()
	ctx := database.WithTimeout(tb.Context(), filling)
	err := db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if db.Dialect().Name() == dialect.PG {
			if _, err := tx.ExecContext(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
				return err
			}
		}
		_, err := tx.NewRaw(query, args...).Exec(ctx)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func closeDB(tb testing.TB, db *database.DB) {
	tb.Helper()
	if err := db.Close(); err != nil {
		tb.Errorf("closing the test's database: %v", err)
	}
}
