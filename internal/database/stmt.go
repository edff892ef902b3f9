package database

import (
	"context"
	"database/sql/driver"
)

// PrepareContext implements driver.ConnPrepareContext. Behind a pooler nothing is prepared outside a transaction: the next one
// may meet another server process, which does not know the statement. In a transaction the server process is ours until its
// end, and the statement must be closed by then: it stays with the process, and the next one of its name is refused.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if err := checkText(query, nil); err != nil {
		return nil, err
	}
	if c.settings != "" && c.wire.in.status == 'I' {
		return &textStmt{conn: c, query: query}, nil
	}
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	s, err := c.raw.PrepareContext(ctx, query)
	if err = c.finish(ctx, err); err != nil {
		return nil, err
	}
	return &stmt{Stmt: s, conn: c}, nil
}

// Prepare implements driver.Conn.
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// stmt is a prepared statement. An error that is not the server's leaves answers on the way, which would be taken for
// those of the next statement: the guard throws the connection away.
type stmt struct {
	driver.Stmt
	conn *conn
}

var (
	_ driver.StmtExecContext  = (*stmt)(nil)
	_ driver.StmtQueryContext = (*stmt)(nil)
)

// ExecContext implements driver.StmtExecContext.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := checkText("", args); err != nil {
		return nil, err
	}
	if err := s.conn.begin(ctx); err != nil {
		return nil, err
	}
	result, err := s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
	if err = s.conn.finish(ctx, err); err != nil {
		return nil, err
	}
	return result, nil
}

// QueryContext implements driver.StmtQueryContext.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := checkText("", args); err != nil {
		return nil, err
	}
	if err := s.conn.begin(ctx); err != nil {
		return nil, err
	}
	r, err := s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	if err != nil {
		return nil, s.conn.finish(ctx, err)
	}
	return &rows{Rows: r, conn: s.conn, ctx: ctx}, nil
}

// Close implements driver.Stmt. There is nothing to close at the server when the connection is gone.
func (s *stmt) Close() error {
	if !s.conn.wire.usable() {
		return nil
	}
	ctx := context.Background()
	if err := s.conn.begin(ctx); err != nil {
		return err
	}
	err := s.Stmt.Close()
	// pgdriver ends this call with Flush, not Sync: no ReadyForQuery comes. After an error the server waits for Sync,
	// and so would the next call: finish discards the connection, because the answer is not over.
	if err == nil && s.conn.wire.in.boundary() {
		s.conn.wire.in.ready = true
	}
	return s.conn.finish(ctx, err)
}
