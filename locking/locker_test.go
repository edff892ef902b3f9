package locking_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

func openLocker(t *testing.T, store locking.Store, opts ...locking.Option) *locking.Locker {
	t.Helper()
	start := time.Now()
	opts = append([]locking.Option{locking.BootClock(func() time.Duration { return time.Since(start) })}, opts...)
	l, err := locking.OpenStore(store, opts...)
	require.NoError(t, err)
	t.Cleanup(l.Close)
	return l
}

func TestLockerHoldsAndReleases(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		locker, err := locking.Open(db.Main, locking.RenewOn(db.Renew))
		require.NoError(t, err)
		defer locker.Close()
		lock, err := locker.Acquire(t.Context(), "a", locking.TTL(time.Minute), locking.Metadata(map[string]any{"pid": 7}))
		require.NoError(t, err)
		assert.Equal(t, "a", lock.Resource())
		_, err = locker.Acquire(t.Context(), "a")
		require.ErrorIs(t, err, locking.ErrHeld)
		var held *locking.HeldError
		require.ErrorAs(t, err, &held)
		assert.Equal(t, lock.Owner(), held.Holder.Owner)
		assert.JSONEq(t, `{"pid":7}`, string(held.Holder.Metadata))
		got, err := locker.Get(t.Context(), "a")
		require.NoError(t, err)
		assert.Equal(t, lock.FencingToken(), got.FencingToken)
		all, err := locker.List(t.Context(), locking.ListFilter{})
		require.NoError(t, err)
		assert.Len(t, all, 1)
		renewed, err := locker.Renew(t.Context(), locking.Claim{Resource: "a", Owner: lock.Owner(), TTL: time.Minute})
		require.NoError(t, err)
		assert.Equal(t, lock.FencingToken(), renewed.FencingToken)
		_, err = locker.Release(t.Context(), locking.Claim{Resource: "a", Owner: "stranger"})
		require.ErrorIs(t, err, locking.ErrNotOwner)
		require.NoError(t, lock.Release(t.Context()))
		n, err := locker.Purge(t.Context(), time.Hour, 10)
		require.NoError(t, err)
		assert.Zero(t, n)
	})
}

// A lock on real databases, through several beats.
func TestLockerKeepsALockOnRealDatabases(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		locker, err := locking.Open(db.Main, locking.RenewOn(db.Renew))
		require.NoError(t, err)
		defer locker.Close()
		beats := make(chan struct{}, 100)
		lock, err := locker.Acquire(t.Context(), "a", locking.TTL(15*time.Second),
			locking.OnExtend(func(_, _ time.Duration) { beats <- struct{}{} }))
		require.NoError(t, err)
		first := lock.Record()
		for range 4 {
			select {
			case <-beats:
			case <-lock.Context().Done():
				require.NoError(t, context.Cause(lock.Context()))
			}
		}
		now := lock.Record()
		assert.True(t, now.ExpiresAt.After(first.ExpiresAt.Add(10*time.Second)), "renewed beyond the first life")
		assert.Equal(t, first.AcquiredAt, now.AcquiredAt)
		require.NoError(t, lock.Release(t.Context()))
	})
}

func TestLockerRefusesBadArguments(t *testing.T) {
	t.Parallel()
	l := openLocker(t, lockingtest.NewMemory(time.Now))
	for sentence, opts := range map[string][]locking.AcquireOption{
		"a kept lock needs from 1s":       {locking.TTL(999 * time.Millisecond)},
		"a kept lock needs from 1s to 24": {locking.TTL(25 * time.Hour)},
		"owner: is blank":                 {locking.Owner(" ")},
		"stop grace: -1s is negative":     {locking.StopGrace(-time.Second)},
		"metadata: is not a JSON object":  {locking.Metadata([]int{1})},
		"metadata: json":                  {locking.Metadata(math.Inf(1))},
	} {
		_, err := l.Acquire(t.Context(), "a", opts...)
		require.ErrorIs(t, err, locking.ErrInvalid, sentence)
		require.ErrorContains(t, err, sentence)
	}
	_, err := l.Acquire(t.Context(), "..")
	require.ErrorIs(t, err, locking.ErrInvalid)
	_, err = locking.OpenStore(lockingtest.NewMemory(time.Now), locking.DefaultLease(time.Millisecond))
	require.ErrorIs(t, err, locking.ErrInvalid)
}

