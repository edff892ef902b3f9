package database_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/pgserver"
)

// pooler is a server of the test's own behind PgBouncer in transaction mode. Its defaults are not ours: what a statement
// does not bring along is wrong.
func pooler(t *testing.T) (*pgserver.Server, *pgserver.Bouncer) {
	t.Helper()
	s := pgserver.Start(t, pgserver.Setting("default_transaction_isolation", "serializable"),
		pgserver.Setting("DateStyle", "SQL, DMY"), pgserver.Setting("TimeZone", "Asia/Kathmandu"))
	return s, pgserver.StartBouncer(t, s)
}

const settingsQuery = `SELECT concat_ws(' ', current_setting('statement_timeout'), current_setting('lock_timeout'),
	current_setting('idle_in_transaction_session_timeout'), current_setting('client_connection_check_interval'),
	current_setting('transaction_isolation'), current_setting('DateStyle'), current_setting('jit'),
	current_setting('enable_bitmapscan'), current_setting('search_path'), current_setting('synchronous_commit'))`

type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func settingsOf(t *testing.T, db queryer) (settings string) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), settingsQuery).Scan(&settings))
	return settings
}

// What one client of a pooler sets on its session is what the next client finds. Both halves use the one session that the
// pooler opened, in turn.
//
//nolint:paralleltest // see above
func TestContractPoolerSharesSessions(t *testing.T) {
	t.Parallel()
	s, b := pooler(t)
	spoil := func(db *sql.DB) {
		_, err := db.ExecContext(t.Context(), `SET statement_timeout = '1h'; SET search_path = elsewhere;
			SET synchronous_commit = off; SET enable_bitmapscan = on; SET default_transaction_isolation = 'repeatable read'`)
		require.NoError(t, err)
	}
	t.Run("raw", func(t *testing.T) {
		one, two := openRaw(t, b.URL()), openRaw(t, b.URL())
		require.NoError(t, two.PingContext(t.Context()))
		spoil(one)
		assert.Contains(t, settingsOf(t, two), "1h", "the pooler no longer hands a session's settings on")
	})
	t.Run("ours", func(t *testing.T) {
		const want = "1800ms 1s 2s 200ms read committed ISO, DMY off off a on"
		o := database.Options{StatementTimeout: 2 * time.Second}
		other := openRaw(t, b.URL())
		db := open(t, b.URL()+"&search_path=a", o).Main.DB
		assert.Equal(t, want, settingsOf(t, db))
		spoil(other)
		assert.Equal(t, want, settingsOf(t, db), "the settings of another client")
		before := settingsOf(t, other)
		for range 3 {
			settingsOf(t, db)
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			assert.Equal(t, want, settingsOf(t, tx))
			require.NoError(t, tx.Commit())
		}
		assert.Equal(t, before, settingsOf(t, other), "ours left nothing behind")
		unnamed := open(t, b.URL(), o).Main.DB
		assert.Contains(t, settingsOf(t, unnamed), ` "$user", public on`, "the server's own default, and a durable commit")
	})
	direct := open(t, s.URL()+"&search_path=a", database.Options{StatementTimeout: 2 * time.Second}).Main.DB
	assert.Equal(t, "1800ms 1s 2s 200ms read committed ISO, DMY off off a on", settingsOf(t, direct), "without a pooler")
}

func TestPoolerIsNoticedAndSaid(t *testing.T) {
	t.Parallel()
	s, b := pooler(t)
	for url, want := range map[string]bool{s.URL(): false, b.URL(): true} {
		core, logs := observer.New(zapcore.InfoLevel)
		db := open(t, url, database.Options{Logger: zap.New(core), MaxConns: 2})
		require.NoError(t, db.Main.PingContext(t.Context()))
		require.NoError(t, db.Renew.PingContext(t.Context()))
		assert.Equal(t, want, db.Pooled())
		assert.Equal(t, want, logs.FilterMessageSnippet("behind a connection pooler").Len() == 1, "said once")
	}
}

