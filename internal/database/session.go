package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// setupSQL looks whether the connection leads to a pooler and whether the server takes writes, and sets the session up
// when it is ours alone: a pooler would keep the settings for the next client.
//
// The statements here touch a few rows each, in the order of an index. Compiling them (jit) costs a hundred times what
// they cost, and while the statistics lag behind a burst of new rows the planner would rather collect and sort all of
// them than walk the index. DateStyle is the one that pgdriver reads; its order of day and month is for input, and stays.
const (
	setupSQL = `SELECT CASE WHEN pg_backend_pid() = $1 THEN 0 ELSE 1 END,
		CASE WHEN current_setting('transaction_read_only') = 'on' OR pg_is_in_recovery() THEN 1 ELSE 0 END,
		CASE WHEN pg_backend_pid() = $1 THEN concat(
			set_config('statement_timeout', $2, false), set_config('lock_timeout', $3, false),
			set_config('idle_in_transaction_session_timeout', $4, false),
			set_config('default_transaction_isolation', 'read committed', false), set_config('DateStyle', 'ISO', false),
			set_config('jit', 'off', false), set_config('enable_bitmapscan', 'off', false),
			set_config('search_path', coalesce(nullif($5, ''), current_setting('search_path')), false)
		) END`
	checkIntervalSQL = `SET client_connection_check_interval = `
)

// setup gives the session its limits and looks whether it may write. The server gives up on a statement before the
// client does, on a lock well before, and on the statement of a client that vanished within a second.
func (c *connector) setup(ctx context.Context, conn *conn) error {
	ctx = WithTimeout(ctx, c.target.connectTimeout) // a pool with a short limit must be able to connect
	args := []driver.NamedValue{
		{Ordinal: 1, Value: int64(conn.wire.in.backend)},
		{Ordinal: 2, Value: c.statementTimeout()},
		{Ordinal: 3, Value: c.lockTimeout()},
		{Ordinal: 4, Value: c.idleTimeout()},
		{Ordinal: 5, Value: c.target.searchPath},
	}
	found, err := numbers(ctx, conn, args)
	if err != nil {
		return fmt.Errorf("setting up the session: %w", err)
	}
	if readOnly := found[1] != 0; readOnly && c.target.readWrite {
		return errReadOnly
	}
	if pooler := found[0] != 0; pooler {
		return c.setupPooled(ctx, conn)
	}
	_, err = conn.ExecContext(ctx, checkIntervalSQL+c.checkInterval(), nil)
	if err != nil && SQLState(err) == "" {
		return fmt.Errorf("setting up the session: %w", err)
	}
	return nil // a server that answers with an error cannot do it: before 14, or not on its platform
}

func (c *connector) statementTimeout() string { return milliseconds(c.limit * 9 / 10) }
func (c *connector) lockTimeout() string      { return milliseconds(c.limit / 2) }
func (c *connector) idleTimeout() string      { return milliseconds(c.limit) }

func (c *connector) checkInterval() string {
	return milliseconds(min(max(c.limit/10, 100*time.Millisecond), time.Second))
}

var errReadOnly = errors.New("the server is read-only (a standby?), and cronlatch must write " +
	"(target_session_attrs=any accepts it)")

// numbers runs setupSQL and returns the first two columns of its row.
func numbers(ctx context.Context, conn *conn, args []driver.NamedValue) (found [2]int64, err error) {
	r, err := conn.QueryContext(ctx, setupSQL, args)
	if err != nil {
		return found, err
	}
	row := make([]driver.Value, len(r.Columns()))
	err = r.Next(row)
	if closeErr := r.Close(); err == nil {
		err = closeErr
	}
	if errors.Is(err, io.EOF) || len(row) < len(found) {
		return found, errors.New("the server returned no row")
	}
	if err != nil {
		return found, err
	}
	for i := range found {
		n, ok := row[i].(int64)
		if !ok {
			return found, fmt.Errorf("the server returned %T for a number", row[i])
		}
		found[i] = n
	}
	return found, nil
}

// milliseconds is d in the unit that the server's settings take; at least 1, because 0 turns them off.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(max(1, d.Milliseconds()), 10)
}
