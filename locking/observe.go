package locking

import (
	"time"

	"github.com/cronlatch/cronlatch/internal/audit"
)

// EventKind says what became of a kept lock.
type EventKind int

// The kinds of events.
const (
	EventKept        EventKind = iota // a grant came to the keeper: Takeover
	EventRenewed                      // a renewal was confirmed: Slack
	EventUnconfirmed                  // the outcome of one attempt to renew is not known
	EventLost                         // its holder was told, or has found out, that it is over: Held
	EventReleased                     // its holder released or forgot it: Held
)

// Event is one thing that became of a kept lock, for those who count (KeeperConfig.Observe).
type Event struct {
	Kind     EventKind
	Takeover bool
	// Slack is how much of the lease was left when the confirmation came: 0 or less would have been too late.
	Slack time.Duration
	// Held is the time since the grant was asked for. A holder that was told of the loss and releases its lock later has two
	// events: only the first one has Held, the second one has 0.
	Held time.Duration
}

// told tells the observer what the audit is told. It must not be called with keeper.mu.
func (l *Lock) told(a audit.Action) {
	observe := l.keeper.cfg.Observe
	if observe == nil {
		return
	}
	switch a {
	case audit.LockAcquire, audit.LockTakeover:
		observe(Event{Kind: EventKept, Takeover: a == audit.LockTakeover})
	case audit.LockLose:
		observe(Event{Kind: EventLost, Held: l.heldFor()})
	case audit.LockRelease:
		observe(Event{Kind: EventReleased, Held: l.heldFor()})
	default: // a failed renewal is a line for each outage, and an event for each attempt
	}
}

// heldFor is the time since the grant, once.
func (l *Lock) heldFor() time.Duration {
	if l.counted.Swap(true) {
		return 0
	}
	return max(1, l.keeper.cfg.Boot()-l.grant.SentAt)
}

// observeBeat tells the observer how an answer to a beat was.
func (k *Keeper) observeBeat(v *verdicts) {
	if k.cfg.Observe == nil {
		return
	}
	for _, slack := range v.slacks {
		k.cfg.Observe(Event{Kind: EventRenewed, Slack: slack})
	}
	for range v.failed {
		k.cfg.Observe(Event{Kind: EventUnconfirmed})
	}
}

// Held is how many locks the keeper renews now.
func (k *Keeper) Held() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.locks)
}
