package database_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/driver/pgdriver"

	"github.com/cronlatch/cronlatch/internal/database"
)

// Each test here is one sharp edge of pgdriver: its raw half shows the edge and fails when a new release lost it (then
// the guard may go), the other half shows that ours is safe.

// A prepared statement after a timeout reads the answer of the one before.
func TestContractPreparedAnswersDoNotShift(t *testing.T) {
	t.Parallel()
	// The second statement renews a lock that nobody holds: the only right answer is no row.
	renewForeignLock := func(t *testing.T, db *sql.DB) (int64, error) {
		t.Helper()
		gate := newGate(t)
		slow, err := db.PrepareContext(t.Context(), "SELECT "+gate.pass())
		require.NoError(t, err)
		defer func() { _ = slow.Close() }()
		renew, err := db.PrepareContext(t.Context(), "SELECT 1 WHERE $1 = 'me'")
		require.NoError(t, err)
		defer func() { _ = renew.Close() }()
		_, err = slow.ExecContext(shortly{t.Context()})
		require.Error(t, err)
		gate.open()
		result, err := renew.ExecContext(t.Context(), "somebody else")
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	}
	t.Run("raw", func(t *testing.T) {
		t.Parallel()
		n, err := renewForeignLock(t, openRaw(t, directURL(t)))
		require.NoError(t, err)
		assert.EqualValues(t, 1, n, "the raw driver no longer takes an old answer for a new one")
	})
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		n, err := renewForeignLock(t, open(t, serverURL(t), database.Options{}).Main.DB)
		require.NoError(t, err)
		assert.Zero(t, n)
	})
}

// The same when the pool's limit ends the call, with no context to end it: the old answer arrives after all.
func TestPreparedAnswersDoNotShiftAfterTheLimit(t *testing.T) {
	t.Parallel()
	proxy, url := via(t)
	db := open(t, url, database.Options{StatementTimeout: 3 * time.Second}).Main.DB
	one, err := db.PrepareContext(t.Context(), "SELECT 1")
	require.NoError(t, err)
	defer func() { _ = one.Close() }()
	renew, err := db.PrepareContext(t.Context(), "SELECT 1 WHERE $1 = 'me'")
	require.NoError(t, err)
	defer func() { _ = renew.Close() }()
	proxy.BlackHole()
	_, err = one.ExecContext(t.Context())
	require.Error(t, err)
	proxy.Restore()
	result, err := renew.ExecContext(t.Context(), "somebody else")
	require.NoError(t, err)
	n, err := result.RowsAffected()
	require.NoError(t, err)
	assert.Zero(t, n)
}

// A context that is cancelled, and has no deadline, does not end a call.
func TestContractCancelEndsTheCall(t *testing.T) {
	t.Parallel()
	// cancelled gives up a statement that the server works on.
	cancelled := func(t *testing.T, db *sql.DB, gate *gate) <-chan error {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		done := gate.reached(func() error {
			_, err := db.ExecContext(ctx, "SELECT "+gate.pass())
			return err
		})
		cancel()
		return done
	}
	t.Run("raw", func(t *testing.T) {
		t.Parallel()
		gate := newGate(t)
		done := cancelled(t, openRaw(t, directURL(t)), gate)
		gate.open()
		require.NoError(t, <-done, "the raw driver looks at a cancelled context now")
	})
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		db := open(t, serverURL(t), database.Options{StatementTimeout: 2 * time.Minute})
		before := connection(t, db.Main.DB)
		start := time.Now()
		err := <-cancelled(t, db.Main.DB, newGate(t))
		require.ErrorIs(t, err, context.Canceled)
		assert.True(t, database.Unknown(err))
		assert.Less(t, time.Since(start), time.Minute, "the limits of the server and of the pool are longer")
		assert.NotSame(t, before, connection(t, db.Main.DB), "the connection was used again")
	})
	t.Run("ours, rows", func(t *testing.T) {
		t.Parallel()
		db := open(t, serverURL(t), database.Options{StatementTimeout: time.Minute})
		before := connection(t, db.Main.DB)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		// The padding makes the server send the first rows before it sleeps.
		rows, err := db.Main.QueryContext(ctx, `SELECT repeat('x', 9000), pg_sleep(n / 3 * 50) FROM generate_series(1, 3) n`)
		require.NoError(t, err)
		defer func() { _ = rows.Close() }()
		require.True(t, rows.Next())
		start := time.Now()
		time.AfterFunc(200*time.Millisecond, cancel)
		for rows.Next() {
		}
		require.ErrorIs(t, rows.Err(), context.Canceled)
		assert.Less(t, time.Since(start), patience)
		assert.NotSame(t, before, connection(t, db.Main.DB), "the connection was used again")
	})
}

