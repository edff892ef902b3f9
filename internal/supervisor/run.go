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
	drained   bool        // the output has come to its end

	startedAt time.Duration
	ending    bool          // SIGTERM was sent
	killAt    time.Duration // SIGKILL at this instant, or at the deadline if that is earlier
	cause     Cause
	main      *syscall.WaitStatus // how the command itself ended; nil while it lives

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
	switch r.phase {
	case phaseStarting:
		r.stepStarting(now)
	case phaseRunning:
		r.stepRunning(now)
	case phaseDraining:
	}
}

// stepStarting kills a child that shall not be executed any more. Nothing of the job has run, so nothing needs grace.
// If exec comes first all the same, the run goes on as one that is being killed.
func (r *run) stepStarting(now time.Duration) {
	if r.launched == nil || r.main != nil || !r.abandoned && now < r.limit() {
		return
	}
	if !r.ending {
		r.ending, r.killAt, r.cause = true, now, CauseDeadline
		if r.abandoned {
			r.cause = CauseStopped
		}
	}
	r.strike(now)
}

func (r *run) limit() time.Duration { return min(r.stopAt, r.deadline) }

func (r *run) stepRunning(now time.Duration) {
	r.decide(now)
	if r.main != nil && r.look.due(now) {
		if !r.launched.tree.alive() {
			r.phase = phaseDraining
			r.output.finish()
			return
		}
		if !r.ending { // what the command left behind gets the same time to go
			r.end(CauseExited, now+r.spec.KillAfter)
		}
	}
	if r.ending && now >= r.killTime() {
		r.strike(now)
	}
}

// strike kills, and again after a while for as long as it is called.
func (r *run) strike(now time.Duration) {
	if r.blow.pause == 0 {
		r.look = pacer{}
	}
	if r.blow.due(now) {
		r.launched.tree.kill()
	}
}

// decide begins the end, once. A stop that has begun is not taken back by a later renewal: the command has been told.
func (r *run) decide(now time.Duration) {
	timeout := r.spec.Timeout
	switch {
	case r.ending:
	case r.abandoned:
		r.end(CauseStopped, now+r.spec.KillAfter)
	case now >= r.limit():
		r.end(CauseDeadline, r.deadline)
	case timeout > 0 && now >= r.startedAt+timeout:
		r.end(CauseTimeout, now+r.spec.KillAfter)
	}
}

func (r *run) end(cause Cause, killAt time.Duration) {
	r.ending = true
	r.killAt = killAt
	if r.cause == "" {
		r.cause = cause
	}
	terminate(r.launched.tree)
}

func (r *run) killTime() time.Duration { return min(r.killAt, r.deadline) }

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
	switch {
	case r.phase == phaseDraining, r.launched == nil:
		return never
	case r.phase == phaseStarting && r.main != nil:
		return never
	case r.phase == phaseStarting && r.abandoned:
		return r.blow.at
	case r.phase == phaseStarting:
		return max(r.limit(), r.blow.at)
	}
	at := never
	if r.main != nil {
		at = r.look.at
	}
	if r.ending {
		return min(at, max(r.killTime(), r.blow.at))
	}
	at = min(at, r.limit())
	if r.spec.Timeout > 0 {
		at = min(at, r.startedAt+r.spec.Timeout)
	}
	return at
}

func (r *run) result() *Result {
	res := &Result{Cause: r.cause, ExitCode: r.main.ExitStatus(), Output: r.output.window.output()}
	if r.main.Signaled() {
		res.Signal = unix.SignalName(r.main.Signal())
	}
	return res
}
