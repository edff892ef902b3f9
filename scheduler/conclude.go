package scheduler

import (
	"encoding/json"
	"errors"

	"github.com/cronlatch/cronlatch/jobs"
)

// processEnd is the end of a process, with why it was asked for.
type processEnd struct {
	result        jobs.Result
	lost, drained bool
	asked         *jobs.Run // with the request to end it; nil when there was none
}

// conclude turns the end of a process into an outcome.
func conclude(e processEnd, codes jobs.ExitCodes) *report {
	res := e.result
	r := &report{output: res.Output, signal: res.Signal}
	if res.Signal == "" && res.Cause != jobs.CauseSupervisorGone {
		r.exitCode = &res.ExitCode
	}
	switch {
	case res.Cause == jobs.CauseExited && res.Signal != "":
		r.outcome, r.reason = jobs.OutcomeFailed, jobs.ReasonSignal
	case res.Cause == jobs.CauseExited && res.Reason != "": // no command, so exit_codes says nothing about it
		r.outcome, r.reason = jobs.OutcomeFailed, res.Reason
	case res.Cause == jobs.CauseExited:
		if r.outcome = codes.Outcome(res.ExitCode); r.outcome != jobs.OutcomeSucceeded {
			r.reason = jobs.ReasonExit
		}
	case res.Cause == jobs.CauseTimeout:
		r.outcome, r.reason = jobs.OutcomeTimedOut, jobs.ReasonTimeout
	case res.Cause == jobs.CauseSupervisorGone:
		r.outcome, r.reason, r.again = jobs.OutcomeLost, jobs.ReasonSupervisor, true
	case res.Cause == jobs.CauseStopped && e.asked != nil && !e.lost:
		r.outcome, r.reason, r.facts = jobs.OutcomeCancelled, e.asked.CancelReason, factsOf(e.asked.CancelDetail)
	case res.Cause == jobs.CauseStopped && e.drained && !e.lost:
		r.outcome, r.reason, r.again = jobs.OutcomeCancelled, jobs.ReasonDrain, true
	default: // stopped because the lock was lost, or at its deadline
		r.outcome, r.reason, r.again = jobs.OutcomeLost, jobs.ReasonLeaseLost, true
	}
	return r
}

// factsOf are the facts of a request; one that cannot be read has none.
func factsOf(doc json.RawMessage) (facts map[string]any) {
	if json.Unmarshal(doc, &facts) != nil {
		return nil
	}
	return facts
}

// notStarted reports a claimed run that could not be started: failed, not forgotten.
func notStarted(run *jobs.Run, err error) *report {
	r := &report{run: *run, outcome: jobs.OutcomeFailed, reason: jobs.ReasonStart, facts: map[string]any{"error": err.Error()}}
	var start *jobs.StartError
	if errors.As(err, &start) {
		if start.Lost != "" {
			r.outcome, r.reason, r.again = jobs.OutcomeLost, start.Lost, true
		} else {
			r.exitCode = &start.ExitCode
		}
	}
	return r
}
