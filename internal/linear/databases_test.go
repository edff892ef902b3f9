package linear_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/linear"
	"github.com/cronlatch/cronlatch/locking"
)

// P1 and P2 for the Go API: some calls do not wait for their answer.
func TestPostgresIsLinearizable(t *testing.T) {
	t.Parallel()
	db := dbtest.Postgres(t).Main
	store, err := locking.NewStore(db)
	require.NoError(t, err)
	met := everything()
	met["acquire unknown"] = 1
	verify(t, linear.Config{Stores: []locking.Store{store}, Seed: 1, Hurry: 10, Quiet: backendsRest(db)}, met)
}

func TestSQLiteIsLinearizable(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLiteURL(t)
	var stores []locking.Store
	for range 2 { // as two processes would open the file
		store, err := locking.NewStore(dbtest.Open(t, url).Main)
		require.NoError(t, err)
		stores = append(stores, store)
	}
	verify(t, linear.Config{Stores: stores, Seed: 2, Hurry: 10}, everything())
}

// backendsRest waits until the server has read and served all that was sent, also over connections that were given up:
// only those that are still open have a process, and none of them works.
func backendsRest(db *bun.DB) func(ctx context.Context, segment int) error {
	return func(ctx context.Context, _ int) error {
		return eventually(ctx, func() (bool, error) {
			var all, active int
			err := db.QueryRowContext(ctx, `SELECT count(*), count(*) FILTER (WHERE state = 'active' AND pid <> pg_backend_pid())
				FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`).Scan(&all, &active)
			return all <= db.Stats().OpenConnections && active == 0, err
		})
	}
}

// patience is longer than a busy machine needs for anything that is waited for.
const patience = time.Minute

// eventually asks until the answer is yes.
func eventually(ctx context.Context, ask func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		yes, err := ask()
		if yes && err == nil {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("wait: %w (last: %w)", ctx.Err(), err)
		}
	}
}