// The server goes on with what the client gave up, and the row appears later.
func TestContractServerStopsWithTheClient(t *testing.T) {
	t.Parallel()
	insert := func(ctx context.Context, db *sql.DB, table bun.Ident, gate *gate) error {
		_, err := db.ExecContext(ctx, "INSERT INTO "+string(table)+" SELECT 1 FROM (SELECT "+gate.pass()+") AS gate")
		return err
	}
	t.Run("raw", func(t *testing.T) {
		t.Parallel()
		table, gate := newTable(t), newGate(t)
		require.Error(t, insert(shortly{t.Context()}, openRaw(t, directURL(t)), table, gate))
		gate.counts(1)
		gate.open()
		require.Eventually(t, func() bool { return count(t, table) == 1 }, patience, 100*time.Millisecond,
			"the raw driver stops the server now")
	})
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		table, gate := newTable(t), newGate(t)
		db := open(t, serverURL(t), database.Options{StatementTimeout: 2 * time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := gate.reached(func() error { return insert(ctx, db.Main.DB, table, gate) })
		cancel()
		err := <-done
		require.Error(t, err)
		assert.True(t, database.Unknown(err), "the outcome of a write without an answer is unknown")
		gate.counts(0) // the server's own limits are longer than the patience
		gate.open()
		assert.Zero(t, count(t, table), "the server finished what the client gave up")
	})
}

// The server's limits are below the client's: its answer comes first, and the outcome is known.
func TestContractServerGivesUpBeforeTheClient(t *testing.T) {
	t.Parallel()
	// A tenth of the limit is between the two, and a busy machine needs some of it.
	slow := open(t, serverURL(t), database.Options{StatementTimeout: 15 * time.Second})
	_, err := slow.Main.ExecContext(t.Context(), "SELECT pg_sleep(50)")
	assert.Equal(t, "57014", database.SQLState(err))
	assert.False(t, database.Unknown(err))
	assert.True(t, database.Unavailable(err))

	db := open(t, serverURL(t), database.Options{StatementTimeout: 2 * time.Second, RenewTimeout: time.Second})
	settings := func(db *sql.DB) (s [6]string) {
		require.NoError(t, db.QueryRowContext(t.Context(), `SELECT current_setting('statement_timeout'),
			current_setting('lock_timeout'), current_setting('client_connection_check_interval'), split_part(current_setting('DateStyle'), ',', 1),
			current_setting('transaction_isolation'), current_setting('application_name')`).
			Scan(&s[0], &s[1], &s[2], &s[3], &s[4], &s[5]))
		return s
	}
	assert.Equal(t, [6]string{"1800ms", "1s", "200ms", "ISO", "read committed", "cronlatch"}, settings(db.Main.DB))
	assert.Equal(t, [6]string{"900ms", "500ms", "100ms", "ISO", "read committed", "cronlatch"}, settings(db.Renew.DB))
}

func TestContractLockTimeoutIsRetryable(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	holder, waiter := open(t, serverURL(t), database.Options{}), open(t, serverURL(t), database.Options{StatementTimeout: 5 * time.Second})
	tx, err := holder.Main.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.NewRaw("LOCK TABLE ?", table).Exec(t.Context())
	require.NoError(t, err)
	_, err = waiter.Main.NewRaw("INSERT INTO ? VALUES (1)", table).Exec(t.Context())
	assert.Equal(t, "55P03", database.SQLState(err))
	assert.True(t, database.Retryable(err))
	require.NoError(t, tx.Rollback())
}

// COMMIT of a failed transaction returns nil, although the server rolled back.
func TestContractCommitOfAFailedTransaction(t *testing.T) {
	t.Parallel()
	commit := func(t *testing.T, db *sql.DB) error {
		t.Helper()
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), "SELECT 1/0")
		require.Error(t, err)
		return tx.Commit()
	}
	t.Run("raw", func(t *testing.T) {
		t.Parallel()
		require.NoError(t, commit(t, openRaw(t, directURL(t))), "the raw driver reports it now")
	})
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		db := open(t, serverURL(t), database.Options{})
		before := connection(t, db.Main.DB)
		err := commit(t, db.Main.DB)
		require.ErrorIs(t, err, database.ErrRolledBack)
		assert.False(t, database.Unknown(err))
		assert.Same(t, before, connection(t, db.Main.DB), "nothing is wrong with the connection")
	})
	t.Run("ours, after more statements", func(t *testing.T) {
		t.Parallel()
		tx, err := open(t, serverURL(t), database.Options{}).Main.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), "SELECT 1/0")
		require.Error(t, err)
		_, err = tx.ExecContext(t.Context(), "SELECT 1") // 25P02, for which pgdriver closes the connection
		require.Error(t, err)
		require.ErrorIs(t, tx.Commit(), database.ErrRolledBack)
	})
	t.Run("ours, recovered by a savepoint", func(t *testing.T) {
		t.Parallel()
		table := newTable(t)
		db := open(t, serverURL(t), database.Options{})
		tx, err := db.Main.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = tx.NewRaw("INSERT INTO ? VALUES (1)", table).Exec(t.Context())
		require.NoError(t, err)
		inner, err := tx.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = inner.ExecContext(t.Context(), "SELECT 1/0")
		require.Error(t, err)
		require.NoError(t, inner.Rollback())
		require.NoError(t, tx.Commit())
		assert.Equal(t, 1, count(t, table))
	})
}

