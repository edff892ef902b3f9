package supervisor

import (
	"syscall"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/mask"
)

// obey carries out an order of the daemon.
func (s *supervisor) obey(o order) {
	r := s.runs[o.Run] // nil for one that has ended: its report and this order have crossed
	switch {
	case o.Op == orderSetup && o.Setup != nil:
		s.ground = newGround(*o.Setup)
		s.ground.family.sole = s.heir
		s.out.push(report{Op: reportHello, Hello: &hello{Cgroup: s.ground.home, Weaknesses: s.ground.weaknesses}})
	case o.Op == orderStart && o.Spec != nil:
		s.start(o.Run, o.Spec)
	case o.Op == orderExtend && r != nil:
		r.stopAt, r.deadline = o.StopAt, o.Deadline
	case o.Op == orderStop && r != nil:
		r.abandoned = true
	case o.Op == orderKill && r != nil:
		r.hurried = true
	case o.Op == orderSignal && r != nil:
		r.pass(syscall.Signal(o.Signal))
	case o.Op == orderOutput && r != nil:
		s.out.push(report{Op: reportOutput, Run: r.number, Chunk: r.printed(o.Since)})
	case o.Op == orderPing:
		s.out.push(report{Op: reportPong})
	case o.Op == orderLeave:
		s.leave()
	}
}

func (s *supervisor) start(number uint64, spec *wireSpec) {
	if s.ground == nil || s.leaving {
		s.out.push(report{Op: reportRefused, Run: number, Refused: &StartError{ReasonSupervisor, "the supervisor is leaving"}})
		return
	}
	r := &run{number: number, spec: spec, stopAt: spec.StopAt, deadline: spec.Deadline, aside: s.aside}
	s.runs[number] = r
	s.forking++
	s.forks.push(r)
}

// leave stops everything; the loop ends when all is dead.
func (s *supervisor) leave() {
	s.leaving = true
	for _, r := range s.runs {
		r.abandoned = true
	}
}

// forked takes over a child between fork and exec.
func (s *supervisor) forked(r *run, l *launched, refused *StartError) {
	s.forking--
	if refused != nil {
		s.refuse(r, refused)
	} else {
		s.watch(r, l)
	}
	if s.forking == 0 {
		clear(s.early)
	}
}

func (s *supervisor) watch(r *run, l *launched) {
	r.launched = l
	s.complain(l.trouble)
	s.byPID[l.pid] = r
	go l.tell(r.spec)
	if r.drained = l.output == nil; !r.drained {
		r.output = &capture{r: l.output, mask: mask.New(r.spec.Mask), window: window{headMax: r.spec.HeadBytes, tailMax: r.spec.TailBytes}}
		go r.output.run(func() { s.events <- func() { s.drained(r) } })
	}
	go func() {
		refused := readVerdict(l.verdict)
		_ = l.verdict.Close()
		s.events <- func() { s.judged(r, refused) }
	}()
	// A PID that exists has not been reaped: then the early end was that of another process which had it before.
	if status, ok := s.early[l.pid]; ok && !exists(l.pid) {
		delete(s.byPID, l.pid)
		r.reaped(status)
	}
}

// judged hears whether the command was executed.
func (s *supervisor) judged(r *run, refused *StartError) {
	if refused == nil {
		r.phase = phaseRunning
		r.startedAt = boottime.Now()
		s.out.push(report{Op: reportStarted, Run: r.number, Started: &r.launched.info})
		return
	}
	r.refused = refused
	if r.ending && refused.Reason == ReasonSystem { // it ended because we killed it
		r.refused = stale(boottime.Now() - r.limit())
		if r.cause == CauseStopped {
			r.refused = &StartError{ReasonCancelled, "it was stopped before it was executed"}
		}
	}
	s.settle(r)
}

// settle reports a refusal when it is certain that nothing runs.
func (s *supervisor) settle(r *run) {
	if r.phase == phaseStarting && r.refused != nil && r.main != nil {
		s.refuse(r, r.refused)
	}
}

func (s *supervisor) refuse(r *run, why *StartError) {
	s.out.push(report{Op: reportRefused, Run: r.number, Refused: why})
	s.forget(r)
}

// drained hears that the output has come to its end, which may be long before the run does.
func (s *supervisor) drained(r *run) {
	r.drained = true
	_ = r.output.r.Close()
	s.finish(r)
}

// finish reports a run whose tree is dead and whose output is complete.
func (s *supervisor) finish(r *run) {
	if r.phase == phaseDraining && r.drained && s.runs[r.number] == r {
		s.out.push(report{Op: reportDone, Run: r.number, Result: r.result()})
		s.forget(r)
	}
}

func (s *supervisor) forget(r *run) {
	delete(s.runs, r.number)
	if r.launched != nil {
		s.litter = append(s.litter, r.launched.tree)
	}
	s.tidy()
}

// complain reports what somebody should look at although the runs go on.
func (s *supervisor) complain(err error) {
	if err != nil {
		s.out.push(report{Op: reportTrouble, Trouble: err.Error()})
	}
}
