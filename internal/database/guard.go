package database

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/uptrace/bun/driver/pgdriver"
)

// conn is the driver.Conn that database/sql gets: pgdriver's, with every call behind the guard. It never answers
// driver.ErrBadConn to a statement, because database/sql would send the statement again.
type conn struct {
	raw   *pgdriver.Conn
	wire  *wire
	limit time.Duration // of a call whose context does not say WithTimeout

	settings string // what each transaction begins with behind a pooler; "" where the session has them
	prepares bool   // statements with arguments are prepared
	prepared map[string]*stmt
}

var (
	_ driver.ConnPrepareContext = (*conn)(nil)
	_ driver.ConnBeginTx        = (*conn)(nil)
	_ driver.ExecerContext      = (*conn)(nil)
	_ driver.QueryerContext     = (*conn)(nil)
	_ driver.Pinger             = (*conn)(nil)
	_ driver.Validator          = (*conn)(nil)
	_ driver.SessionResetter    = (*conn)(nil)
)

type limitKey struct{}

// WithTimeout lets the calls made with the returned context take up to d each, in place of the timeout of their pool.
// It is the client's half only: the server's statement_timeout stays, unless the caller sets it (SET LOCAL).
// The zero and negative d are ignored: there is no call without a limit.
func WithTimeout(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, limitKey{}, d)
}

func limitOf(ctx context.Context, pool time.Duration) time.Duration {
	if d, ok := ctx.Value(limitKey{}).(time.Duration); ok && d > 0 {
		return d
	}
	return pool
}

// begin starts a call; finish must follow when it returns nil.
func (c *conn) begin(ctx context.Context) error {
	return c.beginWithin(ctx, limitOf(ctx, c.limit))
}

func (c *conn) beginWithin(ctx context.Context, limit time.Duration) error {
	err := c.wire.begin(ctx, limit)
	if err != nil && ctx.Err() == nil {
		c.discard()
		return &lostError{host: c.wire.host, limit: limit, err: err}
	}
	return err
}

// finish ends a call and decides what its error means and whether the connection may be used again.
func (c *conn) finish(ctx context.Context, err error) error {
	c.wire.end()
	if err == nil {
		if !c.wire.usable() || !c.wire.in.boundary() || !c.wire.in.ready {
			c.discard()
		}
		return nil
	}
	var pg pgdriver.Error
	if errors.As(err, &pg) {
		return c.answered(err, pg)
	}
	if !c.wire.touched {
		return err // refused by pgdriver before anything was sent
	}
	problem := c.wire.in.answered()
	c.discard()
	if problem != nil && problem.code != "" && !ends(problem.severity, problem.code) {
		return &longError{*problem}
	}
	return &lostError{
		host: c.wire.host, limit: c.wire.limit, sent: c.wire.wrote, ended: c.wire.ended(ctx, err), err: err,
	}
}

// answered sorts a server's error.
func (c *conn) answered(err error, pg pgdriver.Error) error {
	if ends(cmp.Or(pg.Field('V'), pg.Field('S')), pg.Field('C')) {
		c.discard()
		return &lostError{host: c.wire.host, limit: c.wire.limit, sent: c.wire.wrote, err: err}
	}
	if severs(pg.Field('C')) || !c.wire.in.ready || !c.wire.usable() {
		c.discard()
	}
	return err
}

// ends reports whether an error says nothing about the statement, but that the session is over. After FATAL the
// statement may have been executed: the server can be told to stop between its commit and its answer. Class 08 is what
// a pooler answers when its own connection to the server broke.
func ends(severity, code string) bool {
	return severity == "FATAL" || severity == "PANIC" || strings.HasPrefix(code, "08")
}

// severs reports whether a server that answers so must be left: it is read-only (a standby after a failover), or the
// connection or the server is going away.
func severs(code string) bool {
	return code == "25006" || strings.HasPrefix(code, "57P") || strings.HasPrefix(code, "08")
}

