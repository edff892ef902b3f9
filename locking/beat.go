package locking

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/audit"
)

// beat is one renewal of many locks on its way.
type beat struct {
	sent    time.Duration // before it was sent
	timeout time.Duration
	locks   []*Lock
	claims  []Claim
}

// put enters a grant. The second result is the Lock that was held on the resource before: the same one when it was
// extended, another one when its holder must be told that it is over.
func (k *Keeper) put(g Grant) (l, older *Lock) {
	k.mu.Lock()
	defer k.mu.Unlock()
	older = k.locks[g.Record.Resource]
	switch {
	case older == nil:
	case older.closing && older.FencingToken() != g.Record.FencingToken:
		older.gone, older = true, nil // its holder will know
	case older.phase != held:
		older.phase, older = lost, nil // its holder knows
	}
	if older != nil && older.FencingToken() == g.Record.FencingToken && older.Owner() == g.Record.Owner {
		older.record = g.Record
		older.confirm(g.SentAt)
		return older, older
	}
	if older != nil {
		older.phase = lost
	}
	l = newLock(k, g)
	if k.closed {
		l.stopAt = g.SentAt // nobody will renew it; the holder is told at once, and may release
	}
	k.locks[g.Record.Resource] = l
	return l, older
}

// beat sends one renewal for everything that is due, in a goroutine of its own: a store that does not come back holds
// up neither the next beat nor the watch.
func (k *Keeper) beat(ctx context.Context) {
	b := k.gather()
	if len(b.locks) == 0 {
		return
	}
	k.beats.Go(func() {
		attempt, cancel := context.WithTimeout(ctx, b.timeout)
		defer cancel()
		res, err := k.cfg.Store.Renew(attempt, b.claims)
		if err != nil && ctx.Err() != nil {
			return // Run is ending, and its end tells every holder
		}
		k.settle(&b, answer{res, err, k.cfg.Boot()})
	})
}

// gather collects the locks of a beat, if any is due: all whose lease is half a beat old, and the new ones, so that
// locks of equal TTL soon beat together. Long leases do not join every beat of short ones. The longest attempt counts:
// a slow statement for many must not fail because of one short lock among them.
func (k *Keeper) gather() beat {
	k.mu.Lock()
	defer k.mu.Unlock()
	b := beat{sent: k.cfg.Boot()}
	if k.inFlight >= maxInFlight || !k.anyDue(b.sent) {
		return b
	}
	for _, l := range k.locks {
		if b.sent >= l.deadline || (l.nextBeat-b.sent > l.lease.Beat/2 && !l.fresh) {
			continue
		}
		b.locks = append(b.locks, l)
		b.timeout = max(b.timeout, l.lease.Attempt)
		l.nextBeat = b.sent + k.jittered(l.lease.Retry) // until the answer is there
		l.fresh = false
	}
	if len(b.locks) > 0 {
		k.inFlight++
	}
	b.locks = inOrder(b.locks)
	for _, l := range b.locks {
		b.claims = append(b.claims, l.claim())
	}
	return b
}

// inOrder sorts locks by the bytes of their resources, so that what happens to several at once is told in one order.
func inOrder(locks []*Lock) []*Lock {
	slices.SortFunc(locks, func(a, b *Lock) int { return strings.Compare(a.Resource(), b.Resource()) })
	return locks
}

func (k *Keeper) anyDue(now time.Duration) bool {
	for _, l := range k.locks {
		if l.nextBeat <= now {
			return true
		}
	}
	return false
}

// answer is what came back from a beat.
type answer struct {
	results  []ClaimResult
	err      error
	received time.Duration
}

// verdicts are the locks of a beat by what is to be told about them.
type verdicts struct {
	extended, lost, unknown []*Lock
	slacks                  []time.Duration // of the extended ones
	failed                  int             // attempts of unknown outcome, told before or not
	err                     error           // of one of them
}

// settle applies an answer and then, without the mutex, tells everybody.
func (k *Keeper) settle(b *beat, a answer) {
	v := k.apply(b, a)
	k.observeBeat(&v)
	for _, l := range v.lost {
		l.tellLost(ReasonDatabase)
	}
	for _, l := range v.extended {
		l.tellExtended()
	}
	for _, l := range v.unknown {
		l.audit(audit.LockRenewFail, audit.Unknown)
	}
	if v.failed > 0 {
		k.cfg.Logger.Warn("renewal not confirmed", zap.Int("locks", v.failed), zap.Error(v.err))
	}
	k.checkClock(b, a)
}

func (k *Keeper) apply(b *beat, a answer) verdicts {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.inFlight--
	var v verdicts
	for i, l := range b.locks {
		if k.locks[l.Resource()] != l || a.received >= l.deadline {
			continue // released, replaced, or over by the clock: an answer does not revive it
		}
		err := a.err
		if err == nil && i < len(a.results) {
			err = a.results[i].Err
		} else if err == nil {
			err = ErrUnknown
		}
		switch {
		case err == nil:
			l.record = a.results[i].Record
			v.slacks = append(v.slacks, l.deadline-a.received)
			l.renewed(l.deadline - a.received)
			l.confirm(b.sent)
			l.unknown = false
			v.extended = append(v.extended, l)
		case a.err == nil && errors.Is(err, ErrLost) && l.closing:
			l.gone, l.nextBeat = true, l.deadline
		case a.err == nil && errors.Is(err, ErrLost):
			if l.phase == held {
				v.lost = append(v.lost, l)
			}
			l.leave(lost)
		default:
			v.failed, v.err = v.failed+1, err
			if !l.unknown { // one line for each outage, not for each attempt
				v.unknown = append(v.unknown, l)
			}
			l.unknown = true
		}
	}
	return v
}

// checkClock compares the database's clock with the boot clock, over the window in which the renewal was on its way.
func (k *Keeper) checkClock(b *beat, a answer) {
	for i := range a.results {
		if a.err != nil || a.results[i].Err != nil {
			continue
		}
		step := k.steps.Observe(b.sent, a.received, a.results[i].Record.Now)
		if margin := k.smallestMargin(b); step > margin || step < -margin {
			k.cfg.Logger.Warn("the database's clock stepped", zap.Duration("step", step))
			reason := []zap.Field{audit.Reason("the database's clock stepped by " + step.String())}
			audit.Log(k.cfg.Audit, audit.ClockStep, audit.Failure, slices.Concat(k.cfg.Fields, reason)...)
			k.cfg.OnClockStep(step)
		}
		return
	}
}

func (k *Keeper) smallestMargin(b *beat) time.Duration {
	m := b.locks[0].lease.Margin
	for _, l := range b.locks {
		m = min(m, l.lease.Margin)
	}
	return m
}
