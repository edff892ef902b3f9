//go:build failpoints

package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/cronlatch/cronlatch/internal/failpoint"
)

// In the build for the fleet tests each statement of the scheduler is a place where the daemon may be told to die: before
// it goes to the driver, and after its whole answer was read. The watch stands between database/sql and the guard, so it
// sees what bun formats, what package locking gives to the driver with arguments, BEGIN and COMMIT.

func watched(c driver.Connector) driver.Connector { return watchedConnector{c} }

func unwatched(raw any) any {
	if w, ok := raw.(*watchedConn); ok {
		return w.Conn
	}
	return raw
}

type watchedConnector struct{ driver.Connector }

func (c watchedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	raw, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &watchedConn{Conn: raw}, nil
}

// watchedConn knows whose transaction it is in. database/sql lets one goroutine at a time use it.
type watchedConn struct {
	driver.Conn
	step string
}

// pass says that a place was passed; the empty one is none.
func pass(point, when string) {
	if point != "" {
		failpoint.Hit(point + ":" + when)
	}
}

// around calls f between the two places of a point. A call that has failed did not come to the second one.
func around(point string, f func() error) error {
	pass(point, "before")
	err := f()
	if err == nil {
		pass(point, "after")
	}
	return err
}

// BeginTx implements driver.ConnBeginTx.
func (c *watchedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (tx driver.Tx, err error) {
	begin := func() error {
		tx, err = c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
		return err
	}
	step := failpoint.StepOf(ctx)
	if step == "" {
		return tx, begin()
	}
	if err := around(step+".BEGIN", begin); err != nil {
		return nil, err
	}
	c.step = step
	return &watchedTx{tx, c}, nil
}

type watchedTx struct {
	driver.Tx
	conn *watchedConn
}

// Commit implements driver.Tx.
func (t *watchedTx) Commit() error {
	step := t.conn.step
	t.conn.step = ""
	return around(step+".COMMIT", t.Tx.Commit)
}

// Rollback implements driver.Tx.
func (t *watchedTx) Rollback() error {
	t.conn.step = ""
	return t.Tx.Rollback()
}

// ExecContext implements driver.ExecerContext.
func (c *watchedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (res driver.Result, err error) {
	return res, around(failpoint.Point(c.step, query), func() error {
		res, err = c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
		return err
	})
}

// QueryContext implements driver.QueryerContext where the driver does; the other one gets a statement.
func (c *watchedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	q, ok := c.Conn.(driver.QueryerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	point := failpoint.Point(c.step, query)
	pass(point, "before")
	r, err := q.QueryContext(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return &watchedRows{Rows: r, point: point}, nil
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *watchedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &watchedStmt{s, failpoint.Point(c.step, query)}, nil
}

// Ping implements driver.Pinger.
func (c *watchedConn) Ping(ctx context.Context) error {
	if p, ok := c.Conn.(driver.Pinger); ok {
		return p.Ping(ctx)
	}
	return nil
}

// IsValid implements driver.Validator.
func (c *watchedConn) IsValid() bool {
	v, ok := c.Conn.(driver.Validator)
	return !ok || v.IsValid()
}

// ResetSession implements driver.SessionResetter.
func (c *watchedConn) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

// CheckNamedValue implements driver.NamedValueChecker.
func (c *watchedConn) CheckNamedValue(arg *driver.NamedValue) error {
	if n, ok := c.Conn.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(arg)
	}
	return driver.ErrSkip
}

// watchedStmt is used once: nothing keeps statements above the guard.
type watchedStmt struct {
	driver.Stmt
	point string
}

// ExecContext implements driver.StmtExecContext.
func (s *watchedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (res driver.Result, err error) {
	return res, around(s.point, func() error {
		res, err = s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
		return err
	})
}

// QueryContext implements driver.StmtQueryContext.
func (s *watchedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	pass(s.point, "before")
	r, err := s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	return &watchedRows{Rows: r, point: s.point}, nil
}

// CheckNamedValue implements driver.NamedValueChecker.
func (s *watchedStmt) CheckNamedValue(arg *driver.NamedValue) error {
	if n, ok := s.Stmt.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(arg)
	}
	return driver.ErrSkip
}

// watchedRows are over when they are read or closed.
type watchedRows struct {
	driver.Rows
	point string
}

// Next implements driver.Rows.
func (r *watchedRows) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	if errors.Is(err, io.EOF) {
		r.over()
	}
	return err
}

// Close implements driver.Rows.
func (r *watchedRows) Close() error {
	err := r.Rows.Close()
	if err == nil {
		r.over()
	}
	return err
}

func (r *watchedRows) over() {
	pass(r.point, "after")
	r.point = ""
}
