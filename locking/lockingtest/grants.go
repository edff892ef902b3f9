package lockingtest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/locking"
)

func grantCases() []testCase {
	return []testCase{
		{"a free resource is granted", grantsFree},
		{"a held resource is refused, with its holder", refusesHeld},
		{"of many at once one wins", oneWinner},
		{"the holder gets its own grant again", reacquires},
		{"an expired lock is taken over", takesOver},
		{"a takeover waits for the grace", waitsForGrace},
		{"a released lock is no takeover and has no grace", releasedIsFree},
		{"an owner takes its own expired lock as a new grant", ownExpired},
		{"tokens grow across everything that ends a grant", tokensGrow},
		{"tokens grow across a restart", tokensGrowAcrossRestart},
	}
}

func grantsFree(f *fixture) {
	before, err := f.table().Now(f.ctx)
	require.NoError(f, err)
	res := f.try(locking.AcquireRequest{Resource: "a", Owner: "A", TTL: time.Minute})
	require.True(f, res.Acquired)
	f.is(res, plain)
	r := res.Record
	assert.Equal(f, "a", r.Resource)
	assert.Equal(f, "A", r.Owner)
	assert.True(f, f.remote() || r.ID > 0)
	assert.Positive(f, r.FencingToken)
	assert.Nil(f, r.ReleasedAt)
	assert.False(f, r.AcquiredAt.Before(before.Truncate(time.Microsecond)), "acquired_at is the database's now")
	assert.False(f, r.Now.Before(r.AcquiredAt))
	assert.WithinDuration(f, r.AcquiredAt.Add(time.Minute), r.ExpiresAt, time.Second)
	assert.Equal(f, time.UTC, r.ExpiresAt.Location())
	assert.LessOrEqual(f, r.Remaining(), time.Minute)
	assert.JSONEq(f, "{}", string(r.Metadata))
	f.sameRow(r, f.mustGet("a"))
}

func refusesHeld(f *fixture) {
	held := f.mustAcquire("a", "A")
	res := f.try(locking.AcquireRequest{Resource: "a", Owner: "B", Metadata: []byte(`{"by":"B"}`)})
	assert.False(f, res.Acquired)
	f.is(res, plain)
	f.sameHolder(held, res.Record)
	f.sameRow(held, f.mustGet("a"))
}

func oneWinner(f *fixture) {
	const contenders, rounds = 12, 5
	last := int64(0)
	for round := range rounds {
		var (
			wg      sync.WaitGroup
			results = make([]locking.AcquireResult, contenders)
			errs    = make([]error, contenders)
		)
		for i := range contenders {
			wg.Go(func() {
				res, err := f.Store.Acquire(f.ctx, []locking.AcquireRequest{
					{Resource: "a", Owner: fmt.Sprintf("%d/%d", round, i), TTL: ttl},
				})
				if errs[i] = err; err == nil {
					results[i] = res[0]
				}
			})
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(f, err)
		}
		winner := slices.IndexFunc(results, func(r locking.AcquireResult) bool { return r.Acquired })
		require.GreaterOrEqual(f, winner, 0, "somebody wins")
		won := results[winner].Record
		for i, res := range results {
			if i != winner {
				require.Falsef(f, res.Acquired, "%d and %d both won round %d", winner, i, round)
				f.sameHolder(won, res.Record) // every loser sees the winner
			}
		}
		assert.Greater(f, won.FencingToken, last)
		last = won.FencingToken
		f.mustRelease(won)
	}
}

func reacquires(f *fixture) {
	a := f.mustAcquire("a", "A")
	f.Age(f.T, "a", time.Minute)
	res := f.try(locking.AcquireRequest{Resource: "a", Owner: "A", Metadata: []byte(`{"again":true}`)})
	require.True(f, res.Acquired)
	f.is(res, extension)
	assert.Equal(f, a.FencingToken, res.Record.FencingToken, "the same grant has the same token")
	assert.Equal(f, a.ID, res.Record.ID)
	assert.False(f, res.Record.AcquiredAt.Before(a.AcquiredAt), "ownership is established again")
	assert.False(f, res.Record.ExpiresAt.Before(a.ExpiresAt))
	assert.JSONEq(f, `{"again":true}`, string(res.Record.Metadata))
	shorter := f.try(locking.AcquireRequest{Resource: "a", Owner: "A", TTL: time.Minute})
	f.is(shorter, extension)
	assert.LessOrEqual(f, shorter.Record.Remaining(), time.Minute, "the new life may be shorter")
}

