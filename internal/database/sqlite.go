package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	sqlite "github.com/ncruces/go-sqlite3/driver"
)

const (
	sqliteFileMode  = 0o600
	minSQLite       = 3_042_000 // unixepoch('subsec') and RETURNING as the statements use them
	sqliteBusyLimit = "5000"    // milliseconds that a statement waits for another writer
)

// sqliteFile is the connector of both pools of one file. It remembers which file it opened first: a later connection
// to another file at the same path would be a second database under the same name.
type sqliteFile struct {
	path string

	mu     sync.Mutex
	opened fs.FileInfo // nil before the first connection
}

var _ driver.Connector = (*sqliteFile)(nil)

// Driver implements driver.Connector.
func (f *sqliteFile) Driver() driver.Driver { return noDriver{} }

// Connect implements driver.Connector. It creates the file when there is none, for its owner alone.
func (f *sqliteFile) Connect(ctx context.Context) (driver.Conn, error) {
	if err := f.prepare(); err != nil {
		return nil, err
	}
	connector, err := (&sqlite.SQLite{}).OpenConnector(f.dsn())
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", f.path, err)
	}
	raw, err := connector.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", f.path, err)
	}
	c := &sqliteConn{raw.(sqlite.Conn)}
	if err := f.settle(ctx, c); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// dsn is the file with the settings that each connection needs. Order matters: busy_timeout first, so that switching
// to WAL waits for other processes. modeof gives the WAL the mode of the file.
func (f *sqliteFile) dsn() string {
	q := "_txlock=immediate&_pragma=busy_timeout(" + sqliteBusyLimit + ")" +
		"&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=foreign_keys(on)" +
		"&modeof=" + strings.ReplaceAll(url.QueryEscape(f.path), "+", "%20") // SQLite leaves + alone
	return (&url.URL{Scheme: "file", OmitHost: true, Path: f.path, RawQuery: q}).String()
}

// prepare looks at the place before SQLite does, because SQLite's own errors do not say what is wrong with it.
func (f *sqliteFile) prepare() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.opened != nil {
		return f.checkLocked()
	}
	dir := filepath.Dir(f.path)
	if err := checkFolder(dir); err != nil {
		return err
	}
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f.create()
	case err != nil:
		return fmt.Errorf("%w: opening %s: %w", ErrRefused, f.path, err)
	case info.IsDir():
		return fmt.Errorf("%w: %s is a folder; the database must be a file", ErrRefused, f.path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is not a regular file", ErrRefused, f.path)
	}
	return nil
}

func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: the folder %s does not exist; create it first", ErrRefused, dir)
	case err != nil:
		return fmt.Errorf("%w: opening the folder: %w", ErrRefused, err)
	case !info.IsDir():
		return fmt.Errorf("%w: %s is not a folder", ErrRefused, dir)
	}
	name, err := networkFileSystem(dir)
	if err != nil {
		return fmt.Errorf("finding the file system of %s: %w", dir, err)
	}
	if name != "" {
		return fmt.Errorf("%w: %s is on a network file system (%s), where SQLite's locks do not hold; "+
			"use a local disk, or PostgreSQL", ErrRefused, dir, name)
	}
	return nil
}

// create makes the empty file. Another process may be first, and that is as good.
func (f *sqliteFile) create() error {
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, sqliteFileMode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: creating the database file: %w", ErrRefused, err)
	}
	return file.Close()
}

// check reports whether the path still names the file that was opened.
func (f *sqliteFile) check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.checkLocked()
}

func (f *sqliteFile) checkLocked() error {
	if f.opened == nil {
		return nil
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFileReplaced, err)
	}
	if !os.SameFile(info, f.opened) {
		return fmt.Errorf("%w: %s", ErrFileReplaced, f.path)
	}
	return nil
}

// remember keeps the identity of the first file, and compares later ones with it.
func (f *sqliteFile) remember() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.opened != nil {
		return f.checkLocked()
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFileReplaced, err)
	}
	f.opened = info
	return nil
}