// discard throws the connection away.
func (c *conn) discard() {
	c.wire.poison()
	_ = c.raw.Close()
}

// checkText refuses what pgdriver would rewrite (arguments) or cut off (NUL in the statement).
func checkText(query string, args []driver.NamedValue) error {
	if !cleanText(query) {
		return ErrText
	}
	for _, a := range args {
		if s, ok := a.Value.(string); ok && !cleanText(s) {
			return ErrText
		}
	}
	return nil
}

func cleanText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.statement(ctx, query, args)
	if err != nil {
		return nil, err
	}
	if s != nil {
		result, err := s.ExecContext(ctx, args)
		if err == nil || !c.outdated(query, err) {
			return result, err
		}
	}
	return c.exec(ctx, c.complete(query), args)
}

// exec sends the text as it is.
func (c *conn) exec(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if err := checkText(text, args); err != nil {
		return nil, err
	}
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	result, err := c.raw.ExecContext(ctx, text, args)
	if err = c.finish(ctx, err); err != nil {
		return nil, err
	}
	return result, nil
}

// QueryContext implements driver.QueryerContext. The call goes on until the rows are read or closed.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.statement(ctx, query, args)
	if err != nil {
		return nil, err
	}
	if s != nil {
		r, err := s.QueryContext(ctx, args)
		if err == nil || !c.outdated(query, err) {
			return r, err
		}
	}
	return c.query(ctx, c.complete(query), args)
}

// query sends the text as it is.
func (c *conn) query(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	if err := checkText(text, args); err != nil {
		return nil, err
	}
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	r, err := c.raw.QueryContext(ctx, text, args)
	if err != nil {
		return nil, c.finish(ctx, err)
	}
	return &rows{Rows: r, conn: c, ctx: ctx}, nil
}

// Ping implements driver.Pinger.
func (c *conn) Ping(ctx context.Context) error {
	_, err := c.ExecContext(ctx, "SELECT 1", nil)
	return err
}

// IsValid implements driver.Validator: a connection goes back to the pool only when no transaction is open on it.
func (c *conn) IsValid() bool {
	return c.wire.usable() && c.raw.IsValid() && c.wire.in.status == 'I'
}

// ResetSession implements driver.SessionResetter. It looks whether the server closed the connection while it was idle:
// the one moment where database/sql may take another one, because nothing was sent yet.
func (c *conn) ResetSession(context.Context) error {
	if !c.IsValid() || !alive(c.wire.socket) {
		c.discard()
		return driver.ErrBadConn
	}
	return nil
}

// Close implements driver.Conn.
func (c *conn) Close() error { return c.raw.Close() }

// Begin implements driver.Conn; database/sql uses BeginTx.
func (c *conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// BeginTx implements driver.ConnBeginTx. The isolation level is always explicit: READ COMMITTED unless the caller asks
// for another one, whatever the role or the database has as its default.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	level, ok := isolation(sql.IsolationLevel(opts.Isolation))
	if !ok {
		return nil, fmt.Errorf("isolation level %v does not exist on PostgreSQL", sql.IsolationLevel(opts.Isolation))
	}
	command := "BEGIN ISOLATION LEVEL " + level
	if opts.ReadOnly {
		command += " READ ONLY"
	}
	if c.settings != "" {
		command += "; " + c.settings
	}
	if _, err := c.exec(ctx, command, nil); err != nil {
		return nil, err
	}
	return &tx{conn: c, ctx: ctx}, nil
}

func isolation(level sql.IsolationLevel) (string, bool) {
	switch level {
	case sql.LevelDefault, sql.LevelReadCommitted, sql.LevelReadUncommitted:
		return "READ COMMITTED", true // PostgreSQL's READ UNCOMMITTED is READ COMMITTED
	case sql.LevelRepeatableRead, sql.LevelSnapshot:
		return "REPEATABLE READ", true
	case sql.LevelSerializable:
		return "SERIALIZABLE", true
	default:
		return "", false
	}
}
