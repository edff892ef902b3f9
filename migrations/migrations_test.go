package migrations_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/migrations"
)

// addSecond makes a second migration, so that there is a middle to crash in.
func addSecond(s migrations.Schema) {
	s.Replace(2, "second", "CREATE TABLE second (id integer);\nINSERT INTO second VALUES (1)")
}

func eachEmpty(t *testing.T, f func(t *testing.T, db *database.DB)) {
	t.Helper()
	dbtest.EachEmpty(t, func(t *testing.T, url string) {
		t.Helper()
		f(t, dbtest.Open(t, url))
	})
}

func schemaOf(t *testing.T, db *bun.DB) migrations.Schema {
	t.Helper()
	s, err := migrations.SchemaOf(db)
	require.NoError(t, err)
	return s
}

func TestUpIsDoneOnceAndSaysWhen(t *testing.T) {
	t.Parallel()
	eachEmpty(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		before, err := migrations.Status(t.Context(), db.Main)
		require.NoError(t, err)
		require.NotEmpty(t, before)
		assert.Equal(t, migrations.Migration{Version: 1, Name: "initial"}, before[0])
		require.ErrorIs(t, migrations.Check(t.Context(), db.Main), migrations.ErrPending)

		for range 2 {
			require.NoError(t, migrations.Up(t.Context(), db.Main))
			require.NoError(t, migrations.Check(t.Context(), db.Main))
		}
		after, err := migrations.Status(t.Context(), db.Main)
		require.NoError(t, err)
		require.Len(t, after, len(before))
		require.NotNil(t, after[0].AppliedAt)
		assert.Equal(t, "UTC", after[0].AppliedAt.Location().String())
		var now dbtime.Time
		require.NoError(t, db.Main.QueryRowContext(t.Context(), currentTime(db)).Scan(&now))
		assert.InDelta(t, now.Unix(), after[0].AppliedAt.Unix(), 600)
	})
}

func TestFiveReplicasStartAtOnceOnAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	const replicas = 5
	t.Run("processes", func(t *testing.T) {
		t.Parallel()
		dbtest.EachEmpty(t, func(t *testing.T, url string) {
			t.Helper()
			all := make([]*replica, replicas)
			for i := range all {
				all[i] = startReplica(t, url, "")
			}
			for _, r := range all {
				r.migrate(t)
			}
			for _, r := range all {
				require.NoError(t, r.cmd.Wait())
			}
			require.NoError(t, migrations.Check(t.Context(), dbtest.Open(t, url).Main))
		})
	})
	t.Run("pools", func(t *testing.T) {
		t.Parallel()
		dbtest.EachEmpty(t, func(t *testing.T, url string) {
			t.Helper()
			errs := make([]error, replicas)
			var all sync.WaitGroup
			for i := range errs {
				db := dbtest.Open(t, url)
				all.Go(func() { errs[i] = migrations.Up(t.Context(), db.Main) })
			}
			all.Wait()
			for _, err := range errs {
				require.NoError(t, err)
			}
			require.NoError(t, migrations.Check(t.Context(), dbtest.Open(t, url).Main))
		})
	})
}

func TestKilledInTheMiddleLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	for _, stopAfter := range []string{"initial", "second"} {
		t.Run("after "+stopAfter, func(t *testing.T) {
			t.Parallel()
			dbtest.EachEmpty(t, func(t *testing.T, url string) {
				t.Helper()
				victim := startReplica(t, url, stopAfter)
				victim.migrate(t)
				victim.expect(t, "stopped")

				db := dbtest.Open(t, url)
				require.ErrorIs(t, migrations.Check(t.Context(), db.Main), migrations.ErrPending, "nothing is visible before the end")
				require.NoError(t, victim.cmd.Process.Kill())
				require.Error(t, victim.cmd.Wait())

				s := schemaOf(t, db.Main)
				addSecond(s)
				require.NoError(t, s.Up(t.Context(), db.Main), "a second attempt finds a clean place")
				require.NoError(t, s.Check(t.Context(), db.Main))
				var rows int
				require.NoError(t, db.Main.QueryRowContext(t.Context(), `SELECT count(*) FROM second`).Scan(&rows))
				assert.Equal(t, 1, rows)
			})
		})
	}
}

func TestAFailedMigrationLeavesNothing(t *testing.T) {
	t.Parallel()
	eachEmpty(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		s := schemaOf(t, db.Main)
		s.Replace(2, "broken", "CREATE TABLE second (id integer); INSERT INTO nowhere VALUES (1)")
		err := s.Up(t.Context(), db.Main)
		require.ErrorContains(t, err, "migrating the database: applying 0002_broken: ")
		require.ErrorContains(t, err, "nowhere")
		status, err := migrations.Status(t.Context(), db.Main)
		require.NoError(t, err)
		assert.Nil(t, status[0].AppliedAt)
		require.NoError(t, migrations.Up(t.Context(), db.Main))
	})
}

func TestNewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	eachEmpty(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		newer := schemaOf(t, db.Main)
		addSecond(newer)
		require.NoError(t, newer.Up(t.Context(), db.Main))
		older := schemaOf(t, db.Main)
		older.Keep(1)
		for _, err := range []error{older.Check(t.Context(), db.Main), older.Up(t.Context(), db.Main)} {
			require.ErrorIs(t, err, migrations.ErrNewer)
			require.EqualError(t, err, "migrations: the schema is newer than this binary: the database is at migration 0002_second, "+
				"this binary knows only 1; use the version of cronlatch that migrated it, or a newer one")
		}
		status, err := older.Status(t.Context(), db.Main)
		require.NoError(t, err)
		require.Len(t, status, 2)
		assert.Equal(t, "second", status[1].Name)
		assert.NotNil(t, status[1].AppliedAt)
	})
}

func TestAChangedFileIsReported(t *testing.T) {
	t.Parallel()
	eachEmpty(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		require.NoError(t, migrations.Up(t.Context(), db.Main))
		s := schemaOf(t, db.Main)
		s.Replace(1, "initial", "-- edited later")
		for _, err := range []error{s.Check(t.Context(), db.Main), s.Up(t.Context(), db.Main)} {
			require.ErrorIs(t, err, migrations.ErrChanged)
			require.ErrorContains(t, err, "migration 0001_initial was applied on 2")
		}
	})
}

func TestAHoleIsReported(t *testing.T) {
	t.Parallel()
	eachEmpty(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		s := schemaOf(t, db.Main)
		addSecond(s)
		require.NoError(t, s.Up(t.Context(), db.Main))
		_, err := db.Main.ExecContext(t.Context(), `DELETE FROM schema_migrations WHERE version = 1`)
		require.NoError(t, err)
		require.ErrorIs(t, s.Up(t.Context(), db.Main), migrations.ErrChanged)
		require.ErrorContains(t, s.Check(t.Context(), db.Main), "migration 1 is missing in schema_migrations although 2 is there")
	})
}

// The second of two replicas waits for the first, here for as long as the first is stopped in its transaction.
func TestWaitingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	dbtest.EachEmpty(t, func(t *testing.T, url string) {
		t.Helper()
		first := startReplica(t, url, "initial")
		first.migrate(t)
		first.expect(t, "stopped")
		ctx, cancel := context.WithCancel(t.Context())
		defer time.AfterFunc(300*time.Millisecond, cancel).Stop()
		require.ErrorIs(t, migrations.Up(ctx, dbtest.Open(t, url).Main), context.Canceled)
		require.NoError(t, first.cmd.Process.Kill())
		require.Error(t, first.cmd.Wait())
		require.NoError(t, migrations.Up(t.Context(), dbtest.Open(t, url).Main))
	})
}

// The pool's timeouts, on either side of the connection, are for the daemon's own statements.
func TestPostgresMigrationMayTakeLongerThanAStatement(t *testing.T) {
	t.Parallel()
	target, err := database.Parse(dbtest.EmptyPostgresURL(t), nil, ".")
	require.NoError(t, err)
	db, err := database.Open(target, database.Options{StatementTimeout: 3 * time.Second})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = db.Main.ExecContext(t.Context(), `SELECT pg_sleep(4)`)
	require.Error(t, err, "a statement is cut off")
	s := schemaOf(t, db.Main)
	s.Replace(2, "slow", `CREATE TABLE slow (id integer); SELECT pg_sleep(4)`)
	require.NoError(t, s.Up(t.Context(), db.Main))
	_, err = db.Main.ExecContext(t.Context(), `SELECT pg_sleep(4)`)
	require.Error(t, err, "the next statement is cut off again")
}

// On SQLite a transaction that cannot begin within the busy timeout, here none, is an error and not a wait.
func TestSQLiteWaitsLongerThanTheBusyTimeout(t *testing.T) {
	t.Parallel()
	url := dbtest.EmptySQLiteURL(t)
	first := startReplica(t, url, "initial")
	first.migrate(t)
	first.expect(t, "stopped")
	db := dbtest.Open(t, url)
	_, err := db.Main.ExecContext(t.Context(), `PRAGMA busy_timeout = 0`)
	require.NoError(t, err)
	_, err = db.Main.BeginTx(t.Context(), nil)
	require.True(t, database.Retryable(err), "busy at once: %v", err)
	done := make(chan error, 1)
	go func() { done <- migrations.Up(t.Context(), db.Main) }()
	require.NoError(t, first.cmd.Process.Kill())
	require.Error(t, first.cmd.Wait())
	require.NoError(t, <-done)
}

func currentTime(db *database.DB) string {
	if db.Kind == database.SQLite {
		return `SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)`
	}
	return `SELECT clock_timestamp()`
}
