package database_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	mathrand "math/rand/v2"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/driver/pgdriver"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/netfault"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(counterEnv); path != "" {
		os.Exit(countInProcess(path)) // the main of a process that a test starts
	}
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must happen soon; only a broken guard needs all of it. What must not end by
// itself meanwhile sleeps for 50 seconds.
const patience = 40 * time.Second

// shortly is a context that ends the wait for an answer but not what is before it: its time starts when the driver asks
// for it, and not while a busy machine has not sent the statement yet.
type shortly struct{ context.Context }

func (shortly) Deadline() (time.Time, bool) { return time.Now().Add(300 * time.Millisecond), true }

// gate is an advisory lock that a statement waits for until open is called: it takes as long as the test wants.
type gate struct {
	tb   testing.TB
	key  int64
	tx   *sql.Tx
	look *sql.DB
}

func newGate(tb testing.TB) *gate {
	tb.Helper()
	g := &gate{tb: tb, key: mathrand.Int64(), look: openRaw(tb, directURL(tb))}
	holder := openRaw(tb, directURL(tb))
	var err error
	g.tx, err = holder.BeginTx(context.WithoutCancel(tb.Context()), nil)
	require.NoError(tb, err)
	_, err = g.tx.ExecContext(tb.Context(), "SELECT "+g.pass())
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = g.tx.Rollback() })
	return g
}

// pass is the expression that waits.
func (g *gate) pass() string { return fmt.Sprintf("pg_advisory_xact_lock(%d)", g.key) }

// open lets pass whoever waits.
func (g *gate) open() {
	g.tb.Helper()
	require.NoError(g.tb, g.tx.Rollback())
}

// waiting counts the statements that stand before the gate.
func (g *gate) waiting() (n int, err error) {
	err = g.look.QueryRowContext(g.tb.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
		AND classid::bigint = $1::bigint >> 32 AND objid::bigint = $1::bigint & 4294967295`, g.key).Scan(&n)
	return n, err
}

// reached makes a call whose statement waits, and returns when it does. The error comes when the call ends.
func (g *gate) reached(call func() error) <-chan error {
	g.tb.Helper()
	done := make(chan error, 1)
	go func() { done <- call() }()
	g.counts(1)
	return done
}

// counts returns when so many statements wait.
func (g *gate) counts(want int) {
	g.tb.Helper()
	require.Eventually(g.tb, func() bool {
		n, err := g.waiting()
		return err == nil && n == want
	}, patience, 20*time.Millisecond)
}

// serverURL is the shared server; `make test` starts it.
func serverURL(tb testing.TB) string {
	tb.Helper()
	server := os.Getenv("CRONLATCH_TEST_POSTGRES")
	if server == "" {
		tb.Fatal("this test needs a PostgreSQL server in CRONLATCH_TEST_POSTGRES; type: make test, or: " +
			"go run ./internal/pgserver/withpg -- go test ./internal/database")
	}
	return server
}

// directURL is the shared server without the pooler that may stand before it: what the raw driver does is not the
// pooler's doing.
func directURL(tb testing.TB) string {
	tb.Helper()
	if direct := os.Getenv("CRONLATCH_TEST_POSTGRES_DIRECT"); direct != "" {
		return direct
	}
	return serverURL(tb)
}

func noEnv(string) string { return "" }

func parse(tb testing.TB, raw string) database.Target {
	tb.Helper()
	target, err := database.Parse(raw, noEnv, tb.TempDir())
	require.NoError(tb, err)
	return target
}

// open opens one connection for each pool, so that the next call tells what became of the connection of the last.
func open(tb testing.TB, raw string, o database.Options) *database.DB {
	tb.Helper()
	o.MaxConns, o.RenewConns = max(o.MaxConns, 1), 1
	db, err := database.Open(parse(tb, raw), o)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, db.Close()) })
	return db
}

// openRaw is pgdriver as it comes.
func openRaw(tb testing.TB, raw string) *sql.DB {
	tb.Helper()
	db := sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(raw)))
	db.SetMaxOpenConns(1)
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// newTable creates a table with a column n, dropped at the end of the test.
func newTable(tb testing.TB) bun.Ident {
	tb.Helper()
	name := bun.Ident("t" + strings.ToLower(rand.Text()))
	db := open(tb, serverURL(tb), database.Options{})
	_, err := db.Main.NewRaw("CREATE TABLE ? (n int)", name).Exec(tb.Context())
	require.NoError(tb, err)
	tb.Cleanup(func() {
		db := open(tb, serverURL(tb), database.Options{})
		_, err := db.Main.NewRaw("DROP TABLE ?", name).Exec(context.Background())
		require.NoError(tb, err)
	})
	return name
}

// connection is the one that the pool uses next: the same pointer, the same connection. The server's process tells less:
// behind a pooler it changes with every transaction.
func connection(tb testing.TB, db *sql.DB) (driverConn any) {
	tb.Helper()
	c, err := db.Conn(tb.Context())
	require.NoError(tb, err)
	require.NoError(tb, c.Raw(func(dc any) error { driverConn = dc; return nil }))
	require.NoError(tb, c.Close())
	return driverConn
}

// backend is the server process of the connection that the pool uses next, where no pooler is.
func backend(tb testing.TB, db *sql.DB) int {
	tb.Helper()
	var pid int
	require.NoError(tb, db.QueryRowContext(tb.Context(), "SELECT pg_backend_pid()").Scan(&pid))
	return pid
}

func count(tb testing.TB, table bun.Ident) int {
	tb.Helper()
	db := open(tb, serverURL(tb), database.Options{})
	var n int
	require.NoError(tb, db.Main.NewRaw("SELECT count(*) FROM ?", table).Scan(tb.Context(), &n))
	return n
}

// via is the shared server behind a proxy that can break the network.
func via(tb testing.TB) (*netfault.Proxy, string) {
	tb.Helper()
	u, err := url.Parse(serverURL(tb))
	require.NoError(tb, err)
	proxy := netfault.Listen(tb, u.Host)
	u.Host = proxy.Addr()
	return proxy, u.String()
}

func noLog() *zap.Logger { return zap.NewNop() }
