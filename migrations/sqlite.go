package migrations

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"
)

type sqlite struct{}

// prepare needs no lock of its own: internal/database begins every transaction as IMMEDIATE, with the write lock.
func (sqlite) prepare(ctx context.Context, tx bun.Tx) error {
	_, err := tx.ExecContext(ctx, `
		CREATE TABLE IF NOT EXISTS schema_migrations (
			version    INTEGER PRIMARY KEY,
			name       TEXT NOT NULL,
			checksum   TEXT NOT NULL,
			applied_at INTEGER NOT NULL
		) STRICT`)
	if err != nil {
		return fmt.Errorf("making the table schema_migrations: %w", err)
	}
	return nil
}

func (sqlite) marks(ctx context.Context, db bun.IDB) ([]mark, error) {
	var exists bool
	const text = `SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migrations')`
	if err := db.QueryRowContext(ctx, text).Scan(&exists); err != nil || !exists {
		return nil, err
	}
	return readMarks(ctx, db)
}

func (sqlite) mark(ctx context.Context, tx bun.Tx, f file) error {
	_, err := tx.ExecContext(ctx,
		`INSERT INTO schema_migrations (version, name, checksum, applied_at)
		VALUES (?, ?, ?, CAST(unixepoch('subsec') * 1000 AS INTEGER))`,
		f.version, f.name, f.checksum)
	return err
}
