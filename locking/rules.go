package locking

import "time"

// Remaining is how long the lock lives without renewal, by the database's clock when the row was read; 0 when expired.
func (r Record) Remaining() time.Duration {
	if !r.Live() {
		return 0
	}
	return r.ExpiresAt.Sub(r.Now)
}

// Live reports whether the row still keeps its name taken: a released or expired one does not; a force-released one
// does until its old expiry.
func (r Record) Live() bool { return r.ExpiresAt.After(r.Now) && !r.Released() }

// Released reports whether the name was freed on purpose, by its owner or by an immediate force-release. It needs no
// clock, so that a database clock that stepped back does not bring a released lock to life again.
func (r Record) Released() bool { return r.ReleasedAt != nil && !r.ReleasedAt.Before(r.ExpiresAt) }

// Forced reports whether the grant was ended by force and its name waits for the old expiry.
func (r Record) Forced() bool { return r.ReleasedAt != nil && r.ReleasedAt.Before(r.ExpiresAt) }

// holder is who holds a lock: both must be right.
type holder struct{ owner, principal string }

func (q *AcquireRequest) holder() holder { return holder{q.Owner, q.Principal} }

func (c Claim) holder() holder { return holder{c.Owner, c.Principal} }

func (r Record) holder() holder { return holder{r.Owner, r.Principal} }

// heldBy reports whether h holds the lock and may extend it: live, its own, and not forced.
func (r Record) heldBy(h holder) bool { return r.holder() == h && r.ReleasedAt == nil && r.Live() }

// Extends reports whether a grant to who asks would extend what it already holds.
func (r Record) Extends(q AcquireRequest) bool { return r.heldBy(q.holder()) }

// FreeFor reports whether an acquire may write the row: it is the holder's own unreleased lock (live or not), it was
// released, or it expired at least the request's grace ago. This is the rule that every store applies.
func (r Record) FreeFor(q AcquireRequest) bool {
	if r.holder() == q.holder() && r.ReleasedAt == nil {
		return true
	}
	return r.Released() || !r.ExpiresAt.Add(q.Grace).After(r.Now)
}

// TakenOverBy reports whether a grant would be a takeover: another holder's lock that nobody freed.
func (r Record) TakenOverBy(q AcquireRequest) bool { return r.holder() != q.holder() && !r.Released() }

// Renewable answers a renewal: nil, or ErrLost.
func (r Record) Renewable(c Claim) error {
	if r.heldBy(c.holder()) && c.namesTokenOf(r.FencingToken) {
		return nil
	}
	return ErrLost
}

// Releasable answers a release: nil, ErrNotFound, ErrNotOwner or ErrStaleToken, in the order of the HTTP contract.
func (r Record) Releasable(c Claim) error {
	switch {
	case !r.Live():
		return ErrNotFound
	case r.holder() != c.holder():
		return ErrNotOwner
	case !c.namesTokenOf(r.FencingToken):
		return ErrStaleToken
	}
	return nil
}

func (c Claim) namesTokenOf(token int64) bool { return c.FencingToken == 0 || c.FencingToken == token }
