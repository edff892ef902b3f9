package linear

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"
)

// lock is the state of one resource. The zero value is free, and no token was ever given.
type lock struct {
	owner  string // "" is free
	token  int64  // 0 while nobody has seen it: the grant's answer was lost
	newest int64  // no token up to this one will be given again
	// The lock expires between these. They are one instant but after a call of unknown outcome.
	from, to int64
	forced   bool // it ends at its expiry: no renewal, no extension
}

// modelOf is the sequential lock table, for one resource that starts in one of the given states.
func modelOf(start []lock) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return boxed(start) },
		Step: func(state, input, output any) []any {
			l, okState := state.(lock)
			c, okInput := input.(call)
			a, okOutput := output.(answer)
			if !okState || !okInput || !okOutput {
				return nil
			}
			return boxed(l.step(c, a))
		},
		DescribeOperation: func(input, output any) string {
			c, okInput := input.(call)
			a, okOutput := output.(answer)
			if !okInput || !okOutput {
				return "not an operation"
			}
			return describe(c, a)
		},
	}
	return m.ToModel()
}

func boxed(locks []lock) []any {
	out := make([]any, len(locks))
	for i, l := range locks {
		out[i] = l
	}
	return out
}

// step returns the states in which the lock may be after a call that was answered like this; none: it cannot have been
// answered like this.
func (l lock) step(c call, a answer) []lock {
	if a.verdict == unknown {
		return append(l.effects(c, a), l)
	}
	switch c.verb {
	case acquire:
		return l.acquire(c, a)
	case renew:
		return l.renew(c, a)
	case release:
		return l.release(c, a)
	case get:
		return l.get(a)
	case force:
		return l.force(c, a)
	}
	return nil
}

func (l lock) acquire(c call, a answer) []lock {
	switch a.verdict {
	case done:
		after := lock{owner: c.owner, token: a.token, newest: max(a.token, l.newest), from: a.expiry, to: a.expiry}
		if a.owner != c.owner || !a.inTime(c) {
			return nil
		}
		if l.extendable(c, a) && l.hasToken(a.token) || l.mayBeFree(a) && a.token > l.newest {
			return []lock{after}
		}
	case refused:
		if l.mayBeLive(a) && (l.owner != c.owner || l.forced) {
			return l.seen(a)
		}
	default:
	}
	return nil
}

func (l lock) renew(c call, a answer) []lock {
	switch a.verdict {
	case done:
		if l.renewable(c, a) && l.hasToken(a.token) && a.owner == c.owner && a.inTime(c) {
			l.token, l.newest, l.from, l.to = a.token, max(a.token, l.newest), a.expiry, a.expiry
			return []lock{l}
		}
	case lost:
		if l.mayBeFree(a) || l.owner != c.owner || l.forced || !l.named(c) || l.token == 0 && c.token != 0 {
			return []lock{l}
		}
	default:
	}
	return nil
}

func (l lock) release(c call, a answer) []lock {
	mine := l.owner == c.owner
	switch a.verdict {
	case done:
		if l.mayBeLive(a) && mine && l.named(c) {
			return []lock{l.freed()}
		}
	case notOwner:
		if l.mayBeLive(a) && !mine {
			return []lock{l}
		}
	case stale:
		if l.mayBeLive(a) && mine && c.token != 0 && (l.token != c.token) {
			return []lock{l}
		}
	case notFound:
		return l.absent(a)
	default:
	}
	return nil
}

func (l lock) get(a answer) []lock {
	switch a.verdict {
	case done:
		if l.mayBeLive(a) {
			return l.seen(a)
		}
	case notFound:
		return l.absent(a)
	default:
	}
	return nil
}

func (l lock) force(c call, a answer) []lock {
	switch a.verdict {
	case done:
		if l.mayBeLive(a) && l.hasToken(c.token) {
			return []lock{l.ended(c)}
		}
	case stale:
		if l.mayBeLive(a) && l.token != c.token {
			return []lock{l}
		}
	case notFound:
		return l.absent(a)
	default:
	}
	return nil
}

// effects are what a call may have done whose answer did not come.
func (l lock) effects(c call, a answer) []lock {
	from, to := a.from+int64(c.ttl), a.to+int64(c.ttl)
	var out []lock
	switch c.verb {
	case acquire:
		if l.extendable(c, a) {
			out = append(out, lock{owner: l.owner, token: l.token, newest: l.newest, from: from, to: to})
		}
		if l.mayBeFree(a) {
			out = append(out, lock{owner: c.owner, newest: l.newest, from: from, to: to})
		}
	case renew:
		if l.renewable(c, a) {
			l.from, l.to = from, to
			out = append(out, l)
		}
	case release:
		if l.mayBeLive(a) && l.owner == c.owner && l.named(c) {
			out = append(out, l.freed())
		}
	case force:
		if l.mayBeLive(a) && l.hasToken(c.token) {
			out = append(out, l.ended(c))
		}
	case get:
	}
	return out
}

// mayBeLive: it was not expired at the first moment at which the call can have been served.
func (l lock) mayBeLive(a answer) bool { return l.owner != "" && a.from < l.to }

// mayBeFree: it was free, or expired at the last moment at which the call can have been served.
func (l lock) mayBeFree(a answer) bool { return l.owner == "" || a.to >= l.from }

func (l lock) extendable(c call, a answer) bool {
	return l.mayBeLive(a) && l.owner == c.owner && !l.forced
}

func (l lock) renewable(c call, a answer) bool { return l.extendable(c, a) && l.named(c) }

// named: the call named no token, or one that may be the lock's.
func (l lock) named(c call) bool { return c.token == 0 || l.hasToken(c.token) }

// hasToken: token is the lock's, or may be because nobody has seen it.
func (l lock) hasToken(token int64) bool {
	return l.token == token || l.token == 0 && token > l.newest
}

// seen compares the lock with a row that was shown, as far as it was.
func (l lock) seen(a answer) []lock {
	if a.owner != "" && a.owner != l.owner || a.token != 0 && !l.hasToken(a.token) ||
		a.expiry != 0 && (a.expiry < l.from-slack || a.expiry > l.to+slack) {
		return nil
	}
	if a.token != 0 {
		l.token, l.newest = a.token, max(a.token, l.newest)
	}
	if a.expiry != 0 && l.from != l.to {
		l.from, l.to = a.expiry, a.expiry
	}
	return []lock{l}
}

func (l lock) absent(a answer) []lock {
	if l.mayBeFree(a) {
		return []lock{l}
	}
	return nil
}

func (l lock) freed() lock { return lock{newest: max(l.newest, l.token)} }

func (l lock) ended(c call) lock {
	if c.immediate {
		return l.freed()
	}
	l.token, l.newest, l.forced = c.token, max(l.newest, c.token), true
	return l
}

// inTime: the new expiry is the TTL after a moment of the call.
func (a answer) inTime(c call) bool {
	at := a.expiry - int64(c.ttl)
	return at >= a.from-slack && at <= a.to+slack
}

func (l lock) String() string {
	if l.owner == "" {
		return fmt.Sprintf("free, newest token %d", l.newest)
	}
	text := fmt.Sprintf("%s, token %d, until %s", l.owner, l.token, time.Unix(0, l.to).UTC().Format("15:04:05.000000"))
	if l.forced {
		text += ", forced"
	}
	return text
}
