package daemon

import (
	"context"

	"github.com/cronlatch/cronlatch/locking"
)

// sameFile works only while the SQLite file that was opened is still the one at its path. In a deleted file everything
// would succeed for ever, while a replica that starts later works in a new one: two owners of one name.
type sameFile struct {
	locking.Store

	check func(context.Context) error
}

func (s *sameFile) Acquire(ctx context.Context, reqs []locking.AcquireRequest) ([]locking.AcquireResult, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	return s.Store.Acquire(ctx, reqs)
}

func (s *sameFile) Renew(ctx context.Context, claims []locking.Claim) ([]locking.ClaimResult, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	return s.Store.Renew(ctx, claims)
}

func (s *sameFile) Release(ctx context.Context, claims []locking.Claim) ([]locking.ClaimResult, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	return s.Store.Release(ctx, claims)
}

func (s *sameFile) Get(ctx context.Context, resource string) (locking.Record, error) {
	if err := s.check(ctx); err != nil {
		return locking.Record{}, err
	}
	return s.Store.Get(ctx, resource)
}

func (s *sameFile) List(ctx context.Context, f locking.ListFilter) ([]locking.Record, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	return s.Store.List(ctx, f)
}

func (s *sameFile) ForceRelease(ctx context.Context, f locking.Force) (locking.Record, error) {
	if err := s.check(ctx); err != nil {
		return locking.Record{}, err
	}
	return s.Store.ForceRelease(ctx, f)
}