// A statement behind a pooler answers as it does without one.
func TestPooledStatementsAnswerAsDirectOnes(t *testing.T) {
	t.Parallel()
	s, b := pooler(t)
	_, err := openRaw(t, s.URL()).ExecContext(t.Context(), `CREATE TABLE p (n int PRIMARY KEY);
		CREATE TABLE c (n int REFERENCES p DEFERRABLE INITIALLY DEFERRED)`)
	require.NoError(t, err)
	for name, url := range map[string]string{"direct": s.URL(), "pooled": b.URL()} {
		db := open(t, url, database.Options{})
		before := connection(t, db.Main.DB)
		exec := func(query string) (int64, error) {
			res, err := db.Main.DB.ExecContext(t.Context(), query)
			if err != nil {
				return 0, err
			}
			n, err := res.RowsAffected()
			require.NoError(t, err)
			return n, nil
		}
		for _, c := range []struct {
			query, state string
			rows         int64
		}{
			{query: `INSERT INTO p SELECT generate_series(1, 5)`, rows: 5},
			{query: `UPDATE p SET n = n + 10 WHERE n > 2`, rows: 3},
			{query: `INSERT INTO p VALUES (1)`, state: "23505"},
			{query: `INSERT INTO p VALUES (6); SELECT 1/0`, state: "22012"},
			{query: `SELEC 1`, state: "42601"},
			{query: `INSERT INTO c VALUES (99)`, state: "23503"}, // at the commit, after the tag
			{query: `DELETE FROM p`, rows: 5},
			{query: `DELETE FROM p`},
		} {
			n, err := exec(c.query)
			assert.Equal(t, c.state, database.SQLState(err), "%s: %s: %v", name, c.query, err)
			assert.Equal(t, c.rows, n, "%s: %s", name, c.query)
		}
		var none int
		require.ErrorIs(t, db.Main.QueryRowContext(t.Context(), `INSERT INTO p SELECT 1 WHERE false RETURNING n`).Scan(&none), sql.ErrNoRows)
		assert.Equal(t, "22012", database.SQLState(breakOff(t, db.Main.DB)), name)
		var at time.Time
		require.NoError(t, db.Main.QueryRowContext(t.Context(), `SELECT timestamptz '2026-03-04 05:06:07.89+00'`).Scan(&at))
		assert.Equal(t, "2026-03-04T05:06:07.89Z", at.UTC().Format(time.RFC3339Nano), name)
		assert.Same(t, before, connection(t, db.Main.DB), "%s: nothing was wrong with the connection", name)
	}
}

// breakOff is the error that ends a statement after some of its rows.
func breakOff(t *testing.T, db *sql.DB) error {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT 1 / (3 - n) FROM generate_series(1, 3) AS n`)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
	}
	return rows.Err()
}

// The settings of a transaction are those of its BEGIN: a later statement does not bring them again.
func TestPooledTransactionKeepsWhatItSet(t *testing.T) {
	t.Parallel()
	_, b := pooler(t)
	db := open(t, b.URL(), database.Options{}).Main
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), `SET LOCAL statement_timeout = '7s'`)
	require.NoError(t, err)
	var timeout, level, readOnly string
	require.NoError(t, tx.NewRaw(`SELECT current_setting('statement_timeout'), current_setting('transaction_isolation'),
		current_setting('transaction_read_only')`).Scan(t.Context(), &timeout, &level, &readOnly))
	assert.Equal(t, []string{"7s", "repeatable read", "on"}, []string{timeout, level, readOnly})
	_, err = tx.ExecContext(t.Context(), `SELECT 1/0`)
	require.Error(t, err)
	_, err = tx.ExecContext(t.Context(), `SELECT 1`)
	assert.Equal(t, "25P02", database.SQLState(err), "also no settings in a failed transaction")
	require.ErrorIs(t, tx.Commit(), database.ErrRolledBack)
}

// A statement that the server has on one session is unknown on the next.
func TestPooledStatementsAreNotPrepared(t *testing.T) {
	t.Parallel()
	_, b := pooler(t)
	db := open(t, b.URL(), database.Options{}).Main
	stmt, err := db.PrepareContext(t.Context(), `SELECT $1::text || $2, (SELECT count(*) FROM pg_prepared_statements)`)
	require.NoError(t, err)
	defer func() { require.NoError(t, stmt.Close()) }()
	for _, text := range []string{"it's", "$1 'x", "''"} {
		var got string
		var prepared int
		require.NoError(t, stmt.QueryRowContext(t.Context(), text, 5).Scan(&got, &prepared))
		assert.Equal(t, text+"5", got)
		assert.Zero(t, prepared)
	}
	_, err = stmt.ExecContext(t.Context(), "a", "b")
	require.NoError(t, err)
	_, err = stmt.ExecContext(t.Context(), "a\x00", "b")
	require.ErrorIs(t, err, database.ErrText)
}

// The list of the URL means the same with and without a pooler, whatever the names are.
func TestPooledSearchPath(t *testing.T) {
	t.Parallel()
	s, b := pooler(t)
	raw := openRaw(t, s.URL())
	for _, list := range []string{
		`public`, `a,"B"`, ` "$user" , public `, `Mixed`, `"it's"`, `"a""b"`, `"$1",'x`, `ÄÖ,"日本 🙂"`, `"a,b",c`, `"a\b"`,
	} {
		_, err := raw.ExecContext(t.Context(), `SELECT set_config('search_path', $1, false)`, list)
		require.NoError(t, err, list)
		var want, got, arg string
		require.NoError(t, raw.QueryRowContext(t.Context(), `SHOW search_path`).Scan(&want))
		db := open(t, b.URL()+"&search_path="+escape(list), database.Options{})
		require.NoError(t, db.Main.DB.QueryRowContext(t.Context(), `SELECT current_setting('search_path'), $1`, "an 'argument'").Scan(&got, &arg), list)
		assert.Equal(t, plainList(want), plainList(got), list)
		assert.Equal(t, "an 'argument'", arg, list)
	}
	for _, list := range []string{`a,,b`, `a b`, `"a`, `,`, `a"b"`} {
		err := open(t, b.URL()+"&search_path="+escape(list), database.Options{}).Main.PingContext(t.Context())
		require.ErrorContains(t, err, "is not a list of names", list)
		assert.True(t, database.Unavailable(err))
	}
}

