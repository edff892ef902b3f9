package fleet

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/migrations"
)

// onBoth runs f as the parallel subtests "postgres" and "sqlite", each with a migrated database of its own.
func onBoth(t *testing.T, f func(t *testing.T, url string)) {
	t.Helper()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		f(t, dbtest.PostgresURL(t))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		f(t, sqliteURL(t))
	})
}

// sqliteURL makes a SQLite file in memory. Each commit waits for the disk, and a disk that others keep busy takes a
// tenth of a second for that: then sixty runs a second are too many, which is no fault of the fleet's. Nobody pulls the
// plug here, so nothing is lost by it.
func sqliteURL(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(sharedPrograms(t).fast, "db-") //nolint:usetesting // that would be on the disk
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	url := "sqlite:" + filepath.Join(dir, "cronlatch.db")
	require.NoError(t, migrations.Up(t.Context(), dbtest.Open(t, url).Main))
	return url
}
