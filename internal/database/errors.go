package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/uptrace/bun/driver/pgdriver"
)

var (
	// ErrRolledBack is the answer to the COMMIT of a transaction that the server rolled back, because one of its
	// statements had failed. Nothing of it was stored.
	ErrRolledBack = errors.New("database: the transaction was rolled back because one of its statements had failed")
	// ErrText says that a statement holds NUL or invalid UTF-8. It was not sent: drivers rewrite such text silently,
	// and two names become one.
	ErrText = errors.New("database: text with NUL or invalid UTF-8 is refused")
	// ErrFileReplaced says that the SQLite file at the path is no longer the one that was opened.
	ErrFileReplaced = errors.New("database: the file was deleted or replaced while it was open")
	// ErrRefused says that the database cannot be used as it is, and that waiting does not help: a folder is missing,
	// the file is on a network file system, SQLite is too old.
	ErrRefused = errors.New("database refused")
)

// lostError is a call that ended without the server's answer.
type lostError struct {
	host  string
	limit time.Duration
	sent  bool  // the statement may have reached the server
	ended error // of the context, nil when the pool's own limit or the network ended the call
	err   error
}

func (e *lostError) Error() string {
	switch {
	case e.ended != nil:
		return fmt.Sprintf("postgres %s: no answer yet: %v", e.host, e.ended)
	case errors.Is(e.err, os.ErrDeadlineExceeded):
		return fmt.Sprintf("postgres %s: no answer within %v", e.host, e.limit)
	default:
		return fmt.Sprintf("postgres %s: the connection was lost: %v", e.host, e.err)
	}
}

func (e *lostError) Unwrap() []error {
	if e.ended != nil {
		return []error{e.ended, e.err}
	}
	return []error{e.err}
}

// longError is a server's error that pgdriver could not read, as far as the wire saw it.
type longError struct{ answer }

func (e *longError) Error() string {
	return fmt.Sprintf("%s: %s... (SQLSTATE=%s)", e.severity, e.message, e.code)
}

// connectError is a connection that did not come about: one error for each host that was tried.
type connectError struct{ errs []error }

func (e *connectError) Error() string {
	texts := make([]string, len(e.errs))
	for i, err := range e.errs {
		texts[i] = err.Error()
	}
	return "connecting to postgres: " + strings.Join(texts, "; ")
}

func (e *connectError) Unwrap() []error { return e.errs }

// SQLState is the five-letter code of the PostgreSQL error in err, "" when the server did not answer with one.
func SQLState(err error) string {
	var pg pgdriver.Error
	if errors.As(err, &pg) {
		return pg.Field('C')
	}
	var long *longError
	if errors.As(err, &long) {
		return long.code
	}
	return ""
}

// Unavailable reports whether the database could not be reached, went away, is starting up, is read-only, has no room
// or did not answer in time. Later the same call may succeed.
func Unavailable(err error) bool {
	var lost *lostError
	var connect *connectError
	switch {
	case err == nil || errors.Is(err, ErrRefused):
		return false
	case errors.As(err, &lost), errors.As(err, &connect):
		return true
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone), errors.Is(err, errDead),
		errors.Is(err, context.DeadlineExceeded):
		return true
	case isSQLite(err, sqlite3.CANTOPEN, sqlite3.IOERR, sqlite3.FULL, sqlite3.READONLY, sqlite3.PROTOCOL):
		return true
	}
	state := SQLState(err)
	switch state {
	case "25006", "57014", "57P01", "57P02", "57P03", "57P04", "57P05", "58030":
		return true
	}
	return strings.HasPrefix(state, "08") || strings.HasPrefix(state, "53")
}

// Unknown reports whether the statement may or may not have been executed: it was sent, and no answer came. A bare
// error of the context counts too, because database/sql hands it out for statements that were sent.
func Unknown(err error) bool {
	var lost *lostError
	if errors.As(err, &lost) {
		return lost.sent
	}
	var connect *connectError
	if errors.As(err, &connect) {
		return false
	}
	switch SQLState(err) {
	case "08007", "40003":
		return true
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || isSQLite(err, sqlite3.IOERR)
}

// Retryable reports whether the statement (or its whole transaction) was refused because of others that ran at the
// same time: it changed nothing, and a bounded number of retries is right.
func Retryable(err error) bool {
	switch SQLState(err) {
	case "40001", "40P01", "55P03":
		return true
	}
	return isSQLite(err, sqlite3.BUSY, sqlite3.LOCKED)
}

func isSQLite(err error, codes ...sqlite3.ErrorCode) bool {
	var code sqlite3.ErrorCode // of *sqlite3.Error, and of the bare codes that the driver returns for some
	return errors.As(err, &code) && slices.Contains(codes, code)
}
