package locking_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/pgserver"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/migrations"
)

// A losing attempt writes nothing: not one byte of WAL. The server is the test's own, because WAL is of all databases.
func TestPostgresLoserWritesNoWAL(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t, pgserver.Setting("autovacuum", "off"))
	db := dbtest.Open(t, server.URL())
	require.NoError(t, migrations.Up(t.Context(), db.Main))
	store := newStore(t, db.Main)
	names := make([]string, 50)
	for i := range names {
		names[i] = fmt.Sprintf("lock %02d", i)
		mustAcquire(t, store, names[i], "A")
	}
	exec(t, db.Main, `UPDATE distributed_locks SET expires_at = expires_at + interval '1 hour'`) // longer than any machine needs
	mustAcquire(t, store, "expired", "A")
	exec(t, db.Main, `UPDATE distributed_locks SET expires_at = clock_timestamp() WHERE resource = 'expired'`)
	lose := func() {
		for _, name := range names {
			require.False(t, tryAcquire(t, store, name, "B").Acquired)
		}
		reqs := []locking.AcquireRequest{{Resource: "expired", Owner: "B", TTL: time.Minute, Grace: time.Hour}}
		for _, name := range names {
			reqs = append(reqs, locking.AcquireRequest{Resource: name, Owner: "B", TTL: time.Minute, Grace: time.Second})
		}
		res, err := store.Acquire(t.Context(), reqs)
		require.NoError(t, err)
		for _, r := range res {
			require.False(t, r.Acquired)
		}
	}
	exec(t, db.Main, `VACUUM`) // so that the reads have no old versions to prune
	exec(t, db.Main, `CHECKPOINT`)
	lose() // and no hint bits to set
	require.Eventually(t, func() bool {
		before := walPosition(t, db.Main)
		lose()
		return walPosition(t, db.Main) == before
	}, time.Minute, time.Second, "the server's own background writes end at some time")
	before := walPosition(t, db.Main)
	mustAcquire(t, store, "free", "B")
	assert.NotEqual(t, before, walPosition(t, db.Main), "a winner does write")
}

func walPosition(t *testing.T, db *bun.DB) (lsn string) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), `SELECT pg_current_wal_insert_lsn()::text`).Scan(&lsn))
	return lsn
}

// plan returns the nodes of the plan that a prepared statement keeps, with what they read.
func plan(ctx context.Context, t *testing.T, db bun.IDB, s locking.Statement) (nodes []string) {
	t.Helper()
	var text string
	for _, query := range []string{`SET LOCAL plan_cache_mode = force_generic_plan`, `PREPARE planned AS ` + s.Text} {
		_, err := db.ExecContext(ctx, query)
		require.NoError(t, err)
	}
	explain := `EXPLAIN (FORMAT JSON) EXECUTE planned(` + strings.Join(s.Args, ", ") + `)`
	require.NoError(t, db.QueryRowContext(ctx, explain).Scan(&text))
	_, err := db.ExecContext(ctx, `DEALLOCATE planned`)
	require.NoError(t, err)
	var out []map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &out))
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			if kind, ok := v["Node Type"].(string); ok {
				nodes = append(nodes, fmt.Sprint(kind, " ", v["Relation Name"], v["Index Name"]))
			}
			for _, x := range v {
				walk(x)
			}
		}
	}
	for _, p := range out {
		walk(p["Plan"])
	}
	return nodes
}

// No statement reads the whole table, however many locks there are.
func TestPostgresStatementsUseTheIndex(t *testing.T) {
	t.Parallel()
	db := dbtest.Postgres(t).Main
	dbtest.Fill(t, db, `INSERT INTO distributed_locks (resource, owner, fencing_token, acquired_at, renewed_at, expires_at)
		SELECT 'many ' || n, 'A', n, now(), now(), now() + interval '1 hour' FROM generate_series(1, 50000) AS n`)
	dbtest.Fill(t, db, `ANALYZE distributed_locks`)
	for name, query := range locking.PostgresStatements(`[{"r":"many 7","o":"A","p":"","k":7,"t":60000000,"g":0,"m":"{}"}]`) {
		var nodes []string
		require.NoError(t, db.RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
			nodes = plan(ctx, t, tx, query)
			return nil
		}))
		assert.Contains(t, strings.Join(nodes, "\n"), "distributed_locks", name)
		for _, n := range nodes {
			assert.NotContains(t, n, "Seq Scan distributed_locks", "%s: %v", name, nodes)
		}
	}
}

// Heartbeats are HOT updates: no index entry, and the dead versions are pruned without a vacuum.
func TestPostgresRenewalsAreHOT(t *testing.T) {
	t.Parallel()
	const locks, beats = 200, 20
	db := dbtest.Postgres(t).Main
	store := newStore(t, db)
	claims := make([]locking.Claim, locks)
	for i := range claims {
		claims[i] = claimOf(mustAcquire(t, store, fmt.Sprintf("lock %d", i), "A"))
	}
	before := hotUpdates(t, db)
	for range beats {
		res, err := store.Renew(t.Context(), claims)
		require.NoError(t, err)
		for _, r := range res {
			require.NoError(t, r.Err)
		}
	}
	require.Eventually(t, func() bool { // the statistics come with a delay
		return hotUpdates(t, db).all-before.all >= locks*beats
	}, time.Minute, 100*time.Millisecond)
	after := hotUpdates(t, db)
	share := float64(after.hot-before.hot) / float64(after.all-before.all)
	t.Logf("%.1f%% of %d updates were HOT", 100*share, after.all-before.all)
	assert.Greater(t, share, 0.5, "usually above 0.9; with an index on a time column it is 0")
}

type updates struct{ all, hot int64 }

