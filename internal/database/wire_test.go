package database

import (
	"context"
	"database/sql/driver"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pgdriver answers driver.ErrBadConn to an error with no byte written, and database/sql would then send the statement
// again. The wire hides the zero from pgdriver but not from the guard.
func TestWireHidesThatNothingWasWritten(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	w := &wire{Conn: ours, socket: ours, host: "h"}
	require.NoError(t, w.begin(t.Context(), time.Minute))
	require.NoError(t, theirs.Close())
	n, err := w.Write([]byte("statement"))
	require.Error(t, err)
	require.NotErrorIs(t, err, driver.ErrBadConn)
	assert.Positive(t, n)
	assert.True(t, w.touched)
	assert.False(t, w.wrote)
	w.end()
	require.NoError(t, w.Close())
	require.NoError(t, w.Close(), "closing twice is closing once")
}

// pgdriver's own deadlines neither shorten nor lift the call's.
func TestWireKeepsTheDeadlineOfTheCall(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer func() { _ = theirs.Close() }()
	w := &wire{Conn: ours, socket: ours, host: "h"}
	require.NoError(t, w.begin(t.Context(), 50*time.Millisecond))
	require.NoError(t, w.SetReadDeadline(time.Time{}))
	require.NoError(t, w.SetDeadline(time.Now().Add(time.Hour)))
	_, err := w.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, w.ended(context.Background(), err), "the pool's limit ended it")
	w.theirs = true
	require.ErrorIs(t, w.ended(context.Background(), err), context.DeadlineExceeded, "whose timer is not there yet")
	w.end()
	w.poison()
	require.NoError(t, w.SetReadDeadline(time.Time{}))
	_, err = w.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "a poisoned connection stays so")
	require.ErrorIs(t, w.begin(t.Context(), time.Minute), errDead)
	require.NoError(t, w.Close())
}
