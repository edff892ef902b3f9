package database

import (
	"context"
	"time"
)

// rollbackTimeout bounds a ROLLBACK. It is short because nothing depends on the answer: a connection without one is
// thrown away, and that ends the transaction too.
const rollbackTimeout = 2 * time.Second

// tx is a transaction; its calls go on with the context of BEGIN.
type tx struct {
	conn *conn
	ctx  context.Context
}

// Commit implements driver.Tx. A transaction in which a statement failed is rolled back by the server, which says so
// only in the command tag. When the connection is gone by now, COMMIT is not sent, and the server rolls back as well.
func (t *tx) Commit() error {
	if !t.conn.wire.usable() {
		return ErrRolledBack
	}
	if _, err := t.conn.exec(t.ctx, "COMMIT", nil); err != nil {
		return err
	}
	if t.conn.wire.in.tag != "COMMIT" {
		return ErrRolledBack
	}
	return nil
}

// Rollback implements driver.Tx. The context of the transaction is often over by now, so it does not count.
func (t *tx) Rollback() error {
	limit := min(rollbackTimeout, limitOf(t.ctx, t.conn.limit))
	_, err := t.conn.exec(WithTimeout(context.WithoutCancel(t.ctx), limit), "ROLLBACK", nil)
	return err
}
