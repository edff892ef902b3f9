package linear_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/linear"
	"github.com/cronlatch/cronlatch/internal/pgserver"
	"github.com/cronlatch/cronlatch/locking"
)

// disaster is what happens in the middle of a segment.
type disaster int

const (
	peace disaster = iota
	daemonKilled
	databaseKilled
	databaseRestarted
)

// disasters is how many there are.
const disasters = 4

// P1 and P2 over HTTP: two daemons on one database, one of which is killed again and again, and the database too.
func TestHTTPIsLinearizable(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	program := buildDaemon(t)
	a, b := newDaemon(t, program, server.URL(), "a"), newDaemon(t, program, server.URL(), "b")
	for _, d := range []*daemon{a, b} {
		d.start(t.Context())
		require.NoError(t, d.ready(t.Context()))
	}
	db := dbtest.Open(t, server.URL()).Main

	now, happened := peace, make(map[disaster]int)
	disturb := func(segment int) {
		now = disaster(segment) % disasters
		happened[now]++
		switch now {
		case daemonKilled:
			b.kill()
		case databaseKilled:
			server.Stop(pgserver.Immediate)
		case databaseRestarted:
			server.Stop(pgserver.Fast)
			server.Restart()
		case peace:
		}
	}
	quiet := func(ctx context.Context, _ int) error {
		defer func() { now = peace }() // the next segment may be too short for a disaster
		switch now {
		case daemonKilled:
			if err := leftNothing(ctx, db, b.replica()); err != nil {
				return err
			}
			b.start(ctx)
		case databaseKilled:
			server.Restart() //nolint:contextcheck // the server outlives every context
		case peace, databaseRestarted:
		}
		if err := a.ready(ctx); err != nil {
			return err
		}
		return b.ready(ctx)
	}
	met := everything()
	for _, what := range []string{"acquire refused", "get done"} {
		met[what] = 200
	}
	verify(t, linear.Config{
		Stores: []locking.Store{a.client(), b.client()}, TTL: time.Second, Seed: 4,
		Disturb: disturb, Quiet: quiet,
		Deadline: 30 * time.Second, // longer than the server tries, so that nothing is on its way when its client gave up
	}, met)
	assert.Len(t, happened, disasters, "each disaster has happened")
}

// leftNothing waits until a killed daemon's statements have been served and its connections' processes are gone.
func leftNothing(ctx context.Context, db *bun.DB, replica string) error {
	return eventually(ctx, func() (bool, error) {
		var left string
		err := db.QueryRowContext(ctx, `SELECT coalesce(string_agg(concat_ws(' ', pid, state, wait_event, query), '; '), '')
			FROM pg_stat_activity WHERE application_name = ?`, "cronlatch/"+replica).Scan(&left)
		if err == nil && left != "" {
			err = errors.New("still there: " + left)
		}
		return left == "", err
	})
}
