package database_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/pgserver"
)

// The price of the guard is the difference between the two.
func BenchmarkStatement(b *testing.B) {
	run := func(b *testing.B, db *sql.DB) {
		b.Helper()
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		require.NoError(b, db.PingContext(ctx))
		b.ReportAllocs()
		for b.Loop() {
			var n int
			if err := db.QueryRowContext(ctx, "SELECT 1").Scan(&n); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("raw", func(b *testing.B) { run(b, openRaw(b, directURL(b))) })
	b.Run("ours", func(b *testing.B) { run(b, open(b, serverURL(b), database.Options{}).Main.DB) })
	pooler := startPooler(b)
	b.Run("raw, pooler", func(b *testing.B) { run(b, openRaw(b, pooler)) })
	b.Run("ours, pooler", func(b *testing.B) { run(b, open(b, pooler, database.Options{}).Main.DB) })
}

// startPooler is a pooler before a server of its own.
func startPooler(b *testing.B) string {
	b.Helper()
	return pgserver.StartBouncer(b, pgserver.Start(b)).URL()
}

func BenchmarkConnect(b *testing.B) {
	run := func(b *testing.B, db *sql.DB) {
		b.Helper()
		db.SetMaxIdleConns(0)
		for b.Loop() {
			if err := db.PingContext(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("raw", func(b *testing.B) { run(b, openRaw(b, directURL(b))) })
	b.Run("ours", func(b *testing.B) { run(b, open(b, serverURL(b), database.Options{}).Main.DB) })
}
