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

// HeldBy reports whether owner holds the lock and may extend it: live, its own, and not forced.
func (r Record) HeldBy(owner string) bool {
	return r.Owner == owner && r.ReleasedAt == nil && r.Live()
}

// FreeFor reports whether an acquire by owner may write the row: it is the owner's own unreleased lock (live or not),
// it was released, or it expired at least grace ago. This is the rule that every store applies.
func (r Record) FreeFor(owner string, grace time.Duration) bool {
	if r.Owner == owner && r.ReleasedAt == nil {
		return true
	}
	return r.Released() || !r.ExpiresAt.Add(grace).After(r.Now)
}

// TakenOverBy reports whether a grant to owner would be a takeover: another owner's lock that nobody freed.
func (r Record) TakenOverBy(owner string) bool { return r.Owner != owner && !r.Released() }

// Renewable answers a renewal: nil, or ErrLost.
func (r Record) Renewable(c Claim) error {
	if r.HeldBy(c.Owner) && c.namesTokenOf(r.FencingToken) {
		return nil
	}
	return ErrLost
}

// Releasable answers a release: nil, ErrNotFound, ErrNotOwner or ErrStaleToken, in the order of the HTTP contract.
func (r Record) Releasable(c Claim) error {
	switch {
	case !r.Live():
		return ErrNotFound
	case r.Owner != c.Owner:
		return ErrNotOwner
	case !c.namesTokenOf(r.FencingToken):
		return ErrStaleToken
	}
	return nil
}

func (c Claim) namesTokenOf(token int64) bool { return c.FencingToken == 0 || c.FencingToken == token }
