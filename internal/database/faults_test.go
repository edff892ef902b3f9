package database_test

import (
	"context"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"
	"go.uber.org/zap/zaptest"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/netfault"
	"github.com/cronlatch/cronlatch/internal/pgserver"
)

func TestEveryCallEndsInABlackHole(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Second // the transaction begins within it, too
	calls := map[string]func(ctx context.Context, tx bun.Tx) error{
		"exec":     func(ctx context.Context, tx bun.Tx) error { _, err := tx.ExecContext(ctx, "SELECT 1"); return err },
		"query":    func(ctx context.Context, tx bun.Tx) error { return tx.NewRaw("SELECT 1").Scan(ctx, new(int)) },
		"commit":   func(_ context.Context, tx bun.Tx) error { return tx.Commit() },
		"rollback": func(_ context.Context, tx bun.Tx) error { return tx.Rollback() },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, url := via(t)
			db := open(t, url, database.Options{StatementTimeout: limit})
			tx, err := db.Main.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			proxy.BlackHole()
			start := time.Now()
			err = call(t.Context(), tx)
			took := time.Since(start)
			require.Error(t, err)
			assert.True(t, database.Unavailable(err))
			assert.True(t, database.Unknown(err))
			assert.GreaterOrEqual(t, took, limit)
			assert.Less(t, took, patience)
			_ = tx.Rollback()
			proxy.Restore()
			require.NoError(t, db.Wait(t.Context(), zaptest.NewLogger(t)))
		})
	}
	t.Run("connect", func(t *testing.T) {
		t.Parallel()
		proxy, url := via(t)
		proxy.BlackHole()
		db := open(t, url+"&connect_timeout=300ms", database.Options{})
		start := time.Now()
		err := db.Main.PingContext(t.Context())
		require.ErrorContains(t, err, "connecting to postgres")
		assert.Less(t, time.Since(start), patience)
		assert.True(t, database.Unavailable(err))
		assert.False(t, database.Unknown(err), "nothing was sent")
	})
}

// A deadline that comes before the pool's limit counts, and so does one on a connection that reads nothing.
func TestContextDeadlineInABlackHole(t *testing.T) {
	t.Parallel()
	proxy, url := via(t)
	db := open(t, url, database.Options{StatementTimeout: time.Minute})
	require.NoError(t, db.Main.PingContext(t.Context()))
	proxy.BlackHole()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := db.Main.ExecContext(ctx, "SELECT 1")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// A statement whose answer is lost is not sent again.
func TestLostAnswerIsUnknownAndSentOnce(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(proxy *netfault.Proxy, cancel func()){
		"given up": func(_ *netfault.Proxy, cancel func()) { cancel() },
		"cut":      func(proxy *netfault.Proxy, _ func()) { proxy.CutAll() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newTable(t)
			proxy, url := via(t)
			db := open(t, url, database.Options{StatementTimeout: 2 * time.Minute})
			require.NoError(t, db.Main.PingContext(t.Context()))
			proxy.DropAnswers()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() { _, err := db.Main.NewRaw("INSERT INTO ? VALUES (1)", table).Exec(ctx); done <- err }()
			require.Eventually(t, func() bool { return count(t, table) == 1 }, patience, 20*time.Millisecond)
			end(proxy, cancel)
			err := <-done
			require.Error(t, err)
			assert.True(t, database.Unknown(err))
			proxy.Restore()
			require.NoError(t, db.Main.PingContext(t.Context()), "whatever would be sent again was sent before")
			assert.Equal(t, 1, count(t, table), "the write was done, once")
		})
	}
}

// A connection that the server closed while it was idle is replaced before anything is sent: no caller sees it.
func TestIdleConnectionsThatDiedAreReplaced(t *testing.T) {
	t.Parallel()
	s := pgserver.Start(t)
	db := open(t, s.URL(), database.Options{MaxConns: 3})
	var busy sync.WaitGroup
	for range 3 {
		busy.Go(func() { _, _ = db.Main.ExecContext(context.Background(), "SELECT pg_sleep(0.1)") })
	}
	busy.Wait()
	for _, stop := range []func(){func() { s.Stop(pgserver.Fast) }, func() { s.Stop(pgserver.Immediate) }, s.Kill} {
		stop()
		err := db.Main.PingContext(t.Context())
		require.Error(t, err)
		assert.True(t, database.Unavailable(err), "%v", err)
		s.Restart()
		require.NoError(t, db.Main.PingContext(t.Context()))
		require.NoError(t, db.Renew.PingContext(t.Context()))
	}
}

