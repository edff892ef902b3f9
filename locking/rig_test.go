package locking_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

// rig is a keeper in a synctest bubble: the bubble's clock is the boot clock and the database's clock, and both can be
// moved away from it as suspend and an operator do.
type rig struct {
	*testing.T

	memory   *lockingtest.Memory
	store    *faultyStore
	keeper   *locking.Keeper
	audit    *observer.ObservedLogs
	start    time.Time
	boots    atomic.Int64 // readings of the boot clock
	suspend  atomic.Int64 // how much longer the boot clock ran than Go's timers
	dbStep   atomic.Int64
	steps    []time.Duration
	stepsMu  sync.Mutex
	shutdown func()
}

const bubbleTTL = 30 * time.Second // deadline 27s after sent; with a grace of at least 4s: stop after 23s

// inBubble runs f with a running keeper whose jitter is 0, and stops everything afterwards.
func inBubble(t *testing.T, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		r := newRig(t)
		r.run()
		f(r)
		r.shutdown()
	})
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, start: time.Now(), shutdown: func() {}}
	r.memory = lockingtest.NewMemory(func() time.Time { return time.Now().Add(time.Duration(r.dbStep.Load())) })
	r.store = &faultyStore{Store: r.memory}
	core, logs := observer.New(zap.InfoLevel)
	r.audit = logs
	var err error
	r.keeper, err = locking.NewKeeper(locking.KeeperConfig{
		Store: r.store, TTL: bubbleTTL, Audit: zap.New(core), Boot: r.boot, Jitter: func() float64 { return 0 },
		OnClockStep: r.stepped,
	})
	require.NoError(t, err)
	return r
}

func (r *rig) run() {
	ctx, cancel := context.WithCancel(r.Context())
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(r, r.keeper.Run(ctx)) })
	r.shutdown = func() {
		cancel()
		wg.Wait()
	}
}

func (r *rig) boot() time.Duration {
	r.boots.Add(1)
	return time.Since(r.start) + time.Duration(r.suspend.Load())
}

func (r *rig) stepped(step time.Duration) {
	r.stepsMu.Lock()
	defer r.stepsMu.Unlock()
	r.steps = append(r.steps, step)
}

func (r *rig) seenSteps() []time.Duration {
	r.stepsMu.Lock()
	defer r.stepsMu.Unlock()
	return r.steps
}

// sleep lets the bubble's time pass and everything that is due then finish.
func (r *rig) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// sleepUntil is sleep up to an instant of the boot clock.
func (r *rig) sleepUntil(at time.Duration) {
	r.Helper()
	require.GreaterOrEqual(r, at, r.boot(), "the instant is over")
	r.sleep(at - r.boot())
}

// acquire takes a lock and gives it to the keeper; change may alter the grant.
func (r *rig) acquire(resource string, change func(g *locking.Grant)) *locking.Lock {
	r.Helper()
	g := locking.Grant{SentAt: r.boot(), TTL: bubbleTTL, StopGrace: 10 * time.Second}
	if change != nil {
		change(&g)
	}
	res, err := r.memory.Acquire(r.Context(), []locking.AcquireRequest{
		{Resource: resource, Owner: "A", TTL: g.TTL},
	})
	require.NoError(r, err)
	require.True(r, res[0].Acquired)
	g.Record, g.Takeover = res[0].Record, res[0].Takeover
	return r.keeper.Keep(g)
}

// rivalGets reports whether another owner can take the resource "a" now.
func (r *rig) rivalGets() bool {
	r.Helper()
	res, err := r.memory.Acquire(r.Context(), []locking.AcquireRequest{{Resource: "a", Owner: "B", TTL: bubbleTTL}})
	require.NoError(r, err)
	return res[0].Acquired
}

func (r *rig) actions() []string {
	var out []string
	for _, e := range r.audit.All() {
		out = append(out, e.ContextMap()["event.action"].(string))
	}
	return out
}

func requireLost(t *testing.T, l *locking.Lock, why locking.Reason) {
	t.Helper()
	require.Error(t, l.Context().Err(), "the holder is told")
	cause := context.Cause(l.Context())
	require.ErrorIs(t, cause, locking.ErrLost)
	var lost *locking.LostError
	require.ErrorAs(t, cause, &lost)
	assert.Equal(t, why, lost.Reason)
	assert.Equal(t, l.FencingToken(), lost.FencingToken)
}

// faultyStore is a store whose renewals can be made to misbehave.
type faultyStore struct {
	locking.Store

	mu     sync.Mutex
	renew  func(ctx context.Context, claims []locking.Claim) ([]locking.ClaimResult, error)
	calls  [][]locking.Claim
	sentAt []time.Time
}

func (s *faultyStore) Renew(ctx context.Context, claims []locking.Claim) ([]locking.ClaimResult, error) {
	s.mu.Lock()
	s.calls, s.sentAt = append(s.calls, claims), append(s.sentAt, time.Now())
	renew := s.renew
	s.mu.Unlock()
	if renew != nil {
		return renew(ctx, claims)
	}
	return s.Store.Renew(ctx, claims)
}

// onRenew replaces what a renewal does; nil is the real thing.
func (s *faultyStore) onRenew(
	f func(ctx context.Context, claims []locking.Claim) ([]locking.ClaimResult, error),
) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew = f
}

func (s *faultyStore) renewals() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}
