package database

import (
	"context"
	"database/sql/driver"
	"fmt"
	"os"

	"github.com/ncruces/go-sqlite3"
	sqlite "github.com/ncruces/go-sqlite3/driver"
)

// sqliteConn is the driver's connection with the text check of the guard in front: SQLite would cut a statement off
// at NUL.
type sqliteConn struct{ sqlite.Conn }

var _ driver.ExecerContext = (*sqliteConn)(nil)

// ExecContext implements driver.ExecerContext.
func (c *sqliteConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := checkText(query, args); err != nil {
		return nil, err
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

// PrepareContext implements driver.ConnPrepareContext. database/sql goes through it for every query with arguments or
// rows, so it is the ordinary path here and not a prepared statement that is kept.
func (c *sqliteConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if err := checkText(query, nil); err != nil {
		return nil, err
	}
	return c.Conn.PrepareContext(ctx, query)
}

// CheckNamedValue implements driver.NamedValueChecker: the statement checks its arguments, once it is there.
func (c *sqliteConn) CheckNamedValue(arg *driver.NamedValue) error {
	if s, ok := arg.Value.(string); ok && !cleanText(s) {
		return ErrText
	}
	return nil
}

// settle reads back what the connection was asked to be, and remembers the file behind it.
func (f *sqliteFile) settle(ctx context.Context, c *sqliteConn) error {
	raw := c.Raw()
	defer raw.SetInterrupt(raw.SetInterrupt(ctx))
	version, err := readPragma(raw, `SELECT sqlite_version()`)
	if err != nil {
		return fmt.Errorf("opening %s: %w", f.path, err)
	}
	if n := versionNumber(version); n < minSQLite {
		return fmt.Errorf("%w: SQLite %s is too old, 3.42 is needed", ErrRefused, version)
	}
	for _, p := range []struct{ query, want string }{
		{`PRAGMA journal_mode`, "wal"},
		{`PRAGMA synchronous`, "2"},
		{`PRAGMA foreign_keys`, "1"},
		{`PRAGMA busy_timeout`, sqliteBusyLimit},
	} {
		got, err := readPragma(raw, p.query)
		if err != nil {
			return fmt.Errorf("opening %s: %w", f.path, err)
		}
		if got != p.want {
			return fmt.Errorf("%w: %s of %s is %s and not %s", ErrRefused, p.query, f.path, got, p.want)
		}
	}
	if _, err := readPragma(raw, `SELECT count(*) FROM sqlite_schema`); err != nil { // the first read makes the file that protect wants
		return fmt.Errorf("opening %s: %w", f.path, err)
	}
	f.protect()
	return f.remember()
}

// protect takes the shared-memory file away from other users, as far as it can: it holds no data, and the driver gives
// it no mode of the database's.
func (f *sqliteFile) protect() {
	info, err := os.Stat(f.path)
	if err != nil {
		return
	}
	shm := f.path + "-shm"
	if side, err := os.Stat(shm); err == nil && side.Mode().Perm() != info.Mode().Perm() {
		_ = os.Chmod(shm, info.Mode().Perm())
	}
}

func readPragma(raw *sqlite3.Conn, query string) (string, error) {
	s, _, err := raw.Prepare(query)
	if err != nil {
		return "", err
	}
	defer func() { _ = s.Close() }()
	if !s.Step() {
		return "", s.Err()
	}
	return s.ColumnText(0), nil
}

// versionNumber is SQLite's own encoding: 3.42.0 is 3042000. An unreadable version is 0.
func versionNumber(version string) int {
	var major, minor, patch int
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); n < 2 {
		return 0
	}
	return major*1_000_000 + minor*1000 + patch
}
