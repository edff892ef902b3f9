package main

import (
	"fmt"
	"strconv"

	"github.com/cronlatch/cronlatch/jobs"
)

func runID(run *jobs.Run) string { return strconv.FormatInt(run.ID, 10) }

// ending is how a run ended, in one sentence.
func ending(run *jobs.Run) string {
	text := "run " + runID(run) + " of " + run.Job + " " + verdict(run)
	if run.StartedAt != nil && run.FinishedAt != nil {
		text += " after " + span(run.FinishedAt.Sub(*run.StartedAt))
	}
	if run.Replica != "" {
		text += " on replica " + run.Replica
	}
	return text
}

func verdict(run *jobs.Run) string {
	switch run.Outcome {
	case jobs.OutcomeSucceeded:
		return "succeeded"
	case jobs.OutcomeFailed:
		return "failed: " + failureCause(run)
	case jobs.OutcomeTimedOut:
		return "timed out"
	case jobs.OutcomeCancelled:
		return "was canceled" + because(run)
	case jobs.OutcomeSkipped:
		return "was skipped" + because(run)
	case jobs.OutcomeMissed:
		return "was missed" + because(run)
	case jobs.OutcomeLost:
		return "was lost" + because(run)
	default:
		return "is held: a person decides whether it runs again"
	}
}

func failureCause(run *jobs.Run) string {
	switch {
	case run.Signal != "":
		return "ended by " + run.Signal
	case run.Reason == jobs.ReasonStart:
		return "the command could not be started"
	case run.ExitCode != nil:
		return fmt.Sprintf("exit code %d", *run.ExitCode)
	default:
		return string(run.Reason)
	}
}

// because spells out the reason code.
func because(run *jobs.Run) string {
	sentences := map[jobs.Reason]string{
		jobs.ReasonOverlap:     "an earlier run of the job is unfinished",
		jobs.ReasonDisabled:    "the job is disabled",
		jobs.ReasonLockHeld:    "the lock " + run.Resource + " stayed busy",
		jobs.ReasonNoCapacity:  "no replica that knows the job had room in time",
		jobs.ReasonDrain:       "the replica was asked to leave",
		jobs.ReasonLeaseLost:   "its lock could not be renewed, and it was stopped",
		jobs.ReasonReplicaLost: "its replica is gone",
		jobs.ReasonStaleStart:  "the start came too late for its lock",
		jobs.ReasonSupervisor:  "the supervisor died, and it was stopped",
		jobs.ReasonRequested:   "somebody asked for it",
	}
	if s, ok := sentences[run.Reason]; ok {
		return ": " + s
	}
	if run.Reason == "" {
		return ""
	}
	return ": " + string(run.Reason)
}