func TestServerThatGoesAwayDuringACall(t *testing.T) {
	t.Parallel()
	db := open(t, serverURL(t), database.Options{StatementTimeout: time.Minute})
	other := open(t, serverURL(t), database.Options{})
	before := connection(t, db.Main.DB)
	done := make(chan error, 1)
	go func() { _, err := db.Main.ExecContext(context.Background(), "SELECT pg_sleep(50.125)"); done <- err }()
	require.Eventually(t, func() bool {
		var ended bool
		err := other.Main.NewRaw(`SELECT coalesce(bool_or(pg_terminate_backend(pid)), false) FROM pg_stat_activity
			WHERE query LIKE '%SELECT pg_sleep(50.125)' AND state = 'active'`).Scan(t.Context(), &ended)
		return err == nil && ended
	}, patience, 20*time.Millisecond)
	err := <-done
	assert.Equal(t, "57P01", database.SQLState(err))
	assert.True(t, database.Unavailable(err))
	assert.True(t, database.Unknown(err), "it may have been executed before the server ended the session")
	assert.NotSame(t, before, connection(t, db.Main.DB))
}

// A session that is left in a transaction does not go back to the pool.
func TestOpenTransactionDoesNotReachTheNextUser(t *testing.T) {
	t.Parallel()
	db := open(t, serverURL(t), database.Options{})
	c, err := db.Main.DB.Conn(t.Context())
	require.NoError(t, err)
	_, err = c.ExecContext(t.Context(), "BEGIN")
	require.NoError(t, err)
	var before any
	require.NoError(t, c.Raw(func(dc any) error { before = dc; return nil }))
	require.NoError(t, c.Close())
	assert.NotSame(t, before, connection(t, db.Main.DB))
}

func TestTransactionsAreReadCommitted(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	db := open(t, serverURL(t), database.Options{})
	_, err := db.Main.ExecContext(t.Context(), "SET default_transaction_isolation = 'serializable'")
	require.NoError(t, err)
	tx, err := db.Main.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	var level string
	require.NoError(t, tx.NewRaw("SHOW transaction_isolation").Scan(t.Context(), &level))
	assert.Equal(t, "read committed", level)
	_, err = tx.NewRaw("INSERT INTO ? VALUES (1)", table).Exec(t.Context())
	require.NoError(t, err)
	require.NoError(t, tx.Rollback())
	assert.Zero(t, count(t, table))
}

// When the startup fails, the socket is closed: pgdriver leaves it open.
func TestFailedStartupClosesTheConnection(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	closed := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			closed <- err
			return
		}
		defer func() { _ = c.Close() }()
		_, _ = c.Read(make([]byte, 1024))
		body := "SFATAL\x00VFATAL\x00C28P01\x00Mno\x00\x00"
		_, _ = c.Write(append([]byte{'E', 0, 0, 0, byte(len(body) + 4)}, body...))
		_ = c.SetReadDeadline(time.Now().Add(patience))
		_, err = c.Read(make([]byte, 1))
		closed <- err
	}()
	db := open(t, "postgres://u@"+l.Addr().String()+"/d?sslmode=disable", database.Options{})
	err = db.Main.PingContext(t.Context())
	assert.Equal(t, "28P01", database.SQLState(err))
	assert.True(t, database.Unavailable(err))
	require.ErrorIs(t, <-closed, io.EOF)
}

// A server that speaks something else is an error, not a hang or a panic.
func TestServerThatIsNotPostgres(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"HTTP/1.1 400 Bad Request\r\n\r\n", "\x00\x00\x00\x00\x00\x00", "Z\x00\x00\x00\x05I", "E\xff\xff\xff\xff"} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		var serving sync.WaitGroup
		serving.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, answer)
				_, _ = c.Read(make([]byte, 1024))
				_ = c.Close()
			}
		})
		for _, mode := range []string{"disable", "prefer", "require"} {
			db := open(t, "postgres://u@"+l.Addr().String()+"/d?connect_timeout=500ms&sslmode="+mode, database.Options{})
			err = db.Main.PingContext(t.Context())
			require.Error(t, err, "%q", answer)
			assert.True(t, database.Unavailable(err), "%q", answer)
		}
		require.NoError(t, l.Close())
		serving.Wait()
	}
}

// TestNothingLeaks is not parallel: it counts what the whole process has open.
//
//nolint:paralleltest // see above
func TestNothingLeaks(t *testing.T) {
	proxy, url := via(t)
	db := open(t, url+"&connect_timeout=100ms", database.Options{MaxConns: 4, StatementTimeout: 50 * time.Millisecond})
	round := func() {
		var work sync.WaitGroup
		for range 4 {
			work.Go(func() { _, _ = db.Main.ExecContext(context.Background(), "SELECT pg_sleep(0.01)") })
			work.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
				defer cancel()
				_, _ = db.Main.ExecContext(ctx, "SELECT pg_sleep(1)")
			})
		}
		work.Wait()
	}
	round()
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for range 10 {
		proxy.BlackHole()
		round()
		proxy.Restore()
		round()
		proxy.CutAll()
		round()
	}
	proxy.CutAll()
	// The proxy's own share (two sockets and four goroutines for each connection) goes up and down with the pool's.
	const slack = 4 * 6
	assert.Eventually(t, func() bool {
		return runtime.NumGoroutine() <= goroutines+slack && openFiles(t) <= files+slack
	}, patience, 50*time.Millisecond, "goroutines %d -> %d, files %d -> %d", goroutines, runtime.NumGoroutine(), files, openFiles(t))
}

// openFiles counts the process's descriptors; where the system does not show them it is 0.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}
