package lockingtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cronlatch/cronlatch/locking"
)

// StormConfig describes a storm; only Store is needed.
type StormConfig struct {
	Store     locking.Store // usually a *History
	Workers   int           // 4
	Resources int           // 3
	Rounds    int           // of each worker; 300
	// TTL is the shortest life of a grant; others get up to 32 times as much, so that on a slow machine some are renewed
	// and on a fast one some expire. 20ms.
	TTL  time.Duration
	Seed uint64
	// Pause lets time pass between two calls of a worker; nil is none. In a bubble: time.Sleep.
	Pause func(time.Duration)
	// Enough ends the storm early.
	Enough func(Stats) bool
}

// Stats count what happened in a storm, so that a test can fail when it met too little.
type Stats struct {
	Grants, Takeovers, Extensions, Refusals, Renewals, Losses, Releases, ZombiesRefused int64
}

type storm struct {
	StormConfig

	ctx    context.Context
	counts struct {
		grants, takeovers, extensions, refusals, renewals, losses, releases, zombies atomic.Int64
	}

	mu     sync.Mutex
	past   []locking.Claim // claims that were true once: zombies
	failed error
}

// Storm drives a store with honest holders, holders that vanish, and zombies that go on calling with old tokens, other
// owners and other resources. Without those, a missing check is never found. It returns the first error of the store.
func Storm(ctx context.Context, c StormConfig) (Stats, error) {
	c.Workers, c.Resources, c.Rounds = orDefault(c.Workers, 4), orDefault(c.Resources, 3), orDefault(c.Rounds, 300)
	c.TTL = orDefault(c.TTL, 20*time.Millisecond)
	if c.Pause == nil {
		c.Pause = func(time.Duration) {}
	}
	if c.Enough == nil {
		c.Enough = func(Stats) bool { return false }
	}
	s := &storm{StormConfig: c, ctx: ctx}
	var wg sync.WaitGroup
	for w := range c.Workers {
		wg.Go(func() { s.work(w) })
	}
	wg.Wait()
	return s.stats(), s.failed
}

func orDefault[T int | time.Duration](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}

func (s *storm) stats() Stats {
	c := &s.counts
	return Stats{
		c.grants.Load(), c.takeovers.Load(), c.extensions.Load(), c.refusals.Load(), c.renewals.Load(),
		c.losses.Load(), c.releases.Load(), c.zombies.Load(),
	}
}

func (s *storm) work(worker int) {
	rnd := rand.New(rand.NewPCG(s.Seed, uint64(worker))) //nolint:gosec // reproducible on purpose
	for range s.Rounds {
		if s.Enough(s.stats()) || s.over() {
			return
		}
		name := fmt.Sprintf("storm/%d", rnd.IntN(s.Resources))
		switch rnd.IntN(4) {
		case 0:
			s.fail(s.zombie(rnd))
		default:
			s.fail(s.hold(rnd, name, fmt.Sprintf("worker %d.%d", worker, rnd.IntN(2))))
		}
	}
}

func (s *storm) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed != nil
}

func (s *storm) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = err
	}
}

// hold is one honest try: acquire, a few renewals, and then a release, or nothing.
func (s *storm) hold(rnd *rand.Rand, name, owner string) error {
	ttl := s.TTL << rnd.IntN(6)
	req := locking.AcquireRequest{Resource: name, Owner: owner, TTL: ttl}
	if rnd.IntN(4) == 0 {
		req.Grace = 8 * s.TTL
	}
	got, err := s.Store.Acquire(s.ctx, []locking.AcquireRequest{req})
	if err != nil {
		return err
	}
	s.pause(rnd)
	if !got[0].Acquired {
		s.counts.refusals.Add(1)
		return nil
	}
	s.count(got[0])
	claim := locking.Claim{Resource: name, Owner: owner, FencingToken: got[0].Record.FencingToken, TTL: ttl}
	s.remember(claim)
	for range rnd.IntN(4) {
		if err := s.renew(claim); err != nil {
			return err
		}
		s.pause(rnd)
	}
	if rnd.IntN(3) == 0 {
		return nil // it vanishes
	}
	res, err := s.Store.Release(s.ctx, []locking.Claim{claim})
	if err == nil && res[0].Err == nil {
		s.counts.releases.Add(1)
	}
	return err
}

func (s *storm) count(got locking.AcquireResult) {
	switch {
	case got.Extended:
		s.counts.extensions.Add(1)
	case got.Takeover:
		s.counts.takeovers.Add(1)
		s.counts.grants.Add(1)
	default:
		s.counts.grants.Add(1)
	}
}

func (s *storm) renew(claim locking.Claim) error {
	res, err := s.Store.Renew(s.ctx, []locking.Claim{claim})
	switch {
	case err != nil:
		return err
	case res[0].Err == nil:
		s.counts.renewals.Add(1)
	default:
		s.counts.losses.Add(1)
	}
	return nil
}

func (s *storm) remember(c locking.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.past = append(s.past, c); len(s.past) > 50 {
		s.past = s.past[1:]
	}
}

// zombie calls with an old claim, sometimes of somebody who never held it.
func (s *storm) zombie(rnd *rand.Rand) error {
	s.mu.Lock()
	if len(s.past) == 0 {
		s.mu.Unlock()
		return nil
	}
	claim := s.past[rnd.IntN(len(s.past))]
	s.mu.Unlock()
	switch rnd.IntN(3) {
	case 0:
		claim.Owner = "stranger"
	case 1:
		claim.Owner, claim.FencingToken = "stranger", 0
	}
	call := s.Store.Renew
	if rnd.IntN(2) == 0 {
		call = s.Store.Release
	}
	res, err := call(s.ctx, []locking.Claim{claim})
	if err == nil && res[0].Err != nil {
		s.counts.zombies.Add(1)
	}
	return err
}

func (s *storm) pause(rnd *rand.Rand) { s.Pause(time.Duration(rnd.Int64N(int64(s.TTL)))) }
