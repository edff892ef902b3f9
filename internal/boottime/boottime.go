// Package boottime reads a clock that starts with the machine, never steps, and goes on while the machine is
// suspended. Deadlines of locks are kept on it: Go's monotonic clock stops in suspend, and the wall clock can be set.
//
// All processes of one machine see the same clock, so a deadline may be handed from the daemon to its supervisor.
// The value means nothing on another machine or after a restart.
package boottime

import "time"

// Now is the time since the machine was started. Its zero is not meaningful; only differences are.
func Now() time.Duration { return now() }

// CountsSuspend reports whether the clock of this platform goes on while the machine is suspended. Where it does
// not, a lock held across a suspend may be believed for too long, and `serve` says so at start.
func CountsSuspend() bool { return countsSuspend }