func takesOver(f *fixture) {
	a := f.mustAcquire("a", "A")
	f.expire("a")
	_, err := f.get("a")
	require.ErrorIs(f, err, locking.ErrNotFound)
	res := f.try(locking.AcquireRequest{Resource: "a", Owner: "B"})
	require.True(f, res.Acquired)
	f.is(res, takeover)
	assert.Greater(f, res.Record.FencingToken, a.FencingToken)
	assert.Equal(f, a.ID, res.Record.ID, "the row is kept")
	assert.Nil(f, res.Record.ReleasedAt)
}

func waitsForGrace(f *fixture) {
	f.onlyOnTheTable("the grace is the server's")
	f.mustAcquire("a", "A")
	f.expire("a") // a second ago
	late := locking.AcquireRequest{Resource: "a", Owner: "B", Grace: time.Hour}
	res := f.try(late)
	require.False(f, res.Acquired, "an expired lock is taken for the grace")
	assert.Equal(f, "A", res.Record.Owner)
	own := f.try(locking.AcquireRequest{Resource: "a", Owner: "A", Grace: time.Hour})
	assert.True(f, own.Acquired, "the grace is for others")
	f.Age(f.T, "a", ttl+time.Hour+time.Second)
	res = f.try(late)
	assert.True(f, res.Acquired, "the grace ends")
	f.is(res, takeover)
}

func releasedIsFree(f *fixture) {
	f.mustRelease(f.mustAcquire("a", "A"))
	res := f.try(locking.AcquireRequest{Resource: "a", Owner: "B", Grace: time.Hour})
	assert.True(f, res.Acquired)
	f.is(res, plain)
	assert.Nil(f, res.Record.ReleasedAt)
}

func ownExpired(f *fixture) {
	a := f.mustAcquire("a", "A")
	f.expire("a")
	res := f.try(locking.AcquireRequest{Resource: "a", Owner: "A"})
	require.True(f, res.Acquired)
	f.is(res, plain) // others may have held it, and a takeover is from somebody else: only the token tells
	assert.Greater(f, res.Record.FencingToken, a.FencingToken)
}

func tokensGrow(f *fixture) {
	ends := []func(r locking.Record){
		f.mustRelease,
		func(locking.Record) { f.expire("a") },
		func(r locking.Record) { f.mustForce(r, true) },
		func(r locking.Record) { f.mustForce(r, false); f.expire("a") },
		func(r locking.Record) {
			f.mustRelease(r)
			f.Age(f.T, "a", time.Hour)
			n, err := f.table().Purge(f.ctx, time.Minute, 10)
			require.NoError(f, err)
			require.Equal(f, 1, n)
		},
	}
	last := int64(0)
	for i := range 3 * len(ends) {
		r := f.mustAcquire("a", fmt.Sprintf("owner %d", i))
		require.Greaterf(f, r.FencingToken, last, "after end %d", i-1)
		require.LessOrEqual(f, r.FencingToken, int64(locking.MaxToken))
		last = r.FencingToken
		ends[i%len(ends)](r)
	}
}

func tokensGrowAcrossRestart(f *fixture) {
	a, b := f.mustAcquire("a", "A"), f.mustAcquire("b", "B")
	f.mustRelease(a)
	f.Store = f.Reopen(f.T)
	f.sameRow(b, f.mustGet("b"))
	assert.Greater(f, f.mustAcquire("a", "C").FencingToken, a.FencingToken)
	assert.Greater(f, f.mustAcquire("c", "C").FencingToken, a.FencingToken)
}
