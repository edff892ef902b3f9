package lockingtest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/locking"
)

func forceCases() []testCase {
	return []testCase{
		{"a forced lock keeps its name until the expiry", forcedWaits},
		{"a forced lock that expired has the grace", forcedHasGrace},
		{"the holder of a forced lock frees it by releasing", forcedIsReleased},
		{"an immediate force frees the name", forcedAtOnce},
		{"a force needs the current token of a held lock", forceRefused},
	}
}

func purgeCases() []testCase {
	return []testCase{
		{"a purge takes what ended long ago, within its limit", purges},
		{"a purge keeps the young and the live", purgeKeeps},
		{"a purge has bounds", purgeBounds},
	}
}

func forcedWaits(f *fixture) {
	a := f.mustAcquire("a", "A")
	r, err := f.Store.ForceRelease(f.ctx, locking.Force{Resource: "a", FencingToken: a.FencingToken, Reason: why})
	require.NoError(f, err)
	if !f.remote() {
		require.NotNil(f, r.ReleasedAt)
		assert.Equal(f, a.ExpiresAt, r.ExpiresAt)
		assert.True(f, r.Forced())
		f.sameRow(r, f.mustGet("a"))
	}
	r = f.mustGet("a")
	assert.True(f, r.Live())
	_, err = f.renew(claimOf(a))
	require.ErrorIs(f, err, locking.ErrLost, "the holder learns of it at its next beat")
	f.sameHolder(r, f.mustBeBusy("a", "B"))
	own := f.mustBeBusy("a", "A")
	assert.Equal(f, a.ExpiresAt, own.ExpiresAt, "not even the old owner extends it")
	f.mustForce(a, false) // again changes nothing
	f.sameRow(r, f.mustGet("a"))
	f.expire("a")
	res := f.try(locking.AcquireRequest{Resource: "a", Owner: "B"})
	assert.True(f, res.Acquired)
	f.is(res, takeover) // nobody confirmed that the holder stopped
	assert.Nil(f, res.Record.ReleasedAt)
}

func forcedHasGrace(f *fixture) {
	f.onlyOnTheTable("the grace is the server's")
	f.mustForce(f.mustAcquire("a", "A"), false)
	f.expire("a")
	for _, owner := range []string{"A", "B"} {
		assert.False(f, f.try(locking.AcquireRequest{Resource: "a", Owner: owner, Grace: time.Hour}).Acquired, owner)
	}
	assert.True(f, f.try(locking.AcquireRequest{Resource: "a", Owner: "A"}).Acquired)
}

func forcedIsReleased(f *fixture) {
	a := f.mustAcquire("a", "A")
	f.mustForce(a, false)
	_, err := f.release(locking.Claim{Resource: "a", Owner: "B"})
	require.ErrorIs(f, err, locking.ErrNotOwner)
	f.mustRelease(a)
	res := f.try(locking.AcquireRequest{Resource: "a", Owner: "B", Grace: time.Hour})
	assert.True(f, res.Acquired, "the holder said that it stopped")
	f.is(res, plain)
}

func forcedAtOnce(f *fixture) {
	a := f.mustAcquire("a", "A")
	f.mustForce(a, false)
	f.mustForce(a, true) // what waits can be freed later
	_, err := f.get("a")
	require.ErrorIs(f, err, locking.ErrNotFound)
	_, err = f.renew(claimOf(a))
	require.ErrorIs(f, err, locking.ErrLost)
	res := f.try(locking.AcquireRequest{Resource: "a", Owner: "B", Grace: time.Hour})
	assert.True(f, res.Acquired)
	f.is(res, plain)
}

func forceRefused(f *fixture) {
	force := func(token int64) error {
		_, err := f.Store.ForceRelease(f.ctx, locking.Force{Resource: "a", FencingToken: token, Immediate: true, Reason: why})
		return err
	}
	require.ErrorIs(f, force(1), locking.ErrNotFound)
	a := f.mustAcquire("a", "A")
	require.ErrorIs(f, force(a.FencingToken+1), locking.ErrStaleToken)
	f.sameRow(a, f.mustGet("a"))
	f.expire("a")
	require.ErrorIs(f, force(a.FencingToken), locking.ErrNotFound)
	require.ErrorIs(f, force(0), locking.ErrInvalid, "a force names the grant that it ends")
}

func purges(f *fixture) {
	for _, name := range names(5) {
		r := f.mustAcquire(name, "A")
		if name != "res/000" { // the first one expired, the others were released
			f.mustRelease(r)
		}
		f.Age(f.T, name, 2*time.Hour)
	}
	for _, want := range []int{3, 2, 0} {
		n, err := f.table().Purge(f.ctx, time.Hour, 3)
		require.NoError(f, err)
		assert.Equal(f, want, n)
	}
	expired, err := f.Store.List(f.ctx, locking.ListFilter{State: locking.StateExpired})
	require.NoError(f, err)
	assert.Empty(f, expired)
}

func purgeKeeps(f *fixture) {
	live := f.mustAcquire("live", "A")
	f.Age(f.T, "live", ttl-time.Minute)
	young := f.mustAcquire("young", "A")
	f.mustRelease(young)
	forced := f.mustAcquire("forced", "A")
	f.mustForce(forced, false)
	expired := f.mustAcquire("expired", "A")
	f.Age(f.T, "expired", ttl+30*time.Second)
	n, err := f.table().Purge(f.ctx, time.Minute, 100)
	require.NoError(f, err)
	assert.Zero(f, n)
	assert.Equal(f, live.ID, f.mustGet("live").ID)
	assert.Equal(f, young.ID, f.mustAcquire("young", "B").ID)
	assert.Equal(f, forced.ID, f.mustGet("forced").ID)
	assert.Equal(f, expired.ID, f.mustAcquire("expired", "B").ID)
}

func purgeBounds(f *fixture) {
	for _, c := range []struct {
		age   time.Duration
		limit int
	}{{59 * time.Second, 1}, {-time.Hour, 1}, {time.Hour, 0}, {time.Hour, -1}, {time.Hour, locking.MaxPurge + 1}} {
		_, err := f.table().Purge(f.ctx, c.age, c.limit)
		require.ErrorIs(f, err, locking.ErrInvalid)
	}
}
