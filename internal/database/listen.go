package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

// Listener hears a notification channel of PostgreSQL, on a connection of Main's that it keeps for itself. It is a hint
// and no more: what is notified while its connection is away is lost, and nobody is told.
type Listener struct {
	// C has a value when something was notified since the last receive. It is closed when the connection was lost.
	C <-chan struct{}

	stop context.CancelFunc
	done chan struct{}
}

// Listen begins to hear a channel. What is notified after it has returned is heard. The error wraps
// errors.ErrUnsupported on SQLite and behind a pooler, where a notification would reach another client or nobody.
func (db *DB) Listen(ctx context.Context, channel string) (*Listener, error) {
	if db.Kind != Postgres {
		return nil, fmt.Errorf("listening: SQLite has no notifications: %w", errors.ErrUnsupported)
	}
	own, err := db.Main.DB.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	if err := onDriver(own, func(c *conn) error { return c.listen(ctx, channel) }); err != nil {
		return nil, errors.Join(fmt.Errorf("listening: %w", err), own.Close())
	}
	hearing, stop := context.WithCancel(context.WithoutCancel(ctx))
	heard := make(chan struct{}, 1)
	l := &Listener{C: heard, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		defer close(heard)
		_ = onDriver(own, func(c *conn) error {
			c.hear(hearing, heard)
			c.discard()
			return driver.ErrBadConn // not back into the pool: it is still listening
		})
		_ = own.Close()
	}()
	return l, nil
}

// Close ends the listening and its connection.
func (l *Listener) Close() {
	l.stop()
	<-l.done
}

func onDriver(own *sql.Conn, f func(c *conn) error) error {
	return own.Raw(func(raw any) error {
		c, ok := unwatched(raw).(*conn)
		if !ok {
			return fmt.Errorf("listening on a %T: %w", raw, errors.ErrUnsupported)
		}
		return f(c)
	})
}

func (c *conn) listen(ctx context.Context, channel string) error {
	if c.settings != "" {
		return fmt.Errorf("a pooler is before the server: %w", errors.ErrUnsupported)
	}
	c.wire.in.notified = false
	_, err := c.ExecContext(ctx, `LISTEN "`+channel+`"`, nil)
	return err
}

// hearFor is how long one read waits: the connection's own keep-alive finds a dead server.
const hearFor = time.Hour

// hear passes notifications on until ctx ends or the connection does. pgdriver reads nothing meanwhile.
func (c *conn) hear(ctx context.Context, heard chan<- struct{}) {
	buffer := make([]byte, 512)
	for {
		if c.wire.in.notified {
			c.wire.in.notified = false
			select {
			case heard <- struct{}{}:
			default: // the last one was not received yet; it stands for this one, too
			}
		}
		if c.wire.begin(ctx, hearFor) != nil {
			return
		}
		_, err := c.wire.Read(buffer)
		c.wire.end()
		if err != nil {
			return
		}
	}
}
