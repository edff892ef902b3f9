package locking

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/audit"
)

// Reason says how a lock was lost.
type Reason string

// The reasons of a loss.
const (
	ReasonUnconfirmed Reason = "renewal not confirmed in time"
	ReasonDatabase    Reason = "the database says so"
	ReasonStopped     Reason = "the keeper was stopped"
)

// LostError is the cause of a lost lock's context; errors.Is(err, ErrLost) is true.
type LostError struct {
	Resource     string
	FencingToken int64
	Reason       Reason
}

func (e *LostError) Error() string {
	return fmt.Sprintf("%s: %q with fencing token %d: %s", ErrLost, e.Resource, e.FencingToken, e.Reason)
}

// Unwrap makes errors.Is(err, ErrLost) true.
func (*LostError) Unwrap() error { return ErrLost }

// ErrReleased is the cause of the context of a lock that its holder released or forgot.
var ErrReleased = errors.New("locking: released by its holder")

// phase is where a lock is on its way; it only moves forward, except that a release of unknown outcome may be tried
// again.
type phase int

const (
	held      phase = iota
	stopping        // the holder was told to stop; renewals go on until the deadline, so that others stay away
	releasing       // no renewal; a release is on its way, or its outcome is unknown
	released        // over, by the holder's will
	lost            // over: nothing is sent with this token again
)

// Lock is a held lock that a Keeper renews. Its methods are safe for concurrent use.
type Lock struct {
	keeper *Keeper
	grant  Grant
	lease  Lease

	ctx    context.Context
	cancel context.CancelCauseFunc

	// The rest is guarded by keeper.mu.
	phase    phase
	record   Record
	sent     time.Duration // of the last request that was confirmed
	stopAt   time.Duration
	deadline time.Duration
	nextBeat time.Duration
	fresh    bool // not renewed yet
	unknown  bool // the last attempt's outcome is not known
	closing  bool // between Closing and Forget or Reopen
	gone     bool // while closing, the database said that the row is gone
	renewals int
	least    time.Duration // to the deadline when a renewal was confirmed

	notify  sync.Mutex  // OnExtend one at a time
	counted atomic.Bool // how long it was held was told
}

func newLock(k *Keeper, g Grant) *Lock {
	l := &Lock{keeper: k, grant: g, lease: k.lease(g.TTL, g.StopGrace), record: g.Record, fresh: true}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.confirm(g.SentAt)
	return l
}

// confirm starts the lease again from a request sent at sent. Answers can overtake each other: only a later one counts.
// A holder that was told to stop stays told; its deadline still moves, because others stay away that much longer.
func (l *Lock) confirm(sent time.Duration) {
	if sent < l.sent {
		return
	}
	l.sent = sent
	l.deadline = l.lease.Deadline(sent)
	l.nextBeat = sent + l.keeper.jittered(l.lease.Beat)
	if l.phase == held {
		l.stopAt = l.lease.StopAt(sent)
	}
}

// Context ends with a *LostError as its cause at StopAt when no renewal moved that, at once when the database says that
// the lock is lost, and with ErrReleased when it is released. Work under the lock belongs into it.
func (l *Lock) Context() context.Context { return l.ctx }

// Record is the row as the last confirmed call saw it.
func (l *Lock) Record() Record {
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	return l.record
}

// Renewals counts the confirmed ones. least is how near the deadline came: what was left of the lease when the latest of the
// answers was there, zero when there was none.
func (l *Lock) Renewals() (n int, least time.Duration) {
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	return l.renewals, l.least
}

// renewed counts a renewal that was confirmed with slack left of the lease.
func (l *Lock) renewed(slack time.Duration) {
	if l.renewals == 0 || slack < l.least {
		l.least = slack
	}
	l.renewals++
}

// Resource is the locked name.
func (l *Lock) Resource() string { return l.grant.Record.Resource }

// Owner identifies the holder.
func (l *Lock) Owner() string { return l.grant.Record.Owner }

// FencingToken goes with every write to a resource that must not be changed by a holder that lost its lock.
func (l *Lock) FencingToken() int64 { return l.grant.Record.FencingToken }

// StopAt is when Context ends unless a renewal moves it, on the boot clock.
func (l *Lock) StopAt() time.Duration {
	stopAt, _, _ := l.until()
	return stopAt
}

// Deadline is when the holder must have stopped unless a renewal moves it, on the boot clock.
func (l *Lock) Deadline() time.Duration {
	_, deadline, _ := l.until()
	return deadline
}

func (l *Lock) until() (stopAt, deadline time.Duration, kept bool) {
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	return l.stopAt, l.deadline, l.phase == held || l.phase == stopping
}

