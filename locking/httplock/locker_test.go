package httplock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/httplock"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

func newLocker(t *testing.T, c *httplock.Client) *locking.Locker {
	t.Helper()
	l, err := locking.OpenStore(c)
	require.NoError(t, err)
	t.Cleanup(l.Close)
	return l
}

// The same Locker: held, renewed, forced out, told, and the context says why.
func TestALockerThroughAServer(t *testing.T) {
	t.Parallel()
	h := httpapi.New(httpapi.Options{Locks: lockingtest.NewMemory(bootClock), Auth: byToken{}})
	alice, bob := newLocker(t, serve(t, h, as("alice"))), newLocker(t, serve(t, h, as("bob")))
	root := serve(t, h, as("root"))
	ctx := t.Context()
	extended := make(chan struct{}, 100)
	lock, err := alice.Acquire(ctx, "team/a", locking.TTL(15*time.Second), locking.Metadata(map[string]string{"host": "web-1"}),
		locking.OnExtend(func(_, _ time.Duration) { extended <- struct{}{} }))
	require.NoError(t, err)
	_, err = bob.Acquire(ctx, "team/a")
	var held *locking.HeldError
	require.ErrorAs(t, err, &held)
	require.ErrorIs(t, err, locking.ErrHeld)
	assert.JSONEq(t, `{"host":"web-1"}`, string(held.Holder.Metadata))
	assert.Empty(t, held.Holder.Owner, "the owner is the key")
	assert.Positive(t, held.Holder.Remaining())

	select {
	case <-extended:
	case <-lock.Context().Done():
		require.NoError(t, context.Cause(lock.Context()))
	}
	_, err = root.ForceRelease(ctx, locking.Force{Resource: "team/a", FencingToken: lock.FencingToken(), Reason: "stuck", Immediate: true})
	require.NoError(t, err)
	<-lock.Context().Done()
	require.ErrorIs(t, context.Cause(lock.Context()), locking.ErrLost)

	next, err := bob.Acquire(ctx, "team/a", locking.TTL(time.Minute))
	require.NoError(t, err)
	assert.Greater(t, next.FencingToken(), lock.FencingToken())
	require.NoError(t, next.Release(ctx))
	_, err = root.Get(ctx, "team/a")
	require.ErrorIs(t, err, locking.ErrNotFound)
}

// P3 over HTTP: a server that is away is no loss, and the holder stops by its own clock.
func TestAHolderStopsWhenTheServerIsAway(t *testing.T) {
	t.Parallel()
	h := &switchable{Handler: httpapi.New(httpapi.Options{Locks: lockingtest.NewMemory(bootClock)})}
	l := newLocker(t, serve(t, h))
	lock, err := l.Acquire(t.Context(), "a", locking.TTL(time.Second))
	require.NoError(t, err)
	h.away.Store(true)
	<-lock.Context().Done()
	var lost *locking.LostError
	require.ErrorAs(t, context.Cause(lock.Context()), &lost)
	assert.Equal(t, locking.ReasonUnconfirmed, lost.Reason)
}
