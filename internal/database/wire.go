package database

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// past is a deadline that is over: setting it wakes every reader and writer of a connection.
var past = time.Unix(1, 0) //nolint:gochecknoglobals // a constant

// errDead is the answer of a connection that was thrown away after an earlier error.
var errDead = errors.New("the connection was closed after an earlier error")

// wire is the net.Conn that pgdriver gets. It keeps one hard deadline for each call, which pgdriver can neither extend
// nor lift, ends a call when its context ends, and shows everything the server says to frames.
type wire struct {
	net.Conn          // what carries the protocol: TLS or the socket
	socket   net.Conn // what is closed and timed
	host     string

	in      frames
	wrote   bool // this call sent something
	touched bool // this call used the connection at all
	limit   time.Duration
	theirs  bool // the deadline is the context's, not the pool's
	stop    func() bool

	mu     sync.Mutex
	dead   bool
	closed bool
}

// begin starts a call that must end after limit, or with ctx. Nothing was sent when it returns an error.
func (w *wire) begin(ctx context.Context, limit time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	deadline, theirs := time.Now().Add(limit), false
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline, theirs = d, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return errDead
	}
	if err := w.socket.SetDeadline(deadline); err != nil {
		return err
	}
	w.in.reset()
	w.wrote, w.touched, w.limit, w.theirs = false, false, limit, theirs
	w.stop = context.AfterFunc(ctx, w.poison)
	return nil
}

// end finishes the call. When the context ended during the call, the connection is poisoned even if the answer came
// in time: the cancellation may still be on its way.
func (w *wire) end() {
	if w.stop != nil && !w.stop() {
		w.poison()
	}
	w.stop = nil
}

// ended is the context's error if that is why the call failed with err. The socket's timer may fire a moment before the
// context's.
func (w *wire) ended(ctx context.Context, err error) error {
	if w.theirs && errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// poison ends what is being read or written now and lets no later call begin.
func (w *wire) poison() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
	_ = w.socket.SetDeadline(past)
}

func (w *wire) usable() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.dead
}

// Read implements net.Conn.
func (w *wire) Read(p []byte) (int, error) {
	w.touched = true
	n, err := w.Conn.Read(p)
	w.in.feed(p[:n])
	return n, err
}

// Write implements net.Conn. When nothing was written it says 1: pgdriver turns an error with 0 into
// driver.ErrBadConn, which hides the cause and makes database/sql send the statement again.
func (w *wire) Write(p []byte) (int, error) {
	w.touched = true
	n, err := w.Conn.Write(p)
	if n > 0 {
		w.wrote = true
	}
	if err != nil {
		n = max(n, 1)
	}
	return n, err
}

// SetDeadline, SetReadDeadline and SetWriteDeadline do nothing: the deadline is the call's, not pgdriver's.
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil } // see SetDeadline
func (w *wire) SetWriteDeadline(time.Time) error { return nil } // see SetDeadline

// Close says goodbye to the server when the connection is in order, and closes the socket in any case. It does not go
// through TLS, whose own goodbye may block for five seconds.
func (w *wire) Close() error {
	w.mu.Lock()
	polite := !w.dead && !w.closed
	closed := w.closed
	w.dead, w.closed = true, true
	w.mu.Unlock()
	if closed {
		return nil
	}
	if polite {
		_ = w.socket.SetDeadline(time.Now().Add(time.Second))
		_, _ = w.Conn.Write([]byte{'X', 0, 0, 0, 4})
	}
	return w.socket.Close()
}
