package migrations

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/internal/dbtime"
)

// lockKey is the advisory lock of all migrations in one database. The number has no meaning, and must never change:
// binaries of different versions meet on it.
const lockKey = 7146232180251133

type postgres struct{}

// prepare lifts the timeouts first: the wait for another replica's migration, and a migration of a large table, may
// last longer than any statement of the daemon's work. transaction_timeout exists from PostgreSQL 17 on.
func (postgres) prepare(ctx context.Context, tx bun.Tx) error {
	_, err := tx.ExecContext(ctx, `
		SELECT set_config(name, '0', true) FROM pg_settings
		WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`)
	if err != nil {
		return fmt.Errorf("lifting the timeouts: %w", err)
	}
	if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(?)`, lockKey); err != nil {
		return fmt.Errorf("waiting for the lock of the migrations: %w", err)
	}
	_, err = tx.ExecContext(ctx, `
		CREATE TABLE IF NOT EXISTS schema_migrations (
			version    integer PRIMARY KEY,
			name       text NOT NULL,
			checksum   text NOT NULL,
			applied_at timestamptz NOT NULL
		)`)
	if err != nil {
		return fmt.Errorf("making the table schema_migrations: %w", err)
	}
	return nil
}

func (postgres) marks(ctx context.Context, db bun.IDB) ([]mark, error) {
	var exists bool
	if err := db.QueryRowContext(ctx, `SELECT to_regclass('schema_migrations') IS NOT NULL`).Scan(&exists); err != nil || !exists {
		return nil, err
	}
	return readMarks(ctx, db)
}

func (postgres) mark(ctx context.Context, tx bun.Tx, f file) error {
	_, err := tx.ExecContext(ctx,
		`INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (?, ?, ?, clock_timestamp())`,
		f.version, f.name, f.checksum)
	return err
}

// readMarks is the same text for both databases.
func readMarks(ctx context.Context, db bun.IDB) ([]mark, error) {
	rows, err := db.QueryContext(ctx, `SELECT version, name, checksum, applied_at FROM schema_migrations ORDER BY version`)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err below has every error of reading
	var marks []mark
	for rows.Next() {
		var m mark
		var at dbtime.Time
		if err := rows.Scan(&m.version, &m.name, &m.checksum, &at); err != nil {
			return nil, err
		}
		m.appliedAt = at.Time
		marks = append(marks, m)
	}
	return marks, rows.Err()
}
