package scheduler

import (
	"context"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// Observer hears what becomes of runs on this replica. Its methods are called by the loop and by the runs' goroutines, at the
// same time, and must not block: a run waits for them.
type Observer interface {
	// Claimed is called when the run is this replica's, before anything of it is started.
	Claimed(r *jobs.Run)
	// Ended is called once for everything that was claimed, and once for what this replica has ended without running it.
	Ended(e *Ending)
}

// Ending is the end of a run as this replica knows it.
type Ending struct {
	Run *jobs.Run // with Outcome and Reason; its FinishedAt may be nil
	// Claimed says that there was a Claimed before.
	Claimed bool
	// Took is the time from the start to the death of the whole process tree, on the boot clock; 0 when nothing was started.
	Took time.Duration
	// Written says that the ledger has the outcome. It has not when the run was given away before, and another replica has said
	// how it ended; or when the database did not answer until this replica had to leave.
	Written bool
}

// Op is what the scheduler wants from the database: one transaction or one statement.
type Op string

// The operations that Options.Timed hears of.
const (
	OpLook    Op = "look"
	OpPlan    Op = "plan"
	OpFollow  Op = "follow"
	OpSettle  Op = "settle"
	OpCancel  Op = "cancel" // reading which runs were asked to end
	OpClaim   Op = "claim"
	OpFinish  Op = "finish"
	OpRecover Op = "recover"
	OpOverdue Op = "overdue"
	OpNotify  Op = "notify"
	OpBeat    Op = "beat" // the row of this replica
)

// Ops are all of them.
func Ops() []Op {
	return []Op{OpLook, OpPlan, OpFollow, OpSettle, OpCancel, OpClaim, OpFinish, OpRecover, OpOverdue, OpNotify, OpBeat}
}

// step bounds what is asked of the database, and times it: the returned function is to be called at the end.
func (s *Scheduler) step(ctx context.Context, op Op) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	timed := s.timed(op)
	return ctx, func() { timed(); cancel() }
}

// timed begins to time something; the returned function ends it.
func (s *Scheduler) timed(op Op) func() {
	if s.o.Timed == nil {
		return func() {}
	}
	began := s.o.Boot()
	return func() { s.o.Timed(op, s.o.Boot()-began) }
}

// endedHere tells that a run of this replica is over.
func (s *Scheduler) endedHere(r *report, run *jobs.Run, written bool) {
	for _, o := range s.o.Observe {
		o.Ended(&Ending{Run: run, Claimed: true, Took: r.took, Written: written})
	}
}

// endedUnrun tells that a run was ended without having run here.
func (s *Scheduler) endedUnrun(run *jobs.Run) { tellEnded(s.o.Observe, run) }

// tellEnded is how everything that ends a run without running it tells of it: the loop, and what a person asked this process for.
func tellEnded(all []Observer, run *jobs.Run) {
	for _, o := range all {
		o.Ended(&Ending{Run: run, Written: true})
	}
}
