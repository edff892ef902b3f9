package scheduler

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/failpoint"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// activeRuns are the runs of this replica that are not finished in the ledger yet.
type activeRuns struct {
	jobs map[string]*jobs.Job // the known ones, by name; the loop's: a run has its own definition in its claim
	wg   sync.WaitGroup

	mu      sync.Mutex
	n       int
	asks    map[int64]chan jobs.Run // of each run, for the request to end it
	drain   chan struct{}           // closed when running commands must stop now
	stopped bool

	// writing ends when outcomes can no longer be written: the process is about to leave.
	writing context.Context //nolint:containedctx // its end is a signal to many goroutines, not a call's scope
	giveUp  context.CancelFunc
}

func (a *activeRuns) init() {
	a.drain = make(chan struct{})
	a.asks = map[int64]chan jobs.Run{}
	a.writing, a.giveUp = context.WithCancel(context.Background())
}

func (a *activeRuns) add() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
}

func (a *activeRuns) done() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n--
}

// listen returns where a request to end the run arrives, until deaf.
func (a *activeRuns) listen(id int64) <-chan jobs.Run {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asks[id] = make(chan jobs.Run, 1)
	return a.asks[id]
}

func (a *activeRuns) deaf(id int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.asks, id)
}

// ask passes on a request to end a run, if it is one of ours. The first one counts.
func (a *activeRuns) ask(asked jobs.Run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case a.asks[asked.ID] <- asked:
	default: // it has one already, or is not ours: a nil channel takes nothing
	}
}

func (a *activeRuns) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n
}

func (a *activeRuns) stopAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.stopped {
		a.stopped = true
		close(a.drain)
	}
}

// launch starts a claimed run in a goroutine of its own. From here on the run ends with a report, whatever happens.
func (s *Scheduler) launch(c claimed) {
	s.decided(audit.RunClaim, &c.run)
	for _, o := range s.o.Observe {
		o.Claimed(&c.run)
	}
	s.active.add()
	asks := s.active.listen(c.run.ID)
	s.active.wg.Go(func() {
		defer s.Wake()
		defer s.active.done()
		defer s.active.deaf(c.run.ID)
		s.execute(c, asks)
	})
}

// execute runs one claimed run from start to the written outcome. The lock is kept until the process tree is dead and
// the outcome is in the ledger.
func (s *Scheduler) execute(c claimed, asks <-chan jobs.Run) {
	job := c.job
	link := &link{}
	lock := s.o.Keeper.Keep(locking.Grant{
		Record: c.lock, Takeover: c.takeover, SentAt: c.sentAt, TTL: s.o.TTL, StopGrace: job.KillAfter,
		OnExtend: link.extend, Fields: []zap.Field{audit.Job(c.run.Job), audit.RunID(c.run.ID)},
	})
	failpoint.Hit("starting")
	began := s.o.Boot()
	proc, err := s.o.Start(lock.Context(), jobs.Attempt{
		Job: job, Run: c.run, LockExpires: c.lock.ExpiresAt, StopAt: lock.StopAt(), Deadline: lock.Deadline(),
	})
	if err != nil {
		s.write(notStarted(&c.run, err), lock)
		return
	}
	link.attach(proc, lock)
	s.decided(audit.RunStart, &c.run)
	live := s.live.open(&c.run, proc, s.o.Boot())
	r := conclude(s.watch(proc, lock, asks), job.ExitCodes)
	r.chunks = s.live.close(live)
	r.run, r.took = c.run, s.o.Boot()-began
	failpoint.Hit("finishing")
	s.write(r, lock)
}

// link passes renewals on to the process; those that come before it exists are not lost, attach catches up.
type link struct {
	mu   sync.Mutex
	proc Process
}

func (l *link) extend(stopAt, deadline time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.proc != nil {
		l.proc.Extend(stopAt, deadline)
	}
}

func (l *link) attach(p Process, lock *locking.Lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proc = p
	p.Extend(lock.StopAt(), lock.Deadline())
}

// watch waits for the end of the process tree, and asks for it when the lock is lost, the replica leaves, or somebody wants
// it.
func (s *Scheduler) watch(proc Process, lock *locking.Lock, asks <-chan jobs.Run) processEnd {
	var e processEnd
	drain, gone := s.active.drain, lock.Context().Done()
	for {
		select {
		case <-proc.Done():
			e.result = proc.Result()
			return e
		case <-gone:
			e.lost, gone = true, nil
			proc.Stop()
		case <-drain:
			e.drained, drain = true, nil
			proc.Stop()
		case asked := <-asks:
			e.asked, asks = &asked, nil
			proc.Stop()
		}
	}
}

// write repeats until the ledger has the outcome (and with it released the lock), or has refused it, or the process must
// leave.
func (s *Scheduler) write(r *report, lock *locking.Lock) {
	r.renewed(lock)
	lock.Closing()
	pause := 50 * time.Millisecond
	for {
		ctx, timed := s.step(s.active.writing, OpFinish)
		done, err := s.store.finish(ctx, r)
		timed()
		if err == nil {
			s.wrote(r, done)
			if done.late {
				lock.Reopen()
			}
			lock.Forget()
			return
		}
		s.o.Log.Warn("the outcome could not be written yet", audit.RunID(r.run.ID), zap.Error(err))
		select {
		case <-s.active.writing.Done():
			s.o.Log.Error("leaving without having written the outcome; the run will be recovered as lost",
				audit.RunID(r.run.ID), audit.RunOutcome(string(r.outcome)))
			lock.Reopen()
			s.wasNotWritten(r)
			return
		case <-time.After(pause + rand.N(pause)):
			pause = min(2*pause, slowFinish)
		}
	}
}

// renewed takes down how the lock was kept.
func (r *report) renewed(lock *locking.Lock) {
	n, least := lock.Renewals()
	r.renewals = &n
	if n > 0 {
		r.leastLeft = new(least.Milliseconds())
	}
}

func (s *Scheduler) wrote(r *report, done finished) {
	run := r.run
	run.Outcome, run.Reason = r.outcome, r.reason
	s.endedHere(r, &run, !done.late)
	if done.late {
		audit.Log(s.o.Audit, audit.RunFinish, audit.Failure, audit.Actor(audit.ActorReplica, s.o.Replica), audit.Job(run.Job),
			audit.RunID(run.ID), audit.Token(run.FencingToken), audit.RunOutcome(string(r.outcome)),
			audit.Reason("late outcome refused: the run was already given away"))
		return
	}
	s.decided(endAction(r.outcome), &run)
	if done.next != nil {
		s.decided(audit.RunRetry, done.next)
	}
}

// wasNotWritten tells that a run is over here, and that somebody else has to find out.
func (s *Scheduler) wasNotWritten(r *report) {
	run := r.run
	run.Outcome, run.Reason = r.outcome, r.reason
	s.endedHere(r, &run, false)
}