func hotUpdates(t *testing.T, db *bun.DB) (u updates) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), `SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables
		WHERE relname = 'distributed_locks'`).Scan(&u.all, &u.hot))
	return u
}

// Sessions differ in time zone, date style and more; a lock does not.
func TestPostgresSessionsOfAllKinds(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t, dbtest.Direct(t, dbtest.PostgresURL(t))) // behind a pooler no session is ours
	held := mustAcquire(t, newStore(t, db.Main), "held", "A")
	for i, settings := range [][]string{
		{`SET TimeZone = 'America/New_York'`},
		{`SET TimeZone = 'Asia/Kathmandu'`, `SET DateStyle = 'German'`},
		{`SET TimeZone = 'Pacific/Apia'`, `SET DateStyle = 'SQL, DMY'`, `SET IntervalStyle = 'sql_standard'`},
		{`SET TimeZone = 'Africa/Monrovia'`, `SET extra_float_digits = -15`},
		{`SET TimeZone = '-13:37'`},
		{`SET default_transaction_isolation = 'read committed'`, `SET bytea_output = 'escape'`},
	} {
		conn, err := db.Main.Conn(t.Context())
		require.NoError(t, err)
		for _, s := range settings {
			exec(t, conn, s)
		}
		store := newStore(t, conn)
		seen := tryAcquire(t, store, "held", "B").Record
		assert.Equal(t, held.ExpiresAt, seen.ExpiresAt, settings)
		assert.Equal(t, held.AcquiredAt, seen.AcquiredAt, settings)
		res, err := store.Acquire(t.Context(), []locking.AcquireRequest{
			{Resource: fmt.Sprintf("own %d", i), Owner: "A", TTL: locking.MaxTTL, Grace: locking.MaxGrace},
		})
		require.NoError(t, err)
		r := res[0].Record
		assert.WithinDuration(t, held.AcquiredAt, r.AcquiredAt, time.Minute, settings)
		assert.WithinDuration(t, r.AcquiredAt.Add(locking.MaxTTL), r.ExpiresAt, time.Second, settings)
		got, err := newStore(t, db.Renew).Get(t.Context(), r.Resource)
		require.NoError(t, err)
		assert.Equal(t, r.ExpiresAt, got.ExpiresAt, settings)
		exec(t, conn, `DISCARD ALL`)
		require.NoError(t, conn.Close())
	}
}

// A day is 24 hours, also on the day when the session's zone changes its clock: a TTL that went through a calendar
// interval ('1 day') would be an hour too long then. The zone is made so that its clock goes forward in one to two hours: never
// between two of the test's statements.
func TestPostgresDayOfAClockChange(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t, dbtest.Direct(t, dbtest.PostgresURL(t))).Main
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	var zone string
	require.NoError(t, conn.QueryRowContext(t.Context(), `SELECT format('STD0DST,%s/%s,%s/23',
		extract(doy FROM now) - 1, extract(hour FROM now) + 2, mod(extract(doy FROM now)::int + 100, 365))
		FROM (SELECT now() AT TIME ZONE 'UTC') AS x (now)`).Scan(&zone))
	exec(t, conn, `SET TimeZone = ?`, zone)
	var calendarDay float64
	require.NoError(t, conn.QueryRowContext(t.Context(),
		`SELECT extract(epoch FROM now() + interval '1 day' - now()) / 3600`).Scan(&calendarDay))
	require.InDelta(t, 23, calendarDay, 0, "the zone %s has a short day", zone)
	store := newStore(t, conn)
	day := []locking.AcquireRequest{{Resource: "a", Owner: "A", TTL: 24 * time.Hour}}
	for i, path := range []string{"insert", "update"} {
		res, err := store.Acquire(t.Context(), day)
		require.NoError(t, err)
		assert.WithinDuration(t, res[0].Record.AcquiredAt.Add(24*time.Hour), res[0].Record.ExpiresAt, time.Minute, path)
		require.Equal(t, i == 1, res[0].Extended)
	}
	renewed, err := store.Renew(t.Context(), []locking.Claim{{Resource: "a", Owner: "A", TTL: 24 * time.Hour}})
	require.NoError(t, err)
	r := renewed[0].Record
	assert.WithinDuration(t, r.RenewedAt.Add(24*time.Hour), r.ExpiresAt, time.Minute)
}

func TestPostgresTokensSurviveASequenceThatWasSetBack(t *testing.T) {
	t.Parallel()
	db := dbtest.Postgres(t).Main
	store := newStore(t, db)
	exec(t, db, `SELECT setval('fencing_tokens', 1000)`)
	a := mustAcquire(t, store, "a", "A")
	exec(t, db, `SELECT setval('fencing_tokens', 1)`)
	requireTokensGoOn(t, store, a, func() {
		exec(t, db, `UPDATE distributed_locks SET expires_at = expires_at - interval '10 hours',
			released_at = released_at - interval '10 hours'`)
	})
}

// P2 across a crash of the server: the tokens that it gave out stay given out.
func TestP2TokensGrowAcrossACrash(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t, pgserver.Fsync())
	db := dbtest.Open(t, server.URL())
	require.NoError(t, migrations.Up(t.Context(), db.Main))
	store := newStore(t, db.Main)
	last := int64(0)
	for range 2 {
		for range 5 {
			a := mustAcquire(t, store, "a", "A")
			require.Greater(t, a.FencingToken, last)
			last = a.FencingToken
			_, err := store.Release(t.Context(), []locking.Claim{claimOf(a)})
			require.NoError(t, err)
		}
		server.Kill()
		server.Restart()
		require.Eventually(t, func() bool {
			_, err := store.Now(t.Context())
			return err == nil
		}, time.Minute, 50*time.Millisecond)
	}
}