// Release ends Context, stops the renewals and frees the name in the database. nil: the name is free, or was given away
// after an earlier call of unknown outcome. ErrLost: it had been lost before. Another error: unknown; the lock ends by
// itself at its expiry, and Release may be called again until the deadline.
func (l *Lock) Release(ctx context.Context) error {
	again, err := l.beginRelease()
	if again == done || err != nil {
		return err
	}
	l.cancel(ErrReleased)
	res, err := l.keeper.cfg.Releases.Release(ctx, []Claim{l.claim()})
	if err == nil && errors.Is(res[0].Err, ErrUnknown) {
		err = res[0].Err
	}
	if err != nil {
		return fmt.Errorf("release %q: %w", l.Resource(), err)
	}
	if res[0].Err != nil && again == first {
		l.finish(lost)
		l.audit(audit.LockLose, audit.Failure, audit.Reason(string(ReasonDatabase)))
		return &LostError{l.Resource(), l.FencingToken(), ReasonDatabase}
	}
	l.finish(released)
	l.audit(audit.LockRelease, audit.Success)
	return nil
}

// attempt says which call of Release this is.
type attempt int

const (
	first attempt = iota
	repeated
	done
)

func (l *Lock) beginRelease() (attempt, error) {
	k := l.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	before := l.phase
	switch {
	case before == released:
		return done, nil
	case before == lost || k.cfg.Boot() >= l.deadline:
		return done, &LostError{l.Resource(), l.FencingToken(), ReasonUnconfirmed}
	}
	l.leave(releasing)
	if before == releasing {
		return repeated, nil
	}
	return first, nil
}

// leave takes the lock out of the keeper's beats and watch; an answer to a renewal on its way finds nothing to change.
// The caller holds keeper.mu.
func (l *Lock) leave(p phase) {
	l.phase = p
	if k := l.keeper; k.locks[l.Resource()] == l {
		delete(k.locks, l.Resource())
	}
}

func (l *Lock) finish(p phase) {
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	l.leave(p)
}

// Closing says that a transaction which releases the lock is about to be sent. Until Forget or Reopen tells what became of
// it, a renewal that finds the row gone, or another grant of the name, may be its doing, and is not taken for a loss. The
// renewals go on, and so does the watch: the transaction may fail. The holder's work is over by then: for as long as that
// takes, it is told of a loss at StopAt only.
func (l *Lock) Closing() {
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	l.closing = true
}

// Reopen ends Closing when the transaction did not release the lock, or nobody will know whether it did. What looked like
// its doing was a loss.
func (l *Lock) Reopen() {
	l.keeper.mu.Lock()
	wasLost := l.gone && l.phase == held
	if l.gone && (l.phase == held || l.phase == stopping) {
		l.leave(lost)
	}
	l.closing, l.gone = false, false
	l.keeper.mu.Unlock()
	if wasLost {
		l.tellLost(ReasonDatabase)
	}
}

// Forget ends Context and the renewals without a statement: the lock was released elsewhere, in the transaction that
// wrote the outcome (see Closing). It is not a way to give up a lock early: others still wait for its expiry.
func (l *Lock) Forget() {
	l.keeper.mu.Lock()
	over := l.phase == released || l.phase == lost
	if !over {
		l.leave(released)
	}
	l.keeper.mu.Unlock()
	if !over {
		l.cancel(ErrReleased)
		l.audit(audit.LockRelease, audit.Success)
	}
}

func (l *Lock) claim() Claim {
	r := &l.grant.Record
	return Claim{Resource: r.Resource, Owner: r.Owner, Principal: r.Principal, FencingToken: r.FencingToken, TTL: l.lease.TTL}
}

// tellLost ends the context; the holder learns why from its cause.
func (l *Lock) tellLost(why Reason) {
	l.cancel(&LostError{l.Resource(), l.FencingToken(), why})
	l.audit(audit.LockLose, audit.Failure, audit.Reason(string(why)))
}

// tellExtended passes on the newest instants, so that a call that was overtaken does not report older ones last.
func (l *Lock) tellExtended() {
	if l.grant.OnExtend == nil {
		return
	}
	l.notify.Lock()
	defer l.notify.Unlock()
	if stopAt, deadline, kept := l.until(); kept {
		l.grant.OnExtend(stopAt, deadline)
	}
}

func (l *Lock) auditAcquired() {
	if l.grant.Takeover {
		l.audit(audit.LockTakeover, audit.Success)
		return
	}
	l.audit(audit.LockAcquire, audit.Success)
}

func (l *Lock) audit(a audit.Action, o audit.Outcome, more ...zap.Field) {
	l.told(a)
	fields := []zap.Field{audit.Resource(l.Resource()), audit.Owner(l.Owner()), audit.Token(l.FencingToken())}
	fields = append(fields, l.keeper.cfg.Fields...)
	fields = append(fields, l.grant.Fields...)
	audit.Log(l.keeper.cfg.Audit, a, o, append(fields, more...)...)
}
