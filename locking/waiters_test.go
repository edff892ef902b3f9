package locking_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/locking"
)

// waiter listens for one resource.
type waiter struct {
	*database.Listener
	*testing.T
}

func (w waiter) wakes(why string) {
	w.Helper()
	select {
	case _, open := <-w.C:
		require.True(w, open, "the connection was lost")
	case <-time.After(time.Minute):
		require.Fail(w, "nobody was woken", why)
	}
}

func (w waiter) sleeps(why string) {
	w.Helper()
	select {
	case <-w.C:
		assert.Fail(w, "woken for nothing", why)
	default:
	}
}

// A release notifies who waits for exactly this resource, and nobody else. That something did not come is known when
// what was sent after it has.
func TestReleasesWakeWhoWaits(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t, dbtest.Direct(t, dbtest.PostgresURL(t)))
	store, err := locking.NewStore(db.Main)
	require.NoError(t, err)
	listen := func(channel string) waiter {
		l, err := db.Listen(t.Context(), channel)
		require.NoError(t, err)
		t.Cleanup(l.Close)
		return waiter{l, t}
	}
	acquire := func(name string) locking.Record {
		res, err := store.Acquire(t.Context(), []locking.AcquireRequest{{Resource: name, Owner: "A", TTL: time.Minute}})
		require.NoError(t, err)
		require.True(t, res[0].Acquired)
		return res[0].Record
	}
	claim := []locking.Claim{{Resource: "a", Owner: "A", TTL: time.Minute}}
	a := listen(locking.WakeChannel("a"))
	fence := listen("fence")
	passed := func() {
		exec(t, db.Main, `SELECT pg_notify('fence', '')`)
		fence.wakes("the fence")
	}

	acquire("a")
	_, err = store.Release(t.Context(), claim)
	require.NoError(t, err)
	passed()
	a.sleeps("nobody had said that they wait")

	require.NoError(t, locking.AnnounceWaiter(t.Context(), db.Main, "a", time.Minute))
	require.NoError(t, locking.AnnounceWaiter(t.Context(), db.Main, "a", time.Second), "a shorter wait does not end a longer one")
	acquire("a")
	_, err = store.Renew(t.Context(), claim)
	require.NoError(t, err)
	acquire("b")
	_, err = store.Release(t.Context(), []locking.Claim{{Resource: "b", Owner: "A"}})
	require.NoError(t, err)
	passed()
	a.sleeps("a renewal, and the release of another name")
	_, err = store.Release(t.Context(), claim)
	require.NoError(t, err)
	a.wakes("the release")

	held := acquire("a")
	force := locking.Force{Resource: "a", FencingToken: held.FencingToken}
	_, err = store.ForceRelease(t.Context(), force)
	require.NoError(t, err)
	passed()
	a.sleeps("the name stays taken until the expiry")
	force.Immediate = true
	_, err = store.ForceRelease(t.Context(), force)
	require.NoError(t, err)
	a.wakes("the immediate force-release")

	exec(t, db.Main, `UPDATE lock_waiters SET until = now() - interval '1 second'`)
	acquire("a")
	_, err = store.Release(t.Context(), claim)
	require.NoError(t, err)
	passed()
	a.sleeps("the wait was over")
}

func TestAnnouncingAWaiter(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		require.NoError(t, locking.AnnounceWaiter(t.Context(), db.Main, "ü/x", time.Minute), "nothing to do on SQLite")
		require.ErrorIs(t, locking.AnnounceWaiter(t.Context(), db.Main, "..", time.Minute), locking.ErrInvalid)
	})
}
