package main

import (
	"errors"

	"github.com/cronlatch/cronlatch/internal/supervisor"
	"github.com/cronlatch/cronlatch/locking"
)

// conclude finds the exit code. taken says that the database had given the lock to somebody else.
//
// A command that ended by itself within its lease was alone all the time, although the renewals failed. When the database
// says that the lock was taken away, nobody can know that.
func (c *lockChild) conclude(r supervisor.Result, taken bool) error {
	switch {
	case c.killedBy != 0:
		return exit(exitSignal + int(c.killedBy))
	case r.Cause == supervisor.CauseSupervisorGone:
		return fail(exitFailure, "the process that watched over the command died, and the command was killed")
	case r.Cause == supervisor.CauseExited && taken:
		return fail(exitLost, "the lock %q had been taken away before the command ended (%s)", c.run.resource, endOf(r))
	case r.Cause == supervisor.CauseExited && r.Signal != "":
		return exit(signalCode(r.Signal))
	case r.Cause == supervisor.CauseExited:
		return exit(r.ExitCode)
	default:
		return fail(exitLost, "the lock %q was lost while the command ran, and the command was stopped (%s)", c.run.resource, endOf(r))
	}
}

// notStarted explains why the command does not run. The lock is released.
func (c *lockChild) notStarted(err error) error {
	refused, ok := errors.AsType[*supervisor.StartError](err)
	if !ok {
		return err
	}
	switch refused.Reason {
	case supervisor.ReasonCancelled, supervisor.ReasonStale:
		if c.signals.over.Err() != nil {
			return c.interrupted()
		}
		return fail(exitLost, "the lock %q was lost before the command was started", c.run.resource)
	case supervisor.ReasonNotFound:
		return fail(exitNotFound, "the command %q was not found", c.run.argv[0])
	case supervisor.ReasonNotExecutable, supervisor.ReasonDir, supervisor.ReasonSystem:
		return fail(exitNotExecutable, "%w", err)
	default:
		return fail(exitFailure, "%w", err)
	}
}

func (c *lockChild) interrupted() error {
	return fail(c.signals.code(), "interrupted before the command was started")
}

// endOf is "exit code 3" or "SIGKILL".
func endOf(r supervisor.Result) string {
	if r.Signal != "" {
		return "it ended by " + r.Signal
	}
	return "it ended with exit code " + formatToken(int64(r.ExitCode))
}

func isTaken(err error) bool {
	lost, ok := errors.AsType[*locking.LostError](err)
	return ok && lost.Reason == locking.ReasonDatabase
}

func whyLost(err error) string {
	if isTaken(err) {
		return "it was taken away"
	}
	return "it could not be renewed in time"
}
