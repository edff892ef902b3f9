package locking

import "time"

// look is the watch: it ends contexts at StopAt and locks at their deadlines, and arms itself again. It depends on
// nothing but the boot clock: not on Run, not on a beat, and not on a store that should have answered.
func (k *Keeper) look() {
	for _, l := range k.overdue() {
		reason := ReasonUnconfirmed
		if k.isClosed() {
			reason = ReasonStopped
		}
		l.tellLost(reason)
	}
}

// overdue moves locks on and returns those whose holder must be told.
func (k *Keeper) overdue() (tell []*Lock) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, wait := k.cfg.Boot(), lookEvery
	for _, l := range k.locks {
		if l.phase == held && now >= l.stopAt {
			l.phase = stopping
			tell = append(tell, l)
		}
		if now >= l.deadline {
			l.leave(lost)
			continue
		}
		next := l.stopAt
		if l.phase == stopping {
			next = l.deadline
		}
		wait = min(wait, next-now)
	}
	k.arm(wait)
	return inOrder(tell)
}

// arm sets the timer of the next look; without a lock there is none.
func (k *Keeper) arm(wait time.Duration) {
	switch {
	case len(k.locks) == 0:
		if k.watch != nil {
			k.watch.Stop()
			k.watch = nil
		}
	case k.watch == nil:
		k.watch = time.AfterFunc(wait, k.look)
	default:
		k.watch.Reset(wait)
	}
}

func (k *Keeper) isClosed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.closed
}
