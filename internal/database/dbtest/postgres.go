package dbtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/migrations"
)

// PostgresEnv names the environment variable with the URL of the server for tests, as a superuser.
const PostgresEnv = "CRONLATCH_TEST_POSTGRES"

// DirectEnv names the variable with the server itself when PostgresEnv leads to a pooler in front of it.
const DirectEnv = "CRONLATCH_TEST_POSTGRES_DIRECT"

// templateLock is the advisory lock, in the database postgres, of those who make the template.
const templateLock = 7146232180251134

// PostgresURL creates a migrated database and returns its URL; it is dropped at the end of the test.
func PostgresURL(tb testing.TB) string {
	tb.Helper()
	return create(tb, func(ctx context.Context, db *bun.DB) (string, error) { return template(ctx, tb, db) })
}

// EmptyPostgresURL is PostgresURL without the migrations.
func EmptyPostgresURL(tb testing.TB) string {
	tb.Helper()
	return create(tb, func(context.Context, *bun.DB) (string, error) { return "template0", nil })
}

// PostgresCopy is PostgresURL with what is in another database of this package, whose sessions it ends.
func PostgresCopy(tb testing.TB, of string) string {
	tb.Helper()
	return create(tb, func(ctx context.Context, db *bun.DB) (string, error) {
		u, err := url.Parse(of)
		if err != nil {
			return "", err
		}
		source := strings.TrimPrefix(u.Path, "/")
		_, err = db.ExecContext(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ?`, source)
		return source, err
	})
}

// ServerURL is the server for tests: the database postgres, as a superuser.
func ServerURL(tb testing.TB) string {
	tb.Helper()
	server := os.Getenv(PostgresEnv)
	if server == "" {
		tb.Fatalf("this test needs a PostgreSQL server in %s; type: make test, or: go run ./internal/pgserver/withpg -- go test ./...", PostgresEnv)
	}
	return server
}

// directURL is the server itself: no pooler creates a database.
func directURL(tb testing.TB) string {
	tb.Helper()
	if direct := os.Getenv(DirectEnv); direct != "" {
		return direct
	}
	return ServerURL(tb)
}

// Direct is a URL of this package without the pooler that may stand in front of the server, for tests of what belongs to
// a session: its settings, its process.
func Direct(tb testing.TB, raw string) string {
	tb.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		tb.Fatal(fmt.Errorf("reading the URL of a test's database: %w", err))
	}
	return on(tb, directURL(tb), strings.TrimPrefix(u.Path, "/"))
}

// create copies the database that from names.
func create(tb testing.TB, from func(ctx context.Context, db *bun.DB) (string, error)) string {
	tb.Helper()
	name := databaseName(tb.Name())
	asAdmin(tb, func(ctx context.Context, db *bun.DB) error {
		source, err := from(ctx, db)
		if err != nil {
			return err
		}
		_, err = db.ExecContext(ctx, `CREATE DATABASE ? TEMPLATE ?`, bun.Ident(name), bun.Ident(source))
		return err
	})
	tb.Cleanup(func() {
		asAdmin(tb, func(ctx context.Context, db *bun.DB) error {
			_, err := db.ExecContext(ctx, `DROP DATABASE ? WITH (FORCE)`, bun.Ident(name))
			return err
		})
	})
	return onDatabase(tb, name)
}

// databaseName starts with the test's name, for whoever looks at pg_stat_activity; the rest makes it unique.
func databaseName(test string) string {
	const longest = 30
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(test))
	return plain[:min(len(plain), longest)] + "_" + strings.ToLower(rand.Text())
}

// template returns the name of the migrated database that tests are copied from, and makes it when it is missing. Only a
// finished one has the name: a test process killed half-way leaves nothing that others would take.
func template(ctx context.Context, tb testing.TB, db *bun.DB) (name string, err error) {
	tb.Helper()
	fingerprint, err := migrations.Fingerprint(dialect.PG)
	if err != nil {
		return "", err
	}
	name = "cronlatch_template_" + fingerprint
	if ok, err := exists(ctx, db, name); ok || err != nil {
		return name, err
	}
	// A session lock, on the only connection of this pool; closing the pool frees it.
	if _, err := db.ExecContext(ctx, `SELECT pg_advisory_lock(?)`, templateLock); err != nil {
		return "", err
	}
	if ok, err := exists(ctx, db, name); ok || err != nil {
		return name, err
	}
	return name, makeTemplate(ctx, tb, db, name)
}

func exists(ctx context.Context, db *bun.DB, name string) (ok bool, err error) {
	err = db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = ?)`, name).Scan(&ok)
	return ok, err
}

func makeTemplate(ctx context.Context, tb testing.TB, db *bun.DB, name string) error {
	tb.Helper()
	draft := name + "_draft"
	if _, err := db.ExecContext(ctx, `DROP DATABASE IF EXISTS ? WITH (FORCE)`, bun.Ident(draft)); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, `CREATE DATABASE ? TEMPLATE template0`, bun.Ident(draft)); err != nil {
		return err
	}
	if err := migrate(ctx, tb, on(tb, directURL(tb), draft)); err != nil {
		return err
	}
	_, err := db.ExecContext(ctx, `ALTER DATABASE ? RENAME TO ?`, bun.Ident(draft), bun.Ident(name))
	return err
}

func migrate(ctx context.Context, tb testing.TB, url string) error {
	tb.Helper()
	db := open(tb, url, database.Options{MaxConns: 1})
	defer closeDB(tb, db)
	return migrations.Up(ctx, db.Main)
}

// asAdmin runs f on a connection of its own to the server: a pool for the whole process would look like a leak.
func asAdmin(tb testing.TB, f func(ctx context.Context, db *bun.DB) error) {
	tb.Helper()
	const patience = time.Minute
	db := open(tb, directURL(tb), database.Options{AppName: "cronlatch dbtest", MaxConns: 1, StatementTimeout: patience})
	defer closeDB(tb, db)
	// In a cleanup the test's own context has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), patience)
	defer cancel()
	if err := f(ctx, db.Main); err != nil {
		tb.Fatalf("preparing the test's database: %v", err)
	}
}

func onDatabase(tb testing.TB, name string) string {
	tb.Helper()
	return on(tb, ServerURL(tb), name)
}

// on is the URL of another database of a server.
func on(tb testing.TB, server, name string) string {
	tb.Helper()
	u, err := url.Parse(server)
	if err != nil {
		tb.Fatal(fmt.Errorf("reading the URL of the server for tests: %w", err))
	}
	u.Path = "/" + name
	return u.String()
}
