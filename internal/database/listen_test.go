package database_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
)

func hears(t *testing.T, l *database.Listener) {
	t.Helper()
	select {
	case _, open := <-l.C:
		require.True(t, open, "the connection was lost")
	case <-time.After(patience):
		require.Fail(t, "nothing was heard")
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t, dbtest.Direct(t, dbtest.PostgresURL(t)))
	l, err := db.Listen(t.Context(), "a channel")
	require.NoError(t, err)
	notify := func(channel string) {
		t.Helper()
		_, err := db.Main.ExecContext(t.Context(), `SELECT pg_notify(?, '')`, channel)
		require.NoError(t, err)
	}
	notify("a channel")
	hears(t, l)
	notify("another")
	notify("a channel")
	notify("a channel")
	hears(t, l)
	l.Close()
	for range l.C { // what was not received yet, and then the end
	}
	var listening int
	require.NoError(t, db.Main.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_listening_channels()`).Scan(&listening))
	assert.Zero(t, listening, "the connection did not go back into the pool")
}

func TestAListenerNoticesThatItsConnectionIsGone(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t, dbtest.Direct(t, dbtest.PostgresURL(t)))
	l, err := db.Listen(t.Context(), "c")
	require.NoError(t, err)
	defer l.Close()
	_, err = db.Main.ExecContext(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE 'LISTEN%'`)
	require.NoError(t, err)
	select {
	case _, open := <-l.C:
		assert.False(t, open)
	case <-time.After(patience):
		require.Fail(t, "the end of the connection was not noticed")
	}
}

func TestSQLiteHasNoNotifications(t *testing.T) {
	t.Parallel()
	_, err := dbtest.SQLite(t).Listen(t.Context(), "c")
	require.ErrorIs(t, err, errors.ErrUnsupported)
}
