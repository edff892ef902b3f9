package doctor

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"
)

const sqliteClock = `SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) AS now`

func askSQLite(ctx context.Context, db bun.IDB, f *fileFacts) error {
	if err := db.NewRaw(`SELECT sqlite_version()`).Scan(ctx, &f.Version); err != nil {
		return fmt.Errorf("asking SQLite for its version: %w", err)
	}
	if err := db.NewRaw(`PRAGMA journal_mode`).Scan(ctx, &f.Journal); err != nil {
		return fmt.Errorf("asking SQLite for its journal: %w", err)
	}
	return nil
}
