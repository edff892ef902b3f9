package database_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver" // the raw driver, for comparison
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/internal/database"
)

func newFile(t *testing.T) (path string, db *database.DB) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "it's 100% #1 + é.db")
	return path, open(t, "sqlite:"+path, database.Options{})
}

func TestSQLiteSettings(t *testing.T) {
	t.Parallel()
	path, db := newFile(t)
	for _, pool := range []*bun.DB{db.Main, db.Renew} {
		for pragma, want := range map[string]string{
			"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "5000",
		} {
			var got string
			require.NoError(t, pool.NewRaw("PRAGMA ?", bun.Ident(pragma)).Scan(t.Context(), &got))
			assert.Equal(t, want, got, pragma)
		}
		assert.Equal(t, 1, pool.Stats().MaxOpenConnections)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode(), suffix)
	}
}

// The files beside a database are as private as it is from the first statement on, and again after all connections were
// closed.
func TestSQLiteFilesArePrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	for range 2 {
		target, err := database.Parse("sqlite:"+path, nil, "")
		require.NoError(t, err)
		db, err := database.Open(target, database.Options{})
		require.NoError(t, err)
		_, err = db.Main.ExecContext(t.Context(), `CREATE TABLE IF NOT EXISTS t (n)`)
		require.NoError(t, err)
		for _, suffix := range []string{"", "-wal", "-shm"} {
			info, err := os.Stat(path + suffix)
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o600), info.Mode(), suffix)
		}
		require.NoError(t, db.Close())
	}
}

//nolint:paralleltest // it changes the working directory
func TestSQLiteRelativePath(t *testing.T) {
	t.Chdir(t.TempDir())
	target, err := database.Resolve("", "", noEnv, "")
	require.NoError(t, err)
	db, err := database.Open(target, database.Options{})
	require.NoError(t, err)
	require.NoError(t, db.Main.PingContext(t.Context()))
	_, err = db.Main.ExecContext(t.Context(), "CREATE TABLE x (n)")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	assert.FileExists(t, database.DefaultFile)
}

func TestSQLiteRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte("this is no database, but a text that is long enough to be looked at"), 0o600))
	for path, want := range map[string]string{
		dir:                                 "is a folder",
		filepath.Join(dir, "no", "x.db"):    "does not exist; create it first",
		filepath.Join(text, "x.db"):         "is not a folder",
		"/dev/null":                         "is not a regular file",
		filepath.Join("/proc/self", "x.db"): "creating the database file",
	} {
		if _, err := os.Stat("/proc/self"); err != nil && want == "creating the database file" {
			continue // no such folder on this system
		}
		db := open(t, "sqlite:"+path, database.Options{})
		err := db.Wait(t.Context(), noLog())
		require.ErrorIs(t, err, database.ErrRefused, path)
		require.ErrorContains(t, err, want)
		assert.False(t, database.Unavailable(err), "waiting does not help")
	}
	err := open(t, "sqlite:"+text, database.Options{}).Main.PingContext(t.Context())
	require.ErrorContains(t, err, "not a database")
}

