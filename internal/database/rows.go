package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
)

// rows are a query's rows; the query's call ends with them.
type rows struct {
	driver.Rows
	conn *conn
	ctx  context.Context
	done bool
}

// Next implements driver.Rows. Everything but a row ends the call, io.EOF included.
func (r *rows) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	if err == nil {
		return nil
	}
	return r.end(err)
}

// Close implements driver.Rows: it reads what is left of the answer, an error of the statement included.
func (r *rows) Close() error {
	return r.end(r.Rows.Close())
}

func (r *rows) end(err error) error {
	if r.done {
		return err
	}
	r.done = true
	if errors.Is(err, io.EOF) {
		if err := r.conn.finish(r.ctx, nil); err != nil {
			return err
		}
		return io.EOF
	}
	return r.conn.finish(r.ctx, err)
}