// lossyStore grants and loses the answer.
type lossyStore struct{ locking.Store }

var errAnswerLost = errors.New("no answer")

func (s *lossyStore) Acquire(ctx context.Context, reqs []locking.AcquireRequest) ([]locking.AcquireResult, error) {
	if _, err := s.Store.Acquire(ctx, reqs); err != nil {
		return nil, err
	}
	return nil, errAnswerLost
}

func TestLockerGivesBackWhatNobodyKnowsOf(t *testing.T) {
	t.Parallel()
	memory := lockingtest.NewMemory(time.Now)
	l := openLocker(t, &lossyStore{memory})
	_, err := l.Acquire(t.Context(), "a")
	require.ErrorIs(t, err, errAnswerLost)
	_, err = memory.Get(t.Context(), "a")
	require.ErrorIs(t, err, locking.ErrNotFound)

	_, err = l.Acquire(t.Context(), "a", locking.Owner("mine"))
	require.ErrorIs(t, err, errAnswerLost)
	_, err = memory.Get(t.Context(), "a")
	require.NoError(t, err, "an owner with a name asks again and gets the same grant")
}

func TestLockerClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		memory := lockingtest.NewMemory(time.Now)
		l := openLocker(t, memory)
		lock, err := l.Acquire(t.Context(), "a")
		require.NoError(t, err)
		l.Close()
		requireLost(t, lock, locking.ReasonStopped)
		_, err = l.Acquire(t.Context(), "b")
		require.ErrorIs(t, err, locking.ErrClosed)
		_, err = memory.Get(t.Context(), "a")
		require.NoError(t, err, "closing releases nothing")
		require.NoError(t, lock.Release(t.Context()))
		l.Close()
	})
}

func TestLockerForceReleaseIsAudited(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.InfoLevel)
	l := openLocker(t, lockingtest.NewMemory(time.Now), locking.WithAudit(zap.New(core)), locking.WithLogger(zap.NewNop()))
	lock, err := l.Acquire(t.Context(), "a", locking.TTL(time.Minute))
	require.NoError(t, err)
	_, err = l.ForceRelease(t.Context(), locking.Force{
		Resource: "a", FencingToken: lock.FencingToken(), Reason: "stuck\nsince noon", Actor: "ann", Immediate: true,
	})
	require.NoError(t, err)
	require.Len(t, logs.All(), 2)
	line := logs.All()[1]
	assert.Equal(t, "lock force release", line.Message)
	assert.Equal(t, map[string]any{
		"event.action": "lock.force_release", "event.outcome": "success", "actor.type": "user", "actor.id": "ann",
		"resource": "a", "owner": lock.Owner(), "fencing_token": lock.FencingToken(), "reason": "stuck\nsince noon",
	}, line.ContextMap())
}

func TestLockerWaitsForTheGrace(t *testing.T) {
	t.Parallel()
	memory := lockingtest.NewMemory(time.Now)
	mustAcquire(t, memory, "a", "A")
	memory.Age("a", 61*time.Second)
	patient := openLocker(t, memory, locking.TakeoverGrace(time.Minute), locking.OnClockStep(func(time.Duration) {}))
	_, err := patient.Acquire(t.Context(), "a")
	require.ErrorIs(t, err, locking.ErrHeld)
	hasty := openLocker(t, memory)
	lock, err := hasty.Acquire(t.Context(), "a")
	require.NoError(t, err)
	require.NoError(t, lock.Release(t.Context()))
}
