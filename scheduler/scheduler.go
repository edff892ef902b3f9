package scheduler

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// Process is a started attempt.
type Process interface {
	Extend(stopAt, deadline time.Duration) // on the boot clock
	Stop()                                 // ask it to end: SIGTERM, then SIGKILL
	Done() <-chan struct{}                 // closed when the whole process tree is dead
	Result() jobs.Result                   // valid after Done
}

// StartFunc starts the command of an attempt; a *jobs.StartError says why it could not.
type StartFunc func(ctx context.Context, a jobs.Attempt) (Process, error)

// Options are everything a Scheduler needs. All fields are required unless said otherwise.
type Options struct {
	DB     *DB
	Keeper *locking.Keeper // renews the locks of the runs; its Run is the caller's to call
	Start  StartFunc

	Jobs            []*jobs.Job // until Reload; after jobs.Link, like those of a Reload
	DefinitionsHash string

	Replica string
	Host    string
	PID     int
	Nonce   string // unique to this process
	Version string
	Labels  map[string]string // of this replica, for the jobs' OnlyOn; nil is none

	Capacity     int // runs at a time, at least 1
	TTL          time.Duration
	Grace        time.Duration // takeover_grace; 0 is none
	DrainTimeout time.Duration // what running commands get at the end; 0 stops them at once

	// Check is asked before every look at the ledger; an error counts as a database that does not answer. The daemon
	// uses it for a SQLite file that was deleted or replaced: what is written to it then, nobody else sees. Optional.
	Check func(ctx context.Context) error

	Log   *zap.Logger          // nil is silence
	Audit *zap.Logger          // nil is silence
	Boot  func() time.Duration // a clock that goes on in suspend; nil is boottime.Now
	Wall  func() time.Time     // this host's clock, only to report when it is set: nothing follows it. Optional

	Observe []Observer                      // of runs; nil is nobody
	Timed   func(op Op, took time.Duration) // hears how long the database took, failures included; nil is nobody
}

const (
	maxSleep   = time.Second           // an idle replica looks at least this often
	minSleep   = 10 * time.Millisecond // and at most this often
	opTimeout  = 5 * time.Second       // one transaction
	slowFinish = 5 * time.Second       // the longest pause between two tries to write an outcome

	// What leaving may take beyond drain_timeout and kill_after is 5 s: a statement on its way, a claim to be settled,
	// the outcomes, and this replica's row.
	windDown     = time.Second
	writeTimeout = 2 * time.Second
)

// Scheduler is one replica's part of the fleet.
type Scheduler struct {
	o       Options
	who     identity
	store   *store
	clock   *clock
	wall    locking.StepDetector
	known   atomic.Pointer[definitions] // never nil; the fields below that follow from it are the loop's
	next    atomic.Pointer[definitions] // of the last Reload, until the loop adopts it
	plans   []*planned
	piece   piece // of them, for one plan
	chains  followers
	ages    []maxAge // of the jobs that have a max_age
	lates   []lateJob
	unknown []string // jobs whose runs were seen and that this replica cannot run

	wake    chan struct{} // somebody may have work for us; holds one
	hurry   chan struct{} // closed by Hurry: stop running commands now
	hurried sync.Once
	changed chan struct{} // the row of this replica is out of date; holds one

	away     error     // the database's last error; nil while it answers
	loaded   bool      // the plan positions were read
	maybe    []claimed // claims whose commit was not answered
	active   activeRuns
	live     streams
	draining bool
	asked    atomic.Bool  // to take no more runs (replica_drain.go)
	told     atomic.Int64 // how many runs the row of this replica says are running

	longestKill time.Duration // of all jobs that were ever known
	overdueAt   time.Duration // on the boot clock: when to look for overdue jobs again
	lateAt      time.Duration // and for late runs
	waitsAt     time.Duration // and at what due runs wait for
}

// New checks the options and returns a scheduler that is not running yet.
func New(o Options) (*Scheduler, error) {
	if o.Capacity < 1 {
		return nil, errors.New("scheduler: capacity must be at least 1")
	}
	o.setDefaults()
	store, err := openStore(o.DB)
	if err != nil {
		return nil, err
	}
	store.silence, store.nonce, store.replica = o.TTL, o.Nonce, o.Replica
	s := &Scheduler{
		o: o, store: store, clock: newClock(o.Boot, o.TTL),
		who:     identity{Replica: o.Replica, Host: o.Host, PID: o.PID, Nonce: o.Nonce},
		wake:    make(chan struct{}, 1),
		hurry:   make(chan struct{}),
		changed: make(chan struct{}, 1),
	}
	s.active.init()
	s.live.opened = make(chan struct{}, 1)
	plans, _ := plansOf(o.Jobs, nil)
	s.know(&definitions{jobs: o.Jobs, hash: o.DefinitionsHash}, plans)
	return s, nil
}

