package lockingtest

import (
	"context"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/locking"
)

func claimCases() []testCase {
	return []testCase{
		{"a renewal moves expires_at and nothing else", renews},
		{"a renewal may shorten the life", renewalShortens},
		{"a renewal needs owner, token and life", renewalRefused},
		{"a release frees the name and keeps the row", releases},
		{"a release says why it is refused", releaseRefused},
		{"zombie calls change nothing", zombies},
		{"a context that has ended is an error", endedContext},
	}
}

func renews(f *fixture) {
	a := f.mustAcquire("a", "A")
	f.Age(f.T, "a", 5*time.Minute)
	aged := f.mustGet("a")
	r, err := f.renew(claimOf(a))
	require.NoError(f, err)
	assert.Equal(f, aged.AcquiredAt, r.AcquiredAt)
	assert.Equal(f, a.FencingToken, r.FencingToken)
	assert.Greater(f, r.Remaining(), 9*time.Minute)
	assert.True(f, f.remote() || r.RenewedAt.After(aged.RenewedAt))
	f.sameRow(r, f.mustGet("a"))
	_, err = f.renew(locking.Claim{Resource: "a", Owner: "A"})
	require.NoError(f, err, "token 0 is any token of the owner")
}

func renewalShortens(f *fixture) {
	a := claimOf(f.mustAcquire("a", "A"))
	a.TTL = time.Minute
	r, err := f.renew(a)
	require.NoError(f, err)
	assert.LessOrEqual(f, r.Remaining(), time.Minute)
}

func renewalRefused(f *fixture) {
	a := f.mustAcquire("a", "A")
	for name, c := range map[string]locking.Claim{
		"unknown resource": {Resource: "b", Owner: "A"},
		"other owner":      {Resource: "a", Owner: "B"},
		"owner in case":    {Resource: "a", Owner: "a"},
		"older token":      {Resource: "a", Owner: "A", FencingToken: a.FencingToken + 1},
	} {
		_, err := f.renew(c)
		require.ErrorIs(f, err, locking.ErrLost, name)
	}
	f.sameRow(a, f.mustGet("a"))
	f.expire("a")
	_, err := f.renew(claimOf(a))
	require.ErrorIs(f, err, locking.ErrLost, "expired, although nobody took it")
	a = f.mustAcquire("a", "A")
	f.mustRelease(a)
	_, err = f.renew(claimOf(a))
	require.ErrorIs(f, err, locking.ErrLost, "released")
}

func releases(f *fixture) {
	a := f.mustAcquire("a", "A")
	r, err := f.release(claimOf(a))
	require.NoError(f, err)
	assert.False(f, r.Live())
	assert.Equal(f, a.ID, r.ID)
	assert.Equal(f, "a", r.Resource)
	if !f.remote() {
		require.NotNil(f, r.ReleasedAt)
		assert.False(f, r.ReleasedAt.Before(r.ExpiresAt), "an ordinary release: not before the expiry")
	}
	_, err = f.get("a")
	require.ErrorIs(f, err, locking.ErrNotFound)
	assert.Equal(f, a.ID, f.mustAcquire("a", "B").ID, "the row is kept")
}

func releaseRefused(f *fixture) {
	a := f.mustAcquire("a", "A")
	_, err := f.release(locking.Claim{Resource: "b", Owner: "A"})
	require.ErrorIs(f, err, locking.ErrNotFound)
	_, err = f.release(locking.Claim{Resource: "a", Owner: "B"})
	require.ErrorIs(f, err, locking.ErrNotOwner)
	_, err = f.release(locking.Claim{Resource: "a", Owner: "A", FencingToken: a.FencingToken + 1})
	require.ErrorIs(f, err, locking.ErrStaleToken)
	f.sameRow(a, f.mustGet("a"))
	f.mustRelease(a)
	_, err = f.release(claimOf(a))
	require.ErrorIs(f, err, locking.ErrNotFound, "released already")
	a = f.mustAcquire("a", "A")
	f.expire("a")
	_, err = f.release(claimOf(a))
	require.ErrorIs(f, err, locking.ErrNotFound, "expired")
}

// zombies calls with every claim that was true once.
func zombies(f *fixture) {
	first := f.mustAcquire("a", "A")
	f.mustRelease(first)
	second := f.mustAcquire("a", "A") // the same owner, another grant
	f.expire("a")
	third := f.mustAcquire("a", "A")
	f.mustForce(third, true)
	f.Age(f.T, "a", time.Hour)
	_, err := f.table().Purge(f.ctx, time.Minute, 1)
	require.NoError(f, err)
	old := []locking.Record{first, second, third}
	for _, r := range old {
		_, err = f.renew(claimOf(r))
		require.ErrorIs(f, err, locking.ErrLost, "purged")
		_, err = f.release(claimOf(r))
		require.ErrorIs(f, err, locking.ErrNotFound, "purged")
	}
	now := f.mustAcquire("a", "A")
	for _, r := range old {
		_, err = f.renew(claimOf(r))
		require.ErrorIs(f, err, locking.ErrLost)
		_, err = f.release(claimOf(r))
		require.ErrorIs(f, err, locking.ErrStaleToken)
		_, err = f.Store.ForceRelease(f.ctx, locking.Force{Resource: "a", FencingToken: r.FencingToken, Immediate: true, Reason: why})
		require.ErrorIs(f, err, locking.ErrStaleToken)
	}
	f.sameRow(now, f.mustGet("a"))
}

func endedContext(f *fixture) {
	a := f.mustAcquire("a", "A")
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	_, err := f.Store.Acquire(ctx, []locking.AcquireRequest{{Resource: "b", Owner: "A", TTL: ttl}})
	require.Error(f, err)
	_, err = f.Store.Renew(ctx, []locking.Claim{claimOf(a)})
	require.Error(f, err, "unknown is an error, never a loss")
	require.NotErrorIs(f, err, locking.ErrLost)
	_, err = f.Store.Release(ctx, []locking.Claim{claimOf(a)})
	require.Error(f, err)
	_, err = f.Store.Get(ctx, "a")
	require.Error(f, err)
	require.NotErrorIs(f, err, locking.ErrNotFound)
	_, err = f.Store.List(ctx, locking.ListFilter{})
	require.Error(f, err)
	_, err = f.Store.Now(ctx)
	require.Error(f, err)
	f.sameRow(a, f.mustGet("a"))
}
