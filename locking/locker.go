package locking

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cronlatch/cronlatch/internal/audit"
)

// ErrClosed says that the Locker was closed.
var ErrClosed = errors.New("locking: the locker is closed")

// Locker acquires locks in one database and keeps them: the package's front door.
type Locker struct {
	store  Store
	keeper *Keeper
	cfg    openConfig

	stop    context.CancelFunc
	running sync.WaitGroup
	closed  context.Context
}

// OpenStore is Open for a store of another kind.
func OpenStore(store Store, opts ...Option) (*Locker, error) {
	var cfg openConfig
	for _, opt := range opts {
		if err := opt(&cfg); err != nil {
			return nil, err
		}
	}
	kc := cfg.keeper
	kc.Store, kc.Releases = store, store
	if cfg.renewals != nil {
		kc.Store = cfg.renewals
	}
	keeper, err := NewKeeper(kc)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &Locker{store: store, keeper: keeper, cfg: cfg, stop: stop, closed: ctx}
	l.running.Go(func() { _ = keeper.Run(ctx) }) // it only refuses to run twice
	return l, nil
}

// Acquire takes the lock of resource, or says at once who has it: errors.Is(err, ErrHeld), and errors.As with *HeldError
// for the holder. It does not wait for a lock to become free.
//
// Any other error but ErrInvalid leaves the outcome unknown: the database may have granted the lock to an owner that
// does not know it. Acquire then tries to give it back, and otherwise the lock ends at its expiry. With an Owner of your
// own, ask again instead: the same owner gets the same grant.
func (l *Locker) Acquire(ctx context.Context, resource string, opts ...AcquireOption) (*Lock, error) {
	if l.closed.Err() != nil {
		return nil, ErrClosed
	}
	g, req, err := l.request(resource, opts)
	if err != nil {
		return nil, err
	}
	res, err := l.store.Acquire(ctx, []AcquireRequest{req.AcquireRequest})
	if err != nil {
		if req.ownOwner && !errors.Is(err, ErrInvalid) {
			l.giveBack(ctx, req)
		}
		return nil, fmt.Errorf("acquire %q: %w", resource, err)
	}
	if !res[0].Acquired {
		return nil, &HeldError{Holder: res[0].Record}
	}
	g.Record, g.Takeover = res[0].Record, res[0].Takeover
	return l.keeper.Keep(g), nil
}

// request reads the clock before anything is sent.
func (l *Locker) request(resource string, opts []AcquireOption) (Grant, acquireConfig, error) {
	c := acquireConfig{AcquireRequest: AcquireRequest{Resource: resource, TTL: l.keeper.cfg.TTL, Grace: l.cfg.grace}}
	for _, opt := range opts {
		if err := opt(&c); err != nil {
			return Grant{}, c, err
		}
	}
	if c.Owner == "" {
		c.Owner, c.ownOwner = NewOwner(), true
	}
	if _, err := l.keeper.Lease(c.TTL, c.stopGrace); err != nil {
		return Grant{}, c, err
	}
	return Grant{SentAt: l.keeper.cfg.Boot(), TTL: c.TTL, StopGrace: c.stopGrace, OnExtend: c.onExtend}, c, nil
}

// giveBack releases what an unanswered acquire may have granted. Only an owner made for this call: another one may hold
// the lock since long, and will ask again.
func (l *Locker) giveBack(ctx context.Context, c acquireConfig) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.keeper.lease(c.TTL, 0).Attempt)
	defer cancel()
	_, _ = l.store.Release(ctx, []Claim{{Resource: c.Resource, Owner: c.Owner}}) // else it expires
}

// Renew gives a lock a new life without a keeper, for owners that come and go (an HTTP client). ErrLost: the claim does
// not hold the lock. Locks from Acquire are renewed by themselves.
func (l *Locker) Renew(ctx context.Context, c Claim) (Record, error) {
	res, err := l.store.Renew(ctx, []Claim{c})
	return only(res, err, "renew", c.Resource)
}

// Release frees a lock that no keeper holds: ErrNotFound, ErrNotOwner or ErrStaleToken say why not. For a lock from
// Acquire use its own Release.
func (l *Locker) Release(ctx context.Context, c Claim) (Record, error) {
	res, err := l.store.Release(ctx, []Claim{c})
	return only(res, err, "release", c.Resource)
}

func only(res []ClaimResult, err error, verb, resource string) (Record, error) {
	if err == nil {
		err = res[0].Err
	}
	if err != nil {
		return Record{}, fmt.Errorf("%s %q: %w", verb, resource, err)
	}
	return res[0].Record, nil
}

// Get returns the live lock of a resource, else ErrNotFound.
func (l *Locker) Get(ctx context.Context, resource string) (Record, error) {
	return l.store.Get(ctx, resource)
}

// List returns locks in the byte order of their resources; the last one's is the cursor (After) of the next page.
func (l *Locker) List(ctx context.Context, f ListFilter) ([]Record, error) {
	return l.store.List(ctx, f)
}

// ForceRelease takes a lock away from its holder: see Force.
func (l *Locker) ForceRelease(ctx context.Context, f Force) (Record, error) {
	r, err := l.store.ForceRelease(ctx, f)
	if err == nil {
		fields := append(forceFields(f, &r), l.keeper.cfg.Fields...)
		audit.Log(l.keeper.cfg.Audit, audit.LockForceRelease, audit.Success, fields...)
	}
	return r, err
}

// Purge deletes rows that ended more than olderThan ago: see Store.
func (l *Locker) Purge(ctx context.Context, olderThan time.Duration, limit int) (int, error) {
	return l.store.Purge(ctx, olderThan, limit)
}

// Close ends the renewals and the contexts of all locks that are still held, and waits for the goroutine. It releases
// nothing: the work under a lock may need a moment to stop, and until the expiry nobody else gets in. Release each lock
// when its work has stopped, before Close or after it.
func (l *Locker) Close() {
	l.stop()
	l.running.Wait()
}
