package lockingtest

import (
	"context"
	"sync"
	"time"

	"github.com/cronlatch/cronlatch/locking"
)

// kind is what an event says about a grant.
type kind string

const (
	granted  kind = "granted"
	extended kind = "extended"
	refused  kind = "refused"
	renewed  kind = "renewed"
	released kind = "released"
	forced   kind = "forced"  // renewals end, the name waits
	unknown  kind = "unknown" // an error: the call may have been served
)

// event is one answer of a store: to whom, and the row that came with it.
type event struct {
	kind  kind
	asked locking.Claim // the resource and holder of the call; the token when the call named one
	grace time.Duration
	row   locking.Record
}

// at is the database's time of the event.
func (e *event) at() time.Time {
	switch e.kind {
	case granted, extended:
		return e.row.AcquiredAt
	case renewed:
		return e.row.RenewedAt
	case released, forced:
		if e.row.ReleasedAt != nil {
			return *e.row.ReleasedAt
		}
	case refused, unknown:
	}
	return e.row.Now
}

// History is a store that notes every answer of the store below it, for Check.
type History struct {
	locking.Store

	mu     sync.Mutex
	events []event
}

// Record starts a history of s. Only what goes through the History is known to it: it must see all calls that change
// the resources it is asked about.
func Record(s locking.Store) *History { return &History{Store: s} }

func (h *History) add(events ...event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, events...)
}

// Acquire implements locking.Store.
func (h *History) Acquire(ctx context.Context, reqs []locking.AcquireRequest) ([]locking.AcquireResult, error) {
	out, err := h.Store.Acquire(ctx, reqs)
	for i, q := range reqs {
		e := event{kind: unknown, asked: locking.Claim{Resource: q.Resource, Owner: q.Owner, Principal: q.Principal}, grace: q.Grace}
		if err == nil {
			e.row = out[i].Record
			switch {
			case !out[i].Acquired:
				e.kind = refused
			case out[i].Extended:
				e.kind = extended
			default:
				e.kind = granted
			}
		}
		h.add(e)
	}
	return out, err
}

// Renew implements locking.Store.
func (h *History) Renew(ctx context.Context, claims []locking.Claim) ([]locking.ClaimResult, error) {
	out, err := h.Store.Renew(ctx, claims)
	h.addClaims(renewed, claims, out, err)
	return out, err
}

// Release implements locking.Store.
func (h *History) Release(ctx context.Context, claims []locking.Claim) ([]locking.ClaimResult, error) {
	out, err := h.Store.Release(ctx, claims)
	h.addClaims(released, claims, out, err)
	return out, err
}

func (h *History) addClaims(k kind, claims []locking.Claim, out []locking.ClaimResult, err error) {
	for i, c := range claims {
		switch {
		case err != nil || isUnknown(out[i].Err):
			h.add(event{kind: unknown, asked: c})
		case out[i].Err == nil:
			h.add(event{kind: k, asked: c, row: out[i].Record})
		}
	}
}

// ForceRelease implements locking.Store.
func (h *History) ForceRelease(ctx context.Context, f locking.Force) (locking.Record, error) {
	r, err := h.Store.ForceRelease(ctx, f)
	asked := locking.Claim{Resource: f.Resource, Owner: r.Owner, Principal: r.Principal, FencingToken: f.FencingToken}
	switch {
	case err != nil && !isFact(err):
		h.add(event{kind: unknown, asked: asked})
	case err == nil && f.Immediate:
		h.add(event{kind: released, asked: asked, row: r})
	case err == nil:
		h.add(event{kind: forced, asked: asked, row: r})
	}
	return r, err
}
