package database_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
)

// onlyConn is a database with one connection, so that what is prepared is seen.
func onlyConn(t *testing.T) *sql.DB {
	t.Helper()
	db := dbtest.Open(t, dbtest.Direct(t, dbtest.PostgresURL(t))).Main.DB
	db.SetMaxOpenConns(1)
	return db
}

func one[T any](t *testing.T, db *sql.DB, query string, args ...any) (value T) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), query, args...).Scan(&value))
	return value
}

const countPrepared = `SELECT count(*) FROM pg_prepared_statements`

func TestStatementsWithArgumentsArePreparedOnce(t *testing.T) {
	t.Parallel()
	db := onlyConn(t)
	for n := range int64(5) {
		assert.Equal(t, n+1, one[int64](t, db, `SELECT $1::bigint + 1`, n))
	}
	assert.EqualValues(t, 1, one[int64](t, db, countPrepared), "and what has none is not")
	_, err := db.ExecContext(t.Context(), `SELECT $1::text`, "x")
	require.NoError(t, err)
	assert.EqualValues(t, 2, one[int64](t, db, countPrepared))
	for n := range 100 {
		assert.EqualValues(t, n, one[int64](t, db, `SELECT $1::bigint -- `+string(rune('a'+n)), n))
	}
	assert.EqualValues(t, 64, one[int64](t, db, countPrepared), "a connection keeps so many")
}

// Whatever happens to the server's half of a statement, the call is answered.
func TestOutdatedStatementsAreSentAsText(t *testing.T) {
	t.Parallel()
	db := onlyConn(t)
	exec := func(query string) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), query)
		require.NoError(t, err)
	}
	exec(`CREATE TABLE items (n int)`)
	exec(`INSERT INTO items VALUES (7)`)
	read := func() string { return one[string](t, db, `SELECT n FROM items WHERE n::text <> $1`, "x") }
	assert.Equal(t, "7", read())
	exec(`ALTER TABLE items ALTER COLUMN n TYPE numeric(5, 2)`)
	assert.Equal(t, "7.00", read(), "the result has another type than when it was prepared")
	assert.Equal(t, "7.00", read())
	exec(`DEALLOCATE ALL`)
	assert.Equal(t, "7.00", read(), "as text")
	assert.Equal(t, "7.00", read(), "prepared again")
	exec(`ALTER TABLE items ALTER COLUMN n TYPE int`)
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	var n string
	err = tx.QueryRowContext(t.Context(), `SELECT n FROM items WHERE n::text <> $1`, "x").Scan(&n)
	require.Error(t, err, "the transaction has failed at the server; the text would fail, too")
	require.NoError(t, tx.Rollback())
	assert.Equal(t, "7", read())
}

// An error of the server leaves the statement and the connection usable, and a call that ended early leaves neither.
func TestPreparedStatementsBehindTheGuard(t *testing.T) {
	t.Parallel()
	db := onlyConn(t)
	const divide = `SELECT 10 / $1::int`
	backend := one[int64](t, db, `SELECT pg_backend_pid()`)
	assert.EqualValues(t, 5, one[int64](t, db, divide, 2))
	var n int64
	err := db.QueryRowContext(t.Context(), divide, 0).Scan(&n)
	assert.Equal(t, "22012", database.SQLState(err))
	assert.EqualValues(t, 2, one[int64](t, db, divide, 5))
	assert.Equal(t, backend, one[int64](t, db, `SELECT pg_backend_pid()`))
	_, err = db.ExecContext(t.Context(), `SELECT $1::nonsense`, 1)
	assert.Equal(t, "42704", database.SQLState(err))

	ctx, cancel := context.WithCancel(t.Context())
	rows, err := db.QueryContext(ctx, `SELECT generate_series(1, $1::int)`, 1_000_000)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	require.True(t, rows.Next())
	cancel()
	for rows.Next() { // until the cancellation arrives
	}
	require.Error(t, rows.Err())
	assert.EqualValues(t, 1, one[int64](t, db, divide, 10), "not an answer of the statement before")
	assert.NotEqual(t, backend, one[int64](t, db, `SELECT pg_backend_pid()`))
}
