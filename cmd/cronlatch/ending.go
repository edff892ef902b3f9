package main

import (
	"fmt"
	"strconv"

	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
)

func runID(run *wire.Run) string { return strconv.FormatInt(run.ID, 10) }

// ending is how a run ended, in one sentence: "run 17 of backup:db on replica b failed after 1.2s: exit code 3".
func ending(run *wire.Run) string {
	text := "run " + runID(run) + " of " + run.Job
	if run.Replica != nil {
		text += " on replica " + *run.Replica
	}
	text += " " + verb(run)
	if run.StartedAt != nil && run.FinishedAt != nil {
		text += " after " + span(run.FinishedAt.Sub(*run.StartedAt))
	}
	if why := cause(run); why != "" {
		text += ": " + why
	}
	return text
}

func verb(run *wire.Run) string {
	switch outcome := jobs.Outcome(orNone(run.Outcome)); outcome {
	case jobs.OutcomeSucceeded, jobs.OutcomeFailed:
		return string(outcome)
	case jobs.OutcomeTimedOut:
		return "timed out"
	case jobs.OutcomeCancelled:
		return "was cancelled"
	case jobs.OutcomeSkipped, jobs.OutcomeMissed, jobs.OutcomeLost:
		return "was " + string(outcome)
	default:
		return "is held"
	}
}

// cause is why it ended so; empty when the verb says it all.
func cause(run *wire.Run) string {
	switch outcome := jobs.Outcome(orNone(run.Outcome)); {
	case jobs.State(run.State) == jobs.StateHeld:
		return "a person decides whether it runs again"
	case outcome == jobs.OutcomeSucceeded, outcome == jobs.OutcomeTimedOut:
		return ""
	case outcome == jobs.OutcomeFailed:
		return failureCause(run)
	default:
		return reasonText(run)
	}
}

func failureCause(run *wire.Run) string {
	switch {
	case run.Signal != nil:
		return "ended by " + *run.Signal
	case reasonOf(run) == jobs.ReasonStart:
		return "the command could not be started"
	case run.ExitCode != nil:
		return fmt.Sprintf("exit code %d", *run.ExitCode)
	default:
		return orNone(run.Reason)
	}
}

func reasonOf(run *wire.Run) jobs.Reason { return jobs.Reason(orNone(run.Reason)) }

// reasonText spells out the reason code.
func reasonText(run *wire.Run) string {
	sentences := map[jobs.Reason]string{
		jobs.ReasonOverlap:     "an earlier run of the job is unfinished",
		jobs.ReasonDisabled:    "the job is disabled",
		jobs.ReasonLockHeld:    "the lock " + run.Resource + " stayed busy",
		jobs.ReasonPaused:      "the job was paused",
		jobs.ReasonLimit:       "the limit of a tag was reached",
		jobs.ReasonNoCapacity:  "no replica that knows the job had room in time",
		jobs.ReasonDrain:       "the replica was asked to leave",
		jobs.ReasonLeaseLost:   "its lock could not be renewed, and it was stopped",
		jobs.ReasonReplicaLost: "its replica is gone",
		jobs.ReasonStaleStart:  "the start came too late for its lock",
		jobs.ReasonSupervisor:  "the supervisor died, and it was stopped",
		jobs.ReasonRequested:   "somebody asked for it",

		jobs.ReasonNoMatchingReplica: "no replica had the labels of only_on in time",
	}
	if s, ok := sentences[reasonOf(run)]; ok {
		return s
	}
	return orNone(run.Reason)
}