func TestPooledHosts(t *testing.T) {
	t.Parallel()
	standby := pgserver.Start(t, pgserver.Setting("default_transaction_read_only", "on"))
	primary, good := pooler(t)
	bad := pgserver.StartBouncer(t, standby)
	err := open(t, bad.URL(), database.Options{}).Main.PingContext(t.Context())
	require.ErrorContains(t, err, "the server is read-only")
	db := open(t, "postgres://postgres@"+bad.Addr()+","+good.Addr()+"/postgres?sslmode=disable", database.Options{})
	var port string
	require.NoError(t, db.Main.NewRaw("SHOW port").Scan(t.Context(), &port))
	assert.Equal(t, primary.Addr(), "127.0.0.1:"+port)

	one := open(t, good.URL(), database.Options{}).Main // the server behind a pooler became a standby
	require.NoError(t, one.PingContext(t.Context()))
	admin := openRaw(t, primary.URL())
	for _, q := range []string{`ALTER SYSTEM SET default_transaction_read_only = on`, `SELECT pg_reload_conf()`} {
		_, err = admin.ExecContext(t.Context(), q)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		_, err := one.ExecContext(t.Context(), `CREATE TABLE x (); DROP TABLE x`)
		return database.SQLState(err) == "25006"
	}, patience, 20*time.Millisecond)
	require.ErrorContains(t, one.PingContext(t.Context()), "the server is read-only", "a new connection looks again")
}

// The pooler dies, or the server behind it: what was on its way is unknown, and the next call connects anew.
func TestPoolerAndServerGoAway(t *testing.T) {
	t.Parallel()
	s, b := pooler(t)
	db := open(t, b.URL(), database.Options{StatementTimeout: time.Minute}).Main
	require.NoError(t, db.PingContext(t.Context()))
	round := 0
	for name, fault := range map[string]struct{ breaks, repair func() }{
		"pooler":       {b.Kill, func() { require.NoError(t, b.Restart(t.Context())) }},
		"server, fast": {func() { s.Stop(pgserver.Fast) }, s.Restart},
		"server, kill": {s.Kill, s.Restart},
	} {
		round++ // the server may still work on the statement of the last one
		query := fmt.Sprintf("SELECT pg_sleep(50), %d", round)
		done := make(chan error, 1)
		go func() { _, err := db.ExecContext(context.Background(), query); done <- err }()
		look := openRaw(t, s.URL())
		require.Eventually(t, func() bool {
			var n int
			err := look.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE query LIKE $1 AND state = 'active'
				AND pid <> pg_backend_pid()`, "%"+query).Scan(&n)
			return err == nil && n == 1
		}, patience, 20*time.Millisecond, name)
		require.NoError(t, look.Close())
		fault.breaks()
		err := <-done
		assert.True(t, database.Unknown(err), "%s: %v", name, err)
		assert.True(t, database.Unavailable(err), "%s: %v", name, err)
		fault.repair()
		require.Eventually(t, func() bool { return db.PingContext(t.Context()) == nil }, patience, 20*time.Millisecond, name)
	}
}

// A client that gives up ends its statement at the server, through the pooler.
func TestPooledStatementEndsWithItsClient(t *testing.T) {
	t.Parallel()
	s, b := pooler(t)
	db, look := open(t, b.URL(), database.Options{StatementTimeout: time.Minute}).Main, openRaw(t, s.URL())
	_, err := look.ExecContext(t.Context(), `CREATE TABLE late (n int)`)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = db.ExecContext(ctx, `INSERT INTO public.late SELECT 1 FROM pg_sleep(50)`)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Eventually(t, func() bool {
		var n int
		err := look.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%public.late SELECT 1%'
			AND pid <> pg_backend_pid() AND state = 'active'`).Scan(&n)
		return err == nil && n == 0
	}, patience, 20*time.Millisecond)
}

// plainList is a list without the spaces between its names: set_config keeps those of its argument.
func plainList(list string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", `"`, "").Replace(list))
}

func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// Behind a pooler LISTEN would reach a session that serves somebody else next.
func TestPooledListenIsRefused(t *testing.T) {
	t.Parallel()
	_, b := pooler(t)
	db := dbtest.Open(t, b.URL())
	_, err := db.Listen(t.Context(), "c")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	var listening int
	require.NoError(t, db.Main.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_listening_channels()`).Scan(&listening))
	assert.Zero(t, listening)
}