// A connection to a server that became read-only is kept.
func TestContractReadOnlyServerIsLeft(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	write := func(t *testing.T, db *sql.DB) (before, after any) {
		t.Helper()
		before = connection(t, db)
		tx, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), "INSERT INTO "+string(table)+" VALUES (1)")
		require.Equal(t, "25006", database.SQLState(err))
		require.True(t, database.Unavailable(err))
		_ = tx.Rollback()
		return before, connection(t, db)
	}
	t.Run("raw", func(t *testing.T) {
		t.Parallel()
		before, after := write(t, openRaw(t, directURL(t)))
		assert.Same(t, before, after, "the raw driver leaves a read-only server now")
	})
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		before, after := write(t, open(t, serverURL(t), database.Options{}).Main.DB)
		assert.NotSame(t, before, after)
	})
}

// NUL and invalid UTF-8 are rewritten silently: two names become one.
func TestContractTextIsNotRewritten(t *testing.T) {
	t.Parallel()
	t.Run("raw", func(t *testing.T) {
		t.Parallel()
		var nul, bad string
		err := openRaw(t, directURL(t)).QueryRowContext(t.Context(), "SELECT $1::text, $2::text", "a\x00b", "a\xffb").Scan(&nul, &bad)
		require.NoError(t, err, "the raw driver refuses such text now")
		assert.Equal(t, "ab", nul)
		assert.Equal(t, "a\uFFFDb", bad)
	})
	db := open(t, serverURL(t), database.Options{})
	for name, text := range map[string]string{"NUL": "a\x00b", "UTF-8": "a\xffb"} {
		_, err := db.Main.ExecContext(t.Context(), "SELECT '"+text+"'")
		require.ErrorIs(t, err, database.ErrText, "%s in the statement", name)
		_, err = db.Main.DB.ExecContext(t.Context(), "SELECT $1::text", text)
		require.ErrorIs(t, err, database.ErrText, "%s in an argument of database/sql", name)
		_, err = db.Main.NewRaw("SELECT ?", text).Exec(t.Context())
		require.ErrorIs(t, err, database.ErrText, "%s in an argument of bun", name)
		assert.False(t, database.Unknown(err))
	}
	var back string
	require.NoError(t, db.Main.NewRaw("SELECT ?", "it's 50 % 日本 🙂 \\ \uFFFD").Scan(t.Context(), &back))
	assert.Equal(t, "it's 50 % 日本 🙂 \\ \uFFFD", back)
}

// A server's error with a field over 4 KiB loses its SQLSTATE.
func TestContractLongErrorsKeepTheirState(t *testing.T) {
	t.Parallel()
	const raise = `DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001', MESSAGE = repeat('x', %s); END $$`
	long := func(t *testing.T, db *sql.DB, length string) error {
		t.Helper()
		_, err := db.ExecContext(t.Context(), strings.Replace(raise, "%s", length, 1))
		require.Error(t, err)
		return err
	}
	t.Run("raw", func(t *testing.T) {
		t.Parallel()
		err := long(t, openRaw(t, directURL(t)), "5000")
		assert.NotErrorAs(t, err, new(pgdriver.Error), "the raw driver reads long errors now")
	})
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		db := open(t, serverURL(t), database.Options{})
		before := connection(t, db.Main.DB)
		err := long(t, db.Main.DB, "30000")
		assert.Greater(t, len(err.Error()), 30000, "all of it fits into our buffer")
		assert.Same(t, before, connection(t, db.Main.DB), "so there is no reason to leave the connection")
		for _, length := range []string{"5000", "30000", "200000"} { // the last is longer than our buffer as well
			err := long(t, db.Main.DB, length)
			assert.Equal(t, "40001", database.SQLState(err), length)
			assert.True(t, database.Retryable(err))
			assert.False(t, database.Unknown(err))
			require.NoError(t, db.Main.PingContext(t.Context()))
		}
	})
}

// Each use has its own timeout, in place of pgdriver's ten seconds for everything.
func TestContractTimeoutPerUse(t *testing.T) {
	t.Parallel()
	conf := pgdriver.NewConnector().Config()
	assert.Equal(t, 10*time.Second, conf.ReadTimeout)
	assert.Equal(t, 5*time.Second, conf.WriteTimeout)

	proxy, url := via(t)
	db := open(t, url, database.Options{StatementTimeout: 3 * time.Second, RenewTimeout: 2 * time.Second})
	require.NoError(t, db.Main.PingContext(t.Context()))
	require.NoError(t, db.Renew.PingContext(t.Context()))
	proxy.BlackHole()
	for _, use := range []struct {
		db      *sql.DB
		ctx     context.Context
		atLeast time.Duration
	}{
		{db.Renew.DB, t.Context(), 2 * time.Second},
		{db.Main.DB, database.WithTimeout(t.Context(), 4*time.Second), 4 * time.Second},
	} {
		start := time.Now()
		_, err := use.db.ExecContext(use.ctx, "SELECT 1")
		require.Error(t, err)
		assert.GreaterOrEqual(t, time.Since(start), use.atLeast)
		assert.Less(t, time.Since(start), patience)
		assert.True(t, database.Unavailable(err))
	}
}