func (o *Options) setDefaults() {
	if o.Check == nil {
		o.Check = func(context.Context) error { return nil }
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Audit == nil {
		o.Audit = zap.NewNop()
	}
	if o.Boot == nil {
		o.Boot = boottime.Now
	}
}

// Wake makes the loop look at once; it never blocks.
func (s *Scheduler) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Hurry ends a drain early: running commands are stopped now.
func (s *Scheduler) Hurry() { s.hurried.Do(func() { close(s.hurry) }) }

// ClockStepped tells that the database's clock was seen to jump: nothing new is claimed until every lock that was
// granted before the jump is certainly over.
func (s *Scheduler) ClockStepped(step time.Duration) { s.clock.stepped(step) }

// Run works until ctx ends, then drains (drain.go). It returns an error only when leaving was not clean.
func (s *Scheduler) Run(ctx context.Context) error {
	stopBeating := s.startBeating(ctx)
	stopStreaming := s.startStreaming(ctx)
	stopObeying := s.startObeying(ctx)
	for ctx.Err() == nil {
		sleep(ctx, s.tick(ctx), s.wake)
	}
	err := s.drain(ctx)
	stopObeying()
	stopStreaming()
	stopBeating()
	return errors.Join(err, s.leave(ctx))
}

// sleep waits for d, a wake-up or the end of ctx, but never less than minSleep.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	pause := time.NewTimer(minSleep)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return
	}
	if d <= minSleep {
		return
	}
	pause.Reset(d - minSleep)
	select {
	case <-pause.C:
	case <-wake:
	case <-ctx.Done():
	}
}

// tick does everything that can be done now and returns how long to sleep. Its statements do not end with ctx at once,
// or a claim could be committed without anybody to run it: they get windDown to come to their end.
func (s *Scheduler) tick(ctx context.Context) time.Duration {
	asked := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(asked, func() { time.AfterFunc(windDown, cancel) })()
	if err := s.work(ctx); err != nil {
		s.databaseAway(err)
		return maxSleep
	}
	s.databaseBack()
	return s.untilNext()
}

func (s *Scheduler) work(ctx context.Context) error {
	g, err := s.look(ctx)
	if err != nil {
		return err
	}
	if err := s.settleUnknown(ctx); err != nil {
		return err
	}
	s.obeyDrain(ctx, g.Drain)
	if err := s.adopt(ctx); err != nil {
		return err
	}
	fresh, err := s.planDue(ctx)
	if err != nil {
		return err
	}
	if g.Follow {
		if err := s.followDue(ctx); err != nil {
			return err
		}
	}
	if g.Due || g.Follow || fresh {
		if err := s.settleDue(ctx); err != nil {
			return err
		}
		if err := s.claimDue(ctx); err != nil {
			return err
		}
	}
	if g.Lost {
		if err := s.recoverDue(ctx); err != nil {
			return err
		}
	}
	if g.Notify {
		if err := s.notifyDue(ctx); err != nil {
			return err
		}
	}
	if g.Due {
		if err := s.noteWaits(ctx); err != nil {
			return err
		}
	}
	if err := s.lateDue(ctx); err != nil {
		return err
	}
	return s.overdueDue(ctx)
}

// untilNext is the time to the next instant of any schedule, at most maxSleep.
func (s *Scheduler) untilNext() time.Duration {
	next := maxSleep
	now := s.clock.now()
	for _, p := range s.plans {
		if !p.next.IsZero() {
			next = min(next, p.next.Sub(now))
		}
	}
	return max(next, minSleep)
}

func (s *Scheduler) databaseAway(err error) {
	if s.away == nil {
		s.o.Log.Warn("the database does not answer: nothing new starts, running commands go on until their lock's deadline",
			zap.Error(err))
	}
	s.away = err
}

func (s *Scheduler) databaseBack() {
	if s.away != nil {
		s.o.Log.Info("the database answers again")
	}
	s.away = nil
}
