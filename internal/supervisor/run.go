package supervisor

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

type phase int

const (
	phaseStarting phase = iota // not executed yet
	phaseRunning               // executed; ends when the whole tree is dead
	phaseDraining              // dead; the last output is being read
)

// How often a tree that should be dead is looked at, from the first look on.
const (
	firstLook = time.Millisecond
	slowLook  = 50 * time.Millisecond
)

// run is one command inside the supervisor. Only the main loop touches it. Instants are on the boot clock.
type run struct {
	number           uint64
	spec             *wireSpec
	stopAt, deadline time.Duration

	phase     phase
	launched  *launched // nil until forked
	output    *capture
	refused   *StartError // why it was not executed
	abandoned bool        // somebody wants it stopped
	hurried   bool        // ... at once
	drained   bool        // the output has come to its end

	startedAt time.Duration
	ending    bool          // SIGTERM was or will be sent
	termSent  bool          // ... and everybody has it: the grace begins
	killAt    time.Duration // SIGKILL at this instant, or at the deadline if that is earlier
	cause     Cause
	main      *syscall.WaitStatus // how the command itself ended; nil while it lives

	// The tree is worked on aside, one action at a time: without cgroups an action can take as long as reading the
	// process table, and the deadlines of other runs do not wait for that.
	aside      func(action, then func())
	busy       bool
	termDue    bool  // SIGTERM is to be sent
	stunned    bool  // what can be stopped at once has been
	look, blow pacer // when to look whether the tree is dead, and when to kill
}

// pacer spaces out repetitions: at once, and then more and more slowly.
type pacer struct{ at, pause time.Duration }

func (p *pacer) due(now time.Duration) bool {
	if now < p.at {
		return false
	}
	p.pause = min(max(2*p.pause, firstLook), slowLook)
	p.at = now + p.pause
	return true
}

// step does what is due. Children that ended have been reaped before, so that a command which ended by itself is not
// taken for one that we stopped.
func (r *run) step(now time.Duration) {
	if r.launched == nil || r.phase == phaseDraining {
		return
	}
	r.decide(now)
	killing := r.ending && now >= r.killTime()
	if killing && !r.stunned && r.main == nil {
		r.stunned = true
		r.launched.tree.stun(r.launched.pid)
	}
	switch {
	case r.busy:
	case r.phase == phaseStarting && r.main != nil: // it waits for the verdict
	case killing && r.blow.due(now):
		r.act(r.launched.tree.kill, func() {})
	case r.termDue && !killing:
		r.termDue = false
		r.act(func() { terminate(r.launched.tree) }, func() { r.termSent = true })
	case r.main != nil && r.look.due(now):
		alive := true
		r.act(func() { alive = r.launched.tree.alive() }, func() { r.looked(alive) })
	}
	if r.termSent && r.killAt == never {
		r.killAt = now + r.spec.KillAfter
	}
}

func (r *run) act(action, then func()) {
	r.busy = true
	r.aside(action, func() {
		r.busy = false
		then()
	})
}

// looked hears whether the tree was alive after the command itself had ended.
func (r *run) looked(alive bool) {
	switch {
	case !alive:
		r.phase = phaseDraining
		if r.output != nil {
			r.output.finish()
		}
	case !r.ending: // what the command left behind gets the same time to go
		r.end(CauseExited, never)
	}
}

func (r *run) limit() time.Duration { return min(r.stopAt, r.deadline) }

// decide begins the end, once. A stop that has begun is not taken back by a later renewal: the command has been told.
// Before exec there is nobody to tell, so nothing needs grace; if exec comes first all the same, the run goes on as one
// that is being killed.
func (r *run) decide(now time.Duration) {
	if r.hurried {
		r.hurried = false
		r.end(CauseStopped, now)
		r.termDue = false
		return
	}
	timeout := r.spec.Timeout
	switch starting := r.phase == phaseStarting; {
	case r.ending:
	case r.abandoned && starting:
		r.end(CauseStopped, now)
	case r.abandoned:
		r.end(CauseStopped, never)
	case now >= r.limit() && starting:
		r.end(CauseDeadline, now)
	case now >= r.limit():
		r.end(CauseDeadline, r.deadline)
	case timeout > 0 && now >= r.startedAt+timeout && !starting:
		r.end(CauseTimeout, never)
	}
}

// end begins with SIGTERM. SIGKILL follows at killAt; never means: KillAfter after SIGTERM.
func (r *run) end(cause Cause, killAt time.Duration) {
	r.ending, r.termDue = true, true
	r.killAt = killAt
	if r.cause == "" {
		r.cause = cause
	}
}

func (r *run) killTime() time.Duration { return min(r.killAt, r.deadline) }

// pass sends a signal to the command's process group. Once it has ended, its number may be somebody else's.
func (r *run) pass(sig syscall.Signal) {
	if r.phase == phaseRunning && r.main == nil {
		_ = syscall.Kill(-r.launched.pid, sig) // it may be over
	}
}

// reaped notes the end of the command itself.
func (r *run) reaped(status syscall.WaitStatus) {
	r.main = &status
	if r.cause == "" {
		r.cause = CauseExited
	}
	r.look = pacer{}
}

// next is when step has something to do again, if nothing happens before.
func (r *run) next() time.Duration {
	if r.launched == nil || r.busy || r.phase == phaseDraining || r.phase == phaseStarting && r.main != nil {
		return never
	}
	at := never
	if r.main != nil {
		at = r.look.at
	}
	if r.ending {
		if r.termDue {
			return 0
		}
		return min(at, max(r.killTime(), r.blow.at))
	}
	at = min(at, r.limit())
	if r.spec.Timeout > 0 && r.phase == phaseRunning {
		at = min(at, r.startedAt+r.spec.Timeout)
	}
	return at
}

// printed is what the command has printed from a byte on.
func (r *run) printed(since int64) *Chunk {
	if r.output == nil { // not forked yet, or it writes where its caller does
		return &Chunk{}
	}
	return new(r.output.since(since))
}

func (r *run) result() *Result {
	res := &Result{Cause: r.cause, ExitCode: r.main.ExitStatus()}
	if r.output != nil {
		res.Output = r.output.output()
	}
	if r.main.Signaled() {
		res.Signal = unix.SignalName(r.main.Signal())
	}
	return res
}
