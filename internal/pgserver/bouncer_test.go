package pgserver

import (
	"database/sql"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun/driver/pgdriver"
)

// client is one connection to the pooler.
func client(t *testing.T, url string) *sql.DB {
	t.Helper()
	db := sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(url)))
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	return db
}

func answer(t *testing.T, db *sql.DB, text string) (answer string) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), text).Scan(&answer))
	return answer
}

func pidOf(t *testing.T, b *Bouncer) int {
	t.Helper()
	content, err := os.ReadFile(b.pidFile())
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	require.NoError(t, err)
	return pid
}

// Two clients share a session of the server, in every database: that is what transaction mode means.
func TestBouncerSharesSessions(t *testing.T) {
	t.Parallel()
	s := Start(t)
	b := StartBouncer(t, s)
	for _, database := range []string{"postgres", "template1"} {
		one, two := client(t, b.On(database)), client(t, b.On(database))
		assert.Equal(t, database, answer(t, one, `SELECT current_database()`))
		assert.Equal(t, "postgres", answer(t, two, `SELECT current_user`))
		_, err := one.ExecContext(t.Context(), `SET work_mem = '77kB'`)
		require.NoError(t, err)
		assert.Equal(t, "77kB", answer(t, two, `SHOW work_mem`))
		assert.Equal(t, answer(t, one, `SELECT pg_backend_pid()::text`), answer(t, two, `SELECT pg_backend_pid()::text`))
	}
}

func TestBouncerKillAndRestart(t *testing.T) {
	t.Parallel()
	s := Start(t)
	b := StartBouncer(t, s)
	url, pid := b.URL(), pidOf(t, b)
	db := client(t, url)
	answer(t, db, `SELECT 'up'`)
	b.Kill()
	b.Kill() // it is down already
	gone(t, pid)
	require.Error(t, db.PingContext(t.Context()))
	require.NoError(t, b.Restart(t.Context()))
	assert.Equal(t, url, b.URL(), "the port stays")
	require.Eventually(t, func() bool { return db.PingContext(t.Context()) == nil }, patience, look)
	require.NoError(t, b.Restart(t.Context()), "also one that is up")
	assert.Contains(t, b.Log(), "process up:")
}

func TestBouncerLeavesNothing(t *testing.T) {
	t.Parallel()
	s := Start(t)
	var root string
	var pid int
	require.NoError(t, s.Pooled(t.Context(), func(b *Bouncer) error {
		root, pid = b.folder.root, pidOf(t, b)
		return nil
	}))
	gone(t, pid)
	assert.NoDirExists(t, root)
}

// The watchdog ends a pooler whose starting process is gone.
func TestBouncerEndsWithItsStarter(t *testing.T) {
	t.Parallel()
	s := Start(t)
	b := StartBouncer(t, s)
	pid := pidOf(t, b)
	require.NoError(t, b.watchdog.pipe.Close()) // what the kernel does when the starter is gone
	gone(t, pid)
	folderGone(t, b.folder.root)
	require.NoError(t, b.watchdog.cmd.Wait())
	b.watchdog = nil
}

// Not parallel: it changes the environment.
func TestFindBouncer(t *testing.T) {
	found, err := FindBouncer()
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(filepath.Base(found), "pgbouncer"), found)
	t.Setenv(BouncerEnv, "/bin/sh")
	found, err = FindBouncer()
	require.NoError(t, err)
	assert.Equal(t, "/bin/sh", found)
	t.Setenv(BouncerEnv, "/nonexistent/pgbouncer")
	_, err = FindBouncer()
	require.ErrorContains(t, err, "using CRONLATCH_TEST_PGBOUNCER")
}
