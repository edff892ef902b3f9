package lockingtest

import (
	"context"

	"github.com/cronlatch/cronlatch/locking"
)

// Mutant is a store with one thing wrong, for tests of checkers: what they do not find in it, they would not find in a
// database either. What is nil is right. It is asked for one resource at a time.
type Mutant struct {
	locking.Store

	OnAcquire func(s locking.Store, q locking.AcquireRequest) (locking.AcquireResult, error)
	OnRenew   func(s locking.Store, c locking.Claim) (locking.ClaimResult, error)
	OnRelease func(s locking.Store, c locking.Claim) (locking.ClaimResult, error)
}

// Acquire implements locking.Store.
func (m *Mutant) Acquire(ctx context.Context, reqs []locking.AcquireRequest) ([]locking.AcquireResult, error) {
	if m.OnAcquire == nil {
		return m.Store.Acquire(ctx, reqs)
	}
	res, err := m.OnAcquire(m.Store, reqs[0])
	return []locking.AcquireResult{res}, err
}

// Renew implements locking.Store.
func (m *Mutant) Renew(ctx context.Context, claims []locking.Claim) ([]locking.ClaimResult, error) {
	if m.OnRenew == nil {
		return m.Store.Renew(ctx, claims)
	}
	res, err := m.OnRenew(m.Store, claims[0])
	return []locking.ClaimResult{res}, err
}

// Release implements locking.Store.
func (m *Mutant) Release(ctx context.Context, claims []locking.Claim) ([]locking.ClaimResult, error) {
	if m.OnRelease == nil {
		return m.Store.Release(ctx, claims)
	}
	res, err := m.OnRelease(m.Store, claims[0])
	return []locking.ClaimResult{res}, err
}

// Calls are calls of one request, for the parts of a Mutant.
type Calls struct{ Ctx context.Context } //nolint:containedctx // it is the test's, and so is all that is done with it

// Acquire asks for one resource.
func (c Calls) Acquire(s locking.Store, q locking.AcquireRequest) (locking.AcquireResult, error) {
	res, err := s.Acquire(c.Ctx, []locking.AcquireRequest{q})
	if err != nil {
		return locking.AcquireResult{}, err
	}
	return res[0], nil
}

// Renew renews one lock.
func (c Calls) Renew(s locking.Store, claim locking.Claim) (locking.ClaimResult, error) {
	return oneClaim(s.Renew(c.Ctx, []locking.Claim{claim}))
}

// Release releases one lock.
func (c Calls) Release(s locking.Store, claim locking.Claim) (locking.ClaimResult, error) {
	return oneClaim(s.Release(c.Ctx, []locking.Claim{claim}))
}

// Holder is the claim of whoever holds the resource of claim, or claim when nobody does.
func (c Calls) Holder(s locking.Store, claim locking.Claim) locking.Claim {
	if r, err := s.Get(c.Ctx, claim.Resource); err == nil {
		claim.Owner, claim.FencingToken = r.Owner, r.FencingToken
	}
	return claim
}

func oneClaim(res []locking.ClaimResult, err error) (locking.ClaimResult, error) {
	if err != nil {
		return locking.ClaimResult{}, err
	}
	return res[0], nil
}