// A file that is deleted or replaced while it is open gives two owners to every lock.
func TestSQLiteFileDeleted(t *testing.T) {
	t.Parallel()
	path, db := newFile(t)
	require.NoError(t, db.CheckFile(t.Context()), "nothing is open yet")
	require.NoError(t, db.Main.PingContext(t.Context()))
	require.NoError(t, db.CheckFile(t.Context()))
	require.NoError(t, os.Rename(path, path+".moved"))
	require.ErrorIs(t, db.CheckFile(t.Context()), database.ErrFileReplaced)
	require.ErrorIs(t, db.Renew.PingContext(t.Context()), database.ErrFileReplaced, "no new file in its place")
	assert.NoFileExists(t, path)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.ErrorIs(t, db.CheckFile(t.Context()), database.ErrFileReplaced)
	require.ErrorIs(t, db.Renew.PingContext(t.Context()), database.ErrFileReplaced)
	require.NoError(t, os.Rename(path+".moved", path))
	require.NoError(t, db.CheckFile(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, db.CheckFile(ctx), context.Canceled)
}

func TestSQLiteText(t *testing.T) {
	t.Parallel()
	_, db := newFile(t)
	for _, text := range []string{"a\x00b", "a\xffb"} {
		_, err := db.Main.NewRaw("SELECT ?", text).Exec(t.Context())
		require.ErrorIs(t, err, database.ErrText)
		require.ErrorIs(t, db.Main.NewRaw("SELECT ?", text).Scan(t.Context(), new(string)), database.ErrText)
		_, err = db.Main.DB.ExecContext(t.Context(), "SELECT ?", text)
		require.ErrorIs(t, err, database.ErrText)
	}
	var back string
	require.NoError(t, db.Main.NewRaw("SELECT ?", "it's 50 % 日本 🙂 \\").Scan(t.Context(), &back))
	assert.Equal(t, "it's 50 % 日本 🙂 \\", back)
}

// Two transactions that read first and write then: deferred ones fail at once, whatever the busy timeout; ours wait.
func TestSQLiteTransactionsWaitForTheWriter(t *testing.T) {
	t.Parallel()
	path, db := newFile(t)
	_, err := db.Main.ExecContext(t.Context(), "CREATE TABLE counter (n INTEGER); INSERT INTO counter VALUES (0)")
	require.NoError(t, err)

	dsn := "file:" + t.TempDir() + "/raw.db?_txlock=deferred&_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)"
	one, err := sql.Open("sqlite3", dsn)
	require.NoError(t, err)
	defer func() { _ = one.Close() }()
	_, err = one.ExecContext(t.Context(), "CREATE TABLE counter (n INTEGER); INSERT INTO counter VALUES (0)")
	require.NoError(t, err)
	tx, err := one.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, tx.QueryRowContext(t.Context(), "SELECT n FROM counter").Scan(new(int)))
	_, err = one.ExecContext(t.Context(), "UPDATE counter SET n = 1")
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), "UPDATE counter SET n = 2")
	require.Error(t, err)
	assert.True(t, database.Retryable(err), "%v", err)
	_ = tx.Rollback()

	other := open(t, "sqlite:"+path, database.Options{})
	var work sync.WaitGroup
	for _, pool := range []*bun.DB{db.Main, db.Renew, other.Main, other.Renew} {
		work.Go(func() { assert.NoError(t, countUp(t.Context(), pool, 25)) })
	}
	work.Wait()
	assert.Equal(t, 100, counter(t, db))
}

// A writer that holds the file for longer than the busy timeout is reported as such.
func TestSQLiteBusyIsRetryable(t *testing.T) {
	t.Parallel()
	path, db := newFile(t)
	other := open(t, "sqlite:"+path, database.Options{})
	tx, err := db.Main.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err = other.Main.BeginTx(ctx, nil)
	require.Error(t, err)
	assert.Less(t, time.Since(start), 4*time.Second, "the context ends the wait for the lock")
	_, err = other.Main.ExecContext(t.Context(), "CREATE TABLE x (n)")
	require.Error(t, err)
	assert.True(t, database.Retryable(err), "%v", err)
	require.NoError(t, tx.Rollback())
}

// countUp reads and writes in one transaction, so that a lost update shows. SQLite gives the lock to whoever looks at the
// right moment: on a slow disk one of several may go without for longer than five seconds.
func countUp(ctx context.Context, db *bun.DB, times int) error {
	if _, err := db.ExecContext(ctx, "PRAGMA busy_timeout = 60000"); err != nil {
		return err
	}
	for range times {
		err := db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			var n int
			if err := tx.NewRaw("SELECT n FROM counter").Scan(ctx, &n); err != nil {
				return err
			}
			_, err := tx.NewRaw("UPDATE counter SET n = ?", n+1).Exec(ctx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func counter(t *testing.T, db *database.DB) (n int) {
	t.Helper()
	require.NoError(t, db.Main.NewRaw("SELECT n FROM counter").Scan(t.Context(), &n))
	return n
}

// counterEnv makes the test binary a process that counts in the named file.
const counterEnv = "CRONLATCH_TEST_COUNTER"

const countsPerProcess = 100

func countInProcess(path string) int {
	err := func() (err error) {
		target, err := database.Parse("sqlite:"+path, nil, "")
		if err != nil {
			return err
		}
		db, err := database.Open(target, database.Options{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		return countUp(context.Background(), db.Main, countsPerProcess)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestSQLiteThreeProcesses(t *testing.T) {
	t.Parallel()
	path, db := newFile(t)
	_, err := db.Main.ExecContext(t.Context(), "CREATE TABLE counter (n INTEGER); INSERT INTO counter VALUES (0)")
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	var work sync.WaitGroup
	for range 3 {
		work.Go(func() {
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), counterEnv+"="+path)
			out, err := cmd.CombinedOutput()
			assert.NoError(t, err, "%s", out)
		})
	}
	work.Wait()
	assert.Equal(t, 3*countsPerProcess, counter(t, db))
	require.NoError(t, db.CheckFile(t.Context()))
}
