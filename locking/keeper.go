package locking

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/boottime"
)

const (
	// lookEvery bounds every wait of the keeper: Go's timers stand still while the machine is suspended, so after a
	// resume the boot clock is read again at most this much later. It is well inside the smallest margin.
	lookEvery = 100 * time.Millisecond
	// maxInFlight bounds the renewals that are on their way at once, when the database does not answer.
	maxInFlight = 4
	// maxJitter is the part of a wait by which a beat may come earlier, so that replicas do not beat in step.
	maxJitter = 0.1
)

// KeeperConfig configures a Keeper; only Store is needed.
type KeeperConfig struct {
	Store    Store // for renewals: give it connections of its own, so that a saturated pool loses no lock
	Releases Store // for Lock.Release; nil is Store

	TTL             time.Duration // of grants that do not name theirs; 0 is DefaultTTL
	Margin, Attempt time.Duration // see LeaseConfig; 0 is computed

	Logger *zap.Logger // the operator's log; nil is silent
	Audit  *zap.Logger // of package audit; nil is silent
	Fields []zap.Field // added to every audit line: the replica

	Boot   func() time.Duration // a clock that goes on in suspend; nil is boottime.Now
	Jitter func() float64       // 0 <= j < 1, how much earlier a beat comes, in tenths of the wait; nil is random

	// OnClockStep is called when the database's clock was seen to step by more than the margin of a held lock;
	// positive is forward, which is dangerous: it ends leases early.
	OnClockStep func(step time.Duration)
	// Observe hears of each event of each lock. It is called from several goroutines and must not block; nil is nobody.
	Observe func(Event)
}

// Grant is an acquired lock that a Keeper should keep.
type Grant struct {
	Record   Record
	Takeover bool // for the audit
	// SentAt is the boot clock before the request that was granted was sent: not after, and not the reading after the
	// answer. In a transaction it is before the acquire, not before the commit.
	SentAt    time.Duration
	TTL       time.Duration // as it was asked for; 0 is the keeper's
	StopGrace time.Duration // see LeaseConfig
	// OnExtend is called after each renewal, never at the same time as itself, and from a goroutine of the keeper. Both
	// instants are on the boot clock. It should not block for long: while it does, this beat's other calls wait.
	OnExtend func(stopAt, deadline time.Duration)
	Fields   []zap.Field // added to this lock's audit lines: the job and the run
}

// Keeper renews locks until they are released or lost, and tells their holders in time when it could not: see the
// package comment. Its watch runs from the first Keep on, whether or not Run is running.
type Keeper struct {
	cfg KeeperConfig

	mu       sync.Mutex
	locks    map[string]*Lock // by resource; the held and the stopping ones
	watch    *time.Timer      // nil while no lock is held
	inFlight int
	running  bool
	closed   bool

	wake  chan struct{} // a lock came: the beat loop computes its wait again
	beats sync.WaitGroup
	steps StepDetector
}

// NewKeeper checks the configuration.
func NewKeeper(c KeeperConfig) (*Keeper, error) {
	if c.Store == nil {
		return nil, invalid("keeper", "has no store")
	}
	c.TTL = cmp.Or(c.TTL, DefaultTTL)
	if err := NewLease(LeaseConfig{TTL: c.TTL, Margin: c.Margin, Attempt: c.Attempt}).Validate(); err != nil {
		return nil, err
	}
	if c.Releases == nil {
		c.Releases = c.Store
	}
	if c.Boot == nil {
		c.Boot = boottime.Now
	}
	if c.Jitter == nil {
		c.Jitter = rand.Float64
	}
	if c.OnClockStep == nil {
		c.OnClockStep = func(time.Duration) {}
	}
	c.Logger, c.Audit = cmp.Or(c.Logger, zap.NewNop()), cmp.Or(c.Audit, zap.NewNop())
	return &Keeper{cfg: c, locks: make(map[string]*Lock), wake: make(chan struct{}, 1)}, nil
}

// Lease is the arithmetic that the keeper applies to a grant, and whether it can be kept at all.
func (k *Keeper) Lease(ttl, stopGrace time.Duration) (Lease, error) {
	l := k.lease(ttl, stopGrace)
	return l, l.Validate()
}

func (k *Keeper) lease(ttl, stopGrace time.Duration) Lease {
	return NewLease(LeaseConfig{
		TTL: cmp.Or(ttl, k.cfg.TTL), StopGrace: stopGrace, Margin: k.cfg.Margin, Attempt: k.cfg.Attempt,
	})
}

// Run beats until ctx ends, and returns when the last renewal on its way has come back. Then the contexts of the locks
// that are still held are cancelled: nobody renews them any more. They can still be released.
func (k *Keeper) Run(ctx context.Context) error {
	if !k.begin() {
		return errors.New("locking: the keeper has been run already")
	}
	defer k.end()
	timer := time.NewTimer(k.untilBeat())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.wake:
		case <-timer.C:
		}
		k.beat(ctx)
		timer.Reset(k.untilBeat())
	}
}

func (k *Keeper) begin() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	ok := !k.running && !k.closed
	k.running = k.running || ok
	return ok
}

func (k *Keeper) end() {
	k.beats.Wait()
	k.mu.Lock()
	k.closed = true
	var gone []*Lock
	for name, l := range k.locks {
		delete(k.locks, name)
		if l.phase == held {
			gone = append(gone, l)
		}
		l.phase = stopping
	}
	k.mu.Unlock()
	for _, l := range inOrder(gone) {
		l.tellLost(ReasonStopped)
	}
}

// untilBeat is how long the beat loop may sleep: not beyond the earliest beat, and not beyond the next look at the
// boot clock. Without a lock there is nothing to beat; Keep wakes the loop.
func (k *Keeper) untilBeat() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.locks) == 0 {
		return MaxTTL
	}
	now, wait := k.cfg.Boot(), lookEvery
	for _, l := range k.locks {
		if k.inFlight < maxInFlight && now < l.deadline { // else the beat would not be sent
			wait = min(wait, l.nextBeat-now)
		}
	}
	return max(0, wait)
}

// jittered shortens a wait, never lengthens it.
func (k *Keeper) jittered(d time.Duration) time.Duration {
	return d - time.Duration(float64(d)*maxJitter*k.cfg.Jitter())
}

// Keep takes over a grant: it is renewed from the next beat on, and its context ends in time when that fails. A grant
// whose lease cannot be kept (it is too old, or Run has ended) comes back with a context that has ended already.
//
// The same grant again, after its owner acquired it once more, extends the Lock that is there and returns it; a newer
// grant of the same resource ends the older Lock.
func (k *Keeper) Keep(g Grant) *Lock {
	l, older := k.put(g)
	if older != nil && older != l {
		older.tellLost(ReasonDatabase)
	}
	if older != l {
		l.auditAcquired()
	}
	k.look()
	select {
	case k.wake <- struct{}{}:
	default:
	}
	return l
}
