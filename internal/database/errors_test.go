package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/assert"
)

func TestErrorsAreSorted(t *testing.T) {
	t.Parallel()
	state := func(code string) error { return &longError{answer{severity: "ERROR", code: code, message: "m"}} }
	lost := func(sent bool) error { return &lostError{host: "h", sent: sent, err: net.ErrClosed} }
	for _, c := range []struct {
		err                             error
		unavailable, unknown, retryable bool
	}{
		{err: nil},
		{err: errors.New("x")},
		{err: sql.ErrNoRows},
		{err: ErrRolledBack},
		{err: ErrText},
		{err: ErrRefused},
		{err: state("23505")},
		{err: state("40001"), retryable: true},
		{err: state("40P01"), retryable: true},
		{err: state("55P03"), retryable: true},
		{err: state("25006"), unavailable: true},
		{err: state("57P03"), unavailable: true},
		{err: state("57014"), unavailable: true},
		{err: state("53300"), unavailable: true},
		{err: state("53100"), unavailable: true},
		{err: state("08006"), unavailable: true},
		{err: state("08007"), unavailable: true, unknown: true},
		{err: state("40003"), unknown: true},
		{err: lost(true), unavailable: true, unknown: true},
		{err: lost(false), unavailable: true},
		{err: &connectError{errs: []error{context.DeadlineExceeded}}, unavailable: true},
		{err: context.Canceled, unknown: true},
		{err: context.DeadlineExceeded, unavailable: true, unknown: true},
		{err: sqlite3.BUSY, retryable: true},
		{err: sqlite3.BUSY_SNAPSHOT, retryable: true},
		{err: sqlite3.LOCKED, retryable: true},
		{err: sqlite3.CANTOPEN, unavailable: true},
		{err: sqlite3.FULL, unavailable: true},
		{err: sqlite3.IOERR_FSYNC, unavailable: true, unknown: true},
		{err: sqlite3.CONSTRAINT_UNIQUE},
	} {
		wrapped := c.err
		if wrapped != nil {
			wrapped = fmt.Errorf("renewing: %w", wrapped)
		}
		assert.Equal(t, c.unavailable, Unavailable(wrapped), "Unavailable: %v", c.err)
		assert.Equal(t, c.unknown, Unknown(wrapped), "Unknown: %v", c.err)
		assert.Equal(t, c.retryable, Retryable(wrapped), "Retryable: %v", c.err)
	}
}

func TestLostErrorsSayWhatHappened(t *testing.T) {
	t.Parallel()
	e := &lostError{host: "h:1", limit: time.Second, err: os.ErrDeadlineExceeded}
	assert.Equal(t, "postgres h:1: no answer within 1s", e.Error())
	e.ended = context.Canceled
	assert.Equal(t, "postgres h:1: no answer yet: context canceled", e.Error())
	e = &lostError{host: "h:1", err: errDead}
	assert.Equal(t, "postgres h:1: the connection was lost: the connection was closed after an earlier error", e.Error())
}
